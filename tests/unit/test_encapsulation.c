/* SPDX-License-Identifier: BSD-3-Clause */
/* test_encapsulation.c - outer headers as bytes, checked against DPDK's own sums, and what is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include <wire/arp.h>
#include <base/port.h>
#include <wire/encapsulation.h>

#define ROOM    4096
#define HERE    0x0a000001u /* 10.0.0.1 */
#define THERE   0x0a000002u
#define GATEWAY 0x0a0000feu

static const uint8_t mac_here[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t mac_there[6] = {2, 0, 0, 0, 0, 2};
static const uint8_t mac_all[6] = {255, 255, 255, 255, 255, 255};

/* A frame on its way from here to there. */
struct sample {
	struct encapsulation here;
	struct encapsulation there;
	struct frame frame;
	struct rte_mbuf mbuf;
	uint8_t bytes[ROOM];
	uint32_t length;
};

static void sample_open(struct sample *sample, bool udp, uint16_t vlan)
{
	struct encapsulation_options options = {.udp = udp, .vlan = vlan, .prefix = 24};

	memset(sample, 0, sizeof(*sample));
	options.address = HERE;
	encapsulation_init(&sample->here, &options, mac_here, false);
	options.address = THERE;
	encapsulation_init(&sample->there, &options, mac_there, false);
	sample->mbuf.buf_addr = sample->bytes;
	sample->frame = (struct frame){
		.source_nid = HERE,
		.source_pid = 7,
		.destination_nid = THERE,
		.destination_pid = 8,
		.stream = 9,
	};
}

static void sample_write(struct sample *sample, uint16_t inner)
{
	uint32_t i;

	sample->frame.length = inner;
	for (i = 0; i < inner; i++)
		sample->bytes[sample->here.bytes + i] = (uint8_t)(i * 37 + 11);
	encapsulation_write(&sample->here, &sample->mbuf, mac_there, &sample->frame);
	sample->length = sample->here.bytes + inner;
}

static void sample_make(struct sample *sample, bool udp, uint16_t vlan, uint16_t inner)
{
	sample_open(sample, udp, vlan);
	sample_write(sample, inner);
}

static enum encapsulation_status sample_read(const struct sample *sample, struct outer *outer)
{
	/* In memory of its own length, so that a read beyond is found out. */
	uint8_t *copy = malloc(sample->length + 1);
	enum encapsulation_status status;

	memcpy(copy, sample->bytes, sample->length);
	status = encapsulation_read(
		&sample->there, copy, sample->length, sample->mbuf.ol_flags, outer);
	free(copy);
	return status;
}

static uint8_t *sample_ipv4(struct sample *sample)
{
	return sample->bytes + sample->here.link_bytes;
}

static struct rte_ipv4_hdr *sample_header(struct sample *sample)
{
	return (struct rte_ipv4_hdr *)(void *)sample_ipv4(sample);
}

/* After a change of the header. */
static void sample_mend(struct sample *sample)
{
	struct rte_ipv4_hdr *header = sample_header(sample);

	header->hdr_checksum = 0;
	header->hdr_checksum = rte_ipv4_cksum(header);
}

static void write__what_is_written_is_read(void **state)
{
	static const uint16_t lengths[] = {64, 72, 96, 1400, 4000};
	struct sample sample;
	struct outer outer;
	unsigned kind;
	unsigned i;

	(void)state;
	for (kind = 0; kind < 4; kind++)
		for (i = 0; i < 5; i++) {
			sample_make(&sample, kind & 1, kind & 2 ? 42 : 0, lengths[i]);
			assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_FINE);
			assert_int_equal(outer.at, sample.here.bytes);
			assert_int_equal(outer.length, lengths[i]);
			assert_int_equal(outer.source, kind & 1 ? HERE : 0);
			assert_false(outer.marked);
			assert_int_equal(encapsulation_skip(&sample.there, sample.bytes), outer.at);
		}
}

