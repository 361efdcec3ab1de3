/* SPDX-License-Identifier: BSD-3-Clause */
/* udp.c - ports on ordinary UDP sockets of the kernel, which every user may have, and every network
 * carries.
 *
 *      run of frames to one process, of one length  --->  a message with UDP_SEGMENT
 *      frames, an Ethernet header in front of each  <---  a message with UDP_GRO (parts.h)
 *
 * A datagram holds what follows the Ethernet header of a frame. Headers of IP and UDP, routes, ARP
 * and fragments are the kernel's. nodes.h has the addresses of nodes; candidate.h has the UDP ports
 * of a process, and what stands for address and port as an Ethernet address.
 *
 * Opened and closed under the front end's lock; owned by one poll core in between.
 *
 * I1. No frame longer than frame_size is sent. Longer ones are received.
 * I2. A frame that the kernel refuses is lost and counted, as on a wire: it stops no other. Only a
 *     full socket makes frames wait.
 * I3. A received frame comes from the node that it names, and from a UDP port that the process may
 *     have which it names. Others are dropped and counted.
 *     What a host refused is as the kernel was told by ICMP (port.h, addressed).
 * I4. No broadcast is sent. A frame for everybody, a question, names a process: it goes to one UDP
 *     port of that process after the other, a port each time; later ones go to the first port as
 *     well, which most processes have that have started meanwhile. One for the own process, which
 *     asks for another of its name, goes to all of its ports but the own one. Questions are
 *     repeated by their sender, so one that finds the socket full is lost.
 * I5. The own port is exclusive, so that no other process, of whatever user, receives its
 *     datagrams. A second socket of this process has it as well, which is connected to the peer
 *     that is sent most (connected.h). Most looks are at that socket; a thread that is about to
 *     sleep, or has slept, looks at both.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include <base/clock.h>
#include <base/log.h>
#include <base/remedy.h>
#include <base/settings.h>
#include <pmd-glue/candidate.h>
#include <pmd-glue/connected.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/kernel.h>
#include <pmd-glue/kinds.h>
#include <pmd-glue/line.h>
#include <pmd-glue/local.h>
#include <pmd-glue/parts.h>
#include <pmd-glue/pool.h>

#define BURST       128u        /* messages in a call: as many as 64 questions may need */
#define PIECES      (4 * BURST) /* of memory, in all messages of one call */
#define SLOTS       1024u
#define MESSAGE_MAX 65507u /* bytes of data in a datagram, and in joined ones */
#define HEADERS_IP4 28u    /* of IPv4 and UDP */
#define HEADERS_IP6 48u
/* the kernel's memory for a datagram: a power of two that holds it, what lies around it, and */
#define SOCKET_AROUND 384u
#define SOCKET_BESIDE 256u
#define LOOK_PRICE    400u /* ns that a look takes which finds nothing */
#define LINK_INTERVAL (100 * MILLISECOND)
#define LOOKS         16u /* of which one is at the socket that is not connected */
#define QUESTIONS     256u
#define NARROW        64u           /* nodes whose path takes smaller frames */
#define NARROW_TIME   (60 * SECOND) /* that frames for them are not joined */
#define ERRORS_MOST   64u           /* taken at a time */
#define REFUSALS_MOST 16u           /* that wait for the owner */
/* where a transport header has them, in bytes from the Ethernet header on */
#define TO_AT   (FRAME_HEADER + 8u)
#define FROM_AT (FRAME_HEADER + 16u)
#define NAME    8u /* bytes of node id and process id */
#define TYPE_AT 12u
#define TYPE    0x88b5u /* doc/wire.md, section 2 */

static_assert(FRAME_HEADER == PARTS_BEFORE, "an Ethernet header is put before a datagram");

/* Messages for one call. */
struct batch {
	struct mmsghdr messages[BURST];
	union udp_name to[BURST];
	/* that are done with when the message has left: 0 for a question that goes on to another
	 * port */
	uint16_t frames[BURST];
	bool asks[BURST]; /* it is a question */
	bool connected;   /* all go to the connected peer, */
	bool move;        /* or one to another one, which should be */
	_Alignas(struct cmsghdr) uint8_t control[BURST][CMSG_SPACE(sizeof(uint16_t))];
	struct iovec pieces[PIECES];
	unsigned count; /* of messages, */
	unsigned at;    /* the next of which is this one */
	unsigned piece_count;
};

/* How often a process was asked for. */
struct question {
	uint32_t nid, pid;
	uint32_t asked;
};

