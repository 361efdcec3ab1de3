/* SPDX-License-Identifier: BSD-3-Clause */
/* packet.c - ports on interfaces of the kernel: a packet socket for each port, so that any number
 * of processes may have one on the same interface.
 *
 *      small frames        kernel --- copies --> mapped ring of slots --- copied ---> frame buffers
 *      longer than a slot  kernel --- their start ---> ring (says what comes)
 *                                 --- recvmsg() copies ---> frame buffers
 *      to send             frame buffers, user's memory --- sendmmsg() copies ---> kernel
 *
 * Opened and closed under the front end's lock; owned by one poll core in between.
 *
 * I1. No frame longer than frame_size is sent.
 * I2. A frame that the kernel refuses is lost and counted, as on a wire: it stops no other. Only a
 * full socket makes frames wait.
 * I3. The slots that say so (TP_STATUS_COPY) and the frames in the socket's queue are in the same
 * order: each such slot takes one
 *     frame from the queue, whatever becomes of it.
 * I4. With PTL_ENCAP=udp a virtio_net_hdr stands before each frame, both ways. Datagrams that
 * differ in their data alone are given
 *     to the kernel as one (UDP segmentation offload), which splits them where a device cannot, and
 *     hands them as one to a packet socket that they reach before that; there they are split here.
 * I5. The socket is bound to ETH_P_ALL and does not bypass the queueing discipline: so processes on
 * one interface hear each other.
 * I6. With PTL_ENCAP=udp a second socket has the UDP port, so that the kernel does not answer each
 *     datagram by ICMP: its filter drops them all. The kernel must not split joined datagrams for
 *     it, nor join datagrams from a wire for it where packet sockets cannot receive those.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include <base/clock.h>
#include <base/log.h>
#include <base/remedy.h>
#include <base/settings.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/kernel.h>
#include <pmd-glue/kinds.h>
#include <pmd-glue/pool.h>
#include <pmd-glue/program.h>

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5 /* since Linux 6.2 */
#endif

#define SLOT_LEAST   2048u /* bytes: a standard frame, and what stands before it */
#define SLOT_MOST    16384u
#define SLOT_BESIDES 128u /* before a frame */
#define SLOTS        1024u
#define BLOCK        65536u
#define BURST        64u
/* of memory, in all messages that are given to the kernel at a time */
#define PIECES      (4 * BURST)
#define QUEUE_BYTES (UINT32_C(16) << 20) /* of long frames that the socket may hold */
/* that wait in the kernel to leave: less than queueing disciplines drop */
#define SEND_BYTES    (UINT32_C(1) << 20)
#define FRAME_BESIDES 2048u /* of the kernel's memory, for each frame in a queue */
#define LINK_INTERVAL (100 * MILLISECOND)
#define IDLE_LOOKS    1024u /* that found no frame, from one look at the interface to the next */
/* frames of a length or more refused in a row, and none sent: it is the length */
#define REFUSED_TOLD 16u
/* bytes of a message, from the Ethernet header on: longer ones the kernel splits before it hands
 * them to any device */
#define MESSAGE_MAX UINT16_MAX
#define UDP_HEADERS (sizeof(struct rte_ipv4_hdr) + sizeof(struct rte_udp_hdr))
#define HEADERS_MAX (FRAME_HEADER + TAG + UDP_HEADERS)
#define VNET        sizeof(struct virtio_net_hdr)

/* A message's first piece with I4: its own copy of the headers, because a frame is not written
 * to. */
struct head {
	struct virtio_net_hdr vnet;
	uint8_t outer[HEADERS_MAX];
};
static_assert(offsetof(struct head, outer) == VNET, "the frame follows at once");

struct batch {
	struct mmsghdr messages[BURST];
	uint16_t frames[BURST]; /* in each message */
	struct head heads[BURST];
	struct iovec pieces[PIECES];
	unsigned count; /* of messages */
	unsigned piece_count;
};

struct packet {
	struct port port; /* first: a port is a packet port */
	int socket;
	int query;     /* a socket to ask the kernel with */
	int sink;      /* I6; -1: none */
	int index;     /* of the interface that the socket is bound to */
	bool vnet;     /* I4 */
	bool segments; /* the kernel takes several datagrams as one, as far as it is known */
	/* where behind the link header a frame names its process; 0 bytes: unknown */
	uint32_t key_at, key_bytes;
	uint32_t idle;   /* looks that found no frame */
	bool gone;       /* there is no such interface */
	bool made_again; /* since packet_watch() */
	bool moved;      /* it has another address than the port */
	bool narrow;     /* its MTU is smaller than the port's frames */
	bool up;         /* as last seen */
	bool heard;      /* frames have come since the owner last slept, or was about to */
	uint64_t look;   /* the time from which on it is looked at again */
	uint8_t *ring;
	uint32_t slot_bytes;
	uint32_t slot;                 /* that is filled next */
	struct rte_mbuf *ready[BURST]; /* of a message that was split: not yet given to the owner */
	unsigned ready_at, ready_count;
	uint64_t ready_came; /* when it came, ns by CLOCK_REALTIME */
	uint64_t missed, errors, no_mbuf;
	uint32_t refused; /* the least length that is being refused */
	uint32_t refusals;
	bool refusals_told;
	char interface[IFNAMSIZ];
	struct batch batch;
};

