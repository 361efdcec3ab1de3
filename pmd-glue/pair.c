/* SPDX-License-Identifier: BSD-3-Clause */
/* pair.c - see pair.h.
 *
 * Positions count slots, or bytes of bulk that frames have taken, since the pair was made, and
 * never wrap. A slot is found modulo the size of its ring. Bytes of bulk are taken one behind the
 * other; when a sender begins at the beginning of the bulk again, what it has left out is not
 * counted:
 *
 *      bulk  | in flight, this lap |  free  | in flight, lap before | never used |
 *            0                     at       limit                   window
 *
 * A sender begins a lap only when all of the lap before the last one is free, so there are at most
 * these two parts.
 */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include <base/guard.h>
#include <base/stores.h>

#include <pmd-glue/glue.h>
#include <pmd-glue/kinds.h>
#include <pmd-glue/pair.h>

#define LINE  64u
#define APART 128u        /* processors fetch lines in twos */
#define GRAIN (16u << 10) /* windows are multiples of it */
#define SHARED_LEAST                                                                               \
	(64u << 10) /* bytes of bulk of which parts are counted, as windows are small at first */
#define COMMIT    (128u << 10) /* bytes of bulk that are given memory at a time */
#define TELL      8u /* of the window, that part is free before the sender is told in a burst */
#define LAP_MASK  0x3fffffffu
#define WORD_SAME (UINT64_C(1) << 30) /* P9 */
#define WORD_ANEW (UINT64_C(1) << 31) /* the frame lies at the beginning of the bulk */
#define WORD_LAP  32                  /* bits; the head's length lies above the lap, */
#define WORD_TAIL 48

/* --- shared memory --- */

struct slot {
	_Atomic uint64_t word; /* lap, same, anew, bytes of the head, bytes of the tail */
	uint8_t head[PAIR_SLOT_ROOM];
};
static_assert(sizeof(struct slot) == 256, "slots lie in cache lines of their own");

/* Written by the receiver of a direction. */
struct progress {
	_Alignas(APART) _Atomic uint64_t taken; /* slots */
	_Atomic uint64_t freed;                 /* bytes of bulk */
	_Atomic uint32_t cpu;                   /* that it looks for frames on, + 1; a hint */
};

/* Of each, the first is of the direction from end 0 to end 1. */
struct memory {
	struct progress progress[2];
	_Alignas(4096) struct slot slots[2][PAIR_SLOTS];
	_Alignas(4096) uint8_t bulk[2][PAIR_BULK];
};

/* Where the pieces of a frame lie. */
struct place {
	uint8_t *head;
	uint8_t *tail;
	uint32_t at;    /* where in the bulk */
	uint32_t bytes; /* of bulk; 0: it lies in its slot */
};
static_assert(FRAME_MAX + 2 * LINE <= PAIR_BULK, "a frame always fits");

/* --- private memory --- */

/* An Ethernet header (P9): its first bytes, and its last ones, which overlap. */
struct header {
	uint64_t first;
	uint64_t last;
};
#define HEADER_LAST (FRAME_HEADER - sizeof(uint64_t))

struct outgoing {
	struct slot *slots;
	uint8_t *bulk;
	const struct progress *progress;
	struct pair_budget *budget;
	uint64_t sent;   /* slots */
	uint64_t placed; /* bytes of bulk */
	uint64_t start;  /* `placed` when this lap around the bulk began, */
	uint64_t before; /* and the lap before */
	uint32_t at;     /* where in the bulk the next frame may lie, */
	uint32_t limit;  /* and where its room ends */
	uint32_t window; /* bytes of bulk that are used (P7), */
	uint32_t backed; /* and that have memory (P6) */
	bool anew;       /* the next frame in the bulk is the first of its lap */
	bool crowded;    /* frames of this lap had to wait for those of the lap before */
	bool pressed;    /* more than a quarter of the window was in flight since pair_rest() */
	uint64_t rested; /* `placed` at the last pair_rest() */
	uint64_t taken;  /* as the peer's progress was last seen */
	uint64_t freed;
	struct header header; /* of the last small frame that had one */
	struct stores stores;
};

/* A tail that a received frame refers to. */
struct tail {
	struct rte_mbuf_ext_shared_info shared;
	struct pair *pair;
	uint64_t start; /* position in the bulk that is freed with it */
	bool held;
};

