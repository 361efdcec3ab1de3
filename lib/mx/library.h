/* SPDX-License-Identifier: BSD-3-Clause */
/* library.h - what all of the MX front end shares: whether it is open, boards, errors.
 *
 * A board is an interface of PTL_IFACE_NAME, under its number. Its NIC id is its node id with a
 * fixed number before it, so that each is found from the other without asking. It is opened when it
 * is first needed, and closes with mx_finalize().
 */
#ifndef MX_LIBRARY_H
#define MX_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

#include <host/front.h>
#include <mx/board.h>
#include <mx_extensions.h>
#include <mx_io.h>

/* Endpoint ids are below it. */
#define ENDPOINT_IDS 1024
/* Endpoints of a process. */
#define ENDPOINTS_MAX 32
/* Bytes of a message that is sent whether or not a receive waits. */
#define COPY_SEND_MAX 32768

extern struct front mx_front;

/* --- library.c */

struct board {
	uint64_t handle; /* of its interface */
	uint32_t nid;
	int socket; /* NUMA node; -1: unknown */
	char device[MX_MAX_STR_LEN];
};

/* How many boards this host has; 0 while the front end is closed. */
uint32_t boards_count(void);
/* Opens a board that is not open, and describes it. Takes the library's lock. MX_SUCCESS, or a code
 * for board_raise(). */
mx_return_t board_open(uint32_t number, struct board *board);
/* What became of an interface that was to be opened. */
mx_return_t answer_code(enum answer answer);
/* Gives the code of board_open() to an endpoint's error handler, NULL: the global one. */
mx_return_t board_raise(
	mx_error_handler_t own, const char *function, uint32_t number, mx_return_t code);
/* Does it exist? Raises MX_NOT_INITIALIZED, MX_BOARD_UNKNOWN. */
mx_return_t board_check(const char *function, uint32_t number);

/* --- endpoint.c */

/* Is the caller an unexpected handler? */
bool endpoints_are_handled(void);
/* Closes all endpoints. */
void endpoints_close(void);
/* In a child made by fork(): no call gets at the parent's endpoints. */
void endpoints_forget(void);

/* --- info.c */

/* This host's board with that NIC id. Returns false if none has it. */
bool board_of_nic_id(uint64_t nic_id, uint32_t *number);

/* --- error.c */

/* Gives an error to the endpoint's handler, NULL: the global one, and returns what the handler
 * returns. function: that failed; the text says what is wrong and what to do. */
mx_return_t error_raise(mx_error_handler_t own, mx_return_t code, const char *function,
	const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same for a call before mx_init(). */
mx_return_t error_raise_closed(const char *function);

/* --- name.c */

/* The interface of an endpoint on a board answers for this host's name. */
void hostname_announce(uint64_t interface, uint32_t board);

/* Bytes of a host's name at most: ":63" and a NUL fit behind it. */
#define HOSTNAME_BYTES (MX_MAX_HOSTNAME_LEN - 4)

/* Is PTL_MX_HOSTNAME a name, or not set? Returns false after an error line. */
bool hostname_check(void);

#endif
