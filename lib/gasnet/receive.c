/* SPDX-License-Identifier: BSD-3-Clause */
/* receive.c - what comes: blocks of messages, the two parts of long ones, polling and waiting.
 *
 * The poll lock guards the queue, the blocks and the halves. It is tried and never waited for, so a
 * flag is enough: a thread that does not get it knows that another thread polls.
 */
#include "state.h"

#include "wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define SLEEP       1u  /* ms */
#define SPINS       64u /* empty polls before a thread sleeps, some 20 us */
#define QUEUE_TURNS 16u /* polls that find messages in rings, for one of the queue */

#ifdef GASNET_SEQ
#define BATCH        1u
#define ROUNDS       64u /* batches of a poll at most */
#define poll_try()   true
#define poll_leave() ((void)0)
#else
#define BATCH        8u
#define ROUNDS       8u
#define poll_try()   (!__atomic_exchange_n(&polling, true, __ATOMIC_ACQUIRE))
#define poll_leave() __atomic_store_n(&polling, false, __ATOMIC_RELEASE)
static bool polling; /* the poll lock */
#endif

/* One part of a long message, whose other one has not come. */
struct half {
	struct half *next;
	uint32_t number;
	bool data;
	struct message message;
};

static struct half **halves; /* by rank */
static struct half *free_halves;
static uint8_t *blocks;
static PER_THREAD struct message batch[BATCH];

/* --- blocks */

static void block_append(uintptr_t which)
{
	const ptl_me_t me = {
		.start = blocks + which * gasnet.block_size,
		.length = gasnet.block_size,
		.ct_handle = PTL_CT_NONE,
		.uid = gasnet.uid,
		.options = PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_IS_ACCESSIBLE |
			   PTL_ME_EVENT_LINK_DISABLE,
		.match_id = {.rank = PTL_RANK_ANY},
		.match_bits = WIRE_MESSAGE,
		.ignore_bits = ~WIRE_MESSAGE,
		.min_free = MESSAGE_MAX,
	};
	ptl_handle_me_t entry;

	must(PtlMEAppend(
		gasnet.ni, PORTAL_MESSAGES, &me, PTL_PRIORITY_LIST, (void *)which, &entry));
}

static void data_append(void)
{
	const struct rank *own = &gasnet.ranks[gasnet.rank];
	const ptl_me_t me = {
		.start = own->address,
		.length = own->size,
		.ct_handle = PTL_CT_NONE,
		.uid = gasnet.uid,
		.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE,
		.match_id = {.rank = PTL_RANK_ANY},
	};
	ptl_handle_me_t entry;

	if (own->size > 0)
		must(PtlMEAppend(gasnet.ni, PORTAL_DATA, &me, PTL_PRIORITY_LIST, NULL, &entry));
}

