/* SPDX-License-Identifier: BSD-3-Clause */
/* test_vectors.c - address vectors: fi_av(3).
 * Covers: lib/fi/av.c. */
#include "fixture.h"

static int opened(void **state)
{
	(void)state;
	pair_open(&(struct wish){0});
	return 0;
}

static void a_table_has_indices_in_order(void **state)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE, .count = 3};
	char names[4 * NAME_BYTES], got[NAME_BYTES], short_name[8], text[200];
	fi_addr_t indices[4], one;
	size_t length = sizeof(got);
	int errors[4];
	struct fid_av *av;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		memcpy(names + i * NAME_BYTES, sides[0].name, NAME_BYTES);
		names[i * NAME_BYTES + 12] = (char)i; /* of the process id */
	}
	assert_ok(fi_av_open(domain, &attr, &av, NULL));
	assert_int_equal(fi_av_insert(av, names, 2, indices, 0, NULL), 2);
	assert_int_equal(indices[0], 0);
	assert_int_equal(indices[1], 1);
	assert_int_equal(fi_av_insert(av, names + 2 * NAME_BYTES, 2, NULL, FI_MORE, NULL), 2);
	for (unsigned i = 0; i < 4; i++) {
		length = sizeof(got);
		assert_ok(fi_av_lookup(av, i, got, &length));
		assert_int_equal(length, NAME_BYTES);
		assert_memory_equal(got, names + i * NAME_BYTES, NAME_BYTES);
	}
	length = sizeof(short_name);
	assert_ok(fi_av_lookup(av, 3, short_name, &length));
	assert_int_equal(length, NAME_BYTES);
	length = 0;
	assert_ok(fi_av_lookup(av, 3, NULL, &length));
	assert_int_equal(length, NAME_BYTES);
	assert_memory_equal(short_name, names + 3 * NAME_BYTES, sizeof(short_name));
	assert_int_not_equal(fi_av_lookup(av, 4, got, &length), 0);
	/* One that was removed is inserted again, at the lowest index. */
	one = 1;
	assert_ok(fi_av_remove(av, &one, 1, 0));
	assert_int_not_equal(fi_av_lookup(av, 1, got, &length), 0);
	assert_int_not_equal(fi_av_remove(av, &one, 1, 0), 0);
	assert_int_equal(fi_av_insert(av, names + NAME_BYTES, 1, &one, 0, NULL), 1);
	assert_int_equal(one, 1);
	/* One that is none fails alone. */
	names[NAME_BYTES]++;
	assert_int_equal(fi_av_insert(av, names, 3, indices, FI_SYNC_ERR, errors), 2);
	assert_int_equal(indices[0], 4);
	assert_true(indices[1] == FI_ADDR_NOTAVAIL);
	assert_int_equal(indices[2], 6);
	assert_int_equal(errors[0], 0);
	assert_int_equal(errors[1], FI_EINVAL);
	assert_int_equal(errors[2], 0);
	length = sizeof(text);
	assert_ptr_equal(fi_av_straddr(av, sides[0].name, text, &length), text);
	assert_int_equal(length, strlen(text) + 1);
	assert_int_equal(strncmp(text, "fi_postern://", 13), 0);
	length = 5;
	fi_av_straddr(av, sides[0].name, text, &length);
	assert_string_equal(text, "fi_p");
	assert_ok(fi_close(&av->fid));
}

static void a_map_of_many_addresses(void **state)
{
	enum { COUNT = 10000 };
	static char names[COUNT * NAME_BYTES];
	static fi_addr_t indices[COUNT];
	struct fi_av_attr attr = {.type = FI_AV_MAP, .count = COUNT};
	struct fid_av *av;

	(void)state;
	for (unsigned i = 0; i < COUNT; i++) {
		memcpy(names + (size_t)i * NAME_BYTES, sides[0].name, NAME_BYTES);
		memcpy(names + (size_t)i * NAME_BYTES + 12, &i, sizeof(i));
	}
	assert_ok(fi_av_open(domain, &attr, &av, NULL));
	assert_int_equal(fi_av_insert(av, names, COUNT, indices, 0, NULL), COUNT);
	for (unsigned i = 0; i < COUNT; i += 997) {
		char got[NAME_BYTES];
		size_t length = sizeof(got);

		assert_ok(fi_av_lookup(av, indices[i], got, &length));
		assert_memory_equal(got, names + (size_t)i * NAME_BYTES, NAME_BYTES);
	}
	assert_ok(fi_av_remove(av, indices, COUNT, 0));
	assert_ok(fi_close(&av->fid));
}