/* --- the interface --- */

/* The sink takes what comes by this interface alone. */
static void sink_bind(const struct packet *packet)
{
	if (packet->sink >= 0)
		(void)setsockopt(packet->sink, SOL_SOCKET, SO_BINDTODEVICE, packet->interface,
			(socklen_t)strlen(packet->interface) + 1);
}

static int packet_bind(struct packet *packet, int index)
{
	struct sockaddr_ll name = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = index};
	if (bind(packet->socket, (const struct sockaddr *)&name, sizeof(name)) != 0)
		return -1;
	packet->index = index;
	return 0;
}

/* An interface that goes down leaves an error at its sockets, which calls, or fails a call, until
 * somebody takes it. */
static void packet_hush(struct packet *packet)
{
	int error = 0;
	socklen_t size = sizeof(error);
	(void)getsockopt(packet->socket, SOL_SOCKET, SO_ERROR, &error, &size);
	if (error != 0)
		packet->look = 0;
}

/* An interface that was deleted and made again has another index. */
static void packet_rebind(struct packet *packet)
{
	struct ifreq answer;
	packet->gone = kernel_ask(packet->query, packet->interface, SIOCGIFINDEX, &answer) != 0;
	if (packet->gone || answer.ifr_ifindex == packet->index ||
		packet_bind(packet, answer.ifr_ifindex) != 0)
		return;
	packet_hush(packet);
	sink_bind(packet);
	packet->made_again = true;
}

/* An interface may get another address, or a smaller MTU, while frames still have the old ones.
 * Each change is reported once. */
static void packet_watch(struct packet *packet)
{
	const uint8_t *own = packet->port.address;
	uint32_t mtu = packet->port.frame_size - FRAME_HEADER;
	struct ifreq answer;
	if (kernel_ask(packet->query, packet->interface, SIOCGIFHWADDR, &answer) == 0) {
		bool moved =
			memcmp(answer.ifr_hwaddr.sa_data, own, sizeof(packet->port.address)) != 0;
		if (moved && !packet->moved)
			log_warning("%s: the interface %s another address, so nothing reaches this "
				    "process: "
				    "ip link set %s address %02x:%02x:%02x:%02x:%02x:%02x",
				packet->interface,
				packet->made_again ? "was made again with" : "has been given",
				packet->interface, own[0], own[1], own[2], own[3], own[4], own[5]);
		packet->moved = moved;
	}
	packet->made_again = false;
	if (kernel_ask(packet->query, packet->interface, SIOCGIFMTU, &answer) == 0) {
		bool narrow = answer.ifr_mtu > 0 && (uint32_t)answer.ifr_mtu < mtu;
		if (narrow && !packet->narrow)
			log_warning(
				"%s: the interface's MTU is %d now, and this process has frames "
				"of up to %u bytes, which are lost: ip link set %s mtu %u",
				packet->interface, answer.ifr_mtu, mtu, packet->interface, mtu);
		packet->narrow = narrow;
	}
}

static bool packet_link(struct port *port)
{
	struct packet *packet = (struct packet *)port;
	uint64_t now = glue_now(NULL);
	if (now < packet->look)
		return packet->up;
	packet->look = now + LINK_INTERVAL;
	packet_rebind(packet);
	if (!packet->gone)
		packet_watch(packet);
	packet->up = kernel_runs(packet->query, packet->interface);
	return packet->up;
}

/* --- sending --- */

/* The headers up to UDP's length, but for IPv4's length, are the same in datagrams that may go as
 * one, and so is the process that they are for: the receiving sockets' filters see only the
 * first. */
static bool frames_alike(
	const struct packet *packet, const struct rte_mbuf *one, const struct rte_mbuf *two)
{
	const uint8_t *a = rte_pktmbuf_mtod(one, const uint8_t *);
	const uint8_t *b = rte_pktmbuf_mtod(two, const uint8_t *);
	uint32_t length_at = one->l2_len + (uint32_t)offsetof(struct rte_ipv4_hdr, total_length);
	uint32_t rest = length_at + (uint32_t)sizeof(rte_be16_t);
	uint32_t end = one->l2_len + (uint32_t)(sizeof(struct rte_ipv4_hdr) +
						offsetof(struct rte_udp_hdr, dgram_len));
	uint32_t key_at = one->l2_len + packet->key_at;
	return (two->ol_flags & RTE_MBUF_F_TX_UDP_CKSUM) != 0 && two->l2_len == one->l2_len &&
	       memcmp(a, b, length_at) == 0 && memcmp(a + rest, b + rest, end - rest) == 0 &&
	       memcmp(a + key_at, b + key_at, packet->key_bytes) == 0;
}

