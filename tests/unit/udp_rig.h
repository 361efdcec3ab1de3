/* SPDX-License-Identifier: BSD-3-Clause */
/* udp_rig.h - ports on UDP sockets, and sockets that pretend to be some, for tests: on addresses of
 * the loopback interface that only this process has, because tests run twice at once. All of them
 * are this process, and need no right. What udp.c asks of the kernel may be refused.
 *
 * CASE() opens two ports before a case and closes them afterwards.
 */
#ifndef TESTS_UDP_RIG_H
#define TESTS_UDP_RIG_H

#include "glue_fixture.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <pmd-glue/candidate.h>
#include <pmd-glue/kinds.h>

#define PID     4711u
#define FAR_PID 815u
/* in a frame */
#define TO_AT   22u
#define FROM_AT 30u
#define DATA_AT 38u
#define MANY    200u

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

extern const struct candidate_range range;
extern struct port *near, *far;
extern uint32_t here, there; /* their nodes */
extern char here_name[INET_ADDRSTRLEN], there_name[INET_ADDRSTRLEN];

int rig_begin(void **state); /* of a group */
int set_up(void **state);
int tear_down(void **state);

/* --- what the kernel refuses, and what it was asked for since refuse() */

extern unsigned refused_count; /* the next calls, which fail */
extern unsigned messages_sent, calls_made;
extern unsigned nameless_sent; /* by a connected socket */
extern int vector_error;       /* of sendmmsg(); 0: it is there */
extern unsigned vectors_made;
extern unsigned errors_asked; /* looks at the error queue */
/* What the kernel tells of a datagram that came back is changed; NULL: it is as it was. */
extern void (*errors_change)(struct msghdr *message, ssize_t *bytes);

/* The next calls for a message, or for joined ones alone, fail. */
void refuse(int error, unsigned count, bool joined);

/* --- frames */

void word_put(struct rte_mbuf *frame, uint32_t at, uint32_t word);
/* A frame that names both ends, as the transport's do. */
struct rte_mbuf *frame_named(struct port *from, struct port *to, uint32_t size, uint8_t fill);
void check_frame(
	struct rte_mbuf *frame, struct port *from, struct port *to, uint32_t size, uint8_t fill);
void exchange(struct port *from, struct port *to, uint32_t size, uint8_t fill);
void check_nothing(struct port *port);
/* A run of frames from near to far, of these sizes: each of `count` is sizes[n % number]. All
 * arrive, in order. */
void check_run(unsigned count, const uint32_t *sizes, unsigned number);
struct rte_mbuf *question_make(struct port *from, uint32_t nid, uint32_t pid);
void ask(struct port *from, uint32_t nid, uint32_t pid);
/* `far` ends, and a frame that `near` sends to it comes back as refused. */
void check_refused(void);
/* Another process on the node of `far`. */
struct port *third_open(void);

/* --- sockets that pretend to be ports; -1: the UDP port is taken */

int socket_bind(uint32_t node, uint32_t udp_port);
int socket_candidate(uint32_t node, uint32_t pid, uint32_t k);

#endif
