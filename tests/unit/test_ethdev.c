/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ethdev.c - tests of pmd-glue/ethdev.c: what cards demand. The device is net_null; what a
 * card's driver would say stands in for what it says. */
#include "../nap.h"
#include "glue_fixture.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_ethdev.h>

#include <pmd-glue/kinds.h>

#define CARD_MTU 1500u

/* What the card's driver says, and what it has been told. */
static struct {
	uint32_t min_rx_bufsize;
	uint32_t max_rx_pktlen;
	uint64_t rx_offload_capa;
	uint64_t offloads;
	uint16_t vlan;
	bool started_before_vlan;
	bool started;
	uint16_t rx_buf_size;
	bool scattered;
	int interrupt; /* descriptor, -1: it has none */
	uint32_t waiting;
	bool closed;
} card;

/* of drivers, that run */
static atomic_uint callbacks;

int __real_rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *info);
int __wrap_rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *info);
int __wrap_rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *info)
{
	int result = __real_rte_eth_dev_info_get(id, info);

	info->min_rx_bufsize = card.min_rx_bufsize;
	info->rx_offload_capa |= card.rx_offload_capa;
	if (card.max_rx_pktlen)
		info->max_rx_pktlen = card.max_rx_pktlen;
	return result;
}

int __real_rte_eth_dev_configure(
	uint16_t id, uint16_t receive, uint16_t transmit, const struct rte_eth_conf *conf);
int __wrap_rte_eth_dev_configure(
	uint16_t id, uint16_t receive, uint16_t transmit, const struct rte_eth_conf *conf);
int __wrap_rte_eth_dev_configure(
	uint16_t id, uint16_t receive, uint16_t transmit, const struct rte_eth_conf *conf)
{
	struct rte_eth_conf possible = *conf;

	card.offloads = conf->rxmode.offloads;
	possible.rxmode.offloads &= ~card.rx_offload_capa;
	possible.intr_conf.rxq = 0;
	return __real_rte_eth_dev_configure(id, receive, transmit, &possible);
}

int __real_rte_eth_rx_queue_setup(uint16_t id, uint16_t queue, uint16_t count, unsigned socket,
	const struct rte_eth_rxconf *conf, struct rte_mempool *pool);
int __wrap_rte_eth_rx_queue_setup(uint16_t id, uint16_t queue, uint16_t count, unsigned socket,
	const struct rte_eth_rxconf *conf, struct rte_mempool *pool);
int __wrap_rte_eth_rx_queue_setup(uint16_t id, uint16_t queue, uint16_t count, unsigned socket,
	const struct rte_eth_rxconf *conf, struct rte_mempool *pool)
{
	struct rte_eth_rxconf possible = *conf;

	possible.offloads &= ~card.rx_offload_capa;
	return __real_rte_eth_rx_queue_setup(id, queue, count, socket, &possible, pool);
}

int __real_rte_eth_dev_start(uint16_t id);
int __wrap_rte_eth_dev_start(uint16_t id);
int __wrap_rte_eth_dev_start(uint16_t id)
{
	card.started = true;
	return __real_rte_eth_dev_start(id);
}

int __real_rte_eth_dev_close(uint16_t id);
int __wrap_rte_eth_dev_close(uint16_t id);
int __wrap_rte_eth_dev_close(uint16_t id)
{
	assert_int_equal(atomic_load(&callbacks), 0);
	card.closed = true;
	return __real_rte_eth_dev_close(id);
}

int __wrap_rte_eth_dev_vlan_filter(uint16_t id, uint16_t vlan, int on);
int __wrap_rte_eth_dev_vlan_filter(uint16_t id, uint16_t vlan, int on)
{
	(void)id;
	assert_int_equal(on, 1);
	card.vlan = vlan;
	card.started_before_vlan = card.started;
	return 0;
}

int __wrap_rte_eth_rx_queue_info_get(uint16_t id, uint16_t queue, struct rte_eth_rxq_info *info);
int __wrap_rte_eth_rx_queue_info_get(uint16_t id, uint16_t queue, struct rte_eth_rxq_info *info)
{
	(void)id;
	(void)queue;
	*info = (struct rte_eth_rxq_info){
		.scattered_rx = card.scattered, .rx_buf_size = card.rx_buf_size, .nb_desc = 1024};
	return 0;
}

int __wrap_rte_eth_dev_rx_intr_ctl_q_get_fd(uint16_t id, uint16_t queue);
int __wrap_rte_eth_dev_rx_intr_ctl_q_get_fd(uint16_t id, uint16_t queue)
{
	(void)id;
	(void)queue;
	return card.interrupt;
}

