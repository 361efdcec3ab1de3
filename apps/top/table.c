/* SPDX-License-Identifier: BSD-3-Clause */
/* table.c - see table.h. */
#include "table.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../json.h"
#include "process.h"

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

static unsigned rows_collect(struct row *rows)
{
	unsigned count = 0;

	for (struct process *process = process_first(); process; process = process_next(process))
		for (unsigned i = 0; i < process_interfaces(process) && count < ROWS_MAX; i++) {
			const struct interface *interface = process_interface(process, i);

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

static const struct {
	const char *heading;
	unsigned most; /* characters */
	unsigned rank; /* 0: always there */
	bool left;     /* adjusted to the left */
} columns[COLUMNS] = {
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

static void line_print(const line_cells cells, const unsigned *widths, unsigned width)
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
static void widths_choose(unsigned *widths, const line_cells *table, unsigned count, unsigned width)
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

void table_print(unsigned width)
{
	static struct row rows[ROWS_MAX];
	static line_cells table[ROWS_MAX + 1]; /* and the headings */
	unsigned widths[COLUMNS];
	unsigned count = rows_collect(rows);

	qsort(rows, count, sizeof(rows[0]), row_compare);
	for (unsigned i = 0; i < COLUMNS; i++)
		snprintf(table[0][i], CELL_BYTES, "%s", columns[i].heading);
	for (unsigned i = 0; i < count; i++)
		cells_fill(table[i + 1], &rows[i]);
	widths_choose(widths, table, count + 1, width);
	for (unsigned i = 0; i <= count; i++)
		line_print(table[i], widths, width);
	if (count == 0)
		puts("No process of this user has a Postern interface open, or all have "
		     "PTL_TELEMETRY=off.");
}

static void json_rate(
	const struct interface *interface, const char *name, uint64_t before, uint64_t now)
{
	printf(", \"%s\": %llu, \"%s_per_s\": %.1f", name, (unsigned long long)now, name,
		rate_of(interface, before, now));
}

static void row_print_json(const struct row *row)
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
		printf("null}");
	else
		printf("%.4f}", busy_of(interface));
}

void table_print_json(void)
{
	static struct row rows[ROWS_MAX];
	unsigned count = rows_collect(rows);

	qsort(rows, count, sizeof(rows[0]), row_compare);
	printf("{\"interfaces\": [");
	for (unsigned i = 0; i < count; i++) {
		printf("%s", i > 0 ? ", " : "");
		row_print_json(&rows[i]);
	}
	printf("]}\n");
}
