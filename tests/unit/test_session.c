/* SPDX-License-Identifier: BSD-3-Clause */
/* test_session.c - an endpoint of MX is greeted by strangers: how many sessions, and how many
 * greetings that wait, a node may have, and what becomes of others' meanwhile.
 * Covers: lib/messages/greetings.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include <base/clock.h>
#include <base/random.h>
#include <messages/state.h>
#include <mx/board.h>
#include <mx/state.h>
#include <wire/message.h>

#define FILTER 0x1234
#define ASK    (UINT64_C(0x41) << 56)
#define ANSWER (UINT64_C(0x42) << 56)

/* The nodes from MUTE on acknowledge nothing; those from FORGED on do. ECHO greets again as soon as
 * it is answered. */
enum { ENEMY = 900, OTHER = 901, MUTE = 1000, FORGED = 10000, ECHO = 100000 };
#define ECHOES 100u /* then it is silent */

static mx_endpoint_t one, other;
static unsigned echoes;

/* One host speaks for all forged nodes: it takes the answers, and gives signs of life. */
bool __wrap_messages_greet(struct messages *messages, struct greeting *greeting);
bool __real_messages_greet(struct messages *messages, struct greeting *greeting);
void __wrap_messages_ask(struct messages *messages, uint32_t peer);
void __real_messages_ask(struct messages *messages, uint32_t peer);

bool __wrap_messages_greet(struct messages *messages, struct greeting *greeting)
{
	if (greeting->to.nid == ECHO && echoes++ < ECHOES)
		(void)session_greeted(one, greeting->to, &(struct greeting){.words = {ASK}});
	return greeting->to.nid < FORGED && __real_messages_greet(messages, greeting);
}

void __wrap_messages_ask(struct messages *messages, uint32_t peer)
{
	if (messages != one->messages || one->contacts[one->sessions[peer].contact].nid < FORGED)
		__real_messages_ask(messages, peer);
}

/* Each look at the time adds clock_step to it. A thread that still waits behind CLOCK_END is woken,
 * so that the test fails instead of hanging. */
#define CLOCK_END (1000 * SECOND)
static uint64_t clock_step, clock_ahead;
uint64_t __wrap_postern_core_library_now(void);
uint64_t __real_postern_core_library_now(void);

uint64_t __wrap_postern_core_library_now(void)
{
	clock_ahead += clock_step;
	if (clock_ahead > CLOCK_END)
		one->wakeups++;
	return __real_postern_core_library_now() + clock_ahead;
}

static int setup_with(const char *peer_timeout)
{
	setenv("PTL_IFACE_NAME", "loop:a;loop:a", 1);
	setenv("PTL_NID", "1;2", 1);
	setenv("PTL_PROGRESS", "inline", 1);
	setenv("PTL_PEER_TIMEOUT", peer_timeout, 1);
	mx_set_error_handler(MX_ERRORS_RETURN);
	assert_int_equal(mx_init(), MX_SUCCESS);
	assert_int_equal(mx_open_endpoint(0, 3, FILTER, NULL, 0, &one), MX_SUCCESS);
	assert_int_equal(mx_open_endpoint(1, 3, FILTER, NULL, 0, &other), MX_SUCCESS);
	/* Greetings wait for the test's own calls. */
	service_end();
	service_end();
	return 0;
}

static int setup(void **state)
{
	(void)state;
	return setup_with("100ms");
}

static int setup_patient(void **state)
{
	(void)state;
	return setup_with("60s");
}

static int teardown(void **state)
{
	(void)state;
	service_begin();
	service_begin();
	assert_int_equal(mx_finalize(), MX_SUCCESS);
	return 0;
}

/* A greeting of the endpoint `id` of a node. Returns whether it was kept. */
static bool greet_with(uint32_t nid, uint32_t id, uint64_t first, uint32_t number, uint64_t token)
{
	const struct greeting greeting = {.words = {first, (uint64_t)number << 32, token}};
	const struct process from = {.nid = nid, .pid = MX_PROCESS + id};
	bool kept;

	lock_take(&one->lock);
	kept = session_greeted(one, from, &greeting);
	lock_give(&one->lock);
	return kept;
}

/* An ASK. */
static bool greet(uint32_t nid, uint32_t id, uint32_t number)
{
	return greet_with(nid, id, ASK | FILTER, number, number);
}

