/* SPDX-License-Identifier: BSD-3-Clause */
/* session.c - peers: connects, greetings, addresses and their contexts (state.h, X3).
 *
 *     asks                                          is asked
 *
 *     admits the peer: its rank here
 *     ASK filter, own session, rank, token   ──▶    compares filters, admits the asker
 *     joins; the connects of this token end  ◀──    ANSWER code, session, rank, token
 *
 * S1. A rank goes out only after the peer that has it was admitted, so the first message of a peer
 *     finds its session here.
 * S2. A new number of a peer's session ends the old session before the new one begins: what was
 *     sent to the old one fails with BAD_SESSION, and nothing of it is delivered any more. So does
 *     a new rank that the peer gives: it has lost its session, or was told to, and counts what is
 *     kept (messages.h, M5) from the beginning.
 * S3. Two endpoints that ask each other at once take each other's ASK for the session that they
 *     have begun, and answer; so both connects end.
 * S4. What becomes of a greeting may be heard while a peer is admitted or dismissed, amid a loop
 *     over the connects or an answer: it is noted, and connects_progress() ends the connect.
 * S5. A session that was lost keeps its number as long as there are others, so that its addresses
 *     say how it ended. When all have been used, the one that was lost first goes whose number
 *     nothing names any more (M8), or else one that only a connect which has failed has asked for.
 *     Peers that ask have shares: a node has no more sessions that are open than are left for all
 *     others. So half of them at most are one node's; the own node and the program's connects are
 *     not bound by that. But whoever greets can forge the node as well as the process. So when the
 *     share, or the table, is full, the oldest session makes room that is idle: it has carried no
 *     message, and the program has neither connected to its peer nor given it a context. Its peer
 *     may have been honest: then it hears BAD_SESSION, and connects again. No other open session
 *     goes. A contact goes when its place is needed and it has no session: one with a context last.
 * S6. A node has a share of the greetings that wait, and of the answers that are under way
 *     (messages/greetings.h). A connect whose ASK was dropped asks again each second, and an ASK
 *     that is answered twice makes no second session. There are more answers than sessions, because
 *     one that nobody takes is under way for PTL_PEER_TIMEOUT, and its session may go earlier.
 * S7. A peer that has taken an ASK may send, also if the connect has ended meanwhile: its answer
 *     joins the session all the same. Until then a receive of what it sends cannot end, because
 *     what it fetches it fetches under the name that the answer brings.
 */
#include <mx/state.h>

#include <stdlib.h>

#include <base/clock.h>

#define AGAIN  (5 * MILLISECOND) /* before a peer that is not ready is asked again */
#define REPEAT SECOND            /* before a peer that has not answered is asked again */
#define READY  SECOND            /* at most, until it is */
/* A peer that takes the ASK, and does not answer for so long, counts as dead: mx_iconnect() has no
 * timeout, and the one of mx_connect() may be infinite. */
#define CONNECT_TIMEOUT (60 * SECOND)
#define LOOKS           16 /* of threads that do not block, for one at the clock */
#define RECLAIMS        16 /* sessions that are tried, for one that is needed */
#define REVIEWS         4  /* sessions that are asked, for one that begins */
#define REVIEWED        16 /* of as many that are looked at */

/* The first word of a greeting: kind, code of an answer, filter of an ASK. */
#define GREETING_KIND_AT 56
#define GREETING_CODE_AT 32
enum { GREETING_ASK = 0x41, GREETING_ANSWER };

/* --- addresses */

#define SLOT_AT       56
#define GENERATION_AT 32
#define GENERATIONS   0xffffff

/* Of a session, for as long as it has its number. */
static mx_endpoint_addr_t address_make(
	const struct mx_endpoint *endpoint, uint32_t name, const struct contact *contact)
{
	uint64_t generation = atomic_load(&endpoint->generation) & GENERATIONS;

	return (mx_endpoint_addr_t){
		{(uint64_t)endpoint->slot << SLOT_AT | generation << GENERATION_AT | name,
			nic_id_of(contact->nid) << 16 | contact->id}};
}

