/* SPDX-License-Identifier: BSD-3-Clause */
/* adi.c - libpostern-adi: see postern-adi.h. Ranks, tags and contexts on lib/messages.
 *
 * Match bits are context (17), the sender's rank as it presents itself (17), and tag (30), so
 * wildcards are ignored bits. An operation is this library's from its begin to done(), and holds
 * nothing of the Request but its address, which adi_detach() forgets: an API may copy, free and use
 * again the Request's memory as it likes.
 */
#include <postern-adi.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/mman.h>

#include <base/environment.h>
#include <base/log.h>
#include <base/remedy.h>
#include <base/settings.h>
#include <base/timespec.h>
#include <engine/segment.h>
#include <host/inspection.h>
#include <host/interface.h>
#include <host/member.h>
#include <job/job.h>
#include <messages/messages.h>

#define API __attribute__((visibility("default")))

#define TAG_BITS     30
#define RANK_BITS    17
#define CONTEXT_BITS 17
#define RANKS_MAX    (1u << RANK_BITS)
#define ADI_SPACE    1
#define EAGER        4096
#define LOOKS        128               /* in vain in a row, after which a program only waits, */
#define LOOK_PAUSE   (5 * MICROSECOND) /* unless it computes for so long in between */
#define LOOK_WAIT    (100 * MICROSECOND)
#define START_TIME   (60 * SECOND)
#define SAY_INTERVAL (20 * MILLISECOND)
#define SETTLE_TIME  (500 * MILLISECOND)
#define ASKS         4 /* in PTL_PEER_TIMEOUT */

/* Words between processes without a launcher: kind, and 48 bits. */
enum { WORD_HERE = 1, WORD_GO, WORD_ABORT };
#define WORD_AT 48

struct adi_operation {
	struct transfer message;
	void *owner; /* NULL: nobody */
	struct adi_operation **at;
	void *owned; /* to be freed, */
	size_t room; /* as a mapping of so many bytes; 0: it is malloc()ed */
	struct adi_operation *next;
	struct adi_operation *made; /* the one that was made before */
};

static const struct topic topics[] = {
	TOPICS_OF_ALL,
	TOPICS_OF_ALL_BEHIND,
};
static struct front front = {
	.name = "ADI",
	.start = "A_INIT",
	.closed = -2,
	.topics = topics,
	.topic_count = sizeof(topics) / sizeof(topics[0]),
	.words = &message_words,
};

static struct {
	struct messages *messages; /* NULL: not started, or ended */
	struct job job;
	struct process *processes; /* of the job, by rank */
	void (*done)(void *owner, const struct adi_result *result);
	void (*arrived)(const struct adi_result *message); /* NULL: nothing is shown */
	void (*taken)(const struct adi_result *message);
	struct adi_operation *free;
	struct adi_operation *made; /* all: a Request may name one that was pending at adi_end() */
	unsigned fruitless;         /* looks in a row, up to LOOKS */
	uint64_t looked;            /* when the last one ended, if those were LOOKS */
	/* Without a launcher: which barrier each process has come to, as far as rank 0 knows, and
	 * which one is open. */
	uint32_t *here;
	uint32_t barrier, open;
	uint32_t last; /* the barrier of adi_end(); 0: not yet */
	uint64_t ask;  /* when others are asked again whether they are there; 0: never */
} adi;

/* --- the end of all */

static void word_tell(uint32_t rank, unsigned kind, uint64_t value)
{
	messages_tell(adi.messages, rank, (uint64_t)kind << WORD_AT | value);
}

static bool nothing_pends(void *context)
{
	(void)context;
	return messages_pending(adi.messages) == 0;
}

API void adi_abort(int code)
{
	static bool ending;

	code = job_exit_code(code);
	fflush(NULL);
	if (!ending) {
		ending = true;
		job_abort(&adi.job, code);
		if (job_is_listed(&adi.job) && adi.messages) {
			for (uint32_t rank = 0; rank < adi.job.size; rank++)
				if (rank != adi.job.rank)
					word_tell(rank, WORD_ABORT, (unsigned)code);
			(void)messages_wait(adi.messages, nothing_pends, NULL, SECOND);
		}
	}
	_exit(code);
}

