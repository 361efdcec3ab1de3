/* SPDX-License-Identifier: BSD-3-Clause */
/* footprint.c - the memory that an interface takes, and each thing on it.
 *
 *     bench-footprint            a table
 *     bench-footprint WHAT       one figure, in bytes: `interface`, `md`, `me`, `me-md`, `queue`,
 *                                `event`, `message` or `peer`
 *
 * Each figure is the growth of the process's resident memory while COUNT of a thing are made,
 * divided by COUNT; each is taken in a process of its own, which runs this program with WHAT. So it
 * is what a program really pays, with everything that lies beside the thing itself: handles, free
 * lists, the index of match lists, and the page that is not full.
 *
 *     interface   with the default limits, before anything is made on it: a third and a fourth of a
 *                 process
 *     md          PtlMDBind
 *     me          PtlMEAttach to one Portal, match bits of its own each
 *     me-md       the same with a descriptor
 *     queue       PtlEQAlloc for one event, unused
 *     event       what a queue takes for each event that it has once held
 *     message     a put of 8 bytes that waits for a peer that does not answer
 *     peer        the same to a peer of its own each, less the message
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <portals.h>

#define COUNT  100000
#define QUEUES 10000 /* and so many queues */
#define PORTAL 4
#define ABSENT 77 /* a node that there is none of */

static const ptl_process_id_t anyone = {.nid = PTL_NID_ANY, .pid = PTL_PID_ANY};

static void need(bool fine, const char *what)
{
	if (fine)
		return;
	fprintf(stderr, "bench-footprint: %s is not as it should be\n", what);
	exit(1);
}

/* Bytes of this process that are in memory. */
static long resident(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long pages = 0;

	need(file != NULL && fscanf(file, "%*d %ld", &pages) == 1, "/proc/self/statm");
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE);
}

/* With room for COUNT of everything; 0: the defaults. */
static ptl_handle_ni_t interface_open(unsigned number, int room)
{
	ptl_ni_limits_t desired = {.max_match_entries = room,
		.max_mem_descriptors = room,
		.max_event_queues = room,
		.max_atable_index = 8,
		.max_ptable_index = 8};
	ptl_handle_ni_t interface;

	need(PtlNIInit(number, number + 1, room == 0 ? NULL : &desired, NULL, &interface) == PTL_OK,
		"PtlNIInit");
	return interface;
}

static ptl_md_t descriptor(ptl_handle_eq_t queue)
{
	static char memory[8];
	const ptl_md_t made = {.start = memory,
		.length = sizeof(memory),
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
		.eventq = queue};

	return made;
}

static void put(ptl_handle_md_t from, ptl_process_id_t to)
{
	need(PtlPut(from, PTL_NOACK_REQ, to, PORTAL, 0, 7, 0, 0) == PTL_OK, "PtlPut");
}

/* Lets the interface carry out what was asked of it. */
static void settle(ptl_handle_ni_t interface)
{
	ptl_handle_eq_t queue;

	need(PtlEQAlloc(interface, 1, &queue) == PTL_OK && PtlEQFree(queue) == PTL_OK, "a queue");
}

/* --- what is measured: each returns bytes --- */

static double interface_measure(void)
{
	long before;

	interface_open(0, 0);
	interface_open(1, 0);
	before = resident();
	settle(interface_open(2, 0));
	settle(interface_open(3, 0));
	return (double)(resident() - before) / 2;
}

static double md_measure(void)
{
	ptl_handle_ni_t interface = interface_open(0, COUNT + 1);
	long before = resident();

	for (int i = 0; i < COUNT; i++) {
		ptl_handle_md_t md;

		need(PtlMDBind(interface, descriptor(PTL_EQ_NONE), &md) == PTL_OK, "PtlMDBind");
	}
	settle(interface);
	return (double)(resident() - before) / COUNT;
}

static double entries_measure(bool descriptors)
{
	ptl_handle_ni_t interface = interface_open(0, COUNT + 1);
	long before = resident();

	for (int i = 0; i < COUNT; i++) {
		ptl_handle_me_t entry;

		need(PtlMEAttach(interface, PORTAL, anyone, (ptl_match_bits_t)i, 0, PTL_RETAIN,
			     PTL_INS_AFTER, &entry) == PTL_OK,
			"PtlMEAttach");
		if (descriptors)
			need(PtlMDAttach(entry, descriptor(PTL_EQ_NONE), PTL_RETAIN, PTL_RETAIN,
				     NULL) == PTL_OK,
				"PtlMDAttach");
	}
	settle(interface);
	return (double)(resident() - before) / COUNT;
}

static double me_measure(void)
{
	return entries_measure(false);
}

static double me_md_measure(void)
{
	return entries_measure(true);
}

static double queue_measure(void)
{
	ptl_handle_ni_t interface = interface_open(0, COUNT);
	long before = resident();

	for (int i = 0; i < QUEUES; i++) {
		ptl_handle_eq_t queue;

		need(PtlEQAlloc(interface, 1, &queue) == PTL_OK, "PtlEQAlloc");
	}
	return (double)(resident() - before) / QUEUES;
}