uint32_t session_of(const struct mx_endpoint *endpoint, mx_endpoint_addr_t address)
{
	uint32_t number = messages_named((uint32_t)address.stuff[0]);
	const struct session *session;

	if (number >= endpoint->session_count)
		return SESSION_NONE;
	session = &endpoint->sessions[number];
	return session->state != SESSION_FREE && address.stuff[0] == session->address.stuff[0] &&
			       address.stuff[1] == session->address.stuff[1]
		       ? number
		       : SESSION_NONE;
}

uint32_t session_to(const struct mx_endpoint *endpoint, mx_endpoint_addr_t address)
{
	uint32_t session = session_of(endpoint, address), last;

	if (session == SESSION_NONE || endpoint->sessions[session].state != SESSION_LOST)
		return session;
	last = endpoint->contacts[endpoint->sessions[session].contact].session;
	return last != SESSION_NONE && endpoint->sessions[last].state == SESSION_OPEN &&
			       endpoint->sessions[last].number == endpoint->sessions[session].number
		       ? last
		       : session;
}

/* Looks an address up at its endpoint, whichever that is, and holds the lock of that. *session is
 * NULL if there is none. Returns NULL, without a lock, if there is no such endpoint. */
static struct mx_endpoint *session_anywhere(mx_endpoint_addr_t address, struct session **session)
{
	struct mx_endpoint *endpoint = endpoint_at((unsigned)(address.stuff[0] >> SLOT_AT));
	uint32_t number;

	*session = NULL;
	if (!endpoint || !atomic_load(&endpoint->open))
		return NULL;
	lock_take(&endpoint->lock);
	if (atomic_load(&endpoint->open) &&
		(number = session_of(endpoint, address)) != SESSION_NONE)
		*session = &endpoint->sessions[number];
	return endpoint;
}

static void session_done(struct mx_endpoint *endpoint)
{
	if (endpoint)
		lock_give(&endpoint->lock);
}

mx_return_t mx_get_endpoint_addr(mx_endpoint_t endpoint, mx_endpoint_addr_t *addr)
{
	mx_return_t code;

	if (!endpoint_enter(endpoint, "mx_get_endpoint_addr", &code))
		return code;
	*addr = endpoint->sessions[0].address;
	return endpoint_leave(endpoint);
}

mx_return_t mx_decompose_endpoint_addr(
	mx_endpoint_addr_t addr, uint64_t *nic_id, uint32_t *endpoint_id)
{
	return mx_decompose_endpoint_addr2(addr, nic_id, endpoint_id, NULL);
}

mx_return_t mx_decompose_endpoint_addr2(
	mx_endpoint_addr_t addr, uint64_t *nic_id, uint32_t *endpoint_id, uint32_t *session_id)
{
	struct session *session;
	struct mx_endpoint *endpoint = session_anywhere(addr, &session);

	if (nic_id)
		*nic_id = session ? addr.stuff[1] >> 16 : 0;
	if (endpoint_id)
		*endpoint_id = session ? addr.stuff[1] & 0xffff : 0;
	if (session_id)
		*session_id = session ? session->number : 0;
	session_done(endpoint);
	return MX_SUCCESS;
}

mx_return_t mx_set_endpoint_addr_context(mx_endpoint_addr_t addr, void *context)
{
	struct session *session;
	struct mx_endpoint *endpoint = session_anywhere(addr, &session);

	if (session)
		endpoint->contacts[session->contact].context = context;
	session_done(endpoint);
	return MX_SUCCESS;
}

mx_return_t mx_get_endpoint_addr_context(mx_endpoint_addr_t addr, void **context)
{
	struct session *session;
	struct mx_endpoint *endpoint = session_anywhere(addr, &session);

	*context = session ? endpoint->contacts[session->contact].context : NULL;
	session_done(endpoint);
	return MX_SUCCESS;
}

/* --- contacts and sessions */

/* Does a connect that is pending ask this contact? */
static bool contact_is_asked(const struct mx_endpoint *endpoint, const struct contact *contact)
{
	list_each (const struct request, request, &endpoint->connects, link)
		if (&endpoint->contacts[request->contact] == contact)
			return true;
	return false;
}