/* P5. Tails are numbered as they come; those below `oldest` are free. */
struct incoming {
	struct slot *slots;
	uint8_t *bulk;
	struct progress *progress;
	uint64_t taken;       /* slots */
	uint64_t placed;      /* bytes of bulk */
	uint32_t at;          /* where in the bulk the next frame lies, unless it lies anew */
	uint32_t reach;       /* where the lap before ended */
	uint64_t told;        /* bytes of bulk that the peer knows to be free */
	struct header header; /* of the last small frame that had one */
	uint32_t cpu;         /* as progress->cpu */
	uint64_t oldest;
	uint64_t newest; /* the next one's number */
	struct tail tails[PAIR_TAILS];
};

struct pair {
	_Alignas(LINE) struct outgoing out;
	uint32_t frame_size;
	bool unsound;
	bool whole; /* pair_set_whole() */
	bool closed;
	_Alignas(LINE) struct incoming in;
	struct rte_mempool *pool;
	struct memory *memory;
	struct pair_counters counters;
};

size_t pair_bytes_touched(void)
{
	return offsetof(struct memory, bulk);
}

size_t pair_bytes(void)
{
	return RTE_ALIGN_CEIL(sizeof(struct memory), (size_t)sysconf(_SC_PAGESIZE));
}

/* --- frames in memory --- */

/* Frames that their slots hold, of one piece. */
static inline bool frame_is_small(uint32_t head, uint32_t tail)
{
	return head <= PAIR_SLOT_ROOM && tail == 0;
}

static inline struct header header_read(const uint8_t *frame)
{
	struct header header;

	memcpy(&header.first, frame, sizeof(header.first));
	memcpy(&header.last, frame + HEADER_LAST, sizeof(header.last));
	return header;
}

static inline void header_write(uint8_t *frame, struct header header)
{
	memcpy(frame, &header.first, sizeof(header.first));
	memcpy(frame + HEADER_LAST, &header.last, sizeof(header.last));
}

static inline bool headers_equal(struct header a, struct header b)
{
	return ((a.first ^ b.first) | (a.last ^ b.last)) == 0;
}

static inline uint32_t word_lap(uint64_t position)
{
	return (uint32_t)(position / PAIR_SLOTS + 1) & LAP_MASK;
}

static inline uint32_t bulk_bytes(uint32_t head, uint32_t tail)
{
	return (head > PAIR_SLOT_ROOM ? RTE_ALIGN_CEIL(head, LINE) : 0) +
	       RTE_ALIGN_CEIL(tail, LINE);
}

/* The pieces of a frame whose bytes of bulk lie at place->at. */
static inline void place_pieces(
	struct place *place, struct slot *slot, uint8_t *bulk, uint32_t head, uint32_t tail)
{
	place->head = head > PAIR_SLOT_ROOM ? bulk + place->at : slot->head;
	place->tail = bulk + place->at + place->bytes - RTE_ALIGN_CEIL(tail, LINE);
}

/* Finds a frame by its word, behind byte `at` of the bulk. Returns false if it cannot be there. */
static inline bool place_find(struct place *place, struct slot *slot, uint64_t word, uint8_t *bulk,
	uint32_t at, uint32_t head, uint32_t tail)
{
	place->bytes = bulk_bytes(head, tail);
	place->at = word & WORD_ANEW ? 0 : at;
	if (unlikely(place->at + place->bytes > PAIR_BULK))
		return false;
	place_pieces(place, slot, bulk, head, tail);
	return true;
}

/* Are these lengths that a sender may have written? */
static inline bool lengths_fine(uint32_t head, uint32_t tail, uint32_t frame_size)
{
	return head >= FRAME_HEADER && head + tail <= frame_size &&
	       (tail == 0 || head <= PAIR_HEAD_MAX);
}

/* --- sending --- */

static void out_look(struct pair *pair)
{
	struct outgoing *out = &pair->out;
	/* Acquire: the peer is done with what it gives back. Pairs with in_tell(). */
	uint64_t freed = atomic_load_explicit(&out->progress->freed, memory_order_acquire);
	uint64_t taken = atomic_load_explicit(&out->progress->taken, memory_order_acquire);
	if (taken - out->taken > out->sent - out->taken ||
		freed - out->freed > out->placed - out->freed) {
		pair->unsound = true;
		return;
	}
	out->taken = taken;
	out->freed = freed;
}

