/* SPDX-License-Identifier: BSD-3-Clause */
/* table.c - see table.h. */
#include "table.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../json.h"

#define LINE_BYTES 512
#define CELL_BYTES 64
#define ROWS_MAX   1024
#define RANK_MOST  4
#define NAME_LEAST 4 /* characters that are left of a program's name */

struct row {
	const struct process *process;
	const struct interface *interface;
	double bytes; /* per second, both ways */
};

/* Has an earlier interface the same port? Portals 4's have, and count the same. */
static bool port_is_shown(struct process *process, unsigned number)
{
	const struct interface *interface = process_interface(process, number);

	for (unsigned i = 0; i < number; i++) {
		const struct interface *other = process_interface(process, i);

		if (other->nid == interface->nid && other->pid == interface->pid &&
			strcmp(other->device, interface->device) == 0)
			return true;
	}
	return false;
}

/* `all`: also those whose port another one has. */
static unsigned rows_collect(struct row *rows, bool all)
{
	unsigned count = 0;

	for (struct process *process = process_first(); process; process = process_next(process))
		for (unsigned i = 0; i < process_interfaces(process) && count < ROWS_MAX; i++) {
			const struct interface *interface = process_interface(process, i);

			if (!all && port_is_shown(process, i))
				continue;
			rows[count++] = (struct row){process, interface,
				rate_of(interface, interface->before.bytes_in,
					interface->now.bytes_in) +
					rate_of(interface, interface->before.bytes_out,
						interface->now.bytes_out)};
		}
	return count;
}

/* The most bytes first; then by process and interface, so that idle lines stay where they are. */
static int row_compare(const void *left, const void *right)
{
	const struct row *a = left, *b = right;
	uint64_t ida = process_id(a->process), idb = process_id(b->process);

	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? 1 : -1;
	if (ida != idb)
		return ida < idb ? -1 : 1;
	return a->interface->number < b->interface->number ? -1 : 1;
}

/* A rate in 6 columns or less: 1234, 56.7k, 8.90M. */
static const char *rate_text(double rate, char *text, size_t size)
{
	static const char *const units[] = {"", "k", "M", "G", "T"};
	unsigned unit = 0;

	while (rate >= 9999.5 || (unit > 0 && rate >= 999.5)) {
		rate /= 1000;
		unit++;
		if (unit == sizeof(units) / sizeof(units[0]) - 1)
			break;
	}
	snprintf(text, size, "%.*f%s",
		unit == 0 ? (rate > 0 && rate < 9.95 ? 1 : 0) : (rate < 9.995 ? 2 : 1), rate,
		units[unit]);
	return text;
}

/* --- columns: each is as wide as its contents; where a line has no room, columns of the highest
 * rank are left out */

enum column {
	PID,
	INSTANCE,
	PROGRAM,
	PROCESS,
	DEVICE,
	FRAMES_IN,
	FRAMES_OUT,
	MESSAGES_IN,
	MESSAGES_OUT,
	BYTES_IN,
	BYTES_OUT,
	RETRANSMITS,
	DROPS,
	PEERS,
	BUSY,
	COLUMNS
};

struct heading {
	const char *text;
	unsigned most; /* characters */
	unsigned rank; /* 0: always there */
	bool left;     /* adjusted to the left */
};

static const struct heading interface_columns[COLUMNS] = {
	[PID] = {"PID", 7, 0, false},
	[INSTANCE] = {"INST", 5, 2, false},
	[PROGRAM] = {"PROGRAM", 15, 0, true},
	[PROCESS] = {"NID:PID", 21, 0, true},
	[DEVICE] = {"DEVICE", 20, 4, true},
	[FRAMES_IN] = {"FRM/S<", 7, 3, false},
	[FRAMES_OUT] = {"FRM/S>", 7, 3, false},
	[MESSAGES_IN] = {"MSG/S<", 7, 0, false},
	[MESSAGES_OUT] = {"MSG/S>", 7, 0, false},
	[BYTES_IN] = {"B/S<", 7, 0, false},
	[BYTES_OUT] = {"B/S>", 7, 0, false},
	[RETRANSMITS] = {"RETR/S", 6, 1, false},
	[DROPS] = {"DROP/S", 6, 1, false},
	[PEERS] = {"PEERS", 6, 2, false},
	[BUSY] = {"BUSY", 4, 0, false},
};

typedef char line_cells[COLUMNS][CELL_BYTES];

