/* SPDX-License-Identifier: BSD-3-Clause */
/* glue_fixture.h - what the tests of pmd-glue share: starting it with settings, making frames,
 * waiting for conditions. */
#ifndef TESTS_GLUE_FIXTURE_H
#define TESTS_GLUE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <base/clock.h>
#include <base/log.h>
#include <base/port.h>
#include <base/settings.h>
#include <pmd-glue/glue.h>

#include "../nap.h"

static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/* A condition that never comes true ends a test, long after any machine would have made it true. */
#define TIMEOUT (30 * SECOND)

static inline void fixture_set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
	assert_int_equal(settings_load(), 0);
}

static inline int fixture_start(void **state)
{
	(void)state;
	if (settings_load() != 0 || glue_start() != 0)
		return -1;
	glue_thread_enter();
	return 0;
}

/* A frame of `size` bytes; what follows the addresses and the type is `fill`. */
static inline struct rte_mbuf *frame_make(
	struct port *from, const uint8_t *to, uint32_t size, uint8_t fill)
{
	struct rte_mbuf *frame = rte_pktmbuf_alloc(from->pool);
	uint8_t *bytes;

	assert_non_null(frame);
	assert_true(rte_pktmbuf_tailroom(frame) >= size);
	frame->data_len = (uint16_t)size;
	frame->pkt_len = size;
	bytes = rte_pktmbuf_mtod(frame, uint8_t *);
	memset(bytes, fill, size);
	if (size >= 14) {
		memcpy(bytes, to, 6);
		memcpy(bytes + 6, from->address, 6);
		bytes[12] = 0x88;
		bytes[13] = 0xb5;
	}
	return frame;
}

static inline uint8_t frame_fill(const struct rte_mbuf *frame)
{
	return *rte_pktmbuf_mtod_offset(frame, const uint8_t *, 14);
}

/* Is it a frame of ours, of one piece, with `fill` to its end? */
static inline bool frame_is(const struct rte_mbuf *frame, uint32_t size, uint8_t fill)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(frame, const uint8_t *);

	if (frame->nb_segs != 1 || frame->pkt_len != size || bytes[12] != 0x88 || bytes[13] != 0xb5)
		return false;
	for (uint32_t n = 14; n < size; n++)
		if (bytes[n] != fill)
			return false;
	return true;
}

/* Sends one frame; the port must take it within TIMEOUT. */
static inline void port_send(struct port *port, struct rte_mbuf *frame)
{
	uint64_t end = glue_now(NULL) + TIMEOUT;

	while (port_transmit(port, &frame, 1) == 0) {
		assert_true(glue_now(NULL) < end);
		nap();
	}
}

/* Takes one frame; NULL after TIMEOUT. */
static inline struct rte_mbuf *port_take(struct port *port)
{
	uint64_t end = glue_now(NULL) + TIMEOUT;
	struct rte_mbuf *frame = NULL;

	while (port_receive(port, &frame, 1) == 0 && glue_now(NULL) < end)
		nap();
	return frame;
}

static inline void port_close(struct port *port)
{
	port->operations->close(port);
}

static inline struct port_counters port_count(struct port *port)
{
	struct port_counters counters = {0};

	port->operations->counters(port, &counters);
	return counters;
}

#endif