static void work(mx_endpoint_t endpoint)
{
	mx_request_t request;
	uint32_t result;

	assert_int_equal(mx_ipeek(endpoint, &request, &result), MX_SUCCESS);
}

/* Until nothing waits, and all answers have been given up. */
static void settle(void)
{
	while (!list_empty(&one->greetings.waiting) || !list_empty(&one->greetings.sent)) {
		work(one);
		work(other);
	}
}

/* Sessions of a node that are open. */
static uint32_t sessions_of(uint32_t nid)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < one->session_count; i++)
		count += one->sessions[i].state == SESSION_OPEN &&
			 one->contacts[one->sessions[i].contact].nid == nid;
	return count;
}

static bool is_open(uint32_t nid, uint32_t id)
{
	for (uint32_t i = 0; i < one->contact_count; i++)
		if (one->contacts[i].nid == nid && one->contacts[i].id == id)
			return one->contacts[i].session != SESSION_NONE &&
			       one->sessions[one->contacts[i].session].state == SESSION_OPEN;
	return false;
}

static void connect_both(void)
{
	uint32_t result = 0;
	mx_request_t request;
	mx_status_t status;

	assert_int_equal(mx_iconnect(one, nic_id_of(2), 3, FILTER, 0, NULL, &request), MX_SUCCESS);
	while (result == 0) {
		work(other);
		assert_int_equal(mx_test(one, &request, &status, &result), MX_SUCCESS);
	}
	assert_int_equal(status.code, MX_STATUS_SUCCESS);
}

/* The last session of an endpoint with a node. */
static mx_endpoint_addr_t address_of(mx_endpoint_t endpoint, uint32_t nid)
{
	mx_endpoint_addr_t address = {{0, 0}};

	for (uint32_t i = 1; i < endpoint->session_count; i++)
		if (endpoint->contacts[endpoint->sessions[i].contact].nid == nid)
			address = endpoint->sessions[i].address;
	return address;
}

static mx_endpoint_addr_t other_address(void)
{
	return address_of(one, 2);
}

/* Until `one` has a greeting, of which its sessions have not heard yet. */
static void await_greeting(void)
{
	while (list_empty(&one->greetings.waiting)) {
		work(other);
		lock_take(&one->lock);
		messages_progress(one->messages);
		lock_give(&one->lock);
	}
}

/* S6. A process that has a session names its rank, so that its greeting would count as another
 * node's. */
static void a_greeting_is_of_the_node_that_sends_it(void **state)
{
	struct move move = {.portal = PORTAL_GREETINGS, .match_bits = ASK | FILTER};
	struct messages *messages = other->messages;
	struct probe probe = {.kind = ITEM_PROBE};
	const struct rma_line line = {
		.user = item_name(&probe), .message = MESSAGE_STORE, .want = WANT_EVENT};
	const struct kept_greeting *kept;
	uint32_t session = 1;

	(void)state;
	connect_both();
	while (other->contacts[other->sessions[session].contact].nid != 1)
		session++;
	assert_int_equal(front_visit(messages->options.front, &messages->visit, messages->handle,
				 HANDLE_INTERFACE, -1),
		0);
	rma_command_post(messages, &move, &line, session);
	visit_leave(&messages->visit);
	await_greeting();
	kept = list_first(&one->greetings.waiting, struct kept_greeting, link);
	assert_int_equal(kept->from.nid, 2);
	assert_int_equal(kept->from.pid, MX_PROCESS + 3);
	while (!probe.found)
		work(other);
}

/* `other` closes, opens again and gives `one` the same rank. */
static void a_send_to_a_session_is_not_delivered_to_the_next_life(void **state)
{
	char text[] = "old";
	mx_segment_t segment = {text, sizeof(text)};
	mx_request_t connect, send;
	mx_endpoint_addr_t old;
	uint32_t result = 0;
	mx_status_t status;

	(void)state;
	connect_both();
	old = other_address();
	assert_int_equal(mx_close_endpoint(other), MX_SUCCESS);
	assert_int_equal(mx_open_endpoint(1, 3, FILTER, NULL, 0, &other), MX_SUCCESS);
	assert_int_equal(
		mx_iconnect(other, nic_id_of(1), 3, FILTER, 0, NULL, &connect), MX_SUCCESS);
	await_greeting();
	assert_int_equal(mx_issend(one, &segment, 1, old, 7, NULL, &send), MX_SUCCESS);
	while (result == 0) {
		assert_int_equal(mx_iprobe(other, 0, 0, &status, &result), MX_SUCCESS);
		assert_int_equal(result, 0);
		assert_int_equal(mx_test(one, &send, &status, &result), MX_SUCCESS);
	}
	assert_int_equal(status.code, MX_STATUS_BAD_SESSION);
}