static void cells_fill(line_cells cells, const struct row *row)
{
	const struct interface *interface = row->interface;
	const struct counts *before = &interface->before, *now = &interface->now;

#define CELL(column, ...) snprintf(cells[column], CELL_BYTES, __VA_ARGS__)
#define RATE(column, counter)                                                                      \
	rate_text(rate_of(interface, before->counter, now->counter), cells[column], CELL_BYTES)
	CELL(PID, "%llu", (unsigned long long)process_id(row->process));
	CELL(INSTANCE, "%u", process_instance(row->process));
	CELL(PROGRAM, "%s", process_program(row->process));
	CELL(PROCESS, "%llu:%llu", (unsigned long long)interface->nid,
		(unsigned long long)interface->pid);
	CELL(DEVICE, "%s", interface->device[0] != '\0' ? interface->device : "(itself)");
	RATE(FRAMES_IN, frames_in);
	RATE(FRAMES_OUT, frames_out);
	RATE(MESSAGES_IN, messages_in);
	RATE(MESSAGES_OUT, messages_out);
	RATE(BYTES_IN, bytes_in);
	RATE(BYTES_OUT, bytes_out);
	RATE(RETRANSMITS, retransmits);
	RATE(DROPS, drops);
	CELL(PEERS, "%llu", (unsigned long long)interface->peers);
	if (busy_of(interface) >= 0)
		CELL(BUSY, "%.0f%%", busy_of(interface) * 100);
	else
		CELL(BUSY, "-");
#undef RATE
#undef CELL
}

static void line_print(const struct heading *columns, const line_cells cells,
	const unsigned *widths, unsigned width)
{
	char line[LINE_BYTES];
	size_t used = 0;

	for (unsigned i = 0; i < COLUMNS; i++)
		if (widths[i] > 0)
			used += (size_t)snprintf(line + used, sizeof(line) - used,
				columns[i].left ? "%s%-*.*s" : "%s%*.*s", used > 0 ? " " : "",
				(int)widths[i], (int)widths[i], cells[i]);
	while (used > 0 && line[used - 1] == ' ')
		used--;
	line[width > 0 && width < used ? width : used] = '\0';
	puts(line);
}

/* How wide each column is; 0: left out. width: of the line, 0: any. */
static void widths_choose(const struct heading *columns, unsigned *widths, const line_cells *table,
	unsigned count, unsigned width)
{
	unsigned total = 0;

	for (unsigned i = 0; i < COLUMNS; i++) {
		widths[i] = 0;
		for (unsigned row = 0; row < count; row++)
			if (strlen(table[row][i]) > widths[i])
				widths[i] = (unsigned)strlen(table[row][i]);
		if (widths[i] > columns[i].most)
			widths[i] = columns[i].most;
		total += widths[i] + 1;
	}
	for (unsigned rank = RANK_MOST; width > 0 && rank > 0; rank--)
		for (unsigned i = 0; i < COLUMNS && total > width + 1; i++)
			if (columns[i].rank == rank) {
				total -= widths[i] + 1;
				widths[i] = 0;
			}
	/* The last resort: names are cut. */
	while (width > 0 && total > width + 1 && widths[PROGRAM] > NAME_LEAST) {
		widths[PROGRAM]--;
		total--;
	}
}

static line_cells table[ROWS_MAX + 1]; /* and the headings */

/* Prints so many lines below the headings, or as many as there is room for. */
static void lines_print(const struct heading *columns, unsigned count, struct room room)
{
	unsigned widths[COLUMNS], shown = count;

	if (room.height > 0 && count + 1 > room.height)
		shown = room.height > 2 ? room.height - 2 : 0;

	for (unsigned i = 0; i < COLUMNS; i++)
		snprintf(table[0][i], CELL_BYTES, "%s", columns[i].text ? columns[i].text : "");
	widths_choose(columns, widths, table, shown + 1, room.width);
	for (unsigned i = 0; i <= shown; i++)
		line_print(columns, table[i], widths, room.width);
	if (shown < count)
		printf("%u more rows\n", count - shown);
}

void table_print(struct room room)
{
	static struct row rows[ROWS_MAX];
	unsigned count = rows_collect(rows, false);

	qsort(rows, count, sizeof(rows[0]), row_compare);
	for (unsigned i = 0; i < count; i++)
		cells_fill(table[i + 1], &rows[i]);
	lines_print(interface_columns, count, room);
	if (count == 0 && processes_hidden())
		puts("/tmp/dpdk, in which processes without XDG_RUNTIME_DIR answer, belongs to "
		     "another user. Set XDG_RUNTIME_DIR to a directory of your own, for the "
		     "programs and for postern-top.");
	else if (count == 0)
		puts("No process of this user has a Postern interface open, or all have "
		     "PTL_TELEMETRY=off.");
}