/* S5. A contact without a session, if possible one that has no context; NULL: there is none. */
static struct contact *contact_spare(struct mx_endpoint *endpoint)
{
	struct contact *spare = NULL;

	for (uint32_t i = 0; i < SESSIONS_MAX; i++) {
		struct contact *contact = &endpoint->contacts[i];

		if (contact->session != SESSION_NONE || contact_is_asked(endpoint, contact))
			continue;
		if (!contact->context)
			return contact;
		spare = contact;
	}
	return spare;
}

static struct session *session_last(
	const struct mx_endpoint *endpoint, const struct contact *contact)
{
	return contact->session == SESSION_NONE ? NULL : &endpoint->sessions[contact->session];
}

static bool session_is_over(const struct session *session)
{
	return !session || session->state == SESSION_LOST;
}

/* Nothing more is sent to it. */
static void session_end(struct mx_endpoint *endpoint, uint32_t session, mx_status_code_t code)
{
	struct session *ended = &endpoint->sessions[session];

	if (session_is_over(ended))
		return;
	ended->state = SESSION_LOST;
	ended->code = code;
	if (session != 0)
		list_append(&endpoint->lost, &ended->lost);
}

void session_lose(struct mx_endpoint *endpoint, uint32_t session, mx_status_code_t code)
{
	session_end(endpoint, session, code);
	messages_dismiss(endpoint->messages, session);
}

/* S5. A session's number is free. Its contact stays. */
static bool session_free(struct mx_endpoint *endpoint, uint32_t session)
{
	struct session *freed = &endpoint->sessions[session];
	struct contact *contact = &endpoint->contacts[freed->contact];

	if (!messages_retire(endpoint->messages, session))
		return false;
	if (contact->session == session)
		contact->session = SESSION_NONE;
	link_remove(&freed->lost);
	freed->state = SESSION_FREE;
	return true;
}

/* S5 */
static bool session_is_idle(struct mx_endpoint *endpoint, uint32_t session)
{
	const struct contact *contact = &endpoint->contacts[endpoint->sessions[session].contact];

	return endpoint->sessions[session].state == SESSION_OPEN && !contact->wanted &&
	       !contact->context && !contact_is_asked(endpoint, contact) &&
	       !messages_has_carried(endpoint->messages, session);
}

/* The oldest idle session of a node, or of any node, ends. Returns false if there is none. */
static bool session_yield(struct mx_endpoint *endpoint, bool any, uint32_t nid)
{
	uint32_t oldest = 0;

	for (uint32_t i = 1; i < endpoint->session_count; i++) {
		const struct session *session = &endpoint->sessions[i];

		if ((any || endpoint->contacts[session->contact].nid == nid) &&
			(oldest == 0 || session->begun < endpoint->sessions[oldest].begun) &&
			session_is_idle(endpoint, i))
			oldest = i;
	}
	if (oldest != 0)
		session_lose(endpoint, oldest, MX_STATUS_BAD_SESSION);
	return oldest != 0;
}

/* S5. All numbers were used: one is free again if a session that was lost lets go of it. */
static void session_reclaim(struct mx_endpoint *endpoint)
{
	unsigned tries = RECLAIMS;

	for (uint32_t i = 1; i < endpoint->session_count && list_empty(&endpoint->lost); i++) {
		const struct session *session = &endpoint->sessions[i];

		if (session->state == SESSION_ASKING &&
			!contact_is_asked(endpoint, &endpoint->contacts[session->contact]))
			session_lose(endpoint, i, MX_STATUS_ENDPOINT_UNREACHABLE);
	}
	if (list_empty(&endpoint->lost))
		(void)session_yield(endpoint, true, 0);
	list_each (struct session, session, &endpoint->lost, lost) {
		if (tries-- == 0 ||
			session_free(endpoint, (uint32_t)(session - endpoint->sessions)))
			return;
		link_remove(&session->lost);
		list_append(&endpoint->lost, &session->lost);
	}
}

static struct contact *contact_known(struct mx_endpoint *endpoint, uint32_t nid, uint32_t id)
{
	for (uint32_t i = 0; i < endpoint->contact_count; i++)
		if (endpoint->contacts[i].nid == nid && endpoint->contacts[i].id == id)
			return &endpoint->contacts[i];
	return NULL;
}