int __wrap_rte_eth_dev_rx_intr_enable(uint16_t id, uint16_t queue);
int __wrap_rte_eth_dev_rx_intr_enable(uint16_t id, uint16_t queue)
{
	(void)id;
	(void)queue;
	return 0;
}

int __wrap_rte_eth_dev_rx_intr_disable(uint16_t id, uint16_t queue);
int __wrap_rte_eth_dev_rx_intr_disable(uint16_t id, uint16_t queue)
{
	(void)id;
	(void)queue;
	return 0;
}

static int card_reset(void **state)
{
	(void)state;
	memset(&card, 0, sizeof(card));
	card.interrupt = -1;
	return 0;
}

static struct port *card_open(uint32_t mtu)
{
	struct port *port;

	log_clear_error();
	port = glue_port_open(0, "net_null0", mtu, GLUE_PID_ANY);
	if (!port)
		fail_msg("%s", log_last_error());
	return port;
}

/* Bytes of a frame for which a buffer has room. */
static uint32_t port_room(const struct port *port)
{
	return rte_pktmbuf_data_room_size(port->pool) - RTE_PKTMBUF_HEADROOM;
}

static void ethdev_open__makes_buffers_as_large_as_drivers_want_them(void **state)
{
	static const struct {
		uint32_t mtu, least, want;
	} cases[] = {
		{CARD_MTU, 0, 2048},    /* e1000 rounds down to a power of two */
		{CARD_MTU, 1646, 2048}, /* vmxnet3 */
		{CARD_MTU, 4000, 4000},
		/* virtio: a VLAN tag and 12 bytes of its own */
		{9000, 0, 9000 + FRAME_HEADER + 32},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct port *port;

		card.min_rx_bufsize = cases[n].least;
		port = card_open(cases[n].mtu);
		if (port_room(port) < cases[n].want ||
			port_room(port) >= cases[n].want + RTE_CACHE_LINE_SIZE)
			fail_msg("case %zu: room is %u", n, port_room(port));
		assert_int_equal(port->frame_size, cases[n].mtu + FRAME_HEADER);
		port_close(port);
	}
}

static void ethdev_open__promises_as_many_frames_as_the_ring_holds(void **state)
{
	struct port *port = card_open(CARD_MTU);
	uint32_t aside = port->aside;

	(void)state;
	assert_int_equal(port->receive_frames, DESCRIPTORS);
	port_close(port);

	card.scattered = true; /* for its own reasons: a frame fits all the same */
	port = card_open(CARD_MTU);
	assert_int_equal(port->receive_frames, DESCRIPTORS);
	port_close(port);

	port = card_open(9000); /* in 8,192 bytes and the rest */
	assert_int_equal(port->receive_frames, DESCRIPTORS / 2);
	assert_int_equal(port->aside, aside + DESCRIPTORS);
	port_close(port);

	card.rx_buf_size = 4096;
	port = card_open(9000);
	assert_int_equal(port->receive_frames, DESCRIPTORS / 3);
	port_close(port);
}

static void ethdev_open__lets_frames_of_its_vlan_pass(void **state)
{
	struct port *port;

	(void)state;
	card.rx_offload_capa = RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
	fixture_set("PTL_VLAN", "41");
	port = card_open(CARD_MTU);
	fixture_set("PTL_VLAN", NULL);
	assert_true(card.offloads & RTE_ETH_RX_OFFLOAD_VLAN_FILTER);
	assert_int_equal(card.vlan, 41);
	assert_true(card.started_before_vlan);
	port_close(port);
}

static void ethdev_open__filters_no_vlan_where_none_is_used_or_none_can_be_filtered(void **state)
{
	(void)state;
	card.rx_offload_capa = RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
	port_close(card_open(CARD_MTU));
	assert_false(card.offloads & RTE_ETH_RX_OFFLOAD_VLAN_FILTER);

	card.rx_offload_capa = 0;
	fixture_set("PTL_VLAN", "41");
	port_close(card_open(CARD_MTU));
	fixture_set("PTL_VLAN", NULL);
	assert_false(card.offloads & RTE_ETH_RX_OFFLOAD_VLAN_FILTER);
	assert_int_equal(card.vlan, 0);
}