/* How many of the frames go as one message: all but the last are of one length. *bytes: from the
 * Ethernet header on. */
static uint16_t frames_joined(
	const struct packet *packet, struct rte_mbuf **frames, uint16_t count, uint32_t *bytes)
{
	const struct rte_mbuf *first = frames[0];
	uint32_t headers = first->l2_len + (uint32_t)UDP_HEADERS;
	unsigned pieces = packet->batch.piece_count + first->nb_segs;
	uint16_t joined = 1;
	*bytes = first->pkt_len;
	if (!packet->segments)
		return 1;
	while (joined < count && frames[joined - 1]->pkt_len == first->pkt_len &&
		frames[joined]->pkt_len <= first->pkt_len &&
		*bytes + frames[joined]->pkt_len - headers <= MESSAGE_MAX &&
		(pieces += frames[joined]->nb_segs) <= PIECES &&
		frames_alike(packet, first, frames[joined]))
		*bytes += frames[joined++]->pkt_len - headers;
	return joined;
}

/* Adds a frame, without its first bytes, to the message that is being made. */
static void batch_pieces(struct batch *batch, const struct rte_mbuf *frame, uint32_t skip)
{
	for (; frame; frame = frame->next, skip = 0)
		batch->pieces[batch->piece_count++] =
			(struct iovec){.iov_base = rte_pktmbuf_mtod_offset(frame, void *, skip),
				.iov_len = frame->data_len - skip};
}

/* The headers of a message of UDP; returns their bytes. */
static uint32_t head_write(
	struct head *head, const struct rte_mbuf *frame, uint16_t joined, uint32_t bytes)
{
	uint32_t link = frame->l2_len, headers = link + (uint32_t)UDP_HEADERS;
	struct rte_ipv4_hdr *ipv4 = (struct rte_ipv4_hdr *)(void *)(head->outer + link);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(void *)(ipv4 + 1);
	memcpy(head->outer, rte_pktmbuf_mtod(frame, const void *), headers);
	ipv4->total_length = htons((uint16_t)(bytes - link));
	ipv4->hdr_checksum = 0;
	ipv4->hdr_checksum = rte_ipv4_cksum(ipv4);
	udp->dgram_len = htons((uint16_t)(bytes - link - sizeof(*ipv4)));
	udp->dgram_cksum = rte_ipv4_phdr_cksum(ipv4, 0);
	head->vnet = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.hdr_len = (uint16_t)headers,
		.csum_start = (uint16_t)(link + sizeof(*ipv4)),
		.csum_offset = offsetof(struct rte_udp_hdr, dgram_cksum)};
	if (joined > 1) {
		head->vnet.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4;
		head->vnet.gso_size = (uint16_t)(frame->pkt_len - headers);
	}
	return headers;
}

/* Makes a message of the first frame, or of the first ones; returns how many. */
static uint16_t batch_add(struct packet *packet, struct rte_mbuf **frames, uint16_t count)
{
	struct batch *batch = &packet->batch;
	struct head *head = &batch->heads[batch->count];
	struct iovec *first = &batch->pieces[batch->piece_count];
	uint32_t skip = 0, bytes;
	uint16_t joined = 1;
	if (packet->vnet) {
		batch->piece_count++;
		if (frames[0]->ol_flags & RTE_MBUF_F_TX_UDP_CKSUM) {
			joined = frames_joined(packet, frames, count, &bytes);
			skip = head_write(head, frames[0], joined, bytes);
		} else {
			head->vnet = (struct virtio_net_hdr){0};
		}
		*first = (struct iovec){.iov_base = head, .iov_len = VNET + skip};
	}
	for (uint16_t n = 0; n < joined; n++)
		batch_pieces(batch, frames[n], skip);
	batch->messages[batch->count].msg_hdr = (struct msghdr){.msg_iov = first,
		.msg_iovlen = (size_t)(batch->pieces + batch->piece_count - first)};
	batch->frames[batch->count++] = joined;
	return joined;
}

/* Makes messages of the first frames, as many as there is room for. */
static void batch_fill(struct packet *packet, struct rte_mbuf **frames, uint16_t count)
{
	struct batch *batch = &packet->batch;
	uint16_t done = 0;
	batch->count = 0;
	batch->piece_count = 0;
	while (done < count && batch->count < BURST &&
		frames[done]->pkt_len <= packet->port.frame_size &&
		batch->piece_count + 1 + frames[done]->nb_segs <= PIECES)
		done = (uint16_t)(done +
				  batch_add(packet, frames + done, (uint16_t)(count - done)));
}