/* --- pairs --- */

enum pair_column {
	PAIR_PID,
	PAIR_PROGRAM,
	PAIR_SELF,
	PAIR_PEER,
	PAIR_PROCESS,
	PAIR_USER,
	PAIR_HOT,
	PAIR_FRAMES_IN,
	PAIR_FRAMES_OUT,
	PAIR_BYTES_IN,
	PAIR_BYTES_OUT,
	PAIR_FULL,
	PAIR_DROPPED,
	PAIR_MEMORY,
	PAIR_REFUSED,
	PAIR_COLUMNS
};
_Static_assert((int)PAIR_COLUMNS <= (int)COLUMNS, "a line has room for a pair");

static const struct heading pair_columns[COLUMNS] = {
	[PAIR_PID] = {"PID", 7, 0, false},
	[PAIR_PROGRAM] = {"PROGRAM", 15, 0, true},
	[PAIR_SELF] = {"NID:PID", 21, 0, true},
	[PAIR_PEER] = {"PEER", 10, 0, false},
	[PAIR_PROCESS] = {"PEERPID", 7, 3, false},
	[PAIR_USER] = {"USER", 10, 4, false},
	[PAIR_HOT] = {"HOT", 3, 2, false},
	[PAIR_FRAMES_IN] = {"FRM/S<", 7, 0, false},
	[PAIR_FRAMES_OUT] = {"FRM/S>", 7, 0, false},
	[PAIR_BYTES_IN] = {"B/S<", 7, 0, false},
	[PAIR_BYTES_OUT] = {"B/S>", 7, 0, false},
	[PAIR_FULL] = {"FULL", 7, 2, false},
	[PAIR_DROPPED] = {"DROP", 7, 1, false},
	[PAIR_MEMORY] = {"MEM", 7, 1, false},
	[PAIR_REFUSED] = {"REFUSED", 7, 3, false},
};

struct pair_row {
	const struct process *process;
	const struct interface *interface;
	const struct pair *pair;
	double bytes; /* per second, both ways */
};

static unsigned pairs_collect(struct pair_row *rows)
{
	unsigned count = 0;

	for (struct process *process = process_first(); process; process = process_next(process))
		for (unsigned i = 0; i < process_interfaces(process); i++) {
			const struct interface *interface = process_interface(process, i);

			for (unsigned n = 0; n < interface->node.count && count < ROWS_MAX; n++) {
				const struct pair *pair = &interface->node.pairs[n];

				rows[count++] = (struct pair_row){process, interface, pair,
					pair_rate(pair, pair->before.bytes_in, pair->now.bytes_in) +
						pair_rate(pair, pair->before.bytes_out,
							pair->now.bytes_out)};
			}
		}
	return count;
}

/* The most bytes first; then by process, interface and peer. */
static int pair_row_compare(const void *left, const void *right)
{
	const struct pair_row *a = left, *b = right;
	uint64_t ida = process_id(a->process), idb = process_id(b->process);

	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? 1 : -1;
	if (ida != idb)
		return ida < idb ? -1 : 1;
	if (a->interface != b->interface)
		return a->interface->number < b->interface->number ? -1 : 1;
	return a->pair->pid < b->pair->pid ? -1 : 1;
}

static void pair_cells_fill(line_cells cells, const struct pair_row *row)
{
	const struct pair *pair = row->pair;
	const struct pair_counts *before = &pair->before, *now = &pair->now;

	for (unsigned i = 0; i < COLUMNS; i++)
		cells[i][0] = '\0';
#define CELL(column, ...) snprintf(cells[column], CELL_BYTES, __VA_ARGS__)
#define RATE(column, counter)                                                                      \
	rate_text(pair_rate(pair, before->counter, now->counter), cells[column], CELL_BYTES)
	CELL(PAIR_PID, "%llu", (unsigned long long)process_id(row->process));
	CELL(PAIR_PROGRAM, "%s", process_program(row->process));
	CELL(PAIR_SELF, "%llu:%llu", (unsigned long long)row->interface->nid,
		(unsigned long long)row->interface->pid);
	CELL(PAIR_PEER, "%llu", (unsigned long long)pair->pid);
	CELL(PAIR_USER, "%llu", (unsigned long long)pair->uid);
	CELL(PAIR_REFUSED, "%llu", (unsigned long long)row->interface->node.refused);
	if (!pair->paired)
		return;
	if (pair->process != 0)
		CELL(PAIR_PROCESS, "%llu", (unsigned long long)pair->process);
	CELL(PAIR_HOT, "%s", pair->hot ? "yes" : "no");
	RATE(PAIR_FRAMES_IN, frames_in);
	RATE(PAIR_FRAMES_OUT, frames_out);
	RATE(PAIR_BYTES_IN, bytes_in);
	RATE(PAIR_BYTES_OUT, bytes_out);
	CELL(PAIR_FULL, "%llu", (unsigned long long)pair->full);
	CELL(PAIR_DROPPED, "%llu", (unsigned long long)pair->dropped);
	rate_text((double)pair->memory, cells[PAIR_MEMORY], CELL_BYTES);
#undef RATE
#undef CELL
}

