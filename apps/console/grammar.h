/* SPDX-License-Identifier: BSD-3-Clause */
/* grammar.h - the commands, for DPDK's command-line library, which parses and completes them. */
#ifndef CONSOLE_GRAMMAR_H
#define CONSOLE_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>

#include <cmdline_parse.h>

/* Before the others: asks the library what there is to show. */
void grammar_prepare(void);
/* The table, ended by NULL. */
cmdline_parse_ctx_t *grammar(void);

/* Runs a line, a comment or nothing among them. Returns false after a sentence about what was
 * wrong: with an unknown command, which ones there are; with wrong words, how it is written. */
struct cmdline;
bool grammar_run(struct cmdline *cmdline, const char *line);

/* A list of choices begins, as the terminal completes a line. */
void grammar_choices_begin(void);
/* Makes one line of it of what DPDK's library says of a choice, "WORD [KIND]: HELP". Returns false
 * if the line would say nothing new. */
bool grammar_choice(char *text, size_t size);

/* Prints the form of the commands that begin with the word, or of all. Returns false if there is
 * none. */
bool grammar_help(const char *word);

#endif