/* S7. `other` sends to the address that it has had all along. A later connect fails. */
static void an_answer_counts_also_when_its_connect_has_ended(void **state)
{
	mx_request_t connect, wrong, send, receive;
	mx_endpoint_addr_t address;
	mx_status_t status;
	uint32_t result;

	(void)state;
	connect_both();
	address = address_of(other, 1);
	mx_disconnect(one, other_address());
	assert_int_equal(mx_iconnect(one, nic_id_of(2), 3, FILTER, 0, NULL, &connect), MX_SUCCESS);
	assert_int_equal(mx_cancel(one, &connect, &result), MX_SUCCESS);
	assert_int_equal(result, 1);
	assert_int_equal(
		mx_iconnect(one, nic_id_of(2), 3, FILTER + 1, 0, NULL, &wrong), MX_SUCCESS);
	assert_int_equal(mx_irecv(one, NULL, 0, 7, MX_MATCH_MASK_NONE, NULL, &receive), MX_SUCCESS);
	for (result = 0; result == 0; work(other))
		assert_int_equal(mx_test(one, &wrong, &status, &result), MX_SUCCESS);
	assert_int_equal(status.code, MX_STATUS_BAD_KEY);
	assert_true(is_open(2, 3));
	assert_int_equal(mx_issend(other, NULL, 0, address, 7, NULL, &send), MX_SUCCESS);
	for (result = 0; result == 0; work(one))
		assert_int_equal(mx_test(other, &send, &status, &result), MX_SUCCESS);
	assert_int_equal(status.code, MX_STATUS_SUCCESS);
	assert_int_equal(mx_test(one, &receive, &status, &result), MX_SUCCESS);
	assert_int_equal(result, 1);
}

/* S7. A late answer that says no, that of another connect and a second one change nothing. */
static void an_answer_that_is_late_joins_the_session_that_has_asked_alone(void **state)
{
	const uint64_t no = ANSWER | (uint64_t)MX_STATUS_NO_RESOURCES << 32;
	const struct session *session;
	mx_request_t connect;
	uint32_t result;

	(void)state;
	assert_int_equal(
		mx_iconnect(one, nic_id_of(FORGED), 3, FILTER, 0, NULL, &connect), MX_SUCCESS);
	assert_int_equal(mx_cancel(one, &connect, &result), MX_SUCCESS);
	assert_int_equal(result, 1);
	session = &one->sessions[session_of(one, address_of(one, FORGED))];
	assert_true(greet_with(FORGED, 3, no, 5, session->token));
	assert_true(greet_with(FORGED, 3, ANSWER, 5, session->token + 1));
	assert_true(greet_with(FORGED, 4, ANSWER, 5, session->token));
	work(one);
	assert_false(is_open(FORGED, 3));
	assert_true(greet_with(FORGED, 3, ANSWER, 6, session->token));
	assert_true(greet_with(FORGED, 3, ANSWER, 7, session->token));
	work(one);
	assert_true(is_open(FORGED, 3));
	assert_int_equal(session->number, 6);
}

/* `other` takes `one` for dead, as after a cut that was longer than the peer timeout. */
static void give_up(void)
{
	uint32_t session = 1;

	while (other->contacts[other->sessions[session].contact].nid != 1)
		session++;
	lock_take(&other->lock);
	assert_int_equal(front_visit(other->messages->options.front, &other->messages->visit,
				 other->messages->handle, HANDLE_INTERFACE, -1),
		0);
	peer_lose(other->messages, session, TIER_UNDELIVERABLE);
	visit_leave(&other->messages->visit);
	lock_give(&other->lock);
}

