/* SPDX-License-Identifier: BSD-3-Clause */
/* peer.c - processes that an endpoint talks to. A peer is one life of an endpoint (state.h, F5),
 * and has a number at each end, which lib/messages gives; a greeting tells the other one's.
 *
 *     asks                                           is asked
 *
 *     admits the peer: its name here
 *     ASK life wanted, own life, name, token  ──▶    admits the asker, joins
 *     joins; what waits is sent               ◀──    ANSWER code, life, name, token
 *
 * P1. A name goes out only after the peer that has it was admitted, so the first message of a peer
 *     finds its peer here.
 * P2. A peer that is asked for another life of it says so: the address is of nobody any more.
 * P3. Another life of a process, or another name that it gives, ends the peer before: what waits
 *     for it fails. A peer that was lost has another number when it is talked to again. Messages
 *     that were kept of it have the old number: a receive that names the peer looks there first.
 * P4. An ASK that was taken is answered when the peer's program makes calls, however late. It is
 *     asked again ever more seldom, in case the answer was dropped.
 * P5. What becomes of a greeting may be heard inside of any call of lib/messages: it is noted, and
 *     peers_progress() acts. A node has a share of the greetings that wait, and of the answers that
 *     are under way (messages/greetings.h). An ASK that was dropped is sent again.
 * P6. When all numbers are used, those of lost peers are given back, then the number of the peer
 *     that was admitted first among these: strangers that have sent nothing; if there are none,
 *     peers that are not in the vector and that no operation and no kept message names; if there
 *     are none, peers that are in the vector and have sent nothing, and that the program has not
 *     named. A stranger is a peer that is not in the vector and that the program has not named.
 * P7. A node gets a number for another stranger only if it has fewer strangers than numbers are
 *     free. So the strangers of one node have at most half of all numbers. The endpoint's own node
 *     has no such limit. At the limit, a new stranger takes the number of another stranger of its
 *     node, by the order of P6; if there is none, the new one is refused. But the sender of a
 *     greeting can forge the node as well as the process. So when all numbers are used, a new
 *     stranger of a node that has less than half of them takes any peer's, by the order of P6.
 * P8. A receive that names a peer which was lost, and of which no message is kept, greets it again:
 *     the receive waits as long as the peer lives. The peers that waiting receives name are asked
 *     for a sign of life twice a second, those without contact by a greeting. With
 *     PTL_PROGRESS=inline they are not: a peer that computes would not answer.
 */
#include <fi/state.h>

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <base/clock.h>
#include <base/settings.h>
#include <host/member.h>

#define AGAIN   (5 * MILLISECOND) /* before a peer that is not ready is asked again */
#define REPEAT  SECOND            /* P4: at first */
#define SELDOM  (16 * SECOND)     /* at last */
#define LOOKS   16                /* calls, for one look at the clock */
#define YIELDS  4 /* peers that are lost at most for one number: it may be in use for a while */
#define NO_PEER UINT32_MAX

/* The first word of a greeting: kind, code of an answer, life that is wanted. */
#define KIND_AT 56
#define CODE_AT 32
enum { GREETING_ASK = 0x46, GREETING_ANSWER };
enum { CODE_OK, CODE_STRANGER, CODE_FULL };

static bool peer_lives(const struct peer *peer)
{
	return peer->state == PEER_NAMED || peer->state == PEER_ASKING || peer->state == PEER_OPEN;
}

static bool peer_is(const struct peer *peer, struct process process, uint32_t life)
{
	return peer_lives(peer) && peer->life == life && process_same(peer->process, process);
}

static uint32_t peer_find(const struct endpoint *endpoint, struct process process, uint32_t life)
{
	for (uint32_t i = 0; i < endpoint->peer_count; i++)
		if (peer_is(&endpoint->peers[i], process, life))
			return i;
	return NO_PEER;
}

static bool peer_was(const struct peer *peer, struct process process, uint32_t life)
{
	return peer->state == PEER_LOST && peer->life == life &&
	       process_same(peer->process, process);
}