static void an_address_of_elsewhere_is_refused(void **state)
{
	char name[NAME_BYTES];
	fi_addr_t index;

	(void)state;
	memcpy(name, sides[0].name, sizeof(name));
	name[5] = (char)(name[5] ^ 1); /* the kind of network */
	assert_int_equal(fi_av_insert(sides[0].av, name, 1, &index, 0, NULL), 0);
	assert_true(index == FI_ADDR_NOTAVAIL);
	memcpy(name, sides[0].name, sizeof(name));
	name[20] = (char)(name[20] ^ 1); /* the machine */
	assert_int_equal(fi_av_insert(sides[0].av, name, 1, &index, 0, NULL), 0);
	memcpy(name, sides[0].name, sizeof(name));
	name[4]++; /* the release */
	assert_int_equal(fi_av_insert(sides[0].av, name, 1, &index, 0, NULL), 0);
}

static void inserts_can_be_told_by_events(void **state)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE, .flags = FI_EVENT};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_UNSPEC};
	char names[2 * NAME_BYTES];
	struct fi_eq_err_entry error = {0};
	struct fi_eq_entry entry;
	fi_addr_t indices[2];
	struct fid_av *av;
	struct fid_eq *eq;
	uint32_t event;

	(void)state;
	memcpy(names, sides[0].name, NAME_BYTES);
	memset(names + NAME_BYTES, 0, NAME_BYTES);
	assert_ok(fi_av_open(domain, &attr, &av, NULL));
	assert_int_equal(fi_av_insert(av, names, 1, indices, 0, NULL), -FI_ENOEQ);
	assert_ok(fi_eq_open(fabric, &eq_attr, &eq, NULL));
	assert_ok(fi_av_bind(av, &eq->fid, 0));
	assert_int_equal(fi_close(&eq->fid), -FI_EBUSY);
	assert_int_equal(fi_av_insert(av, names, 1, indices, FI_SYNC_ERR, &event), -FI_EINVAL);
	assert_int_equal(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	assert_ok(fi_av_insert(av, names, 2, indices, 0, &error));
	assert_int_equal(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAVAIL);
	assert_int_equal(fi_eq_readerr(eq, &error, FI_PEEK), sizeof(error));
	error.err = 0;
	assert_int_equal(fi_eq_readerr(eq, &error, 0), sizeof(error));
	assert_int_equal(error.err, FI_EINVAL);
	assert_int_equal(error.data, 1);
	assert_ptr_equal(error.fid, &av->fid);
	assert_int_equal(
		fi_eq_sread(eq, &event, &entry, sizeof(entry), -1, FI_PEEK), sizeof(entry));
	assert_int_equal(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	assert_int_equal(event, FI_AV_COMPLETE);
	assert_ptr_equal(entry.fid, &av->fid);
	assert_ptr_equal(entry.context, &error);
	assert_int_equal(entry.data, 1);
	assert_int_equal(indices[0], 0);
	assert_ok(fi_close(&av->fid));
	assert_ok(fi_close(&eq->fid));
}

static void a_vector_says_what_it_is_not(void **state)
{
	struct fi_av_attr attr = {.type = FI_AV_UNSPEC, .flags = FI_SYMMETRIC, .ep_per_node = 4};
	const struct fi_av_attr bad[] = {{.name = "one"}, {.flags = FI_READ}, {.rx_ctx_bits = 1}};
	struct fid_av *av, *none;
	struct fid_eq *eq;
	fi_addr_t index;

	(void)state;
	assert_ok(fi_av_open(domain, &attr, &av, NULL));
	assert_true(attr.type == FI_AV_TABLE || attr.type == FI_AV_MAP);
	for (unsigned i = 0; i < 3; i++) {
		struct fi_av_attr other = bad[i];

		assert_int_equal(fi_av_open(domain, &other, &none, NULL), -FI_ENOSYS);
	}
	assert_int_equal(fi_av_open(domain, NULL, &none, NULL), -FI_EINVAL);
	attr.flags = FI_MULTICAST;
	assert_int_equal(fi_av_open(domain, &attr, &none, NULL), -FI_EINVAL);
	assert_int_equal(fi_av_insert(av, NULL, 0, NULL, 0, NULL), 0);
	assert_int_equal(fi_av_insert(av, sides[0].name, 1, NULL, FI_FENCE, NULL), -FI_EINVAL);
	assert_int_equal(fi_av_insert(av, sides[0].name, 1, NULL, FI_AV_USER_ID, NULL), -FI_EINVAL);
	assert_int_equal(fi_av_insert(av, sides[0].name, 1, &index, FI_SYNC_ERR, NULL), -FI_EINVAL);
	assert_int_equal(fi_av_remove(av, &index, 0, FI_FENCE), -FI_EINVAL);
	assert_ok(fi_eq_open(fabric, &(struct fi_eq_attr){0}, &eq, NULL));
	assert_int_equal(fi_av_bind(av, &eq->fid, FI_EVENT), -FI_EINVAL);
	assert_int_equal(fi_av_bind(av, &domain->fid, 0), -FI_EINVAL);
	assert_ok(fi_av_bind(av, &eq->fid, 0));
	assert_int_equal(fi_av_bind(av, &eq->fid, 0), -FI_EINVAL);
	assert_ok(fi_close(&av->fid));
	assert_ok(fi_close(&eq->fid));
}

/* Its index names nobody until it is used again. */
static void an_address_that_was_removed_is_nobody(void **state)
{
	fi_addr_t gone = sides[0].other;

	(void)state;
	assert_ok(fi_av_remove(sides[0].av, &gone, 1, 0));
	assert_int_equal(fi_tsend(sides[0].ep, NULL, 0, NULL, gone, 1, NULL), -FI_EINVAL);
	assert_int_equal(fi_tinject(sides[0].ep, NULL, 0, gone, 1), -FI_EINVAL);
	assert_int_equal(fi_av_insert(sides[0].av, sides[1].name, 1, &gone, 0, NULL), 1);
	assert_int_equal(gone, sides[0].other);
	assert_ok(fi_tinject(sides[0].ep, "x", 1, gone, 1));
	kept_await(&sides[1], 1);
}

/* No program has as many addresses as it says. */
static void a_vector_grows_with_what_is_in_it(void **state)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE, .count = SIZE_MAX};
	struct fid_av *av;
	fi_addr_t index;

	(void)state;
	assert_ok(fi_av_open(domain, &attr, &av, NULL));
	assert_int_equal(fi_av_insert(av, sides[0].name, 1, &index, 0, NULL), 1);
	assert_int_equal(index, 0);
	assert_ok(fi_close(&av->fid));
}

