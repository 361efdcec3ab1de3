/* SPDX-License-Identifier: BSD-3-Clause */
/* bare_send.c - the sending half of bare.h: writes frames and gives them to the port. */
#include <assert.h>
#include <string.h>

#include <rte_mbuf.h>

#include <base/port.h>

#include "bare_frame.h"

static void header_write(const struct bare *bare, struct rte_mbuf *mbuf,
	const struct bare_header *header, uint32_t payload)
{
	uint8_t *at = rte_pktmbuf_mtod(mbuf, uint8_t *);
	uint32_t length = encapsulation_link(&bare->link, at, bare->to, BARE_ETHERTYPE);

	memcpy(at + length, header, sizeof(*header));
	length += (uint32_t)sizeof(*header) + payload;
	if (length < FRAME_LEAST)
		length = FRAME_LEAST;
	mbuf->data_len = (uint16_t)length;
	mbuf->pkt_len = length;
}

/* Gives the port what it has not taken yet. */
static bool pending_flush(struct bare *bare)
{
	while (bare->pending_count > 0) {
		uint16_t taken = port_transmit(bare->port, &bare->pending[bare->pending_at],
			(uint16_t)bare->pending_count);

		if (taken == 0)
			return false;
		bare->pending_at += taken;
		bare->pending_count -= taken;
	}
	bare->pending_at = 0;
	return true;
}

static void control_write(struct bare *bare, struct rte_mbuf *mbuf, enum bare_kind kind)
{
	struct bare_header header = {
		.kind = (uint8_t)kind,
		.measure = (uint8_t)bare->measure,
		.session = bare->session,
	};

	if (kind == BARE_HELLO || kind == BARE_WELCOME) {
		header.number = bare->window;
		header.index = bare->payload;
	} else {
		header.sequence = kind == BARE_PROBE ? bare->sent : bare->expected;
		header.number = (uint32_t)bare->received;
	}
	header_write(bare, mbuf, &header, sizeof(bare->size));
	memcpy(rte_pktmbuf_mtod(mbuf, uint8_t *) + bare->link.bytes + sizeof(header), &bare->size,
		sizeof(bare->size));
}

/* Writes the control frames that are owed, behind what is pending. */
static void owed_write(struct bare *bare)
{
	for (unsigned kind = 0; kind < BARE_KINDS; kind++) {
		struct rte_mbuf *mbuf;

		if (!(bare->owed & 1u << kind))
			continue;
		mbuf = rte_pktmbuf_alloc(bare->port->pool);
		if (!mbuf)
			return; /* next turn */
		control_write(bare, mbuf, kind);
		bare->owed &= ~(1u << kind);
		bare->pending[bare->pending_count++] = mbuf;
	}
}
static_assert(BARE_KINDS <= BARE_BURST, "all of them fit");

static unsigned data_due(const struct bare *bare)
{
	uint32_t due = bare->due;

	if (bare->streams && (bare->state == BARE_WARM || bare->state == BARE_RUN))
		due = bare->window - (bare->sent - bare->passed);
	return due < BARE_BURST ? due : BARE_BURST;
}

static void data_write(struct bare *bare, unsigned count)
{
	struct bare_header header = {
		.kind = BARE_DATA,
		.measure = (uint8_t)bare->measure,
		.session = bare->session,
	};

	if (rte_pktmbuf_alloc_bulk(bare->port->pool, bare->pending, count) != 0)
		return;
	for (unsigned i = 0; i < count; i++) {
		header.sequence = bare->sent++;
		header.number = bare->number;
		header.index = bare->index;
		header_write(bare, bare->pending[i], &header,
			bare_payload(bare->out_size, bare->payload, bare->index));
		if (++bare->index == bare->out_frames) {
			bare->index = 0;
			bare->number += bare->streams;
		}
	}
	bare->due -= bare->streams ? 0 : count;
	bare->pending_count = count;
}

void bare_send(struct bare *bare)
{
	unsigned count;

	if (bare->owed != 0 && pending_flush(bare))
		owed_write(bare);
	while (pending_flush(bare) && (count = data_due(bare)) > 0) {
		data_write(bare, count);
		if (bare->pending_count == 0)
			return; /* no buffers: next turn */
	}
}