static void ethdev_open__says_how_large_frames_may_be(void **state)
{
	(void)state;
	card.max_rx_pktlen = 9018; /* its driver says no more than that */
	port_close(card_open(9000));
	log_clear_error();
	assert_null(glue_port_open(0, "net_null0", 9001, GLUE_PID_ANY));
	assert_string_equal(log_last_error(), "net_null0: PTL_MTU is 9001, but this device takes "
					      "no more than 9000: set PTL_MTU=9000 or less");
}

static void ethdev_open__gathers_with_no_driver_that_is_not_known_to(void **state)
{
	struct port *port = card_open(CARD_MTU);

	(void)state;
	assert_false(port->gathers);
	port_close(port);
}

static uint32_t frames_waiting(void *queue)
{
	(void)queue;
	return card.waiting;
}

/* One sleep, long enough for an interrupt to have come. */
static void port_sleep(struct port *port)
{
	uint64_t begun = glue_now(NULL);

	assert_int_equal(port->operations->interrupt(port, true), card.interrupt);
	while (glue_now(NULL) - begun < 2 * MILLISECOND)
		nap();
	assert_int_equal(port->operations->interrupt(port, false), -1);
}

static struct port *card_open_with_interrupt(void)
{
	struct port *port;

	card.interrupt = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	fixture_set("PTL_POLL", "interrupt");
	port = card_open(CARD_MTU);
	fixture_set("PTL_POLL", NULL);
	assert_true(port->calls);
	for (unsigned id = 0; id < RTE_MAX_ETHPORTS; id++)
		rte_eth_fp_ops[id].rx_queue_count = frames_waiting;
	return port;
}

static void ethdev_interrupt__gives_up_a_queue_that_never_calls(void **state)
{
	struct port *port = card_open_with_interrupt();

	(void)state;
	for (unsigned n = 0; n < 20; n++)
		port_sleep(port); /* nothing came: nothing is wrong */
	card.waiting = 1;
	for (unsigned n = 0; n < 8; n++) {
		assert_true(port->calls);
		port_sleep(port);
	}
	assert_false(port->calls);
	assert_int_equal(port->operations->interrupt(port, true), -1);
	port_close(port);
	close(card.interrupt);
}

static void ethdev_interrupt__trusts_a_queue_that_has_called_once(void **state)
{
	struct port *port = card_open_with_interrupt();

	(void)state;
	assert_int_equal(eventfd_write(card.interrupt, 1), 0);
	card.waiting = 1;
	for (unsigned n = 0; n < 20; n++)
		port_sleep(port);
	assert_true(port->calls);
	port_close(port);
	close(card.interrupt);
}

/* A driver's callback, which takes long. */
static void callback_run(void *begun)
{
	atomic_fetch_add(&callbacks, 1);
	sem_post(begun);
	usleep(50000);
	atomic_fetch_sub(&callbacks, 1);
}

static void ethdev_close__waits_for_callbacks_of_drivers(void **state)
{
	struct port *port = card_open(CARD_MTU);
	sem_t begun;

	(void)state;
	sem_init(&begun, 0, 0);
	assert_int_equal(rte_eal_alarm_set(1, callback_run, &begun), 0);
	sem_wait(&begun);
	port_close(port);
	assert_true(card.closed);
	sem_destroy(&begun);
}

/* EAL has memory for as many devices as it is started for; these tests have pools of several
 * kinds. */
static int group_start(void **state)
{
	int result;

	setenv("PTL_IFACE_NAME", "net_null0;net_null1;net_null2", 1);
	result = fixture_start(state);
	unsetenv("PTL_IFACE_NAME");
	return result;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			ethdev_open__makes_buffers_as_large_as_drivers_want_them, card_reset),
		cmocka_unit_test_setup(
			ethdev_open__promises_as_many_frames_as_the_ring_holds, card_reset),
		cmocka_unit_test_setup(ethdev_open__lets_frames_of_its_vlan_pass, card_reset),
		cmocka_unit_test_setup(
			ethdev_open__filters_no_vlan_where_none_is_used_or_none_can_be_filtered,
			card_reset),
		cmocka_unit_test_setup(ethdev_open__says_how_large_frames_may_be, card_reset),
		cmocka_unit_test_setup(
			ethdev_open__gathers_with_no_driver_that_is_not_known_to, card_reset),
		cmocka_unit_test_setup(
			ethdev_interrupt__gives_up_a_queue_that_never_calls, card_reset),
		cmocka_unit_test_setup(
			ethdev_interrupt__trusts_a_queue_that_has_called_once, card_reset),
		cmocka_unit_test_setup(ethdev_close__waits_for_callbacks_of_drivers, card_reset),
	};

	return cmocka_run_group_tests(tests, group_start, NULL);
}