static void write__an_untagged_frame_has_fourteen_bytes_before_it(void **state)
{
	static const uint8_t header[] = {
		2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, FRAME_ETHERTYPE >> 8, FRAME_ETHERTYPE & 255};
	struct sample sample;

	(void)state;
	sample_make(&sample, false, 0, 64);
	assert_int_equal(sample.here.bytes, sizeof(header));
	assert_memory_equal(sample.bytes, header, sizeof(header));
}

static void write__a_tag_stands_between_addresses_and_type(void **state)
{
	static const uint8_t tail[] = {
		0x81, 0, 42 >> 8, 42, FRAME_ETHERTYPE >> 8, FRAME_ETHERTYPE & 255};
	struct sample sample;

	(void)state;
	sample_make(&sample, false, 42, 64);
	assert_int_equal(sample.here.bytes, 18);
	assert_memory_equal(sample.bytes + 12, tail, sizeof(tail));
}

static void write__sums_are_those_of_dpdk(void **state)
{
	struct sample sample;
	uint16_t inner;

	(void)state;
	for (inner = 1; inner < 300; inner++) {
		const struct rte_ipv4_hdr *header;
		const uint8_t *udp;
		uint16_t sum;

		sample_make(&sample, true, inner % 2 ? 42 : 0, inner);
		header = sample_header(&sample);
		udp = sample_ipv4(&sample) + 20;
		assert_int_equal(rte_raw_cksum(header, 20), UINT16_MAX);
		memcpy(&sum, udp + 6, 2);
		memset(sample_ipv4(&sample) + 26, 0, 2);
		assert_int_equal(sum, rte_ipv4_udptcp_cksum(header, udp));
	}
}

static void write__a_sum_of_zero_is_sent_as_all_ones(void **state)
{
	struct sample sample;
	struct outer outer;
	unsigned found = 0;
	unsigned word;

	(void)state;
	sample_make(&sample, true, 0, 64);
	for (word = 0; word <= UINT16_MAX; word++) {
		uint8_t *at = sample.bytes + sample.here.bytes;

		at[10] = (uint8_t)(word >> 8);
		at[11] = (uint8_t)word;
		encapsulation_write(&sample.here, &sample.mbuf, mac_there, &sample.frame);
		assert_true(sample_ipv4(&sample)[26] != 0 || sample_ipv4(&sample)[27] != 0);
		found += sample_ipv4(&sample)[26] == 255 && sample_ipv4(&sample)[27] == 255;
		if (word % 251 == 0)
			assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_FINE);
	}
	assert_true(found > 0);
}

static void write__leaves_sums_to_a_device_that_can(void **state)
{
	struct sample sample;
	uint16_t sum;

	(void)state;
	sample_open(&sample, true, 42);
	sample.here.checksum_offload = true;
	sample_write(&sample, 512);
	assert_int_equal(sample.mbuf.l2_len, 18);
	assert_int_equal(sample.mbuf.l3_len, 20);
	assert_int_equal(sample.mbuf.ol_flags,
		RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_UDP_CKSUM);
	assert_int_equal(sample_header(&sample)->hdr_checksum, 0);
	memcpy(&sum, sample_ipv4(&sample) + 26, 2);
	assert_int_equal(sum, rte_ipv4_phdr_cksum(sample_header(&sample), sample.mbuf.ol_flags));
}

static unsigned source_port(struct sample *sample)
{
	sample_write(sample, 64);
	return (unsigned)sample_ipv4(sample)[20] << 8 | sample_ipv4(sample)[21];
}

static void write__source_ports_spread_streams_and_keep_each_together(void **state)
{
	static uint8_t seen[UINT16_MAX + 1];
	struct sample sample;
	unsigned distinct = 0;
	unsigned i;

	(void)state;
	sample_open(&sample, true, 0);
	memset(seen, 0, sizeof(seen));
	for (i = 0; i < 3000; i++) {
		unsigned port;

		sample.frame.stream = (uint16_t)(i % 1000);
		sample.frame.source_pid = 7 + i / 1000 % 2;
		sample.frame.destination_pid = 8 + i / 2000;
		port = source_port(&sample);
		assert_true(port >= ENCAPSULATION_SOURCE);
		sample.frame.psn += 5;
		sample.frame.flags ^= FRAME_ACK_NOW;
		assert_int_equal(source_port(&sample), port);
		distinct += seen[port] == 0;
		seen[port] = 1;
	}
	assert_true(distinct > 2500);
}

