/* SPDX-License-Identifier: BSD-3-Clause */
/* dispatch.c - a message meets its handler. */
#include "state.h"

/* clang-format off */
#define T0
#define T1 , int32_t
#define T2 T1, int32_t
#define T3 T2, int32_t
#define T4 T3, int32_t
#define T5 T4, int32_t
#define T6 T5, int32_t
#define T7 T6, int32_t
#define T8 T7, int32_t
#define T9 T8, int32_t
#define T10 T9, int32_t
#define T11 T10, int32_t
#define T12 T11, int32_t
#define T13 T12, int32_t
#define T14 T13, int32_t
#define T15 T14, int32_t
#define T16 T15, int32_t
#define A0
#define A1 , a[0]
#define A2 A1, a[1]
#define A3 A2, a[2]
#define A4 A3, a[3]
#define A5 A4, a[4]
#define A6 A5, a[5]
#define A7 A6, a[6]
#define A8 A7, a[7]
#define A9 A8, a[8]
#define A10 A9, a[9]
#define A11 A10, a[10]
#define A12 A11, a[11]
#define A13 A12, a[12]
#define A14 A13, a[13]
#define A15 A14, a[14]
#define A16 A15, a[15]
#define EACH(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) \
	x(9) x(10) x(11) x(12) x(13) x(14) x(15) x(16)
/* clang-format on */

#define SHORT(n)                                                                                   \
	case n:                                                                                    \
		((void (*)(gasnet_token_t T##n))function)(token A##n);                             \
		break;
#define LONGER(n)                                                                                  \
	case n:                                                                                    \
		((void (*)(gasnet_token_t, void *, size_t T##n))function)(                         \
			token, message->payload, message->length A##n);                            \
		break;

void message_run(void (*function)(void), const struct message *message, struct token *token)
{
	const int32_t *a = message->arguments;

	if (message->kind == KIND_SHORT) {
		switch (message->count) {
			EACH(SHORT)
		}
	} else {
		switch (message->count) {
			EACH(LONGER)
		}
	}
}

PER_THREAD unsigned handlers_run;

static void message_run_watched(struct message *message, struct token *token)
{
	handlers_run++;
	message_run(handler_find(message->handler, message->from), message, token);
	handlers_run--;
	if (locks_held > 0)
		fatal("handler %u returns with a lock: release it with gasnet_hsl_unlock first",
			message->handler);
}

void message_handle(struct message *message)
{
	struct token token = {message->from, message->credits, message->request, false};

	/* Before the handler runs, which may let the program go on. */
	if (!message->request && message->from != gasnet.rank)
		share_return(message->from, message->credits);
	if (__builtin_expect(gasnet.debug, 0))
		message_run_watched(message, &token);
	else
		message_run(handler_find(message->handler, message->from), message, &token);
	if (!message->request || token.replied || message->from == gasnet.rank)
		return;
	if (message->ring)
		ring_release(message->from, message->credits);
	else
		share_release(message->from, message->credits);
}

int gasnet_AMGetMsgSource(gasnet_token_t token, gasnet_node_t *source)
{
	if (!token || !source)
		return GASNET_ERR_BAD_ARG;
	*source = ((struct token *)token)->from;
	return GASNET_OK;
}