void table_print_pairs(struct room room)
{
	static struct pair_row rows[ROWS_MAX];
	unsigned count = pairs_collect(rows);

	qsort(rows, count, sizeof(rows[0]), pair_row_compare);
	for (unsigned i = 0; i < count; i++)
		pair_cells_fill(table[i + 1], &rows[i]);
	lines_print(pair_columns, count, room);
	if (count == 0)
		puts("No process of this user is on a node with others, or all have "
		     "PTL_TELEMETRY=off.");
}

/* --- counters --- */

enum counter_column {
	COUNTER_PID,
	COUNTER_PROGRAM,
	COUNTER_SELF,
	COUNTER_NAME,
	COUNTER_SUCCESS,
	COUNTER_FAILURE,
	COUNTER_WAITING,
	COUNTER_THRESHOLD,
	COUNTER_NEXT,
	COUNTER_SLEEPERS,
	COUNTER_TEST,
	COUNTER_COLUMNS
};
_Static_assert((int)COUNTER_COLUMNS <= (int)COLUMNS, "a line has room for a counter");

static const struct heading counter_columns[COLUMNS] = {
	[COUNTER_PID] = {"PID", 7, 0, false},
	[COUNTER_PROGRAM] = {"PROGRAM", 15, 0, true},
	[COUNTER_SELF] = {"NID:PID", 21, 3, true},
	[COUNTER_NAME] = {"COUNTER", 18, 0, false},
	[COUNTER_SUCCESS] = {"SUCCESS", 20, 0, false},
	[COUNTER_FAILURE] = {"FAILURE", 20, 1, false},
	[COUNTER_WAITING] = {"WAITING", 7, 1, false},
	[COUNTER_THRESHOLD] = {"AT", 20, 0, false},
	[COUNTER_NEXT] = {"NEXT", OPERATION_BYTES, 4, true},
	[COUNTER_SLEEPERS] = {"SLEEP", 5, 2, false},
	[COUNTER_TEST] = {"TEST", 20, 2, false},
};

static void counter_cells_fill(line_cells cells, const struct process *process,
	const struct interface *interface, const struct counter *counter)
{
	for (unsigned i = 0; i < COLUMNS; i++)
		cells[i][0] = '\0';
#define TEXT(column, ...)     snprintf(cells[column], CELL_BYTES, __VA_ARGS__)
#define NUMBER(column, value) TEXT(column, "%llu", (unsigned long long)(value))
	NUMBER(COUNTER_PID, process_id(process));
	TEXT(COUNTER_PROGRAM, "%s", process_program(process));
	TEXT(COUNTER_SELF, "%llu:%llu", (unsigned long long)interface->nid,
		(unsigned long long)interface->pid);
	TEXT(COUNTER_NAME, "%s", counter->name);
	NUMBER(COUNTER_SUCCESS, counter->success);
	NUMBER(COUNTER_FAILURE, counter->failure);
	NUMBER(COUNTER_WAITING, counter->waiting);
	if (counter->waiting > 0)
		NUMBER(COUNTER_THRESHOLD, counter->threshold);
	TEXT(COUNTER_NEXT, "%s", counter->next);
	NUMBER(COUNTER_SLEEPERS, counter->sleepers);
	if (counter->sleepers > 0)
		NUMBER(COUNTER_TEST, counter->test);
#undef NUMBER
#undef TEXT
}

static unsigned counters_fill(
	const struct process *process, const struct interface *interface, unsigned count)
{
	for (unsigned i = 0; i < interface->counters.count && count < ROWS_MAX; i++) {
		const struct counter *counter = &interface->counters.items[i];

		if (counter->waiting > 0 || counter->sleepers > 0)
			counter_cells_fill(table[++count], process, interface, counter);
	}
	return count;
}

void table_print_counters(struct room room)
{
	unsigned count = 0;

	for (struct process *process = process_first(); process; process = process_next(process))
		for (unsigned i = 0; i < process_interfaces(process); i++)
			count = counters_fill(process, process_interface(process, i), count);
	lines_print(counter_columns, count, room);
	if (count == 0)
		puts("Nothing waits for a counter in a process of this user, or all have "
		     "PTL_TELEMETRY=off.");
}