static void write__says_that_it_can_be_marked_and_must_not_be_split(void **state)
{
	struct sample sample;

	(void)state;
	sample_make(&sample, true, 0, 64);
	assert_int_equal(sample_ipv4(&sample)[1] & 3, 2);
	assert_int_equal(sample_ipv4(&sample)[6], 0x40);
	assert_int_equal(sample_ipv4(&sample)[7], 0);
}

static void read__refuses_every_truncation(void **state)
{
	struct sample sample;
	struct outer outer;
	uint32_t full;

	(void)state;
	sample_make(&sample, true, 42, 64);
	full = sample.length;
	for (sample.length = 0; sample.length < full; sample.length++)
		assert_int_not_equal(sample_read(&sample, &outer), ENCAPSULATION_FINE);
	sample_make(&sample, false, 42, 64);
	for (sample.length = 0; sample.length < 18; sample.length++)
		assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_FOREIGN);
}

static void read__finds_every_flipped_bit_of_ipv4_udp_and_data(void **state)
{
	struct sample sample;
	struct outer outer;
	uint32_t bit;

	(void)state;
	sample_make(&sample, true, 0, 200);
	for (bit = sample.here.link_bytes * 8; bit < sample.length * 8; bit++) {
		sample.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_not_equal(sample_read(&sample, &outer), ENCAPSULATION_FINE);
		sample.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void read__passes_over_padding(void **state)
{
	struct sample sample;
	struct outer outer;

	(void)state;
	sample_make(&sample, true, 0, 64);
	sample.length += 18;
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_FINE);
	assert_int_equal(outer.length, 64);
}

static void read__takes_no_fragments(void **state)
{
	static const uint8_t first[] = {0x20, 0x00, 0x00, 0x60, 0x3f};
	static const uint8_t second[] = {0x00, 0x01, 0xff, 0x00, 0xff};
	struct sample sample;
	struct outer outer;
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(first); i++) {
		sample_make(&sample, true, 0, 64);
		sample_ipv4(&sample)[6] = first[i];
		sample_ipv4(&sample)[7] = second[i];
		sample_mend(&sample);
		assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_FRAGMENT);
	}
}

static void read__refuses_ipv4_that_lies(void **state)
{
	struct sample sample;
	struct outer outer;

	(void)state;
	sample_make(&sample, true, 0, 64);
	sample_ipv4(&sample)[0] = 0x46; /* options */
	sample_mend(&sample);
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_BAD_IPV4);
	sample_make(&sample, true, 0, 64);
	sample_header(&sample)->total_length = rte_cpu_to_be_16(93); /* one more than there is */
	sample_mend(&sample);
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_BAD_IPV4);
	sample_header(&sample)->total_length = rte_cpu_to_be_16(27); /* less than its headers */
	sample_mend(&sample);
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_BAD_IPV4);
	sample_make(&sample, true, 0, 64);
	sample_header(&sample)->src_addr = rte_cpu_to_be_32(0xe0000001); /* everybody */
	sample_mend(&sample);
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_BAD_IPV4);
}

static void read__refuses_udp_that_lies(void **state)
{
	static const uint16_t lengths[] = {0, 7, 73, 65535};
	struct sample sample;
	struct outer outer;
	unsigned i;

	(void)state;
	for (i = 0; i < 4; i++) {
		sample_make(&sample, true, 0, 64);
		memset(sample_ipv4(&sample) + 26, 0, 2);
		sample_ipv4(&sample)[24] = (uint8_t)(lengths[i] >> 8);
		sample_ipv4(&sample)[25] = (uint8_t)lengths[i];
		assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_BAD_UDP);
	}
}