/* One more. Moves those that are there, of which nobody holds a pointer; NULL: no memory. */
static struct contact *contact_add(struct mx_endpoint *endpoint)
{
	const uint32_t count = endpoint->contact_count;
	struct contact *contacts = endpoint->contacts;

	if ((count & (count - 1)) == 0)
		contacts = realloc(contacts, (2 * count + 1) * sizeof(*contacts));
	if (!contacts)
		return NULL;
	endpoint->contacts = contacts;
	return &contacts[endpoint->contact_count++];
}

/* The contact of a process; NULL: it is none, and there is no place. */
static struct contact *contact_find(struct mx_endpoint *endpoint, uint32_t nid, uint32_t id)
{
	struct contact *contact = contact_known(endpoint, nid, id);

	if (contact)
		return contact;
	if (endpoint->contact_count < SESSIONS_MAX) {
		contact = contact_add(endpoint);
	} else if (!(contact = contact_spare(endpoint))) {
		session_reclaim(endpoint);
		contact = contact_spare(endpoint);
	}
	if (!contact)
		return NULL;
	*contact = (struct contact){.nid = nid, .id = id, .session = SESSION_NONE};
	return contact;
}

/* S5. A peer that has gone in silence is found out before its number is needed. One that is idle is
 * not asked: it goes without, and its number would not be free before the question has ended. */
static void sessions_review(struct mx_endpoint *endpoint)
{
	unsigned asks = REVIEWS;

	if (endpoint->session_count < SESSIONS_MAX / 4 * 3)
		return;
	for (uint32_t i = 0; i < REVIEWED && asks != 0; i++) {
		/* behind these are sessions of an earlier life */
		uint32_t session = ++endpoint->reviewed % endpoint->session_count;

		if (session == 0 || endpoint->sessions[session].state != SESSION_OPEN ||
			session_is_idle(endpoint, session))
			continue;
		messages_ask(endpoint->messages, session);
		asks--;
	}
}

/* A session of which only the peer is known yet. S1 */
static bool session_begin(struct mx_endpoint *endpoint, struct contact *contact)
{
	const struct process process = {.nid = contact->nid, .pid = MX_PROCESS + contact->id};
	struct session *session;
	uint32_t peer, name;

	sessions_review(endpoint);
	if (!messages_admit(endpoint->messages, process, &peer)) {
		session_reclaim(endpoint);
		if (!messages_admit(endpoint->messages, process, &peer))
			return false;
	}
	session = &endpoint->sessions[peer];
	name = messages_name(endpoint->messages, peer);
	*session = (struct session){.address = address_make(endpoint, name, contact),
		.name = name,
		.contact = (uint32_t)(contact - endpoint->contacts),
		.state = SESSION_ASKING,
		.code = MX_STATUS_SUCCESS,
		.begun = endpoint->sessions_begun++};
	contact->session = peer;
	if (peer == endpoint->session_count)
		endpoint->session_count = peer + 1;
	return true;
}

/* S5. May a peer that has asked have one more session? If its node has had its share, or all are
 * open, one that is idle goes for it, and one of its own if half of all are its node's. */
static bool node_has_share(struct mx_endpoint *endpoint, uint32_t nid)
{
	uint32_t has = 0, used = 0;

	if (nid == endpoint->self.nid)
		return true;
	for (uint32_t i = 0; i < endpoint->session_count; i++) {
		const struct session *session = &endpoint->sessions[i];

		if (session->state != SESSION_ASKING && session->state != SESSION_OPEN)
			continue;
		used++;
		has += endpoint->contacts[session->contact].nid == nid;
	}
	return has < SESSIONS_MAX - used ||
	       session_yield(endpoint, used == SESSIONS_MAX && has < SESSIONS_MAX / 2, nid);
}

static void session_join(
	struct mx_endpoint *endpoint, uint32_t session, uint32_t number, uint32_t rank)
{
	endpoint->sessions[session].number = number;
	endpoint->sessions[session].rank = rank;
	endpoint->sessions[session].state = SESSION_OPEN;
	messages_join(endpoint->messages, session, rank);
}

