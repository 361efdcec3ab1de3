/* SPDX-License-Identifier: BSD-3-Clause */
/* rendezvous.h - where the processes of one machine and one user meet, and how two of them come to
 * share memory.
 *
 * A rendezvous is a directory: $XDG_RUNTIME_DIR/postern/NAME, or /tmp/postern-UID/NAME if that
 * variable does not name a directory of this user; in a user namespace the user's number outside
 * follows UID. One that is not removed on purpose
 * (directory_discard()) stays, with one file in it, because a container may have mounted it. Each
 * process has its own process id in the rendezvous, and a socket of that name. A connection joins
 * two processes: memory that one of them made and both have mapped, and a socket. The socket ends
 * when the other process ends or drops the connection.
 *
 * The rendezvous knows nothing of what passes through the memory. rendezvous_open() and
 * rendezvous_close() are called under the front end's lock, all other functions by the owner, one
 * thread at a time. rendezvous_open() waits for at most 0.2 s if its process id is in use; no other
 * function waits for a process.
 *
 * H1. A process takes a process id by a lock on one byte of the file `lock`, at that offset. The
 *     kernel releases the lock when the process ends. Only the holder binds the socket of that
 *     name, and it removes a socket that a dead process left there.
 * H2. All that can be checked of another process's message is checked. The kernel reports its user.
 *     Its memory must have the agreed size and seals, so that nobody can truncate it under a
 *     reader. A refused process sees the end of its socket, behind an answer if its sizes or its
 *     version do not fit. A counter counts each reason, and the log has one line for each.
 * H3. The maker of a connection may use the memory at once. Until the connection is answered, each
 *     rendezvous_wake() wakes the other process, so it overlooks nothing that was published before
 *     its answer.
 * H4. If two processes connect to each other at the same time, the connection of the process with
 *     the lower id stays. The other process moves to that connection (RENDEZVOUS_REPLACED).
 * H5. A sender wakes a sleeper by its word (shared.h, S4).
 * H6. A wake-up is a message on the connection's socket, because another process that shares an
 *     eventfd can make writes to it block. The value of the sleeper's word differs from sleep to
 *     sleep, and a sender sends one message for each value.
 * H7. A child process keeps none of the descriptors, not even a child made by fork(): otherwise its
 *     parent would seem to live on after its end.
 */
#ifndef PMD_GLUE_RENDEZVOUS_H
#define PMD_GLUE_RENDEZVOUS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <base/list.h>
#include <pmd-glue/directory.h>
#include <pmd-glue/shared.h>

#define RENDEZVOUS_PID_ANY UINT32_MAX
/* Of the protocol, and of the layout of the memory that two processes share. */
#define RENDEZVOUS_VERSION 3u
#define RENDEZVOUS_MAGIC   UINT32_C(0x6c6c6148)

enum rendezvous_kind { RENDEZVOUS_HELLO = 1, RENDEZVOUS_ANSWER };

/* What each of two processes says of itself first. */
struct rendezvous_hello {
	uint32_t magic;
	uint32_t version;
	uint32_t kind;
	uint32_t nid;
	uint32_t pid;
	uint32_t frame_size;
	uint64_t pair_bytes;
	uint64_t incarnation;
};

/* Why other processes were refused, and what failed: X(constant, name). */
#define RENDEZVOUS_REFUSALS(X)                                                                     \
	X(REFUSED_USER, "other_user")       /* the process is another user's */                    \
	X(REFUSED_STRANGE, "not_postern")   /* its messages are not Postern's */                   \
	X(REFUSED_VERSION, "other_version") /* of the protocol, or of the memory's layout */       \
	X(REFUSED_NODE, "other_nid")                                                               \
	X(REFUSED_SIZE, "other_mtu")                                                               \
	X(REFUSED_MEMORY, "bad_memory") /* unsealed, of another size, or not mappable */           \
	X(REFUSED_CONNECTIONS,                                                                     \
		"too_many_processes") /* this process has all the connections it can have */       \
	X(REFUSED_RESOURCES, "no_resources") /* no descriptor or no memory */                      \
	X(REFUSED_SILENT, "silent")          /* it connected and said nothing, or left */

enum rendezvous_refusal {
#define X(constant, name) constant,
	RENDEZVOUS_REFUSALS(X)
#undef X
		REFUSALS
};

struct rendezvous;

struct rendezvous_options {
	const char *name; /* NULL or "": "default" */
	uint32_t nid;
	directory_tell *tell; /* why the directory cannot be had; NULL: log_error() */
	bool passing;         /* the directory goes with the last process */
	uint32_t pid; /* RENDEZVOUS_PID_ANY: the system's, or a free one where that is taken */
	/* These must be equal in all processes of a rendezvous. */
	uint32_t frame_size; /* bytes */
	size_t pair_bytes;   /* of a connection's memory */
	/* The first bytes of a connection's memory, which are allocated when it is made. An end of
	 * the connection has others allocated before it writes to them (MADV_POPULATE_WRITE). */
	size_t touched;
};

