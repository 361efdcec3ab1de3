/* SPDX-License-Identifier: BSD-3-Clause */
/* watch_drops.c - dealing with dropped requests, after chapter 5 of the Portals 3.2 specification.
 *
 * A request that nothing in a match list accepts is discarded, and all that remains is a count. To
 * learn who sent what, this program ends the list with an entry that matches everything and a
 * descriptor of no bytes that truncates everything: the request succeeds, moves nothing, and is
 * logged. A thread watches the log.
 *
 * The program sends to itself: a request that is expected, some that are not, and one to a Portal
 * that nobody watches. It exits with 0 if each was seen for what it is.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <portals.h>
#include <postern.h>

#define PORTAL_WATCHED   2
#define PORTAL_UNWATCHED 3
#define DROP_ROOM        64 /* events that may wait for the watcher */
#define EXPECTED         UINT64_C(1)
#define GOODBYE          UINT64_C(0xb1e) /* the last request: the watcher may go home */

static const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};

struct watcher {
	ptl_handle_eq_t drops;
	unsigned puts;
	unsigned gets;
	ptl_size_t bytes; /* that were not taken */
};

static void check(int code, const char *call)
{
	if (code == PTL_OK)
		return;
	fprintf(stderr, "%s: %s\n", call, postern_error_text(code));
	exit(1);
}

static void expect(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "The check \"%s\" failed: the library or this program has a fault.\n",
		what);
	exit(1);
}

static ptl_event_t next_event(ptl_handle_eq_t queue)
{
	ptl_event_t event;

	check(PtlEQWait(queue, &event), "PtlEQWait");
	return event;
}

static void *watch(void *argument)
{
	struct watcher *watcher = argument;

	for (;;) {
		ptl_event_t event = next_event(watcher->drops);

		/* START events come in the order of sending; ENDs need not */
		if (event.type != PTL_EVENT_PUT_START && event.type != PTL_EVENT_GET_START)
			continue;
		if (event.match_bits == GOODBYE)
			return NULL;
		printf("nobody wanted a %s of %llu bytes from %u:%u, match bits %#llx\n",
			event.type == PTL_EVENT_PUT_START ? "put" : "get",
			(unsigned long long)event.rlength, event.initiator.nid, event.initiator.pid,
			(unsigned long long)event.match_bits);
		if (event.type == PTL_EVENT_PUT_START)
			watcher->puts++;
		else
			watcher->gets++;
		watcher->bytes += event.rlength;
	}
}

/* The last entry of the list: takes what is left, and none of its bytes. */
static void watch_drops(ptl_handle_ni_t ni, ptl_pt_index_t portal, struct watcher *watcher)
{
	ptl_handle_me_t match_any;
	ptl_md_t nothing = {.start = NULL,
		.length = 0,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_TRUNCATE};

	check(PtlEQAlloc(ni, DROP_ROOM, &watcher->drops), "PtlEQAlloc");
	nothing.eventq = watcher->drops;
	check(PtlMEAttach(ni, portal, anybody, 0, ~(ptl_match_bits_t)0, PTL_RETAIN, PTL_INS_AFTER,
		      &match_any),
		"PtlMEAttach");
	check(PtlMDAttach(match_any, nothing, PTL_RETAIN, PTL_RETAIN, NULL), "PtlMDAttach");
}

/* An ordinary entry before it, for requests that are expected. */
static void expect_requests(
	ptl_handle_ni_t ni, ptl_pt_index_t portal, ptl_handle_eq_t queue, void *memory, size_t size)
{
	ptl_handle_me_t entry;
	ptl_md_t descriptor = {.start = memory,
		.length = size,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
		.eventq = queue};

	check(PtlMEAttach(ni, portal, anybody, EXPECTED, 0, PTL_RETAIN, PTL_INS_BEFORE, &entry),
		"PtlMEAttach");
	check(PtlMDAttach(entry, descriptor, PTL_RETAIN, PTL_RETAIN, NULL), "PtlMDAttach");
}

int main(void)
{
	char message[100];
	char inbox[100] = "";
	char answer[50];
	struct watcher watcher = {0};
	ptl_md_t load = {
		.start = message, .length = sizeof(message), .threshold = PTL_MD_THRESH_INF};
	ptl_md_t want = {.start = answer, .length = sizeof(answer), .threshold = 1};
	ptl_handle_ni_t ni;
	ptl_handle_eq_t queue;
	ptl_handle_md_t put, get;
	ptl_process_id_t self;
	ptl_sr_value_t dropped;
	ptl_event_t event;
	pthread_t thread;
	int interfaces;

	memset(message, 'm', sizeof(message));
	check(PtlInit(&interfaces), "PtlInit");
	check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni), "PtlNIInit");
	check(PtlGetId(ni, &self), "PtlGetId");
	check(PtlEQAlloc(ni, DROP_ROOM, &queue), "PtlEQAlloc");
	watch_drops(ni, PORTAL_WATCHED, &watcher);
	expect_requests(ni, PORTAL_WATCHED, queue, inbox, sizeof(inbox));
	expect(pthread_create(&thread, NULL, watch, &watcher) == 0, "a thread can be started");

	want.eventq = queue;
	check(PtlMDBind(ni, load, &put), "PtlMDBind");
	check(PtlMDBind(ni, want, &get), "PtlMDBind");
	check(PtlPut(put, PTL_NOACK_REQ, self, PORTAL_WATCHED, 0, EXPECTED, 0, 0), "PtlPut");
	check(PtlPut(put, PTL_NOACK_REQ, self, PORTAL_WATCHED, 0, 7, 0, 0), "PtlPut");
	check(PtlPut(put, PTL_NOACK_REQ, self, PORTAL_WATCHED, 0, 8, 0, 0), "PtlPut");
	check(PtlGet(get, self, PORTAL_WATCHED, 0, 9, 0), "PtlGet");
	check(PtlPut(put, PTL_NOACK_REQ, self, PORTAL_UNWATCHED, 0, 7, 0, 0), "PtlPut");
	check(PtlPut(put, PTL_NOACK_REQ, self, PORTAL_WATCHED, 0, GOODBYE, 0, 0), "PtlPut");
	pthread_join(thread, NULL);

	/* messages to one process start in order: when the last was seen, all were */
	expect(watcher.puts == 2 && watcher.gets == 1, "two puts and a get were unexpected");
	expect(watcher.bytes == 2 * sizeof(message) + sizeof(answer), "their lengths were logged");
	do
		event = next_event(queue);
	while (event.type != PTL_EVENT_PUT_END && event.type != PTL_EVENT_REPLY_END);
	if (event.type == PTL_EVENT_REPLY_END)
		expect(event.mlength == 0, "the answer to an unexpected get has no bytes");
	do
		event = next_event(queue);
	while (event.type != PTL_EVENT_PUT_END && event.type != PTL_EVENT_REPLY_END);
	expect(memcmp(inbox, message, sizeof(inbox)) == 0, "the expected request was received");
	check(PtlNIStatus(ni, PTL_SR_DROP_COUNT, &dropped), "PtlNIStatus");
	expect(dropped == 1, "only the request to the unwatched Portal was dropped");
	printf("and %lld to a Portal that nobody watches was only counted\n", (long long)dropped);

	PtlNIFini(ni);
	PtlFini();
	return 0;
}