/* Where the room ends that begins at out->at. */
static void out_limit(struct outgoing *out)
{
	out->limit = out->freed >= out->start ? out->window : (uint32_t)(out->freed - out->before);
}

/* P6: gives the bulk memory up to byte `end`. Returns false if there is none. */
static bool out_back(struct outgoing *out, uint32_t end)
{
	end = RTE_MIN(RTE_ALIGN_CEIL(end, COMMIT), out->window);
	/* Kernels before 5.14 do not know this advice, and a seccomp filter may forbid it. */
	if (madvise(out->bulk + out->backed, end - out->backed, MADV_POPULATE_WRITE) != 0 &&
		errno != EINVAL && errno != EPERM && errno != ENOSYS)
		return false;
	out->backed = end;
	stores_grow(&out->stores);
	return true;
}

static void window_set(struct outgoing *out, uint32_t window)
{
	if (out->budget)
		out->budget->used += (size_t)window - out->window;
	out->window = window;
}

/* P7. Returns false if the window has its share. */
static bool window_grow(struct outgoing *out)
{
	const struct pair_budget *budget = out->budget;
	uint32_t window = RTE_MIN(2 * out->window, PAIR_BULK);
	size_t others = budget ? budget->used - out->window : 0;
	if (window == out->window ||
		(budget && (others > budget->most || window > (budget->most - others) / 2)))
		return false;
	window_set(out, window);
	stores_grow(&out->stores);
	return true;
}

/* Begins a lap: all of the lap before the last one is free. */
static void out_begin(struct outgoing *out)
{
	out->before = out->start;
	out->start = out->placed;
	out->at = 0;
	out->anew = true;
	out->crowded = false;
	out_limit(out);
}

/* Makes room for so many bytes at out->at, which may become 0. Returns false if there is none
 * yet. */
static bool out_make(struct pair *pair, uint32_t bytes)
{
	struct outgoing *out = &pair->out;
	uint64_t low; /* free bytes at the beginning */
	out_look(pair);
	if (pair->unsound)
		return false;
	out_limit(out);
	if (out->at + bytes <= out->limit)
		return true;
	if (out->freed < out->start) {
		out->crowded = out->pressed = true;
		return false;
	}
	low = out->freed == out->placed ? UINT64_MAX : out->freed - out->start;
	if (bytes > out->window)
		window_set(out, RTE_ALIGN_CEIL(bytes, GRAIN));
	if (low < out->window - out->window / 4 || out->crowded) {
		out->pressed = true;
		while (out->at + bytes > out->window && window_grow(out))
			out->crowded = false;
	}
	out_limit(out);
	if (out->at + bytes > out->window && bytes <= low)
		out_begin(out);
	return out->at + bytes <= out->limit;
}

/* Returns false if there is no free slot, or the pair is unsound. */
static inline bool out_room(struct pair *pair)
{
	struct outgoing *out = &pair->out;
	if (likely(out->sent - out->taken < PAIR_SLOTS))
		return true;
	out_look(pair);
	return !pair->unsound && out->sent - out->taken < PAIR_SLOTS;
}

/* Finds room for a frame. Returns false if there is none, or the pair is unsound. */
static inline bool out_place(struct pair *pair, uint32_t head, uint32_t tail, struct place *place)
{
	struct outgoing *out = &pair->out;
	*place = (struct place){.bytes = bulk_bytes(head, tail)};
	if (unlikely(!out_room(pair)))
		return false;
	if (place->bytes > 0) {
		if (unlikely(out->at + place->bytes > out->limit) && !out_make(pair, place->bytes))
			return false;
		if (unlikely(out->at + place->bytes > out->backed) &&
			!out_back(out, out->at + place->bytes))
			return false;
	}
	place->at = out->at;
	place_pieces(place, &out->slots[out->sent % PAIR_SLOTS], out->bulk, head, tail);
	return true;
}

/* The frame is in the next slot: the peer may see it. flags: of its word. */
static inline void slot_publish(struct pair *pair, uint32_t head, uint32_t tail, uint64_t flags)
{
	struct outgoing *out = &pair->out;
	uint64_t word = word_lap(out->sent) | (uint64_t)head << WORD_LAP |
			(uint64_t)tail << WORD_TAIL | flags;
	/* Release: the frame is there before its word. Pairs with in_next(). */
	atomic_store_explicit(&out->slots[out->sent % PAIR_SLOTS].word, word, memory_order_release);
	out->sent++;
	pair->counters.sent++;
	pair->counters.bytes_sent += head + tail;
}