static void a_peer_that_was_given_up_hears_of_it(void **state)
{
	char text[] = "kept";
	mx_segment_t segment = {text, sizeof(text)};
	uint32_t session, result = 0;
	mx_endpoint_addr_t address;
	mx_request_t send;
	mx_status_t status;

	(void)state;
	connect_both();
	address = other_address();
	session = session_of(one, address);
	assert_int_equal(mx_issend(one, &segment, 1, address, 7, NULL, &send), MX_SUCCESS);
	while (result == 0) {
		work(one);
		assert_int_equal(mx_iprobe(other, 0, 0, &status, &result), MX_SUCCESS);
	}
	settle();
	give_up();
	lock_take(&one->lock);
	messages_ask(one->messages, session);
	lock_give(&one->lock);
	while (one->messages->peers[session].alive.busy) {
		work(one);
		work(other);
	}
	assert_int_equal(mx_test(one, &send, &status, &result), MX_SUCCESS);
	assert_int_equal(result, 1);
	assert_int_equal(status.code, MX_STATUS_BAD_SESSION);
	/* What came before is still received. */
	assert_int_equal(mx_iprobe(other, 0, 0, &status, &result), MX_SUCCESS);
	assert_int_equal(result, 1);
}

/* Messages come and go as when the program does not call, which is when deadlines are looked at. */
static void progress(void)
{
	lock_take(&one->lock);
	messages_progress(one->messages);
	lock_give(&one->lock);
}

static void times_out(mx_request_t *request)
{
	mx_status_t status;
	uint32_t result;

	assert_int_equal(mx_test(one, request, &status, &result), MX_SUCCESS);
	assert_int_equal(result, 1);
	assert_int_equal(status.code, MX_STATUS_TIMEOUT);
}

/* X6. The program calls again when the deadline has passed long ago, and the peer is known to be
 * lost, or to have no such endpoint, by then. */
static void a_deadline_that_has_passed_is_why_a_request_fails(void **state)
{
	mx_endpoint_addr_t address;
	mx_request_t lost, closed, send;
	mx_segment_t segment = {&segment, sizeof(segment)};

	(void)state;
	assert_int_equal(mx_iconnect(one, nic_id_of(ENEMY), 7, FILTER, 0, NULL, &lost), MX_SUCCESS);
	assert_int_equal(mx_iconnect(one, nic_id_of(1), 7, FILTER, 0, NULL, &closed), MX_SUCCESS);
	assert_int_equal(mx_set_request_timeout(one, lost, 1), MX_SUCCESS);
	assert_int_equal(mx_set_request_timeout(one, closed, 1), MX_SUCCESS);
	while (request_of(one, &lost)->status.code == MX_STATUS_PENDING ||
		request_of(one, &closed)->status.code == MX_STATUS_PENDING)
		progress();
	times_out(&lost);
	times_out(&closed);
	connect_both();
	address = other_address();
	assert_int_equal(mx_close_endpoint(other), MX_SUCCESS);
	assert_int_equal(mx_issend(one, &segment, 1, address, 7, NULL, &send), MX_SUCCESS);
	assert_int_equal(mx_set_request_timeout(one, send, 1), MX_SUCCESS);
	while (!request_of(one, &send)->done)
		progress();
	times_out(&send);
}

/* X6. A request has ended before its deadline, and is asked for after it. */
static void a_deadline_is_nothing_to_a_request_that_has_ended(void **state)
{
	mx_segment_t segment = {&segment, sizeof(segment)};
	mx_endpoint_addr_t address;
	mx_request_t requests[2];
	mx_status_t status;
	uint32_t result;

	(void)state;
	connect_both();
	address = other_address();
	assert_int_equal(
		mx_iconnect(one, nic_id_of(2), 3, FILTER, 0, NULL, &requests[0]), MX_SUCCESS);
	assert_int_equal(mx_isend(one, &segment, 1, address, 7, NULL, &requests[1]), MX_SUCCESS);
	for (unsigned i = 0; i < 2; i++) {
		struct request *request = request_of(one, &requests[i]);

		while (!request->done) {
			work(other);
			work(one);
		}
		lock_take(&one->lock);
		request_limit(request, 1);
		lock_give(&one->lock);
	}
	while (one->timed > 0)
		work(one);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(mx_test(one, &requests[i], &status, &result), MX_SUCCESS);
		assert_int_equal(result, 1);
		assert_int_equal(status.code, MX_STATUS_SUCCESS);
	}
	assert_true(list_empty(&one->ended));
}

