/* SPDX-License-Identifier: BSD-3-Clause */
/* cluster_results.c - ends of requests, as the library reports them, compared with the oracle
 * (cluster.h). */
#include <sim/cluster_state.h>

#include <stdio.h>
#include <string.h>

void bytes_check(const struct post *receive, const struct post *message, uint64_t length)
{
	for (uint64_t i = 0; i < receive->length; i++)
		if (receive->data[i] != (i < length ? post_pattern(message->number, i) : POISON)) {
			post_wrong(receive, "has a wrong byte", i);
			return;
		}
}

/* C5. */
static bool code_is_of_trouble(mx_status_code_t code)
{
	return code == MX_STATUS_ENDPOINT_CLOSED || code == MX_STATUS_ENDPOINT_UNREACHABLE ||
	       code == MX_STATUS_BAD_SESSION || code == MX_STATUS_BAD_RDMAWIN;
}

/* C7. */
static void expiry_check(const struct cluster *cluster, struct post *post)
{
	post->expired = true;
	if (post->deadline == 0 || simulation_now(cluster->simulation) < post->deadline)
		post_wrong(post, "ends because its time is over, and it is not", post->deadline);
}

static bool failure_check(
	const struct cluster *cluster, struct post *post, mx_status_code_t code, uint32_t peer)
{
	if (code == MX_STATUS_SUCCESS || code == MX_STATUS_TRUNCATED)
		return false;
	if (code == MX_STATUS_TIMEOUT) {
		expiry_check(cluster, post);
		return true;
	}
	if (code == MX_STATUS_BAD_RDMAWIN && post->kind == POST_RECEIVE &&
		post_may_vanish(cluster, post->partner))
		return true;
	if (!cluster_troubled(cluster, post->node, peer))
		post_wrong(post, "fails for no reason", code);
	else if (!code_is_of_trouble(code))
		post_wrong(post, "fails for a wrong reason", code);
	return true;
}

void source_check(const struct cluster *cluster, const struct post *post, mx_endpoint_addr_t source,
	uint32_t of)
{
	const struct node *node = &cluster->simulation->nodes[of];
	uint64_t nic;
	uint32_t id;

	mx_decompose_endpoint_addr(source, &nic, &id);
	if (nic != nic_id_of(node->id.nid) || id != of / CLUSTER_BOARDS)
		post_wrong(post, "has another source", id);
}

/* C2 */
static void receive_done(struct cluster *cluster, struct post *post, const mx_status_t *status)
{
	const struct post *from = post->partner;
	uint64_t length;

	if (!from || status->match_info != from->bits) {
		post_wrong(post, "gets another message", status->match_info >> NUMBER_AT);
		return;
	}
	if (failure_check(cluster, post, status->code, from->node))
		return;
	source_check(cluster, post, status->source, from->node);
	length = from->length < post->length ? from->length : post->length;
	if (status->xfer_length != length || status->msg_length != from->length ||
		(status->code == MX_STATUS_TRUNCATED) != (from->length > post->length))
		post_wrong(post, "has another length", status->xfer_length);
	bytes_check(post, from, length);
}

/* C4 */
static void send_done(struct cluster *cluster, struct post *post, const mx_status_t *status)
{
	struct route *route = &cluster->members[post->node].routes[post->to];

	if (status->match_info != post->bits || status->msg_length != post->length)
		post_wrong(post, "has another length", status->msg_length);
	if (failure_check(cluster, post, status->code, post->to)) {
		route->known &= post->expired;
		if (post->expired)
			memset(post->data, POISON, post->length + 1);
		return;
	}
	oracle_catch_up(&cluster->members[post->to]);
	if ((post->synchronous && !post->partner && !post->consumed && !post->taken) ||
		(post->length > COPY_SEND_MAX && !post->arrived))
		post_wrong(post, "is done too early", post->arrived);
	memset(post->data, POISON, post->length + 1);
}

static void connect_done(struct cluster *cluster, struct post *post, const mx_status_t *status)
{
	const struct member *to = &cluster->members[post->to];
	struct route *route = &cluster->members[post->node].routes[post->to];
	uint32_t session;

	route->connect = NULL;
	if (status->code == MX_STATUS_BAD_KEY) {
		if (!post->missed)
			post_wrong(post, "is refused, and has the peer's filter", post->filter);
		return;
	}
	if (failure_check(cluster, post, status->code, post->to))
		return;
	if (!post->met)
		post_wrong(post, "succeeds with another filter", post->filter);
	source_check(cluster, post, status->source, post->to);
	mx_decompose_endpoint_addr2(status->source, NULL, NULL, &session);
	if (session != to->session && !cluster_troubled(cluster, post->node, post->to))
		post_wrong(post, "leads to another session", session);
	route->known = true;
	route->address = status->source;
}