static int opened_with_sources(void **state)
{
	(void)state;
	pair_open(&(struct wish){.caps = FI_TAGGED | FI_SOURCE});
	return 0;
}

static void an_address_is_found_after_its_vector_has_grown(void **state)
{
	fi_addr_t source;
	char word[2];

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		char name[NAME_BYTES];

		memcpy(name, sides[1].name, sizeof(name));
		memcpy(name + 12, &i, sizeof(i)); /* the process id */
		assert_int_equal(fi_av_insert(sides[0].av, name, 1, NULL, 0, NULL), 1);
	}
	assert_ok(fi_trecv(sides[0].ep, word, 2, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	assert_ok(fi_tinject(sides[1].ep, "x", 2, sides[1].other, 1));
	completion_take(&sides[0], NULL, &source);
	assert_int_equal(source, sides[0].other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, opened, pair_closed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_table_has_indices_in_order),
		TEST(a_map_of_many_addresses),
		TEST(an_address_of_elsewhere_is_refused),
		TEST(inserts_can_be_told_by_events),
		TEST(a_vector_says_what_it_is_not),
		TEST(an_address_that_was_removed_is_nobody),
		TEST(a_vector_grows_with_what_is_in_it),
		cmocka_unit_test_setup_teardown(an_address_is_found_after_its_vector_has_grown,
			opened_with_sources, pair_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