struct udp {
	struct port port; /* first: a port is a udp port */
	struct line line;
	struct connected connected;
	struct parts_source source, connected_source; /* the sockets of both */
	unsigned looks;                               /* at the connected socket in a row */
	bool look_at_both;                            /* with the next look */
	struct candidate_range range;
	uint32_t index; /* of the own UDP port */
	bool narrow_told, unknown_told;
	bool firewall_told, way_told, loss_told;
	bool heard; /* frames have come since the owner last slept, or was about to */
	int query;  /* a socket to ask the kernel with */
	bool up;    /* as last seen */
	uint64_t look;
	uint64_t missed, errors;
	uint64_t strange; /* I3 */
	/* the last sender that was found to be right */
	uint32_t known_pid, known_index;
	struct rte_mbuf *refusals[REFUSALS_MOST];
	unsigned refusal_count;
	struct rte_mbuf *ready[PARTS]; /* of a message: not yet given to the owner */
	unsigned ready_at, ready_count;
	struct local local;
	struct question questions[QUESTIONS];
	struct {
		uint32_t node;
		uint64_t until;
	} narrow[NARROW];
	struct batch batch;
	struct parts parts;
};

static uint32_t frame_word(const struct rte_mbuf *frame, uint32_t at)
{
	uint32_t word;

	memcpy(&word, rte_pktmbuf_mtod_offset(frame, const uint8_t *, at), sizeof(word));
	return rte_le_to_cpu_32(word);
}

/* The EtherType of a frame. */
static void type_write(uint8_t *frame, uint32_t type)
{
	frame[TYPE_AT] = (uint8_t)(type >> 8);
	frame[TYPE_AT + 1] = (uint8_t)type;
}

/* The name of a socket; returns its size, 0: nobody knows where the node is. */
static socklen_t name_make(
	const struct udp *udp, uint32_t node, uint32_t index, union udp_name *name)
{
	return nodes_name(&udp->local.nodes, node, (uint16_t)(udp->range.first + index), name);
}

/* The headers of a datagram in bytes. */
static uint32_t headers(const struct udp *udp)
{
	return udp->local.nodes.family == AF_INET6 ? HEADERS_IP6 : HEADERS_IP4;
}

static bool udp_link(struct port *port)
{
	struct udp *udp = (struct udp *)port;
	uint64_t now = glue_now(NULL);

	if (now < udp->look)
		return udp->up;
	udp->look = now + LINK_INTERVAL;
	udp->up = kernel_runs(udp->query, udp->local.interface);
	return udp->up;
}

/* --- datagrams that did not arrive --- */

/* The user is told once of each cause, with the first address. */
static bool told(bool *before)
{
	bool was = *before;

	*before = true;
	return was;
}

static void way_tell(struct udp *udp, const union udp_name *to, int error)
{
	char text[INET6_ADDRSTRLEN];

	if (told(&udp->way_told))
		return;
	udp_name_text(to, text, sizeof(text));
	log_warning("%s: %s cannot be reached: %s: does that host run, does ip route get %s find a "
		    "way to it, and do firewalls let UDP ports %s pass?",
		udp->port.name, text, strerror(error), text, setting_text(SETTING_UDP_PORTS));
}

/* The kernel has refused to send a frame, which is lost. */
static void loss_tell(struct udp *udp, const union udp_name *to, int error)
{
	char text[INET6_ADDRSTRLEN];

	udp_name_text(to, text, sizeof(text));
	if (error == ENETUNREACH || error == EHOSTUNREACH || error == ENETDOWN)
		way_tell(udp, to, error);
	else if (error == EPERM && !told(&udp->firewall_told))
		log_warning("%s: a firewall of this host blocks datagrams to %s: let UDP ports "
			    "%s pass in both directions",
			udp->port.name, text, setting_text(SETTING_UDP_PORTS));
	else if (error != EPERM && !told(&udp->loss_told))
		log_warning("%s: the kernel loses frames for %s: %s", udp->port.name, text,
			strerror(error));
}

/* Tells the owner what a host has refused. Those that there is no room for are forgotten: each
 * frame that is sent again is refused again. */
static void refusal_add(struct udp *udp, const struct line_error *report)
{
	uint32_t index = (uint32_t)udp_name_port(&report->to) - udp->range.first, node;
	struct rte_mbuf *frame;
	uint8_t *bytes;

	/* That nobody else has the own name is no error. */
	if (memcmp(report->quote + TO_AT - FRAME_HEADER, report->quote + FROM_AT - FRAME_HEADER,
		    NAME) == 0)
		return;
	if (report->error != 0 && report->error != ECONNREFUSED && report->error != EMSGSIZE)
		way_tell(udp, &report->to, report->error);
	if (report->error != ECONNREFUSED || report->bytes < PORT_REFUSAL_BYTES ||
		index >= udp->range.count || udp->refusal_count == REFUSALS_MOST ||
		!nodes_find(&udp->local.nodes, &report->to, &node))
		return;
	frame = rte_pktmbuf_alloc(udp->port.pool);
	if (!frame)
		return;
	bytes = (uint8_t *)rte_pktmbuf_append(frame, FRAME_HEADER + PORT_REFUSAL_BYTES);
	memcpy(bytes, udp->port.address, sizeof(udp->port.address));
	candidate_write(bytes + sizeof(udp->port.address), node, index);
	type_write(bytes, PORT_REFUSED);
	memcpy(bytes + FRAME_HEADER, report->quote, PORT_REFUSAL_BYTES);
	udp->refusals[udp->refusal_count++] = frame;
}

