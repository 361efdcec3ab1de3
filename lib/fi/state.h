/* SPDX-License-Identifier: BSD-3-Clause */
/* state.h - the objects of the libfabric provider: what its files share.
 *
 *     provider.c    the entry point, and what the host is told of this front end
 *     info.c        fi_getinfo(): what is offered
 *     fabric.c      fabrics, domains, event queues
 *     av.c          addresses
 *     cq.c          completion queues
 *     counter.c     counters
 *     wait.c        waits for queues and counters, descriptors, fi_trywait()
 *     poll.c        poll sets
 *     endpoint.c    endpoints: open, bind, enable, close
 *     peer.c        processes that an endpoint talks to: greetings, lives
 *     pieces.c      the memory of a call
 *     message.c     sends, receives, peeks, cancel
 *     mr.c          memory regions
 *     rma.c         reads and writes of remote memory
 *     atomic.c      atomic operations
 *     none.c        operations that are not supported
 *
 * An endpoint is an interface with a process id of its own, FI_PROCESS + a number, and a space with
 * two-sided messages of two classes (messages/messages.h): tagged, and not tagged.
 *
 * F1. A completion that an operation may have has a place in its queue from the post on: else the
 *     post is refused with -FI_EAGAIN. So no queue is overrun.
 * F2. An error is a line like others, in the order of ends.
 * F3. A read that finds lines returns them and drives nothing; one that finds none drives once.
 * F4. All objects of a domain belong to the thread that has the domain's lock; without one if the
 *     program has promised FI_THREAD_DOMAIN. A thread that sleeps does not have it. An event queue
 *     has a lock of its own.
 * F5. An address is one life of an endpoint: it has the incarnation of its interface. A process
 *     that comes back has another address.
 *     It says where the port is as well, and the transport hears that when the endpoint first wants
 *     the peer: so nobody asks everybody where it is, and an address that is not used costs its
 *     place in the vector alone.
 * F6. What is cached of an address (its peer at an endpoint, a peer's index) is compared with the
 *     address before it is used, so nobody has to be told that an address was removed.
 */
#ifndef FI_STATE_H
#define FI_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include <base/lock.h>
#include <messages/greetings.h>
#include <wire/frame.h>

#define FI_PROCESS    UINT32_C(0x46000000)
#define CLASSES       2 /* of messages: tagged, and not */
#define INJECT_MAX    4096
#define MESSAGE_MAX   (UINT64_C(1) << 40)
#define IOV_MAX_PARTS 4
#define TX_SIZE       1024
#define RX_SIZE       16384
#define SIZE_LIMIT    65536 /* of either, if it is asked for */
#define REGIONS_MAX   16384 /* of a domain */

/* What a program asks for beside the kinds of messages. */
#define CAPS_MESSAGES (FI_MSG | FI_TAGGED)
#define CAPS_WAYS     (FI_SEND | FI_RECV)
#define CAPS_COMM     (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define CAPS_REMOTE   (FI_RMA | FI_ATOMIC)
#define CAPS_MOVES    (FI_READ | FI_WRITE)
#define CAPS_MOVED    (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define CAPS                                                                                       \
	(CAPS_MESSAGES | CAPS_WAYS | CAPS_COMM | CAPS_REMOTE | CAPS_MOVES | CAPS_MOVED |           \
		FI_RMA_EVENT | FI_FENCE | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE |           \
		FI_SOURCE_ERR | FI_AV_USER_ID)
#define ORDERS_RMA (FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW)
#define ORDERS_ATOMIC                                                                              \
	(FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)
#define ORDERS                                                                                     \
	(FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW | ORDERS_RMA | ORDERS_ATOMIC)
#define ORDERED_MAX 1024 /* bytes whose order is kept: they go in one frame */
/* Flags of operations that may stand in op_flags. */
#define LEVELS                                                                                     \
	(FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)
#define OP_FLAGS (FI_COMPLETION | FI_INJECT | FI_MORE | LEVELS)

#define RX_OP_FLAGS (FI_COMPLETION | FI_MORE | FI_MULTI_RECV)

extern struct fi_provider fi_postern;
extern struct front fi_front;

#define WARN(subsystem, ...) FI_WARN(&fi_postern, FI_LOG_##subsystem, __VA_ARGS__)