static void read__a_sum_of_zero_is_none(void **state)
{
	struct sample sample;
	struct outer outer;

	(void)state;
	sample_make(&sample, true, 0, 64);
	memset(sample_ipv4(&sample) + 26, 0, 2);
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_FINE);
}

static void read__believes_a_device_that_has_looked(void **state)
{
	struct sample sample;
	struct outer outer;

	(void)state;
	sample_make(&sample, true, 0, 64);
	sample.mbuf.ol_flags = RTE_MBUF_F_RX_L4_CKSUM_BAD;
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_BAD_UDP);
	sample.mbuf.ol_flags = RTE_MBUF_F_RX_IP_CKSUM_BAD;
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_BAD_IPV4);
	/* A frame from this host, whose sums nobody has filled in. */
	memset(sample_ipv4(&sample) + 10, 0, 2);
	sample_ipv4(&sample)[26] ^= 1;
	sample.mbuf.ol_flags = RTE_MBUF_F_RX_IP_CKSUM_NONE | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_FINE);
}

static void read__sees_marks(void **state)
{
	struct sample sample;
	struct outer outer;

	(void)state;
	sample_make(&sample, true, 42, 64);
	sample_ipv4(&sample)[1] |= 3;
	sample_mend(&sample);
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_FINE);
	assert_true(outer.marked);
	sample_make(&sample, false, 0, 64);
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_FINE);
	assert_false(outer.marked);
	memset(sample.bytes + 12, 255, 2); /* PORT_MARKED */
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_FINE);
	assert_true(outer.marked);
}

static void read__what_is_for_others_is_foreign(void **state)
{
	struct sample sample;
	struct outer outer;

	(void)state;
	sample_make(&sample, false, 0, 64);
	sample.bytes[5] ^= 4;
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_FOREIGN);
	memcpy(sample.bytes, mac_all, 6);
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_FINE);
	sample.bytes[13] ^= 1;
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_FOREIGN);
	sample_make(&sample, true, 0, 64);
	memcpy(sample.bytes, mac_all, 6); /* no UDP by broadcast */
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_FOREIGN);
	sample_make(&sample, true, 0, 64);
	sample_header(&sample)->dst_addr ^= rte_cpu_to_be_32(4);
	sample_mend(&sample);
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_FOREIGN);
	sample_make(&sample, true, 0, 64);
	sample_header(&sample)->next_proto_id = 6;
	sample_mend(&sample);
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_FOREIGN);
	sample_make(&sample, true, 0, 64);
	sample_ipv4(&sample)[23] ^= 1; /* port */
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_FOREIGN);
	sample.there.options.udp = false; /* the other encapsulation */
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_FOREIGN);
}

/* The reader is of another VLAN than the sample's. */
static void sample_retag(struct sample *sample, uint16_t vlan)
{
	struct encapsulation_options options = sample->there.options;

	options.vlan = vlan;
	encapsulation_init(&sample->there, &options, mac_there, false);
}

static void read__takes_its_own_vlan_alone(void **state)
{
	struct sample sample;
	struct outer outer;

	(void)state;
	sample_make(&sample, false, 42, 64);
	sample.bytes[14] |= 0xf0; /* priority is nobody's business */
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_FINE);
	sample.bytes[15] = 43;
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_FOREIGN);
	sample.bytes[15] = 42;
	sample_retag(&sample, 0);
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_FOREIGN);
	sample.bytes[15] = 0; /* a priority and no VLAN */
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_FINE);
	assert_int_equal(outer.at, 18);
	assert_int_equal(encapsulation_skip(&sample.there, sample.bytes), 18);
	sample_make(&sample, false, 0, 64);
	sample_retag(&sample, 42);
	assert_int_equal(sample_read(&sample, &outer), ENCAPSULATION_FOREIGN);
}

static void read__hands_on_arp_with_udp_alone(void **state)
{
	struct sample sample;
	struct outer outer;
	unsigned udp;

	(void)state;
	for (udp = 0; udp < 2; udp++) {
		sample_open(&sample, udp, 42);
		assert_int_equal(
			encapsulation_link(&sample.here, sample.bytes, mac_all, ARP_ETHERTYPE), 18);
		sample.length = 18 + ARP_FRAME;
		assert_int_equal(sample_read(&sample, &outer),
			udp ? ENCAPSULATION_ARP : ENCAPSULATION_FOREIGN);
	}
	assert_int_equal(outer.at, 18);
	assert_int_equal(outer.length, ARP_FRAME);
}

