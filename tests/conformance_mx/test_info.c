/* SPDX-License-Identifier: BSD-3-Clause */
/* test_info.c - mx_get_info(), boards and their NIC ids.
 *
 * Covers: lib/mx/info.c. */
#include "fixture.h"

#define NO_BOARD 2

static uint32_t number_get(mx_get_info_key_t key, void *in, uint32_t in_length)
{
	uint32_t numbers[2] = {0xabababab, 0xcdcdcdcd};

	assert_ok(mx_get_info(NULL, key, in, in_length, numbers, sizeof(numbers[0])));
	assert_int_equal(numbers[1], 0xcdcdcdcd);
	assert_code(mx_get_info(NULL, key, in, in_length, numbers, sizeof(numbers[0]) - 1),
		MX_BAD_INFO_LENGTH);
	assert_code(mx_get_info(NULL, key, in, in_length, numbers, 0), MX_BAD_INFO_LENGTH);
	return numbers[0];
}

static void numbers_of_the_library(void **state)
{
	(void)state;
	assert_int_equal(number_get(MX_NIC_COUNT, NULL, 0), 2);
	/* Programs have arrays of so many, and open each. */
	assert_int_equal(number_get(MX_MAX_NATIVE_ENDPOINTS, NULL, 0), 32);
	assert_int_equal(number_get(MX_NATIVE_REQUESTS, NULL, 0), 0xffffffff);
	assert_true(number_get(MX_PIO_SEND_MAX, NULL, 0) > 0);
	assert_int_equal(number_get(MX_COPY_SEND_MAX, NULL, 0), 32768);
	assert_int_equal(number_get(MX_NET_TYPE, NULL, 0), MX_NET_ETHER);
}

static void numbers_of_a_board(void **state)
{
	uint32_t board = 1;

	(void)state;
	assert_int_equal(number_get(MX_PORT_COUNT, &board, sizeof(board)), 1);
	assert_int_equal(number_get(MX_LINE_SPEED, &board, sizeof(board)), MX_SPEED_10G);
	(void)number_get(MX_NUMA_NODE, &board, sizeof(board));
	assert_true(number_get(MX_COUNTERS_COUNT, &board, sizeof(board)) > 0);
}

static void nic_ids_end_with_0(void **state)
{
	uint64_t nic_ids[4] = {5, 5, 5, 5}, nic_id;

	(void)state;
	assert_ok(mx_get_info(NULL, MX_NIC_IDS, NULL, 0, nic_ids, 3 * sizeof(nic_ids[0])));
	for (uint32_t i = 0; i < 2; i++) {
		assert_ok(mx_board_number_to_nic_id(i, &nic_id));
		assert_int_equal(nic_ids[i], nic_id);
		assert_true(nic_id != 0 && nic_id >> 48 == 0);
	}
	assert_int_not_equal(nic_ids[0], nic_ids[1]);
	assert_int_equal(nic_ids[2], 0);
	assert_int_equal(nic_ids[3], 5);
	nic_ids[0] = 7;
	assert_code(mx_get_info(NULL, MX_NIC_IDS, NULL, 0, nic_ids, 3 * sizeof(nic_ids[0]) - 1),
		MX_BAD_INFO_LENGTH);
	assert_int_equal(nic_ids[0], 7);
}

static void boards_and_nic_ids_lead_to_each_other(void **state)
{
	uint64_t nic_id;
	uint32_t board;

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		assert_ok(mx_board_number_to_nic_id(i, &nic_id));
		assert_ok(mx_nic_id_to_board_number(nic_id, &board));
		assert_int_equal(board, i);
	}
	nic_id = 99;
	assert_code(mx_board_number_to_nic_id(NO_BOARD, &nic_id), MX_BOARD_UNKNOWN);
	assert_code(mx_board_number_to_nic_id(MX_ANY_NIC, &nic_id), MX_BOARD_UNKNOWN);
	assert_int_equal(nic_id, 99);
	board = 99;
	assert_code(mx_nic_id_to_board_number(12345, &board), MX_BOARD_UNKNOWN);
	assert_code(mx_nic_id_to_board_number(0, &board), MX_BOARD_UNKNOWN);
	assert_code(mx_nic_id_to_board_number(~UINT64_C(0), &board), MX_BOARD_UNKNOWN);
	/* The node id of a board, but not its NIC id. */
	assert_code(mx_nic_id_to_board_number(1, &board), MX_BOARD_UNKNOWN);
	assert_int_equal(board, 99);
	assert_code(mx_board_number_to_nic_id(0, NULL), MX_BAD_INFO_VAL);
	assert_code(mx_nic_id_to_board_number(nic_id, NULL), MX_BAD_INFO_VAL);
}

