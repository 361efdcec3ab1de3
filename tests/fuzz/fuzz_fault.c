/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_fault.c - PTL_FAULT: a specification opens a port or closes the one inside, nothing else. */
#include <string.h>

#include <base/port.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/kinds.h>

#include "fuzz.h"

static unsigned closed;

uint64_t glue_now(void *context)
{
	(void)context;
	return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

static uint16_t nothing(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	(void)port;
	(void)frames;
	(void)count;
	return 0;
}

static void inside_close(struct port *port)
{
	(void)port;
	closed++;
}

static const struct port_operations inside_operations = {
	.receive = nothing, .transmit = nothing, .close = inside_close};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct port inside = {.operations = &inside_operations, .name = "inside"};
	struct rte_mbuf *frame;
	struct port *port;
	char *text;

	if (size > 1024)
		return 0;
	text = malloc(size + 1);
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	closed = 0;
	port = fault_open(&inside, 0, text);
	if (port) {
		fuzz_assert(closed == 0);
		fuzz_assert(port_receive(port, &frame, 1) == 0);
		port->operations->close(port);
	}
	fuzz_assert(closed == 1);
	free(text);
	return 0;
}