static void refused_count(struct packet *packet, uint32_t length)
{
	const char *name = packet->interface;
	if (length < packet->refused || packet->refusals == 0)
		packet->refused = length;
	if (++packet->refusals < REFUSED_TOLD || packet->refusals_told ||
		packet->refused <= FRAME_MIN)
		return;
	packet->refusals_told = true;
	log_warning("%s: the kernel refuses frames of %" PRIu32
		    " bytes, which are lost: the other end of the interface seems to accept only "
		    "smaller ones; give both ends the same MTU by ip link set %s mtu N, or set "
		    "PTL_MTU",
		name, packet->refused - FRAME_HEADER, name);
}

/* Does the kernel, which has refused the first message, take it later or in another form? If not,
 * it is lost. */
static bool refusal_passes(
	struct packet *packet, int error, uint16_t joined, uint32_t length, bool *wait)
{
	*wait = error == EAGAIN || error == ENOMEM;
	if (*wait || error == EINTR)
		return true;
	if (error == EINVAL && joined > 1) {
		packet->segments = false;
		return true;
	}
	if (joined == 1 && (error == ENOBUFS || error == EMSGSIZE))
		refused_count(packet, length);
	return false;
}

static uint16_t batch_sent(struct packet *packet, struct rte_mbuf **frames, unsigned messages)
{
	uint16_t done = 0;
	for (unsigned n = 0; n < messages; n++) {
		if (packet->refusals > 0 && packet->batch.frames[n] == 1 &&
			frames[done]->pkt_len >= packet->refused)
			packet->refusals = 0;
		done = (uint16_t)(done + packet->batch.frames[n]);
	}
	rte_pktmbuf_free_bulk(frames, done);
	return done;
}

/* Throws away the frames of the first message. */
static uint16_t batch_lose(struct packet *packet, struct rte_mbuf **frames)
{
	uint16_t lost = packet->batch.count > 0 ? packet->batch.frames[0] : 1;
	packet->errors += lost;
	rte_pktmbuf_free_bulk(frames, lost);
	return lost;
}

/* A message alone costs less without the vector. */
static int batch_send(const struct packet *packet, struct batch *batch)
{
	if (batch->count == 1)
		return sendmsg(packet->socket, &batch->messages[0].msg_hdr, MSG_DONTWAIT) < 0 ? -1
											      : 1;
	return sendmmsg(packet->socket, batch->messages, batch->count, MSG_DONTWAIT);
}

static uint16_t packet_transmit(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct packet *packet = (struct packet *)port;
	struct batch *batch = &packet->batch;
	uint16_t done = 0;
	bool wait = false;
	while (done < count && !wait) {
		int sent = -1;
		batch_fill(packet, frames + done, (uint16_t)(count - done));
		if (batch->count > 0)
			sent = batch_send(packet, batch);
		if (sent > 0)
			done = (uint16_t)(done + batch_sent(packet, frames + done, (unsigned)sent));
		else if (batch->count == 0 || !refusal_passes(packet, errno, batch->frames[0],
						      frames[done]->pkt_len, &wait))
			done = (uint16_t)(done + batch_lose(packet, frames + done));
	}
	return done;
}

/* --- receiving --- */

/* A message that has come, which may be several frames. */
struct arrival {
	const uint8_t *bytes; /* the first of them, from the Ethernet header on */
	uint32_t here;        /* how many */
	uint32_t length;      /* in all */
	uint32_t status;      /* the slot's */
	/* that the kernel has taken out: its bytes in the order of the wire; 0: none */
	uint32_t tag;
	/* bytes of headers that all frames share; of all, when it is one frame */
	uint32_t head;
	uint32_t part;  /* bytes of data in each but the last; 0: it is one frame */
	uint32_t count; /* of frames */
};

/* Reads what the kernel says beside the bytes. Returns false if it is nothing that can be taken. */
static bool arrival_split(const struct packet *packet, struct arrival *arrival)
{
	struct virtio_net_hdr vnet;
	const uint8_t *bytes = arrival->bytes;
	uint32_t link = FRAME_HEADER;
	arrival->count = 1;
	arrival->head = arrival->length;
	if (!packet->vnet)
		return true;
	memcpy(&vnet, bytes - VNET, VNET);
	if (vnet.gso_type == VIRTIO_NET_HDR_GSO_NONE)
		return true;
	if (bytes[TAG_AT] == 0x81 && bytes[TAG_AT + 1] == 0)
		link += TAG;
	arrival->head = link + (uint32_t)UDP_HEADERS;
	arrival->part = vnet.gso_size;
	if (vnet.gso_type != VIRTIO_NET_HDR_GSO_UDP_L4 || arrival->part == 0 ||
		arrival->here < arrival->head || arrival->length <= arrival->head ||
		bytes[link] != (IPVERSION << 4 | sizeof(struct rte_ipv4_hdr) / 4) ||
		bytes[link + offsetof(struct rte_ipv4_hdr, next_proto_id)] != IPPROTO_UDP)
		return false;
	arrival->count = (arrival->length - arrival->head + arrival->part - 1) / arrival->part;
	return arrival->count <= BURST;
}

