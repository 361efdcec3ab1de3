/* SPDX-License-Identifier: BSD-3-Clause */
/* test_card.c - what ranks tell of themselves: there and back, whatever it is, and whom they reach.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netpacket/packet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <base/random.h>
#include <job/card.h>

static const struct card some = {
	.process = {4000000000u, 77},
	.network = CARD_NODE,
	.locality = 0xabcdef01,
	.address = {1, 2, 3, 4, 5, 250},
	.lifeline = {.port = 0xfedc, .address = {0xfe, 0x80, [15] = 9}},
};

static void assert_same(const struct card *a, const struct card *b)
{
	assert_int_equal(a->process.nid, b->process.nid);
	assert_int_equal(a->process.pid, b->process.pid);
	assert_int_equal(a->network, b->network);
	assert_int_equal(a->locality, b->locality);
	assert_memory_equal(a->address, b->address, sizeof(a->address));
	assert_int_equal(a->lifeline.port, b->lifeline.port);
	assert_memory_equal(a->lifeline.address, b->lifeline.address, sizeof(a->lifeline.address));
}

static void card__is_read_as_it_was_written(void **state)
{
	uint8_t bytes[CARD_BYTES];
	char text[CARD_TEXT];
	struct card read;

	(void)state;
	card_encode(&some, bytes);
	assert_true(card_decode(&read, bytes));
	assert_same(&some, &read);
	memset(&read, 0, sizeof(read));
	card_write(&some, text);
	assert_int_equal(strlen(text), CARD_TEXT - 1);
	assert_true(card_read(&read, text));
	assert_same(&some, &read);
}

static void card__of_another_kind_is_none(void **state)
{
	struct card wild = some, read;
	uint8_t bytes[CARD_BYTES];
	char text[CARD_TEXT];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		card_encode(&some, bytes);
		bytes[i] = 99;
		assert_false(card_decode(&read, bytes));
	}
	wild.process.pid = UINT32_MAX;
	card_encode(&wild, bytes);
	assert_false(card_decode(&read, bytes));
	card_write(&some, text);
	text[5] = 'g';
	assert_false(card_read(&read, text));
	card_write(&some, text);
	text[CARD_TEXT - 2] = '\0';
	assert_false(card_read(&read, text));
	assert_false(card_read(&read, ""));
}

static void card__of_random_text_is_read_or_not(void **state)
{
	static const char letters[] = "0123456789abcdefABg:";
	uint64_t random = 5;

	(void)state;
	for (unsigned n = 0; n < 20000; n++) {
		char text[CARD_TEXT + 3] = "";
		struct card read;

		card_write(&some, text);
		for (unsigned i = 0; i < 3; i++)
			text[random_next(&random) % (sizeof(text) - 1)] =
				letters[random_next(&random) % (sizeof(letters) - 1)];
		if (card_read(&read, text))
			assert_int_equal(strlen(text), CARD_TEXT - 1);
	}
}

static void card__tells_which_setting_to_change(void **state)
{
	struct card other = some;
	char why[512] = "";

	(void)state;
	other.process.pid = 1;
	assert_false(card_unreached(&some, &other, 3, why, sizeof(why)));
	other.locality++;
	assert_true(card_unreached(&some, &other, 3, why, sizeof(why)));
	assert_non_null(strstr(why, "rank 3 is on another machine"));
	assert_non_null(strstr(why, "set PTL_IFACE_NAME to udp"));
	other = some;
	other.network = CARD_UDP;
	assert_true(card_unreached(&some, &other, 3, why, sizeof(why)));
	assert_non_null(strstr(why, "rank 3 is on udp, this process on a node"));
	other.network = CARD_UDP6;
	assert_true(card_unreached(&some, &other, 3, why, sizeof(why)));
	assert_non_null(strstr(why, "rank 3 is on udp over IPv6, this process on a node"));
}

/* The two share no network, though PTL_IFACE_NAME may be the same. */
static void card__tells_ip4_from_ip6(void **state)
{
	struct card four = some, six = some;
	uint8_t bytes[CARD_BYTES];
	struct card read;
	char why[512] = "";

	(void)state;
	four.network = CARD_UDP;
	six.network = CARD_UDP6;
	card_encode(&six, bytes);
	assert_true(card_decode(&read, bytes));
	assert_same(&six, &read);
	assert_false(card_unreached(&six, &read, 3, why, sizeof(why)));
	assert_true(card_unreached(&four, &six, 3, why, sizeof(why)));
	assert_non_null(strstr(why, "rank 3 is on UDP sockets of IPv6, this process on those of "
				    "IPv4: set PTL_IFACE_NAME and PTL_HOSTS alike"));
	assert_true(card_unreached(&six, &four, 3, why, sizeof(why)));
	assert_non_null(strstr(why, "rank 3 is on UDP sockets of IPv4"));
	assert_true(strlen(why) < sizeof(why) - 1);
}

