/* SPDX-License-Identifier: BSD-3-Clause */
/* cluster_program.c - the programs: their steps, their unexpected handlers. */
#include <sim/cluster_state.h>

#include <base/clock.h>

#define DATA_LEAST 1024               /* bytes of a message that the handler has in hand */
#define DRAIN      (2 * MILLISECOND)  /* between two looks of a program that has made its steps */
#define DRAIN_LATE (20 * MILLISECOND) /* when all have */
#define FLOOD      100

/* --- the handler, and peers */

/* C3. */
static void shown_check(const struct member *member, const struct post *message,
	mx_endpoint_addr_t source, uint32_t length, const uint8_t *data)
{
	if (member->halted || !member->handles)
		post_wrong(message, "is shown, but the handler is halted", 0);
	if (message->length != length)
		post_wrong(message, "is shown with another length", length);
	source_check(cluster_here(), message, source, message->node);
	if (!data && length <= DATA_LEAST)
		post_wrong(message, "is shown without its data", 0);
	for (uint32_t i = 0; data && i < length; i++)
		if (data[i] != post_pattern(message->number, i)) {
			post_wrong(message, "is shown with a wrong byte", i);
			return;
		}
}

static void peer_disconnect(struct member *member, uint32_t peer)
{
	struct cluster *cluster = cluster_here();
	uint32_t me = member->node->number, nodes = cluster->simulation->node_count;

	if (peer == me || !member->routes[peer].known)
		return;
	cluster->severed[me * nodes + peer] = cluster->severed[peer * nodes + me] = true;
	member->routes[peer].known = false;
	mx_disconnect(member->endpoint, member->routes[peer].address);
}

/* A receive of exactly the message, as MPICH posts it. */
static void handler_receive(struct member *member, const struct post *message)
{
	struct post *post = post_make(member, POST_RECEIVE, message->length);

	post->mask = ~BITS_NUMBER;
	post->bits = message->bits & post->mask;
	receive_post(member, post);
}

static mx_unexp_handler_action_t handler(
	void *context, mx_endpoint_addr_t source, uint64_t match_info, uint32_t length, void *data)
{
	struct member *member = context;
	struct cluster *cluster = cluster_here();
	struct post *message;
	double choice = prng_fraction(&cluster->prng);
	bool finished;

	if (member->showing)
		post_wrong(member->showing, "is shown still, and so is another one", 0);
	message = oracle_show(member, match_info);
	if (!message)
		return MX_RECV_FINISHED;
	shown_check(member, message, source, length, data);
	if ((choice -= 0.3) < 0)
		handler_receive(member, message);
	else if ((choice -= 0.15) < 0)
		receive_make(member);
	else if ((choice -= 0.1) < 0)
		send_make(member, message->node, length_choose(cluster));
	else if ((choice -= 0.05) < 0)
		cancel_any(member);
	else if ((choice -= 0.01) < 0)
		peer_disconnect(member, message->node);
	finished = choice > 0.25;
	oracle_shown(member, finished);
	return finished ? MX_RECV_FINISHED : MX_RECV_CONTINUE;
}

static void handler_change(struct member *member)
{
	if (prng_chance(&cluster_here()->prng, 0.5)) {
		member->halted = !member->halted;
		if (member->halted)
			mx_disable_progression(member->endpoint);
		else
			mx_reenable_progression(member->endpoint);
	} else {
		member->handles = !member->handles;
		mx_register_unexp_handler(
			member->endpoint, member->handles ? handler : NULL, member);
	}
}

/* --- steps */

static void flood(struct member *member, uint32_t to)
{
	for (uint32_t i = 0; i < FLOOD; i++)
		send_make(member, to, prng_below(&cluster_here()->prng, 8));
}

static void member_act(struct member *member)
{
	struct cluster *cluster = cluster_here();
	uint32_t peer = (uint32_t)prng_below(&cluster->prng, cluster->simulation->node_count);
	double choice = prng_fraction(&cluster->prng);

	if ((choice -= 0.4) < 0)
		send_make(member, peer, length_choose(cluster));
	else if ((choice -= 0.38) < 0)
		receive_make(member);
	else if ((choice -= 0.06) < 0)
		cancel_any(member);
	else if ((choice -= 0.08) < 0)
		probe_any(member);
	else if ((choice -= 0.03) < 0)
		forget_any(member);
	else if ((choice -= 0.03) < 0)
		handler_change(member);
	else if ((choice -= 0.005) < 0)
		timeout_change(member);
	else if ((choice -= 0.002) < 0)
		flood(member, peer);
	else if ((choice -= 0.004) < 0)
		peer_disconnect(member, peer);
}

static void context_drain(struct member *member, uint64_t bits)
{
	struct post **last = &member->last[bits];

	while ((!*last || (*last)->done) && !simulation_failed(cluster_here()->simulation)) {
		*last = post_make(member, POST_RECEIVE, cluster_here()->size_max);
		(*last)->wildcard = true;
		(*last)->mask = member->context;
		(*last)->bits = bits;
		receive_post(member, *last);
		tests_peeked(member);
	}
}

/* The steps are over: receives, one at a time, take what is left. */
static void member_drain(struct member *member)
{
	if (member->halted)
		handler_change(member);
	tests_peeked(member);
	oracle_catch_up(member);
	for (uint64_t i = 0; i < CONTEXTS; i++)
		if ((i & member->context) == i)
			context_drain(member, i);
}

static void member_step(void *object, uint64_t life)
{
	struct member *member = object;
	struct node *node = member->node;
	struct cluster *cluster = node->simulation->cluster;

	if (!node->up || node->closing || node->life != life ||
		simulation_failed(cluster->simulation))
		return;
	node_enter(node);
	if (member->left > 0) {
		member->left--;
		for (uint64_t i = prng_between(&cluster->prng, 1, 4); i > 0; i--) {
			credits_forge(member);
			member_act(member);
		}
		tests(member);
	} else {
		member_drain(member);
	}
	credits_check(member);
	limits_check(member);
	member->looked = simulation_now(cluster->simulation);
	node_leave(node);
	node_plan(node);
	member_plan(cluster, member);
}

void member_plan(struct cluster *cluster, struct member *member)
{
	uint64_t delay = member->left > 0 ? prng_below(&cluster->prng, 2 * cluster->interval)
			 : cluster->simulation->over ? DRAIN_LATE
						     : DRAIN;

	sim_clock_at(&cluster->simulation->clock, simulation_now(cluster->simulation) + delay,
		member_step, member, member->node->life);
}
