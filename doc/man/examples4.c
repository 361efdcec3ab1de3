/* SPDX-License-Identifier: BSD-3-Clause */
/* examples4.c - the examples of the pages of Portals 4, as examples.c has those of Portals 3.2: run
 * one after the other by a process with itself. manual.py shows the body of a function on each page
 * that the comment before it names. check() stands for what a program does about errors. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <portals4.h>

#define PORTAL 4
#define WORDS  8

static void check(int code)
{
	if (code == PTL_OK)
		return;
	fprintf(stderr, "%s\n", PtlToStr(code, PTL_STR_ERROR));
	exit(1);
}

/* Example: PtlInit PtlNIInit */
static ptl_handle_ni_t open_interface(void)
{
	ptl_handle_ni_t ni;

	if (PtlInit() != PTL_OK || PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL,
					   PTL_PID_ANY, NULL, NULL, &ni) != PTL_OK) {
		fputs("Portals cannot be used; standard error says why.\n", stderr);
		exit(1);
	}
	return ni;
}

/* Example: PtlAbort PtlNIFini PtlFini */
static void close_interface(ptl_handle_ni_t ni)
{
	PtlAbort(); /* threads that wait for events or counters return PTL_ABORTED */
	PtlNIFini(ni);
	PtlFini();
}

/* Example: PtlGetUid PtlGetId PtlGetPhysId PtlNIStatus */
static void who_am_i(ptl_handle_ni_t ni)
{
	ptl_process_t self, place;
	ptl_uid_t uid;
	ptl_sr_value_t dropped;

	check(PtlGetUid(ni, &uid));
	check(PtlGetId(ni, &self)); /* on a logical interface: the rank */
	check(PtlGetPhysId(ni, &place));
	check(PtlNIStatus(ni, PTL_SR_DROP_COUNT, &dropped));
	printf("I am %u:%u of user %u; %d messages were dropped.\n", place.phys.nid, place.phys.pid,
		uid, dropped);
}

/* Example: PtlNIHandle PtlHandleIsEqual */
static int same_interface(ptl_handle_any_t one, ptl_handle_any_t other)
{
	ptl_handle_ni_t first, second;

	check(PtlNIHandle(one, &first));
	check(PtlNIHandle(other, &second));
	return PtlHandleIsEqual(first, second);
}

/* Example: PtlToStr PtlEvToStr */
static void print_next_event(ptl_handle_eq_t queue)
{
	ptl_event_t event;
	char text[PTL_EV_STR_SIZE];
	int code = PtlEQGet(queue, &event);

	if (code == PTL_OK || code == PTL_EQ_DROPPED)
		printf("%.*s\n", PtlEvToStr(PTL_NI_PHYSICAL, &event, text), text);
	else
		printf("PtlEQGet: %s\n", PtlToStr(code, PTL_STR_ERROR));
}

