/* SPDX-License-Identifier: BSD-3-Clause */
/* grammar.c - see grammar.h. */
#include <stdio.h>
#include <string.h>

#include <cmdline.h>
#include <cmdline_parse_string.h>

#include <postern.h>

#include "../output.h"
#include "../parse.h"
#include "console.h"
#include "grammar.h"
#include "show.h"
#include "traffic.h"

#define PORTALS_SHORT  "pt" /* the library's short name for the topic portals */
#define TOPICS_MAX     64
#define LINE_MAX_BYTES 4000 /* what fits into one multi token */
#define TEXT_MAX       1024

/* What a line is parsed into. */
struct words {
	cmdline_fixed_string_t command;
	cmdline_fixed_string_t second;
	cmdline_fixed_string_t third;
	cmdline_fixed_string_t fourth;
	cmdline_multi_string_t rest;
};
_Static_assert(sizeof(struct words) <= CMDLINE_PARSE_RESULT_BUFSIZE, "the library has the room");

#define WORD(name, field, text)                                                                    \
	static cmdline_parse_token_string_t name =                                                 \
		TOKEN_STRING_INITIALIZER(struct words, field, text)

WORD(word_help, command, "help");
WORD(word_show, command, "show");
WORD(word_watch, command, "watch");
WORD(word_interface, command, "interface");
WORD(word_set, command, "set");
WORD(word_start, command, "start");
WORD(word_stop, command, "stop");
WORD(word_wait, command, "wait");
WORD(word_capture, command, "capture");
WORD(word_check, command, "check");
WORD(word_sleep, command, "sleep");
WORD(word_quit, command, "quit#exit");
WORD(word_log, second, "log");
WORD(word_poll, second, "poll");
WORD(word_fault, second, "fault");
WORD(word_levels, third, "error#warning#info#debug");
WORD(word_modes, third, "busy#adaptive#interrupt");
WORD(word_kinds, second, TRAFFIC_KINDS);
WORD(word_sink, second, "sink");
WORD(word_begin, second, "start");
WORD(word_end, second, "stop");
WORD(word_relations, third, "<#<=#=#!=#>=#>");
WORD(any_second, second, NULL);
WORD(any_third, third, NULL);
WORD(any_fourth, fourth, NULL);
WORD(rest, rest, TOKEN_STRING_MULTI);

static char topics_text[TEXT_MAX]; /* "port#ni#..." */
WORD(word_topic, second, topics_text);

/* --- what the commands do --- */

static void do_help(void *parsed, struct cmdline *cmdline, void *with_word)
{
	const struct words *words = parsed;

	(void)cmdline;
	if (!grammar_help(with_word ? words->second : NULL))
		console_fail("there is no command \"%s\"; help lists them", words->second);
}

static void do_show(void *parsed, struct cmdline *cmdline, void *data)
{
	const struct words *words = parsed;

	(void)cmdline;
	(void)data;
	show(words->second);
}

/* "INTERVAL COUNT", each of which may be missing. */
static void do_watch(void *parsed, struct cmdline *cmdline, void *with_rest)
{
	struct words *words = parsed;
	char *state = NULL;
	const char *interval = with_rest ? strtok_r(words->rest, " \t", &state) : NULL;
	const char *times = interval ? strtok_r(NULL, " \t", &state) : NULL;
	uint64_t pause = 1000000000, count = 0;

	(void)cmdline;
	if ((interval && (!parse_time(interval, &pause) || pause == 0)) ||
		(times && (!parse_number(times, UINT32_MAX, &count) || count == 0)) ||
		(times && strtok_r(NULL, " \t", &state))) {
		console_fail("watch takes a topic, how often, such as 500ms or 2s, and how many "
			     "times");
		return;
	}
	if (count == 0 && !console.terminal) {
		console_fail("in a script, watch has to know how many times: watch %s 1s 10",
			words->second);
		return;
	}
	show_watch(words->second, pause, count);
}

static void do_interface(void *parsed, struct cmdline *cmdline, void *data)
{
	const struct words *words = parsed;
	uint64_t number;

	(void)cmdline;
	(void)data;
	if (!parse_number(words->second, INTERFACES_MAX - 1, &number) || number >= console.count)
		console_fail("there is no interface %s; PTL_IFACE_NAME names %u, the first of "
			     "which is 0",
			words->second, console.count);
	else if (!console.open[number])
		console_fail("interface %s could not be opened", words->second);
	else
		console.current = (unsigned)number;
}

