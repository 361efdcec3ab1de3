/* SPDX-License-Identifier: BSD-3-Clause */
/* test_peers.c - an endpoint for few processes (FI_POSTERN_PEERS), and more of them, which come and
 * go, or fill its table.
 * Covers: lib/fi/peer.c. */
#include "fixture.h"

#include <time.h>

#include "../nap.h"

#define HANG    60 /* s */
#define PEERS   "4"
#define CLIENTS 12
#define SHARE   4 /* of a host's strangers, with 9 peers */
#define GUESTS  8
#define LONG    100000 /* bytes: they stay at their sender until a receive fetches them */

/* Both ends make progress until each has a completion. */
static void both_take(struct side *one, struct side *other)
{
	const time_t end = time(NULL) + HANG;
	struct side *ends[2] = {one, other};
	bool came[2] = {false, false};

	while (!came[0] || !came[1])
		for (unsigned i = 0; i < 2; i++) {
			struct fi_cq_tagged_entry entry;
			ssize_t got = fi_cq_read(ends[i]->cq, &entry, came[i] ? 0 : 1);

			assert_true(got == -FI_EAGAIN || got == 1);
			came[i] |= got == 1;
			assert_true(time(NULL) < end);
		}
}

static void client_open(struct side *client)
{
	side_open(client, &(struct wish){0});
	assert_int_equal(fi_av_insert(client->av, sides[0].name, 1, &client->other, 0, NULL), 1);
}

static fi_addr_t client_insert(const struct side *client)
{
	fi_addr_t address;

	assert_int_equal(fi_av_insert(sides[0].av, client->name, 1, &address, 0, NULL), 1);
	return address;
}