/* Example: PtlSetMap PtlGetMap */
static void give_ranks(const ptl_process_t *processes, ptl_size_t count)
{
	/* All processes give their logical interfaces the same map. */
	ptl_handle_ni_t ni;
	ptl_process_t first;
	ptl_size_t ranks;
	int code;

	check(PtlNIInit(
		PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
	code = PtlSetMap(ni, count, processes);
	if (code != PTL_IGNORED) /* another component of the program has set it */
		check(code);
	check(PtlGetMap(ni, 1, &first, &ranks));
	printf("Rank 0 of %" PRIu64 " is %u:%u.\n", ranks, first.phys.nid, first.phys.pid);
	check(PtlNIFini(ni));
}

/* Example: PtlPTAlloc PtlMEAppend PtlEQAlloc */
static ptl_handle_me_t open_memory(
	ptl_handle_ni_t ni, void *start, ptl_size_t length, ptl_handle_eq_t *queue)
{
	/* Portal 4 takes puts, gets and atomics with match bits 7 from any process. */
	ptl_me_t me = {
		.start = start,
		.length = length,
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE,
		.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
		.match_bits = 7,
	};
	ptl_pt_index_t portal;
	ptl_handle_me_t entry;

	check(PtlEQAlloc(ni, 64, queue));
	check(PtlPTAlloc(ni, 0, *queue, PORTAL, &portal));
	check(PtlMEAppend(ni, portal, &me, PTL_PRIORITY_LIST, NULL, &entry));
	return entry;
}

/* Example: PtlMEUnlink PtlPTDisable PtlPTEnable PtlPTFree PtlEQFree */
static void close_memory(ptl_handle_ni_t ni, ptl_handle_me_t entry, ptl_handle_eq_t queue)
{
	int code;

	check(PtlPTDisable(ni, PORTAL)); /* PtlPTEnable(ni, PORTAL) would open it again */
	while ((code = PtlMEUnlink(entry)) == PTL_IN_USE)
		; /* unexpected headers still refer to its memory: delete them by PtlMESearch */
	check(code);
	check(PtlPTFree(ni, PORTAL));
	check(PtlEQFree(queue));
}

/* Example: PtlMESearch */
static void look_for_message(ptl_handle_ni_t ni, ptl_handle_eq_t queue)
{
	/* Has a message with match bits 9 come that nothing has asked for? */
	ptl_me_t me = {
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE,
		.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
		.match_bits = 9,
	};
	ptl_event_t event;

	check(PtlMESearch(ni, PORTAL, &me, PTL_SEARCH_ONLY, NULL));
	do
		check(PtlEQWait(queue, &event));
	while (event.type != PTL_EVENT_SEARCH);
	if (event.ni_fail_type == PTL_NI_NO_MATCH)
		puts("No such message has come.");
	else
		printf("A message of %" PRIu64 " bytes has come.\n", event.rlength);
}

/* Example: PtlLEAppend PtlLESearch PtlLEUnlink */
static void share_everything(void)
{
	/* All memory of this process; then the remote offset of a message is an address. */
	ptl_le_t le = {
		.start = NULL,
		.length = PTL_SIZE_MAX,
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_LE_OP_PUT | PTL_LE_OP_GET,
	};
	ptl_handle_ni_t ni;
	ptl_pt_index_t portal;
	ptl_handle_le_t entry;

	check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL,
		NULL, &ni));
	check(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &portal));
	check(PtlLESearch(ni, portal, &le, PTL_SEARCH_DELETE, NULL)); /* what came too early */
	check(PtlLEAppend(ni, portal, &le, PTL_PRIORITY_LIST, NULL, &entry));
	check(PtlLEUnlink(entry));
	check(PtlNIFini(ni));
}

/* Example: PtlPut PtlMDBind PtlMDRelease PtlEQWait */
static void send_greeting(ptl_handle_ni_t ni, ptl_process_t target)
{
	char greeting[] = "Hello.";
	ptl_md_t md = {.start = greeting, .length = sizeof(greeting), .ct_handle = PTL_CT_NONE};
	ptl_handle_md_t descriptor;
	ptl_event_t event;

	check(PtlEQAlloc(ni, 8, &md.eq_handle));
	check(PtlMDBind(ni, &md, &descriptor));
	check(PtlPut(descriptor, 0, sizeof(greeting), PTL_ACK_REQ, target, PORTAL, 7, 0, NULL, 0));
	do {
		check(PtlEQWait(md.eq_handle, &event));
		if (event.ni_fail_type != PTL_NI_OK) {
			fprintf(stderr, "The put failed: %u\n", event.ni_fail_type);
			exit(1);
		}
	} while (event.type != PTL_EVENT_ACK);
	check(PtlMDRelease(descriptor));
	check(PtlEQFree(md.eq_handle));
}

/* Example: PtlEQGet PtlEQPoll */
static void drain(ptl_handle_eq_t queue)
{
	ptl_event_t event;
	unsigned which;
	int code = PtlEQPoll(&queue, 1, 1000, &event, &which); /* waits for a second at most */

	while (code == PTL_OK || code == PTL_EQ_DROPPED) {
		if (code == PTL_EQ_DROPPED)
			fputs("Events were lost: the queue is too small.\n", stderr);
		if (event.type == PTL_EVENT_PUT)
			printf("%" PRIu64 " bytes have come.\n", event.mlength);
		code = PtlEQGet(queue, &event);
	}
	if (code != PTL_EQ_EMPTY)
		check(code);
}

