/* SPDX-License-Identifier: BSD-3-Clause */
/* congestion.c - how much may be in flight to a peer: a window steered by delay, in Swift's manner.
 * One poll core.
 *
 * The delay of a frame is its round trip without the time that it waited in the receiver for the
 * acknowledgement (the header's delay field). As long as it stays below the target the window grows
 * by one frame per round trip, doubling before the first congestion; above it is cut in proportion
 * to the excess, at most once per round trip. A mark (ECN) counts as delay. The target lies above
 * the least delay seen lately, so that it needs no knowledge of the path, and is wider for small
 * windows, so that many senders to one port settle at fair shares. A whole round trip is never less
 * than the least delay: the first one bounds that delay for a peer whose first frames meet a queue.
 *
 * I1. WINDOW_MIN <= window <= WINDOW_MAX. Below one frame, single frames go at the pace of window /
 *     rtt.
 * I2. The frames in flight never exceed the window, the peer's credit, FRAME_WINDOW; probes are the
 *     exception.
 */
#include <transport/congestion.h>

#include <rte_common.h>

#define WINDOW_MIN     (WINDOW_ONE / 64)
#define ROOT_ONE       8 /* of WINDOW_ONE / WINDOW_MIN */
#define WINDOW_MAX     (FRAME_WINDOW * WINDOW_ONE)
#define FLOOR_WINDOW   (4 * WINDOW_ONE)
#define FLOOR_LONE     (32 * WINDOW_ONE)
#define FLOOR_CREDIT   32 /* frames */
#define WINDOW_INITIAL (8 * WINDOW_ONE)
#define TARGET_SPREAD  (100 * MICROSECOND) /* more, over the window's square root */
#define LOSS_HEAVY     8                   /* one in so many */
#define DELAY_PERIOD   (2 * SECOND)

void congestion_reset(struct peer *peer)
{
	peer->window = WINDOW_INITIAL;
	peer->growth = 0;
	peer->pace_due = 0;
	peer->cut_at = 0;
	peer->window_before = 0;
	peer->slow_start = true;
}

/* A smoothed value moves by one part in so many of what is new. Rounded towards none, or it would
 * drift. */
static inline uint32_t smooth(uint32_t old, uint32_t sample, int32_t parts)
{
	return old + (uint32_t)(((int64_t)sample - (int64_t)old) / parts);
}

/* Of an exact delay: one that is too low would count for seconds. */
static void delay_note(struct transport *transport, struct peer *peer, uint32_t delay)
{
	if (transport->now >= peer->delay_period) {
		bool quiet = transport->now - peer->delay_period > DELAY_PERIOD;

		if (peer->delay_period != 0)
			peer->delay_min = quiet ? delay : peer->delay_min_next;
		peer->delay_min_next = delay;
		peer->delay_period = transport->now + DELAY_PERIOD;
	}
	peer->delay_min_next = RTE_MIN(peer->delay_min_next, delay);
	peer->delay_min = RTE_MIN(peer->delay_min, delay);
}

void congestion_rtt(
	struct transport *transport, struct peer *peer, uint32_t rtt, uint32_t delay, bool exact)
{
	uint32_t difference = rtt > peer->rtt ? rtt - peer->rtt : peer->rtt - rtt;

	rtt = RTE_MAX(rtt, 1u);
	peer->measured = (uint32_t)transport->now;
	if (peer->rtt == 0)
		peer->delay_min = rtt;
	if (exact)
		delay_note(transport, peer, delay);
	if (peer->rtt == 0) {
		peer->rtt = rtt;
		peer->variance = rtt / 2;
		peer->delay = delay;
		return;
	}
	peer->variance = smooth(peer->variance, difference, 4);
	peer->rtt = RTE_MAX(smooth(peer->rtt, rtt, 8), 1u);
	peer->delay = smooth(peer->delay, delay, 4);
}

/* The square root, at least 1: a table of the power of two would do; so few steps are as good. */
static uint32_t root_of(uint32_t number)
{
	uint32_t root = 1;

	while ((root + 1) * (root + 1) <= number)
		root++;
	return root;
}

