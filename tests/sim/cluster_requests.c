/* SPDX-License-Identifier: BSD-3-Clause */
/* cluster_requests.c - what a program asks its endpoint for: connects, sends, receives,
 * cancels, probes. */
#include <sim/cluster_state.h>

#include <stdlib.h>
#include <string.h>

#include <base/clock.h>
#include <sim/report.h>

#define SEGMENTS_MAX 4

struct post *post_make(struct member *member, enum post_kind kind, uint64_t length)
{
	struct cluster *cluster = cluster_here();
	struct post *post = report_memory(calloc(1, sizeof(*post)));

	if (cluster->count == POSTS_MAX)
		report_stop("there are more than %u requests", POSTS_MAX);
	cluster->all[cluster->count++] = post;
	post->kind = kind;
	post->number = cluster->count;
	post->node = member->node->number;
	post->life = member->node->life;
	post->length = length;
	post->data = report_memory(malloc(length + 1));
	memset(post->data, POISON, length + 1);
	return post;
}

/* Its memory, in several pieces now and then. Returns how many. */
static uint32_t segments_cut(struct prng *prng, const struct post *post, mx_segment_t *segments)
{
	uint32_t count = prng_chance(prng, 0.3) ? (uint32_t)prng_between(prng, 2, SEGMENTS_MAX) : 1;
	uint64_t done = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t left = post->length - done;
		uint64_t bytes = i + 1 == count ? left : prng_below(prng, left + 1);

		segments[i] = (mx_segment_t){post->data + done, (uint32_t)bytes};
		done += bytes;
	}
	return count;
}

uint64_t length_choose(struct cluster *cluster)
{
	return prng_chance(&cluster->prng, 0.05) ? 0
						 : prng_scale(&cluster->prng, 1, cluster->size_max);
}

/* --- time limits */

#define LIMIT_MOST 64                 /* ms */
#define LATE       (50 * MILLISECOND) /* of a request that can be ended at any time */

void timeout_change(struct member *member)
{
	struct cluster *cluster = cluster_here();
	uint32_t time = prng_chance(&cluster->prng, 0.7)
				? MX_INFINITE
				: (uint32_t)prng_scale(&cluster->prng, 1, LIMIT_MOST);

	member->timeout = time == MX_INFINITE ? 0 : time * MILLISECOND;
	mx_set_request_timeout(member->endpoint, NULL, time);
}

/* It is about to be posted. */
static void limit_begin(const struct member *member, struct post *post)
{
	if (member->timeout != 0)
		post->deadline = simulation_now(member->node->simulation) + member->timeout;
}

/* It is posted. The handler may have cancelled it meanwhile. */
static void limit_change(struct member *member, struct post *post)
{
	struct cluster *cluster = cluster_here();
	uint32_t time = (uint32_t)prng_scale(&cluster->prng, 1, LIMIT_MOST);

	if (post->cancelled || post->forgotten || !prng_chance(&cluster->prng, 0.1))
		return;
	if (prng_chance(&cluster->prng, 0.2))
		time = MX_INFINITE;
	mx_set_request_timeout(member->endpoint, post->request, time);
	post->deadline =
		time == MX_INFINITE ? 0 : simulation_now(cluster->simulation) + time * MILLISECOND;
}

/* Sends that have been copied, or wait, and connects. A longer one may be under way. */
void limits_check(const struct member *member)
{
	for (uint32_t i = 0; i < member->pending.count; i++) {
		const struct post *post = member->pending.posts[i];

		if (post->kind != POST_RECEIVE && post->length <= COPY_SEND_MAX &&
			post->deadline != 0 && post->deadline + LATE < member->looked)
			post_wrong(post, "has not ended, and its time is over", post->deadline);
	}
}

/* --- connects and sends */

static void connect_meet(const struct cluster *cluster, struct post *post)
{
	const struct member *to = &cluster->members[post->to];

	if (!to->endpoint)
		return;
	post->met |= post->filter == to->filter;
	post->missed |= post->filter != to->filter;
}

void connects_meet(struct cluster *cluster, uint32_t to)
{
	for (uint32_t i = 0; i < cluster->simulation->node_count; i++) {
		struct line *pending = &cluster->members[i].pending;

		for (uint32_t k = 0; k < pending->count; k++)
			if (pending->posts[k]->kind == POST_CONNECT && pending->posts[k]->to == to)
				connect_meet(cluster, pending->posts[k]);
	}
}

static void connect_make(struct member *member, uint32_t to)
{
	struct cluster *cluster = cluster_here();
	struct post *post;

	if (member->routes[to].connect)
		return;
	post = post_make(member, POST_CONNECT, 0);
	post->to = to;
	post->bits = (uint64_t)post->number << NUMBER_AT;
	post->filter = cluster->members[to].filter + prng_chance(&cluster->prng, 0.1);
	connect_meet(cluster, post);
	member->routes[to].connect = post;
	limit_begin(member, post);
	line_add(&member->pending, post);
	mx_iconnect(member->endpoint, nic_id_of(cluster->simulation->nodes[to].id.nid),
		to / CLUSTER_BOARDS, post->filter, post->bits, post, &post->request);
	limit_change(member, post);
}