/* Example: PtlGet PtlCTAlloc PtlCTWait PtlCTFree PtlStartBundle PtlEndBundle */
static void fetch(ptl_handle_ni_t ni, ptl_process_t target, uint64_t *words)
{
	/* Two gets, counted rather than logged. */
	ptl_md_t md = {
		.start = words,
		.length = WORDS * sizeof(*words),
		.options = PTL_MD_EVENT_CT_REPLY,
		.eq_handle = PTL_EQ_NONE,
	};
	ptl_handle_md_t descriptor;
	ptl_ct_event_t count;

	check(PtlCTAlloc(ni, &md.ct_handle));
	check(PtlMDBind(ni, &md, &descriptor));
	check(PtlStartBundle(ni)); /* both may leave together */
	check(PtlGet(descriptor, 0, 16, target, PORTAL, 7, 0, NULL));
	check(PtlGet(descriptor, 16, 16, target, PORTAL, 7, 16, NULL));
	check(PtlEndBundle(ni));
	check(PtlCTWait(md.ct_handle, 2, &count));
	if (count.failure > 0)
		fputs("A get failed.\n", stderr);
	check(PtlMDRelease(descriptor));
	check(PtlCTFree(md.ct_handle));
}

/* Example: PtlAtomic PtlFetchAtomic PtlSwap PtlAtomicSync */
static uint64_t take_number(ptl_handle_ni_t ni, ptl_process_t target)
{
	/* Words of the target's memory: 0 is a counter, 1 a maximum, 2 a lock. */
	uint64_t memory[3] = {1, 0, 0}; /* what is sent; what comes back; the old lock */
	const uint64_t free_lock = 0;
	ptl_md_t md = {
		.start = memory,
		.length = sizeof(memory),
		.options = PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_ACK,
		.eq_handle = PTL_EQ_NONE,
	};
	ptl_handle_md_t descriptor;
	ptl_ct_event_t count;

	check(PtlCTAlloc(ni, &md.ct_handle));
	check(PtlMDBind(ni, &md, &descriptor));
	check(PtlFetchAtomic(descriptor, 8, descriptor, 0, 8, target, PORTAL, 7, 0, NULL, 0,
		PTL_SUM, PTL_UINT64_T));
	check(PtlAtomic(descriptor, 0, 8, PTL_CT_ACK_REQ, target, PORTAL, 7, 8, NULL, 0, PTL_MAX,
		PTL_UINT64_T));
	check(PtlSwap(descriptor, 16, descriptor, 0, 8, target, PORTAL, 7, 16, NULL, 0, &free_lock,
		PTL_CSWAP, PTL_UINT64_T));
	check(PtlCTWait(md.ct_handle, 3, &count));
	check(PtlAtomicSync()); /* before this process reads what others changed in its memory */
	check(PtlMDRelease(descriptor));
	check(PtlCTFree(md.ct_handle));
	return memory[1];
}

/* Example: PtlCTGet PtlCTPoll PtlCTSet PtlCTInc PtlTriggeredCTInc PtlTriggeredCTSet
 * PtlCTCancelTriggered */
static void count_to_three(ptl_handle_ni_t ni)
{
	ptl_handle_ct_t counters[2];
	const ptl_size_t tests[2] = {4, 10};
	ptl_ct_event_t value;
	unsigned which;

	check(PtlCTAlloc(ni, &counters[0]));
	check(PtlCTAlloc(ni, &counters[1]));
	/* When the first counter reaches 3, the second becomes 9, and then 10. */
	check(PtlTriggeredCTSet(counters[1], (ptl_ct_event_t){9, 0}, counters[0], 3));
	check(PtlTriggeredCTInc(counters[1], (ptl_ct_event_t){1, 0}, counters[0], 3));
	check(PtlCTSet(counters[0], (ptl_ct_event_t){2, 0}));
	check(PtlCTInc(counters[0], (ptl_ct_event_t){1, 0}));
	check(PtlCTPoll(counters, tests, 2, PTL_TIME_FOREVER, &value, &which));
	check(PtlCTGet(counters[0], &value));
	printf("Counter %u has reached its test, the other has %" PRIu64 ".\n", which,
		value.success);
	check(PtlCTCancelTriggered(counters[0])); /* nothing waits for it any more */
	check(PtlCTFree(counters[1]));
	check(PtlCTFree(counters[0]));
}

/* Example: PtlTriggeredPut PtlTriggeredGet PtlTriggeredAtomic PtlTriggeredFetchAtomic
 * PtlTriggeredSwap */