/* What a process is known by, as fi_getname() tells it. */
enum { ADDRESS_ETHERNET, ADDRESS_ETHERNET_UDP, ADDRESS_UDP, ADDRESS_NODE, ADDRESS_LOOP };
struct address {
	char magic[4]; /* "PSTN" */
	uint8_t version;
	uint8_t kind;
	uint16_t unused;
	uint32_t nid;
	uint32_t pid;
	uint32_t life; /* F5 */
	uint32_t
		/* which machine; over UDP: which ports. Only equal ones reach each other */
		locality;
	uint8_t port[FRAME_ADDRESS_BYTES]; /* the MAC address of its port, a hint; zeros: none */
	uint8_t rest[2];                   /* 0 */
};
#define ADDRESS_MAGIC   "PSTN"
#define ADDRESS_VERSION 2

/* A fabric or a domain that is open: fi_getinfo() gives it to programs that know its name alone. */
struct opened {
	struct link link;
	struct fid *fid;
	char name[];
};

struct fabric {
	struct fid_fabric fid;
	struct opened *opened;
	_Atomic uint32_t uses;
};

#define REGION_CHAINS_BITS 8
#define REGION_CHAINS      (1u << REGION_CHAINS_BITS)

struct domain {
	struct fid_domain fid;
	struct opened *opened;
	struct fabric *fabric;
	unsigned device;   /* number in PTL_IFACE_NAME */
	uint8_t kind;      /* ADDRESS_... */
	uint32_t locality; /* as in an address */
	uint32_t uses;
	struct link endpoints; /* that are enabled */
	/* regions: by a hash of their keys */
	struct link regions[REGION_CHAINS];
	uint32_t region_count;
	struct link counters; /* that regions are bound to */
	bool basic;    /* FI_MR_BASIC: the provider chooses keys, and offsets are addresses */
	struct eq *eq; /* of registrations; NULL: none */
	/* FI_PROGRESS_AUTO */
	bool automatic;
	pthread_t thread;
	_Atomic uint32_t stop;
	struct domain *next; /* closed */
	bool roused;         /* threads that sleep at endpoints are woken when the lock is given */
	bool locked;         /* F4 */
	/* last: it stays as it is when another domain gets the memory */
	struct lock lock;
};

/* NULL: there is none. */
struct eq {
	struct fid_eq fid;
	struct fabric *fabric;
	_Atomic uint32_t uses;
	enum fi_wait_obj object;
	int event; /* FI_WAIT_FD: an eventfd, readable while there are events; else -1 */
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	uint32_t waiting; /* threads in fi_eq_sread() */
	struct link events;
};

#define AV_NONE UINT32_MAX

struct av_entry {
	struct address address;
	fi_addr_t user;
	uint32_t next; /* of the same chain */
	bool used;
};

struct av {
	struct fid_av fid;
	struct domain *domain;
	struct eq *eq;
	bool events; /* FI_EVENT */
	uint32_t uses;
	struct av_entry *entries;
	uint32_t *chains; /* as many as entries */
	uint32_t count;   /* a power of two */
	uint32_t lowest;  /* no entry below is free */
};

/* What a line of an error has beside. */
struct failure {
	int err;
	size_t olen;
	bool has_address;
	struct address address; /* of a sender whom nobody has inserted */
};

struct line {
	struct fi_cq_tagged_entry entry; /* the other formats begin alike */
	fi_addr_t source;
	struct failure *failure; /* NULL: none */
};

/* What threads wait for: a completion queue, or a counter. */
struct notice {
	struct domain *domain;
	enum fi_wait_obj object;
	struct link bindings;     /* of endpoints, each once */
	_Atomic uint32_t changes; /* for threads that sleep */
	uint32_t blocked;
	/* FI_WAIT_FD, else -1: the program's descriptor, and what it consists of (wait.c) */
	int poll, event, timer;
	bool armed; /* the next change makes it readable */
};

struct cq {
	struct fid_cq fid;
	struct notice notice;
	uint32_t uses;
	size_t entry; /* bytes in the program's format */
	struct line *lines;
	uint32_t room; /* of lines, a power of two */
	/* of them at most: what the program has asked for, or, if that is more, what all endpoints
	 * may have under way */
	uint32_t least, bound;
	uint32_t head, tail;
	uint32_t promised;          /* F1 */
	struct address err_data;    /* of the last error that was read */
	uint32_t signals, answered; /* fi_cq_signal(): calls, and those that a wait ended with */
};