/* The frame has been copied to its place. */
static inline void out_publish(
	struct pair *pair, uint32_t head, uint32_t tail, uint64_t flags, const struct place *place)
{
	struct outgoing *out = &pair->out;
	if (place->bytes > 0) {
		flags |= out->anew ? WORD_ANEW : 0;
		out->anew = false;
		out->at += place->bytes;
		out->placed += place->bytes;
	}
	slot_publish(pair, head, tail, flags);
}

/* Copies what follows a frame's first segment: memory of a program, which may have gone. Returns
 * false if it has. */
static bool segments_copy(uint8_t *to, const struct rte_mbuf *segment, bool streams)
{
	for (; segment; segment = segment->next) {
		const void *from = rte_pktmbuf_mtod(segment, const void *);

		if (!(streams ? guard_copy_streamed : guard_copy)(to, from, segment->data_len))
			return false;
		to += segment->data_len;
	}
	return true;
}

/* How many bytes of a frame are its head: all, unless it is worth a tail. */
static inline uint32_t frame_head(const struct rte_mbuf *frame)
{
	if (frame->nb_segs == 2 && frame->pkt_len > PAIR_SLOT_ROOM &&
		frame->data_len >= FRAME_HEADER && frame->data_len <= PAIR_HEAD_MAX)
		return frame->data_len;
	return frame->pkt_len;
}

/* Returns false if there is no room. */
static inline bool frame_send(struct pair *pair, const struct rte_mbuf *frame)
{
	uint32_t head = frame_head(frame), tail = frame->pkt_len - head;
	bool streams;
	struct place place;
	if (!out_place(pair, head, tail, &place))
		return false;
	/* A tail is the only segment that is left, and lies on a cache line of its own. */
	streams = tail >= STORES_LEAST && stores_choose(&pair->out.stores, tail, glue_now(NULL));
	pair->counters.bytes_streamed += streams ? tail : 0;
	memcpy(place.head, rte_pktmbuf_mtod(frame, const void *), frame->data_len);
	if (segments_copy(
		    tail > 0 ? place.tail : place.head + frame->data_len, frame->next, streams)) {
		/* P9. A peer that has changed it spoils its own frames. */
		if (frame_is_small(head, tail))
			pair->out.header = header_read(place.head);
		out_publish(pair, head, tail, 0, &place);
	} else {
		pair->counters.errors++; /* lost: its place is the next frame's */
	}
	return true;
}

/* The same for one segment that a slot holds. */
static inline bool small_send(struct pair *pair, const struct rte_mbuf *frame)
{
	struct outgoing *out = &pair->out;
	uint8_t *to = out->slots[out->sent % PAIR_SLOTS].head;
	const uint8_t *from = rte_pktmbuf_mtod(frame, const uint8_t *);
	uint32_t length = frame->data_len;
	struct header header = header_read(from);
	if (unlikely(!out_room(pair)))
		return false;
	if (likely(headers_equal(header, out->header))) {
		memcpy(to, from + FRAME_HEADER, length - FRAME_HEADER);
		slot_publish(pair, length, 0, WORD_SAME);
		return true;
	}
	memcpy(to, from, length);
	out->header = header;
	slot_publish(pair, length, 0, 0);
	return true;
}

uint16_t pair_transmit(struct pair *pair, struct rte_mbuf **frames, uint16_t count)
{
	uint16_t n;
	for (n = 0; n < count && !pair->unsound; n++) {
		struct rte_mbuf *frame = frames[n];
		bool small = frame->nb_segs == 1 && frame_is_small(frame->pkt_len, 0);
		if (unlikely(!lengths_fine(frame->pkt_len, 0, pair->frame_size))) {
			pair->counters.errors++;
		} else if (unlikely(!(small ? small_send(pair, frame) : frame_send(pair, frame)))) {
			pair->counters.full++;
			break;
		}
		if (small)
			rte_pktmbuf_free_seg(frame);
		else
			rte_pktmbuf_free(frame);
	}
	return n;
}

static inline bool out_leaves(const struct outgoing *out, unsigned quarters)
{
	uint64_t bulk = RTE_MAX(out->window, SHARED_LEAST);

	return 4 * (out->sent - out->taken) < (4 - quarters) * (uint64_t)PAIR_SLOTS &&
	       4 * (out->placed - out->freed) <= (4 - quarters) * bulk;
}

