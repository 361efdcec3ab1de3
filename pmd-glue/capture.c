/* SPDX-License-Identifier: BSD-3-Clause */
/* capture.c - takes a copy of every frame that a port receives and sends.
 *
 * A capture takes the place of a port's operations, calls them, and copies what passes to a track
 * (recorder.h), whose own thread writes it down. A port without a capture pays nothing: no code on
 * its path checks for one. The innermost port is captured, inside PTL_FAULT, so the file has the
 * frames of the wire: on the way out after the faults, on the way in before them.
 *
 *      engine --> [fault] --> capture --> port
 *                                |
 *                             track --> file
 *
 * The poll core owns a capture between capture_attach() and capture_detach(), as it owns the port.
 *
 * I1. A frame is copied before the port gets it, because afterwards its buffer may be reused. It
 *     counts only once the port has taken it.
 * I2. A frame that finds the ring full is not captured but counted: the poll core never waits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include <base/log.h>
#include <base/port.h>
#include <base/remedy.h>
#include <base/settings.h>
#include <pmd-glue/capture.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/kinds.h>
#include <pmd-glue/recorder.h>

#define BURST    64u
#define FILE_MAX 4096u

struct capture {
	struct port_operations operations; /* first: a captured port's operations are a capture */
	const struct port_operations *inside;
	struct port *port;
	struct track *track;
	uint32_t snap; /* bytes kept of a frame at most */
};

static struct capture *port_capture(const struct port *port);

/* --- the poll core's part --- */

/* Puts a frame on the ring, unpublished; false when there is no room. */
static bool capture_frame(
	struct capture *capture, const struct rte_mbuf *frame, struct pcapng_packet *packet)
{
	struct byte_ring *ring = &capture->track->ring;
	uint8_t edge[PCAPNG_PACKET_HEAD + PCAPNG_PACKET_TAIL];
	uint32_t left;

	packet->length = frame->pkt_len;
	packet->captured = RTE_MIN(frame->pkt_len, capture->snap);
	if (!byte_ring_room(ring, pcapng_packet_bytes(packet->captured)))
		return false;
	byte_ring_put(ring, edge, pcapng_packet_head(edge, packet));
	left = packet->captured;
	for (; left > 0; frame = frame->next) {
		uint32_t part = RTE_MIN(left, (uint32_t)frame->data_len);

		byte_ring_put(ring, rte_pktmbuf_mtod(frame, const void *), part);
		left -= part;
	}
	byte_ring_put(ring, edge, pcapng_packet_tail(edge, packet));
	return true;
}

static struct pcapng_packet capture_packet(
	const struct capture *capture, enum pcapng_direction direction)
{
	return (struct pcapng_packet){.interface = capture->track->number,
		.direction = direction,
		.time = recorder_time()};
}

static void capture_count(struct capture *capture, uint64_t taken, uint64_t dropped)
{
	struct track *track = capture->track;

	/* One thread writes, others read. */
	atomic_store_explicit(&track->taken,
		atomic_load_explicit(&track->taken, memory_order_relaxed) + taken,
		memory_order_relaxed);
	if (dropped > 0)
		atomic_store_explicit(&track->dropped,
			atomic_load_explicit(&track->dropped, memory_order_relaxed) + dropped,
			memory_order_relaxed);
}

static uint16_t capture_receive(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct capture *capture = port_capture(port);
	uint16_t received = capture->inside->receive(port, frames, count);
	struct pcapng_packet packet;
	uint64_t dropped = 0;

	if (received == 0 || track_ended(capture->track))
		return received;
	packet = capture_packet(capture, PCAPNG_INBOUND);
	for (uint16_t n = 0; n < received; n++)
		dropped += !capture_frame(capture, frames[n], &packet);
	byte_ring_publish(&capture->track->ring, capture->track->ring.at);
	capture_count(capture, received, dropped);
	return received;
}

/* At most BURST frames. */
static uint16_t capture_transmit_burst(
	struct capture *capture, struct rte_mbuf **frames, uint16_t count)
{
	struct byte_ring *ring = &capture->track->ring;
	struct pcapng_packet packet = capture_packet(capture, PCAPNG_OUTBOUND);
	uint64_t ends[BURST + 1] = {ring->at}; /* positions on the ring after each frame */
	bool kept[BURST];
	uint64_t dropped = 0;
	uint16_t taken;

	for (uint16_t n = 0; n < count; n++) {
		kept[n] = capture_frame(capture, frames[n], &packet);
		ends[n + 1] = ring->at;
	}
	taken = capture->inside->transmit(capture->port, frames, count);
	byte_ring_publish(ring, ends[taken]);
	for (uint16_t n = 0; n < taken; n++)
		dropped += !kept[n];
	capture_count(capture, taken, dropped);
	return taken;
}