/* S2. The session is open, but not with these. */
static bool session_differs(const struct session *session, uint32_t number, uint32_t rank)
{
	return session && session->state == SESSION_OPEN &&
	       (session->number != number || session->rank != rank);
}

void session_failed(void *owner, uint32_t session, const char *why)
{
	struct mx_endpoint *endpoint = owner;
	mx_status_code_t code = MX_STATUS_ENDPOINT_UNREACHABLE;

	(void)why;
	if (messages_is_stranger(endpoint->messages, session))
		code = MX_STATUS_BAD_SESSION;
	else if (messages_is_closed(endpoint->messages, session))
		code = MX_STATUS_ENDPOINT_CLOSED;
	session_end(endpoint, session, code);
}

/* --- asking */

/* Returns false if it could not be sent. */
static bool greeting_send(struct mx_endpoint *endpoint, struct process to, uint64_t first,
	uint32_t rank, uint64_t token, bool asks)
{
	const uint64_t words[3] = {first, (uint64_t)endpoint->number << 32 | rank, token};

	return greetings_send(&endpoint->greetings, endpoint->messages, to, words, asks);
}

/* Asks a request's peer. Returns false if there is no place for it. */
static bool connect_ask(struct mx_endpoint *endpoint, struct request *request)
{
	struct contact *contact = &endpoint->contacts[request->contact];
	const struct process to = {.nid = contact->nid, .pid = MX_PROCESS + contact->id};
	struct session *session;

	if (session_is_over(session_last(endpoint, contact)) && !session_begin(endpoint, contact))
		return false;
	request->refused = false;
	request->due = UINT64_MAX;
	session = &endpoint->sessions[contact->session];
	if (session->token == 0 || request->token < session->token)
		session->token = request->token;
	if (!greeting_send(endpoint, to,
		    (uint64_t)GREETING_ASK << GREETING_KIND_AT | request->filter,
		    endpoint->sessions[contact->session].name, request->token, true))
		request->due = library_now() + REPEAT;
	return true;
}

void connect_end(struct mx_endpoint *endpoint, struct request *request, mx_status_code_t code)
{
	link_remove(&request->link);
	if (code == MX_STATUS_SUCCESS)
		request->status.source =
			endpoint->sessions[endpoint->contacts[request->contact].session].address;
	request_complete(request, code);
}

static struct request *connect_of(struct mx_endpoint *endpoint, uint64_t token)
{
	list_each (struct request, request, &endpoint->connects, link)
		if (request->token == token)
			return request;
	return NULL;
}

/* S4 */
void session_answered(void *owner, struct greeting *greeting, enum greeting_result result)
{
	struct mx_endpoint *endpoint = owner;
	const bool here = greeting->to.nid == endpoint->self.nid;
	const uint64_t token = greetings_ended(&endpoint->greetings, greeting);
	struct request *request = token != 0 ? connect_of(endpoint, token) : NULL;

	if (request && result == GREETING_TAKEN)
		request->due = library_now() + REPEAT;
	else if (request && result == GREETING_REFUSED) {
		request->due = library_now() + AGAIN;
		request->refused = true;
	} else if (request && result == GREETING_DENIED) {
		request->denied = true;
		request->status.code = MX_STATUS_ENDPOINT_CLOSED;
	} else if (request && result == GREETING_CLOSED)
		request->status.code = MX_STATUS_ENDPOINT_CLOSED;
	else if (request && result == GREETING_LOST)
		request->status.code =
			here ? MX_STATUS_ENDPOINT_CLOSED : MX_STATUS_ENDPOINT_UNREACHABLE;
}

bool session_greeted(void *owner, struct process from, const struct greeting *greeting)
{
	struct mx_endpoint *endpoint = owner;

	return greetings_keep(&endpoint->greetings, from, greeting);
}

/* S2, S3. The contact of a peer that has asked, with a session; NULL: there is no place. The share
 * is looked at first: what takes a place of another's may not be one too many. */
