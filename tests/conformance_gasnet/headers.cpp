// SPDX-License-Identifier: BSD-3-Clause
// headers.cpp - the header as C++, with strict prototypes: every function is declared, once.
#define GASNET_USE_STRICT_PROTOTYPES 1
#include <gasnet.h>

int client(gasnet_token_t token, void *segment);

static gasnet_hsl_t hsl = GASNET_HSL_INITIALIZER;

int client(gasnet_token_t token, void *segment)
{
	GASNET_BEGIN_FUNCTION();
	gasnet_handlerentry_t entry = {200, segment};
	bool done = gasnet_AMRequestLongAsync3(0, entry.index, segment, 8, segment, 1, 2, 3) == GASNET_OK;

	gasnet_hsl_lock(&hsl);
	GASNET_BLOCKUNTIL(done);
	gasnet_hsl_unlock(&hsl);
	return gasnet_AMReplyMedium16(token, 200, segment, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) + gasnet_init(0, 0) +
	       gasnet_barrier_try(1, GASNET_BARRIERFLAG_ANONYMOUS);
}
