/* SPDX-License-Identifier: BSD-3-Clause */
/* cluster_requests.c - what a program asks its endpoint for: connects, sends, receives, cancels, probes. */
#include <sim/cluster_state.h>

#include <stdlib.h>
#include <string.h>

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

static void connect_make(struct member *member, uint32_t to)
{
	struct cluster *cluster = cluster_here();
	struct post *post;

	if (member->routes[to].connect)
		return;
	post = post_make(member, POST_CONNECT, 0);
	post->to = to;
	post->bits = (uint64_t)post->number << NUMBER_AT;
	member->routes[to].connect = post;
	line_add(&member->pending, post);
	mx_iconnect(member->endpoint, nic_id_of(cluster->simulation->nodes[to].id.nid), to, FILTER,
		post->bits, post, &post->request);
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
	line_add(&member->pending, post);
	(post->synchronous ? mx_issend : mx_isend)(member->endpoint, segments, count,
		member->routes[to].address, post->bits, post, &post->request);
}

static void criteria_choose(struct cluster *cluster, struct post *post)
{
	uint64_t from = prng_below(&cluster->prng, cluster->simulation->node_count);

	post->mask = ~BITS_NUMBER;
	if (prng_chance(&cluster->prng, 0.4))
		post->mask &= ~BITS_NODE;
	if (prng_chance(&cluster->prng, 0.4))
		post->mask &= ~BITS_TAG;
	post->bits = (from << NODE_AT | prng_below(&cluster->prng, TAGS)) & post->mask;
}

void receive_post(struct member *member, struct post *post)
{
	mx_segment_t segments[SEGMENTS_MAX];
	uint32_t count = segments_cut(&cluster_here()->prng, post, segments);

	oracle_receive(member, post);
	line_add(&member->pending, post);
	mx_irecv(member->endpoint, segments, count, post->bits, post->mask, post, &post->request);
}

void receive_make(struct member *member)
{
	struct cluster *cluster = cluster_here();
	struct post *post = post_make(member, POST_RECEIVE,
		prng_chance(&cluster->prng, 0.7) ? cluster->size_max : length_choose(cluster));

	criteria_choose(cluster, post);
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

	if (post && post->kind != POST_SEND && post != member->last && post != member->withdrawn &&
		post != member->tested)
		post_cancel(member, post);
}

/* A send, or a receive of which the poll core knows. */
void forget_any(struct member *member)
{
	struct post *post = pending_choose(member);

	if (!post || post == member->last || post->kind == POST_CONNECT ||
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

	criteria_choose(cluster, &member->ask);
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
