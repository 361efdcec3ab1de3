/* SPDX-License-Identifier: BSD-3-Clause */
/* layout.h - sizes, offsets and numbers of the headers of MX, which programs that were built
 * elsewhere have in them. Checked when a C or a C++ program compiles. */
#ifndef CONFORMANCE_MX_LAYOUT_H
#define CONFORMANCE_MX_LAYOUT_H

#include <assert.h>

#include <mx_extensions.h>
#include <mx_internals/mx__driver_interface.h>
#include <mx_internals/mx__fops.h>
#include <mx_io.h>
#include <myriexpress.h>

#define SIZE(type, bytes)          static_assert(sizeof(type) == (bytes), #type)
#define PLACE(type, field, offset) static_assert(offsetof(type, field) == (offset), #type)
#define NUMBER(name, value)        static_assert((name) == (value), #name)

SIZE(mx_endpoint_t, 8);
SIZE(mx_request_t, 8);
SIZE(mx_endpoint_addr_t, 16);
SIZE(mx_segment_ptr_t, 8);
SIZE(mx_segment_t, 16);
SIZE(mx_param_t, 16);
SIZE(mx_status_t, 48);
SIZE(mx_error_handler_t, 8);
SIZE(mx_unexp_handler_t, 8);
SIZE(mx_matching_callback_t, 8);
SIZE(mx_endpt_handle_t, 4);
SIZE(mx_mapper_state_t, 36);
SIZE(mx_return_t, 4);
SIZE(mx_status_code_t, 4);
SIZE(mx_param_key_t, 4);
SIZE(mx_get_info_key_t, 4);
SIZE(mx_line_speed_t, 4);
SIZE(mx_unexp_handler_action_t, 4);

PLACE(mx_segment_t, segment_ptr, 0);
PLACE(mx_segment_t, segment_length, 8);
PLACE(mx_param_t, key, 0);
PLACE(mx_param_t, val, 8);
PLACE(mx_param_t, val.context_id.bits, 8);
PLACE(mx_param_t, val.context_id.shift, 9);
PLACE(mx_status_t, code, 0);
PLACE(mx_status_t, source, 8);
PLACE(mx_status_t, match_info, 24);
PLACE(mx_status_t, msg_length, 32);
PLACE(mx_status_t, xfer_length, 36);
PLACE(mx_status_t, context, 40);
PLACE(mx_mapper_state_t, board_number, 0);
PLACE(mx_mapper_state_t, mapper_mac, 4);
PLACE(mx_mapper_state_t, iport, 10);
PLACE(mx_mapper_state_t, map_version, 12);
PLACE(mx_mapper_state_t, flags, 32);

NUMBER(MX_API, 0x301);
NUMBER(MX_ANY_NIC, 0xffffffff);
NUMBER(MX_ANY_ENDPOINT, 0xffffffff);
NUMBER(MX_INFINITE, 0);
NUMBER(MX_MATCH_MASK_NONE, ~(uint64_t)0);
NUMBER(MX_MAX_SEGMENTS, 256);
NUMBER(MX_SIZEOF_ADDR, 16);
NUMBER(MX_MAX_HOSTNAME_LEN, 80);
NUMBER(MX_MAX_STR_LEN, 128);
NUMBER(MX_CONTEXT_ID_BITS_MAX, 16);
NUMBER(MX__INVALID_HANDLE, -1);
NUMBER(MX_U32(0x0123456789abcdef), 0x01234567);
NUMBER(MX_L32(0x0123456789abcdef), 0x89abcdef);