/* Ranges of ports as they were set; networks are equal. */
static void card__tells_that_ports_differ(void **state)
{
	struct card own = some, other = some;
	char why[512] = "";

	(void)state;
	own.network = other.network = CARD_UDP;
	own.locality = 21503u << 16 | 20480;
	other.locality = 30063u << 16 | 30000;
	assert_true(card_unreached(&own, &other, 3, why, sizeof(why)));
	assert_non_null(strstr(why, "rank 3 uses the UDP ports 30000-30063, this process "
				    "20480-21503: set PTL_UDP_PORTS alike"));
	own.network = other.network = CARD_ETHERNET_UDP;
	own.locality = 1;
	other.locality = 65535;
	assert_true(card_unreached(&own, &other, 3, why, sizeof(why)));
	assert_non_null(strstr(
		why, "rank 3 uses the UDP port 65535, this process 1: set PTL_UDP_PORT alike"));
}

static void card__of_another_subnet_may_be_on_the_same_segment(void **state)
{
	struct card own = some, other = some;
	char why[512] = "";

	(void)state;
	own.network = other.network = CARD_ETHERNET;
	own.locality = 0x0a000000;
	other.locality = 0x0a010000;
	assert_false(card_unreached(&own, &other, 3, why, sizeof(why)));
}

static uint32_t subnet_of(const struct ifaddrs *addresses, unsigned count)
{
	static char names[] = "eth1", other[] = "br0", apart[] = "eth10";
	struct sockaddr_ll links[3];
	struct ifaddrs all[8] = {{.ifa_name = names}, {.ifa_name = other}, {.ifa_name = apart}};
	struct card card = some;

	card.network = CARD_ETHERNET;
	for (unsigned i = 0; i < 3; i++) {
		links[i] = (struct sockaddr_ll){.sll_family = AF_PACKET, .sll_halen = 6};
		memcpy(links[i].sll_addr, card.address, sizeof(card.address));
		links[i].sll_addr[5] ^= i == 2; /* eth10 has another one */
		all[i].ifa_addr = (struct sockaddr *)&links[i];
		all[i].ifa_next = &all[i + 1];
	}
	for (unsigned i = 0; i < count; i++) {
		all[3 + i] = addresses[i];
		all[3 + i].ifa_next = i + 1 < count ? &all[4 + i] : NULL;
	}
	return card_subnet(all, &card);
}

/* Only one subnet tells whether a router may be between two interfaces. */
static void subnet__is_the_only_one_of_the_mac_address(void **state)
{
	static char eth1[] = "eth1", label[] = "eth1:1", br0[] = "br0", eth10[] = "eth10";
	struct sockaddr_in first = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a090005)};
	struct sockaddr_in second = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0a80105)};
	struct sockaddr_in wide = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xffffff00)};
	struct sockaddr_in host = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xffffffff)};
	struct ifaddrs addresses[] = {
		{.ifa_name = eth1,
			.ifa_addr = (struct sockaddr *)&first,
			.ifa_netmask = (struct sockaddr *)&wide},
		{.ifa_name = eth10,
			.ifa_addr = (struct sockaddr *)&second,
			.ifa_netmask = (struct sockaddr *)&wide},
	};

	(void)state;
	assert_int_equal(subnet_of(addresses, 2), 0x0a090000);
	addresses[0].ifa_name = br0;
	assert_int_equal(subnet_of(addresses, 2), 0x0a090000);
	addresses[1].ifa_name = label;
	assert_int_equal(subnet_of(addresses, 2), 0);
	addresses[1].ifa_addr = addresses[0].ifa_addr;
	assert_int_equal(subnet_of(addresses, 2), 0x0a090000);
	addresses[0].ifa_netmask = (struct sockaddr *)&host;
	assert_int_equal(subnet_of(addresses, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(card__is_read_as_it_was_written),
		cmocka_unit_test(card__of_another_kind_is_none),
		cmocka_unit_test(card__of_random_text_is_read_or_not),
		cmocka_unit_test(card__tells_which_setting_to_change),
		cmocka_unit_test(card__tells_ip4_from_ip6),
		cmocka_unit_test(card__tells_that_ports_differ),
		cmocka_unit_test(card__of_another_subnet_may_be_on_the_same_segment),
		cmocka_unit_test(subnet__is_the_only_one_of_the_mac_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
