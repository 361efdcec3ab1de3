/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_message.c - the header of a Portals message: what is accepted is exactly what can be
 * written. */
#include <string.h>

#include <wire/message.h>

#include "fuzz.h"

#define EXTENT 1234 /* of the data that the header comes with */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct message_header header;
	uint8_t written[MESSAGE_HEADER_BYTES];
	uint8_t *bytes;

	if (size > 4096)
		return 0;
	bytes = calloc(1, size ? size : 1); /* of its own, so that a read beyond it is seen */
	if (size)
		memcpy(bytes, data, size);
	if (message_decode(bytes, (uint32_t)size, EXTENT, &header)) {
		fuzz_assert(header.kind >= MESSAGE_PUT && header.kind <= MESSAGE_FETCH);
		fuzz_assert(!message_brings(header.kind) || header.requested == EXTENT);
		fuzz_assert(message_encode(&header, written) == size);
		fuzz_assert(memcmp(written, bytes, size) == 0);
	}
	free(bytes);
	return 0;
}
