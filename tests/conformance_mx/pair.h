/* SPDX-License-Identifier: BSD-3-Clause */
/* pair.h - two endpoints of one process that are connected, and messages from `one` to `other`. */
#ifndef CONFORMANCE_MX_PAIR_H
#define CONFORMANCE_MX_PAIR_H

#include "fixture.h"

#include <stdbool.h>

#define FILTER       0xdecaf
#define EAGER        32768 /* bytes that complete without a receive */
#define SMALL_MEMORY (32 << 20)
#define TIMEOUT      60000 /* ms */

extern mx_endpoint_t one, other;
extern mx_endpoint_addr_t to_other, to_one;

int open_both(void **state);
/* With SMALL_MEMORY bytes for unexpected messages. */
int open_both_small(void **state);
int close_both(void **state);

uint64_t board_nic(uint32_t board);
/* Connects an endpoint; to: the one that has to answer meanwhile; NULL: none. */
mx_status_t connect_with(
	mx_endpoint_t from, mx_endpoint_t to, uint64_t nic_id, uint32_t id, uint32_t filter);

mx_request_t send_to(const void *data, uint32_t length, uint64_t bits, bool synchronous);
mx_request_t receive_from(void *data, uint32_t length, uint64_t bits, uint64_t mask);
/* Until the request has ended. */
mx_status_t wait_for(mx_endpoint_t endpoint, mx_request_t *request);
bool ends_within(mx_endpoint_t endpoint, mx_request_t *request, uint32_t milliseconds);
/* Bytes that differ by seed. */
void fill(unsigned char *data, uint32_t length, unsigned seed);

#endif
