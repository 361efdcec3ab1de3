/* SPDX-License-Identifier: BSD-3-Clause */
/* telemetry.c - answers dpdk-telemetry.py and postern-top:
 *
 *     /postern/process                      this process, and its open interfaces
 *     /postern/TOPIC[,INTERFACE[,FIRST[,COUNT]]]   for each topic of a front end (inspection.h)
 *
 * In threads of DPDK's, with the library's lock. INTERFACE is a number, by default that of the
 * first that is open; FIRST and COUNT are a page of a list. What is wrong is said in a member
 * "error".
 */
#include <host/telemetry.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <host/inspection.h>
#include <host/interface.h>
#include <base/number.h>
#include <base/port.h>
#include <pmd-glue/glue.h>

#define PREFIX        "/postern/"
#define PROCESS       "process"
#define COMMAND_BYTES 56 /* of DPDK's */
#define PAGE_ITEMS                                                                                 \
	20 /* DPDK sends at most 16 KiB at a time, without a word about what is left out */
#define PARAMETERS 3
#define FRONTS     8

/* Numbers with commas between them; how many, or -1 when it is something else or there are too
 * many. */
static int parameters_read(const char *text, uint32_t *numbers)
{
	int count = 0;

	if (*text == '\0')
		return 0;
	do {
		if (count == PARAMETERS || !number_read(&text, ",", &numbers[count++]))
			return -1;
	} while (*text++ == ',');
	return count;
}

static bool number_is_open(uint32_t number)
{
	return number < HANDLE_INTERFACES &&
	       atomic_load_explicit(&interfaces[number].segment, memory_order_relaxed);
}

static void tell_process(struct report *report)
{
	report_number(report, "pid", (uint64_t)getpid());
	report_text(report, "program", program_invocation_short_name);
	report_text(report, "version", HOST_RELEASE);
	report_array(report, "interfaces");
	for (uint32_t i = 0; i < HANDLE_INTERFACES; i++)
		if (number_is_open(i))
			report_number(report, NULL, i);
	report_close(report);
}

static void tell_topic(const char *name, const char *parameters, struct report *report)
{
	const struct topic *topic;
	uint32_t numbers[PARAMETERS] = {0, 0, PAGE_ITEMS};
	int count = parameters_read(parameters, numbers);

	if (count < 0) {
		report_format(report, "error",
			"\"%.32s\" is not INTERFACE or INTERFACE,FIRST,COUNT, in numbers",
			parameters);
		return;
	}
	if (count == 0)
		while (numbers[0] < HANDLE_INTERFACES && !number_is_open(numbers[0]))
			numbers[0]++;
	if (!number_is_open(numbers[0])) {
		report_text(report, "error",
			count == 0 ? "no interface is open"
				   : "this interface is not open; " PREFIX PROCESS
				     " lists those that are");
		return;
	}
	topic = inspection_topic(interfaces[numbers[0]].front, name);
	if (!topic) {
		report_format(report, "error", "interface %u is of %s, which has no such topic",
			numbers[0], interfaces[numbers[0]].front->name);
		return;
	}
	if (numbers[2] == 0 || numbers[2] > PAGE_ITEMS)
		numbers[2] = PAGE_ITEMS;
	topic->tell(&interfaces[numbers[0]], (struct page){numbers[1], numbers[2]}, report);
}

static void telemetry_tell(const char *command, const char *parameters, struct report *report)
{
	const char *name = command + strlen(PREFIX);

	library_lock();
	if (strcmp(name, PROCESS) == 0)
		tell_process(report);
	else
		tell_topic(name, parameters, report);
	library_unlock();
}

/* Front ends whose topics are offered; more are known by what they share with these alone. */
static const struct front *fronts[FRONTS];
static unsigned front_count;

static bool topic_is_offered(const char *name)
{
	for (unsigned i = 0; i < front_count; i++)
		for (unsigned j = 0; j < fronts[i]->topic_count; j++)
			if (strcmp(fronts[i]->topics[j].name, name) == 0)
				return true;
	return false;
}

static bool front_is_offered(const struct front *front)
{
	for (unsigned i = 0; i < front_count; i++)
		if (fronts[i] == front)
			return true;
	return front_count == FRONTS;
}

void telemetry_start(const struct front *front)
{
	char command[COMMAND_BYTES];

	if (front_is_offered(front))
		return;
	if (front_count == 0)
		glue_telemetry_add(
			PREFIX PROCESS, "this process, and its open interfaces", telemetry_tell);
	for (unsigned i = 0; i < front->topic_count; i++) {
		const struct topic *topic = &front->topics[i];

		if (topic_is_offered(topic->name))
			continue;
		snprintf(command, sizeof(command), PREFIX "%s", topic->name);
		glue_telemetry_add(command, topic->help, telemetry_tell);
	}
	fronts[front_count++] = front;
}