void receive_open(void)
{
	ptl_pt_index_t index;

	/* Their size is a multiple of what messages are padded to. */
	gasnet.block_size = gasnet.block_size / PAYLOAD_ALIGN * PAYLOAD_ALIGN;
	blocks = mmap(NULL, gasnet.blocks * gasnet.block_size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	halves = calloc(gasnet.size, sizeof(struct half *));
	if (blocks == MAP_FAILED || !halves)
		fatal("there is no memory for %zu blocks of %zu bytes: set "
		      "GASNET_AM_NUM_ENTRIES to a smaller number",
			(size_t)gasnet.blocks, (size_t)gasnet.block_size);
	must(PtlPTAlloc(gasnet.ni, PTL_PT_FLOWCTRL, gasnet.receive, PORTAL_MESSAGES, &index));
	must(PtlPTAlloc(gasnet.ni, PTL_PT_FLOWCTRL, gasnet.receive, PORTAL_DATA, &index));
	for (uintptr_t i = 0; i < gasnet.blocks; i++)
		block_append(i);
	data_append();
}

/* --- halves */

/* The other part of a message, taken from the list; NULL: it has not come. */
static struct half *half_find(uint32_t rank, uint32_t number, bool data)
{
	for (struct half **at = &halves[rank]; *at; at = &(*at)->next) {
		struct half *half = *at;

		if (half->number != number || half->data == data)
			continue;
		*at = half->next;
		return half;
	}
	return NULL;
}

static void half_keep(const struct message *message, uint32_t number, bool data)
{
	struct half *half = free_halves;

	if (half)
		free_halves = half->next;
	else
		half = malloc(sizeof(*half));
	if (!half)
		fatal("there is no memory for a part of a message: end programs that use much "
		      "memory");
	half->next = halves[message->from];
	half->number = number;
	half->data = data;
	memcpy(&half->message, message, offsetof(struct message, bytes));
	halves[message->from] = half;
}

/* The part in *message is made the whole message, if the other one is there. */
static bool half_join(struct message *message, uint32_t number, bool data)
{
	struct half *half = half_find(message->from, number, data);

	if (!half) {
		half_keep(message, number, data);
		return false;
	}
	if (data) {
		half->message.payload = message->payload;
		half->message.length = message->length;
		memcpy(message, &half->message, offsetof(struct message, bytes));
	} else {
		message->payload = half->message.payload;
		message->length = half->message.length;
	}
	half->next = free_halves;
	free_halves = half;
	return true;
}

/* --- events */

/* A medium's payload where it came, or a copy: see G5. */
static void *payload_of(struct message *message, uint8_t *start)
{
#ifdef GASNET_SEQ
	if ((uintptr_t)start % PAYLOAD_ALIGN == 0)
		return start;
#endif
	memcpy(message->bytes, start, message->length);
	return message->bytes;
}

void nonsense(uint32_t from)
{
	fatal("a message of rank %u is invalid: use the same release of Postern in "
	      "all ranks",
		from);
}

/* Returns true if the message is complete. */
static bool message_take(const ptl_event_t *event, struct message *message)
{
	uint64_t bits = event->match_bits;
	uint8_t *start = event->start;
	uint64_t address;
	size_t head;

	wire_read(bits, message);
	message->credits =
		(uint8_t)(message->request ? wire_credits(message->kind) : event->hdr_data >> 32);
	head = wire_head(message->kind, message->count);
	if (message->count > ARGUMENTS_MAX ||
		message->length > (message->kind == KIND_MEDIUM ? MEDIUM_MAX : MESSAGE_MAX) ||
		head + message->length > event->mlength)
		nonsense(message->from);
	memcpy(message->arguments, start, message->count * sizeof(*message->arguments));
	switch (message->kind) {
	case KIND_MEDIUM:
		message->payload = payload_of(message, start + head);
		break;
	case KIND_LONG_PACKED:
		memcpy(&address, start + head - sizeof(address), sizeof(address));
		message->payload = (void *)(uintptr_t)address;
		message->kind = KIND_LONG;
		if (!segment_has(gasnet.rank, message->payload, message->length))
			nonsense(message->from);
		if (message->length > 0)
			memcpy(message->payload, start + head, message->length);
		break;
	case KIND_LONG:
		return half_join(message, (uint32_t)event->hdr_data, false);
	default:
		break;
	}
	return true;
}

static _Noreturn void event_failed(const ptl_event_t *event)
{
	if (event->pt_index == PORTAL_DATA && event->ni_fail_type == PTL_NI_SEGV)
		fatal("a long message of rank %u has %zu bytes for %p, where this rank has "
		      "no memory: send to mapped memory",
			event->initiator.rank, (size_t)event->rlength,
			(void *)((uintptr_t)gasnet.ranks[gasnet.rank].address +
				 event->remote_offset));
	fatal("a message of rank %u ends in %s, %s: this is a bug of Postern's",
		event->initiator.rank, PtlToStr(event->type, PTL_STR_EVENT),
		PtlToStr(event->ni_fail_type, PTL_STR_FAIL_TYPE));
}

/* Returns true if a message is complete. */
static bool event_take(const ptl_event_t *event, struct message *message)
{
	if (event->type == PTL_EVENT_AUTO_UNLINK) {
		block_append((uintptr_t)event->user_ptr);
		return false;
	}
	if (event->pt_index == PORTAL_BARRIER) /* it has only woken this thread */
		return false;
	if (event->type != PTL_EVENT_PUT || event->ni_fail_type != PTL_NI_OK)
		event_failed(event);
	message->from = event->initiator.rank;
	message->ring = false;
	if (event->pt_index == PORTAL_MESSAGES)
		return message_take(event, message);
	message->payload = event->start;
	message->length = event->mlength;
	return half_join(message, (uint32_t)event->hdr_data, true);
}

static bool event_get(ptl_event_t *event)
{
	int code = PtlEQGet(gasnet.receive, event);

	if (code == PTL_EQ_EMPTY)
		return false;
	must_be(code, "PtlEQGet(receive)");
	return true;
}

/* --- threads of PAR that wait while another one polls */

#ifdef GASNET_SEQ
#define others_wake()  ((void)0)
#define others_await() ((void)0)
#else
static pthread_mutex_t sleep_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t handled = PTHREAD_COND_INITIALIZER;
static unsigned sleepers;

static void others_wake(void)
{
	if (__atomic_load_n(&sleepers, __ATOMIC_SEQ_CST) == 0)
		return;
	pthread_mutex_lock(&sleep_lock);
	pthread_cond_broadcast(&handled);
	pthread_mutex_unlock(&sleep_lock);
}

/* Until a batch has been handled, or for a millisecond. */
static void others_await(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += SLEEP * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&sleep_lock);
	__atomic_add_fetch(&sleepers, 1, __ATOMIC_SEQ_CST);
	pthread_cond_timedwait(&handled, &sleep_lock, &until);
	__atomic_sub_fetch(&sleepers, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&sleep_lock);
}
#endif