struct counter {
	struct fid_cntr fid;
	struct notice notice;
	uint32_t uses;
	uint64_t value, errors;
	uint64_t seen_value, seen_errors; /* as the program has read them */
	uint64_t ends;                    /* of operations, counted in either */
	uint64_t polled;                  /* `ends` when the program set the counter last */
	struct link link;                 /* of the domain's that regions are bound to */
};

/* An endpoint's place in a queue or a counter. */
struct binding {
	struct link link;
	struct endpoint *endpoint;
	int watches[3]; /* FI_WAIT_FD: the endpoint's parts of the descriptor; else -1 */
	struct cq *cq;  /* NULL: none */
	bool selective;
	struct counter *counter; /* NULL: none */
};

/* The place of an endpoint in a counter of regions. */
struct shared {
	struct binding binding; /* first */
	struct link link;       /* of the endpoint's */
};

/* What operations are counted as. */
enum {
	COUNT_SEND,
	COUNT_RECV,
	COUNT_READ,
	COUNT_WRITE,
	COUNT_REMOTE_READ,
	COUNT_REMOTE_WRITE,
	COUNTS
};

enum peer_state {
	PEER_FREE,
	PEER_NAMED,  /* it has a number here, and nothing was sent */
	PEER_ASKING, /* it does not know this endpoint yet */
	PEER_OPEN,
	PEER_LOST /* `err` says why */
};

struct peer {
	struct process process;
	uint32_t life;
	uint32_t index; /* F6: in the AV */
	uint32_t name;  /* of this endpoint at the peer */
	uint8_t state;  /* enum peer_state */
	bool wanted;    /* the program has named it */
	bool ending;    /* it was lost, and receives from it have not ended yet */
	bool named;     /* as operations_mark() has found */
	bool again;     /* another number of the same life of the process was lost before */
	int err;
	int failure;    /* of the greeting; 0: none */
	uint64_t begun; /* how many were admitted before */
	uint64_t token;
	uint64_t due, pause, since; /* ns: of the next greeting; of the first that was refused */
};

struct operation {
	struct transfer transfer; /* first: done() gets it */
	struct link link;         /* of those of the endpoint that are pending */
	struct endpoint *endpoint;
	void *context;
	void *buffer;
	uint64_t flags; /* of its completion */
	bool completes; /* FI_COMPLETION, or all do */
	bool quiet;     /* fi_inject(): an error is logged alone */
	uint32_t from;  /* of a receive from one peer; else PEER_ANY */
	/* NULL in one that is free */
	struct map_vector *vector;
	struct many *many; /* FI_MULTI_RECV; else NULL */
	uint32_t places;   /* of it: that were promised, */
	uint32_t parts;    /* and are left */
	void *copy;
	struct operation *next; /* free */
	struct operation *made; /* of all, the one before */
};

/* What a program has of an endpoint: it, or an alias of it (fi_ep_alias()). */
struct face {
	struct fid_ep fid; /* first */
	struct endpoint *endpoint;
	uint64_t tx_flags, rx_flags;
};

struct endpoint {
	struct face own; /* first */
	uint32_t aliases;
	struct domain *domain;
	struct av *av;
	struct eq *eq;
	struct binding tx, rx, counts[COUNTS];
	struct link shared; /* its places in counters of regions */
	uint64_t caps;
	uint32_t tx_size, rx_size;
	uint32_t atomic_max; /* bytes of an atomic operation; less if frames are small */
	bool ordered;        /* it promises orders of operations on remote memory */
	bool enabled, closing;
	struct link link; /* of the domain's */
	uint64_t interface;
	struct messages *messages;
	struct remote *remote; /* remote.h; NULL: there is no FI_RMA */
	struct address self;
	/* peer.c */
	struct peer *peers;
	uint32_t peer_count, peers_max;
	uint64_t peers_begun;
	uint32_t *ranks; /* by index in the AV: a peer + 1; 0: none */
	uint32_t rank_count;
	uint32_t *told; /* by index: the life of which the transport knows the port (F5) */
	uint32_t told_count;
	uint32_t asking, ending; /* peers */
	bool joined;             /* a peer has come to know this endpoint */
	struct greetings greetings;
	uint64_t tokens;
	uint32_t looks; /* calls since the clock was looked at; 0: it is time, as behind a sleep */
	/* message.c */
	struct operation *free, *made;
	struct link pending;
	uint32_t sending, receiving;
	uint32_t directed; /* of `receiving`, those that name a peer */
	size_t least;      /* FI_OPT_MIN_MULTI_RECV */
	uint32_t sleepers; /* threads that wait for a queue or a counter, and sleep here */
	bool roused;       /* they are to wake */
};

