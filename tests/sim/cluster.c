/* SPDX-License-Identifier: BSD-3-Clause */
/* cluster.c - see cluster.h: the programs, and what the library tells them. */
#include <sim/cluster_oracle.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/clock.h>
#include <sim/report.h>

#define FILTER       0x9a7e
#define DATA_LEAST   1024               /* bytes of a message that the handler has in hand */
#define DRAIN        (2 * MILLISECOND)  /* between two looks of a program that has made its steps */
#define DRAIN_LATE   (20 * MILLISECOND) /* when all have */
#define FLOOD        100
#define SEGMENTS_MAX 4

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

static void bytes_check(const struct post *receive, const struct post *message, uint64_t length)
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

static bool failure_check(const struct cluster *cluster, const struct post *post,
	mx_status_code_t code, uint32_t peer)
{
	if (code == MX_STATUS_SUCCESS || code == MX_STATUS_TRUNCATED)
		return false;
	if (!cluster_troubled(cluster, post->node, peer))
		post_wrong(post, "fails for no reason", code);
	else if (!code_is_of_trouble(code))
		post_wrong(post, "fails for a wrong reason", code);
	return true;
}

static void source_check(const struct cluster *cluster, const struct post *post,
	mx_endpoint_addr_t source, uint32_t of)
{
	const struct node *node = &cluster->simulation->nodes[of];
	uint64_t nic;
	uint32_t id;

	mx_decompose_endpoint_addr(source, &nic, &id);
	if (nic != nic_id_of(node->id.nid) || id != of)
		post_wrong(post, "has another source", id);
}

/* C2 */
static void receive_done(
	struct cluster *cluster, const struct post *post, const mx_status_t *status)
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
static void send_done(struct cluster *cluster, const struct post *post, const mx_status_t *status)
{
	struct route *route = &cluster->members[post->node].routes[post->to];

	if (status->match_info != post->bits || status->msg_length != post->length)
		post_wrong(post, "has another length", status->msg_length);
	if (failure_check(cluster, post, status->code, post->to)) {
		route->known = false;
		return;
	}
	oracle_catch_up(&cluster->members[post->to]);
	if ((post->synchronous && !post->partner && !post->consumed && !post->taken) ||
		(post->length > COPY_SEND_MAX && !post->arrived))
		post_wrong(post, "is done too early", post->arrived);
	memset(post->data, POISON, post->length + 1);
}

static void connect_done(
	struct cluster *cluster, const struct post *post, const mx_status_t *status)
{
	const struct member *to = &cluster->members[post->to];
	struct route *route = &cluster->members[post->node].routes[post->to];
	uint32_t session;

	route->connect = NULL;
	if (failure_check(cluster, post, status->code, post->to))
		return;
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

/* --- requests */

static struct post *post_make(struct member *member, enum post_kind kind, uint64_t length)
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

static uint64_t length_choose(struct cluster *cluster)
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

static void send_make(struct member *member, uint32_t to, uint64_t length)
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

static void receive_post(struct member *member, struct post *post)
{
	mx_segment_t segments[SEGMENTS_MAX];
	uint32_t count = segments_cut(&cluster_here()->prng, post, segments);

	oracle_receive(member, post);
	line_add(&member->pending, post);
	mx_irecv(member->endpoint, segments, count, post->bits, post->mask, post, &post->request);
}

static void receive_make(struct member *member)
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

static void post_cancel(struct member *member, struct post *post)
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

static void cancel_any(struct member *member)
{
	struct post *post = pending_choose(member);

	if (post && post->kind != POST_SEND && post != member->last && post != member->withdrawn &&
		post != member->tested)
		post_cancel(member, post);
}

/* A send, or a receive of which the poll core knows. */
static void forget_any(struct member *member)
{
	struct post *post = pending_choose(member);

	if (!post || post == member->last || post->kind == POST_CONNECT ||
		(post->kind == POST_RECEIVE && !post->linked))
		return;
	post->forgotten = true;
	line_remove(&member->pending, post);
	mx_forget(member->endpoint, &post->request);
}

static void probe(struct member *member)
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

static void tests_peeked(struct member *member)
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

/* Of any kind, or of one tag. */
static void tests_any(struct member *member)
{
	struct cluster *cluster = cluster_here();
	uint64_t mask = prng_chance(&cluster->prng, 0.3) ? BITS_TAG : 0;
	uint64_t bits = prng_below(&cluster->prng, TAGS) & mask;
	mx_status_t status;
	uint32_t result;

	while (!simulation_failed(cluster->simulation)) {
		mx_test_any(member->endpoint, bits, mask, &status, &result);
		if (!result)
			return;
		if ((status.match_info & mask) != bits)
			post_wrong(status.context, "is not what is asked for", status.match_info);
		post_done(member, status.context, &status);
	}
}

static void tests(struct member *member)
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
		probe(member);
	else if ((choice -= 0.03) < 0)
		forget_any(member);
	else if ((choice -= 0.03) < 0)
		handler_change(member);
	else if ((choice -= 0.002) < 0)
		flood(member, peer);
	else if ((choice -= 0.004) < 0)
		peer_disconnect(member, peer);
}