/* Without this the next calls fail, and the socket counts as readable. */
static void errors_take(struct udp *udp, const struct line *line)
{
	struct line_error report;

	for (unsigned n = 0; line->errors && n < ERRORS_MOST && line_hear(line, &report); n++)
		refusal_add(udp, &report);
}

/* --- sending --- */

static bool frame_for_all(const struct rte_mbuf *frame)
{
	return (*rte_pktmbuf_mtod(frame, const uint8_t *) & 1) != 0;
}

static bool frames_alike(const struct rte_mbuf *one, const struct rte_mbuf *two)
{
	return two->pkt_len <= one->pkt_len && two->data_len > FRAME_HEADER &&
	       memcmp(rte_pktmbuf_mtod(one, const void *), rte_pktmbuf_mtod(two, const void *),
		       sizeof(((struct port *)NULL)->address)) == 0;
}

/* Is the path to a node known to take smaller frames? The kernel cannot split these from joined
 * ones. */
static bool node_narrow(const struct udp *udp, uint32_t node)
{
	return udp->narrow[node % NARROW].node == node && udp->narrow[node % NARROW].until != 0 &&
	       glue_now(NULL) < udp->narrow[node % NARROW].until;
}

/* How many of the frames go as one message: all but the last are of one length. */
static uint16_t frames_joined(const struct udp *udp, struct rte_mbuf **frames, uint16_t count)
{
	const struct rte_mbuf *first = frames[0];
	unsigned pieces = udp->batch.piece_count + first->nb_segs;
	uint32_t bytes = first->pkt_len - FRAME_HEADER;
	uint16_t joined = 1;

	if (!udp->line.segments || count == 1 ||
		node_narrow(udp, candidate_node(rte_pktmbuf_mtod(first, const uint8_t *))))
		return 1;
	while (joined < count && joined < PARTS && frames[joined - 1]->pkt_len == first->pkt_len &&
		frames_alike(first, frames[joined]) &&
		(bytes += frames[joined]->pkt_len - FRAME_HEADER) <= MESSAGE_MAX &&
		(pieces += frames[joined]->nb_segs) <= PIECES)
		joined++;
	return joined;
}

/* Adds a frame to the message that is being made. */
static void batch_pieces(struct batch *batch, const struct rte_mbuf *frame)
{
	for (uint32_t skip = FRAME_HEADER; frame; frame = frame->next, skip = 0)
		batch->pieces[batch->piece_count++] =
			(struct iovec){.iov_base = rte_pktmbuf_mtod_offset(frame, void *, skip),
				.iov_len = frame->data_len - skip};
}

static void message_join(struct msghdr *message, void *control, uint32_t length)
{
	uint16_t part = (uint16_t)length;
	struct cmsghdr *one;

	message->msg_control = control;
	message->msg_controllen = CMSG_SPACE(sizeof(part));
	one = CMSG_FIRSTHDR(message);
	one->cmsg_level = SOL_UDP;
	one->cmsg_type = UDP_SEGMENT;
	one->cmsg_len = CMSG_LEN(sizeof(part));
	memcpy(CMSG_DATA(one), &part, sizeof(part));
}

/* A frame for a node that is not in PTL_HOSTS. */
static void node_is_unknown(struct udp *udp, uint32_t node)
{
	if (!udp->unknown_told)
		log_warning("%s: node %u is not in PTL_HOSTS, so nothing can be sent to it: write "
			    "its address into the file, on all hosts",
			udp->port.name, node);
	udp->unknown_told = true;
}

/* Adds a message of the first frames. Returns false: nobody knows where they go. */
static bool batch_add(
	struct udp *udp, struct rte_mbuf **frames, uint16_t count, uint32_t node, uint32_t index)
{
	struct batch *batch = &udp->batch;
	struct iovec *first = &batch->pieces[batch->piece_count];
	struct msghdr *message = &batch->messages[batch->count].msg_hdr;
	socklen_t size = name_make(udp, node, index, &batch->to[batch->count]);

	if (size == 0) {
		node_is_unknown(udp, node);
		return false;
	}
	for (uint16_t n = 0; n < count; n++)
		batch_pieces(batch, frames[n]);
	*message = (struct msghdr){.msg_name = batch->connected ? NULL : &batch->to[batch->count],
		.msg_namelen = batch->connected ? 0 : size,
		.msg_iov = first,
		.msg_iovlen = (size_t)(batch->pieces + batch->piece_count - first)};
	if (count > 1)
		message_join(
			message, batch->control[batch->count], frames[0]->pkt_len - FRAME_HEADER);
	batch->asks[batch->count] = false;
	batch->frames[batch->count++] = count;
	return true;
}