static uint16_t capture_transmit(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct capture *capture = port_capture(port);
	uint16_t done = 0;

	if (track_ended(capture->track))
		return capture->inside->transmit(port, frames, count);
	while (done < count) {
		uint16_t part = (uint16_t)RTE_MIN(count - done, (int)BURST);
		uint16_t taken = capture_transmit_burst(capture, frames + done, part);

		done = (uint16_t)(done + taken);
		if (taken < part)
			break;
	}
	return done;
}

static void capture_counters(struct port *port, struct port_counters *counters)
{
	struct capture *capture = port_capture(port);
	const struct track *track = capture->track;

	capture->inside->counters(port, counters);
	counters->uncaptured = atomic_load_explicit(&track->dropped, memory_order_relaxed);
	counters->captured =
		atomic_load_explicit(&track->taken, memory_order_relaxed) - counters->uncaptured;
}

static void capture_close(struct port *port)
{
	struct capture *capture = port_capture(port);

	capture_detach(capture);
	capture_finish(capture);
	port->operations->close(port);
}

/* NULL when the port is not captured. */
static struct capture *port_capture(const struct port *port)
{
	return port->operations->close == capture_close
		       ? (struct capture *)(uintptr_t)port->operations
		       : NULL;
}

/* --- starting and stopping --- */

/* Writes the file's name with %p, %i and %% replaced; false when it is too long. */
static bool capture_name(char *name, size_t size, const char *pattern, unsigned interface)
{
	size_t at = 0;

	for (; *pattern; pattern++) {
		int length;

		if (pattern[0] == '%' && pattern[1] == 'p')
			length = snprintf(name + at, size - at, "%ld", (long)getpid());
		else if (pattern[0] == '%' && pattern[1] == 'i')
			length = snprintf(name + at, size - at, "%u", interface);
		else
			length = snprintf(name + at, size - at, "%c", *pattern);
		if (pattern[0] == '%' && pattern[1] && strchr("pi%", pattern[1]))
			pattern++;
		if ((at += (size_t)length) >= size)
			return false;
	}
	return at > 0;
}

/* restart: the caller asks for the capture anew, so an earlier failure does not count. */
static struct capture *capture_make(
	struct port *port, unsigned interface, const char *file, uint32_t snap, bool restart)
{
	char name[FILE_MAX], description[64];
	struct pcapng_interface told = {.description = description, .snap = snap};
	struct capture *capture;

	port = fault_inside(port);
	if (port_capture(port)) {
		log_error("%s is being captured to %s: stop that first", port->name,
			track_file(port_capture(port)->track));
		return NULL;
	}
	if (!capture_name(name, sizeof(name), file, interface)) {
		log_error("cannot capture to %s: the name is %s", file,
			file[0] ? "too long" : "missing: write that of a file");
		return NULL;
	}
	if (restart && recorder_failed(name)) {
		log_error("the capture to %s has failed: stop it on the other interfaces, too, "
			  "before it is started again",
			name);
		return NULL;
	}
	capture = calloc(1, sizeof(*capture));
	if (!capture) {
		log_error("cannot capture to %s: out of memory: %s", name, remedy_for_memory());
		return NULL;
	}
	snprintf(description, sizeof(description), "Postern interface %u of process %ld", interface,
		(long)getpid());
	told.name = port->name;
	told.address = port->address;
	*capture = (struct capture){.port = port, .snap = snap == 0 ? UINT32_MAX : snap};
	capture->track = track_open(name, &told);
	if (capture->track)
		return capture;
	free(capture);
	return NULL;
}

struct capture *capture_start(
	struct port *port, unsigned interface, const char *file, uint32_t snap)
{
	return capture_make(port, interface, file, snap, true);
}

void capture_attach(struct capture *capture)
{
	capture->inside = capture->port->operations;
	/* All other operations remain the port's own. */
	capture->operations = *capture->inside;
	capture->operations.receive = capture_receive;
	capture->operations.transmit = capture_transmit;
	capture->operations.counters = capture_counters;
	capture->operations.close = capture_close;
	capture->port->operations = &capture->operations;
}

struct capture *capture_find(const struct port *port)
{
	return port_capture(fault_inside((struct port *)(uintptr_t)port));
}

bool capture_ended(const struct capture *capture)
{
	return track_ended(capture->track);
}

void capture_detach(struct capture *capture)
{
	capture->port->operations = capture->inside;
}

void capture_finish(struct capture *capture)
{
	track_finish(capture->track);
	free(capture);
}

int capture_begin(struct port *port, unsigned interface)
{
	const char *file = setting_item(SETTING_CAPTURE, interface);
	struct capture *capture;

	if (!file[0])
		return 0;
	capture = capture_make(
		port, interface, file, (uint32_t)setting_number(SETTING_CAPTURE_SNAPLEN), false);
	if (!capture)
		return -1;
	capture_attach(capture);
	return 0;
}