API void adi_fail(const char *why)
{
	log_error("rank %u: %s", adi.job.rank, why);
	adi_abort(EXIT_FAILURE);
}

#define die(...)                                                                                   \
	do {                                                                                       \
		char line[256];                                                                    \
		snprintf(line, sizeof(line), __VA_ARGS__);                                         \
		adi_fail(line);                                                                    \
	} while (0)

/* --- what the messages say */

/* A peer that has come to the last barrier may leave. Without a launcher it is known to have come
 * if it has told rank 0, and for all others when that barrier is open; a launcher notices by itself
 * that a process has died. */
static bool peer_may_leave(uint32_t peer)
{
	if (adi.last == 0 || peer == adi.job.rank)
		return false;
	return !job_is_listed(&adi.job) || adi.open >= adi.last || adi.here[peer] >= adi.last;
}

static void peer_failed(void *owner, uint32_t peer, const char *why)
{
	(void)owner;
	/* Before the first barrier a process that is not there may come yet. */
	if (peer_may_leave(peer) || (job_is_listed(&adi.job) && adi.open == 0))
		return;
	die("rank %u of this job %s; the job ends", peer, why);
}

static void word_told(void *owner, uint32_t peer, uint64_t word)
{
	uint32_t value = (uint32_t)word;

	(void)owner;
	switch (word >> WORD_AT) {
	case WORD_HERE:
		if (adi.here && value > adi.here[peer])
			adi.here[peer] = value;
		/* One that has not heard that it may go on. */
		if (adi.job.rank == 0 && value <= adi.open && adi.messages)
			word_tell(peer, WORD_GO, adi.open);
		break;
	case WORD_GO:
		if (value > adi.open)
			adi.open = value;
		break;
	case WORD_ABORT:
		_exit((int)(value & 255));
	default:
		break;
	}
}

static struct adi_result result_of(uint64_t bits, uint64_t bytes, int error)
{
	return (struct adi_result){
		.source = (int)(bits >> TAG_BITS & ((1u << RANK_BITS) - 1)),
		.tag = (int)(bits & ((UINT32_C(1) << TAG_BITS) - 1)),
		.context = (int)(bits >> (TAG_BITS + RANK_BITS)),
		.bytes = bytes < INT_MAX ? (int)bytes : INT_MAX,
		.error = error,
	};
}

/* Address space for a message of any length, of which memory is what the message touches. Less
 * where the system gives no more. */