static bool frame_fits(const struct udp *udp, const struct rte_mbuf *frame)
{
	return frame->pkt_len <= udp->port.frame_size && frame->data_len > FRAME_HEADER &&
	       candidate_read(rte_pktmbuf_mtod(frame, const uint8_t *)) < udp->range.count;
}

/* Adds what the first frames are, if there is room, and the batch leaves by the same socket.
 * Returns how many; 0: none, or the first cannot be sent. */
static uint16_t frames_add(struct udp *udp, struct rte_mbuf **frames, uint16_t count)
{
	const uint8_t *address = rte_pktmbuf_mtod(frames[0], const uint8_t *);
	struct batch *batch = &udp->batch;
	bool connected;
	uint16_t joined;

	if (!frame_fits(udp, frames[0]) || batch->piece_count + frames[0]->nb_segs > PIECES)
		return 0;
	connected = connected_to(&udp->connected, address);
	if (batch->count > 0 && connected != batch->connected)
		return 0;
	batch->connected = connected;
	batch->move |= connected_count(&udp->connected, address);
	joined = frames_joined(udp, frames, count);
	return batch_add(udp, frames, joined, candidate_node(address), candidate_read(address))
		       ? joined
		       : 0;
}

/* How often this process was asked for before. */
static uint32_t question_count(struct udp *udp, uint32_t nid, uint32_t pid)
{
	uint64_t hash = ((uint64_t)nid << 32 | pid) * UINT64_C(0x9e3779b97f4a7c15);
	struct question *question = &udp->questions[(hash >> 32) % QUESTIONS];

	if (question->nid != nid || question->pid != pid)
		*question = (struct question){.nid = nid, .pid = pid};
	return question->asked++;
}

/* I4. Chooses the ports of a process that are asked next; returns how many. */
static unsigned question_choose(struct udp *udp, uint32_t nid, uint32_t pid, uint32_t *indices)
{
	unsigned count = 0;
	uint32_t n;

	if (nid == udp->port.nid && pid == udp->port.pid) {
		for (uint32_t k = 0; k < CANDIDATES; k++) {
			indices[count] = candidate_index(udp->range, pid, k);
			count += indices[count] != udp->index;
		}
		return count;
	}
	n = question_count(udp, nid, pid);
	if (n < CANDIDATES) {
		indices[0] = candidate_index(udp->range, pid, n);
		return 1;
	}
	indices[0] = candidate_index(udp->range, pid, 0);
	indices[1] = candidate_index(udp->range, pid, 1 + (n - CANDIDATES) % (CANDIDATES - 1));
	return 2;
}

/* Adds a question if there is room. Returns how many frames; 0: none, or it cannot be sent. A
 * question that is added again, because another message was refused, goes to the next ports. */
static uint16_t question_add(struct udp *udp, struct rte_mbuf **frame)
{
	struct batch *batch = &udp->batch;
	uint32_t indices[CANDIDATES], nid;
	unsigned count;

	if (frame[0]->data_len < TO_AT + NAME || frame[0]->pkt_len > udp->port.frame_size ||
		batch->connected || batch->count + CANDIDATES > BURST ||
		batch->piece_count + CANDIDATES * frame[0]->nb_segs > PIECES)
		return 0;
	nid = frame_word(frame[0], TO_AT);
	if (nid == PORT_ANY_NODE)
		return 0;
	count = question_choose(udp, nid, frame_word(frame[0], TO_AT + sizeof(nid)), indices);
	for (unsigned n = 0; n < count; n++) {
		if (!batch_add(udp, frame, 1, nid, indices[n]))
			return 0;
		batch->asks[batch->count - 1] = true;
		batch->frames[batch->count - 1] = n + 1 == count;
	}
	return count > 0;
}

/* Makes messages of the first frames, as many as there is room for. */
static void batch_fill(struct udp *udp, struct rte_mbuf **frames, uint16_t count)
{
	struct batch *batch = &udp->batch;
	uint16_t done = 0, added = 1;

	batch->count = batch->at = 0;
	batch->piece_count = 0;
	batch->connected = batch->move = false;
	while (added > 0 && done < count && batch->count < BURST) {
		added = frame_for_all(frames[done])
				? question_add(udp, frames + done)
				: frames_add(udp, frames + done, (uint16_t)(count - done));
		done = (uint16_t)(done + added);
	}
}

/* The path to a node takes smaller frames: each goes alone from now on, and the kernel sends it in
 * fragments. */
static void node_narrows(struct udp *udp, const union udp_name *to)
{
	uint32_t node = 0;
	char text[INET6_ADDRSTRLEN];

	(void)nodes_find(&udp->local.nodes, to, &node);
	udp->narrow[node % NARROW].node = node;
	udp->narrow[node % NARROW].until = glue_now(NULL) + NARROW_TIME;
	if (udp->narrow_told)
		return;
	udp->narrow_told = true;
	log_warning(
		"%s: the path to %s takes smaller frames than the interface, so frames are sent "
		"in fragments, which is slow: set PTL_MTU to the path's MTU",
		udp->port.name, udp_name_text(to, text, sizeof(text)));
}