/* The steps are over: receives, one at a time, take what is left. */
static void member_drain(struct member *member)
{
	if (member->halted)
		handler_change(member);
	tests_peeked(member);
	oracle_catch_up(member);
	while ((!member->last || member->last->done) &&
		!simulation_failed(cluster_here()->simulation)) {
		member->last = post_make(member, POST_RECEIVE, cluster_here()->size_max);
		receive_post(member, member->last);
		tests_peeked(member);
	}
}

static void member_plan(struct cluster *cluster, struct member *member);

static void member_step(void *object, uint64_t life)
{
	struct member *member = object;
	struct node *node = member->node;
	struct cluster *cluster = node->simulation->cluster;

	if (!node->up || node->closing || node->life != life ||
		simulation_failed(cluster->simulation) ||
		(cluster->simulation->over && cluster_quiet(cluster)))
		return;
	node_enter(node);
	if (member->left > 0) {
		member->left--;
		for (uint64_t i = prng_between(&cluster->prng, 1, 4); i > 0; i--)
			member_act(member);
		tests(member);
	} else {
		member_drain(member);
	}
	oracle_check_credits(member);
	node_leave(node);
	node_plan(node);
	member_plan(cluster, member);
}

static void member_plan(struct cluster *cluster, struct member *member)
{
	uint64_t delay = member->left > 0 ? prng_below(&cluster->prng, 2 * cluster->interval)
			 : cluster->simulation->over ? DRAIN_LATE
						     : DRAIN;

	sim_clock_at(&cluster->simulation->clock, simulation_now(cluster->simulation) + delay,
		member_step, member, member->node->life);
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
		.arrived = report_memory(calloc(nodes * nodes, sizeof(uint32_t))),
		.lives = report_memory(calloc(nodes * nodes, sizeof(uint32_t))),
		.severed = report_memory(calloc(nodes * nodes, sizeof(bool))),
	};
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
	mx_param_t memory = {.key = MX_PARAM_UNEXP_QUEUE_MAX};
	mx_endpoint_t endpoint;

	member->node = node;
	memory.val.unexp_queue_max = prng_chance(&cluster->prng, 0.3)
					     ? 0
					     : (uint32_t)prng_between(&cluster->prng, 1, 4) << 20;
	if (mx_open_endpoint(0, node->number, FILTER, &memory, 1, &endpoint) != MX_SUCCESS)
		report_stop("node %u: the endpoint cannot be opened", node->number);
	member->endpoint = endpoint;
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
	member->last = NULL;
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
		return "never ends";
	if (post->kind == POST_CONNECT || cluster_troubled(cluster, post->node, post->to))
		return NULL;
	return !post->arrived                ? "never arrived"
	       : !partner && !post->consumed ? "was never received"
					     : NULL;
}

bool cluster_quiet(const struct cluster *cluster)
{
	for (uint32_t i = 0; cluster && i < cluster->count; i++)
		if (post_missing(cluster, cluster->all[i]))
			return false;
	for (uint32_t i = 0; cluster && i < cluster->simulation->node_count; i++)
		if (cluster->members[i].endpoint &&
			(messages_pending(cluster->members[i].endpoint->messages) != 0 ||
				oracle_awaits_handler(&cluster->members[i])))
			return false;
	return true;
}

/* Nobody was told of their ends. */
static void forgotten_check(const struct cluster *cluster, const struct member *member)
{
	for (uint32_t i = 0; i < cluster->count; i++) {
		const struct post *post = cluster->all[i], *from = post->partner;

		if (post->node == member->node->number && post->kind == POST_RECEIVE &&
			post->forgotten && !post->over && from &&
			!cluster_troubled(cluster, post->node, from->node))
			bytes_check(post, from,
				post->length < from->length ? post->length : from->length);
	}
}

static void member_finish(struct cluster *cluster, struct member *member)
{
	node_enter(member->node);
	forgotten_check(cluster, member);
	while (member->pending.count > 0 && !simulation_failed(cluster->simulation)) {
		struct post *post = member->pending.posts[0];

		post_cancel(member, post);
		if (!post->cancelled)
			post_wrong(post, "has no match, and cannot be cancelled", 0);
	}
	oracle_check_credits(member);
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
		if (cluster->members[i].endpoint && !simulation_failed(cluster->simulation))
			member_finish(cluster, &cluster->members[i]);
	if (cluster && !cluster_quiet(cluster))
		FAIL(cluster, "mx: a node has messages that are under way for ever");
}

uint64_t cluster_count(const struct cluster *cluster)
{
	return cluster ? cluster->count : 0;
}