uint32_t peer_index(struct endpoint *endpoint, uint32_t number)
{
	struct peer *peer = &endpoint->peers[number];

	peer->index = av_find(endpoint->av, peer->process, peer->life, peer->index);
	return peer->index;
}

struct address peer_address(const struct endpoint *endpoint, uint32_t number)
{
	const struct peer *peer = &endpoint->peers[number];
	struct address address = endpoint->self;

	address.nid = peer->process.nid;
	address.pid = peer->process.pid;
	address.life = peer->life;
	memset(address.port, 0, sizeof(address.port)); /* not known here */
	return address;
}

/* --- ends */

static void peer_end(struct endpoint *endpoint, struct peer *peer, int err)
{
	if (!peer_lives(peer))
		return;
	endpoint->asking -= peer->state == PEER_ASKING;
	peer->state = PEER_LOST;
	peer->err = err;
	peer->ending = true;
	endpoint->ending++;
}

static void peer_lose(struct endpoint *endpoint, uint32_t number, int err)
{
	peer_end(endpoint, &endpoint->peers[number], err);
	messages_dismiss(endpoint->messages, number);
}

void peer_failed(void *owner, uint32_t number, const char *why)
{
	struct endpoint *endpoint = owner;
	const struct process process = endpoint->peers[number].process;

	WARN(EP_DATA, "process %u:%u %s; messages of fi_inject() to it may not have arrived\n",
		process.nid, process.pid, why);
	peer_end(endpoint, &endpoint->peers[number],
		messages_is_stranger(endpoint->messages, number) ? FI_EHOSTUNREACH : FI_EIO);
}

/* P7 */
static bool peer_is_stranger(struct endpoint *endpoint, uint32_t number)
{
	return !endpoint->peers[number].wanted && peer_index(endpoint, number) == AV_NONE;
}

static bool peer_is_kept_from(const struct endpoint *endpoint, uint32_t number)
{
	struct receive_wish all = {.peer = number, .ignore = UINT64_MAX};
	struct message_found found;
	bool kept = false;

	for (; all.class < CLASSES && !kept; all.class ++)
		kept = messages_probe_wish(endpoint->messages, &all, &found);
	return kept;
}

enum {
	SPARE_NOT,
	SPARE_IN_VECTOR,
	SPARE_IDLE, /* if it is: peer_is_idle() */
	SPARE_UNKNOWN
};

/* P6. How soon its number may be given to another process: the more, the sooner. */
static unsigned peer_spare(struct endpoint *endpoint, uint32_t number)
{
	const struct peer *peer = &endpoint->peers[number];
	const bool outside = peer_index(endpoint, number) == AV_NONE;

	if (!peer_lives(peer))
		return SPARE_NOT;
	if (!peer->wanted && !messages_has_carried(endpoint->messages, number))
		return outside ? SPARE_UNKNOWN : SPARE_IN_VECTOR;
	return outside ? SPARE_IDLE : SPARE_NOT;
}

/* After operations_mark(). */
static bool peer_is_idle(struct endpoint *endpoint, uint32_t number)
{
	return !endpoint->peers[number].named && !messages_is_owed(endpoint->messages, number) &&
	       !peer_is_kept_from(endpoint, number);
}

/* P6. The numbers of lost peers are free. Returns false if there are none. */
static bool peers_reclaim(struct endpoint *endpoint)
{
	bool reclaimed = false;

	for (uint32_t i = 1; i < endpoint->peer_count; i++)
		if (endpoint->peers[i].state == PEER_LOST && !endpoint->peers[i].ending &&
			messages_retire(endpoint->messages, i)) {
			endpoint->peers[i].state = PEER_FREE;
			reclaimed = true;
		}
	return reclaimed;
}

/* P6. The peer whose number is freed first: of all, or of a node's strangers. NO_PEER: none. */
static uint32_t peer_first(struct endpoint *endpoint, bool any, uint32_t nid)
{
	uint32_t first = NO_PEER;
	unsigned most = SPARE_NOT;

	operations_mark(endpoint);
	for (uint32_t i = 1; i < endpoint->peer_count; i++) {
		const struct peer *peer = &endpoint->peers[i];
		unsigned spare;

		if (!any && (peer->process.nid != nid || !peer_is_stranger(endpoint, i)))
			continue;
		spare = peer_spare(endpoint, i);
		if (spare == SPARE_NOT || spare < most ||
			(spare == most && peer->begun > endpoint->peers[first].begun))
			continue;
		/* A stranger can have this asked often, so it is asked last. */
		if (spare == SPARE_IDLE && !peer_is_idle(endpoint, i))
			continue;
		first = i;
		most = spare;
	}
	return first;
}