static struct contact *session_meet(
	struct mx_endpoint *endpoint, struct process from, uint32_t number, uint32_t rank)
{
	const uint32_t id = from.pid - MX_PROCESS;
	struct contact *contact = contact_known(endpoint, from.nid, id);

	if (contact && session_differs(session_last(endpoint, contact), number, rank))
		session_lose(endpoint, contact->session, MX_STATUS_BAD_SESSION);
	if (!contact || session_is_over(session_last(endpoint, contact))) {
		if (!node_has_share(endpoint, from.nid) ||
			!(contact = contact_find(endpoint, from.nid, id)) ||
			!session_begin(endpoint, contact))
			return NULL;
	}
	session_join(endpoint, contact->session, number, rank);
	return contact;
}

static void ask_take(struct mx_endpoint *endpoint, const struct kept_greeting *kept)
{
	const uint64_t *words = kept->words;
	mx_status_code_t code = MX_STATUS_SUCCESS;
	struct contact *contact = NULL;

	if ((uint32_t)words[0] != endpoint->filter)
		code = MX_STATUS_BAD_KEY;
	else if (!(contact = session_meet(
			   endpoint, kept->from, (uint32_t)(words[1] >> 32), (uint32_t)words[1])))
		code = MX_STATUS_NO_RESOURCES;
	(void)greeting_send(endpoint, kept->from,
		(uint64_t)GREETING_ANSWER << GREETING_KIND_AT | (uint64_t)code << GREETING_CODE_AT,
		code == MX_STATUS_SUCCESS ? endpoint->sessions[contact->session].name : 0, words[2],
		false);
}

/* S7 */
static void answer_take_late(struct mx_endpoint *endpoint, const struct kept_greeting *kept)
{
	const struct contact *contact =
		contact_known(endpoint, kept->from.nid, kept->from.pid - MX_PROCESS);
	const struct session *session = contact ? session_last(endpoint, contact) : NULL;

	if (session && session->state == SESSION_ASKING &&
		kept->words[2] - session->token <= endpoint->tokens - session->token)
		session_join(endpoint, contact->session, (uint32_t)(kept->words[1] >> 32),
			(uint32_t)kept->words[1]);
}

static void answer_take(struct mx_endpoint *endpoint, const struct kept_greeting *kept)
{
	const uint64_t *words = kept->words;
	struct request *request = connect_of(endpoint, words[2]);
	mx_status_code_t code = words[0] >> GREETING_CODE_AT & 0xff;
	uint32_t number = (uint32_t)(words[1] >> 32), rank = (uint32_t)words[1];
	struct contact *contact;

	if (!request && code == MX_STATUS_SUCCESS)
		answer_take_late(endpoint, kept);
	if (!request)
		return;
	contact = &endpoint->contacts[request->contact];
	if (contact->nid != kept->from.nid || MX_PROCESS + contact->id != kept->from.pid)
		return;
	if (code != MX_STATUS_SUCCESS) {
		connect_end(endpoint, request,
			code == MX_STATUS_BAD_KEY ? MX_STATUS_BAD_KEY : MX_STATUS_NO_RESOURCES);
		return;
	}
	/* It must hear a rank that it, or its earlier life, never had. */
	if (session_differs(session_last(endpoint, contact), number, rank))
		session_lose(endpoint, contact->session, MX_STATUS_BAD_SESSION);
	if (session_is_over(session_last(endpoint, contact))) {
		if (!connect_ask(endpoint, request))
			connect_end(endpoint, request, MX_STATUS_NO_RESOURCES);
		return;
	}
	session_join(endpoint, contact->session, number, rank);
	connect_end(endpoint, request, MX_STATUS_SUCCESS);
}

static void kept_greeting_take(void *owner, const struct kept_greeting *kept)
{
	struct mx_endpoint *endpoint = owner;

	if (kept->from.pid - MX_PROCESS >= ENDPOINT_IDS)
		return; /* no endpoint of MX */
	switch (kept->words[0] >> GREETING_KIND_AT) {
	case GREETING_ASK:
		ask_take(endpoint, kept);
		break;
	case GREETING_ANSWER:
		answer_take(endpoint, kept);
		break;
	default:
		break;
	}
}