#define object_of(pointer, type) ((type *)(void *)(pointer))
#define face_of(pointer)         object_of(pointer, struct face)
#define endpoint_of(pointer)     (face_of(pointer)->endpoint)
/* The flags of calls that have none of their own. */
#define TX_FLAGS(ep) (face_of(ep)->tx_flags)
#define RX_FLAGS(ep) (face_of(ep)->rx_flags)

static inline void domain_enter(struct domain *domain)
{
	if (domain->locked)
		lock_take(&domain->lock);
}
/* Wakes threads that sleep for what has changed, under the lock: what is roused is there. */
void domain_rouse(struct domain *domain);
/* Gives the lock, and wakes threads that sleep for what has changed. */
static inline void domain_leave(struct domain *domain)
{
	if (domain->roused)
		domain_rouse(domain);
	if (domain->locked)
		lock_give(&domain->lock);
}

/* --- provider.c */

/* FI_POSTERN_PEERS: how many peers an endpoint may have. */
uint32_t peers_wanted(void);

/* --- none.c: -FI_ENOSYS, alone or beside what others do */

extern struct fi_ops_rma none_rma;
extern struct fi_ops_atomic none_atomic;
extern struct fi_ops_collective none_collective;
extern struct fi_ops_mr none_mr;
extern struct fi_ops_tagged none_tagged;
extern struct fi_ops_msg none_msg;
extern struct fi_ops_domain domain_ops;
extern struct fi_ops_fabric fabric_ops;
extern struct fi_ops_cm cm_ops;
extern struct fi_ops_ep ep_ops;
int none_bind(struct fid *fid, struct fid *bound, uint64_t flags);
int none_control(struct fid *fid, int command, void *argument);
int none_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);
int none_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context);
/* What an object's fid can do beside close(). */
#define FID_OPS(closes, binds, controls)                                                           \
	{                                                                                          \
		.size = sizeof(struct fi_ops), .close = (closes), .bind = (binds),                 \
		.control = (controls), .ops_open = none_ops_open, .ops_set = none_ops_set          \
	}

/* --- info.c */

int info_get(uint32_t version, const char *node, const char *service, uint64_t flags,
	const struct fi_info *hints, struct fi_info **info);
/* The number in PTL_IFACE_NAME of a domain's name. Returns false if it has none. */
bool info_device(const char *name, unsigned *device, uint8_t *kind);

/* --- fabric.c */

int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
int domain_open(
	struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, void *context);
int eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq, void *context);
/* The first open fabric (FI_CLASS_FABRIC) or domain (FI_CLASS_DOMAIN) of a name; NULL: there is
 * none. wanted: only this one; NULL: any. */
void *opened_find(size_t class, const char *name, const void *wanted);
/* In a child made by fork(): no thread has a lock of a domain, or sleeps at an endpoint. */
void domains_forget(void);
/* Puts an event or, with err, an error into a queue. */
int eq_post(struct eq *eq, uint32_t event, const void *data, size_t size, int err);
int eq_arm(struct eq *eq); /* fi_trywait() */

/* For fi_eq_strerror() and fi_cq_strerror(): buffer may be NULL. */
const char *error_text(int number, char *buffer, size_t length);

/* --- av.c */

int av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context);
/* As much of an address as there is room for, *length; then that is its own. to: NULL: no room. */
void address_give(const struct address *address, void *to, size_t *length);
/* NULL: there is no such address. */
static inline const struct av_entry *av_at(const struct av *av, fi_addr_t index)
{
	return index < av->count && av->entries[index].used ? &av->entries[index] : NULL;
}
/* F6: the index of an address, if `index` is not it. AV_NONE: it was not inserted. */
uint32_t av_find(const struct av *av, struct process process, uint32_t life, uint32_t index);