/* The peer sends to a session that it was asked for, and whose answer is not read yet. */
static void what_is_taken_before_a_session_is_joined_is_credited_then(void **state)
{
	const uint32_t share = SHARE_FIRST;
	struct peer *peer;
	uint32_t session;

	(void)state;
	connect_both();
	session = session_of(one, other_address());
	peer = &one->messages->peers[session];
	lock_take(&one->lock);
	peer->joined = false;
	assert_int_equal(front_visit(one->messages->options.front, &one->messages->visit,
				 one->messages->handle, HANDLE_INTERFACE, -1),
		0);
	for (uint32_t i = 0; i < share; i++)
		credit_count(one->messages, session);
	visit_leave(&one->messages->visit);
	assert_int_equal(peer->told, 0);
	messages_join(one->messages, session, peer->self);
	assert_int_equal(peer->told, share);
	while (peer->tell.busy)
		messages_progress(one->messages);
	lock_give(&one->lock);
}

static void a_process_with_ever_new_numbers_has_one_session(void **state)
{
	(void)state;
	for (uint32_t number = 1; number <= 2 * SESSIONS_MAX; number++) {
		assert_true(greet(ENEMY, 5, number));
		work(one);
		if (number % 256 == 0)
			settle();
		assert_int_equal(sessions_of(ENEMY), 1);
	}
	connect_both();
}

/* S5. Sessions that count, of all nodes. */
static uint32_t sessions_used(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < one->session_count; i++)
		count += one->sessions[i].state == SESSION_OPEN ||
			 one->sessions[i].state == SESSION_ASKING;
	return count;
}

/* S5. Has the node all that it may have? */
static bool share_is_met(void)
{
	uint32_t has = sessions_of(ENEMY), others = sessions_used() - has;
	uint32_t share = (SESSIONS_MAX - others + 1) / 2;

	assert_true(has <= share);
	return has == share;
}

/* Floods beside what is there, and meets exactly what is left for others. */
static void node_floods(void)
{
	bool met = false;

	for (uint32_t number = 1; number <= 2; number++)
		for (uint32_t id = 0; id < ENDPOINT_IDS; id++) {
			assert_true(greet(ENEMY, id, number));
			work(one);
			met = share_is_met() || met;
			if (id % 256 == 255)
				settle();
		}
	assert_true(met);
}

static void a_node_has_no_more_sessions_than_are_left_for_others(void **state)
{
	(void)state;
	node_floods();
	for (uint32_t id = 0; id < 100; id++) {
		assert_true(greet(OTHER, id, 1));
		work(one);
		assert_true(is_open(OTHER, id));
	}
	connect_both();
}

/* One more than before: of an odd and an even number that is left, half is not the same. */
static void a_node_has_no_more_sessions_than_are_left_beside_one_more(void **state)
{
	(void)state;
	assert_true(greet(OTHER, 0, 1));
	work(one);
	assert_true(is_open(OTHER, 0));
	node_floods();
}

/* Greets in the name of as many nodes. */
static void nodes_flood(uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		assert_true(greet(first + i, 5, 1));
		work(one);
	}
}

/* `other` asks `one`, whose program does nothing for it. */
static mx_endpoint_addr_t other_connects(void)
{
	uint32_t result = 0;
	mx_request_t request;
	mx_status_t status;

	assert_int_equal(
		mx_iconnect(other, nic_id_of(1), 3, FILTER, 0, NULL, &request), MX_SUCCESS);
	while (result == 0) {
		work(one);
		assert_int_equal(mx_test(other, &request, &status, &result), MX_SUCCESS);
	}
	assert_int_equal(status.code, MX_STATUS_SUCCESS);
	assert_true(is_open(2, 3));
	return status.source;
}

/* S5 */
static void newcomers_find_a_place_whoever_has_greeted_before(void **state)
{
	(void)state;
	nodes_flood(FORGED, 1100);
	assert_int_equal(sessions_used(), SESSIONS_MAX);
	(void)other_connects();
	assert_true(greet(OTHER, 5, 1));
	work(one);
	assert_true(is_open(OTHER, 5));
	/* The program's own connects do, too. */
	assert_int_equal(mx_iconnect(one, nic_id_of(ENEMY), 7, FILTER, 0, NULL, NULL), MX_SUCCESS);
	/* The oldest goes first. */
	nodes_flood(2 * FORGED, 500);
	assert_true(is_open(2, 3));
	assert_false(is_open(FORGED + 300, 5));
	assert_true(is_open(2 * FORGED, 5));
}

