/* SPDX-License-Identifier: BSD-3-Clause */
/* clients.c - runs a stand-in: postern-run -n N clients4 NAME. See clients.h. */
#include "../nap.h"
#include "clients.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE 256

unsigned rank, ranks;
static FILE *pmi;
static unsigned keys; /* that this process has put */

_Noreturn void check_fail(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: rank %u: not so: %s\n", file, line, rank, what);
	_exit(1);
}

void check_code(int code, const char *call, const char *file, int line)
{
	if (code == PTL_OK)
		return;
	fprintf(stderr, "%s:%d: rank %u: %s returned %d\n", file, line, rank, call, code);
	_exit(1);
}

void entry_unlink(int (*unlink)(ptl_handle_any_t), ptl_handle_any_t entry)
{
	int code;

	while ((code = unlink(entry)) == PTL_IN_USE)
		nap();
	check(code == PTL_OK);
}

static uint8_t pattern_byte(size_t at, uint32_t seed)
{
	return (uint8_t)((at * 2654435761u + seed * 40503u) >> 11);
}

void pattern_fill(void *memory, size_t bytes, uint32_t seed)
{
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)memory)[i] = pattern_byte(i, seed);
}

void pattern_check(const void *memory, size_t bytes, uint32_t seed)
{
	for (size_t i = 0; i < bytes; i++)
		check(((const uint8_t *)memory)[i] == pattern_byte(i, seed));
}

/* --- the launcher */

static unsigned job_number(const char *name)
{
	const char *value = getenv(name);

	if (!value) {
		fprintf(stderr, "%s is not set: start this program with postern-run -n 4\n", name);
		exit(2);
	}
	return (unsigned)strtoul(value, NULL, 10);
}

/* Says a line, and reads the answer into `line`. */
static void job_ask(char line[LINE])
{
	fputs(line, pmi);
	fflush(pmi);
	check(fgets(line, LINE, pmi) != NULL && !strstr(line, "rc=-1"));
}

static void job_begin(void)
{
	char line[LINE] = "cmd=init pmi_version=1 pmi_subversion=1\n";

	rank = job_number("PMI_RANK");
	ranks = job_number("PMI_SIZE");
	pmi = fdopen((int)job_number("PMI_FD"), "r+");
	check(pmi && ranks <= RANKS_MAX);
	setvbuf(pmi, NULL, _IOLBF, LINE);
	job_ask(line);
}

void job_barrier(void)
{
	char line[LINE] = "cmd=barrier_in\n";

	job_ask(line);
}

void job_map(ptl_process_t self, ptl_process_t map[RANKS_MAX])
{
	char line[LINE];

	keys++;
	snprintf(line, sizeof(line), "cmd=put kvsname=job key=at-%u-%u value=%u:%u\n", keys, rank,
		self.phys.nid, self.phys.pid);
	job_ask(line);
	job_barrier();
	for (unsigned i = 0; i < ranks; i++) {
		const char *value;

		snprintf(line, sizeof(line), "cmd=get kvsname=job key=at-%u-%u\n", keys, i);
		job_ask(line);
		value = strstr(line, "value=");
		check(value &&
			sscanf(value, "value=%u:%u", &map[i].phys.nid, &map[i].phys.pid) == 2);
	}
	job_barrier();
}

static void job_end(void)
{
	char line[LINE] = "cmd=finalize\n";

	job_ask(line);
	fclose(pmi);
}

int main(int count, char **words)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} clients[] = {{"gasnet", client_gasnet}, {"nemesis", client_nemesis},
		{"openmpi", client_openmpi}, {"openshmem", client_openshmem}};

	for (size_t i = 0; i < COUNT(clients) && count == 2; i++)
		if (strcmp(words[1], clients[i].name) == 0) {
			job_begin();
			clients[i].run();
			job_end();
			return 0;
		}
	fprintf(stderr, "usage: postern-run -n N clients4 gasnet|nemesis|openmpi|openshmem\n");
	return 2;
}