/* Why a connect ends that nobody has answered; PENDING: it does not yet. */
static mx_status_code_t connect_failure(const struct request *request, uint64_t now)
{
	if (request_is_late(request, now))
		return MX_STATUS_TIMEOUT;
	if (request->status.code != MX_STATUS_PENDING)
		return request->status.code; /* S4 */
	if (request->refused && now >= request->end - CONNECT_TIMEOUT + READY)
		return MX_STATUS_ENDPOINT_CLOSED;
	return now >= request->end && !request->limited ? MX_STATUS_ENDPOINT_UNREACHABLE
							: MX_STATUS_PENDING;
}

/* Connects that are asked again, or have waited long enough. */
static __attribute__((noinline)) void connects_progress(struct mx_endpoint *endpoint)
{
	const uint64_t now = library_now();

	list_each (struct request, request, &endpoint->connects, link) {
		mx_status_code_t code = connect_failure(request, now);

		if (code != MX_STATUS_PENDING)
			connect_end(endpoint, request, code);
		else if (now >= request->due && !connect_ask(endpoint, request))
			connect_end(endpoint, request, MX_STATUS_NO_RESOURCES);
	}
}

/* The clock is read for messages_review() by a thread that blocks, and now and then by others. */
void sessions_progress(struct mx_endpoint *endpoint)
{
	if (!list_empty(&endpoint->greetings.waiting))
		greetings_answer(&endpoint->greetings, kept_greeting_take, endpoint);
	if (!list_empty(&endpoint->connects))
		connects_progress(endpoint);
	if (endpoint->looks-- == 0) {
		endpoint->looks = LOOKS - 1;
		(void)messages_review(endpoint->messages, false);
	}
}

/* --- connects */

/* Begins a connect under the lock. *code: what the call returns if NULL is returned. */
static struct request *connect_begin(struct mx_endpoint *endpoint, uint32_t nid, uint32_t id,
	uint32_t filter, uint64_t match_info, void *context)
{
	struct request *request = request_take(endpoint, REQUEST_CONNECT, match_info, context);
	struct contact *contact;

	if (!request)
		return NULL;
	request->token = ++endpoint->tokens;
	request->filter = filter;
	request->status = (mx_status_t){
		.code = MX_STATUS_PENDING, .match_info = match_info, .context = context};
	request->denied = request->limited = false;
	request->end = library_now() + CONNECT_TIMEOUT;
	if (id >= ENDPOINT_IDS) {
		request_complete(request, MX_STATUS_BAD_ENDPOINT);
		return request;
	}
	contact = contact_find(endpoint, nid, id);
	if (!contact)
		goto no_place;
	request->contact = (uint32_t)(contact - endpoint->contacts);
	contact->wanted = true;
	if (!connect_ask(endpoint, request))
		goto no_place;
	list_append(&endpoint->connects, &request->link);
	request_limit(request, endpoint->request_timeout);
	service_call(); /* the peer may be an endpoint of this process */
	return request;
no_place:
	request_give(request);
	return NULL;
}

static const char no_nic[] = "no NIC has that id; use one of mx_hostname_to_nic_id()";
static const char no_memory[] = "there is not enough memory, or there are 1,024 peers";

mx_return_t mx_iconnect(mx_endpoint_t endpoint, uint64_t nic_id, uint32_t endpoint_id,
	uint32_t filter, uint64_t match_info, void *context, mx_request_t *request)
{
	static const char name[] = "mx_iconnect";
	struct request *connect;
	mx_return_t code;
	uint32_t nid;

	if (!endpoint_enter(endpoint, name, &code))
		return code;
	if (!nic_id_nid(nic_id, &nid))
		return endpoint_fail(endpoint, MX_NIC_NOT_FOUND, name, no_nic);
	connect = connect_begin(endpoint, nid, endpoint_id, filter, match_info, context);
	if (!connect)
		return endpoint_fail(endpoint, MX_NO_RESOURCES, name, no_memory);
	if (request)
		*request = request_handle(connect);
	else
		request_forget(connect);
	return endpoint_leave(endpoint);
}

static bool connect_done(void *context)
{
	const struct request *request = context;

	return request->done;
}

