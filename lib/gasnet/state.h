/* SPDX-License-Identifier: BSD-3-Clause */
/* state.h - the state of GASNet in a process, and what its files offer each other.
 *
 * This part stands on portals4.h and portals4/pmi.h alone. With GASNET_SEQ the locks are nothing.
 * GASNET_PAR and GASNET_PARSYNC differ by a name, and in library.c alone: the other objects of
 * PARSYNC's library are PAR's.
 *
 * G1. A request needs credits: one, or two if it is a long that goes as two messages. A rank has
 *     `share` credits at each other rank. All shares together fit the target's event queue and its
 *     blocks (share_reckon()), so a request is sent only where there is room.
 * G2. With each credit the requester keeps two entries of its own queue, and room for a packed
 *     message, for the reply. So a reply never waits for room. A reply returns its request's
 *     credits. The target counts those of requests without a reply, and writes the sum into
 *     `released` of the requester whenever it has grown by half a share.
 * G3. Therefore the portals are never disabled, nothing is acknowledged and nothing is sent twice.
 *     A disabled portal or a lost event is an error of this library: the job ends.
 * G4. A handler runs without a lock of the library. Its request's credits are returned after it.
 * G5. No block of messages is held by a handler that another thread's poll could meet: PAR copies
 *     payloads out under the poll lock; in SEQ the block's unlink event comes after the handler.
 * G6. Nobody's progress depends on a queue that nobody reads: a thread that waits for room polls
 *     `receive`, which runs handlers; a reply, which may not, waits for SEND events alone, which
 *     need the peer's Portals and not its program.
 *
 * G7. A rank may read all memory of another, and write into its segment: the ranks of a job trust
 *     each other. Every entry is for this process's user alone, so nobody else's process that has
 *     got the process id of a rank which has ended is taken for the rank.
 *
 * segments.c has P1, rings.c R1 to R4, transfer.c T1 to T3, phases.c B1 to B3, collective.c C1 and
 * C2, exit.c E1 and E2.
 *
 * No lock is taken while another one is held.
 */
#ifndef GASNET_STATE_H
#define GASNET_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <portals4.h>

#include <gasnet.h>

/* --- locks */

#ifdef GASNET_SEQ
typedef char lock_type;
#define LOCK(name)      static char name __attribute__((unused))
#define lock_make(name) ((void)(name))
#define lock(name)      ((void)(name))
#define unlock(name)    ((void)(name))
#else
typedef pthread_mutex_t lock_type;
#define LOCK(name)      static pthread_mutex_t name = PTHREAD_MUTEX_INITIALIZER
#define lock_make(name) ((void)pthread_mutex_init(&(name), NULL))
#define lock(name)      ((void)pthread_mutex_lock(&(name)))
#define unlock(name)    ((void)pthread_mutex_unlock(&(name)))
#endif

#ifdef GASNET_SEQ
#define PER_THREAD
#else
#define PER_THREAD __thread
#endif

/* --- messages */

#define ARGUMENTS_MAX 16u
#define MEDIUM_MAX    2048u
#define MESSAGE_MAX   2112u /* bytes of a message: 16 arguments and a medium's payload */
#define SMALL_MAX     64u   /* what goes without a slot: all short messages */
#define LONG_MAX      ((size_t)1 << 30)
#define PAYLOAD_ALIGN 16u

enum portal {
	PORTAL_ANYWHERE = 3,
	PORTAL_EXIT = 4,
	PORTAL_SHARES = 5,
	PORTAL_BARRIER = 6,
	PORTAL_MESSAGES = 7,
	PORTAL_DATA = 8,
	PORTAL_TRANSFERS = 9
};

/* As gasnet.h numbers them, and LONG_PACKED: a long whose data come with its arguments. */
enum kind { KIND_SHORT, KIND_MEDIUM, KIND_LONG, KIND_LONG_PACKED };

/* A message as its handler gets it. */
struct message {
	uint32_t from;
	uint8_t kind, handler, count;
	bool request, ring; /* ring: it came by a ring */
	uint8_t credits;    /* of the request; of a reply: of the request that it answers */
	int32_t arguments[ARGUMENTS_MAX];
	void *payload;
	size_t length;
	uint8_t bytes[MEDIUM_MAX] __attribute__((aligned(PAYLOAD_ALIGN)));
};