bool pair_leaves(struct pair *pair, unsigned quarters)
{
	if (out_leaves(&pair->out, quarters))
		return true;
	out_look(pair);
	return out_leaves(&pair->out, quarters);
}

/* --- receiving --- */

/* The first byte of bulk that is not free. */
static inline uint64_t in_freed(const struct incoming *in)
{
	return in->oldest == in->newest ? in->placed : in->tails[in->oldest % PAIR_TAILS].start;
}

/* Where in the bulk the sender's window ends, as far as it was seen. */
static inline uint32_t in_reach(const struct incoming *in)
{
	return RTE_MAX(in->reach, in->at);
}

static inline void in_tell(struct incoming *in)
{
	uint64_t freed = in_freed(in);
	/* Release: nothing of what is given back is read any more. Pairs with out_look(). */
	if (freed != in->told) {
		in->told = freed;
		atomic_store_explicit(&in->progress->freed, freed, memory_order_release);
	}
	atomic_store_explicit(&in->progress->taken, in->taken, memory_order_release);
}

static void pair_free(struct pair *pair)
{
	munmap(pair->memory, pair_bytes());
	free(pair);
}

static void tail_free(void *memory, void *context)
{
	struct tail *tail = context;
	struct pair *pair = tail->pair;
	struct incoming *in = &pair->in;
	(void)memory;
	tail->held = false;
	while (in->oldest != in->newest && !in->tails[in->oldest % PAIR_TAILS].held)
		in->oldest++;
	if (!pair->closed && in_freed(in) - in->told >= in_reach(in) / TELL)
		in_tell(in); /* the sender need not wait for the end of a burst */
	else if (pair->closed && in->oldest == in->newest)
		pair_free(pair);
}

/* Makes the second segment of a frame of what lies in the bulk. */
static void tail_attach(struct pair *pair, struct rte_mbuf *frame, struct rte_mbuf *segment,
	uint8_t *bytes, uint32_t length)
{
	struct incoming *in = &pair->in;
	struct tail *tail = &in->tails[in->newest++ % PAIR_TAILS];
	tail->shared.free_cb = tail_free;
	tail->shared.fcb_opaque = tail;
	rte_mbuf_ext_refcnt_set(&tail->shared, 1);
	tail->pair = pair;
	tail->start = in->placed;
	tail->held = true;
	rte_pktmbuf_attach_extbuf(segment, bytes, RTE_BAD_IOVA, (uint16_t)length, &tail->shared);
	segment->data_off = 0;
	segment->data_len = (uint16_t)length;
	frame->next = segment;
	frame->nb_segs = 2;
}

/* A frame of one segment that lay in a slot (P9). NULL: no buffer. */
static inline struct rte_mbuf *small_make(
	struct pair *pair, const struct slot *slot, uint64_t word, uint32_t head)
{
	struct incoming *in = &pair->in;
	struct rte_mbuf *frame = rte_pktmbuf_alloc(pair->pool);
	uint8_t *to;
	if (unlikely(!frame))
		return NULL;
	frame->data_len = (uint16_t)head;
	frame->pkt_len = head;
	to = rte_pktmbuf_mtod(frame, uint8_t *);
	if (likely((word & WORD_SAME) != 0)) {
		header_write(to, in->header);
		memcpy(to + FRAME_HEADER, slot->head, head - FRAME_HEADER);
	} else {
		memcpy(to, slot->head, head);
		in->header = header_read(to);
	}
	return frame;
}

/* A frame of what lies at a place. NULL: no buffer. */
static inline struct rte_mbuf *frame_make(
	struct pair *pair, const struct place *place, uint32_t head, uint32_t tail)
{
	bool attach = tail > 0 && !pair->whole && pair->in.newest - pair->in.oldest < PAIR_TAILS;
	struct rte_mbuf *frame = rte_pktmbuf_alloc(pair->pool);
	struct rte_mbuf *segment = frame && attach ? rte_pktmbuf_alloc(pair->pool) : NULL;
	uint8_t *to;
	if (unlikely(!frame || (attach && !segment))) {
		rte_pktmbuf_free(frame);
		return NULL;
	}
	to = rte_pktmbuf_mtod(frame, uint8_t *);
	memcpy(to, place->head, head);
	frame->data_len = (uint16_t)head;
	frame->pkt_len = head + tail;
	if (attach) {
		tail_attach(pair, frame, segment, place->tail, tail);
	} else if (tail > 0) {
		memcpy(to + head, place->tail, tail);
		frame->data_len = (uint16_t)(head + tail);
		pair->counters.copied++;
	}
	return frame;
}