static void do_set(void *parsed, struct cmdline *cmdline, void *setting)
{
	const struct words *words = parsed;
	const char *value = strcmp(words->third, "off") == 0 ? "" : words->third;
	int code = postern_set(console_interface(), setting, value);

	(void)cmdline;
	if (code != PTL_OK)
		console_fail_call(code, "postern_set");
}

static void do_start(void *parsed, struct cmdline *cmdline, void *with_rest)
{
	struct words *words = parsed;

	(void)cmdline;
	if (!with_rest)
		words->rest[0] = '\0';
	if (strcmp(words->second, "sink") == 0)
		traffic_start_sink(words->rest);
	else
		traffic_start(words->second, words->third, words->rest);
}

static void do_stop(void *parsed, struct cmdline *cmdline, void *data)
{
	const struct words *words = parsed;

	(void)cmdline;
	(void)data;
	traffic_stop(words->second);
}

static void do_wait(void *parsed, struct cmdline *cmdline, void *with_time)
{
	const struct words *words = parsed;
	uint64_t timeout = 0;

	(void)cmdline;
	if (with_time && (!parse_time(words->third, &timeout) || timeout == 0))
		console_fail("\"%s\" is no time; write 10s or 500ms", words->third);
	else
		traffic_wait(words->second, timeout);
}

static void do_capture_start(void *parsed, struct cmdline *cmdline, void *data)
{
	const struct words *words = parsed;
	int code = postern_capture_start(console_interface(), words->third, 0);

	(void)cmdline;
	(void)data;
	if (code != PTL_OK)
		console_fail_call(code, "postern_capture_start");
}

static void do_capture_stop(void *parsed, struct cmdline *cmdline, void *data)
{
	int code = postern_capture_stop(console_interface());

	(void)parsed;
	(void)cmdline;
	(void)data;
	if (code != PTL_OK)
		console_fail_call(code, "postern_capture_stop");
}

static void do_check(void *parsed, struct cmdline *cmdline, void *data)
{
	const struct words *words = parsed;

	(void)cmdline;
	(void)data;
	show_check(words->second, words->third, words->fourth);
}

static void do_sleep(void *parsed, struct cmdline *cmdline, void *data)
{
	const struct words *words = parsed;
	uint64_t time;

	(void)cmdline;
	(void)data;
	if (parse_time(words->second, &time))
		console_sleep(time);
	else
		console_fail("\"%s\" is no time; write 10s or 500ms", words->second);
}

static void do_quit(void *parsed, struct cmdline *cmdline, void *data)
{
	(void)parsed;
	(void)cmdline;
	(void)data;
	console.quit = true;
}

/* --- the table --- */

static char show_text[TEXT_MAX];
static char yes[] = "with the words that may be missing";

#define COMMAND(name, function, with, text, ...)                                                   \
	static cmdline_parse_inst_t name = {                                                       \
		.f = function, .data = with, .help_str = text, .tokens = {__VA_ARGS__, NULL}}
#define TOKEN(name) ((cmdline_parse_token_hdr_t *)&(name))

/* Two spaces part how a command is written from what it does; a text without them is another way to
 * write the one before. */
COMMAND(help, do_help, NULL, "help [COMMAND]  prints this list, or the line of one command",
	TOKEN(word_help));
COMMAND(help_word, do_help, yes, "help COMMAND", TOKEN(word_help), TOKEN(any_second));
COMMAND(show_topic, do_show, NULL, show_text, TOKEN(word_show), TOKEN(word_topic));
COMMAND(watch, do_watch, NULL,
	"watch TOPIC [INTERVAL [COUNT]]  shows the topic repeatedly, with rates", TOKEN(word_watch),
	TOKEN(word_topic));
COMMAND(watch_rest, do_watch, yes, "watch TOPIC INTERVAL [COUNT]", TOKEN(word_watch),
	TOKEN(word_topic), TOKEN(rest));
COMMAND(interface, do_interface, NULL,
	"interface N  selects the interface for the commands that follow", TOKEN(word_interface),
	TOKEN(any_second));
COMMAND(set_log, do_set, (void *)(uintptr_t) "PTL_LOG_LEVEL",
	"set log LEVEL  the least important messages on standard error: error, warning, info or "
	"debug",
	TOKEN(word_set), TOKEN(word_log), TOKEN(word_levels));