/* The next message was refused. */
enum refusal {
	REFUSAL_LOST,  /* the message is lost */
	REFUSAL_WAIT,  /* the kernel takes it later */
	REFUSAL_AGAIN, /* or at once, */
	REFUSAL_ANEW,  /* or in another form */
};

static enum refusal refusal_judge(struct udp *udp, int error)
{
	struct batch *batch = &udp->batch;

	if (error == EINTR)
		return REFUSAL_AGAIN;
	if (error == EAGAIN || error == ENOMEM)
		return batch->asks[batch->at] ? REFUSAL_LOST : REFUSAL_WAIT;
	if (batch->frames[batch->at] > 1 && (error == EMSGSIZE || error == EINVAL)) {
		node_narrows(udp, &batch->to[batch->at]);
		return REFUSAL_ANEW;
	}
	if (batch->frames[batch->at] > 1 && (error == EIO || error == EOPNOTSUPP)) {
		udp->line.segments = false;
		line_lose(&udp->line, LINE_SEGMENT, udp->port.name);
		return REFUSAL_ANEW;
	}
	loss_tell(udp, &batch->to[batch->at], error);
	return REFUSAL_LOST;
}

/* Errors of earlier datagrams are reported by a call that has nothing to do with them. */
static bool error_is_old(int error)
{
	return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH ||
	       error == ENOPROTOOPT || error == EACCES || error == EPROTO || error == EHOSTDOWN;
}

static int message_send(struct udp *udp, const struct line *line, const struct msghdr *message)
{
	ssize_t sent = sendmsg(line->socket, message, MSG_DONTWAIT);

	if (sent < 0 && error_is_old(errno)) {
		errors_take(udp, line);
		sent = sendmsg(line->socket, message, MSG_DONTWAIT);
	}
	return sent < 0 ? -1 : 1;
}

/* A message alone costs less without the vector. */
static int batch_send(struct udp *udp)
{
	struct batch *batch = &udp->batch;
	const struct line *line = batch->connected ? &udp->connected.line : &udp->line;
	struct mmsghdr *next = &batch->messages[batch->at];
	unsigned count = batch->count - batch->at;
	int sent;

	if (count == 1 || line_lacks(&udp->line, LINE_SENDMMSG))
		return message_send(udp, line, &next->msg_hdr);
	sent = sendmmsg(line->socket, next, count, MSG_DONTWAIT);
	if (sent >= 0 || errno == EAGAIN || errno == EINTR)
		return sent;
	sent = errno;
	if (message_send(udp, line, &next->msg_hdr) < 0)
		return -1;
	/* It is the call that is refused, not the message. */
	if (sent == ENOSYS || sent == EPERM)
		line_lose(&udp->line, LINE_SENDMMSG, udp->port.name);
	return 1;
}

/* Done with the next messages. Returns how many frames that were. */
static uint16_t batch_pass(struct udp *udp, struct rte_mbuf **frames, unsigned messages)
{
	struct batch *batch = &udp->batch;
	uint16_t done = 0;

	for (unsigned n = 0; n < messages; n++)
		done = (uint16_t)(done + batch->frames[batch->at++]);
	rte_pktmbuf_free_bulk(frames, done);
	return done;
}

/* Returns how many frames have gone. wait: the rest wait for room in the socket. */
static uint16_t batch_empty(struct udp *udp, struct rte_mbuf **frames, bool *wait)
{
	struct batch *batch = &udp->batch;
	enum refusal refusal = REFUSAL_AGAIN;
	uint16_t done = 0;

	while (batch->at < batch->count && refusal != REFUSAL_ANEW && refusal != REFUSAL_WAIT) {
		int sent = batch_send(udp);

		refusal = sent < 0 ? refusal_judge(udp, errno) : REFUSAL_AGAIN;
		if (refusal == REFUSAL_LOST) {
			udp->errors += RTE_MAX(batch->frames[batch->at], 1u);
			sent = 1;
		}
		if (sent > 0)
			done = (uint16_t)(done + batch_pass(udp, frames + done, (unsigned)sent));
	}
	*wait = refusal == REFUSAL_WAIT;
	return done;
}

/* The peer that is sent most gets a socket of its own. */
static void peer_connect(struct udp *udp)
{
	const uint8_t *address = udp->connected.leader;
	union udp_name to;
	socklen_t size = name_make(udp, candidate_node(address), candidate_read(address), &to);

	if (size == 0)
		return;
	connected_move(&udp->connected, &udp->line, &to, size, udp->port.name);
	udp->connected_source.socket = udp->connected.line.socket;
}

