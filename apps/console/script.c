/* SPDX-License-Identifier: BSD-3-Clause */
/* script.c - see script.h. */
#define ALLOW_EXPERIMENTAL_API /* rdline_new() and rdline_free() are there since DPDK 21.11 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <cmdline.h>
#include <cmdline_rdline.h>

#include "../parse.h"
#include "console.h"
#include "grammar.h"
#include "script.h"

#define PROMPT_BYTES    64
#define COMPLETE_CHOICE 1

bool script_run(struct cmdline *cmdline, FILE *file, const char *name)
{
	char *line = NULL;
	size_t size = 0;
	bool fine = true;

	ssize_t length;

	console_place(name, 1);
	for (unsigned n = 1; fine && !console.quit && (length = getline(&line, &size, file)) >= 0;
		n++) {
		console_place(name, n);
		if (memchr(line, '\0', (size_t)length)) {
			console_fail("the line has bytes of 0; a script is text");
			fine = false;
			break;
		}
		fine = grammar_run(cmdline, line) && !console_interrupted();
	}
	if (fine && ferror(file) && !console_interrupted()) {
		console_fail("no line can be read: %s; give a file with commands", strerror(errno));
		fine = false;
	}
	free(line);
	return fine;
}

static int terminal_write(struct rdline *rdline, char c)
{
	(void)rdline;
	return putchar(c) == EOF ? -1 : 0;
}

/* DPDK's library returns COMPLETE_CHOICE for each line of a list of choices, until 0. */
static int terminal_complete(
	struct rdline *rdline, const char *text, char *to, unsigned size, int *state)
{
	int result;

	if (*state <= 0)
		grammar_choices_begin();
	do
		result = cmdline_complete(rdline_get_opaque(rdline), text, state, to, size);
	while (result == COMPLETE_CHOICE && !grammar_choice(to, size));
	return result;
}

/* The line is in the text, without its end. */
static void terminal_enter(struct rdline *rdline, const char *text, unsigned size)
{
	if (size > 0 && text[0] != '\0')
		rdline_add_history(rdline, text);
	grammar_run(rdline_get_opaque(rdline), text);
	if (console.quit)
		rdline_quit(rdline);
}

static void terminal_prompt(struct rdline *rdline)
{
	char prompt[PROMPT_BYTES];
	ptl_process_id_t id;

	if (PtlGetId(console_interface(), &id) == PTL_OK)
		snprintf(prompt, sizeof(prompt), "postern %s> ", process_text(id).text);
	else
		snprintf(prompt, sizeof(prompt), "postern> ");
	rdline_newline(rdline, prompt);
	fflush(stdout);
}

static void terminal_loop(struct rdline *rdline)
{
	int result = RDLINE_RES_SUCCESS;
	char c;

	terminal_prompt(rdline);
	while (!console.quit && result != RDLINE_RES_EOF && result != RDLINE_RES_EXITED &&
		read(STDIN_FILENO, &c, 1) == 1) {
		result = rdline_char_in(rdline, c);
		if (result == RDLINE_RES_VALIDATED && !console.quit)
			terminal_prompt(rdline);
		fflush(stdout);
	}
}

void terminal_run(struct cmdline *cmdline)
{
	struct rdline *rdline =
		rdline_new(terminal_write, terminal_enter, terminal_complete, cmdline);
	struct termios before, raw;

	if (!rdline || tcgetattr(STDIN_FILENO, &before) != 0) {
		console_fail("the terminal cannot be used: %s", strerror(errno));
		rdline_free(rdline);
		return;
	}
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	console_place(NULL, 0);
	terminal_loop(rdline);
	tcsetattr(STDIN_FILENO, TCSANOW, &before);
	rdline_free(rdline);
	printf("\n");
}