/* --- polling */

static void batch_handle(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		message_handle(&batch[i]);
	if (count > 0)
		others_wake();
}

/* Takes a batch, of `most` events, and handles it. first: an event that the caller has taken, under
 * the poll lock, which is left. Returns how many events there were. Not inlined, for a poll that
 * finds nothing. */
static __attribute__((noinline)) unsigned batch_take(const ptl_event_t *first, unsigned most)
{
	ptl_event_t event;
	unsigned events = 1, count = event_take(first, &batch[0]);

	while (count < BATCH && events < most && event_get(&event)) {
		events++;
		if (event_take(&event, &batch[count]))
			count++;
	}
	poll_leave();
	batch_handle(count);
	return events;
}

/* A poll behind one that found nothing takes one event: the program waits for it perhaps, and a
 * look at an empty queue is a turn of Portals. The next one takes what else there is. */
static bool queue_poll(void)
{
	static PER_THREAD bool found = true; /* by the poll before */
	const unsigned most = found ? ROUNDS * BATCH : 1;
	ptl_event_t event;
	unsigned events = 0, now;

	do {
		if (!poll_try())
			break;
		if (!event_get(&event)) {
			poll_leave();
			break;
		}
		now = batch_take(&event, most);
		events += now;
	} while (now >= BATCH && events < most);
	found = events > 0;
	return found;
}

/* Handles what has come by rings. Returns how many messages there were. */
static unsigned rings_poll(void)
{
	unsigned count, messages = 0;

	do {
		count = 0;
		if (!rings_ready() || !poll_try())
			break;
		while (count < BATCH && rings_take(&batch[count]))
			count++;
		poll_leave();
		batch_handle(count);
		rings_done();
		messages += count;
	} while (count > 0 && messages < ROUNDS * BATCH);
	return messages;
}

bool receive_poll(void)
{
	static PER_THREAD unsigned turns;
	unsigned messages = rings_poll();

	/* Each look at the queue costs as much as many messages of rings. */
	if (messages > 0 && ++turns % QUEUE_TURNS != 0)
		return true;
	return queue_poll() || messages > 0;
}

void receive_sleep(void)
{
	const ptl_handle_eq_t queues[] = {gasnet.receive, gasnet.sent, gasnet.transfers};
	ptl_event_t event;
	unsigned which = 0;
	int code = PTL_EQ_EMPTY;

	if (!poll_try()) {
		others_await();
		return;
	}
	rings_sleep(true);
	if (!rings_ready())
		code = PtlEQPoll(queues, sizeof(queues) / sizeof(queues[0]), SLEEP, &event, &which);
	rings_sleep(false);
	if (code == PTL_OK && which == 0) {
		(void)batch_take(&event, ROUNDS * BATCH);
		return;
	}
	poll_leave();
	if (code != PTL_OK && code != PTL_EQ_EMPTY)
		must_be(code, "PtlEQPoll");
	if (code == PTL_OK && which == 1)
		sent_take(&event);
	if (code == PTL_OK && which == 2)
		transfer_take(&event);
	if (code == PTL_OK)
		others_wake();
}

void wait_turn(unsigned *tries)
{
	int mode = __atomic_load_n(&gasnet.wait_mode, __ATOMIC_RELAXED);

	exit_look();
	if (receive_poll()) {
		*tries = 0;
		return;
	}
	++*tries;
	if (mode == GASNET_WAIT_BLOCK || (mode == GASNET_WAIT_SPINBLOCK && *tries > SPINS))
		receive_sleep();
}

void gasnet_postern_wait(unsigned *tries)
{
	call_look("GASNET_BLOCKUNTIL");
	wait_turn(tries);
}

int gasnet_AMPoll(void)
{
	if (gasnet.stage != STAGE_ATTACHED)
		return GASNET_ERR_NOT_INIT;
	call_look("gasnet_AMPoll");
	exit_look();
	(void)receive_poll();
	return GASNET_OK;
}
