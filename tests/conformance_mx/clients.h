/* SPDX-License-Identifier: BSD-3-Clause */
/* clients.h - stand-ins of MX's clients: their calls in their order, with their parameters. Each
 * checks every byte.
 *
 * A stand-in has two roles, which run in two processes or, of one process, in two threads. */
#ifndef CONFORMANCE_MX_CLIENTS_H
#define CONFORMANCE_MX_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <mx_extensions.h>
#include <mx_io.h>

#define FILTER 0x12345
#define SERVER 3 /* endpoint id of the role that others connect to */
#define CLIENT 5 /* of the other role, where the client wants a number */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Ends the process with a line unless the condition holds. */
#define check(condition) ((condition) ? (void)0 : check_fail(#condition, __FILE__, __LINE__))
_Noreturn void check_fail(const char *what, const char *file, int line);
#define check_ok(call) check_code(call, #call, __FILE__, __LINE__)
void check_code(mx_return_t code, const char *call, const char *file, int line);

/* `bytes` bytes that depend on seed, and whether they are these. */
void pattern_fill(void *memory, size_t bytes, uint32_t seed);
void pattern_check(const void *memory, size_t bytes, uint32_t seed);

mx_endpoint_t endpoint_open(uint32_t id, mx_param_t *params, uint32_t count);
/* The own board's NIC id, found by its name as clients do. */
uint64_t nic_id_own(mx_endpoint_t endpoint);
/* mx_connect() until the peer is open. */
mx_endpoint_addr_t peer_connect(mx_endpoint_t endpoint, uint64_t nic_id, uint32_t id);

mx_request_t post_send(mx_endpoint_t endpoint, mx_endpoint_addr_t peer, void *memory, size_t bytes,
	uint64_t match, void *context);
mx_request_t post_receive(mx_endpoint_t endpoint, void *memory, size_t bytes, uint64_t match,
	uint64_t mask, void *context);
/* mx_wait() for ever; the status is a success. */
mx_status_t request_wait(mx_endpoint_t endpoint, mx_request_t *request);
/* mx_test() until it has ended; the same. */
mx_status_t request_poll(mx_endpoint_t endpoint, mx_request_t *request);
/* mx_test_any() until one has ended; the same. */
mx_status_t any_poll(mx_endpoint_t endpoint, uint64_t match, uint64_t mask);

/* Of the server, for the client that stops it; not in threads. */
extern pid_t peer_process;

struct client {
	const char *name;
	void (*server)(void);
	void (*client)(void); /* NULL: it talks to itself */
	bool processes_alone; /* it stops its peer's process */
};
/* So many processes that send to all of them in so many rounds. */
void crowd_run(unsigned size, unsigned rounds);

extern const struct client test_clients[], mpi_clients[]; /* each up to one without a name */

#endif
