/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_hosts.c - the file PTL_MX_HOSTS, which is the input. Its first word is one of the names that
 * are looked for. What is found for a NIC is a name that is found in turn.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <mx/state.h>
#include <myriexpress.h>

#include "fuzz.h"

#define TRIED 64 /* first bytes of the file that are a name, at most */

static int file;

/* No network is asked. */
uint32_t __wrap_boards_count(void);

uint32_t __wrap_boards_count(void)
{
	return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char path[32];

	(void)argc;
	(void)argv;
	file = memfd_create("hosts", MFD_CLOEXEC);
	fuzz_assert(file >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	setenv("PTL_MX_HOSTS", path, 1);
	setenv("PTL_IFACE_NAME", "loop:fuzz", 1);
	setenv("PTL_PROGRESS", "inline", 1);
	setenv("PTL_TELEMETRY", "off", 1);
	unsetenv("PTL_ENCAP");
	setenv("PTL_MX_HOSTNAME", "own", 1);
	mx_set_error_handler(MX_ERRORS_RETURN);
	fuzz_assert(mx_init() == MX_SUCCESS);
	return 0;
}

static void nic_look(uint64_t nic)
{
	char name[MX_MAX_HOSTNAME_LEN];
	const char *colon;
	uint64_t again;

	memset(name, 'x', sizeof(name));
	if (mx_nic_id_to_hostname(nic, name) != MX_SUCCESS)
		return;
	fuzz_assert(memchr(name, '\0', sizeof(name)));
	colon = strrchr(name, ':');
	fuzz_assert(colon && colon > name && strspn(colon + 1, "0123456789") == strlen(colon + 1));
	fuzz_assert(!strpbrk(name, " \t\r\n#"));
	fuzz_assert(mx_hostname_to_nic_id(name, &again) == MX_SUCCESS);
}

static void name_look(char *name)
{
	uint64_t nic;

	if (mx_hostname_to_nic_id(name, &nic) != MX_SUCCESS)
		return;
	fuzz_assert(nic >> 32 == NIC_ID_HIGH && (uint32_t)nic != UINT32_MAX);
	nic_look(nic);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char names[][TRIED + 1] = {"alpha", "alpha:1", "b:0", ""};
	size_t length = size < TRIED ? size : TRIED;

	memcpy(names[3], data ? data : (const uint8_t *)"", length);
	names[3][strcspn(names[3], " \t\r\n#")] = '\0';
	fuzz_assert(ftruncate(file, 0) == 0);
	fuzz_assert(pwrite(file, data, size, 0) == (ssize_t)size);
	for (unsigned n = 0; n < sizeof(names) / sizeof(names[0]); n++)
		name_look(names[n]);
	for (uint32_t nid = 0; nid < 4; nid++)
		nic_look(nic_id_of(nid));
	nic_look(nic_id_of(0x0a000007));
	return 0;
}