static void texts_end_with_a_nul(void **state)
{
	static const mx_get_info_key_t keys[] = {MX_PRODUCT_CODE, MX_PART_NUMBER, MX_SERIAL_NUMBER};
	uint32_t board = 0;

	(void)state;
	for (unsigned i = 0; i < COUNT(keys); i++) {
		char text[MX_MAX_STR_LEN + 1], part[2] = {1, 1};

		memset(text, 1, sizeof(text));
		assert_ok(mx_get_info(NULL, keys[i], &board, 4, text, MX_MAX_STR_LEN));
		assert_true(strnlen(text, MX_MAX_STR_LEN) < MX_MAX_STR_LEN);
		assert_true(text[0] != '\0');
		assert_int_equal(text[MX_MAX_STR_LEN], 1);
		assert_ok(mx_get_info(NULL, keys[i], &board, 4, part, 1));
		assert_int_equal(part[0], 0);
		assert_int_equal(part[1], 1);
		assert_code(mx_get_info(NULL, keys[i], &board, 4, part, 0), MX_BAD_INFO_LENGTH);
	}
}

static void a_serial_number_of_4_bytes_is_a_number(void **state)
{
	uint32_t board = 1, number = 0;
	char text[MX_MAX_STR_LEN];

	(void)state;
	assert_ok(mx_get_info(NULL, MX_SERIAL_NUMBER, &board, 4, &number, sizeof(number)));
	assert_ok(mx_get_info(NULL, MX_SERIAL_NUMBER, &board, 4, text, sizeof(text)));
	assert_int_equal(strtoul(text, NULL, 10), number);
	assert_int_equal(number, 2);
}

static void counters_have_labels_and_values(void **state)
{
	uint32_t board = 0, count;
	unsigned distinct = 0;
	uint32_t *values;
	char *labels;

	(void)state;
	assert_ok(mx_get_info(NULL, MX_COUNTERS_COUNT, &board, 4, &count, sizeof(count)));
	labels = test_malloc(count * MX_MAX_STR_LEN);
	values = test_malloc(count * sizeof(*values));
	memset(labels, 1, count * MX_MAX_STR_LEN);
	assert_ok(mx_get_info(NULL, MX_COUNTERS_LABELS, &board, 4, labels, count * MX_MAX_STR_LEN));
	memset(values, 0xff, count * sizeof(*values));
	assert_ok(mx_get_info(
		NULL, MX_COUNTERS_VALUES, &board, 4, values, count * (uint32_t)sizeof(*values)));
	for (uint32_t i = 0; i < count; i++) {
		assert_true(strnlen(labels + i * MX_MAX_STR_LEN, MX_MAX_STR_LEN) < MX_MAX_STR_LEN);
		assert_true(labels[i * MX_MAX_STR_LEN] != '\0');
		assert_true(values[i] != UINT32_MAX);
		for (uint32_t other = 0; other < i; other++)
			distinct += strcmp(labels + i * MX_MAX_STR_LEN,
					    labels + other * MX_MAX_STR_LEN) != 0;
	}
	assert_int_equal(distinct, count * (count - 1) / 2);
	assert_code(mx_get_info(NULL, MX_COUNTERS_LABELS, &board, 4, labels,
			    count * MX_MAX_STR_LEN - 1),
		MX_BAD_INFO_LENGTH);
	assert_code(mx_get_info(NULL, MX_COUNTERS_VALUES, &board, 4, values,
			    count * (uint32_t)sizeof(*values) - 1),
		MX_BAD_INFO_LENGTH);
	test_free(values);
	test_free(labels);
}