/* The memory that a message is copied to, in its order, and each frame's length; returns how many
 * pieces. */
static unsigned arrival_place(
	const struct arrival *arrival, struct rte_mbuf **frames, struct iovec *to)
{
	uint32_t tag = arrival->tag != 0 ? TAG : 0, apart = tag != 0 ? TAG_AT : 0;
	uint32_t left = arrival->length - arrival->head;
	uint8_t *at = rte_pktmbuf_mtod(frames[0], uint8_t *);
	unsigned pieces = 0;
	if (tag != 0) {
		to[pieces++] = (struct iovec){at, TAG_AT};
		memcpy(at + TAG_AT, &arrival->tag, TAG);
	}
	to[pieces++] = (struct iovec){at + apart + tag, arrival->head - apart};
	for (uint32_t n = 0; n < arrival->count; n++) {
		uint32_t before = arrival->head + tag, bytes = RTE_MIN(left, arrival->part);
		left -= bytes;
		if (bytes > 0)
			to[pieces++] = (struct iovec){
				rte_pktmbuf_mtod_offset(frames[n], void *, before), bytes};
		frames[n]->data_len = (uint16_t)(before + bytes);
		frames[n]->pkt_len = before + bytes;
	}
	return pieces;
}

/* Gives each frame of several its own headers. Nothing has damaged them since they were one, so
 * there is no checksum of UDP. */
static void arrival_heads(const struct arrival *arrival, struct rte_mbuf **frames)
{
	uint32_t head = arrival->head + (arrival->tag != 0 ? TAG : 0);
	uint32_t link = head - (uint32_t)UDP_HEADERS;
	for (uint32_t n = 0; n < arrival->count; n++) {
		uint8_t *at = rte_pktmbuf_mtod(frames[n], uint8_t *);
		struct rte_ipv4_hdr *ipv4 = (struct rte_ipv4_hdr *)(void *)(at + link);
		struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(void *)(ipv4 + 1);
		if (n > 0)
			memcpy(at, rte_pktmbuf_mtod(frames[0], const void *), head);
		ipv4->total_length = htons((uint16_t)(frames[n]->pkt_len - link));
		ipv4->hdr_checksum = 0;
		ipv4->hdr_checksum = rte_ipv4_cksum(ipv4);
		udp->dgram_len = htons((uint16_t)(frames[n]->pkt_len - link - sizeof(*ipv4)));
		udp->dgram_cksum = 0;
	}
}

/* The next frame of the socket's queue (I3). Returns false if it is not what was announced. */
static bool queue_take(const struct packet *packet, struct iovec *to, unsigned pieces, size_t bytes)
{
	struct msghdr message = {.msg_iov = to, .msg_iovlen = pieces};
	ssize_t taken;
	do /* an interface that goes down leaves an error, which is told once */
		taken = recvmsg(packet->socket, &message, MSG_DONTWAIT | MSG_TRUNC);
	while (taken < 0 && (errno == EINTR || errno == ENETDOWN));
	return taken == (ssize_t)bytes;
}

static void arrival_copy(const struct arrival *arrival, const struct iovec *to, unsigned pieces)
{
	const uint8_t *from = arrival->bytes;
	for (unsigned n = 0; n < pieces; n++) {
		memcpy(to[n].iov_base, from, to[n].iov_len);
		from += to[n].iov_len;
	}
}

/* Copies a message to frames. Returns false if it was not what was announced. */
static bool arrival_take(
	const struct packet *packet, const struct arrival *arrival, struct rte_mbuf **frames)
{
	struct virtio_net_hdr vnet;
	struct iovec to[3 + BURST];
	unsigned pieces = arrival_place(arrival, frames, to + 1);
	bool fine = true;
	if (arrival->status & TP_STATUS_COPY) {
		unsigned skip = packet->vnet ? 0 : 1;
		to[0] = (struct iovec){&vnet, VNET};
		fine = queue_take(packet, to + skip, pieces + 1 - skip,
			arrival->length + (packet->vnet ? VNET : 0));
	} else {
		arrival_copy(arrival, to + 1, pieces);
	}
	if (fine && arrival->part != 0)
		arrival_heads(arrival, frames);
	if (arrival->status & (TP_STATUS_CSUMNOTREADY | TP_STATUS_CSUM_VALID))
		for (uint32_t n = 0; n < arrival->count; n++)
			frames[n]->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	return fine;
}