/* Frees the number of a peer, as peer_first() says. Returns false if there is none. */
static bool peer_yield(struct endpoint *endpoint, bool any, uint32_t nid)
{
	for (unsigned tries = YIELDS; tries > 0; tries--) {
		const uint32_t number = peer_first(endpoint, any, nid);

		if (number == NO_PEER)
			return false;
		peer_lose(endpoint, number, FI_EHOSTUNREACH);
		if (!messages_retire(endpoint->messages, number))
			continue; /* it is reclaimed later */
		endpoint->ending -= endpoint->peers[number].ending;
		endpoint->peers[number].ending = false;
		endpoint->peers[number].state = PEER_FREE;
		return true;
	}
	return false;
}

/* P7. Returns true if there may be another stranger of this node. Frees a number if need be. */
static bool node_has_share(struct endpoint *endpoint, uint32_t nid)
{
	uint32_t has = 0, used = 0;

	if (nid == endpoint->self.nid)
		return true;
	for (uint32_t i = 0; i < endpoint->peer_count; i++) {
		const struct peer *peer = &endpoint->peers[i];

		if (!peer_lives(peer))
			continue;
		used++;
		has += peer->process.nid == nid && peer_is_stranger(endpoint, i);
	}
	return has < endpoint->peers_max - used ||
	       peer_yield(
		       endpoint, used == endpoint->peers_max && has < endpoint->peers_max / 2, nid);
}

/* --- beginnings */

static bool is_again(const struct endpoint *endpoint, struct process process, uint32_t life)
{
	for (uint32_t i = 1; i < endpoint->peer_count; i++)
		if (peer_was(&endpoint->peers[i], process, life))
			return true;
	return false;
}

/* A peer of which nothing is known but its address. NO_PEER: there is no number. */
static uint32_t peer_begin(struct endpoint *endpoint, struct process process, uint32_t life)
{
	uint32_t number;

	if (!messages_admit(endpoint->messages, process, &number) &&
		!((peers_reclaim(endpoint) || peer_yield(endpoint, true, 0)) &&
			messages_admit(endpoint->messages, process, &number)))
		return NO_PEER;
	endpoint->peers[number] = (struct peer){.process = process,
		.life = life,
		.index = AV_NONE,
		.state = PEER_NAMED,
		.again = is_again(endpoint, process, life),
		.begun = endpoint->peers_begun++};
	if (number >= endpoint->peer_count)
		endpoint->peer_count = number + 1;
	return number;
}

static void peer_join(struct endpoint *endpoint, uint32_t number, uint32_t name)
{
	struct peer *peer = &endpoint->peers[number];

	endpoint->asking -= peer->state == PEER_ASKING;
	peer->state = PEER_OPEN;
	peer->name = name;
	endpoint->joined = true;
	messages_join(endpoint->messages, number, name);
}

/* Returns false if it could not be sent. */
static bool greeting_send(struct endpoint *endpoint, struct process to, uint64_t first,
	uint32_t name, uint64_t token, bool asks)
{
	const uint64_t words[3] = {first, (uint64_t)endpoint->self.life << 32 | name, token};

	return greetings_send(&endpoint->greetings, endpoint->messages, to, words, asks);
}

static void peer_ask(struct endpoint *endpoint, uint32_t number)
{
	struct peer *peer = &endpoint->peers[number];

	endpoint->asking += peer->state != PEER_ASKING;
	peer->state = PEER_ASKING;
	if (peer->token == 0)
		peer->token = ++endpoint->tokens;
	peer->due = UINT64_MAX;
	if (!greeting_send(endpoint, peer->process, (uint64_t)GREETING_ASK << KIND_AT | peer->life,
		    messages_name(endpoint->messages, number), peer->token, true))
		peer->due = library_now() + REPEAT;
}