COMMAND(set_poll, do_set, (void *)(uintptr_t) "PTL_POLL",
	"set poll MODE  how the poll thread waits: busy, adaptive or interrupt", TOKEN(word_set),
	TOKEN(word_poll), TOKEN(word_modes));
COMMAND(set_fault, do_set, (void *)(uintptr_t) "PTL_FAULT",
	"set fault FAULTS|off  faults to inject, such as drop=0.01,delay=50us", TOKEN(word_set),
	TOKEN(word_fault), TOKEN(any_third));
COMMAND(start, do_start, NULL,
	"start ping|flood|stream NID:PID [size N] [window N] [rate BITS] [interval T] [count N] "
	"[time T]  sends to a process",
	TOKEN(word_start), TOKEN(word_kinds), TOKEN(any_third));
COMMAND(start_rest, do_start, yes, "start ping|flood|stream NID:PID OPTIONS", TOKEN(word_start),
	TOKEN(word_kinds), TOKEN(any_third), TOKEN(rest));
COMMAND(start_sink, do_start, NULL,
	"start sink [size N]  receives what flood and stream of other processes send",
	TOKEN(word_start), TOKEN(word_sink));
COMMAND(start_sink_rest, do_start, yes, "start sink OPTIONS", TOKEN(word_start), TOKEN(word_sink),
	TOKEN(rest));
COMMAND(stop, do_stop, NULL, "stop N|all  ends traffic by its number, and prints a summary",
	TOKEN(word_stop), TOKEN(any_second));
COMMAND(wait_all, do_wait, NULL,
	"wait N|all [T]  waits until traffic has ended by its count or time", TOKEN(word_wait),
	TOKEN(any_second));
COMMAND(wait_time, do_wait, yes, "wait N|all T", TOKEN(word_wait), TOKEN(any_second),
	TOKEN(any_third));
COMMAND(capture_on, do_capture_start, NULL,
	"capture start FILE  writes all frames into a pcapng file", TOKEN(word_capture),
	TOKEN(word_begin), TOKEN(any_third));
COMMAND(capture_off, do_capture_stop, NULL, "capture stop  ends the capture", TOKEN(word_capture),
	TOKEN(word_end));
COMMAND(check, do_check, NULL,
	"check TOPIC.NAME <|<=|=|!=|>=|> NUMBER  fails unless the relation is true, as in check "
	"stats.frames_received > 0",
	TOKEN(word_check), TOKEN(any_second), TOKEN(word_relations), TOKEN(any_fourth));
COMMAND(sleep_time, do_sleep, NULL, "sleep T  waits for this time, such as 500ms or 2s",
	TOKEN(word_sleep), TOKEN(any_second));
COMMAND(quit, do_quit, NULL, "quit  ends the program", TOKEN(word_quit));

static cmdline_parse_inst_t *commands[] = {&help, &help_word, &show_topic, &watch, &watch_rest,
	&interface, &set_log, &set_poll, &set_fault, &start, &start_rest, &start_sink,
	&start_sink_rest, &stop, &wait_all, &wait_time, &capture_on, &capture_off, &check,
	&sleep_time, &quit, NULL};

cmdline_parse_ctx_t *grammar(void)
{
	return commands;
}

void grammar_prepare(void)
{
	struct postern_topic topics[TOPICS_MAX];
	unsigned count = postern_topics(topics, TOPICS_MAX);
	char list[TEXT_MAX - sizeof(PORTALS_SHORT "#" SHOW_TRAFFIC)] = "";
	size_t length = 0;

	for (unsigned i = 0; i < count && i < TOPICS_MAX; i++)
		length += (size_t)snprintf(
			list + length, sizeof(list) - length, "%s#", topics[i].name);
	snprintf(topics_text, sizeof(topics_text), "%s" PORTALS_SHORT "#" SHOW_TRAFFIC, list);
	length = (size_t)snprintf(show_text, sizeof(show_text), "show TOPIC  one of ");
	for (const char *at = topics_text; *at != '\0' && length + 3 < sizeof(show_text); at++) {
		show_text[length++] = *at == '#' ? ',' : *at;
		if (*at == '#')
			show_text[length++] = ' ';
	}
}