static uint16_t udp_transmit(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct udp *udp = (struct udp *)port;
	uint16_t done = 0;
	bool wait = false;

	while (done < count && !wait) {
		batch_fill(udp, frames + done, (uint16_t)(count - done));
		if (udp->batch.count == 0) { /* no message can be made of it */
			udp->errors++;
			rte_pktmbuf_free(frames[done++]);
			continue;
		}
		done = (uint16_t)(done + batch_empty(udp, frames + done, &wait));
		if (udp->batch.move)
			peer_connect(udp);
	}
	return done;
}

/* --- receiving --- */

/* I3. The datagrams of a message come from one socket, but its owner may have written anything. */
static bool sender_fits(
	struct udp *udp, const struct rte_mbuf *frame, uint32_t node, uint32_t index)
{
	uint32_t pid;

	if (frame->data_len < FROM_AT + NAME || frame_word(frame, FROM_AT) != node)
		return false;
	pid = frame_word(frame, FROM_AT + sizeof(node));
	if (pid == udp->known_pid && index == udp->known_index)
		return true;
	if (!candidate_fits(udp->range, pid, index))
		return false;
	udp->known_pid = pid;
	udp->known_index = index;
	return true;
}

/* Writes the Ethernet headers of a message's frames to `header`; returns how many frames stay. */
static unsigned frames_admit(struct udp *udp, struct rte_mbuf **frames, unsigned count,
	const struct parts_origin *origin)
{
	uint32_t index = (uint32_t)udp_name_port(&origin->from) - udp->range.first, node = 0;
	bool known = nodes_find(&udp->local.nodes, &origin->from, &node);
	uint8_t header[FRAME_HEADER];
	unsigned kept = 0;

	memcpy(header, udp->port.address, sizeof(udp->port.address));
	candidate_write(header + sizeof(udp->port.address), node, index);
	type_write(header, origin->marked ? PORT_MARKED : TYPE);
	for (unsigned n = 0; n < count; n++) {
		if (!known || index >= udp->range.count ||
			!sender_fits(udp, frames[n], node, index)) {
			udp->strange++;
			rte_pktmbuf_free(frames[n]);
			continue;
		}
		memcpy(rte_pktmbuf_mtod(frames[n], void *), header, sizeof(header));
		frames[kept++] = frames[n];
	}
	return kept;
}

/* One look; a second one if an error of an earlier datagram came instead. */
static bool line_look(struct udp *udp, const struct line *line, struct parts_source *source)
{
	if (parts_look(&udp->parts, source) > 0)
		return true;
	if (!error_is_old(errno))
		return false;
	errors_take(udp, line);
	if (udp->refusal_count > 0)
		return true;
	return parts_look(&udp->parts, source) > 0;
}

/* A look at the socket that was looked at last. */
static bool udp_look_again(struct udp *udp)
{
	return udp->parts.source == &udp->connected_source
		       ? line_look(udp, &udp->connected.line, &udp->connected_source)
		       : line_look(udp, &udp->line, &udp->source);
}

/* A look at one of the sockets: at that of all others once in LOOKS, and every second time while
 * frames come by it. What the connected peer can send in LOOKS looks is what one socket of both
 * would hold before a frame of another peer. */
static bool udp_look(struct udp *udp)
{
	bool both = udp->look_at_both;

	udp->look_at_both = false;
	if (!connected_exists(&udp->connected))
		return line_look(udp, &udp->line, &udp->source);
	if (++udp->looks < LOOKS) {
		if (line_look(udp, &udp->connected.line, &udp->connected_source))
			return true;
		if (!both)
			return false;
	}
	udp->looks = 0;
	if (line_look(udp, &udp->line, &udp->source)) {
		udp->looks = LOOKS - 2;
		return true;
	}
	return both && line_look(udp, &udp->connected.line, &udp->connected_source);
}

/* Takes the next message that has come to `ready`. Returns false if there is none. */
static bool message_take(struct udp *udp)
{
	struct parts_origin origin;
	unsigned count;

	if (!parts_wait(&udp->parts))
		return false;
	count = parts_take(&udp->parts, udp->ready, &origin);
	udp->ready_at = 0;
	udp->ready_count = frames_admit(udp, udp->ready, count, &origin);
	return true;
}

static uint16_t udp_receive(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct udp *udp = (struct udp *)port;
	bool looked = false;
	uint16_t done = 0;

	while (done < count) {
		if (udp->ready_at < udp->ready_count) {
			frames[done++] = udp->ready[udp->ready_at++];
			continue;
		}
		if (udp->refusal_count > 0) {
			frames[done++] = udp->refusals[--udp->refusal_count];
			continue;
		}
		if (message_take(udp))
			continue;
		if (looked ? !parts_more(&udp->parts) || !udp_look_again(udp) : !udp_look(udp))
			break;
		looked = true;
	}
	udp->heard = udp->heard || done > 0;
	return done;
}

/* --- the port --- */