static bool told_grow(struct endpoint *endpoint)
{
	uint32_t *told = realloc(endpoint->told, endpoint->av->count * sizeof(*told));

	if (!told)
		return false;
	for (uint32_t i = endpoint->told_count; i < endpoint->av->count; i++)
		told[i] = 0;
	endpoint->told = told;
	endpoint->told_count = endpoint->av->count;
	return true;
}

void peer_tell(struct endpoint *endpoint, fi_addr_t index, const struct address *address)
{
	static const uint8_t none[FRAME_ADDRESS_BYTES];
	struct card card = {.process = {.nid = address->nid, .pid = address->pid}};

	if (index >= endpoint->told_count && !told_grow(endpoint))
		return; /* everybody is asked */
	if (endpoint->told[index] == address->life)
		return;
	endpoint->told[index] = address->life;
	memcpy(card.address, address->port, sizeof(card.address));
	if (memcmp(card.address, none, sizeof(none)) != 0)
		member_knows(&fi_front, endpoint->interface, &card);
}

/* Room for the peers of all addresses of the vector. */
static bool ranks_grow(struct endpoint *endpoint)
{
	uint32_t *ranks = realloc(endpoint->ranks, endpoint->av->count * sizeof(*ranks));

	if (!ranks)
		return false;
	for (uint32_t i = endpoint->rank_count; i < endpoint->av->count; i++)
		ranks[i] = 0;
	endpoint->ranks = ranks;
	endpoint->rank_count = endpoint->av->count;
	return true;
}

/* peer_of() of one that is not known yet, or is to be greeted. */
static __attribute__((noinline)) int peer_look_up(struct endpoint *endpoint,
	const struct av_entry *entry, fi_addr_t index, bool greet, uint32_t *number)
{
	const struct process process = {.nid = entry->address.nid, .pid = entry->address.pid};
	struct peer *peer;

	if (index >= endpoint->rank_count && !ranks_grow(endpoint))
		return -FI_ENOMEM;
	*number = endpoint->ranks[index] - 1;
	if (*number == NO_PEER ||
		!peer_is(&endpoint->peers[*number], process, entry->address.life)) {
		*number = peer_find(endpoint, process, entry->address.life);
		peer_tell(endpoint, index, &entry->address);
		if (*number == NO_PEER)
			*number = peer_begin(endpoint, process, entry->address.life);
		if (*number == NO_PEER)
			return -FI_ENOMEM;
		endpoint->ranks[index] = *number + 1;
	}
	peer = &endpoint->peers[*number];
	peer->wanted = true;
	if (greet && peer->state == PEER_NAMED)
		peer_ask(endpoint, *number);
	return 0;
}

int peer_of(struct endpoint *endpoint, fi_addr_t index, bool greet, uint32_t *number)
{
	const struct av_entry *entry = av_at(endpoint->av, index);

	if (!entry)
		return -FI_EINVAL;
	if (index < endpoint->rank_count && endpoint->ranks[index] != 0) {
		const uint32_t known = endpoint->ranks[index] - 1;
		const struct peer *peer = &endpoint->peers[known];

		if (peer->wanted && (!greet || peer->state != PEER_NAMED) &&
			peer_is(peer, (struct process){entry->address.nid, entry->address.pid},
				entry->address.life)) {
			*number = known;
			return 0;
		}
	}
	return peer_look_up(endpoint, entry, index, greet, number);
}

/* P3. The oldest number of this peer that was lost and has kept a message that the receive matches.
 * NO_PEER: there is none. */
static uint32_t peer_kept(struct endpoint *endpoint, struct receive_wish wish)
{
	const struct peer *now = &endpoint->peers[wish.peer];
	uint32_t first = NO_PEER;
	struct message_found found;

	for (wish.peer = 1; wish.peer < endpoint->peer_count; wish.peer++) {
		const struct peer *peer = &endpoint->peers[wish.peer];

		if (peer_was(peer, now->process, now->life) &&
			(first == NO_PEER || peer->begun < endpoint->peers[first].begun) &&
			messages_probe_wish(endpoint->messages, &wish, &found))
			first = wish.peer;
	}
	return first;
}

