/* SPDX-License-Identifier: BSD-3-Clause */
/* headers.c - a client as C99: every macro where clients have it. */
#include <gasnet.h>

int client(int argc, char **argv);

static gasnet_hsl_t hsl = GASNET_HSL_INITIALIZER;
static int flag;

static void handler(gasnet_token_t token, gasnet_handlerarg_t argument)
{
	flag = (int)argument;
	if (argument > 1)
		gasnet_hsl_lock(&hsl);
	else
		gasnet_hsl_unlock(&hsl);
	(void)gasnet_AMReplyShort1(token, 201, argument);
}

int client(int argc, char **argv)
{
	GASNET_BEGIN_FUNCTION();
	gasnet_handlerentry_t table[1];

#if !GASNET_SEGMENT_FAST || SIZEOF_GASNET_REGISTER_VALUE_T != 8
#error "the header defines a segment to 1"
#endif
	table[0].index = 0;
	table[0].fnptr = (void (*)())handler;
	if (gasnet_init(&argc, &argv) != GASNET_OK ||
		gasnet_attach(table, 1, GASNET_PAGESIZE, 0) != GASNET_OK)
		return 1;
	{
		GASNET_POST_THREADINFO(GASNET_GET_THREADINFO());
		(void)gasnet_AMRequestShort1(0, table[0].index, 1);
	}
	if (flag)
		GASNET_BLOCKUNTIL(flag);
	else
		gasnet_hold_interrupts();
	gasnet_resume_interrupts();
	if (gasnet_hsl_trylock(&hsl) != GASNET_OK)
		gasnet_exit(1);
	return GASNET_CONFIG_STRING[0] == '\0';
}