static void do_it_later(ptl_handle_ni_t ni, ptl_process_t target, uint64_t *words)
{
	/* All of this happens when the counter start reaches 1, without a further call: in a
	 * program a message to an entry with that counter would do it. */
	ptl_md_t md = {
		.start = words,
		.length = WORDS * sizeof(*words),
		.options = PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_ACK,
		.eq_handle = PTL_EQ_NONE,
	};
	ptl_handle_ct_t start;
	ptl_handle_md_t descriptor;
	ptl_ct_event_t count;

	check(PtlCTAlloc(ni, &start));
	check(PtlCTAlloc(ni, &md.ct_handle));
	check(PtlMDBind(ni, &md, &descriptor));
	check(PtlTriggeredPut(
		descriptor, 0, 8, PTL_CT_ACK_REQ, target, PORTAL, 7, 0, NULL, 0, start, 1));
	check(PtlTriggeredAtomic(descriptor, 8, 8, PTL_CT_ACK_REQ, target, PORTAL, 7, 0, NULL, 0,
		PTL_SUM, PTL_UINT64_T, start, 1));
	check(PtlTriggeredFetchAtomic(descriptor, 16, descriptor, 8, 8, target, PORTAL, 7, 0, NULL,
		0, PTL_SUM, PTL_UINT64_T, start, 1));
	check(PtlTriggeredSwap(descriptor, 24, descriptor, 0, 8, target, PORTAL, 7, 0, NULL, 0,
		NULL, PTL_SWAP, PTL_UINT64_T, start, 1));
	check(PtlTriggeredGet(descriptor, 32, 8, target, PORTAL, 7, 0, NULL, start, 1));
	check(PtlCTInc(start, (ptl_ct_event_t){1, 0}));
	check(PtlCTWait(md.ct_handle, 5, &count));
	check(PtlMDRelease(descriptor));
	check(PtlCTFree(md.ct_handle));
	check(PtlCTFree(start));
}

/* Example: PtlTriggeredMEAppend PtlTriggeredMEUnlink */
static void open_for_one_round(ptl_handle_ni_t ni, uint64_t *word)
{
	/* Memory that is open from the first count to the second one. The structure, and the place
	 * of the handle, stay until it is. */
	static ptl_handle_me_t entry;
	static ptl_me_t me = {
		.length = sizeof(*word),
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT,
		.match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}},
		.match_bits = 9,
	};
	ptl_handle_ct_t round;

	me.start = word;
	check(PtlCTAlloc(ni, &round));
	check(PtlTriggeredMEAppend(ni, PORTAL, &me, PTL_PRIORITY_LIST, NULL, &entry, round, 1));
	check(PtlCTInc(round, (ptl_ct_event_t){1, 0}));
	check(PtlCTCancelTriggered(round)); /* returns when what was due has happened */
	check(PtlTriggeredMEUnlink(entry, round, 2));
	check(PtlCTInc(round, (ptl_ct_event_t){1, 0}));
	check(PtlCTFree(round));
}

/* What the examples did is compared with what they should have done. */
static void expect(uint64_t got, uint64_t wanted, const char *what)
{
	if (got == wanted)
		return;
	fprintf(stderr, "%s is %" PRIu64 ", not %" PRIu64 "\n", what, got, wanted);
	exit(1);
}

int main(void)
{
	uint64_t memory[WORDS] = {0};
	uint64_t words[WORDS] = {100, 10};
	ptl_handle_ni_t ni = open_interface();
	ptl_handle_eq_t queue;
	ptl_handle_me_t entry;
	ptl_process_t self;

	check(PtlGetId(ni, &self));
	who_am_i(ni);
	give_ranks(&self, 1);
	share_everything();
	entry = open_memory(ni, memory, sizeof(memory), &queue);
	expect((uint64_t)same_interface(entry, queue), 1, "same_interface()");
	look_for_message(ni, queue);
	print_next_event(queue);
	send_greeting(ni, self);
	drain(queue);
	expect((uint64_t)strcmp((char *)memory, "Hello."), 0, "strcmp()");
	fetch(ni, self, words + 2);
	expect((uint64_t)strcmp((char *)(words + 2), "Hello."), 0, "strcmp() of what was gotten");
	memset(memory, 0, sizeof(memory));
	memory[0] = 41;
	expect(take_number(ni, self), 41, "the number");
	expect(memory[0], 42, "the counter");
	expect(memory[1], 1, "the maximum");
	expect(memory[2], 1, "the lock");
	count_to_three(ni);
	do_it_later(ni, self, words);
	expect(words[2], 110, "what was fetched");
	expect(words[3], 120, "what was swapped");
	expect(words[4], 100, "what was gotten");
	open_for_one_round(ni, words);
	close_memory(ni, entry, queue);
	close_interface(ni);
	return 0;
}