/* Throws a message away that nobody can take. */
static unsigned arrival_drop(
	struct packet *packet, const struct arrival *arrival, uint64_t *counter)
{
	if (arrival->status & TP_STATUS_COPY)
		(void)queue_take(packet, NULL, 0, 0);
	++*counter;
	return 0;
}

/* Makes frames of a message; returns how many. -1: there are no buffers, and it stays. */
static int arrival_receive(struct packet *packet, struct arrival *arrival, struct rte_mbuf **frames)
{
	uint32_t room =
		(uint32_t)rte_pktmbuf_data_room_size(packet->port.pool) - RTE_PKTMBUF_HEADROOM;
	if (arrival->here < arrival->length && !(arrival->status & TP_STATUS_COPY))
		return (int)arrival_drop(packet, arrival, &packet->missed);
	if (arrival->here < FRAME_HEADER || !arrival_split(packet, arrival))
		return (int)arrival_drop(packet, arrival, &packet->errors);
	if (arrival->head + arrival->part + TAG > room)
		return (int)arrival_drop(packet, arrival, &packet->errors);
	if (rte_pktmbuf_alloc_bulk(packet->port.pool, frames, arrival->count) != 0) {
		packet->no_mbuf++;
		return -1;
	}
	if (arrival_take(packet, arrival, frames))
		return (int)arrival->count;
	rte_pktmbuf_free_bulk(frames, arrival->count);
	packet->errors++;
	return 0;
}

static uint32_t slot_tag(const struct tpacket2_hdr *slot)
{
	uint16_t tag[2];
	uint32_t bytes;
	if (!(slot->tp_status & TP_STATUS_VLAN_VALID))
		return 0;
	tag[0] = htons(
		slot->tp_status & TP_STATUS_VLAN_TPID_VALID ? slot->tp_vlan_tpid : ETH_P_8021Q);
	tag[1] = htons(slot->tp_vlan_tci);
	memcpy(&bytes, tag, sizeof(bytes));
	return bytes;
}

/* Takes what is in the next slot, if something is, to `ready`. Returns false if nothing is, or it
 * must wait. */
static bool slot_receive(struct packet *packet)
{
	struct tpacket2_hdr *slot =
		(struct tpacket2_hdr *)(void *)(packet->ring +
						(size_t)packet->slot * packet->slot_bytes);
	/* the frame is behind it */
	uint32_t status = __atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE);
	struct arrival arrival;
	int count;
	if (!(status & TP_STATUS_USER))
		return false;
	arrival = (struct arrival){.bytes = (const uint8_t *)slot + slot->tp_mac,
		.here = slot->tp_snaplen,
		.length = slot->tp_len,
		.status = status,
		.tag = slot_tag(slot)};
	count = arrival_receive(packet, &arrival, packet->ready);
	if (count < 0)
		return false;
	packet->ready_at = 0;
	packet->ready_count = (unsigned)count;
	packet->ready_came = slot->tp_sec * SECOND + slot->tp_nsec;
	packet->slot = (packet->slot + 1) % SLOTS;
	/* it has been read */
	__atomic_store_n(&slot->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	return true;
}

/* Since when the message in `ready` has waited, by the owner's clock. 0: not known, because the
 * kernel's clock was set meanwhile, or because the message is one frame: only joined datagrams keep
 * the owner busy for so long that the time for which the next ones wait matters. */
static uint64_t ready_since(const struct packet *packet)
{
	struct timespec time;
	uint64_t waited;
	if (packet->ready_count <= 1)
		return 0;
	clock_gettime(CLOCK_REALTIME, &time);
	waited = (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec - packet->ready_came;
	return waited < SECOND ? glue_now(NULL) - waited : 0;
}

static uint16_t packet_receive(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct packet *packet = (struct packet *)port;
	uint16_t done = 0;
	while (done < count) {
		if (packet->ready_at == packet->ready_count && !slot_receive(packet))
			break;
		if (done == 0)
			port->arrived = ready_since(packet);
		while (done < count && packet->ready_at < packet->ready_count)
			frames[done++] = packet->ready[packet->ready_at++];
	}
	if (done > 0)
		packet->heard = true;
	else if (++packet->idle % IDLE_LOOKS == 0)
		(void)packet_link(port); /* it may have been made again */
	return done;
}

/* --- whom frames are for --- */

/* Do packet sockets receive joined datagrams? Before Linux 6.2 they lose them. */
static bool kernel_joins(void)
{
	struct utsname kernel;
	unsigned major = 0, minor = 0;
	return uname(&kernel) == 0 && sscanf(kernel.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 2));
}

