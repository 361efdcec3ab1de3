/* SPDX-License-Identifier: BSD-3-Clause */
/* hello.c - a greeting from one process into the memory of another.
 *
 *     hello                  from this process to itself
 *     hello receive          waits for a greeting; start it first
 *     hello send [NID:PID]   greets the process at NID:PID, or the one that waits on this machine;
 *                            over UDP the node id NID is an IPv4 address
 *
 * Two processes of one machine:
 *
 *     hello receive
 *     hello send
 *
 * What comes before the receiver has attached its inbox is dropped, and nobody hears of it. So the
 * sender asks for an acknowledgement, and without one it sends again: that start-up cannot race.
 * The receiver says that it waits once it has attached.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <portals.h>
#include <postern.h>

#define PORTAL       4
#define GREETINGS    UINT64_C(0x68656c6c6f) /* match bits: the kind of message */
#define RECEIVER_PID 1
#define NAME_BYTES   32
#define TRY_AGAIN    UINT64_C(1000000000) /* ns */
#define TRIES        5

static ptl_process_id_t target; /* of the greeting */

/* Over UDP sockets a node id is an IPv4 address, unless PTL_HOSTS lists the hosts. */
static const char *process_name(ptl_process_id_t id, char *text)
{
	const char *network = getenv("PTL_IFACE_NAME");
	unsigned nid = id.nid;

	if (network && strncmp(network, "udp", 3) == 0 && !getenv("PTL_HOSTS"))
		snprintf(text, NAME_BYTES, "%u.%u.%u.%u:%u", nid >> 24, nid >> 16 & 255,
			nid >> 8 & 255, nid & 255, id.pid);
	else
		snprintf(text, NAME_BYTES, "%u:%u", nid, id.pid);
	return text;
}

/* Takes both forms. Returns 0 if the text is neither. */
static int process_read(const char *text, ptl_process_id_t *id)
{
	unsigned a, b, c, d;
	char rest;

	if (sscanf(text, "%u.%u.%u.%u:%u%c", &a, &b, &c, &d, &id->pid, &rest) == 5) {
		id->nid = a << 24 | b << 16 | c << 8 | d;
		return a < 256 && b < 256 && c < 256 && d < 256;
	}
	return sscanf(text, "%u:%u%c", &id->nid, &id->pid, &rest) == 2;
}

static void check(int code, const char *call)
{
	if (code == PTL_OK)
		return;
	fprintf(stderr, "%s: %s\n", call, postern_error_text(code));
	exit(1);
}

/* Waits for an event of this kind, for so many ns from one event to the next, and passes over
 * others. Returns 0 if there was none. */
static int wait_for(
	ptl_handle_eq_t queue, ptl_event_kind_t kind, uint64_t timeout, ptl_event_t *event)
{
	char name[NAME_BYTES];

	do {
		int code = postern_eq_poll(&queue, 1, timeout, event, NULL);

		if (code == PTL_EQ_EMPTY)
			return 0;
		check(code, "postern_eq_poll");
		if (event->ni_fail_type != PTL_NI_OK) {
			fprintf(stderr, "%s, target %s: %s\n", postern_event_name(event->type),
				process_name(target, name), postern_fail_text(event->ni_fail_type));
			if (event->ni_fail_type == PTL_NI_UNREACHABLE)
				fprintf(stderr,
					"Start hello receive first, with the same PTL_IFACE_NAME: "
					"udp for another machine or user. It prints the NID:PID "
					"that hello send takes.\n");
			exit(1);
		}
	} while (event->type != kind);
	return 1;
}

/* Puts a greeting, and once more when it has arrived and no acknowledgement follows: then nothing
 * at the target has taken it. */
