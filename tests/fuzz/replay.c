/* SPDX-License-Identifier: BSD-3-Clause */
/* replay.c - runs a fuzz target over the files and directories that are named, for compilers
 * without libFuzzer. */
#include <dirent.h>
#include <sys/stat.h>

#include "fuzz.h"

static unsigned replayed;

static void file_replay(const char *path)
{
	FILE *file = fopen(path, "rb");
	struct stat status;
	uint8_t *data;
	size_t size;

	fuzz_assert(file && fstat(fileno(file), &status) == 0);
	size = (size_t)status.st_size;
	data = malloc(size ? size : 1);
	fuzz_assert(data && fread(data, 1, size, file) == size);
	fclose(file);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	replayed++;
}

static void path_replay(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	char name[4096];

	if (!directory) {
		file_replay(path);
		return;
	}
	while ((entry = readdir(directory))) {
		if (entry->d_name[0] == '.')
			continue;
		fuzz_assert(snprintf(name, sizeof(name), "%s/%s", path, entry->d_name) <
			    (int)sizeof(name));
		file_replay(name);
	}
	closedir(directory);
}

/* Nothing changes here; a target's own mutator is never called. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max)
{
	(void)data;
	(void)size_max;
	return size;
}

int main(int argc, char **argv)
{
	LLVMFuzzerInitialize(&argc, &argv);
	LLVMFuzzerTestOneInput(NULL, 0);
	for (int i = 1; i < argc; i++)
		path_replay(argv[i]);
	fuzz_assert(!&fuzz_accepted || fuzz_accepted > 0 || replayed < 2);
	printf("%u inputs replayed\n", replayed);
	return 0;
}