static mx_return_t connect_code(mx_status_code_t code, bool denied, const char **text)
{
	switch (code) {
	case MX_STATUS_BAD_KEY:
		*text = "the peer was opened with another filter; give that";
		return MX_BAD_CONNECTION_KEY;
	case MX_STATUS_BAD_ENDPOINT:
		*text = "no endpoint has such an id; give one below 1,024";
		return MX_BAD_ENDPOINT_ID;
	case MX_STATUS_ENDPOINT_CLOSED:
		*text = denied ? "the endpoint is another user's; run both programs as one user"
			       : "the peer has no such endpoint open; open it first";
		return MX_CONNECTION_FAILED;
	case MX_STATUS_NO_RESOURCES:
		*text = no_memory;
		return MX_NO_RESOURCES;
	default:
		*text = "nobody has answered in time; check that the peer runs";
		return MX_TIMEOUT;
	}
}

mx_return_t mx_connect(mx_endpoint_t endpoint, uint64_t nic_id, uint32_t endpoint_id,
	uint32_t filter, uint32_t timeout, mx_endpoint_addr_t *addr)
{
	static const char name[] = "mx_connect";
	mx_status_code_t status = MX_STATUS_TIMEOUT;
	struct request *request;
	const char *text;
	mx_return_t code;
	uint32_t nid;
	bool denied;

	if (!endpoint_enter_blocking(endpoint, name, &code))
		return code;
	if (!nic_id_nid(nic_id, &nid))
		return endpoint_fail(endpoint, MX_NIC_NOT_FOUND, name, no_nic);
	request = connect_begin(endpoint, nid, endpoint_id, filter, 0, NULL);
	if (!request)
		return endpoint_fail(endpoint, MX_NO_RESOURCES, name, no_memory);
	request->owned = true;
	request->limited = timeout != MX_INFINITE;
	if (request->done || endpoint_block(endpoint, connect_done, request, timeout, AGAIN))
		status = request->status.code;
	else
		link_remove(&request->link);
	if (status == MX_STATUS_SUCCESS)
		*addr = request->status.source;
	denied = request->denied;
	request_give(request);
	if (status != MX_STATUS_SUCCESS) {
		code = connect_code(status, denied, &text);
		return endpoint_fail(endpoint, code, name, text);
	}
	return endpoint_leave(endpoint);
}

mx_return_t mx_disconnect(mx_endpoint_t endpoint, mx_endpoint_addr_t addr)
{
	struct contact *contact;
	mx_return_t code;
	uint32_t session;

	if (!endpoint_enter(endpoint, "mx_disconnect", &code))
		return code;
	session = session_of(endpoint, addr);
	if (session != SESSION_NONE && session != 0) {
		contact = &endpoint->contacts[endpoint->sessions[session].contact];
		contact->context = NULL;
		contact->wanted = false;
		list_each (struct request, request, &endpoint->connects, link)
			if (&endpoint->contacts[request->contact] == contact)
				connect_end(endpoint, request, MX_STATUS_ENDPOINT_UNREACHABLE);
		if (contact->session != SESSION_NONE)
			session_lose(endpoint, contact->session, MX_STATUS_ENDPOINT_UNREACHABLE);
	}
	return endpoint_leave(endpoint);
}

/* --- opening and closing */

bool sessions_open(struct mx_endpoint *endpoint)
{
	struct contact *self;

	endpoint->contact_count = endpoint->session_count = 0;
	endpoint->reviewed = endpoint->looks = 0;
	endpoint->sessions_begun = 0;
	/* An answer to an earlier life of this id, which a peer gives late, names none of these. */
	endpoint->tokens = (uint64_t)endpoint->number << 32;
	list_init(&endpoint->lost);
	self = contact_find(endpoint, endpoint->self.nid, endpoint->id);
	if (!self || !session_begin(endpoint, self))
		return false;
	session_join(
		endpoint, self->session, endpoint->number, endpoint->sessions[self->session].name);
	return true;
}

void sessions_close(struct mx_endpoint *endpoint)
{
	endpoint->session_count = 0;
	greetings_close(&endpoint->greetings);
}