static void udp_counters(struct port *port, struct port_counters *counters)
{
	struct udp *udp = (struct udp *)port;

	counters->missed = (uint64_t)udp->source.missed + udp->connected_source.missed;
	counters->errors = udp->errors + udp->strange + udp->parts.errors;
	counters->no_mbuf = udp->parts.no_mbuf;
	counters->buffers = pool_used(port->pool) - parts_held(&udp->parts);
}

static int udp_interrupt(struct port *port, bool on)
{
	struct udp *udp = (struct udp *)port;

	udp->look_at_both = true;
	if (!on)
		return -1;
	/* A wake-up without a frame may have been for an error, which would wake the owner again.
	 * The owner looks once more before it sleeps. */
	if (!udp->heard)
		errors_take(udp, &udp->line);
	if (!udp->heard && connected_exists(&udp->connected))
		errors_take(udp, &udp->connected.line);
	udp->heard = false;
	return connected_exists(&udp->connected) ? udp->connected.set : udp->line.socket;
}

static void udp_describe(struct port *port, struct port_description *description)
{
	const struct udp *udp = (const struct udp *)port;

	snprintf(description->driver, sizeof(description->driver), "udp");
	description->lack_count = line_describe(&udp->line, description->lacks);
}

static void udp_free(struct udp *udp)
{
	while (udp->ready_at < udp->ready_count)
		rte_pktmbuf_free(udp->ready[udp->ready_at++]);
	rte_pktmbuf_free_bulk(udp->refusals, udp->refusal_count);
	parts_end(&udp->parts);
	connected_close(&udp->connected);
	line_close(&udp->line);
	nodes_free(&udp->local.nodes);
	if (udp->query >= 0)
		close(udp->query);
	if (udp->port.pool)
		mempool_give(udp->port.pool);
	free(udp);
}

static void udp_close(struct port *port)
{
	udp_free((struct udp *)port);
}

static const struct port_operations udp_operations = {
	.receive = udp_receive,
	.transmit = udp_transmit,
	.link = udp_link,
	.counters = udp_counters,
	.interrupt = udp_interrupt,
	.describe = udp_describe,
	.close = udp_close,
};

/* --- opening --- */

/* Settings of ports that make the headers of IP and UDP themselves. Returns false after an error
 * line. */
static bool settings_fit(unsigned number)
{
	static const enum setting own[] = {SETTING_IP, SETTING_GATEWAY, SETTING_VLAN, SETTING_NID};

	if (setting_is(SETTING_ENCAP, "udp")) {
		log_error("PTL_ENCAP=udp cannot be used with PTL_IFACE_NAME=udp, where the "
			  "kernel makes the UDP headers: unset PTL_ENCAP");
		return false;
	}
	for (unsigned n = 0; n < RTE_DIM(own); n++) {
		if (setting_item(own[n], number)[0] == '\0')
			continue;
		log_error("%s is \"%s\" for interface %u, but with PTL_IFACE_NAME=udp the kernel's "
			  "address is the node id, and its routes are used: leave %s out",
			setting_describe(own[n])->name, setting_item(own[n], number), number,
			setting_describe(own[n])->name);
		return false;
	}
	return true;
}

/* Of frames with their Ethernet header; 0 after an error line. */
static uint32_t frame_size_choose(const struct udp *udp, uint32_t mtu)
{
	struct ifreq answer;
	uint32_t has = FRAME_DEFAULT;

	if (kernel_ask(udp->query, udp->local.interface, SIOCGIFMTU, &answer) == 0)
		has = (uint32_t)answer.ifr_mtu;
	if (mtu == 0)
		mtu = RTE_MIN(has, FRAME_DEFAULT - FRAME_HEADER + headers(udp));
	has = RTE_MIN(has, MESSAGE_MAX + headers(udp));
	mtu = kernel_frame_size(udp->local.interface, has, mtu, FRAME_MAX);
	if (mtu != 0 && mtu < FRAME_MIN + headers(udp))
		log_error("%s: frames of %u bytes are impossible: set PTL_MTU to %u or more",
			udp->port.name, mtu - FRAME_HEADER,
			FRAME_MIN - FRAME_HEADER + headers(udp));
	return mtu < FRAME_MIN + headers(udp) ? 0 : mtu - headers(udp);
}

/* How many datagrams, which come one by one, the socket holds. */
static uint16_t socket_holds(uint32_t room, uint32_t frame_size)
{
	uint32_t bytes = rte_align32pow2(frame_size + SOCKET_AROUND) + SOCKET_BESIDE;

	return (uint16_t)RTE_MAX(RTE_MIN(room / bytes, SLOTS), 2u);
}

/* Takes the first UDP port of the process that is free. A process that may have any process id
 * takes one whose first port is free. Returns false with errno. */
