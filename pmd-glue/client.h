/* SPDX-License-Identifier: BSD-3-Clause */
/* client.h - what a process and posternd say to each other, and where they meet. The process's end
 * is client.c, posternd's is clients.c.
 *
 *      process                                       posternd, at /run/postern/NAME/posternd
 *      CLIENT_HELLO {wanted process id} + page, memory  ---->  checks, maps
 *                                                       <----  CLIENT_ANSWER {its name} + page
 *      frames through the pair (pair.h), wake-ups       <--->  frames, wake-ups
 *
 * The process makes the memory, so that it counts as the process's. Both ends of the socket learn
 * from the kernel whose the other is: posternd vouches for that user in all frames.
 */
#ifndef PMD_GLUE_CLIENT_H
#define PMD_GLUE_CLIENT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include <pmd-glue/shared.h>

#define CLIENT_DIRECTORY "/run/postern"
#define CLIENT_MAGIC     UINT32_C(0x65746147)
#define CLIENT_VERSION   4u
#define CLIENT_PID_ANY   UINT32_MAX

/* Why posternd refuses a process: X(constant, name). */
#define CLIENT_REFUSALS(X)                                                                         \
	X(CLIENT_STRANGE, "not_postern")    /* its messages are not Postern's */                   \
	X(CLIENT_VERSIONS, "other_version") /* of the protocol, or of the memory's layout */       \
	X(CLIENT_MEMORY, "bad_memory")      /* unsealed, of another size, or not mappable */       \
	X(CLIENT_PID, "pid_in_use")                                                                \
	X(CLIENT_SHARE, "too_many_of_user") /* processes */                                        \
	X(CLIENT_FULL, "too_many_processes")                                                       \
	X(CLIENT_RESOURCES, "no_resources") /* no memory or no descriptor */                       \
	X(CLIENT_SILENT, "silent")          /* it connected and said nothing */                    \
	X(CLIENT_SPACE, "other_network")    /* it has another interface of this name */

enum client_verdict {
	CLIENT_WELCOME,
#define X(constant, name) constant,
	CLIENT_REFUSALS(X)
#undef X
		CLIENT_VERDICTS
};

struct client_hello {
	uint32_t magic;
	uint32_t version;
	uint32_t pid;  /* CLIENT_PID_ANY: */
	uint32_t wish; /* this one, if it is free */
	uint64_t pair_bytes;
	/* kernel_space(), if it has an interface of the name there; otherwise 0: a container may
	 * use an interface that only posternd's network namespace has, but not one for another */
	uint64_t space;
};
static_assert(sizeof(struct client_hello) <= PARCEL_BYTES, "a parcel holds it");

struct client_answer {
	uint32_t magic;
	uint32_t version;
	uint32_t verdict; /* but for CLIENT_WELCOME, no more is said */
	uint32_t nid;
	uint32_t pid;
	uint32_t uid; /* as posternd sees it */
	uint32_t frame_size;
	uint16_t vlan; /* the tag that frames must have; 0: none */
	uint8_t address[6];
};
static_assert(sizeof(struct client_answer) <= PARCEL_BYTES, "a parcel holds it");

/* The socket of the posternd that has a card or interface of this name. Returns false if it can
 * have none. */
bool posternd_address(struct sockaddr_un *address, const char *name);

/* A port through posternd. *absent: NULL was returned without an error line because there is none
 * that has the interface. pid: as with glue_port_open(). */
struct port;
struct port *client_port_open(
	const char *name, uint32_t mtu, unsigned interface, uint32_t pid, bool *absent);

#endif