static void a_board_must_exist(void **state)
{
	static const mx_get_info_key_t keys[] = {MX_COUNTERS_COUNT, MX_COUNTERS_LABELS,
		MX_COUNTERS_VALUES, MX_PRODUCT_CODE, MX_PART_NUMBER, MX_SERIAL_NUMBER,
		MX_PORT_COUNT, MX_NUMA_NODE, MX_LINE_SPEED};
	uint32_t board = NO_BOARD, good = 0;
	char out[64];

	(void)state;
	for (unsigned i = 0; i < COUNT(keys); i++) {
		assert_code(
			mx_get_info(NULL, keys[i], &board, 4, out, sizeof(out)), MX_BOARD_UNKNOWN);
		assert_code(
			mx_get_info(NULL, keys[i], NULL, 0, out, sizeof(out)), MX_BOARD_UNKNOWN);
		assert_code(
			mx_get_info(NULL, keys[i], &good, 3, out, sizeof(out)), MX_BAD_INFO_LENGTH);
	}
}

static void bad_arguments_are_refused(void **state)
{
	uint32_t board = 0, number = 99;

	(void)state;
	assert_code(
		mx_get_info(NULL, (mx_get_info_key_t)0, &board, 4, &number, 4), MX_BAD_INFO_KEY);
	assert_code(
		mx_get_info(NULL, (mx_get_info_key_t)17, &board, 4, &number, 4), MX_BAD_INFO_KEY);
	assert_code(
		mx_get_info(NULL, (mx_get_info_key_t)-1, &board, 4, &number, 4), MX_BAD_INFO_KEY);
	assert_code(mx_get_info(NULL, (mx_get_info_key_t)INT32_MAX, &board, 4, &number, 4),
		MX_BAD_INFO_KEY);
	assert_int_equal(number, 99);
	for (int key = MX_NIC_COUNT; key <= MX_LINE_SPEED; key++)
		assert_code(mx_get_info(NULL, (mx_get_info_key_t)key, &board, 4, NULL, 128),
			MX_BAD_INFO_VAL);
	assert_code(mx_get_info((mx_endpoint_t)(void *)&number, MX_NIC_COUNT, NULL, 0, &number, 4),
		MX_BAD_ENDPOINT);
}

/* --- with an endpoint */

static unsigned failures;

static mx_return_t failures_count(char *text, mx_return_t code)
{
	(void)text;
	failures++;
	return code;
}

static mx_endpoint_t endpoint_of_board_1(void)
{
	mx_param_t handler = {.key = MX_PARAM_ERROR_HANDLER, .val.error_handler = failures_count};
	mx_endpoint_t endpoint;

	assert_ok(mx_open_endpoint(1, 3, 77, &handler, 1, &endpoint));
	return endpoint;
}

/* Bytes of the answer to a key. */
static uint32_t answer_size(mx_get_info_key_t key, uint32_t *board)
{
	switch (key) {
	case MX_NIC_IDS:
		return 3 * sizeof(uint64_t);
	case MX_PRODUCT_CODE:
	case MX_PART_NUMBER:
		return MX_MAX_STR_LEN;
	case MX_COUNTERS_LABELS:
		return number_get(MX_COUNTERS_COUNT, board, sizeof(*board)) * MX_MAX_STR_LEN;
	case MX_COUNTERS_VALUES:
		return number_get(MX_COUNTERS_COUNT, board, sizeof(*board)) *
		       (uint32_t)sizeof(uint32_t);
	default:
		return sizeof(uint32_t);
	}
}

