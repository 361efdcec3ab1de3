/* SPDX-License-Identifier: BSD-3-Clause */
/* pair.c - see pair.h. */
#include "../nap.h"
#include "pair.h"

mx_endpoint_t one, other;
mx_endpoint_addr_t to_other, to_one;

uint64_t board_nic(uint32_t board)
{
	uint64_t nic_id = 0;

	assert_ok(mx_board_number_to_nic_id(board, &nic_id));
	return nic_id;
}

mx_status_t connect_with(
	mx_endpoint_t from, mx_endpoint_t to, uint64_t nic_id, uint32_t id, uint32_t filter)
{
	mx_request_t request;
	mx_status_t status;
	uint32_t result = 0;

	assert_ok(mx_iconnect(from, nic_id, id, filter, 77, &request, &request));
	for (unsigned looks = 1; result == 0; looks++) {
		mx_request_t none;

		assert_ok(mx_test(from, &request, &status, &result));
		if (result == 0 && to) {
			uint32_t peeked;

			assert_ok(mx_ipeek(to, &none, &peeked));
		}
		look_pause(looks);
	}
	assert_null(request);
	assert_int_equal(status.match_info, 77);
	assert_ptr_equal(status.context, &request);
	return status;
}

static void both_open(mx_param_t *params, uint32_t count)
{
	assert_ok(mx_open_endpoint(0, 3, FILTER, params, count, &one));
	assert_ok(mx_open_endpoint(1, 3, FILTER, params, count, &other));
	to_other = connect_with(one, other, board_nic(1), 3, FILTER).source;
	to_one = connect_with(other, one, board_nic(0), 3, FILTER).source;
}

int open_both(void **state)
{
	(void)state;
	both_open(NULL, 0);
	return 0;
}

int open_both_small(void **state)
{
	mx_param_t param = {.key = MX_PARAM_UNEXP_QUEUE_MAX, .val.unexp_queue_max = SMALL_MEMORY};

	(void)state;
	both_open(&param, 1);
	return 0;
}

int close_both(void **state)
{
	(void)state;
	assert_ok(mx_close_endpoint(one));
	assert_ok(mx_close_endpoint(other));
	return 0;
}

mx_request_t send_to(const void *data, uint32_t length, uint64_t bits, bool synchronous)
{
	mx_segment_t segment = {(void *)(uintptr_t)data, length};
	mx_request_t request = NULL;

	if (synchronous)
		assert_ok(mx_issend(one, &segment, 1, to_other, bits, NULL, &request));
	else
		assert_ok(mx_isend(one, &segment, 1, to_other, bits, NULL, &request));
	return request;
}

mx_request_t receive_from(void *data, uint32_t length, uint64_t bits, uint64_t mask)
{
	mx_segment_t segment = {data, length};
	mx_request_t request = NULL;

	assert_ok(mx_irecv(other, &segment, 1, bits, mask, data, &request));
	return request;
}

/* The peer's calls tell the sender that a kept message was received. */
mx_status_t wait_for(mx_endpoint_t endpoint, mx_request_t *request)
{
	mx_request_t completed;
	mx_status_t status;
	uint32_t result = 0, peeked;

	for (unsigned i = 0; i < TIMEOUT / 10 && result == 0; i++) {
		assert_ok(mx_wait(endpoint, request, 10, &status, &result));
		if (result == 0)
			(void)mx_ipeek(endpoint == one ? other : one, &completed, &peeked);
	}
	assert_int_equal(result, 1);
	assert_null(*request);
	return status;
}

bool ends_within(mx_endpoint_t endpoint, mx_request_t *request, uint32_t milliseconds)
{
	mx_status_t status;
	uint32_t result;

	assert_ok(mx_wait(endpoint, request, milliseconds, &status, &result));
	return result == 1;
}

void fill(unsigned char *data, uint32_t length, unsigned seed)
{
	for (uint32_t i = 0; i < length; i++)
		data[i] = (unsigned char)(i * 7 + (i >> 9) + seed);
}
