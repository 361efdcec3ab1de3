/* SPDX-License-Identifier: BSD-3-Clause */
/* name.c - names of hosts: questions to everybody on the network, and the answers to theirs. Owned
 * by one poll core.
 *
 * A process that knows its host's name (transport_name()) answers for it. Nobody knows the process
 * ids of a host that is looked for, so a question goes to one process id after the other, of those
 * that the asker names, and begins again with the first one after a pause:
 *
 *     asker                                              beta, process id 7
 *     FIND (any node, process id 5): "beta", NIC 0  ──▶  not this one's
 *     FIND (any node, process id 6)                 ──▶
 *     FIND (any node, process id 7)                 ──▶  is it this host's name?
 *                                                   ◀──  FOUND "beta.example.org", NIC 0
 *
 * N1. A question makes no state where it arrives. At most one process of a host answers a question,
 *     with a frame as long as it is, to where it came from; and answers are bounded in time.
 * N2. An answer counts only if it repeats the number of a question that is out, which cannot be
 *     guessed, and has the name, or is of the node, that was asked for.
 * N3. Two nodes that claim one name within NAME_SETTLE make the answer ambiguous: neither is
 *     believed.
 * N4. Each transport_find() ends in one name_done().
 * N5. Nobody is asked, and nobody answers, where node ids are IPv4 addresses, whose names the
 *     system knows; nor is anybody asked on a port that reaches no other host.
 */
#include <transport/name.h>

#include <string.h>

#include <rte_mbuf.h>

#include <base/hostname.h>
#include <base/random.h>
#include <transport/address.h>
#include <transport/outbox.h>

#define NAME_SPACING      (100 * MICROSECOND) /* between two questions */
#define NAME_FIRST_SPREAD (5 * MILLISECOND)   /* within which the first question is sent */
#define NAME_FIRST_PAUSE  (20 * MILLISECOND)  /* before the process ids begin again; doubles, */
#define NAME_LAST_PAUSE   (200 * MILLISECOND) /* up to this */
#define NAME_SETTLE       (15 * MILLISECOND)  /* after the first answer */
#define NAME_RUN          4                   /* questions in a turn, at most */
/* what an answer counts for: itself, and what it costs to read the question */
#define FOUND_BYTES 256

/* --- names */

/* N5: by the system. */
static bool names_known(const struct transport *transport)
{
	return transport->neighbours || transport->port->addressed;
}

/* Is it a name: printable, at least one character, and zeros behind it? Names are ASCII or UTF-8.
 */
static bool name_is_good(const struct frame_name *name)
{
	size_t length = strnlen(name->host, sizeof(name->host));

	if (length == 0 || length == sizeof(name->host))
		return false;
	for (size_t i = 0; i < sizeof(name->host); i++)
		if (i < length ? (unsigned char)name->host[i] <= ' ' || name->host[i] == ':' ||
					 name->host[i] == 0x7f
			       : name->host[i] != '\0')
			return false;
	return true;
}

static bool name_is_same(const struct frame_name *a, const struct frame_name *b)
{
	return a->board == b->board &&
	       hostname_is_same(a->host, strlen(a->host), b->host, strlen(b->host));
}

/* Is this the name that was asked for, or of the node whose name was? */
static bool name_matches(
	const struct name_query *query, const struct frame_name *name, uint32_t nid)
{
	return query->wanted.host[0] != '\0' ? name_is_same(&query->wanted, name)
					     : query->nid == nid;
}

static void name_read(const struct frame_view *frame, struct frame_name *name)
{
	memcpy(name, frame->body, sizeof(*name));
	name->board = rte_le_to_cpu_32(name->board);
}

/* Sends a frame with a name behind its header. Returns false without room or memory. */
static bool name_send(struct transport *transport, struct frame *frame,
	const struct frame_name *name, const uint8_t *to)
{
	struct frame_name wire = *name;

	wire.board = rte_cpu_to_le_32(wire.board);
	frame->flags = FRAME_FULL_SUM;
	frame->length = FRAME_HEADER_BYTES + sizeof(wire);
	return outbox_send(transport, frame, &wire, to);
}

/* --- answering */

void transport_name(struct transport *transport, const struct frame_name *name)
{
	owner_check(&transport->owner);
	transport->names.own = *name;
}

/* Is it for this process, and asks for its host, or for its host's name? */
static bool question_is_mine(const struct transport *transport, const struct frame_view *frame)
{
	const struct frame_header *header = frame->header;
	const struct process self = transport->options.self;
	const struct frame_name *own = &transport->names.own;
	struct frame_name wanted;

	if (names_known(transport) || own->host[0] == '\0' || header->destination_pid != self.pid ||
		(header->destination_nid != PORT_ANY_NODE && header->destination_nid != self.nid))
		return false;
	name_read(frame, &wanted);
	if (wanted.host[0] == '\0')
		return header->destination_nid == self.nid;
	return name_is_good(&wanted) && name_is_same(&wanted, own);
}