/* A message each way. */
static void talk(struct side *client, fi_addr_t address)
{
	char in[2][4] = {"", ""};

	assert_ok(fi_trecv(client->ep, in[0], 4, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	assert_ok(fi_trecv(sides[0].ep, in[1], 4, NULL, FI_ADDR_UNSPEC, 2, 0, NULL));
	assert_ok(fi_tinject(sides[0].ep, "you", 4, address, 1));
	assert_ok(fi_tinject(client->ep, "me", 3, client->other, 2));
	both_take(client, &sides[0]);
	assert_string_equal(in[0], "you");
	assert_string_equal(in[1], "me");
}

/* Two ends greet each other at the same time. One of them makes no calls until the other one's long
 * message is there: then it knows less of its peer than the peer does of it. */
static void a_long_message_comes_before_the_answer_to_a_greeting(void **state)
{
	static char in[LONG], out[LONG];
	struct fi_cq_tagged_entry entry;
	struct side client = {0};
	fi_addr_t address;

	(void)state;
	client_open(&client);
	address = client_insert(&client);
	bytes_fill(out, sizeof(out), 3);
	assert_ok(fi_tinject(sides[0].ep, "ask", 4, address, 1));
	assert_ok(fi_tsend(client.ep, out, sizeof(out), NULL, client.other, 2, &client));
	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(fi_cq_read(client.cq, &entry, 1), -FI_EAGAIN);
		nap();
	}
	assert_ok(fi_trecv(sides[0].ep, in, sizeof(in), NULL, address, 2, 0, in));
	both_take(&client, &sides[0]);
	assert_memory_equal(in, out, sizeof(in));
	side_close(&client);
}

/* As many come as there are. */
static void clients_come_and_go(void)
{
	for (unsigned i = 0; i < CLIENTS; i++) {
		struct side client = {0};
		fi_addr_t address;

		client_open(&client);
		address = client_insert(&client);
		talk(&client, address);
		assert_ok(fi_av_remove(sides[0].av, &address, 1, 0));
		side_close(&client);
	}
}

static void a_peer_that_was_removed_leaves_its_number(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct side client = {0};
	char word[4] = "";
	fi_addr_t address;

	(void)state;
	client_open(&client);
	address = client_insert(&client);
	talk(&client, address);
	assert_ok(fi_av_remove(sides[0].av, &address, 1, 0));
	clients_come_and_go();
	/* The client, which has heard nothing of that, learns its new number. */
	address = client_insert(&client);
	assert_ok(fi_trecv(client.ep, word, 4, NULL, FI_ADDR_UNSPEC, 3, 0, NULL));
	assert_ok(fi_tinject(sides[0].ep, "new", 4, address, 3));
	while (fi_cq_read(client.cq, &entry, 1) != 1)
		(void)fi_cq_read(sides[0].cq, NULL, 0);
	talk(&client, address);
	side_close(&client);
}

/* Not one of which a message is kept, or from which alone a receive waits. */
static void what_names_a_peer_keeps_its_number(void **state)
{
	struct side client = {0};
	char word[4] = "";
	fi_addr_t address;

	(void)state;
	client_open(&client);
	address = client_insert(&client);
	talk(&client, address);
	assert_ok(fi_tinject(client.ep, "one", 4, client.other, 3));
	kept_await(&sides[0], 3);
	assert_ok(fi_av_remove(sides[0].av, &address, 1, 0));
	clients_come_and_go();
	assert_ok(fi_trecv(sides[0].ep, word, 4, NULL, FI_ADDR_UNSPEC, 3, 0, NULL));
	completion_take(&sides[0], NULL, NULL);
	assert_string_equal(word, "one");

	address = client_insert(&client);
	assert_ok(fi_trecv(sides[0].ep, word, 4, NULL, address, 4, 0, NULL));
	assert_ok(fi_av_remove(sides[0].av, &address, 1, 0));
	clients_come_and_go();
	assert_ok(fi_tinject(client.ep, "two", 4, client.other, 4));
	completion_take(&sides[0], NULL, NULL);
	assert_string_equal(word, "two");
	side_close(&client);
}

/* A client's message comes. */
static void word_take(struct side *client, uint64_t tag)
{
	const time_t end = time(NULL) + HANG;
	struct fi_cq_tagged_entry entry;
	char word[4] = "";
	ssize_t got;

	assert_ok(fi_trecv(sides[0].ep, word, 4, NULL, FI_ADDR_UNSPEC, tag, 0, NULL));
	do {
		(void)fi_cq_read(client->cq, &entry, 0);
		got = fi_cq_read(sides[0].cq, &entry, 1);
		assert_true(got == 1 || got == -FI_EAGAIN);
		assert_true(time(NULL) < end);
	} while (got != 1);
	assert_string_equal(word, "me");
}

static void word_send(struct side *client, uint64_t tag)
{
	assert_ok(fi_tinject(client->ep, "me", 3, client->other, tag));
}

/* What becomes of a client's message. If it is well, it is kept. */
static ssize_t word_end(struct side *client, uint64_t tag)
{
	char word[] = "me";
	const struct iovec piece = {.iov_base = word, .iov_len = sizeof(word)};
	const struct fi_msg_tagged message = {
		.msg_iov = &piece, .iov_count = 1, .addr = client->other, .tag = tag};
	const time_t end = time(NULL) + HANG;
	struct fi_cq_tagged_entry entry;
	ssize_t got;

	assert_ok(fi_tsendmsg(client->ep, &message, FI_COMPLETION | FI_TRANSMIT_COMPLETE));
	do {
		(void)fi_cq_read(sides[0].cq, &entry, 0);
		got = fi_cq_read(client->cq, &entry, 1);
		assert_true(time(NULL) < end);
	} while (got == -FI_EAGAIN);
	return got;
}

/* A client has lost the server, which lives: a receive that names it waits for it. */
static void words_come_again(struct side *client)
{
	char word[4] = "";

	assert_ok(fi_trecv(client->ep, word, 4, NULL, client->other, 7, 0, NULL));
	for (unsigned n = 0; n < 100; n++) {
		assert_int_equal(
			fi_cq_read(client->cq, &(struct fi_cq_tagged_entry){0}, 1), -FI_EAGAIN);
		(void)fi_cq_read(sides[0].cq, NULL, 0);
	}
	assert_ok(fi_tinject(sides[0].ep, "you", 4, client_insert(client), 7));
	completion_take(client, NULL, NULL);
	assert_string_equal(word, "you");
}

/* The stranger that came first goes for a new one, and comes back when it sends again. */
static void strangers_take_turns(void **state)
{
	static struct side clients[CLIENTS];
	struct fi_cq_err_entry error = {0};

	(void)state;
	for (unsigned i = 0; i < CLIENTS; i++) {
		client_open(&clients[i]);
		word_send(&clients[i], i);
		word_take(&clients[i], i);
	}
	for (unsigned i = CLIENTS - 3; i < CLIENTS; i++) {
		word_send(&clients[i], i);
		word_take(&clients[i], i);
	}
	assert_int_equal(word_end(&clients[0], 0), -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(clients[0].cq, &error, 0), 1);
	assert_int_equal(error.err, FI_EHOSTUNREACH);
	words_come_again(&clients[0]);
	word_send(&clients[0], 0);
	word_take(&clients[0], 0);
	for (unsigned i = 0; i < CLIENTS; i++)
		side_close(&clients[i]);
}

/* A stranger on another host. */
static void guest_open(struct side *guest, struct fid_domain **guests, struct fi_info *host)
{
	struct fid_domain *const here = domain;
	struct fi_info *const own = info;

	if (!*guests)
		assert_ok(fi_domain(fabric, host, guests, NULL));
	domain = *guests;
	info = host;
	client_open(guest);
	domain = here;
	info = own;
}

static struct fi_info *host_load(const char *name)
{
	struct fi_info *hints = hints_make(&(struct wish){0}), *host;

	hints->domain_attr->name = strdup(name);
	host = offer_of(hints);
	fi_freeinfo(hints);
	assert_non_null(host);
	return host;
}

/* Strangers of one host leave places for others, whatever they send. */
static void a_host_has_a_share_of_the_table(void **state)
{
	static const char *const names[2] = {"udp:127.0.0.2", "udp:127.0.0.3"};
	struct fid_domain *hosts[2] = {NULL, NULL};
	struct fi_info *offers[2];
	struct side guests[GUESTS], own[SHARE], honest;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		offers[i] = host_load(names[i]);
	for (unsigned i = 0; i < SHARE; i++) {
		guest_open(&guests[i], &hosts[0], offers[0]);
		assert_int_equal(word_end(&guests[i], 10 + i), 1);
	}
	/* Strangers of the own host use the rest of the table. No guest takes the place of one. */
	for (unsigned i = 0; i < SHARE; i++) {
		client_open(&own[i]);
		word_send(&own[i], 30);
		word_take(&own[i], 30);
	}
	for (unsigned i = SHARE; i < GUESTS; i++) {
		guest_open(&guests[i], &hosts[0], offers[0]);
		word_send(&guests[i], 10 + i);
		for (unsigned n = 0; n < 10; n++) {
			nap();
			(void)fi_cq_read(guests[i].cq, NULL, 0);
			(void)fi_cq_read(sides[0].cq, NULL, 0);
		}
	}
	for (unsigned i = 0; i < SHARE; i++)
		assert_int_equal(word_end(&own[i], 31 + i), 1);
	word_take(&own[0], 31);
	guest_open(&honest, &hosts[1], offers[1]);
	word_send(&honest, 2);
	word_take(&honest, 2);
	/* Once a message of this host is received, its sender can go for the next one. */
	for (unsigned i = 0; i < GUESTS; i++)
		word_take(&guests[i], 10 + i);
	for (unsigned i = 0; i < GUESTS; i++)
		side_close(&guests[i]);
	for (unsigned i = 0; i < SHARE; i++)
		side_close(&own[i]);
	side_close(&honest);
	for (unsigned i = 0; i < 2; i++) {
		assert_ok(fi_close(&hosts[i]->fid));
		fi_freeinfo(offers[i]);
	}
}

static int opened(void **state)
{
	(void)state;
	pair_open(&(struct wish){.caps = FI_TAGGED | FI_DIRECTED_RECV, .strangers = true});
	return 0;
}

/* On a host of several. */
static int opened_among_hosts(void **state)
{
	setenv("FI_POSTERN_PEERS", "9", 1);
	setenv("PTL_IFACE_NAME", "udp:127.0.0.1;udp:127.0.0.2;udp:127.0.0.3", 1);
	return opened(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, opened, pair_closed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_long_message_comes_before_the_answer_to_a_greeting),
		TEST(a_peer_that_was_removed_leaves_its_number),
		TEST(what_names_a_peer_keeps_its_number),
		TEST(strangers_take_turns),
		/* last: it changes the environment */
		cmocka_unit_test_setup_teardown(
			a_host_has_a_share_of_the_table, opened_among_hosts, pair_closed),
	};

	setenv("FI_POSTERN_PEERS", PEERS, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