/* --- wait.c: the domain's lock is held */

/* notice_rouse() where a thread or a descriptor waits. */
void notice_wake(struct notice *notice);
/* Threads that sleep look once more. All who write `changes` have the lock. */
static inline void notice_rouse(struct notice *notice)
{
	const uint32_t changes = atomic_load_explicit(&notice->changes, memory_order_relaxed) + 1;

	atomic_store_explicit(&notice->changes, changes, memory_order_release);
	if (notice->armed || notice->blocked != 0)
		notice_wake(notice);
}
/* Does a thread sleep until it is told of a change? None does in a child made by fork(). */
static inline bool notice_is_awaited(const struct notice *notice)
{
	return notice->blocked != 0 && !library_is_forked();
}
bool wait_is_offered(enum fi_wait_obj object);
/* Returns false if there are no descriptors. */
bool notice_open(struct notice *notice, struct domain *domain, enum fi_wait_obj object);
void notice_close(struct notice *notice);
/* From now on reads drive the endpoint. Returns false if there is no descriptor. */
bool notice_join(struct notice *notice, struct binding *binding);
void notice_part(struct binding *binding);
void notice_drive(const struct notice *notice);
/* Sleeps, without the domain's lock, until something may have come, or for so many ns. */
void notice_sleep(struct notice *notice, uint64_t left);
/* Do only the program's calls make progress? */
bool endpoint_is_inline(const struct endpoint *endpoint);
/* Nothing was found: from now on the descriptor becomes readable. -FI_EAGAIN: there is something
 * by now. */
int notice_arm(struct notice *notice);
int notice_control(const struct notice *notice, int command, void *argument);
int wait_try(struct fid_fabric *fabric, struct fid **fids, int count);

/* --- cq.c */

int cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context);
/* cq_promise() where the ring is to grow, or is full. */
bool cq_promise_late(struct cq *cq);
/* How many lines and promises there may be together. */
static inline uint32_t cq_most(const struct cq *cq)
{
	return cq->bound > cq->least ? cq->bound : cq->least;
}
/* Is there a place without more memory? */
static inline bool cq_has_room(const struct cq *cq)
{
	const uint32_t used = cq->tail - cq->head + cq->promised;

	return used < cq->room && used < cq_most(cq);
}
/* F1. Returns false if there is no place. */
static inline bool cq_promise(struct cq *cq)
{
	if (!cq_has_room(cq))
		return cq_promise_late(cq);
	cq->promised++;
	return true;
}
/* The same for a completion that no operation of this program has, beside all that was promised, as
 * long as the program has fewer unread than the queue is to have places. */
bool cq_stretch(struct cq *cq);
/* F1 for all messages of a receive for many, and for its own completion, which come beside what is
 * promised otherwise. Then those that have not come are given back. */
bool cq_promise_many(struct cq *cq, uint32_t count);
void cq_release_many(struct cq *cq, uint32_t count, uint32_t left);
/* The place of the next line. The owner of a promise may write it; the program sees it when it is
 * told. */
static inline struct line *cq_place(struct cq *cq)
{
	return &cq->lines[cq->tail & (cq->room - 1)];
}
/* There is to be no promised completion. */
static inline void cq_release(struct cq *cq)
{
	cq->promised--;
}
/* The promised completion stands in its place: it is told. */
static inline void cq_tell(struct cq *cq)
{
	cq->promised--;
	cq->tail++;
	notice_rouse(&cq->notice);
}
/* The same, as an error, if there is memory. */
void cq_error(struct cq *cq, const struct failure *failure);
/* The promised completion of an operation that has ended well, of which the program may not want
 * to hear. */
static inline void cq_end(struct cq *cq, bool completes)
{
	if (completes)
		cq_tell(cq);
	else
		cq_release(cq);
}
int cq_arm(struct cq *cq); /* fi_trywait() */
static inline bool cq_is_empty(const struct cq *cq)
{
	return cq->head == cq->tail;
}

/* --- counter.c */

int counter_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **counter,
	void *context);