void send_make(struct member *member, uint32_t to, uint64_t length)
{
	struct cluster *cluster = cluster_here();
	mx_segment_t segments[SEGMENTS_MAX];
	struct post *post;
	uint32_t count;

	if (!member->routes[to].known) {
		connect_make(member, to);
		return;
	}
	post = post_make(member, POST_SEND, length);
	post->synchronous = prng_chance(&cluster->prng, 0.25);
	post->to = to;
	mx_decompose_endpoint_addr2(member->routes[to].address, NULL, NULL, &post->session);
	post->bits = (uint64_t)post->number << NUMBER_AT | post->node << NODE_AT |
		     prng_below(&cluster->prng, TAGS);
	for (uint64_t i = 0; i < length; i++)
		post->data[i] = post_pattern(post->number, i);
	count = segments_cut(&cluster->prng, post, segments);
	limit_begin(member, post);
	line_add(&member->pending, post);
	(post->synchronous ? mx_issend : mx_isend)(member->endpoint, segments, count,
		member->routes[to].address, post->bits, post, &post->request);
	limit_change(member, post);
}

/* What a receive or a probe asks for; a receive has these bits in its mask. */
static void criteria_choose(struct cluster *cluster, struct post *post, uint64_t context)
{
	uint64_t from = prng_below(&cluster->prng, cluster->simulation->node_count);

	post->mask = ~BITS_NUMBER;
	if (prng_chance(&cluster->prng, 0.4))
		post->mask &= ~BITS_NODE;
	if (prng_chance(&cluster->prng, 0.4))
		post->mask &= ~BITS_TAG;
	post->mask |= context;
	post->bits = (from << NODE_AT | prng_below(&cluster->prng, TAGS)) & post->mask;
}

void receive_post(struct member *member, struct post *post)
{
	mx_segment_t segments[SEGMENTS_MAX];
	uint32_t count = segments_cut(&cluster_here()->prng, post, segments);

	oracle_receive(member, post);
	limit_begin(member, post);
	line_add(&member->pending, post);
	mx_irecv(member->endpoint, segments, count, post->bits, post->mask, post, &post->request);
	limit_change(member, post);
}

void receive_make(struct member *member)
{
	struct cluster *cluster = cluster_here();
	struct post *post = post_make(member, POST_RECEIVE,
		prng_chance(&cluster->prng, 0.7) ? cluster->size_max : length_choose(cluster));

	criteria_choose(cluster, post, member->context);
	receive_post(member, post);
}

static void cancelled(struct member *member, struct post *post)
{
	post->cancelled = true;
	line_remove(&member->pending, post);
	line_remove(&member->posted, post);
	if (post->kind == POST_CONNECT)
		member->routes[post->to].connect = NULL;
	if (post->partner)
		post_wrong(post, "is cancelled after its match", 0);
	for (uint64_t i = 0; i < post->length; i++)
		if (post->data[i] != POISON) {
			post_wrong(post, "is cancelled, and has a byte", i);
			return;
		}
}

void post_cancel(struct member *member, struct post *post)
{
	struct post *outer = member->withdrawn; /* the handler may cancel, too */
	uint32_t result;

	member->withdrawn = post;
	mx_cancel(member->endpoint, &post->request, &result);
	member->withdrawn = outer;
	oracle_catch_up(member);
	if (result)
		cancelled(member, post);
}

static struct post *pending_choose(struct member *member)
{
	return member->pending.count == 0
		       ? NULL
		       : member->pending
				 .posts[prng_below(&cluster_here()->prng, member->pending.count)];
}

void cancel_any(struct member *member)
{
	struct post *post = pending_choose(member);

	if (post && post->kind != POST_SEND && !post->wildcard && post != member->withdrawn &&
		post != member->tested)
		post_cancel(member, post);
}

/* A send, or a receive of which the poll core knows. */
void forget_any(struct member *member)
{
	struct post *post = pending_choose(member);

	if (!post || post->wildcard || post->kind == POST_CONNECT ||
		(post->kind == POST_RECEIVE && !post->linked))
		return;
	post->forgotten = true;
	line_remove(&member->pending, post);
	mx_forget(member->endpoint, &post->request);
}

void probe_any(struct member *member)
{
	struct cluster *cluster = cluster_here();
	mx_status_t status;
	uint32_t result;
	struct post *found;

	criteria_choose(cluster, &member->ask, 0);
	mx_iprobe(member->endpoint, member->ask.bits, member->ask.mask, &status, &result);
	oracle_catch_up(member);
	/* What the handler has left, or is to be shown next, is found without a search. */
	found = line_find(&member->kept, &member->ask, false);
	if (!found || !found->taken)
		found = member->found;
	if (!result && !found)
		return;
	if (!result || !found || status.match_info != found->bits ||
		status.msg_length != found->length)
		FAIL(cluster,
			"mx: node %u probes for %#" PRIx64 " and finds message %" PRIu64
			", but %u is due",
			member->node->number, member->ask.bits,
			result ? status.match_info >> NUMBER_AT : 0, found ? found->number : 0);
	else
		source_check(cluster, found, status.source, found->node);
}