/* I6. SO_REUSEADDR: every process on the interface has one. */
static bool sink_make(struct packet *packet, uint16_t udp_port)
{
	struct sock_filter nothing = {BPF_RET | BPF_K, 0, 0, 0};
	const struct sock_fprog filter = {1, &nothing};
	const struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(udp_port)};
	int on = 1;
	packet->sink = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (packet->sink < 0)
		return false;
	sink_bind(packet);
	if (kernel_joins())
		(void)setsockopt(packet->sink, SOL_UDP, UDP_GRO, &on, sizeof(on));
	return setsockopt(packet->sink, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ==
		       0 &&
	       setsockopt(packet->sink, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	       bind(packet->sink, (const struct sockaddr *)&name, sizeof(name)) == 0;
}

/* Without it, because another program has the UDP port, frames arrive all the same. */
static void sink_open(struct packet *packet, uint16_t udp_port)
{
	if (sink_make(packet, udp_port))
		return;
	log_info("%s: the kernel answers frames by ICMP, because it does not give this process UDP "
		 "port %u: %s; end the program that has it, or set PTL_UDP_PORT",
		packet->interface, udp_port, strerror(errno));
	if (packet->sink >= 0)
		close(packet->sink);
	packet->sink = -1;
}

static void packet_select(struct port *port, const struct port_selection *wanted)
{
	struct packet *packet = (struct packet *)port;
	struct program program;
	struct sock_fprog filter;
	int on = 1;
	packet->key_at = wanted->at - FRAME_HEADER;
	packet->key_bytes = sizeof(wanted->key);
	if (wanted->udp_port != 0)
		sink_open(packet, wanted->udp_port);
	program_select(&program, port->address, wanted);
	filter = (struct sock_fprog){(unsigned short)program.count, program.code};
	if (setsockopt(packet->socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) != 0)
		log_warning("%s: the kernel accepts no filter (%s), so this process receives all "
			    "frames of the interface, which is slow: raise sysctl "
			    "net.core.optmem_max",
			packet->interface, strerror(errno));
	else
		(void)setsockopt(packet->socket, SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof(on));
}

/* --- the port --- */

/* Each look at the kernel's count begins it anew. */
static void packet_counters(struct port *port, struct port_counters *counters)
{
	struct packet *packet = (struct packet *)port;
	struct tpacket_stats stats = {0};
	socklen_t size = sizeof(stats);
	if (getsockopt(packet->socket, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0)
		packet->missed += stats.tp_drops;
	counters->missed = packet->missed;
	counters->errors = packet->errors;
	counters->no_mbuf = packet->no_mbuf;
	counters->buffers = pool_used(port->pool);
}

/* The socket is readable while its ring holds frames. Nothing calls when an interface is made
 * again. A call that no frame explains may have been for an error, which would go on calling. */
static int packet_interrupt(struct port *port, bool on)
{
	struct packet *packet = (struct packet *)port;
	if (!on)
		return -1;
	if (!packet->heard)
		packet_hush(packet);
	packet->heard = false;
	(void)packet_link(port);
	return packet->gone ? -1 : packet->socket;
}

static void packet_describe(struct port *port, struct port_description *description)
{
	(void)port;
	snprintf(description->driver, sizeof(description->driver), "af_packet");
}

static void packet_free(struct packet *packet)
{
	if (packet->ring)
		munmap(packet->ring, (size_t)packet->slot_bytes * SLOTS);
	if (packet->socket >= 0)
		close(packet->socket);
	if (packet->query >= 0)
		close(packet->query);
	if (packet->sink >= 0)
		close(packet->sink);
	if (packet->port.pool)
		mempool_give(packet->port.pool);
	free(packet);
}

static void packet_close(struct port *port)
{
	struct packet *packet = (struct packet *)port;
	while (packet->ready_at < packet->ready_count)
		rte_pktmbuf_free(packet->ready[packet->ready_at++]);
	packet_free(packet);
}

static const struct port_operations packet_operations = {
	.receive = packet_receive,
	.transmit = packet_transmit,
	.link = packet_link,
	.counters = packet_counters,
	.interrupt = packet_interrupt,
	.select = packet_select,
	.describe = packet_describe,
	.close = packet_close,
};

/* --- opening --- */

static int socket_set(int socket, int option, int value)
{
	return setsockopt(socket, SOL_PACKET, option, &value, sizeof(value));
}

/* Sets a size of the socket's, which only the network's administrator may set beyond the kernel's
 * limit; returns what it is then. */
static uint32_t socket_room(int socket, int force, int option, uint32_t bytes)
{
	int value = (int)bytes / 2; /* the kernel doubles it */
	socklen_t size = sizeof(value);
	if (setsockopt(socket, SOL_SOCKET, force, &value, sizeof(value)) != 0)
		(void)setsockopt(socket, SOL_SOCKET, option, &value, sizeof(value));
	(void)getsockopt(socket, SOL_SOCKET, option, &value, &size);
	return (uint32_t)value;
}

static int packet_map(struct packet *packet)
{
	uint32_t slot = packet->slot_bytes;
	struct tpacket_req ring = {.tp_block_size = BLOCK,
		.tp_block_nr = slot * SLOTS / BLOCK,
		.tp_frame_size = slot,
		.tp_frame_nr = SLOTS};
	void *memory;
	if (setsockopt(packet->socket, SOL_PACKET, PACKET_RX_RING, &ring, sizeof(ring)) != 0)
		return -1;
	memory = mmap(
		NULL, (size_t)slot * SLOTS, PROT_READ | PROT_WRITE, MAP_SHARED, packet->socket, 0);
	if (memory == MAP_FAILED)
		return -1;
	packet->ring = memory;
	return 0;
}

/* A slot for frames of a size; of longer ones than it should ever hold the start suffices. */
static uint32_t slot_choose(uint32_t frame_size)
{
	uint32_t slot = SLOT_LEAST;
	while (slot < frame_size + SLOT_BESIDES)
		slot *= 2;
	return slot <= SLOT_MOST ? slot : SLOT_LEAST;
}

static int packet_prepare(struct packet *packet)
{
	uint32_t frame = packet->port.frame_size, frames = SLOTS, room;
	packet->slot_bytes = slot_choose(frame);
	packet->socket = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (packet->socket < 0 || socket_set(packet->socket, PACKET_VERSION, TPACKET_V2) != 0 ||
		socket_set(packet->socket, PACKET_COPY_THRESH, 1) != 0 ||
		(packet->vnet && socket_set(packet->socket, PACKET_VNET_HDR, 1) != 0) ||
		packet_map(packet) != 0)
		return -1;
	(void)socket_room(packet->socket, SO_SNDBUFFORCE, SO_SNDBUF, SEND_BYTES);
	room = socket_room(packet->socket, SO_RCVBUFFORCE, SO_RCVBUF, QUEUE_BYTES);
	if (packet->vnet || frame + SLOT_BESIDES > packet->slot_bytes)
		frames = RTE_MIN(room / (frame + FRAME_BESIDES), SLOTS);
	packet->port.receive_frames = (uint16_t)frames;
	return 0;
}

static int packet_start(struct packet *packet, uint32_t mtu)
{
	const char *name = packet->interface;
	struct port *port = &packet->port;
	struct ifreq answer;
	uint32_t has = kernel_check(packet->query, name, "");
	if (has != 0)
		port->frame_size = kernel_frame_size(name, has, mtu, FRAME_MAX);
	if (port->frame_size == 0)
		return -1;
	if (!kernel_carrier(packet->query, name))
		log_warning("%s: the interface has no carrier, so no frame arrives until it has: "
			    "plug in its "
			    "cable, set its other end up, or start the program at the other end of "
			    "a tap",
			name);
	packet->vnet = setting_is(SETTING_ENCAP, "udp");
	packet->segments = packet->vnet;
	if (packet->vnet)
		port->joins = (uint16_t)((MESSAGE_MAX - HEADERS_MAX) /
					 (port->frame_size - FRAME_HEADER - UDP_HEADERS));
	port->checksum_offload = packet->vnet;
	port->pool = mempool_take(
		name, RTE_MAX(port->frame_size + TAG, SLOT_LEAST), SLOTS, SOCKET_ID_ANY, true);
	if (!port->pool)
		return -1;
	if (packet_prepare(packet) == 0 &&
		kernel_ask(packet->query, name, SIOCGIFHWADDR, &answer) == 0) {
		memcpy(port->address, answer.ifr_hwaddr.sa_data, sizeof(port->address));
		if (kernel_ask(packet->query, name, SIOCGIFINDEX, &answer) == 0 &&
			packet_bind(packet, answer.ifr_ifindex) == 0)
			return 0;
	}
	log_error("%s: the kernel does not open it: %s: ip link lists the interfaces, and shows "
		  "which are up",
		name, strerror(errno));
	return -1;
}

struct port *packet_open(const char *interface, uint32_t mtu)
{
	struct packet *packet = calloc(1, sizeof(*packet));
	if (!packet) {
		log_error("%s: out of memory: %s", interface, remedy_for_memory());
		return NULL;
	}
	packet->port.operations = &packet_operations;
	packet->port.external = true;
	packet->port.cancels = true;
	packet->port.calls = true;
	packet->port.helped = true;
	packet->port.aside = POOL_ASIDE;
	packet->port.socket = -1;
	packet->port.gathers = true;
	packet->port.guards = true;
	packet->port.gather_bytes = GATHER_BYTES;
	snprintf(packet->port.name, sizeof(packet->port.name), "%s", interface);
	snprintf(packet->interface, sizeof(packet->interface), "%s", interface);
	packet->socket = -1;
	packet->sink = -1;
	packet->query = kernel_query(interface);
	if (packet->query >= 0 && packet_start(packet, mtu) == 0)
		return &packet->port;
	packet_free(packet);
	return NULL;
}
