/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_nodes.c - the file PTL_HOSTS, which is the input. What it has is found both ways, once, and
 * can be a node's.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <base/settings.h>
#include <pmd-glue/nodes.h>

#include "fuzz.h"

static int file;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char path[32];

	(void)argc;
	(void)argv;
	file = memfd_create("nodes", MFD_CLOEXEC);
	fuzz_assert(file >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	setenv("PTL_HOSTS", path, 1);
	fuzz_assert(settings_load() == 0);
	return 0;
}

static void check(const struct nodes *nodes)
{
	fuzz_assert(nodes->count > 0 && nodes->family == AF_INET6);
	for (uint32_t n = 0; n < nodes->count; n++) {
		const struct node_address *one = &nodes->by_node[n];
		union udp_name name;
		uint32_t node;

		fuzz_assert(one->node != UINT32_MAX);
		fuzz_assert(n == 0 || one[-1].node < one->node);
		fuzz_assert(!nodes_address_fault(&one->address));
		fuzz_assert(nodes_name(nodes, one->node, 1, &name) == sizeof(name.ip6));
		fuzz_assert(memcmp(&name.ip6.sin6_addr, &one->address, sizeof(one->address)) == 0);
		fuzz_assert(nodes_find(nodes, &name, &node) && node == one->node);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nodes nodes;

	fuzz_assert(ftruncate(file, 0) == 0);
	fuzz_assert(pwrite(file, data, size, 0) == (ssize_t)size);
	if (nodes_load(&nodes))
		check(&nodes);
	nodes_free(&nodes);
	return 0;
}