/* --- JSON --- */

static void json_rate(
	const struct interface *interface, const char *name, uint64_t before, uint64_t now)
{
	printf(", \"%s\": %llu, \"%s_per_s\": %.1f", name, (unsigned long long)now, name,
		rate_of(interface, before, now));
}

static void pair_print_json(const struct pair *pair)
{
	printf("{\"pid\": %llu, \"uid\": %llu, \"process\": %llu, \"pair\": %s",
		(unsigned long long)pair->pid, (unsigned long long)pair->uid,
		(unsigned long long)pair->process, pair->paired ? "true" : "false");
#define RATE(counter)                                                                              \
	printf(", \"" #counter "\": %llu, \"" #counter "_per_s\": %.1f",                           \
		(unsigned long long)pair->now.counter,                                             \
		pair_rate(pair, pair->before.counter, pair->now.counter))
	if (pair->paired) {
		RATE(frames_in);
		RATE(frames_out);
		RATE(bytes_in);
		RATE(bytes_out);
		printf(", \"hot\": %s, \"full\": %llu, \"dropped\": %llu, \"memory\": %llu",
			pair->hot ? "true" : "false", (unsigned long long)pair->full,
			(unsigned long long)pair->dropped, (unsigned long long)pair->memory);
	}
#undef RATE
	printf("}");
}

static void node_print_json(const struct node *node)
{
	printf(", \"node\": ");
	if (node->directory[0] == '\0') {
		printf("null");
		return;
	}
	printf("{\"directory\": ");
	json_text(node->directory);
	printf(", \"refused\": %llu, \"processes\": [", (unsigned long long)node->refused);
	for (unsigned i = 0; i < node->count; i++) {
		printf("%s", i > 0 ? ", " : "");
		pair_print_json(&node->pairs[i]);
	}
	printf("]}");
}

static void counters_print_json(const struct counters *counters)
{
	printf(", \"counters\": [");
	for (unsigned i = 0; i < counters->count; i++) {
		const struct counter *counter = &counters->items[i];

		printf("%s{\"counter\": ", i > 0 ? ", " : "");
		json_text(counter->name);
		printf(", \"success\": %llu, \"failure\": %llu, \"waiting\": %llu, \"at\": %llu, "
		       "\"sleepers\": %llu, \"test\": %llu, \"next\": ",
			(unsigned long long)counter->success, (unsigned long long)counter->failure,
			(unsigned long long)counter->waiting,
			(unsigned long long)counter->threshold,
			(unsigned long long)counter->sleepers, (unsigned long long)counter->test);
		json_text(counter->next);
		printf("}");
	}
	printf("]");
}

static void row_print_json(const struct row *row, enum view view)
{
	const struct interface *interface = row->interface;
	const struct counts *before = &interface->before, *now = &interface->now;
	char prefix[256];

	printf("{\"process\": %llu, \"instance\": %u, \"prefix\": ",
		(unsigned long long)process_id(row->process), process_instance(row->process));
	json_text(process_prefix(row->process, prefix, sizeof(prefix)));
	printf(", \"program\": ");
	json_text(process_program(row->process));
	printf(", \"interface\": %llu, \"nid\": %llu, \"pid\": %llu, \"device\": ",
		(unsigned long long)interface->number, (unsigned long long)interface->nid,
		(unsigned long long)interface->pid);
	json_text(interface->device);
#define RATE(counter) json_rate(interface, #counter, before->counter, now->counter)
	RATE(frames_in);
	RATE(frames_out);
	RATE(messages_in);
	RATE(messages_out);
	RATE(bytes_in);
	RATE(bytes_out);
	RATE(retransmits);
	RATE(drops);
#undef RATE
	printf(", \"peers\": %llu, \"busy\": ", (unsigned long long)interface->peers);
	if (busy_of(interface) < 0)
		printf("null");
	else
		printf("%.4f", busy_of(interface));
	if (view == VIEW_NODES)
		node_print_json(&interface->node);
	if (view == VIEW_COUNTERS)
		counters_print_json(&interface->counters);
	printf("}");
}

void table_print_json(enum view view)
{
	static struct row rows[ROWS_MAX];
	unsigned count = rows_collect(rows, true);

	qsort(rows, count, sizeof(rows[0]), row_compare);
	printf("{\"interfaces\": [");
	for (unsigned i = 0; i < count; i++) {
		printf("%s", i > 0 ? ", " : "");
		row_print_json(&rows[i], view);
	}
	printf("]}\n");
}