/* The next frame, which lies in the bulk as well. NULL: no buffer, or the pair is unsound. */
static __rte_noinline struct rte_mbuf *bulk_next(
	struct pair *pair, struct slot *slot, uint64_t word, uint32_t head, uint32_t tail)
{
	struct incoming *in = &pair->in;
	struct place place;
	struct rte_mbuf *frame;
	if (unlikely(!lengths_fine(head, tail, pair->frame_size) ||
		     !place_find(&place, slot, word, in->bulk, in->at, head, tail) ||
		     in->placed + place.bytes - in_freed(in) > PAIR_BULK)) {
		pair->unsound = true;
		return NULL;
	}
	frame = frame_make(pair, &place, head, tail);
	if (unlikely(!frame))
		return NULL;
	if (word & WORD_ANEW)
		in->reach = in->at;
	in->at = place.at + place.bytes;
	in->placed += place.bytes;
	return frame;
}

/* Is there no next frame? If there is one, *word is its slot's. */
static inline bool in_empty(const struct incoming *in, uint64_t *word)
{
	const struct slot *slot = &in->slots[in->taken % PAIR_SLOTS];
	/* Acquire: pairs with slot_publish(). */
	*word = atomic_load_explicit(&slot->word, memory_order_acquire);
	if ((((uint32_t)*word + 1) & LAP_MASK) != word_lap(in->taken))
		return false;
	/* The usual small frame has a second line, or a third, which then comes with the first. */
	rte_prefetch0(slot->head + LINE);
	rte_prefetch0(slot->head + 2 * LINE);
	return true;
}

/* The next frame, whose slot has this word. NULL: no buffer, or the pair is unsound. */
static inline struct rte_mbuf *in_next(struct pair *pair, uint64_t word)
{
	struct incoming *in = &pair->in;
	struct slot *slot = &in->slots[in->taken % PAIR_SLOTS];
	uint32_t head = (uint16_t)(word >> WORD_LAP), tail = (uint16_t)(word >> WORD_TAIL);
	struct rte_mbuf *frame;
	if (unlikely(((uint32_t)word & LAP_MASK) != word_lap(in->taken))) {
		pair->unsound = true;
		return NULL;
	}
	if (likely(frame_is_small(head, tail) && head >= FRAME_HEADER))
		frame = small_make(pair, slot, word, head);
	else
		frame = bulk_next(pair, slot, word, head, tail);
	if (unlikely(!frame)) {
		pair->counters.no_mbuf += !pair->unsound;
		return NULL;
	}
	in->taken++;
	pair->counters.bytes_received += head + tail;
	return frame;
}

/* A word of a frame is there. */
static __rte_noinline uint16_t frames_receive(
	struct pair *pair, struct rte_mbuf **frames, uint16_t count, uint64_t word)
{
	struct incoming *in = &pair->in;
	uint16_t n = 0;
	do
		frames[n] = in_next(pair, word);
	while (frames[n] && ++n < count && !in_empty(in, &word));
	if (n > 0 || in_freed(in) != in->told)
		in_tell(in);
	pair->counters.received += n;
	return n;
}

uint16_t pair_receive(struct pair *pair, struct rte_mbuf **frames, uint16_t count)
{
	struct incoming *in = &pair->in;
	uint64_t word;
	if (unlikely(pair->unsound))
		return 0;
	if (count > 0 && !in_empty(in, &word))
		return frames_receive(pair, frames, count, word);
	if (unlikely(in_freed(in) != in->told))
		in_tell(in);
	return 0;
}

bool pair_waits(const struct pair *pair)
{
	const struct incoming *in = &pair->in;
	/* Relaxed: what is to be read is read by in_next(). */
	uint64_t word =
		atomic_load_explicit(&in->slots[in->taken % PAIR_SLOTS].word, memory_order_relaxed);

	return pair->unsound || (((uint32_t)word + 1) & LAP_MASK) != word_lap(in->taken);
}

/* --- the whole --- */