void name_asked(struct transport *transport, const struct frame_view *view, const uint8_t *from)
{
	struct frame answer = {
		.type = FRAME_FOUND,
		.destination_nid = view->header->source_nid,
		.destination_pid = view->header->source_pid,
		.destination_incarnation = view->header->source_incarnation,
		.psn = view->header->psn,
		.ack = view->header->ack,
	};

	if (!from || !question_is_mine(transport, view)) {
		COUNT(transport, dropped_foreign);
		return;
	}
	COUNT(transport, finds_received);
	if (!answer_spend(transport, &transport->names.paid, FOUND_BYTES) ||
		!name_send(transport, &answer, &transport->names.own, from))
		COUNT(transport, dropped_find);
}

/* --- asking */

static void query_end(
	struct transport *transport, struct name_query *query, enum name_outcome outcome)
{
	const struct transport_upcalls *upcalls = &transport->upcalls;

	link_remove(&query->link);
	query->outcome = outcome;
	upcalls->name_done(upcalls->context, query);
}

void transport_find(struct transport *transport, struct name_query *query)
{
	owner_check(&transport->owner);
	transport_stir(transport);
	query->begun = 0; /* the clock was read in the last turn, perhaps long ago */
	query->asked = 0;
	query->found = query->ambiguous = false;
	query->number = secret_number(&transport->options.secret, ++transport->names.number,
		transport->options.incarnation, 0);
	list_append(&transport->names.queries, &query->link);
	if (names_known(transport) || transport->port->lone) /* N5 */
		query_end(transport, query, NAME_UNKNOWN);
	else
		transport->echoes.busy = true;
}

void transport_find_abandon(struct transport *transport)
{
	struct name_query *query;

	owner_check(&transport->owner);
	while ((query = list_first(&transport->names.queries, struct name_query, link)))
		query_end(transport, query, NAME_CLOSED);
}

/* Down to half of it, by chance: the processes of a job begin to ask at the same time. */
static uint64_t wait_spread(struct transport *transport, uint64_t wait)
{
	return wait - random_next(&transport->random) % (wait / 2);
}

/* When the question after this one is sent. */
static uint64_t query_wait(struct transport *transport, const struct name_query *query)
{
	const uint32_t rounds = query->asked / query->pids; /* with this one */

	if (query->asked % query->pids != 0)
		return NAME_SPACING;
	return wait_spread(
		transport, RTE_MIN(NAME_FIRST_PAUSE << RTE_MIN(rounds - 1, 10u), NAME_LAST_PAUSE));
}

static void query_send(struct transport *transport, struct name_query *query)
{
	struct frame question = {
		.type = FRAME_FIND,
		.destination_nid = query->wanted.host[0] != '\0' ? PORT_ANY_NODE : query->nid,
		.destination_pid = query->pid + query->asked % query->pids,
		.psn = (uint32_t)query->number,
		.ack = (uint32_t)(query->number >> 32),
	};

	if (!name_send(transport, &question, &query->wanted, broadcast)) {
		query->next = transport->now + NAME_SPACING;
		return;
	}
	COUNT(transport, finds_sent);
	query->asked++;
	query->next = transport->now + query_wait(transport, query);
}

/* Sends what is due of a query. Returns how many questions that was. */
static unsigned query_run(struct transport *transport, struct name_query *query)
{
	if (query->begun == 0) {
		query->begun = transport->now;
		query->next = transport->now + random_next(&transport->random) % NAME_FIRST_SPREAD;
		query->ends = transport->now + RTE_MIN(query->timeout, UINT64_MAX - transport->now);
	}
	if (transport->now >= query->ends) {
		query_end(transport, query,
			query->ambiguous ? NAME_AMBIGUOUS
					 : (query->found ? NAME_FOUND : NAME_UNKNOWN));
		return 0;
	}
	if (transport->now < query->next)
		return 0;
	query_send(transport, query);
	return 1;
}

void names_run(struct transport *transport)
{
	unsigned sent = 0;

	list_each (struct name_query, query, &transport->names.queries, link)
		if (sent < NAME_RUN)
			sent += query_run(transport, query);
}

uint64_t names_deadline(const struct transport *transport)
{
	uint64_t due = UINT64_MAX;

	list_each (const struct name_query, query, &transport->names.queries, link)
		due = RTE_MIN(due, query->begun == 0 ? 0 : RTE_MIN(query->next, query->ends));
	return due;
}

void name_told(struct transport *transport, const struct frame_view *view)
{
	const struct frame_header *header = view->header;
	const uint64_t number = (uint64_t)header->ack << 32 | header->psn;
	struct frame_name name;

	name_read(view, &name);
	list_each (struct name_query, query, &transport->names.queries, link) {
		if (query->number != number || query->asked == 0 || !name_is_good(&name) ||
			!name_matches(query, &name, header->source_nid))
			continue;
		COUNT(transport, find_answers_received);
		if (!query->found) {
			query->ends = RTE_MIN(query->ends, transport->now + NAME_SETTLE);
			query->found = true;
			query->name = name;
			query->nid = header->source_nid;
		} else if (query->nid != header->source_nid) {
			query->ambiguous = true; /* N3 */
			query->other = header->source_nid;
		}
		return;
	}
	COUNT(transport, dropped_find_answer);
}