static bool port_bind(struct udp *udp, uint32_t pid, bool first_only)
{
	for (uint32_t k = 0; k < (first_only ? 1 : CANDIDATES); k++) {
		union udp_name name;
		udp->index = candidate_index(udp->range, pid, k);
		if (line_bind(&udp->line, &name, name_make(udp, udp->port.nid, udp->index, &name)))
			return true;
		if (errno == EACCES && udp_name_port(&name) < IPPORT_RESERVED)
			return false;
		/* A policy of the system's may keep some ports, as if they were taken. */
		if (errno != EADDRINUSE && errno != EACCES)
			return false;
	}
	errno = EADDRINUSE;
	return false;
}

/* Returns false after an error line. */
static bool udp_bind(struct udp *udp, uint32_t pid, bool first_only)
{
	if (port_bind(udp, pid, first_only)) {
		udp->port.pid = pid;
		candidate_write(udp->port.address, udp->port.nid, udp->index);
		return true;
	}
	if (errno == EADDRINUSE) {
		kinds_pid_taken();
		if (!kinds_pid_is_tried() && !first_only)
			log_error("%s: other programs have all %u UDP ports of process id %u: set "
				  "PTL_UDP_PORTS, which is %s, to another range on all hosts",
				udp->port.name, CANDIDATES, pid, setting_text(SETTING_UDP_PORTS));
		return false;
	}
	if (errno == EACCES)
		log_error(
			"%s: PTL_UDP_PORTS is %s, but ports below %d are root's: set it to a range "
			"of higher ones on all hosts",
			udp->port.name, setting_text(SETTING_UDP_PORTS), IPPORT_RESERVED);
	else
		log_error("%s: the kernel gives no UDP port: %s: set PTL_UDP_PORTS to another "
			  "range on all hosts",
			udp->port.name, strerror(errno));
	return false;
}

static bool udp_make(struct udp *udp, uint32_t mtu)
{
	struct port *port = &udp->port;
	uint32_t room;

	port->frame_size = frame_size_choose(udp, mtu);
	port->around = (uint16_t)headers(udp);
	if (port->frame_size == 0)
		return false;
	/* Hosts with other MTUs are understood. */
	room = RTE_MAX(port->frame_size, FRAME_DEFAULT);
	port->receive_frames = socket_holds(udp->line.room, port->frame_size);
	if (udp->line.segments)
		port->joins =
			(uint16_t)RTE_MIN(MESSAGE_MAX / (port->frame_size - FRAME_HEADER), PARTS);
	port->pool = mempool_take(port->name, room, SLOTS, SOCKET_ID_ANY, true);
	if (!port->pool)
		return false;
	if (!parts_init(&udp->parts, port->pool, room - FRAME_HEADER)) {
		log_error("%s: out of memory: %s", port->name, remedy_for_memory());
		return false;
	}
	udp->source.socket = udp->line.socket;
	udp->parts.alone = line_lacks(&udp->line, LINE_RECVMMSG);
	line_tell(&udp->line, port->name);
	return true;
}

static bool udp_start(
	struct udp *udp, const char *name, uint32_t mtu, uint32_t pid, bool first_only)
{
	uint16_t last;

	setting_range(SETTING_UDP_PORTS, &udp->range.first, &last);
	udp->range.count = (uint16_t)(last - udp->range.first + 1);
	udp->query = kernel_query(udp->port.name);
	if (udp->query < 0)
		return false;
	if (!local_choose(&udp->local, name, udp->port.name))
		return false;
	udp->port.nid = udp->local.nid;
	udp->port.listed = udp->local.nodes.family == AF_INET6;
	if (!line_open(&udp->line, udp->local.nodes.family)) {
		log_error("%s: the kernel gives no UDP socket: %s: %s", udp->port.name,
			strerror(errno),
			remedy_for(
				errno, "set PTL_IFACE_NAME to a network interface such as eth1"));
		return false;
	}
	return udp_bind(udp, pid, first_only) && udp_make(udp, mtu);
}

struct port *udp_open(
	const char *name, uint32_t mtu, unsigned number, uint32_t pid, bool first_only)
{
	struct udp *udp;

	if (!settings_fit(number))
		return NULL;
	udp = calloc(1, sizeof(*udp));
	if (!udp) {
		log_error("udp: out of memory: %s", remedy_for_memory());
		return NULL;
	}
	udp->port.operations = &udp_operations;
	udp->port.external = true;
	udp->port.cancels = true;
	udp->port.calls = true;
	udp->port.helped = true;
	udp->port.named = true;
	udp->port.addressed = true;
	udp->port.aside = POOL_ASIDE + PARTS;
	udp->port.socket = -1;
	udp->port.gathers = true;
	udp->port.guards = true;
	udp->port.gather_bytes = GATHER_BYTES;
	udp->port.look = LOOK_PRICE;
	snprintf(udp->port.name, sizeof(udp->port.name), name[0] ? "udp:%s" : "udp", name);
	udp->line.socket = udp->query = -1;
	udp->known_index = UINT32_MAX; /* no sender is known */
	connected_init(&udp->connected);
	if (udp_start(udp, name, mtu, pid, first_only))
		return &udp->port;
	udp_free(udp);
	return NULL;
}