int peer_from(struct endpoint *endpoint, fi_addr_t index, bool waits, struct receive_wish *wish)
{
	const int result = peer_of(endpoint, index, false, &wish->peer);
	uint32_t kept;

	if (result != 0 || !endpoint->peers[wish->peer].again)
		return result;
	kept = peer_kept(endpoint, *wish);
	if (kept == NO_PEER) /* P8 */
		return peer_of(endpoint, index, waits, &wish->peer);
	wish->peer = kept;
	/* A receive for many messages ends when it has those that were kept. */
	endpoint->ending += !endpoint->peers[kept].ending;
	endpoint->peers[kept].ending = true;
	return 0;
}

/* --- greetings */

void peer_answered(void *owner, struct greeting *greeting, enum greeting_result result)
{
	struct endpoint *endpoint = owner;
	const uint64_t token = greetings_ended(&endpoint->greetings, greeting);
	struct peer *peer = NULL;

	for (uint32_t i = 0; i < endpoint->peer_count && token != 0 && !peer; i++)
		if (endpoint->peers[i].state == PEER_ASKING && endpoint->peers[i].token == token)
			peer = &endpoint->peers[i];
	if (peer && result == GREETING_TAKEN) {
		peer->pause = peer->pause == 0 ? REPEAT : peer->pause * 2;
		peer->pause = peer->pause < SELDOM ? peer->pause : SELDOM;
		peer->due = library_now() + peer->pause;
		peer->since = 0;
	} else if (peer && result == GREETING_REFUSED) {
		peer->since = peer->since != 0 ? peer->since : library_now();
		peer->due = library_now() + AGAIN;
	} else if (peer) {
		peer->failure = result == GREETING_DENIED ? FI_EACCES : FI_EHOSTUNREACH;
	}
}

bool peer_greeted(void *owner, struct process from, const struct greeting *greeting)
{
	struct endpoint *endpoint = owner;

	return greetings_keep(&endpoint->greetings, from, greeting);
}

/* P3. The peer with this name, admitted if it is new. */
static uint32_t peer_meet(
	struct endpoint *endpoint, struct process from, uint32_t life, uint32_t name)
{
	uint32_t number = NO_PEER;

	for (uint32_t i = 1; i < endpoint->peer_count; i++) {
		const struct peer *peer = &endpoint->peers[i];

		if (!peer_lives(peer) || !process_same(peer->process, from))
			continue;
		if (peer->life != life || (peer->state == PEER_OPEN && peer->name != name))
			peer_lose(endpoint, i, FI_EHOSTUNREACH);
		else
			number = i;
	}
	if (number == NO_PEER && (av_find(endpoint->av, from, life, AV_NONE) != AV_NONE ||
					 node_has_share(endpoint, from.nid)))
		number = peer_begin(endpoint, from, life);
	if (number != NO_PEER && endpoint->peers[number].state != PEER_OPEN)
		peer_join(endpoint, number, name);
	return number;
}

static void ask_take(struct endpoint *endpoint, const struct kept_greeting *kept)
{
	const uint64_t *words = kept->words;
	uint64_t code = CODE_STRANGER;
	uint32_t number = NO_PEER;

	if ((uint32_t)words[0] == endpoint->self.life) {
		number = peer_meet(
			endpoint, kept->from, (uint32_t)(words[1] >> 32), (uint32_t)words[1]);
		code = number == NO_PEER ? CODE_FULL : CODE_OK;
	}
	(void)greeting_send(endpoint, kept->from,
		(uint64_t)GREETING_ANSWER << KIND_AT | code << CODE_AT,
		code == CODE_OK ? messages_name(endpoint->messages, number) : 0, words[2], false);
}

