/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_messages.c - message transmission in MPI, after chapter 5 of the Portals 3.2 specification.
 *
 * Short messages are sent and presumed to be received: a receiver without a matching receive keeps
 * them in buffers for unexpected ones. Long messages are sent too, but a receiver without a
 * matching receive keeps only the event; the sender leaves the message where a get can fetch it,
 * and that is what the receive does once it is posted.
 *
 * The receiver's match list, which arriving messages walk from the left:
 *
 *     posted receives, oldest first | mark | buffers for short messages | everything else, cut to
 * no bytes
 *                                          `---------- log to the queue of unexpected messages
 * ----------'
 *
 * A receive looks through the unexpected messages, then posts itself before the mark. A message
 * that comes between the two would be missed; so the receive is posted disabled (threshold 0)
 * first, and enabled by a PtlMDUpdate that succeeds only while the queue of unexpected messages is
 * empty.
 *
 * What differs from the specification's fragment: unexpected messages are queued in the order of
 * their START events, which is the order in which they were sent; and a get names the serial number
 * that came with the message, since several messages with the same match bits may be waiting.
 *
 * Two ranks, on two interfaces of this program, send to each other. It exits with 0 if every byte
 * is right.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <portals.h>
#include <postern.h>

#define INTERFACES   "loop:mpi;loop:mpi"
#define PORTAL_SEND  1 /* messages */
#define PORTAL_GET   2 /* long messages that wait to be fetched */
#define LONG_LENGTH  4096
#define LONG_BIT     (UINT64_C(1) << 63) /* of the match bits: this is a long message */
#define SHORT_BUFFER (4u << 20)
#define QUEUE_ROOM   4096
#define MESSAGES     500
#define LENGTH_MAX   (4 * LONG_LENGTH)

struct rank;

/* An MPI request: a send or a receive under way. */
struct request {
	struct rank *rank;
	ptl_size_t length; /* of a receive: received */
	int done;
	int sent;            /* of a send: the buffer has left */
	int taken;           /* of a long send: received or fetched */
	ptl_handle_md_t md;  /* to be unlinked at the end, or PTL_INVALID_HANDLE */
	ptl_handle_me_t get; /* of a long send: where it can be fetched */
};

/* A message that came before its receive was posted. */
struct unexpected {
	struct unexpected *next;
	ptl_event_t event; /* PUT_START, then PUT_END */
};

struct rank {
	ptl_handle_ni_t ni;
	ptl_process_id_t id;
	ptl_handle_eq_t queue; /* of requests */
	ptl_handle_eq_t unexpected_queue;
	ptl_handle_me_t receive_mark;  /* end of the posted receives */
	ptl_handle_me_t get_mark;      /* end of the long messages to be fetched */
	struct unexpected *unexpected; /* taken from the queue, oldest first */
	unsigned char *short_buffer;
	ptl_hdr_data_t serial;                          /* of the last message sent */
	unsigned found_posted, found_short, found_long; /* how its receives met their messages */
};

static const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};

static void check(int code, const char *call)
{
	if (code == PTL_OK)
		return;
	fprintf(stderr, "%s: %s\n", call, postern_error_text(code));
	exit(1);
}

static void expect(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "The check \"%s\" failed: the library or this program has a fault.\n",
		what);
	exit(1);
}

/* A mark accepts nothing: it has no descriptor, so messages pass over it. */
static ptl_handle_me_t mark_attach(struct rank *rank, ptl_pt_index_t portal)
{
	ptl_handle_me_t mark;

	check(PtlMEAttach(rank->ni, portal, anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &mark),
		"PtlMEAttach");
	return mark;
}

static void unexpected_attach(
	struct rank *rank, ptl_match_bits_t match, ptl_match_bits_t ignore, ptl_md_t memory)
{
	ptl_handle_me_t entry;

	memory.threshold = PTL_MD_THRESH_INF;
	memory.eventq = rank->unexpected_queue;
	check(PtlMEAttach(rank->ni, PORTAL_SEND, anybody, match, ignore, PTL_RETAIN, PTL_INS_AFTER,
		      &entry),
		"PtlMEAttach");
	check(PtlMDAttach(entry, memory, PTL_RETAIN, PTL_RETAIN, NULL), "PtlMDAttach");
}

static void rank_open(struct rank *rank, ptl_interface_t interface)
{
	check(PtlNIInit(interface, PTL_PID_ANY, NULL, NULL, &rank->ni), "PtlNIInit");
	check(PtlGetId(rank->ni, &rank->id), "PtlGetId");
	check(PtlEQAlloc(rank->ni, QUEUE_ROOM, &rank->queue), "PtlEQAlloc");
	check(PtlEQAlloc(rank->ni, QUEUE_ROOM, &rank->unexpected_queue), "PtlEQAlloc");
	rank->short_buffer = malloc(SHORT_BUFFER);
	expect(rank->short_buffer != NULL, "there is memory for unexpected messages");
	rank->get_mark = mark_attach(rank, PORTAL_GET);
	rank->receive_mark = mark_attach(rank, PORTAL_SEND);
	/* short messages, one behind the other, until the buffer is full */
	unexpected_attach(rank, 0, ~LONG_BIT,
		(ptl_md_t){.start = rank->short_buffer,
			.length = SHORT_BUFFER,
			.max_offset = SHORT_BUFFER - LONG_LENGTH,
			.options = PTL_MD_OP_PUT});
	/* long ones lose their bytes, and the sender must not take that for success */
	unexpected_attach(rank, LONG_BIT, ~LONG_BIT,
		(ptl_md_t){.options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_ACK_DISABLE});
}

static void rank_close(struct rank *rank)
{
	PtlNIFini(rank->ni);
	free(rank->short_buffer);
}

/* Takes an event of the rank's requests to the one it belongs to. */
static void request_event(const ptl_event_t *event)
{
	struct request *request = event->mem_desc.user_ptr;

	expect(event->ni_fail_type == PTL_NI_OK, postern_fail_text(event->ni_fail_type));
	switch (event->type) {
	case PTL_EVENT_SEND_END:
		request->sent = 1;
		break;
	case PTL_EVENT_ACK: /* it met a posted receive: nobody will fetch it */
		check(PtlMEUnlink(request->get), "PtlMEUnlink");
		request->taken = 1;
		break;
	case PTL_EVENT_GET_END:
		request->taken = 1;
		break;
	case PTL_EVENT_PUT_END: /* into a posted receive */
		request->rank->found_posted++;
		request->length = event->mlength;
		request->sent = request->taken = 1;
		break;
	case PTL_EVENT_REPLY_END: /* into a receive that fetched its message */
		request->length = event->mlength;
		request->sent = request->taken = 1;
		break;
	default: /* STARTs, and the UNLINK of a descriptor whose request may be gone */
		return;
	}
	if (!request->sent || !request->taken)
		return;
	if (request->md != PTL_INVALID_HANDLE)
		check(PtlMDUnlink(request->md), "PtlMDUnlink");
	request->done = 1;
}

static void mpi_wait(struct request *request)
{
	while (!request->done) {
		ptl_event_t event;

		check(PtlEQWait(request->rank->queue, &event), "PtlEQWait");
		request_event(&event);
	}
}

static void mpi_send(struct rank *rank, const void *buffer, ptl_size_t length,
	ptl_process_id_t target, ptl_match_bits_t match, struct request *request)
{
	int is_long = length >= LONG_LENGTH;
	union { /* a descriptor has one pointer for reading and writing; a send only reads */
		const void *from;
		void *start;
	} memory = {.from = buffer};
	ptl_md_t md = {.start = memory.start,
		.length = length,
		.threshold = 1,
		.user_ptr = request,
		.eventq = rank->queue};

	*request = (struct request){.rank = rank, .taken = !is_long};
	rank->serial++;
	if (is_long) {
		md.options = PTL_MD_OP_GET | PTL_MD_TRUNCATE; /* the receive may have more room */
		check(PtlMEInsert(rank->get_mark, target, rank->serial, 0, PTL_UNLINK,
			      PTL_INS_BEFORE, &request->get),
			"PtlMEInsert");
		check(PtlMDAttach(request->get, md, PTL_UNLINK, PTL_RETAIN, NULL), "PtlMDAttach");
		md.options = 0;
		md.threshold = 2; /* the send and its acknowledgement */
		match |= LONG_BIT;
	}
	check(PtlMDBind(rank->ni, md, &request->md), "PtlMDBind");
	check(PtlPut(request->md, is_long ? PTL_ACK_REQ : PTL_NOACK_REQ, target, PORTAL_SEND, 0,
		      match, 0, rank->serial),
		"PtlPut");
}

static void unexpected_append(struct rank *rank, const ptl_event_t *event)
{
	struct unexpected **end = &rank->unexpected;
	struct unexpected *message = malloc(sizeof(*message));

	expect(message != NULL, "there is memory for an unexpected message");
	*message = (struct unexpected){.event = *event};
	while (*end)
		end = &(*end)->next;
	*end = message;
}

static void unexpected_ended(struct rank *rank, const ptl_event_t *event)
{
	struct unexpected *message = rank->unexpected;

	while (message->event.type != PTL_EVENT_PUT_START || message->event.link != event->link)
		message = message->next;
	message->event = *event;
}

/* Moves what is in the queue of unexpected messages to the list. */
static void unexpected_drain(struct rank *rank)
{
	ptl_event_t event;
	int code;

	while ((code = PtlEQGet(rank->unexpected_queue, &event)) != PTL_EQ_EMPTY) {
		check(code, "PtlEQGet");
		expect(event.ni_fail_type == PTL_NI_OK, postern_fail_text(event.ni_fail_type));
		if (event.type == PTL_EVENT_PUT_START)
			unexpected_append(rank, &event);
		else if (event.type == PTL_EVENT_PUT_END)
			unexpected_ended(rank, &event);
	}
}

static int matches(const ptl_event_t *event, ptl_process_id_t sender, ptl_match_bits_t match,
	ptl_match_bits_t ignore)
{
	return (sender.nid == PTL_NID_ANY || sender.nid == event->initiator.nid) &&
	       (sender.pid == PTL_PID_ANY || sender.pid == event->initiator.pid) &&
	       ((event->match_bits ^ match) & ~(ignore | LONG_BIT)) == 0;
}

/* Takes the oldest unexpected message that matches off the list; waits until all of it is there. */
static int unexpected_take(struct rank *rank, ptl_process_id_t sender, ptl_match_bits_t match,
	ptl_match_bits_t ignore, ptl_event_t *event)
{
	struct unexpected **link = &rank->unexpected;
	struct unexpected *message;

	unexpected_drain(rank);
	while (*link && !matches(&(*link)->event, sender, match, ignore))
		link = &(*link)->next;
	message = *link;
	if (!message)
		return 0;
	while (message->event.type != PTL_EVENT_PUT_END)
		unexpected_drain(rank);
	*event = message->event;
	*link = message->next;
	free(message);
	return 1;
}

/* Copies a short message, or fetches a long one, into its receive. */
static void unexpected_receive(struct rank *rank, const ptl_event_t *event, ptl_md_t md)
{
	struct request *request = md.user_ptr;

	if (event->match_bits & LONG_BIT) {
		rank->found_long++;
		md.threshold = 1;
		md.options = 0;
		check(PtlMDBind(rank->ni, md, &request->md), "PtlMDBind");
		check(PtlGet(request->md, event->initiator, PORTAL_GET, 0, event->hdr_data, 0),
			"PtlGet");
		return;
	}
	rank->found_short++;
	request->length = event->mlength < md.length ? event->mlength : md.length;
	memcpy(md.start, (const char *)event->mem_desc.start + event->offset, request->length);
	request->done = 1;
}

static void mpi_receive(struct rank *rank, void *buffer, ptl_size_t length, ptl_process_id_t sender,
	ptl_match_bits_t match, ptl_match_bits_t ignore, struct request *request)
{
	ptl_md_t md = {.start = buffer,
		.length = length,
		.threshold = 0, /* disabled, until it is certain that nothing has come before */
		.options = PTL_MD_OP_PUT,
		.user_ptr = request,
		.eventq = rank->queue};
	ptl_handle_me_t entry;
	ptl_handle_md_t posted;
	ptl_event_t event;
	int code;

	*request = (struct request){.rank = rank, .md = PTL_INVALID_HANDLE};
	if (unexpected_take(rank, sender, match, ignore, &event)) {
		unexpected_receive(rank, &event, md);
		return;
	}
	check(PtlMEInsert(rank->receive_mark, sender, match, ignore | LONG_BIT, PTL_UNLINK,
		      PTL_INS_BEFORE, &entry),
		"PtlMEInsert");
	check(PtlMDAttach(entry, md, PTL_UNLINK, PTL_RETAIN, &posted), "PtlMDAttach");
	do {
		if (unexpected_take(rank, sender, match, ignore, &event)) {
			check(PtlMEUnlink(entry), "PtlMEUnlink");
			unexpected_receive(rank, &event, md);
			return;
		}
		md.threshold = 1;
		code = PtlMDUpdate(posted, NULL, &md, rank->unexpected_queue);
	} while (code == PTL_NOUPDATE);
	check(code, "PtlMDUpdate");
}

/* --- the program that uses these functions
 *
 * The length of message number from a rank. */
static ptl_size_t message_length(unsigned number)
{
	return number * 2654435761u % LENGTH_MAX;
}

static void message_fill(unsigned char *message, unsigned number, ptl_size_t length)
{
	for (ptl_size_t i = 0; i < length; i++)
		message[i] = (unsigned char)(i * 31 + number * 7 + (i >> 8));
}

static void message_check(const unsigned char *message, unsigned number, ptl_size_t length)
{
	for (ptl_size_t i = 0; i < length; i++)
		expect(message[i] == (unsigned char)(i * 31 + number * 7 + (i >> 8)),
			"every byte of a message arrives");
}

/* One message, its receive posted before or after it is sent. */
static void one_message(struct rank *from, struct rank *to, ptl_size_t length, int expected)
{
	static unsigned char out[LENGTH_MAX], in[LENGTH_MAX];
	const unsigned number = 1;
	struct request send, receive;

	memset(in, 0, sizeof(in));
	message_fill(out, number, length);
	if (expected)
		mpi_receive(to, in, sizeof(in), from->id, 5, 0, &receive);
	mpi_send(from, out, length, to->id, 5, &send);
	if (!expected) {
		while (!to->unexpected)
			unexpected_drain(to);
		mpi_receive(to, in, sizeof(in), from->id, 5, 0, &receive);
	}
	mpi_wait(&receive);
	mpi_wait(&send);
	expect(receive.length == length, "a message keeps its length");
	message_check(in, number, length);
}

struct conversation {
	struct rank *self;
	struct rank *other;
};

/* Sends and receives as fast as it can, each message with the same match bits: only their order
 * tells them apart. So receives meet messages on every path, as the threads happen to run. */
static void *converse(void *argument)
{
	const struct conversation *conversation = argument;
	unsigned char *out = malloc(LENGTH_MAX);
	unsigned char *in = malloc(LENGTH_MAX);

	expect(out && in, "there is memory for a message");
	for (unsigned i = 0; i < MESSAGES; i++) {
		struct request send, receive;
		ptl_size_t length = message_length(i);

		message_fill(out, i, length);
		mpi_send(conversation->self, out, length, conversation->other->id, 9, &send);
		mpi_receive(conversation->self, in, LENGTH_MAX, anybody, 9, 0, &receive);
		mpi_wait(&receive);
		expect(receive.length == length, "messages keep their order");
		message_check(in, i, length);
		mpi_wait(&send);
	}
	free(out);
	free(in);
	return NULL;
}

int main(void)
{
	struct rank ranks[2] = {0};
	struct conversation conversations[2] = {{&ranks[0], &ranks[1]}, {&ranks[1], &ranks[0]}};
	pthread_t threads[2];
	int interfaces;

	setenv("PTL_IFACE_NAME", INTERFACES, 0);
	check(PtlInit(&interfaces), "PtlInit");
	if (interfaces < 2) {
		fprintf(stderr,
			"mpi_messages is one process with two interfaces, but PTL_IFACE_NAME names "
			"%d: unset it, and start the program without a launcher\n",
			interfaces);
		return 1;
	}
	rank_open(&ranks[0], 0);
	rank_open(&ranks[1], 1);

	one_message(&ranks[0], &ranks[1], 100, 1);
	one_message(&ranks[0], &ranks[1], 2 * LONG_LENGTH, 1);
	expect(ranks[1].found_posted == 2, "two messages met a posted receive");
	one_message(&ranks[0], &ranks[1], 100, 0);
	expect(ranks[1].found_short == 1, "a short message was kept");
	one_message(&ranks[0], &ranks[1], 2 * LONG_LENGTH, 0);
	expect(ranks[1].found_long == 1, "a long message was fetched");

	for (unsigned i = 0; i < 2; i++)
		expect(pthread_create(&threads[i], NULL, converse, &conversations[i]) == 0,
			"a thread can be started");
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		printf("rank %u: %u messages met a posted receive, %u short ones were kept, %u "
		       "long "
		       "ones fetched\n",
			i, ranks[i].found_posted, ranks[i].found_short, ranks[i].found_long);
	}
	rank_close(&ranks[0]);
	rank_close(&ranks[1]);
	PtlFini();
	return 0;
}