/* S6. All answers are under way for longer than the test lasts. */
static void newcomers_hear_an_answer_whoever_has_taken_none(void **state)
{
	uint32_t kept = 0;

	(void)state;
	nodes_flood(MUTE, 5000);
	(void)other_connects();
	while (one->greetings.answers > 5000) {
		work(one);
		work(other);
	}
	assert_int_equal(one->greetings.answers, 5000);
	/* One node has a quarter of those that are left. */
	for (uint32_t i = 0; i < 3000; i++) {
		kept += greet(ENEMY, 5, 1);
		work(one);
	}
	assert_int_equal(kept, 639);
	assert_true(greet(OTHER, 6, 1));
}

static void no_session_goes_that_has_carried_a_message(void **state)
{
	char text[] = "kept";
	mx_segment_t segment = {text, sizeof(text)};
	uint32_t result = 0;
	mx_request_t send;
	mx_status_t status;

	(void)state;
	assert_int_equal(
		mx_isend(other, &segment, 1, other_connects(), 7, NULL, &send), MX_SUCCESS);
	while (result == 0) {
		work(other);
		assert_int_equal(mx_iprobe(one, 0, 0, &status, &result), MX_SUCCESS);
	}
	nodes_flood(FORGED, 2100);
	assert_true(is_open(2, 3));
	assert_int_equal(mx_iprobe(one, 0, 0, &status, &result), MX_SUCCESS);
	assert_int_equal(result, 1);
}

static void no_session_goes_that_the_program_wants(void **state)
{
	(void)state;
	connect_both();
	nodes_flood(FORGED, 2100);
	assert_true(is_open(2, 3));
	mx_disconnect(one, other_address());
	(void)other_connects();
	assert_int_equal(mx_set_endpoint_addr_context(other_address(), state), MX_SUCCESS);
	nodes_flood(2 * FORGED, 2100);
	assert_true(is_open(2, 3));
	assert_int_equal(mx_set_endpoint_addr_context(other_address(), NULL), MX_SUCCESS);
	nodes_flood(3 * FORGED, 2100);
	assert_false(is_open(2, 3));
}

/* Greets as often as greetings are kept. */
static uint32_t node_fills(uint32_t nid)
{
	uint32_t kept = 0;

	while (greet(nid, 5, 1))
		kept++;
	return kept;
}

static void twelve_nodes_that_greet_without_end_leave_places_to_others(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 12; i++)
		(void)node_fills(FORGED + i);
	assert_in_range(node_fills(ENEMY), 50, 100);
	for (uint32_t i = 0; i < 40; i++)
		assert_true(greet(OTHER, i, 1));
	work(one);
	assert_true(is_open(OTHER, 39));
	settle();
	assert_int_equal(node_fills(ENEMY), 820);
}

static void a_node_has_a_quarter_of_the_places_that_are_left_to_greetings_that_wait(void **state)
{
	(void)state;
	assert_int_equal(node_fills(ENEMY), 820);
	for (uint32_t i = 0; i < 100; i++)
		assert_true(greet(OTHER, i, 1));
	work(one);
	settle();
	assert_true(greet(ENEMY, 5, 1));
	assert_true(is_open(OTHER, 99));
	connect_both();
}

static void a_call_ends_while_a_peer_greets_without_end(void **state)
{
	(void)state;
	assert_true(greet(ECHO, 5, 1));
	work(one);
	assert_in_range(echoes, 1, ECHOES / 2);
	while (echoes < ECHOES)
		work(one);
}