static void post_done(struct member *member, struct post *post, const mx_status_t *status)
{
	struct cluster *cluster = cluster_here();

	if (post->done || post->cancelled || post->forgotten || status->context != post) {
		post_wrong(post, "is done twice", post->cancelled);
		return;
	}
	oracle_catch_up(member);
	post->done = true;
	line_remove(&member->pending, post);
	simulation_note(cluster->simulation, simulation_now(cluster->simulation));
	simulation_note(cluster->simulation, (uint64_t)post->number << 8 | status->code);
	if (cluster->simulation->tracing)
		printf("%12" PRIu64 " mx: request %u of node %u is done, status %d\n",
			simulation_now(cluster->simulation), post->number, post->node,
			status->code);
	if (post->kind == POST_SEND)
		send_done(cluster, post, status);
	else if (post->kind == POST_RECEIVE)
		receive_done(cluster, post, status);
	else
		connect_done(cluster, post, status);
}

/* --- completions */

static void post_test(struct member *member, struct post *post, bool certain)
{
	mx_status_t status;
	uint32_t result;

	member->tested = post;
	mx_test(member->endpoint, &post->request, &status, &result);
	member->tested = NULL;
	if (result)
		post_done(member, post, &status);
	else if (certain)
		post_wrong(post, "is told by a peek, and is not done", 0);
}

static void tests_each(struct member *member)
{
	for (uint32_t i = 0; i < member->pending.count;) {
		struct post *post = member->pending.posts[i];

		post_test(member, post, false);
		if (i < member->pending.count && member->pending.posts[i] == post)
			i++;
	}
}

static struct post *pending_of(const struct member *member, mx_request_t request)
{
	for (uint32_t i = 0; i < member->pending.count; i++)
		if (member->pending.posts[i]->request == request)
			return member->pending.posts[i];
	return NULL;
}

void tests_peeked(struct member *member)
{
	mx_request_t request;
	struct post *post;
	uint32_t result;

	while (!simulation_failed(cluster_here()->simulation)) {
		mx_ipeek(member->endpoint, &request, &result);
		if (!result)
			return;
		post = pending_of(member, request);
		if (!post) {
			FAIL(cluster_here(), "mx: node %u peeks at a request that is none",
				member->node->number);
			return;
		}
		post_test(member, post, true);
	}
}

/* The request that ended first, of such bits; NULL: none has. */
static const struct post *ended_first(const struct member *member, uint64_t bits, uint64_t mask)
{
	const struct mx_endpoint *endpoint = member->endpoint;

	/* In their order, without the index that the endpoint itself searches by. */
	for (uint32_t i = endpoint->searched.head; i != KEPT_NONE;
		i = endpoint->requests.base[i].next) {
		const struct request *request = request_at(endpoint, i);

		if ((request->status.match_info & mask) == bits)
			return request->status.context;
	}
	list_each (const struct request, request, &endpoint->ended, link)
		if ((request->status.match_info & mask) == bits)
			return request->status.context;
	return NULL;
}

/* Of any kind, of one tag, or of one context. C8 */
static void tests_any(struct member *member)
{
	struct cluster *cluster = cluster_here();
	const uint64_t masks[] = {0, BITS_TAG, member->context, member->context};
	uint64_t mask = masks[prng_below(&cluster->prng, 4)];
	uint64_t bits = prng_below(&cluster->prng, TAGS) & mask;
	mx_status_t status;
	uint32_t result;

	while (!simulation_failed(cluster->simulation)) {
		const struct post *due = ended_first(member, bits, mask);

		mx_test_any(member->endpoint, bits, mask, &status, &result);
		if (!result)
			due = ended_first(member, bits, mask);
		if (due && (!result || status.context != due))
			post_wrong(due, "is not the one that is told, and ended first", result);
		if (!result)
			return;
		if ((status.match_info & mask) != bits)
			post_wrong(status.context, "is not what is asked for", status.match_info);
		post_done(member, status.context, &status);
	}
}

void tests(struct member *member)
{
	switch (prng_below(&cluster_here()->prng, 4)) {
	case 0:
		tests_each(member);
		break;
	case 1:
		tests_peeked(member);
		break;
	case 2:
		tests_any(member);
		break;
	default:
		mx_progress(member->endpoint);
	}
}