/* Does the instruction begin with this word? */
static bool command_is(const cmdline_parse_inst_t *command, const char *word)
{
	const struct cmdline_token_string *first = (const void *)command->tokens[0];
	const char *names = first->string_data.str;

	for (size_t length; *names != '\0'; names += length + (names[length] == '#')) {
		length = strcspn(names, "#");
		if (strlen(word) == length && strncmp(names, word, length) == 0)
			return true;
	}
	return false;
}

bool grammar_help(const char *word)
{
	bool found = false;

	for (unsigned i = 0; commands[i]; i++) {
		const char *text = commands[i]->help_str, *gap = strstr(text, "  ");

		if (!gap || (word && !command_is(commands[i], word)))
			continue;
		found = true;
		printf("%.*s\n        %s\n", (int)(gap - text), text, gap + 2);
	}
	return found;
}

/* What a topic is about; NULL: it is none. */
static const char *topic_help(const char *name)
{
	struct postern_topic topics[TOPICS_MAX];
	unsigned count = postern_topics(topics, TOPICS_MAX);

	if (strcmp(name, PORTALS_SHORT) == 0)
		return "the same as portals";
	if (strcmp(name, SHOW_TRAFFIC) == 0)
		return "what start has begun";
	for (unsigned i = 0; i < count && i < TOPICS_MAX; i++)
		if (strcmp(topics[i].name, name) == 0)
			return topics[i].help;
	return NULL;
}

static char choice_before[TEXT_MAX];

void grammar_choices_begin(void)
{
	choice_before[0] = '\0';
}

bool grammar_choice(char *text, size_t size)
{
	char line[TEXT_MAX], word[64];
	const char *kind = strchr(text, '['), *end = kind ? strstr(kind, "]: ") : NULL, *about;

	if (!end || !strstr(end, "  "))
		return !end; /* another way to write the one before */
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(text, " ["), text);
	about = topic_help(word);
	end += strlen("]: ");
	if (about)
		snprintf(line, sizeof(line), "%-10s %s", word, about);
	else if (strncmp(kind, "[Mul-choice", strlen("[Mul-choice")) == 0 &&
		 strncmp(end, word, strlen(word)) != 0)
		snprintf(line, sizeof(line), "%s", word); /* one of several for the same place */
	else
		snprintf(line, sizeof(line), "%s", end);
	if (strcmp(line, choice_before) == 0)
		return false;
	memcpy(choice_before, line, sizeof(line));
	snprintf(text, size, "%s", line);
	return true;
}

/* What may follow a first word, or what first words there are. */
static void complain_line(const char *line)
{
	char word[64], list[TEXT_MAX] = "";
	size_t length = 0;
	const char *before = "";
	bool known = false;

	snprintf(word, sizeof(word), "%.*s", (int)strcspn(line, " \t\n"), line);
	for (unsigned i = 0; commands[i]; i++)
		known |= command_is(commands[i], word);
	for (unsigned i = 0; commands[i] && length < sizeof(list); i++) {
		const char *text = commands[i]->help_str, *gap = strstr(text, "  ");
		size_t part = strcspn(text, " ");

		if (!gap || (known && !command_is(commands[i], word)))
			continue;
		if (known)
			part = commands[i] == &show_topic ? strlen(text) : (size_t)(gap - text);
		else if (strncmp(text, before, part) == 0 && before[part] == ' ')
			continue; /* a word is listed once */
		length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%.*s",
			length > 0 ? known ? " | " : ", " : "", (int)part, text);
		before = text;
	}
	if (known)
		console_fail("\"%s\" is not valid; %s is written: %s", line, word, list);
	else
		console_fail("there is no command \"%s\"; there are %s", word, list);
}

bool grammar_run(struct cmdline *cmdline, const char *line)
{
	char text[LINE_MAX_BYTES + 2];
	size_t length = strcspn(line, "\r\n");

	console.failed = false;
	while (length > 0 && (line[length - 1] == ' ' || line[length - 1] == '\t'))
		length--;
	line += strspn(line, " \t") < length ? strspn(line, " \t") : length;
	length = strcspn(line, "\r\n");
	if (length > LINE_MAX_BYTES) {
		console_fail("the line is too long: enter at most %d bytes", LINE_MAX_BYTES);
		return false;
	}
	snprintf(text, sizeof(text), "%.*s\n", (int)length, line);
	if (cmdline_parse(cmdline, text) < 0) {
		text[length] = '\0';
		complain_line(text);
	}
	return output_flush() && !console.failed;
}