/* Each with a board's number in in_val, as Open MPI asks, and without one, as MPICH does. */
static void an_endpoint_may_ask_for_every_key(void **state)
{
	mx_endpoint_t endpoint = endpoint_of_board_1();
	uint32_t board = 0, own = 1;

	(void)state;
	for (int key = MX_NIC_COUNT; key <= MX_LINE_SPEED; key++) {
		const mx_get_info_key_t asked = (mx_get_info_key_t)key;
		const uint32_t size = answer_size(asked, &board);
		char *expected = test_calloc(1, size), *answer = test_calloc(1, size);

		assert_ok(mx_get_info(NULL, asked, &board, sizeof(board), expected, size));
		assert_ok(mx_get_info(endpoint, asked, &board, sizeof(board), answer, size));
		if (asked != MX_COUNTERS_VALUES) /* which may move */
			assert_memory_equal(answer, expected, size);
		memset(answer, 0, size);
		assert_ok(mx_get_info(NULL, asked, &own, sizeof(own), expected, size));
		assert_ok(mx_get_info(endpoint, asked, NULL, 0, answer, size));
		if (asked != MX_COUNTERS_VALUES)
			assert_memory_equal(answer, expected, size);
		test_free(answer);
		test_free(expected);
	}
	assert_int_equal(failures, 0);
	assert_ok(mx_close_endpoint(endpoint));
	assert_code(mx_get_info(endpoint, MX_NIC_COUNT, NULL, 0, &board, 4), MX_BAD_ENDPOINT);
}

static void errors_of_an_endpoint_go_to_its_handler(void **state)
{
	mx_endpoint_t endpoint = endpoint_of_board_1();
	uint32_t board = NO_BOARD, number;

	(void)state;
	failures = 0;
	assert_code(
		mx_get_info(endpoint, (mx_get_info_key_t)17, NULL, 0, &number, 4), MX_BAD_INFO_KEY);
	assert_code(mx_get_info(endpoint, MX_NIC_COUNT, NULL, 0, NULL, 4), MX_BAD_INFO_VAL);
	assert_code(mx_get_info(endpoint, MX_NIC_COUNT, NULL, 0, &number, 3), MX_BAD_INFO_LENGTH);
	assert_code(
		mx_get_info(endpoint, MX_PORT_COUNT, &board, 3, &number, 4), MX_BAD_INFO_LENGTH);
	assert_code(mx_get_info(endpoint, MX_PORT_COUNT, &board, 4, &number, 4), MX_BOARD_UNKNOWN);
	assert_int_equal(failures, 5);
	assert_ok(mx_close_endpoint(endpoint));
}

static void all_boards_are_of_one_network(void **state)
{
	mx_mapper_state_t states[2];
	mx_endpt_handle_t handle;

	(void)state;
	memset(states, 0xff, sizeof(states));
	for (int i = 0; i < 2; i++) {
		assert_ok(mx_open_board(i, &handle));
		assert_ok(mx__get_mapper_state(handle, &states[i]));
		assert_int_equal(states[i].board_number, i);
	}
	assert_memory_equal(states[0].mapper_mac, states[1].mapper_mac, 6);
	handle = 99;
	assert_code(mx_open_board(NO_BOARD, &handle), MX_BOARD_UNKNOWN);
	assert_code(mx_open_board(-1, &handle), MX_BOARD_UNKNOWN);
	assert_int_equal(handle, 99);
	assert_code(mx_open_board(0, NULL), MX_BAD_INFO_VAL);
	assert_code(mx__get_mapper_state(MX__INVALID_HANDLE, &states[0]), MX_BOARD_UNKNOWN);
	assert_code(mx__get_mapper_state(0, NULL), MX_BAD_INFO_VAL);
	assert_int_equal(mx__regcache_clean(states, sizeof(states)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_of_the_library),
		cmocka_unit_test(numbers_of_a_board),
		cmocka_unit_test(nic_ids_end_with_0),
		cmocka_unit_test(boards_and_nic_ids_lead_to_each_other),
		cmocka_unit_test(texts_end_with_a_nul),
		cmocka_unit_test(a_serial_number_of_4_bytes_is_a_number),
		cmocka_unit_test(counters_have_labels_and_values),
		cmocka_unit_test(a_board_must_exist),
		cmocka_unit_test(bad_arguments_are_refused),
		cmocka_unit_test(an_endpoint_may_ask_for_every_key),
		cmocka_unit_test(errors_of_an_endpoint_go_to_its_handler),
		cmocka_unit_test(all_boards_are_of_one_network),
	};

	return cmocka_run_group_tests(tests, group_open, group_close);
}
