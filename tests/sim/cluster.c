/* SPDX-License-Identifier: BSD-3-Clause */
/* cluster.c - see cluster.h: lives of endpoints, and the end. */
#include <sim/cluster_state.h>

#include <stdlib.h>
#include <string.h>

#include <base/clock.h>
#include <sim/report.h>

#define GREED 0.2 /* runs with a program that overdraws its credit */

/* --- what the library tells */

static mx_return_t error_tell(char *text, mx_return_t code)
{
	struct node *node = node_current();

	if (node)
		FAIL(node->simulation->cluster, "mx: node %u: error %d: %s", node->number, code,
			text);
	else
		report_stop("MX: error %d: %s", code, text);
	return code;
}

bool cluster_library_open(void)
{
	mx_set_error_handler(error_tell);
	return mx__init_api(MX_API) == MX_SUCCESS;
}

void cluster_library_close(void)
{
	mx_finalize();
}

/* --- lives */

struct cluster *cluster_create(
	struct simulation *simulation, uint64_t steps, uint64_t interval, uint64_t size_max)
{
	uint64_t nodes = simulation->node_count;
	struct cluster *cluster;

	if (steps == 0)
		return NULL;
	cluster = report_memory(calloc(1, sizeof(*cluster)));
	*cluster = (struct cluster){
		.simulation = simulation,
		.prng = prng_make(prng_mix(~simulation->seed)),
		.interval = interval,
		.size_max = size_max,
		.members = report_memory(calloc(nodes, sizeof(struct member))),
		.all = report_memory(calloc(POSTS_MAX, sizeof(struct post *))),
		.accounts = report_memory(calloc(nodes * nodes, sizeof(struct ledger))),
		.arrived = report_memory(calloc(nodes * nodes, sizeof(uint32_t))),
		.lives = report_memory(calloc(nodes * nodes, sizeof(uint32_t))),
		.severed = report_memory(calloc(nodes * nodes, sizeof(bool))),
	};
	cluster->share = credits_choose(&cluster->prng);
	/* So little that ranks take it from each other. */
	if (prng_chance(&cluster->prng, 0.25))
		cluster->share = 1 + cluster->share % 4;
	if (prng_chance(&cluster->prng, 0.5))
		cluster->spare = credits_choose(&cluster->prng);
	if (prng_chance(&cluster->prng, 0.5))
		cluster->block = prng_between(&cluster->prng, COPY_SEND_MAX, 4 * COPY_SEND_MAX);
	if (prng_chance(&cluster->prng, GREED))
		cluster->members[prng_below(&cluster->prng, nodes)].greedy = true;
	for (uint64_t i = 0; i < nodes; i++) {
		cluster->members[i].left = steps;
		cluster->members[i].routes = report_memory(calloc(nodes, sizeof(struct route)));
	}
	return cluster;
}

void cluster_free(struct cluster *cluster)
{
	if (!cluster)
		return;
	for (uint32_t i = 0; i < cluster->simulation->node_count; i++)
		free(cluster->members[i].routes);
	for (uint32_t i = 0; i < cluster->count; i++) {
		free(cluster->all[i]->data);
		free(cluster->all[i]);
	}
	free(cluster->members);
	free(cluster->all);
	free(cluster->accounts);
	free(cluster->arrived);
	free(cluster->lives);
	free(cluster->severed);
	free(cluster);
}

void cluster_begin(struct node *node)
{
	struct cluster *cluster = node->simulation->cluster;
	struct member *member = &cluster->members[node->number];
	struct route *self = &member->routes[node->number];
	mx_param_t params[2] = {{.key = MX_PARAM_UNEXP_QUEUE_MAX}, {.key = MX_PARAM_CONTEXT_ID}};
	uint32_t bits = 0, shift = 0;
	mx_endpoint_t endpoint;

	member->node = node;
	if (prng_chance(&cluster->prng, 0.4)) {
		bits = (uint32_t)prng_between(&cluster->prng, 1, 2);
		shift = (uint32_t)prng_below(&cluster->prng, 3 - bits);
	}
	params[1].val.context_id.bits = (uint8_t)bits;
	params[1].val.context_id.shift = (uint8_t)shift;
	member->context = ((UINT64_C(1) << bits) - 1) << shift;
	member->filter = FILTER + prng_chance(&cluster->prng, 0.25);
	params[0].val.unexp_queue_max = prng_chance(&cluster->prng, 0.3)
						? 0
						: (uint32_t)prng_between(&cluster->prng, 1, 4)
							  << 20;
	if (mx_open_endpoint(node->number % CLUSTER_BOARDS, node->number / CLUSTER_BOARDS,
		    member->filter, params, 2, &endpoint) != MX_SUCCESS)
		report_stop("node %u: the endpoint cannot be opened", node->number);
	member->endpoint = endpoint;
	connects_meet(cluster, node->number);
	self->known = true;
	mx_get_endpoint_addr(endpoint, &self->address);
	mx_decompose_endpoint_addr2(self->address, NULL, NULL, &member->session);
	member_plan(cluster, member);
}