/* Relaxed, as its reading: nothing depends on it. */
void pair_set_cpu(struct pair *pair, unsigned cpu)
{
	struct incoming *in = &pair->in;

	if (in->cpu == cpu + 1)
		return;
	in->cpu = cpu + 1;
	atomic_store_explicit(&in->progress->cpu, in->cpu, memory_order_relaxed);
}

int pair_cpu(const struct pair *pair)
{
	return (int)(atomic_load_explicit(&pair->out.progress->cpu, memory_order_relaxed) - 1);
}

bool pair_is_on(const struct pair *pair, unsigned cpu)
{
	return pair_cpu(pair) == (int)cpu;
}

bool pair_sound(const struct pair *pair)
{
	return !pair->unsound;
}

void pair_set_whole(struct pair *pair)
{
	pair->whole = true;
}

void pair_move(struct pair *from, struct pair *to)
{
	uint32_t at = 0, window = from->out.window;
	assert(to->out.sent == 0);
	window_set(&from->out, 0);
	window_set(&to->out, RTE_MAX(window, to->out.window));
	out_limit(&to->out);
	/* More than a ring full: the peer has taken frames, which is against the rules. */
	if (from->out.sent > PAIR_SLOTS)
		return;
	for (uint64_t n = 0; n < from->out.sent; n++) {
		struct slot *slot = &from->out.slots[n];
		/* P1 is for own words as well. */
		uint64_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);
		uint32_t head = (uint16_t)(word >> WORD_LAP), tail = (uint16_t)(word >> WORD_TAIL);
		struct place there, here;
		if (!lengths_fine(head, tail, to->frame_size) ||
			!place_find(&there, slot, word, from->out.bulk, at, head, tail) ||
			!out_place(to, head, tail, &here))
			return;
		memcpy(here.head, there.head, head);
		if (tail > 0)
			memcpy(here.tail, there.tail, tail);
		out_publish(to, head, tail, word & WORD_SAME, &here);
		at = there.at + there.bytes;
	}
	to->out.header = from->out.header;
}

void pair_rest(struct pair *pair)
{
	struct outgoing *out = &pair->out;
	bool idle = out->placed == out->rested, pressed = out->pressed;
	uint32_t window = idle ? PAIR_WINDOW : RTE_ALIGN_CEIL(out->window / 2, GRAIN);
	out->pressed = false;
	out->rested = out->placed;
	if (pressed || pair->unsound || out->window <= PAIR_WINDOW)
		return;
	out_look(pair);
	/* What is in flight lies below out->at, and has to lie in the new window. */
	if (pair->unsound || out->freed < out->start ||
		(out->freed != out->placed && out->at > window))
		return;
	window_set(out, window);
	out_limit(out);
	if (out->backed > window &&
		madvise(out->bulk + window, out->backed - window, MADV_REMOVE) == 0)
		out->backed = window;
}

struct pair *pair_open(void *memory, unsigned end, struct rte_mempool *pool, uint32_t frame_size,
	struct pair_budget *budget)
{
	struct memory *shared = memory;
	struct pair *pair = aligned_alloc(LINE, sizeof(*pair));
	assert(end < 2 && frame_size >= FRAME_MIN && frame_size <= FRAME_MAX);
	assert(rte_pktmbuf_data_room_size(pool) >= RTE_PKTMBUF_HEADROOM + frame_size);
	if (!pair)
		return NULL;
	*pair = (struct pair){.frame_size = frame_size, .pool = pool, .memory = shared};
	pair->out.slots = shared->slots[end];
	pair->out.bulk = shared->bulk[end];
	pair->out.progress = &shared->progress[end];
	pair->out.budget = budget;
	window_set(&pair->out, PAIR_WINDOW);
	stores_init(&pair->out.stores);
	out_limit(&pair->out);
	pair->in.slots = shared->slots[1 - end];
	pair->in.bulk = shared->bulk[1 - end];
	pair->in.progress = &shared->progress[1 - end];
	return pair;
}

void pair_close(struct pair *pair)
{
	pair->closed = true;
	window_set(&pair->out, 0);
	if (pair->in.oldest == pair->in.newest)
		pair_free(pair);
}

struct pair_counters pair_count(const struct pair *pair)
{
	struct pair_counters counters = pair->counters;
	counters.memory = pair_bytes_touched() + pair->out.backed + in_reach(&pair->in);
	return counters;
}