NUMBER(MX_SUCCESS, 0);
NUMBER(MX_BAD_BAD_BAD, 1);
NUMBER(MX_FAILURE, 2);
NUMBER(MX_ALREADY_INITIALIZED, 3);
NUMBER(MX_NOT_INITIALIZED, 4);
NUMBER(MX_NO_DEV, 5);
NUMBER(MX_NO_DRIVER, 6);
NUMBER(MX_NO_PERM, 7);
NUMBER(MX_BOARD_UNKNOWN, 8);
NUMBER(MX_BAD_ENDPOINT, 9);
NUMBER(MX_BAD_SEG_LIST, 10);
NUMBER(MX_BAD_SEG_MEM, 11);
NUMBER(MX_BAD_SEG_CNT, 12);
NUMBER(MX_BAD_REQUEST, 13);
NUMBER(MX_BAD_MATCH_MASK, 14);
NUMBER(MX_NO_RESOURCES, 15);
NUMBER(MX_BAD_ADDR_LIST, 16);
NUMBER(MX_BAD_ADDR_COUNT, 17);
NUMBER(MX_BAD_ROOT, 18);
NUMBER(MX_NOT_COMPLETED, 19);
NUMBER(MX_BUSY, 20);
NUMBER(MX_BAD_INFO_KEY, 21);
NUMBER(MX_BAD_INFO_VAL, 22);
NUMBER(MX_BAD_NIC, 23);
NUMBER(MX_BAD_PARAM_LIST, 24);
NUMBER(MX_BAD_PARAM_NAME, 25);
NUMBER(MX_BAD_PARAM_VAL, 26);
NUMBER(MX_BAD_HOSTNAME_ARGS, 27);
NUMBER(MX_HOST_NOT_FOUND, 28);
NUMBER(MX_REQUEST_PENDING, 29);
NUMBER(MX_TIMEOUT, 30);
NUMBER(MX_NO_MATCH, 31);
NUMBER(MX_BAD_ENDPOINT_ID, 32);
NUMBER(MX_CONNECTION_FAILED, 33);
NUMBER(MX_BAD_CONNECTION_KEY, 34);
NUMBER(MX_BAD_INFO_LENGTH, 35);
NUMBER(MX_NIC_NOT_FOUND, 36);
NUMBER(MX_BAD_KERNEL_VERSION, 37);
NUMBER(MX_BAD_LIB_VERSION, 38);
NUMBER(MX_NIC_DEAD, 39);
NUMBER(MX_CANCEL_NOT_SUPPORTED, 40);
NUMBER(MX_CLOSE_IN_HANDLER, 41);
NUMBER(MX_BAD_MATCHING_FOR_CONTEXT_ID_MASK, 42);
NUMBER(MX_NOT_SUPPORTED_WITH_CONTEXT_ID, 43);

NUMBER(MX_STATUS_SUCCESS, 0);
NUMBER(MX_STATUS_PENDING, 1);
NUMBER(MX_STATUS_BUFFERED, 2);
NUMBER(MX_STATUS_REJECTED, 3);
NUMBER(MX_STATUS_TIMEOUT, 4);
NUMBER(MX_STATUS_TRUNCATED, 5);
NUMBER(MX_STATUS_CANCELLED, 6);
NUMBER(MX_STATUS_ENDPOINT_UNKNOWN, 7);
NUMBER(MX_STATUS_ENDPOINT_CLOSED, 8);
NUMBER(MX_STATUS_ENDPOINT_UNREACHABLE, 9);
NUMBER(MX_STATUS_BAD_SESSION, 10);
NUMBER(MX_STATUS_BAD_KEY, 11);
NUMBER(MX_STATUS_BAD_ENDPOINT, 12);
NUMBER(MX_STATUS_BAD_RDMAWIN, 13);
NUMBER(MX_STATUS_ABORTED, 14);
NUMBER(MX_STATUS_EVENTQ_FULL, 15);
NUMBER(MX_STATUS_NO_RESOURCES, 16);

NUMBER(MX_PARAM_ERROR_HANDLER, 0);
NUMBER(MX_PARAM_UNEXP_QUEUE_MAX, 1);
NUMBER(MX_PARAM_CONTEXT_ID, 2);
NUMBER(MX_NIC_COUNT, 1);
NUMBER(MX_NIC_IDS, 2);
NUMBER(MX_MAX_NATIVE_ENDPOINTS, 3);
NUMBER(MX_NATIVE_REQUESTS, 4);
NUMBER(MX_COUNTERS_COUNT, 5);
NUMBER(MX_COUNTERS_LABELS, 6);
NUMBER(MX_COUNTERS_VALUES, 7);
NUMBER(MX_PRODUCT_CODE, 8);
NUMBER(MX_PART_NUMBER, 9);
NUMBER(MX_SERIAL_NUMBER, 10);
NUMBER(MX_PORT_COUNT, 11);
NUMBER(MX_PIO_SEND_MAX, 12);
NUMBER(MX_COPY_SEND_MAX, 13);
NUMBER(MX_NUMA_NODE, 14);
NUMBER(MX_NET_TYPE, 15);
NUMBER(MX_LINE_SPEED, 16);
NUMBER(MX_SPEED_2G, 0);
NUMBER(MX_SPEED_10G, 1);
NUMBER(MX_SPEED_OPEN_MX, 2);
NUMBER(MX_NET_MYRI, 0);
NUMBER(MX_NET_ETHER, 1);
NUMBER(MX_RECV_CONTINUE, 0);
NUMBER(MX_RECV_FINISHED, 1);

#if !defined(MX_HAS_ICONNECT_V2) || !defined(MX_HAS_NET_TYPE)
#error "programs look for these"
#endif

#endif