static void greet(ptl_handle_md_t descriptor, ptl_handle_eq_t queue)
{
	ptl_event_t event;
	char name[NAME_BYTES];
	unsigned tries;

	for (tries = 0; tries < TRIES; tries++) {
		check(PtlPut(descriptor, PTL_ACK_REQ, target, PORTAL, 0, GREETINGS, 0, 0),
			"PtlPut");
		wait_for(queue, PTL_EVENT_SEND_END, UINT64_MAX, &event);
		if (wait_for(queue, PTL_EVENT_ACK, TRY_AGAIN, &event)) {
			printf("%s has taken the greeting\n", process_name(target, name));
			return;
		}
	}
	fprintf(stderr,
		"%s is there, but takes no greeting: it waits for none, or it admits its own "
		"user only (PtlACEntry)\n",
		process_name(target, name));
	exit(1);
}

int main(int count, char **words)
{
	const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};
	const char *role = count > 1 ? words[1] : "";
	int both = count < 2;
	int send = both || strcmp(role, "send") == 0;
	int receive = both || strcmp(role, "receive") == 0;
	char inbox[64] = "";
	char greeting[64] = "Hello from the other side.";
	ptl_handle_ni_t ni;
	ptl_handle_eq_t queue;
	ptl_handle_me_t entry;
	ptl_handle_md_t descriptor;
	ptl_process_id_t self;
	char name[NAME_BYTES];
	int interfaces;

	if ((!send && !receive) || count > 3 || (count > 2 && receive)) {
		fprintf(stderr, "hello: \"%s\" is not understood\n",
			words[send || receive ? count - 1 : 1]);
		fprintf(stderr, "usage: hello [receive | send [NID:PID]]\n");
		return 2;
	}
	if (count > 2 && !process_read(words[2], &target)) {
		fprintf(stderr,
			"hello: \"%s\" is no NID:PID: give what hello receive prints, such as "
			"1:1 or 10.0.0.5:1\n",
			words[2]);
		return 2;
	}
	check(PtlInit(&interfaces), "PtlInit");
	atexit(PtlFini); /* where it fails, too: peers hear of the end, and no socket is left */
	check(PtlNIInit(PTL_IFACE_DEFAULT, receive ? RECEIVER_PID : PTL_PID_ANY, NULL, NULL, &ni),
		"PtlNIInit");
	check(PtlGetId(ni, &self), "PtlGetId");
	check(PtlEQAlloc(ni, 16, &queue), "PtlEQAlloc");
	if (both || count < 3)
		target = (ptl_process_id_t){.nid = self.nid, .pid = RECEIVER_PID};

	if (receive) { /* let anybody put a greeting into inbox, and log it to the queue */
		ptl_md_t memory = {.start = inbox,
			.length = sizeof(inbox) - 1,
			.threshold = PTL_MD_THRESH_INF,
			.options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_MANAGE_REMOTE,
			.eventq = queue};

		/* Until then only processes of this user are admitted. */
		check(PtlACEntry(ni, 0, anybody, PTL_UID_ANY, PORTAL), "PtlACEntry");
		check(PtlMEAttach(
			      ni, PORTAL, anybody, GREETINGS, 0, PTL_RETAIN, PTL_INS_AFTER, &entry),
			"PtlMEAttach");
		check(PtlMDAttach(entry, memory, PTL_RETAIN, PTL_RETAIN, NULL), "PtlMDAttach");
		printf("waiting at %s\n", process_name(self, name));
		fflush(stdout);
	}
	if (send) {
		ptl_md_t memory = {.start = greeting,
			.length = strlen(greeting),
			.threshold = PTL_MD_THRESH_INF,
			.eventq = queue};

		check(PtlMDBind(ni, memory, &descriptor), "PtlMDBind");
		if (receive) /* it is attached already */
			check(PtlPut(descriptor, PTL_NOACK_REQ, target, PORTAL, 0, GREETINGS, 0, 0),
				"PtlPut");
		else
			greet(descriptor, queue);
	}
	if (receive) {
		ptl_event_t event;

		wait_for(queue, PTL_EVENT_PUT_END, UINT64_MAX, &event);
		printf("%s says: %s\n", process_name(event.initiator, name), inbox);
	}
	PtlNIFini(ni);
	PtlFini();
	if (fflush(stdout) != 0) {
		perror("hello: standard output");
		return 1;
	}
	return receive && strcmp(inbox, greeting) != 0;
}