/* So many operations have ended, well and in errors. NULL: nobody counts. */
void counter_grow(struct counter *counter, uint64_t values, uint64_t errors);
static inline void counter_ended(struct counter *counter, bool failed)
{
	if (counter)
		counter_grow(counter, !failed, failed);
}

int counter_arm(struct counter *counter); /* fi_trywait() */
/* A region is bound to a counter: reads of it drive all endpoints that count accesses to regions.
 * Returns false if there are no descriptors or no memory. */
bool counter_share(struct counter *counter);
/* The same for an endpoint that comes later; and one goes. */
bool counters_join(struct endpoint *endpoint);
void counters_part(struct endpoint *endpoint);

/* --- poll.c */

int poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **poll);

/* --- endpoint.c */

int endpoint_open(
	struct fid_domain *domain, struct fi_info *info, struct fid_ep **endpoint, void *context);
int endpoint_getopt(struct fid *fid, int level, int name, void *value, size_t *length);
int endpoint_setopt(struct fid *fid, int level, int name, const void *value, size_t length);
int endpoint_getname(fid_t fid, void *address, size_t *length);
void endpoint_progress(struct endpoint *endpoint);
void binding_init(struct binding *binding, struct endpoint *endpoint);
/* Does it count what peers do to its regions? */
static inline bool endpoint_tallies(const struct endpoint *endpoint)
{
	return endpoint->remote && endpoint->caps & FI_RMA_EVENT;
}
/* FI_FENCE: has all ended that was posted to the process of an address? Makes progress if not. The
 * fenced operation is refused until then (-FI_EAGAIN), so nothing that follows it overtakes. */
bool endpoint_is_clear(struct endpoint *endpoint, fi_addr_t address);

/* --- peer.c */

bool peers_open(struct endpoint *endpoint);
void peers_close(struct endpoint *endpoint);
void peers_progress(struct endpoint *endpoint);
/* The peer of an address, which is admitted if it was unknown, and greeted if something is to be
 * sent. 0 or a negative error. */
int peer_of(struct endpoint *endpoint, fi_addr_t address, bool greet, uint32_t *peer);
/* Sets the peer of a receive or a search that names an address. waits: it is a receive. 0 or a
 * negative error. */
int peer_from(struct endpoint *endpoint, fi_addr_t address, bool waits, struct receive_wish *wish);
/* The transport hears where the port of an entry of the vector is, once. */
void peer_tell(struct endpoint *endpoint, fi_addr_t index, const struct address *address);
/* The index of a peer in the AV, AV_NONE: it was not inserted. */
uint32_t peer_index(struct endpoint *endpoint, uint32_t peer);
struct address peer_address(const struct endpoint *endpoint, uint32_t peer);
/* Callbacks of messages. */
void peer_failed(void *owner, uint32_t peer, const char *why);
bool peer_greeted(void *owner, struct process from, const struct greeting *greeting);
void peer_answered(void *owner, struct greeting *greeting, enum greeting_result result);

/* --- pieces.c */

/* One piece, in what a call asks for. */
#define ONE_PIECE(buffer, length)                                                                  \
	.iov = &(const struct iovec){(void *)(uintptr_t)(buffer), length}, .count = 1
/* How long they are together. 0 or a negative error. */
int pieces_measure(const struct iovec *iov, size_t count, uint64_t *length);
/* A vector of them; NULL: there is no memory. */
struct map_vector *pieces_copy(const struct iovec *iov, size_t count);
/* Puts their data into one place. */
void pieces_gather(const struct iovec *iov, size_t count, void *to);

/* --- message.c */

extern struct fi_ops_msg message_ops;
extern struct fi_ops_tagged tagged_ops;
ssize_t message_cancel(fid_t fid, void *context);
void message_done(void *owner, struct transfer *transfer);
void message_part(void *owner, struct transfer *many, const struct transfer *message);
/* Ends receives from a peer that is gone. */
void messages_end_from(struct endpoint *endpoint, uint32_t peer);
void operations_close(struct endpoint *endpoint);
/* Marks the peers to which a send, or from which alone a receive, is under way. */
void operations_mark(struct endpoint *endpoint);
/* Does a send to the process wait for its end? */
bool messages_owe(const struct endpoint *endpoint, struct process to);

#endif
