/* table.c - see table.h. */
#include "table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../json.h"
#include "process.h"

#define LINE_BYTES 512
#define ROWS_MAX   1024

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

static void line_print(unsigned width, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void line_print(unsigned width, const char *format, ...)
{
	char line[LINE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	if (width > 0 && width < sizeof(line))
		line[width] = '\0';
	puts(line);
}

static void row_print(unsigned width, const struct row *row)
{
	const struct interface *interface = row->interface;
	const struct counts *before = &interface->before, *now = &interface->now;
	char rates[8][16], process[32], busy[16] = "-";

#define RATE(i, counter)                                                                           \
	rate_text(rate_of(interface, before->counter, now->counter), rates[i], sizeof(rates[i]))
	snprintf(process, sizeof(process), "%llu:%llu", (unsigned long long)interface->nid,
		(unsigned long long)interface->pid);
	if (busy_of(interface) >= 0)
		snprintf(busy, sizeof(busy), "%.0f%%", busy_of(interface) * 100);
	line_print(width, "%7llu %-15.15s %-18s %-20.20s %7s %7s %7s %7s %7s %7s %6s %6s %5llu %5s",
		(unsigned long long)process_id(row->process), process_program(row->process),
		process, interface->device[0] != '\0' ? interface->device : "(itself)",
		RATE(0, frames_in), RATE(1, frames_out), RATE(2, messages_in),
		RATE(3, messages_out), RATE(4, bytes_in), RATE(5, bytes_out), RATE(6, retransmits),
		RATE(7, drops), (unsigned long long)interface->peers, busy);
#undef RATE
}

void table_print(unsigned width)
{
	static struct row rows[ROWS_MAX];
	unsigned count = rows_collect(rows);

	qsort(rows, count, sizeof(rows[0]), row_compare);
	line_print(width, "%7s %-15s %-18s %-20s %7s %7s %7s %7s %7s %7s %6s %6s %5s %5s", "PID",
		"PROGRAM", "NID:PID", "DEVICE", "FRM/S<", "FRM/S>", "MSG/S<", "MSG/S>", "B/S<",
		"B/S>", "RETR/S", "DROP/S", "PEERS", "BUSY");
	for (unsigned i = 0; i < count; i++)
		row_print(width, &rows[i]);
	if (count == 0)
		line_print(width,
			"No process of this user has a Postern interface open, or all have "
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

	printf("{\"process\": %llu, \"program\": ", (unsigned long long)process_id(row->process));
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