/* A greeting of any bits, more often than not nearly a right one. */
static void greet_with_anything(uint64_t *seed)
{
	const uint32_t nids[] = {1, 2, ENEMY, OTHER};
	uint64_t kind = random_next(seed) % 8, code = random_next(seed) % 8 == 0;
	struct greeting greeting = {
		.words = {
			(kind < 7 ? 0x41 + kind % 2 : random_next(seed)) << 56 | code << 32 |
				(random_next(seed) % 4 != 0 ? FILTER : (uint32_t)random_next(seed)),
			(random_next(seed) % 3) << 32 | random_next(seed) % 3,
			one->tokens + 2 - random_next(seed) % 4}};
	struct process from = {.nid = nids[random_next(seed) % 4],
		/* not 3: that is the other endpoint, for which nobody else can speak */
		.pid = MX_PROCESS + (random_next(seed) % 16 == 0 ? (uint32_t)random_next(seed)
								 : 4 + random_next(seed) % 4)};

	for (unsigned i = 0; i < 3; i++)
		if (random_next(seed) % 16 == 0)
			greeting.words[i] = random_next(seed);
	lock_take(&one->lock);
	(void)session_greeted(one, from, &greeting);
	lock_give(&one->lock);
}

static void greetings_of_any_bits_harm_no_other_peer(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (unsigned n = 0; n < 8000; n++) {
		greet_with_anything(&seed);
		if (random_next(&seed) % 64 == 0) {
			uint32_t id = (uint32_t)(4 + random_next(&seed) % 4);

			assert_int_equal(
				mx_iconnect(one, nic_id_of(ENEMY), id, FILTER, 0, NULL, NULL),
				MX_SUCCESS);
		}
		if (random_next(&seed) % 8 == 0)
			work(one);
		if (n % 500 == 0)
			connect_both();
	}
	settle();
	connect_both();
	assert_true(is_open(2, 3));
}

/* A peer of a forged node never answers. The minute is for MX_INFINITE and mx_iconnect(). */
static void a_connect_lasts_as_long_as_its_timeout(void **state)
{
	static const uint32_t timeouts[] = {90000, MX_INFINITE, 300000};
	mx_endpoint_addr_t address;
	mx_request_t connect;
	mx_status_t status;
	uint32_t result;
	uint64_t start;

	(void)state;
	clock_step = 100 * MILLISECOND;
	for (unsigned i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++) {
		const uint64_t least = timeouts[i] == MX_INFINITE ? 60000 : timeouts[i];

		start = library_now();
		assert_int_equal(
			mx_connect(one, nic_id_of(FORGED), 3, FILTER, timeouts[i], &address),
			MX_TIMEOUT);
		assert_true(library_now() - start >= least * MILLISECOND);
		assert_true(clock_ahead < CLOCK_END);
	}
	start = library_now();
	assert_int_equal(
		mx_iconnect(one, nic_id_of(FORGED), 3, FILTER, 0, NULL, &connect), MX_SUCCESS);
	for (result = 0; result == 0 && clock_ahead < CLOCK_END;)
		assert_int_equal(mx_test(one, &connect, &status, &result), MX_SUCCESS);
	assert_int_equal(result, 1);
	assert_int_equal(status.code, MX_STATUS_ENDPOINT_UNREACHABLE);
	assert_true(library_now() - start >= 60 * SECOND);
	clock_step = 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_send_to_a_session_is_not_delivered_to_the_next_life),
		TEST(an_answer_counts_also_when_its_connect_has_ended),
		TEST(an_answer_that_is_late_joins_the_session_that_has_asked_alone),
		TEST(a_peer_that_was_given_up_hears_of_it),
		TEST(a_deadline_that_has_passed_is_why_a_request_fails),
		TEST(a_deadline_is_nothing_to_a_request_that_has_ended),
		TEST(what_is_taken_before_a_session_is_joined_is_credited_then),
		TEST(a_connect_lasts_as_long_as_its_timeout),
		TEST(a_process_with_ever_new_numbers_has_one_session),
		TEST(a_node_has_no_more_sessions_than_are_left_for_others),
		TEST(a_node_has_no_more_sessions_than_are_left_beside_one_more),
		TEST(newcomers_find_a_place_whoever_has_greeted_before),
		cmocka_unit_test_setup_teardown(
			newcomers_hear_an_answer_whoever_has_taken_none, setup_patient, teardown),
		TEST(no_session_goes_that_has_carried_a_message),
		TEST(no_session_goes_that_the_program_wants),
		TEST(a_node_has_a_quarter_of_the_places_that_are_left_to_greetings_that_wait),
		TEST(twelve_nodes_that_greet_without_end_leave_places_to_others),
		TEST(a_call_ends_while_a_peer_greets_without_end),
		TEST(greetings_of_any_bits_harm_no_other_peer),
		TEST(a_greeting_is_of_the_node_that_sends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