void cluster_end(struct node *node)
{
	struct cluster *cluster = node->simulation->cluster;
	struct member *member = &cluster->members[node->number];
	mx_endpoint_t endpoint = member->endpoint;

	for (uint32_t i = 0; i < cluster->count; i++)
		if (cluster->all[i]->node == node->number)
			cluster->all[i]->over = true;
	mx_close_endpoint(endpoint);
	member->endpoint = NULL;
	member->posted.count = member->kept.count = member->pending.count = 0;
	member->handles = member->halted = false;
	member->refusals = 0;
	memset(member->last, 0, sizeof(member->last));
	member->timeout = 0;
	memset(member->routes, 0, cluster->simulation->node_count * sizeof(member->routes[0]));
}

/* --- the end */

bool cluster_done(const struct cluster *cluster)
{
	for (uint32_t i = 0; cluster && i < cluster->simulation->node_count; i++)
		if (cluster->members[i].left != 0)
			return false;
	return true;
}

/* C5. What is missing of a request; NULL: nothing. */
static const char *post_missing(const struct cluster *cluster, const struct post *post)
{
	const struct post *partner = post->partner;

	if (post->over || post->cancelled)
		return NULL;
	if (post->kind == POST_RECEIVE)
		return partner && !post->done && !post->forgotten ? "never got its message" : NULL;
	if (!post->done && !post->forgotten)
		return partner && post_may_vanish(cluster, partner) ? NULL : "never ends";
	if (post->kind == POST_CONNECT || post_may_vanish(cluster, post) ||
		cluster_troubled(cluster, post->node, post->to))
		return NULL;
	return !post->arrived                ? "never arrived"
	       : !partner && !post->consumed ? "was never received"
					     : NULL;
}

/* Sends whose receivers have given up what they were to fetch, and do not say so. */
static uint64_t sends_left(const struct cluster *cluster, uint32_t node)
{
	uint64_t left = 0;

	for (uint32_t i = 0; i < cluster->count; i++) {
		const struct post *post = cluster->all[i];

		left += post->node == node && post->kind == POST_SEND && !post->over &&
			post->partner && post_may_vanish(cluster, post->partner);
	}
	return left;
}

static bool member_quiet(const struct cluster *cluster, uint32_t node)
{
	return messages_pending(cluster->members[node].endpoint->messages) <=
	       sends_left(cluster, node);
}

bool cluster_quiet(const struct cluster *cluster)
{
	for (uint32_t i = 0; cluster && i < cluster->count; i++)
		if (post_missing(cluster, cluster->all[i]))
			return false;
	for (uint32_t i = 0; cluster && i < cluster->simulation->node_count; i++)
		if (cluster->members[i].endpoint &&
			(!member_quiet(cluster, i) || oracle_awaits_handler(&cluster->members[i])))
			return false;
	return true;
}

/* Nobody was told of their ends. */
static void forgotten_check(const struct cluster *cluster, const struct member *member)
{
	for (uint32_t i = 0; i < cluster->count; i++) {
		const struct post *post = cluster->all[i], *from = post->partner;

		if (post->node == member->node->number && post->kind == POST_RECEIVE &&
			post->forgotten && !post->over && from && !post_may_vanish(cluster, post) &&
			!post_may_vanish(cluster, from) &&
			!cluster_troubled(cluster, post->node, from->node))
			bytes_check(post, from,
				post->length < from->length ? post->length : from->length);
	}
}

/* In its last look it may have heard a peer's greeting, and answered, or asked a peer whether that
 * lives. */
static bool member_finished(const struct cluster *cluster, uint32_t node)
{
	const struct member *member = &cluster->members[node];

	return (member->quiet || member_quiet(cluster, node)) && !oracle_awaits_handler(member);
}

static void member_finish(struct cluster *cluster, struct member *member)
{
	node_enter(member->node);
	forgotten_check(cluster, member);
	for (uint32_t i = 0;
		i < member->pending.count && !simulation_failed(cluster->simulation);) {
		struct post *post = member->pending.posts[i];

		if (post->kind == POST_SEND) {
			i++;
			continue;
		}
		post_cancel(member, post);
		if (!post->cancelled)
			post_wrong(post, "has no match, and cannot be cancelled", 0);
	}
	credits_settle(member);
	node_leave(member->node);
}

void cluster_finish(struct cluster *cluster)
{
	for (uint32_t i = 0; cluster && i < cluster->count; i++) {
		struct post *post = cluster->all[i];
		const char *missing = post_missing(cluster, post);

		if (missing)
			FAIL(cluster,
				"mx: request %u (kind %u) of node %u to %u, %" PRIu64
				" bytes%s, %s (the oracle's match is %u)",
				post->number, post->kind, post->node, post->to, post->length,
				post->synchronous ? ", synchronous" : "", missing,
				post->partner ? post->partner->number : 0);
	}
	for (uint32_t i = 0; cluster && i < cluster->simulation->node_count; i++)
		if (cluster->members[i].endpoint && !simulation_failed(cluster->simulation)) {
			cluster->members[i].quiet = member_quiet(cluster, i);
			member_finish(cluster, &cluster->members[i]);
		}
	for (uint32_t i = 0; cluster && i < cluster->simulation->node_count; i++)
		if (cluster->members[i].endpoint && !member_finished(cluster, i))
			FAIL(cluster, "mx: node %u has messages that are under way for ever", i);
}

uint64_t cluster_count(const struct cluster *cluster)
{
	return cluster ? cluster->count : 0;
}