static void answer_take(struct endpoint *endpoint, const struct kept_greeting *kept)
{
	const uint64_t *words = kept->words;
	const uint32_t name = (uint32_t)words[1];

	for (uint32_t i = 1; i < endpoint->peer_count; i++) {
		struct peer *peer = &endpoint->peers[i];

		if (!peer_lives(peer) || peer->token == 0 || peer->token != words[2] ||
			!process_same(peer->process, kept->from))
			continue;
		switch (words[0] >> CODE_AT & 0xff) {
		case CODE_OK:
			if (peer->state == PEER_OPEN && peer->name != name)
				peer_lose(endpoint, i, FI_EHOSTUNREACH);
			else if (peer->state != PEER_OPEN && words[1] >> 32 == peer->life)
				peer_join(endpoint, i, name);
			break;
		case CODE_STRANGER: /* P2 */
			peer_lose(endpoint, i, FI_EHOSTUNREACH);
			break;
		default:
			break; /* it is asked again */
		}
	}
}

/* Peers that are asked again, or do not answer. */
static __attribute__((noinline)) void asking_progress(struct endpoint *endpoint)
{
	const uint64_t now = library_now();

	for (uint32_t i = 1; i < endpoint->peer_count && endpoint->asking != 0; i++) {
		struct peer *peer = &endpoint->peers[i];

		if (peer->state != PEER_ASKING)
			continue;
		if (peer->failure == 0 && peer->since != 0 &&
			now - peer->since > setting_number(SETTING_PEER_TIMEOUT))
			peer->failure = FI_EHOSTUNREACH;
		if (peer->failure != 0)
			peer_lose(endpoint, i, peer->failure);
		else if (now >= peer->due)
			peer_ask(endpoint, i);
	}
}

static void kept_greeting_take(void *owner, const struct kept_greeting *kept)
{
	const uint64_t kind = kept->words[0] >> KIND_AT;

	if (kind == GREETING_ASK)
		ask_take(owner, kept);
	else if (kind == GREETING_ANSWER)
		answer_take(owner, kept);
}

/* The receives from peers that were lost end. */
static __attribute__((noinline)) void ending_progress(struct endpoint *endpoint)
{
	for (uint32_t i = 1; i < endpoint->peer_count && endpoint->ending != 0; i++) {
		if (!endpoint->peers[i].ending)
			continue;
		endpoint->peers[i].ending = false;
		endpoint->ending--;
		messages_end_from(endpoint, i);
	}
}

/* P8 */
static __attribute__((noinline)) void receives_review(struct endpoint *endpoint)
{
	operations_mark(endpoint);
	for (uint32_t i = 1; i < endpoint->peer_count; i++) {
		if (!endpoint->peers[i].named)
			continue;
		if (endpoint->peers[i].state == PEER_NAMED)
			peer_ask(endpoint, i);
		else
			messages_ask(endpoint->messages, i);
	}
}

void peers_progress(struct endpoint *endpoint)
{
	if (!list_empty(&endpoint->greetings.waiting))
		greetings_answer(&endpoint->greetings, kept_greeting_take, endpoint);
	if (endpoint->asking != 0)
		asking_progress(endpoint);
	if (endpoint->ending != 0)
		ending_progress(endpoint);
	if (endpoint->looks++ % LOOKS == 0 &&
		messages_review(endpoint->messages, endpoint->directed != 0) &&
		endpoint->directed != 0 && !endpoint_is_inline(endpoint))
		receives_review(endpoint);
}

/* --- opening and closing */

/* The first peer is the endpoint itself. */
bool peers_open(struct endpoint *endpoint)
{
	const struct process self = {.nid = endpoint->self.nid, .pid = endpoint->self.pid};
	uint32_t number;

	endpoint->peers = calloc(endpoint->peers_max, sizeof(*endpoint->peers));
	(void)!getrandom(&endpoint->tokens, sizeof(endpoint->tokens), GRND_NONBLOCK);
	if (!endpoint->peers)
		return false;
	number = peer_begin(endpoint, self, endpoint->self.life);
	if (number == NO_PEER)
		return false;
	peer_join(endpoint, number, messages_name(endpoint->messages, number));
	return true;
}

void peers_close(struct endpoint *endpoint)
{
	greetings_close(&endpoint->greetings);
	free(endpoint->peers);
	free(endpoint->ranks);
	free(endpoint->told);
	endpoint->peers = NULL;
	endpoint->ranks = NULL;
	endpoint->told = NULL;
}