static void hop__is_the_gateway_beyond_the_subnet(void **state)
{
	struct encapsulation_options options = {.udp = true, .prefix = 24, .address = HERE};
	struct encapsulation encapsulation;

	(void)state;
	encapsulation_init(&encapsulation, &options, mac_here, false);
	assert_int_equal(encapsulation_hop(&encapsulation, 0x0b000001), 0x0b000001);
	options.gateway = GATEWAY;
	encapsulation_init(&encapsulation, &options, mac_here, false);
	assert_int_equal(encapsulation_hop(&encapsulation, 0x0b000001), GATEWAY);
	assert_int_equal(encapsulation_hop(&encapsulation, 0x0a0000ff), 0x0a0000ff);
	assert_int_equal(encapsulation_hop(&encapsulation, 0x0a000100), GATEWAY);
	options.prefix = 32;
	encapsulation_init(&encapsulation, &options, mac_here, false);
	assert_int_equal(encapsulation_hop(&encapsulation, THERE), GATEWAY);
	options.prefix = 0;
	encapsulation_init(&encapsulation, &options, mac_here, false);
	assert_int_equal(encapsulation_hop(&encapsulation, 0xdf000001), 0xdf000001);
}

/* A shared port is told the place where frames name their destination. */
static void select__names_the_place_of_the_destination(void **state)
{
	static const bool udp[] = {false, true};

	(void)state;
	for (unsigned n = 0; n < 2; n++) {
		struct sample sample;
		struct port_selection wanted;

		sample_open(&sample, udp[n], 0);
		sample.frame.type = FRAME_ACK;
		sample_write(&sample, FRAME_HEADER_BYTES);
		frame_encode(&sample.frame, sample.bytes + sample.here.bytes);
		encapsulation_select(&sample.here.options, THERE, 8, &wanted);
		assert_int_equal(wanted.ethertype, udp[n] ? 0x0800 : FRAME_ETHERTYPE);
		assert_int_equal(wanted.udp_port, udp[n] ? ENCAPSULATION_PORT : 0);
		assert_memory_equal(sample.bytes + wanted.at, wanted.key, sizeof(wanted.key));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write__what_is_written_is_read),
		cmocka_unit_test(write__an_untagged_frame_has_fourteen_bytes_before_it),
		cmocka_unit_test(write__a_tag_stands_between_addresses_and_type),
		cmocka_unit_test(write__sums_are_those_of_dpdk),
		cmocka_unit_test(write__a_sum_of_zero_is_sent_as_all_ones),
		cmocka_unit_test(write__leaves_sums_to_a_device_that_can),
		cmocka_unit_test(write__source_ports_spread_streams_and_keep_each_together),
		cmocka_unit_test(write__says_that_it_can_be_marked_and_must_not_be_split),
		cmocka_unit_test(read__refuses_every_truncation),
		cmocka_unit_test(read__finds_every_flipped_bit_of_ipv4_udp_and_data),
		cmocka_unit_test(read__passes_over_padding),
		cmocka_unit_test(read__takes_no_fragments),
		cmocka_unit_test(read__refuses_ipv4_that_lies),
		cmocka_unit_test(read__refuses_udp_that_lies),
		cmocka_unit_test(read__a_sum_of_zero_is_none),
		cmocka_unit_test(read__believes_a_device_that_has_looked),
		cmocka_unit_test(read__sees_marks),
		cmocka_unit_test(read__what_is_for_others_is_foreign),
		cmocka_unit_test(read__takes_its_own_vlan_alone),
		cmocka_unit_test(read__hands_on_arp_with_udp_alone),
		cmocka_unit_test(hop__is_the_gateway_beyond_the_subnet),
		cmocka_unit_test(select__names_the_place_of_the_destination),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