/* Windows below one frame count in parts of WINDOW_MIN. */
static uint64_t congestion_target(const struct peer *peer)
{
	uint64_t spread;

	if (peer->window >= WINDOW_ONE)
		spread = TARGET_SPREAD / root_of(peer->window / WINDOW_ONE);
	else
		spread = TARGET_SPREAD * ROOT_ONE / root_of(peer->window / WINDOW_MIN);
	return peer->delay_min + TARGET_DELAY + spread;
}

/* Mostly it is so by far, which takes no division to see. */
static bool delay_fine(const struct peer *peer, uint32_t delay)
{
	return delay <= peer->delay_min + TARGET_DELAY || delay <= congestion_target(peer);
}

/* Neither delay nor losses cut the window below it. A peer that lets much be in flight has few
 * senders: then a few frames of each do no harm, whereas a window below them makes every hiccup of
 * a host expensive. Where no frame leaves the host, no queue of a network is to be kept short, and
 * the two ends work at the same time only if more is in flight than each takes in a turn. */
static uint32_t window_floor(const struct transport *transport, const struct peer *peer)
{
	if (peer->credit >= FLOOR_CREDIT)
		return transport->port->lone ? FLOOR_LONE : FLOOR_WINDOW;
	return peer->credit >= FLOOR_CREDIT / 4 ? WINDOW_ONE : WINDOW_MIN;
}

/* The window, of which no more is used than the credit allows, becomes window * part / 256, at most
 * once per round trip. */
static void congestion_cut(struct transport *transport, struct peer *peer, uint32_t part)
{
	uint32_t used = RTE_MIN(peer->window, peer->credit * WINDOW_ONE);

	if (transport->now - peer->cut_at < peer->rtt)
		return;
	peer->window_before = peer->window;
	peer->window =
		RTE_MAX((uint32_t)((uint64_t)used * part / 256), window_floor(transport, peer));
	peer->growth = 0;
	peer->cut_at = transport->now;
	peer->slow_start = false;
	COUNT(transport, congestion_cuts);
}

static void congestion_grow(struct peer *peer, unsigned frames)
{
	if (peer->slow_start) {
		peer->window = RTE_MIN(peer->window + frames * WINDOW_ONE, WINDOW_MAX);
		return;
	}
	if (peer->window < WINDOW_ONE) {
		peer->window += peer->window / 2 + 1;
		return;
	}
	peer->growth += frames;
	if (peer->growth >= peer->window / WINDOW_ONE) {
		peer->growth = 0;
		peer->window = RTE_MIN(peer->window + WINDOW_ONE, WINDOW_MAX);
	}
}

void congestion_delivered(struct transport *transport, struct peer *peer, unsigned frames,
	uint32_t delay, bool marked)
{
	uint64_t excess;

	if (marked) {
		congestion_cut(transport, peer, 224);
		return;
	}
	if (delay_fine(peer, delay)) {
		/* A window that is not used says nothing about the path. */
		if (peer_pipe(peer) + frames >= peer->window / WINDOW_ONE / 2)
			congestion_grow(peer, frames);
		return;
	}
	/* Cut by 0.8 of the excess' share, at most by half: 256 - 205 * excess / delay. */
	excess = delay - congestion_target(peer);
	if (transport->now - peer->cut_at >= peer->rtt)
		congestion_cut(transport, peer,
			RTE_MAX(256 - (uint32_t)(205 * excess / delay), UINT32_C(128)));
}

/* A loss without delay is a bad link rather than a full queue, unless it takes a good part of what
 * was in flight. */
void congestion_lost(struct transport *transport, struct peer *peer, uint32_t frames)
{
	bool delayed = !delay_fine(peer, peer->delay);
	bool heavy = frames > 1 && frames * LOSS_HEAVY > peer_pipe(peer) + frames;

	if (delayed || heavy)
		congestion_cut(transport, peer, 128);
}

void congestion_timeout(struct transport *transport, struct peer *peer)
{
	if (peer->backoff <= 1)
		peer->window_before = peer->window;
	peer->window = RTE_MIN(peer->window, WINDOW_ONE);
	if (peer->backoff > 3)
		peer->window = RTE_MAX(
			peer->window / 2, RTE_MIN(window_floor(transport, peer), WINDOW_ONE));
	peer->growth = 0;
	peer->cut_at = transport->now;
	peer->slow_start = true;
	COUNT(transport, congestion_cuts);
}

void congestion_undo(struct peer *peer)
{
	peer->window = RTE_MAX(peer->window, peer->window_before);
	peer->window_before = 0;
}
