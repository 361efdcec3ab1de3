/* SPDX-License-Identifier: BSD-3-Clause */
/* test_peers.c - an endpoint for few processes (FI_POSTERN_PEERS), and more of them, which come and
 * go.
 * Covers: lib/fi/peer.c. */
#include "fixture.h"

#include <time.h>

#define HANG    60 /* s */
#define PEERS   "4"
#define CLIENTS 12

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
	(void)state;
	clients_come_and_go();
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

static int opened(void **state)
{
	(void)state;
	pair_open(&(struct wish){.caps = FI_TAGGED | FI_DIRECTED_RECV, .strangers = true});
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, opened, pair_closed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_peer_that_was_removed_leaves_its_number),
		TEST(what_names_a_peer_keeps_its_number),
	};

	setenv("FI_POSTERN_PEERS", PEERS, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