static void *room_make(size_t *room)
{
	void *memory = MAP_FAILED;

	for (*room = INT_MAX; memory == MAP_FAILED && *room >= MESSAGES_EAGER_MAX; *room /= 2)
		memory = mmap(NULL, *room, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	*room = *room * 2 + 1;
	if (memory == MAP_FAILED)
		adi_fail("there is no memory to receive a message without a contiguous buffer");
	return memory;
}

/* Lets go of memory that is the operation's, and of the operation. */
static void operation_free(struct adi_operation *operation)
{
	if (operation->room != 0)
		munmap(operation->owned, operation->room);
	else
		free(operation->owned);
	operation->next = adi.free;
	adi.free = operation;
}

static void operation_end(struct adi_operation *operation, uint64_t bits, uint64_t bytes, int error)
{
	if (operation->at)
		*operation->at = NULL;
	if (operation->owner) {
		struct adi_result result = result_of(bits, bytes, error);

		result.data = operation->owned;
		adi.done(operation->owner, &result);
	}
	operation_free(operation);
}

static void operation_done(void *owner, struct transfer *message)
{
	const int error = message->result == TRANSFER_CUT ? ADI_TRUNCATED : 0;

	if (message->result == TRANSFER_WITHDRAWN)
		peer_failed(owner, message->peer, "has withdrawn a message that it announced");
	if (message->seen) {
		const struct adi_result result = result_of(message->bits, message->length, error);

		adi.taken(&result);
	}
	operation_end(
		(struct adi_operation *)(void *)message, message->bits, message->length, error);
}

/* What has come since the last look, and no receive has asked for. */
static void unexpected_show(void)
{
	const struct unexpected *unexpected;

	while (adi.arrived && (unexpected = messages_show(adi.messages, 0))) {
		const struct adi_result message =
			result_of(unexpected->transfer.bits, unexpected->transfer.whole, 0);

		adi.arrived(&message);
		messages_shown(adi.messages, false);
	}
}

/* --- starting and ending */

static unsigned progress(void)
{
	return adi.messages ? messages_progress(adi.messages) : 0;
}

/* A size of bytes from the environment. */
static uint64_t bytes_wanted(const char *name, uint64_t usual, uint64_t least, uint64_t most)
{
	const char *text = environment_text(name);
	char *end;
	unsigned long long value;

	if (!text || !*text)
		return usual;
	value = strtoull(text, &end, 10);
	if (*end == '\0' && text[0] != '-' && value >= least && value <= most)
		return value;
	log_error("%s is \"%s\": give a number of bytes from %llu to %llu; using %llu", name, text,
		(unsigned long long)least, (unsigned long long)most, (unsigned long long)usual);
	return usual;
}

static uint64_t ask_interval(void)
{
	return setting_number(SETTING_PEER_TIMEOUT) / ASKS;
}

/* Of a wait, after which peers_ask() is due. */
static uint64_t wait_limit(void)
{
	return adi.ask == 0 ? UINT64_MAX : ask_interval();
}

/* Without a launcher nobody else notices that a process has died: rank 0 asks all for a sign of
 * life, and all ask rank 0. */
static void peers_ask(void)
{
	uint64_t time;

	if (adi.ask == 0 || (time = library_now()) < adi.ask)
		return;
	adi.ask = time + ask_interval();
	for (uint32_t rank = 0; rank < adi.job.size; rank++)
		if ((rank == 0) != (adi.job.rank == 0))
			messages_ask(adi.messages, rank);
}

static bool here_look(void *context)
{
	const uint32_t *barrier = context;

	for (uint32_t rank = 1; adi.job.rank == 0 && rank < adi.job.size; rank++)
		if (adi.here[rank] < *barrier)
			return false;
	return adi.job.rank == 0 || adi.open >= *barrier;
}

/* A barrier without a launcher: all tell rank 0 that they are here until it says that all are. */
static bool barrier_listed(uint64_t limit)
{
	const uint64_t start = library_now();

	adi.barrier++;
	do {
		if (adi.job.rank != 0)
			word_tell(0, WORD_HERE, adi.barrier);
		if (library_now() - start > limit)
			return false;
		peers_ask();
	} while (!messages_wait(adi.messages, here_look, &adi.barrier, SAY_INTERVAL));
	adi.open = adi.barrier;
	for (uint32_t rank = 1; adi.job.rank == 0 && rank < adi.job.size; rank++)
		word_tell(rank, WORD_GO, adi.barrier);
	return true;
}

static bool job_together(void)
{
	if (!job_is_listed(&adi.job) || adi.job.size == 1)
		return job_barrier(&adi.job);
	return barrier_listed(START_TIME) || (snprintf(adi.job.why, sizeof(adi.job.why),
						      "not all of the %u processes in "
						      "PTL_ADI_HOSTS were there within 60 s: start "
						      "each of them, with the same list and "
						      "as the same user",
						      adi.job.size),
						     false);
}

static enum answer interface_make(struct process *self, uint64_t *handle)
{
	const struct segment_limits none = {0};
	enum answer answer;

	library_lock();
	answer = interface_open(&front, 0,
		job_is_listed(&adi.job) ? adi.processes[adi.job.rank].pid : INTERFACE_PID_ANY,
		&none);
	*self = interfaces[0].self;
	*handle = atomic_load_explicit(&interfaces[0].handle, memory_order_relaxed);
	library_unlock();
	return answer;
}

static bool messages_make(uint64_t interface)
{
	struct messages_options wanted = {
		.front = &front,
		.interface = interface,
		.space = ADI_SPACE,
		.peers = adi.processes,
		.count = adi.job.size,
		.self = adi.job.rank,
		.eager = (uint32_t)bytes_wanted("PTL_ADI_EAGER", EAGER, 1, MESSAGES_EAGER_MAX),
		.memory = bytes_wanted("PTL_ADI_MEMORY", MESSAGES_MEMORY, 0, UINT64_C(1) << 40),
		.done = operation_done,
		.told = word_told,
		.failed = peer_failed,
	};

	messages_divide(&wanted);
	return messages_open(&wanted, &adi.messages) == ANSWER_OK;
}

static bool process_is_mine(struct process self)
{
	const struct process *listed = &adi.processes[adi.job.rank];

	if (job_is_launched(&adi.job) || process_same(*listed, self))
		return true;
	if (!job_is_listed(&adi.job)) {
		adi.processes[0] = self;
		return true;
	}
	snprintf(adi.job.why, sizeof(adi.job.why),
		"PTL_ADI_HOSTS says that rank %u is %u:%u, but this process is %u:%u: mend the "
		"list, or set PTL_NID",
		adi.job.rank, listed->nid, listed->pid, self.nid, self.pid);
	return false;
}

static uint64_t opened; /* the interface */

/* Room for all, and what a list says of them. */
static bool processes_make(void)
{
	if (adi.job.size > RANKS_MAX)
		return job_wrong(&adi.job, "this job has %u processes: start %u at most",
			adi.job.size, RANKS_MAX);
	adi.processes = calloc(adi.job.size, sizeof(*adi.processes));
	if (!adi.processes)
		return job_wrong(&adi.job, "there is no memory for %u processes", adi.job.size);
	if (job_is_listed(&adi.job))
		(void)job_hosts(environment_text("PTL_ADI_HOSTS"), adi.processes);
	return true;
}

/* A launcher says where all are. */
static bool processes_meet(void)
{
	struct card card = {0};

	(void)member_card(&front, opened, &card);
	member_watch(&front, opened, &adi.job.watch);
	if (!job_meet(&adi.job, &card))
		return false;
	for (uint32_t rank = 0; job_is_launched(&adi.job) && rank < adi.job.size; rank++) {
		if (!job_card(&adi.job, rank, &card))
			return false;
		adi.processes[rank] = card.process;
		member_knows(&front, opened, &card);
	}
	return true;
}

static bool start(void)
{
	struct process self;

	if (!job_find(&adi.job, true) || !processes_make())
		return false;
	snprintf(adi.job.why, sizeof(adi.job.why), "no interface can be opened");
	if (front_open(&front) != ANSWER_OK || interface_make(&self, &opened) != ANSWER_OK)
		return false;
	adi.here = calloc(adi.job.size, sizeof(*adi.here));
	if (!adi.here)
		return false;
	if (!process_is_mine(self) || !processes_meet())
		return false;
	snprintf(adi.job.why, sizeof(adi.job.why), "there is no memory for messages: %s",
		remedy_for_memory());
	if (!messages_make(opened))
		return false;
	adi.job.drive = progress;
	if (!job_together())
		return false;
	if (job_is_listed(&adi.job) && !adi.job.watch.silent)
		adi.ask = library_now();
	return true;
}

API int adi_start(void (*done)(void *owner, const struct adi_result *result))
{
	if (adi.done) {
		log_error("A_INIT was called before in this process: call it once");
		return -1;
	}
	adi.done = done;
	if (start())
		return 0;
	log_error("rank %u: %s", adi.job.rank, adi.job.why);
	return -1;
}

/* Words of the last barrier, the first of which may go on pending: sends that nobody receives. */
static void words_settle(void)
{
	uint64_t pending, since = library_now();

	while ((pending = messages_pending(adi.messages)) != 0 &&
		library_now() - since < SETTLE_TIME) {
		/* The end of a message that needed no answer wakes nobody. */
		(void)messages_wait(adi.messages, nothing_pends, NULL, MILLISECOND);
		if (messages_pending(adi.messages) != pending)
			since = library_now();
	}
}

/* A process that has come to the barrier receives nothing more, so what pends then is lost. */
API void adi_end(void)
{
	if (!adi.messages)
		return;
	adi.last = adi.barrier + 1;
	if (job_is_listed(&adi.job) && adi.job.size > 1) {
		(void)barrier_listed(
			adi.ask == 0 ? setting_number(SETTING_PEER_TIMEOUT) : UINT64_MAX);
		words_settle();
	} else if (!job_barrier(&adi.job)) {
		log_error("rank %u: %s", adi.job.rank, adi.job.why);
	}
	adi.job.drive = NULL;
	adi.ask = 0;
	messages_close(adi.messages);
	adi.messages = NULL;
	front_close(&front);
	(void)job_leave(&adi.job);
}

API void adi_show(void (*arrived)(const struct adi_result *message),
	void (*taken)(const struct adi_result *message))
{
	adi.arrived = arrived;
	adi.taken = taken;
}

API int adi_rank(void)
{
	return (int)adi.job.rank;
}

API int adi_size(void)
{
	return (int)adi.job.size;
}

/* --- sends and receives */

static struct adi_operation *operation_make(struct adi_operation **at, void *owner)
{
	struct adi_operation *operation = adi.free;

	if (operation) {
		adi.free = operation->next;
	} else {
		operation = malloc(sizeof(*operation));
		if (!operation)
			adi_fail("there is no memory for another send or receive");
		operation->made = adi.made;
		adi.made = operation;
	}
	operation->owner = owner;
	operation->at = at;
	operation->owned = NULL;
	operation->room = 0;
	*at = operation;
	return operation;
}

/* Match bits; any of the three below 0: ignored. */
static uint64_t bits_make(int context, int rank, int tag, uint64_t *ignore)
{
	const uint64_t tags = (UINT64_C(1) << TAG_BITS) - 1;
	const uint64_t ranks = ((UINT64_C(1) << RANK_BITS) - 1) << TAG_BITS;

	if (context < 0 || context >> CONTEXT_BITS != 0)
		die("context %d is not in the range 0 to %d: make fewer communicators; freed ones "
		    "do not give their contexts back",
			context, (1 << CONTEXT_BITS) - 1);
	if (rank >> RANK_BITS != 0 && rank >= 0)
		die("rank %d is too large: this device knows ranks 0 to %d", rank,
			(1 << RANK_BITS) - 1);
	if (tag > ADI_TAG_MAX)
		die("tag %d is too large: use tags up to %d", tag, ADI_TAG_MAX);
	*ignore = (rank < 0 ? ranks : 0) | (tag < 0 ? tags : 0);
	return (uint64_t)context << (TAG_BITS + RANK_BITS) |
	       (rank < 0 ? 0 : (uint64_t)rank << TAG_BITS) | (tag < 0 ? 0 : (uint64_t)tag);
}

API void adi_send(struct adi_operation **at, void *owner, int to, int presented, int tag,
	int context, int synchronous, void *buffer, int bytes, int owned)
{
	struct adi_operation *operation;
	struct send_wish wish;
	uint64_t ignore, bits = bits_make(context, presented, tag, &ignore);

	if (!adi.messages)
		adi_fail("a send before A_INIT, or after A_END: send between the two");
	if (to < 0 || to >= (int)adi.job.size || ignore != 0 || bytes < 0)
		die("a send of %d bytes to rank %d, from rank %d with tag %d, is invalid: the "
		    "target is rank 0 to %u, and no other number may be negative",
			bytes, to, presented, tag, adi.job.size - 1);
	wish = (struct send_wish){.bits = bits,
		.buffer = buffer,
		.length = (uint64_t)bytes,
		.synchronous = synchronous};
	operation = operation_make(at, owner);
	if (owned)
		operation->owned = buffer;
	if (messages_inject(adi.messages, (uint32_t)to, &wish))
		operation_end(operation, bits, wish.length, 0);
	else
		messages_send(adi.messages, &operation->message, (uint32_t)to, &wish);
}

API void adi_receive(struct adi_operation **at, void *owner, int source, int tag, int context,
	void *buffer, int room)
{
	struct receive_wish wish = {.peer = PEER_ANY, .buffer = buffer, .room = (size_t)room};
	struct adi_operation *operation;

	wish.bits = bits_make(context, source, tag, &wish.ignore);
	if (!adi.messages)
		adi_fail("a receive before A_INIT, or after A_END: receive between the two");
	operation = operation_make(at, owner);
	if (room < 0) {
		wish.buffer = operation->owned = room_make(&operation->room);
		wish.room = operation->room;
	}
	messages_receive_wish(adi.messages, &operation->message, &wish);
}

static bool operation_look(void *context)
{
	return *(struct adi_operation *const *)context == NULL;
}

API void adi_wait(struct adi_operation *const *operation)
{
	bool done = *operation == NULL;

	while (!done) {
		done = messages_wait(
			adi.messages, operation_look, (void *)(uintptr_t)operation, wait_limit());
		peers_ask();
		unexpected_show();
	}
}

API void adi_detach(struct adi_operation *operation)
{
	operation->owner = NULL;
	operation->at = NULL;
}

API int adi_cancel(struct adi_operation *operation)
{
	if (!messages_cancel(adi.messages, &operation->message))
		return 0;
	if (operation->at)
		*operation->at = NULL;
	operation_free(operation);
	return 1;
}

/* Waits until there was something to do. */
static bool anything_await(uint64_t timeout)
{
	bool found = messages_wait(adi.messages, NULL, NULL, timeout);

	peers_ask();
	unexpected_show();
	return found;
}

/* A program that does nothing but look is a thread that waits: after some looks in vain each
 * further one waits for a moment, as waits do (lib/base/spinning.h). One that computes in between
 * does not wait. */
static void look_begin(void)
{
	if (adi.fruitless == LOOKS && library_now() - adi.looked >= LOOK_PAUSE)
		adi.fruitless = 0;
}

static void look_failed(void)
{
	peers_ask();
	if (adi.fruitless < LOOKS)
		adi.fruitless++;
	else if (anything_await(LOOK_WAIT))
		adi.fruitless = 0;
	if (adi.fruitless == LOOKS)
		adi.looked = library_now();
}

static bool probe_look(int source, int tag, int context, struct adi_result *result)
{
	uint64_t ignore, bits = bits_make(context, source, tag, &ignore);
	struct message_found found;

	unexpected_show();
	if (!messages_probe(adi.messages, bits, ignore, &found))
		return false;
	*result = result_of(found.bits, found.length, 0);
	adi.fruitless = 0;
	return true;
}

API int adi_probe(int source, int tag, int context, int blocking, struct adi_result *result)
{
	if (!adi.messages)
		adi_fail("a probe before A_INIT, or after A_END");
	look_begin();
	while (!probe_look(source, tag, context, result)) {
		if (!blocking) {
			look_failed();
			return 0;
		}
		anything_await(wait_limit());
	}
	return 1;
}

API void adi_check(int blocking)
{
	if (!adi.messages)
		return;
	look_begin();
	if (messages_progress(adi.messages) == 0) {
		if (!blocking) {
			look_failed();
			return;
		}
		while (!anything_await(wait_limit()))
			continue;
	}
	adi.fruitless = 0;
	unexpected_show();
}

/* --- the machine */

API double adi_time(void)
{
	return (double)time_monotonic() * 1e-9;
}

API double adi_tick(void)
{
	struct timespec tick;

	clock_getres(CLOCK_MONOTONIC, &tick);
	return (double)tick.tv_sec + (double)tick.tv_nsec * 1e-9;
}

API void adi_name(char *name, int room)
{
	char whole[ADI_NAME_ROOM];

	if (room <= 0)
		return;
	if (gethostname(whole, sizeof(whole)) != 0)
		snprintf(whole, sizeof(whole), "unknown");
	whole[sizeof(whole) - 1] = '\0';
	snprintf(name, (size_t)room, "%s", whole);
}

API void adi_version(char *text)
{
	snprintf(text, 128, "ADI version 1, device postern " ADI_RELEASE);
}