/* What a gasnet_token_t points to, while the handler runs. */
struct token {
	uint32_t from;
	uint8_t credits;
	bool request, replied;
};

/* Numbers of 64 bits as two arguments. */
#define HALVES(number)                                                                             \
	(gasnet_handlerarg_t)((uint64_t)(number) >> 32), (gasnet_handlerarg_t)(uint64_t)(number)
static inline uint64_t joined(gasnet_handlerarg_t high, gasnet_handlerarg_t low)
{
	return (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
}

/* --- the process */

enum stage { STAGE_NONE, STAGE_JOINED, STAGE_ATTACHED };

struct rank {
	void *address; /* of the segment */
	uintptr_t size;
	uintptr_t limit; /* of its size */
	uint32_t host;
	uint8_t *shared; /* of a neighbour: where this process has mapped it, or NULL */
};

struct gasnet {
	enum stage stage;
	uint32_t rank, size;
	int segment_kind;
	ptl_handle_ni_t ni;
	ptl_uid_t uid;                  /* the user whose processes may use this one's entries */
	ptl_handle_eq_t receive;        /* all that comes */
	ptl_handle_eq_t sent;           /* SEND events of slots and of data, and all failures */
	ptl_handle_eq_t transfers;      /* ACK and REPLY events of puts and gets */
	ptl_handle_md_t small;          /* the data are free at once; only failures have events */
	ptl_handle_md_t counted;        /* each message has a SEND event */
	ptl_handle_md_t transfer;       /* one event in `transfers` for each operation */
	ptl_handle_md_t transfer_small; /* the same, and the data are free at once */
	ptl_handle_md_t quiet;          /* no event at all */
	struct rank *ranks;             /* of all ranks */
	uintptr_t limit_least;          /* of all ranks' */
	uint32_t share;
	uint64_t transfer_most;             /* entries of `transfers` */
	uint64_t queue, blocks, block_size; /* the environment's, or what the job needs */
	uint64_t segment_most;
	bool shares;                 /* memory, with ranks of the host */
	double exit_wait;            /* s */
	bool freezes, traces, syncs; /* GASNET_FREEZE_ON_ERROR, _BACKTRACE, _FS_SYNC */
	int wait_mode;
	bool debug; /* the program was compiled with GASNET_DEBUG */
};

extern struct gasnet gasnet;

/* library.c */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Ends the job after a line. */
void fatal(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* A call of Portals that cannot fail, unless the library is wrong or a limit is too small. */
#define must(call) must_be((call), #call)
void must_be(int code, const char *call);
/* The function of a handler, which is registered. */
void (*handler_find(unsigned index, uint32_t from))(void);

/* With GASNET_DEBUG, ends the job if a handler makes this call, or a thread that holds a lock. */
void call_refuse(const char *call, bool handlers_may);
static inline void call_look(const char *call)
{
	if (__builtin_expect(gasnet.debug, 0))
		call_refuse(call, false);
}
extern PER_THREAD unsigned handlers_run, locks_held; /* by this thread, with GASNET_DEBUG */

/* variables.c */
void environment_read(void);
uint64_t environment_number(const char *name, uint64_t fallback, bool size);
/* Whether a variable that lists signals, with SIG or without, names this one, or "*". */
bool environment_lists(const char *name, const char *signal);
/* Stops the process, for a debugger, until SIGCONT. */
void freeze(void);
void backtrace_write(void);

/* start.c. Returns false after a line on standard error. */
bool start_join(void);
/* Tells all ranks this one's segment and learns theirs; a barrier. */
bool start_exchange(const char *configuration);
uint64_t share_reckon(uint64_t queue, uint64_t blocks, uint64_t size, uint32_t ranks);

/* segments.c */
/* Bytes that the host or this process's control group has. */
uint64_t segment_memory(void);
void segment_limits(uint64_t memory[], uint64_t most[]);
bool segment_make(uintptr_t size, uintptr_t heap_distance);
/* Maps the segment of that name, if it is a neighbour's and the system lets this process. */
void segment_share(uint32_t rank, const char *name);
/* Memory that neighbours can map (P1). */
#define SHARED_NAME 64u
struct shared {
	const char *kind; /* a word of its file's text */
	int file;         /* -1: none */
	uint64_t chance;  /* a part of its file's text */
};
extern struct shared segment_shared;
/* MAP_FAILED if it cannot be shared, or there is no neighbour. */
void *shared_take(struct shared *shared, uintptr_t size);
/* A word by which neighbours find it. */
void shared_name(const struct shared *shared, char name[SHARED_NAME]);
/* Maps memory of that kind, name and size. MAP_FAILED if the system refuses it. */
void *shared_map(const char *kind, const char *name, uintptr_t size);
/* Another rank on this one's host. */
bool is_neighbour(uint32_t rank);
/* Where this process has memory of a rank's segment: its own, or a neighbour's; NULL: nowhere. */
void *near(uint32_t rank, const void *address);
bool segment_has(uint32_t rank, const void *address, size_t length);
/* Ends the job if the range is not in that rank's segment. */
void segment_check(const char *what, uint32_t rank, const void *address, size_t length);

/* send.c */
void send_open(void);
/* Takes what SEND events there are; returns whether there was any. */
bool sent_collect(void);
/* One event of `sent`. */
void sent_take(const ptl_event_t *event);
/* The credits of a request come back: by its reply, or by the target's count. */
void share_return(uint32_t rank, unsigned credits);
/* A request of that rank was handled without a reply. */
void share_release(uint32_t rank, unsigned credits);

/* rings.c */
extern struct shared rings_shared;
void rings_open(void);
/* Rings to a neighbour whose memory has that name, if the system lets this process. */
void ring_share(uint32_t rank, const char *name);
/* Whether messages to that rank may go by a ring. */
bool ring_is_open(uint32_t rank);
/* Returns false if the ring has no room now, or was closed. copied: a long's data are in place. */
struct outgoing;
bool ring_put(const struct outgoing *out, bool copied);
/* Places of that rank's requests that its rings' reader has released. */
uint64_t ring_released(uint32_t rank);
void ring_release(uint32_t rank, unsigned credits);
/* Whether there is a message. */
bool rings_ready(void);
/* Under the poll lock: takes a message; in SEQ its payload stays until rings_done(). */
bool rings_take(struct message *message);
void rings_done(void);
/* This rank begins to sleep, or has ended. */
void rings_sleep(bool asleep);

/* receive.c */
void receive_open(void);
/* Handles what has come; returns whether there was anything. Not in handlers. */
bool receive_poll(void);
/* Sleeps until something comes, or for a millisecond. */
void receive_sleep(void);
/* Ends the job: no library of this release sends what has come. */
_Noreturn void nonsense(uint32_t from);
/* One turn of a wait: polls, spins or sleeps as the wait mode says. tries: 0 at first. */
void wait_turn(unsigned *tries);

/* transfer.c */
void transfer_open(void);
/* One event of `transfers`. */
void transfer_take(const ptl_event_t *event);
/* The library's own handlers of that index, or NULL. */
void (*transfer_handler(unsigned index))(void);
void (*collective_handler(unsigned index))(void);
/* What operations belong to: see transfer.c. */
typedef struct gasnet_postern_handle group;
group *group_take(void);
/* A group that is over has no handle. */
gasnet_handle_t group_handle(group *one);
/* That implicit operations of this thread belong to. */
group *group_now(void);
/* Begin a put, whose source must stay, or a get. */
void put_add(group *one, uint32_t rank, void *to, const void *from, size_t length);
void get_add(group *one, void *to, uint32_t rank, const void *from, size_t length);
/* The same from any memory of another rank. */
void get_anywhere(group *one, void *to, uint32_t rank, const void *from, size_t length);

/* collective.c */
void collective_open(void);

/* dispatch.c */
void message_handle(struct message *message);
void message_run(void (*function)(void), const struct message *message, struct token *token);

/* phases.c */
void barrier_open(void);

/* exit.c */
void exit_catch(void); /* signals, and the end of main */
void exit_open(void);
/* Never returns if a thread is in gasnet_exit(), which has closed Portals perhaps. */
void exit_await(void);
/* Leaves if another rank has called gasnet_exit(). */
extern volatile uint64_t exit_word;
void exit_follow(void);
static inline void exit_look(void)
{
	if (__builtin_expect(exit_word != 0, 0))
		exit_follow();
}

#endif