static double event_measure(void)
{
	ptl_handle_ni_t interface = interface_open(0, COUNT + 1);
	ptl_handle_eq_t queue;
	ptl_handle_me_t entry;
	ptl_handle_md_t md;
	ptl_process_id_t self;
	ptl_event_t event;
	long before;

	need(PtlGetId(interface, &self) == PTL_OK, "PtlGetId");
	need(PtlEQAlloc(interface, COUNT, &queue) == PTL_OK, "PtlEQAlloc");
	need(PtlMEAttach(interface, PORTAL, anyone, 7, 0, PTL_RETAIN, PTL_INS_AFTER, &entry) ==
			PTL_OK,
		"PtlMEAttach");
	need(PtlMDAttach(entry, descriptor(queue), PTL_RETAIN, PTL_RETAIN, NULL) == PTL_OK,
		"PtlMDAttach");
	need(PtlMDBind(interface, descriptor(PTL_EQ_NONE), &md) == PTL_OK, "PtlMDBind");
	put(md, self); /* what the first message needs is there */
	for (int n = 0; n < 2; n++)
		need(PtlEQWait(queue, &event) == PTL_OK, "an event");
	before = resident();
	for (int i = 0; i < COUNT; i++) {
		if (i % 2 == 0)
			put(md, self);
		need(PtlEQWait(queue, &event) == PTL_OK, "an event"); /* START, END, START, ... */
	}
	return (double)(resident() - before) / COUNT;
}

/* COUNT puts to one process that does not answer, or to one each. */
static double puts_measure(bool peers)
{
	ptl_handle_ni_t interface = interface_open(0, COUNT + 1);
	ptl_handle_md_t md;
	long before;

	need(PtlMDBind(interface, descriptor(PTL_EQ_NONE), &md) == PTL_OK, "PtlMDBind");
	settle(interface);
	before = resident();
	for (unsigned i = 0; i < COUNT; i++) {
		put(md, (ptl_process_id_t){.nid = ABSENT, .pid = peers ? i : 0});
		if (i % 64 == 0)
			settle(interface);
	}
	settle(interface);
	return (double)(resident() - before) / COUNT;
}

static double message_measure(void)
{
	return puts_measure(false);
}

static double peer_and_message_measure(void)
{
	return puts_measure(true);
}

static const struct {
	const char *name;
	double (*measure)(void);
	const char *what;
} figures[] = {
	{"interface", interface_measure, "interface, nothing on it"},
	{"md", md_measure, "memory descriptor (PtlMDBind)"},
	{"me", me_measure, "match entry (PtlMEAttach)"},
	{"me-md", me_md_measure, "match entry with its descriptor"},
	{"queue", queue_measure, "event queue of one event, unused"},
	{"event", event_measure, "place for an event, used"},
	{"message", message_measure, "put of 8 bytes that waits"},
	{"peer", peer_and_message_measure, "peer, and a put that waits for it"},
};

#define FIGURES (sizeof(figures) / sizeof(figures[0]))

static int figure_print(const char *name)
{
	int interfaces;

	setenv("PTL_IFACE_NAME", "loop:f;loop:f;loop:f;loop:f", 1);
	setenv("PTL_NID", "1;2;3;4", 1);
	setenv("PTL_PROGRESS", "inline", 1);
	setenv("PTL_PEER_TIMEOUT", "600s", 1);
	setenv("PTL_PEERS_MAX", "1000000", 1);
	for (unsigned f = 0; f < FIGURES; f++)
		if (strcmp(figures[f].name, name) == 0) {
			need(PtlInit(&interfaces) == PTL_OK, "PtlInit");
			printf("%.1f\n", figures[f].measure());
			return 0;
		}
	fprintf(stderr, "bench-footprint: there is no figure %s\n", name);
	return 2;
}

/* The figure that this program prints when it is run with name. */
static double figure_take(const char *self, const char *name)
{
	char command[4200];
	double figure = 0;
	FILE *pipe;

	snprintf(command, sizeof(command), "'%s' %s", self, name);
	pipe = popen(command, "r");
	need(pipe != NULL && fscanf(pipe, "%lf", &figure) == 1 && pclose(pipe) == 0, name);
	return figure;
}

int main(int argc, char **argv)
{
	double message = 0;

	if (argc == 2)
		return figure_print(argv[1]);
	for (unsigned f = 0; f < FIGURES; f++) {
		double bytes = figure_take(argv[0], figures[f].name);

		printf("%-36s %12.1f bytes\n", figures[f].what, bytes);
		if (strcmp(figures[f].name, "message") == 0)
			message = bytes;
		if (strcmp(figures[f].name, "peer") == 0)
			printf("%-36s %12.1f bytes\n", "of that the peer", bytes - message);
	}
	return 0;
}