struct rendezvous_connection {
	/* What rendezvous_wake() reads. */
	const _Atomic uint32_t *word; /* the other process's (shared.h) */
	uint32_t woken;               /* the word's value at the last wake-up */
	bool cheap;                   /* H5 */
	bool answered;                /* of a connection that this process made, H3; else true */
	uint8_t end;                  /* 0: this process made the memory; 1: the other one did */
	int socket;                   /* the rendezvous's; -1: the connection has ended */
	/* pair_bytes, zero at first. The caller unmaps it, also what RENDEZVOUS_REPLACED
	 * replaces. */
	void *memory;
	void *context; /* the caller's, NULL at first */
	uint32_t pid;
	uid_t uid;
	pid_t process;           /* the system's number; 0: it is of another container */
	uint64_t wakes_received; /* messages that woke this process, or would have */
	uint64_t wakes_sent;
	/* The rendezvous's. */
	uint64_t incarnation; /* of the other process's rendezvous; 0: not known yet */
	struct link listed;   /* in the list of those with events to be reported */
	uint32_t events;      /* a bit for each event to be reported */
	unsigned slot;
};

enum rendezvous_event {
	RENDEZVOUS_CAME,     /* another process made this connection */
	RENDEZVOUS_ANSWERED, /* the other process has accepted a connection of this one's */
	/* This process's unanswered connection was given up for the other one's (H4). The
	 * connection has other memory now, and its end is 1. The other process has read nothing of
	 * the old memory. */
	RENDEZVOUS_REPLACED,
	/* The other process has ended, or dropped the connection; what it published is still in the
	 * memory. If the connection was not answered, the other process may also live and have
	 * refused it. The connection stays until the caller drops it. */
	RENDEZVOUS_ENDED,
};

/* NULL after an error line. */
struct rendezvous *rendezvous_open(const struct rendezvous_options *options);
/* Ends and frees all connections. */
void rendezvous_close(struct rendezvous *rendezvous);
uint32_t rendezvous_pid(const struct rendezvous *rendezvous);
const char *rendezvous_path(const struct rendezvous *rendezvous); /* of its directory */
/* How often since rendezvous_open(), by enum rendezvous_refusal. */
const uint64_t *rendezvous_refused(const struct rendezvous *rendezvous);
/* Writes up to `count` processes in the rendezvous but this one, sorted by process id, and returns
 * how many there are. Under the front end's lock, in any thread. */
struct glue_process;
unsigned rendezvous_present(
	const struct rendezvous *rendezvous, struct glue_process *processes, unsigned count);

/* Has certainly no process this process id now? One that starts has it before it can be reached. */
bool rendezvous_lacks(const struct rendezvous *rendezvous, uint32_t pid);

/* An epoll descriptor that is readable while rendezvous_turn() has something to look at; so it also
 * is after another process's rendezvous_wake() for this one in its sleep. */
int rendezvous_set(const struct rendezvous *rendezvous);

/* Reports the next thing that happened; returns false if there is no more for now. The owner calls
 * it about once a millisecond and after each sleep, each time until it returns false. One such
 * series looks at a bounded number of messages. After RENDEZVOUS_CAME, RENDEZVOUS_ANSWERED and
 * RENDEZVOUS_REPLACED the owner looks into the memory. During a sleep the function reports
 * nothing. */
bool rendezvous_turn(struct rendezvous *rendezvous, struct rendezvous_connection **connection,
	enum rendezvous_event *event);

/* Makes a connection to another process, to which there is none. Returns NULL if it cannot: errno
 * is ENOENT or ECONNREFUSED if no such process is there; EAGAIN, ETOOMANYREFS, ECONNRESET or EPIPE
 * if a later attempt may succeed; otherwise the log has a line. */
struct rendezvous_connection *rendezvous_connect(struct rendezvous *rendezvous, uint32_t pid);

/* Ends and frees a connection; its memory stays mapped. */
void rendezvous_drop(struct rendezvous *rendezvous, struct rendezvous_connection *connection);

/* With asleep true, rendezvous_wake() in other processes makes rendezvous_set() readable from now
 * on, and the owner looks at all its memory once more before it sleeps. Returns false if the kernel
 * cannot make the fence (S4): the process is awake, and the owner must not sleep for long. With
 * asleep false the owner looks by itself again, and calls rendezvous_turn(); returns true. */
bool rendezvous_sleep(struct rendezvous *rendezvous, bool asleep);

/* For rendezvous_wake(): the other process may sleep. */
void rendezvous_rouse(struct rendezvous_connection *connection);

/* After something was published in the connection's memory. */
static inline void rendezvous_wake(struct rendezvous_connection *connection)
{
	if (connection->cheap)
		atomic_signal_fence(memory_order_seq_cst);
	else
		atomic_thread_fence(memory_order_seq_cst);
	if ((atomic_load_explicit(connection->word, memory_order_relaxed) & WORD_BITS) != 0)
		rendezvous_rouse(connection);
}

#endif
