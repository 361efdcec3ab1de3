/* SPDX-License-Identifier: BSD-3-Clause */
/* puts.c - 8-byte puts between two interfaces of this process, for scripts/instructions to count
 * their instructions.
 *
 *     puts answered N  N puts back and forth, each the answer to the one before
 *     puts window N    N puts one way, 64 at a time, whose events are then taken
 *     puts look N      N looks at an empty queue, each a turn of both engines
 *
 * Every put logs its four events, SEND_START, SEND_END, PUT_START and PUT_END, and the program
 * takes them all.
 *
 * All in one thread (PTL_PROGRESS=inline), over a loop unless PTL_IFACE_NAME says otherwise. Time
 * goes a fixed step with every look at the clock, so that timers, and with them acknowledgements,
 * do not depend on how fast the machine is, nor on what watches the program: two runs execute the
 * same instructions.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <portals.h>

#define CLOCK_STEP 50 /* ns; some ten looks a put make about the time that one takes */
#define WINDOW     64
#define BYTES      8
#define EVENTS     4
#define QUEUE      1024
#define MEETING    20000 /* looks, until a node has heard that the other one is there */

static struct side {
	ptl_handle_ni_t interface;
	ptl_handle_eq_t queue;
	ptl_handle_md_t load;
	ptl_process_id_t id;
	uint64_t from, to;
	uint64_t events; /* taken */
} sides[2];

uint64_t __wrap_glue_now(void *context);

uint64_t __wrap_glue_now(void *context)
{
	static uint64_t time = 1000000000;

	(void)context;
	return time += CLOCK_STEP;
}

static void need(bool fine, const char *what)
{
	if (fine)
		return;
	fprintf(stderr, "puts: %s is not as it should be\n", what);
	exit(1);
}

static void landing_open(struct side *side)
{
	const ptl_process_id_t anyone = {.nid = PTL_NID_ANY, .pid = PTL_PID_ANY};
	const ptl_md_t descriptor = {
		.start = &side->to,
		.length = BYTES,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
		.eventq = side->queue,
	};
	ptl_handle_me_t entry;

	need(PtlMEAttach(side->interface, 0, anyone, 1, 0, PTL_RETAIN, PTL_INS_AFTER, &entry) ==
			PTL_OK,
		"PtlMEAttach");
	need(PtlMDAttach(entry, descriptor, PTL_RETAIN, PTL_RETAIN, NULL) == PTL_OK, "PtlMDAttach");
}

static void side_open(unsigned number)
{
	struct side *side = &sides[number];
	ptl_md_t load = {.start = &side->from, .length = BYTES, .threshold = PTL_MD_THRESH_INF};

	need(PtlNIInit(number, number + 1, NULL, NULL, &side->interface) == PTL_OK, "PtlNIInit");
	need(PtlGetId(side->interface, &side->id) == PTL_OK, "PtlGetId");
	need(PtlEQAlloc(side->interface, QUEUE, &side->queue) == PTL_OK, "PtlEQAlloc");
	landing_open(side);
	load.eventq = side->queue;
	need(PtlMDBind(side->interface, load, &side->load) == PTL_OK, "PtlMDBind");
}

static void put(unsigned from)
{
	sides[from].from++;
	need(PtlPut(sides[from].load, PTL_NOACK_REQ, sides[1 - from].id, 0, 0, 1, 0, 0) == PTL_OK,
		"PtlPut");
}

/* Takes one event of a side. Returns false if there is none. */
static bool event_take(unsigned number, ptl_event_t *event)
{
	int code = PtlEQGet(sides[number].queue, event);

	if (code == PTL_EQ_EMPTY)
		return false;
	need(code == PTL_OK && event->ni_fail_type == PTL_NI_OK, "an event");
	sides[number].events++;
	return true;
}

/* Waits for the end of a put to this side. */
static void arrival_await(unsigned number)
{
	ptl_event_t event;

	do
		while (!event_take(number, &event))
			;
	while (event.type != PTL_EVENT_PUT_END);
}

/* Takes all events of so many puts, since the start. */
static void events_await(uint64_t puts)
{
	ptl_event_t event;
	unsigned number = 1;

	while (sides[0].events + sides[1].events < puts * EVENTS)
		if (!event_take(number, &event))
			number = 1 - number;
}

static void looks(unsigned long count)
{
	ptl_event_t event;

	for (unsigned long i = 0; i < count; i++)
		need(!event_take(1, &event), "the empty queue");
}

static void puts_answered(unsigned long count)
{
	for (unsigned long i = 0; i < count; i++) {
		put(i % 2);
		arrival_await(1 - i % 2);
	}
}

static void puts_window(unsigned long count)
{
	for (unsigned long i = 0; i < count; i++) {
		put(0);
		if ((i + 1) % WINDOW == 0)
			events_await(sides[0].from + sides[1].from);
	}
}

int main(int argc, char **argv)
{
	unsigned long count;
	int number;

	if (argc != 3) {
		fprintf(stderr, "Usage: puts answered|window|look N\n");
		return 2;
	}
	count = strtoul(argv[2], NULL, 10);
	setenv("PTL_IFACE_NAME", "loop:puts;loop:puts", 0);
	setenv("PTL_PROGRESS", "inline", 1);
	need(PtlInit(&number) == PTL_OK, "PtlInit");
	side_open(0);
	side_open(1);
	puts_answered(2); /* they get to know each other */
	events_await(2);
	looks(MEETING);
	if (strcmp(argv[1], "look") == 0)
		looks(count);
	else if (strcmp(argv[1], "window") == 0)
		puts_window(count);
	else
		puts_answered(count);
	events_await(sides[0].from + sides[1].from);
	need(sides[0].from == sides[1].to && sides[1].from == sides[0].to, "the memory");
	PtlFini();
	return 0;
}
