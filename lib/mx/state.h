/* SPDX-License-Identifier: BSD-3-Clause */
/* state.h - endpoints, sessions and requests: what the files of the core share.
 *
 *     endpoint.c     opens, closes, enters and leaves; progress; threads that block
 *     session.c      peers: connects, greetings, addresses and their contexts
 *     request.c      sends, receives, cancel, forget
 *     completion.c   test, wait, peek, probe
 *     handler.c      the unexpected handler
 *     service.c      answers while the program makes no calls
 *
 * An endpoint is an interface with a process id of its own, MX_PROCESS + id, on its board's device,
 * and a space with two-sided messages (messages/messages.h). Who is there under an endpoint id, and
 * that each id is open once on a card, is therefore the port's and the transport's business.
 *
 * X1. Everything of an endpoint but its atomics belongs to the thread that has its lock. A thread
 *     that blocks does not have it. The lock is held in no call of the program's.
 * X2. Endpoints are places of a table that is never freed, with a generation: any pointer and any
 *     bits of an address can be checked.
 * X3. A session is one opening of a peer, and has the number (rank) of its own that lib/messages
 *     gives it (M8). An address has the number's name, and is of that session for good, also when
 *     the number is another session's. A contact is a peer by NIC and endpoint id: it survives
 *     sessions, and has the address context.
 * X4. A request that has ended is in a list in the order of ends until it is given back: in
 *     `searched`, or behind all of those in `ended`, a plain list, which costs little. A search
 *     moves those in `ended` to `searched` first. That is a list of match/kept.h, so a search does
 *     not grow with the requests that it is not about; a request's slot in the table is its number.
 *     A request that was forgotten is in neither.
 * X5. A thread blocks until the endpoint's `changes` is not what it was under the lock. Whoever
 *     ends a request, or wakes, changes it before it wakes the others.
 * X6. A request with a deadline has a timer until it is given back. If it has not ended when that
 *     is due, it is looked at, and again a little later if it cannot be ended yet. If it fails
 *     after its deadline, however seldom the program has called, the deadline is why.
 * X7. A thread counts itself `inside` when it has got the lock and found the endpoint open, and
 *     leaves with the lock. Who closes says first that the endpoint is not open, and then waits
 *     until no other thread is inside.
 */
#ifndef MX_STATE_H
#define MX_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <base/lock.h>
#include <match/kept.h>
#include <messages/greetings.h>
#include <mx/library.h>
#include <mx_extensions.h>
#include <transport/wheel.h>

#define MX_PROCESS   UINT32_C(0x4d580000)
#define SESSIONS_MAX 1024
#define MEMORY_LEAST (UINT64_C(32) << 20) /* what sessions have for certain is less */
#define SESSION_NONE UINT32_MAX

/* A peer. */
struct contact {
	uint32_t nid, id;
	uint32_t session; /* the last one; SESSION_NONE */
	bool wanted;      /* the program has connected to it */
	void *context;
};

enum session_state {
	SESSION_FREE,
	SESSION_ASKING, /* its number is not known yet */
	SESSION_OPEN,
	SESSION_LOST /* `code` says how */
};

struct session {
	mx_endpoint_addr_t address;
	uint32_t name;   /* of its number: messages_name() */
	uint32_t number; /* the peer's */
	uint32_t rank;   /* name of this endpoint at the peer */
	uint32_t contact;
	uint64_t token;        /* of the first connect that has asked for it; 0: none */
	uint8_t state;         /* enum session_state */
	mx_status_code_t code; /* of sends to it from now on */
	uint64_t begun;        /* how many sessions of the endpoint began before */
	struct link lost;      /* of those, in the order of their ends */
};

enum request_kind { REQUEST_FREE, REQUEST_SEND, REQUEST_RECEIVE, REQUEST_CONNECT };

/* What each message touches is in as few cache lines as can be: in a window they would not all stay
 * in the first cache. */
struct request {
	_Alignas(64) struct transfer transfer; /* first: messages' done() gets it */
	struct mx_endpoint *endpoint;
	uint8_t kind; /* enum request_kind */
	bool done;
	bool forgotten;
	bool owned;         /* by a call that waits for it: it comes into no list */
	bool searched;      /* it is in the list of that name: X4 */
	bool refused;       /* REQUEST_CONNECT: the peer is not ready */
	bool denied;        /* the same: the peer is another user's */
	bool limited;       /* the same: a timeout of mx_connect() ends it */
	uint64_t handle;    /* what a program knows it by: REQUEST_SLOT_AT */
	mx_status_t status; /* when it is done; its match_info is what request_ended() goes by */
	struct map_vector *vector;
	struct link link;     /* of ended, X4; a REQUEST_CONNECT that is pending: of connects */
	struct timer timer;   /* X6 */
	struct request *next; /* free */
	uint64_t deadline;    /* ns */
	uint64_t token;       /* REQUEST_CONNECT, as what follows: names it to the peer */
	uint64_t due;         /* when it is asked again, ns */
	uint64_t end;         /* when it fails, ns */
	uint32_t filter;
	uint32_t contact; /* while it is pending: its number */
};
static_assert(offsetof(struct request, deadline) == sizeof(struct transfer) + 128,
	"of MX's part each message touches two lines");

#define REQUEST_BATCHES            20u /* each is twice as long as the one before: 268 million */
#define REQUEST_BATCH_BITS         8   /* of the number of requests in the first batch */
#define REQUEST_BATCH_BYTES(batch) (sizeof(struct request) << (REQUEST_BATCH_BITS + (batch)))
/* A handle has, from its lowest bit on: the number of the request among all of the endpoint's, the
 * endpoint's slot, which is never 0, and a generation: a handle that is stale has another one. */
#define REQUEST_SLOT_AT       32
#define REQUEST_GENERATION_AT 40
static_assert(ENDPOINTS_MAX < 1 << (REQUEST_GENERATION_AT - REQUEST_SLOT_AT), "a slot has room");
static_assert(sizeof(mx_request_t) == sizeof(uint64_t), "a handle has room for all of them");

struct mx_endpoint {
	_Alignas(1024) _Atomic bool open;
	uint32_t slot; /* in the table, from 1 */
	_Atomic uint32_t generation;
	_Atomic uint32_t changes; /* X5 */
	struct lock lock;
	mx_error_handler_t handler;
	uint32_t board, id, filter, number; /* number: of the session */
	struct process self;
	uint64_t interface;
	struct messages *messages;
	struct contact *contacts;
	struct session *sessions;
	uint32_t contact_count, session_count; /* that were ever used */
	uint64_t sessions_begun;
	struct link lost;  /* sessions, oldest first */
	uint32_t reviewed; /* session that was looked at last, see sessions_review() */
	struct request *free;
	struct request *batches[REQUEST_BATCHES]; /* from the first one on; the others NULL */
	uint32_t request_count;                   /* free ones among them */
	struct link ended;                        /* X4, as the next two */
	struct kept_list searched;
	struct kept_table requests;
	uint8_t context_bits, context_shift;
	struct link connects;     /* pending */
	struct wheel *timers;     /* X6 */
	uint32_t timed;           /* requests in it */
	uint64_t request_timeout; /* of requests that are posted, ns; 0: without end */
	struct greetings greetings;
	uint64_t tokens;
	uint32_t inside;  /* X7 */
	uint32_t blocked; /* threads */
	uint32_t probers; /* of them, in mx_probe() */
	bool crowded;     /* there were several at a time, and have not all left */
	uint32_t wakeups; /* ever */
	uint32_t looks;   /* until the next messages_review() */
	bool wake;        /* threads that block have a reason to look: a request has ended */
	bool closing;
	bool taken; /* the slot is an endpoint's; under the lock of opening and closing */
	/* handler.c */
	mx_unexp_handler_t unexpected; /* NULL: there is none */
	void *unexpected_context;
	bool halted;              /* it is not to be called */
	bool handling;            /* it runs, */
	pthread_t handler_thread; /* in this thread */
	uint32_t awaiting;        /* threads that sleep until it does not run, ... */
	_Atomic uint32_t handled; /* ... on this futex word */
};

/* --- endpoint.c */

extern struct mx_endpoint endpoints[ENDPOINTS_MAX];
static_assert((sizeof(endpoints[0]) & (sizeof(endpoints[0]) - 1)) == 0,
	"a power of two of bytes apart, which makes an address cheap to check");

/* X2. */
static inline bool endpoint_is_one(const struct mx_endpoint *endpoint)
{
	uintptr_t offset = (uintptr_t)endpoint - (uintptr_t)endpoints;

	return offset < sizeof(endpoints) && offset % sizeof(endpoints[0]) == 0;
}

/* X7. */
static inline bool endpoint_hold(struct mx_endpoint *endpoint)
{
	if (!endpoint_is_one(endpoint) || !atomic_load(&endpoint->open))
		return false;
	lock_take(&endpoint->lock);
	if (atomic_load_explicit(&endpoint->open, memory_order_relaxed)) {
		endpoint->inside++;
		return true;
	}
	lock_give(&endpoint->lock);
	return false;
}

/* The endpoint is not open. Returns false with the call's result. */
bool endpoint_raise_closed(
	const struct mx_endpoint *endpoint, const char *function, mx_return_t *code);
/* A call begins: the endpoint is open and its lock is held. Returns false if it is not; then *code
 * is the call's result. */
static inline bool endpoint_enter(
	struct mx_endpoint *endpoint, const char *function, mx_return_t *code)
{
	return endpoint_hold(endpoint) || endpoint_raise_closed(endpoint, function, code);
}

/* The same for a call that blocks, which is none for the handler. */
bool endpoint_enter_blocking(struct mx_endpoint *endpoint, const char *function, mx_return_t *code);
/* Lets go of the lock, and wakes threads that block if they have a reason to look. */
void endpoint_unlock(struct mx_endpoint *endpoint);
/* Wakes threads that block. The lock is let go meanwhile. */
void endpoint_rouse(struct mx_endpoint *endpoint);
/* Threads that block have a reason to look. One that begins to block later looks first. */
static inline void endpoint_wake(struct mx_endpoint *endpoint)
{
	endpoint->wake = endpoint->blocked != 0;
}

/* A call ends. Wakes threads that block if they have a reason to look. Returns MX_SUCCESS; a call
 * that has failed ends with endpoint_fail(). */
static inline mx_return_t endpoint_leave(struct mx_endpoint *endpoint)
{
	/* What is roused must be there until then. */
	if (endpoint->wake)
		endpoint_rouse(endpoint);
	endpoint->inside--;
	lock_give(&endpoint->lock);
	return MX_SUCCESS;
}

/* Leaves, and raises. */
mx_return_t endpoint_fail(
	struct mx_endpoint *endpoint, mx_return_t code, const char *function, const char *text);
/* What a function that is not supported returns: MX_FAILURE. */
mx_return_t endpoint_refuse(struct mx_endpoint *endpoint, const char *function, const char *text);
/* Blocks until found(context), called under the lock, returns true; milliseconds: or MX_INFINITE.
 * nap: ns at most between two looks; 0: what found() looks at wakes. Returns false when the time is
 * over, or if the endpoint was woken or closes. */
bool endpoint_block(struct mx_endpoint *endpoint, bool (*found)(void *context), void *context,
	uint32_t milliseconds, uint64_t nap);
/* A length as MX tells it: a peer may announce any. */
static inline uint32_t length_told(uint64_t bytes)
{
	return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

/* NULL: there is no such slot. */
struct mx_endpoint *endpoint_at(unsigned slot);
/* Does what peers wait for, unless a call has the endpoint. Is a connect of its pending? */
bool endpoint_serve(struct mx_endpoint *endpoint);

/* --- service.c */

/* An endpoint has been opened, is to be closed: under the lock of both. */
void service_begin(void);
void service_end(void);
/* A connect begins. */
void service_call(void);
/* After a fork. */
void service_forget(void);

/* --- session.c */

bool sessions_open(struct mx_endpoint *endpoint);
/* The session that an address names; SESSION_NONE: it is none of this endpoint's. */
uint32_t session_of(const struct mx_endpoint *endpoint, mx_endpoint_addr_t address);
/* The one that messages to the address go to: of the same life of the peer, after a disconnect. */
uint32_t session_to(const struct mx_endpoint *endpoint, mx_endpoint_addr_t address);
void session_lose(struct mx_endpoint *endpoint, uint32_t session, mx_status_code_t code);
/* Callbacks of messages. */
void session_failed(void *owner, uint32_t session, const char *why);
bool session_greeted(void *owner, struct process from, const struct greeting *greeting);
void session_answered(void *owner, struct greeting *greeting, enum greeting_result result);
/* A connect that is pending ends. */
void connect_end(struct mx_endpoint *endpoint, struct request *request, mx_status_code_t code);
/* Greetings that were kept are answered, and questions that are due are asked. */
void sessions_progress(struct mx_endpoint *endpoint);
void sessions_close(struct mx_endpoint *endpoint);

/* --- handler.c */

/* Is this a call by the handler? The lock is held. */
static inline bool handler_is_here(const struct mx_endpoint *endpoint)
{
	return endpoint->handling && pthread_equal(endpoint->handler_thread, pthread_self());
}

/* Calls the handler for what it has not seen. The lock is let go meanwhile. */
void handler_progress(struct mx_endpoint *endpoint);

/* --- progress */

/* What few looks have to do behind messages_progress(). */
void endpoint_go_on(struct mx_endpoint *endpoint);

/* The lock may be let go meanwhile. */
static inline void endpoint_progress(struct mx_endpoint *endpoint)
{
	if (handler_is_here(endpoint))
		return;
	(void)messages_progress(endpoint->messages);
	if (endpoint->looks == 0 || !list_empty(&endpoint->greetings.waiting) ||
		endpoint->timed != 0 || endpoint->unexpected || !list_empty(&endpoint->connects))
		endpoint_go_on(endpoint);
	else
		endpoint->looks--;
}

/* --- request.c */

/* One more slot in the table; NULL: no memory. */
struct request *request_slot_make(struct mx_endpoint *endpoint);
void request_forget(struct request *request);
/* The oldest that has ended and has these bits under the mask; NULL: there is none. */
struct request *request_ended(struct mx_endpoint *endpoint, uint64_t bits, uint64_t mask);
/* Its end: X4. */
void request_complete(struct request *request, mx_status_code_t code);
void request_done(void *owner, struct transfer *message);
/* From now on; 0: it has no deadline. */
void request_time(struct request *request, uint64_t time);
bool request_is_late(const struct request *request, uint64_t now);
/* Ends those whose deadline has come, as far as they can be ended. */
void requests_progress(struct mx_endpoint *endpoint);
void requests_close(struct mx_endpoint *endpoint);
extern const char no_request[]; /* then */

/* A request that a call works for. While the lock is let go another thread may complete it. */
struct held {
	const struct request *request;
	uint64_t handle;
};

static inline struct held request_hold(const struct request *request)
{
	return (struct held){request, request->handle};
}

static inline bool held_is_gone(const struct held *held)
{
	return held->request->handle != held->handle;
}

/* --- requests, of which each message has two */

static inline void request_limit(struct request *request, uint64_t time)
{
	if (time != 0 || timer_set(&request->timer))
		request_time(request, time);
}

static inline uint32_t request_index(const struct request *request)
{
	return (uint32_t)request->handle;
}

/* NULL: no memory. */
static inline struct request *request_take(
	struct mx_endpoint *endpoint, enum request_kind kind, uint64_t match_info, void *context)
{
	struct request *request = endpoint->free;

	if (request)
		endpoint->free = request->next;
	else if (!(request = request_slot_make(endpoint)))
		return NULL;
	/* What a send, a receive and a connect set by themselves stays as it is. One that is free
	 * has no timer, is in no list and has no vector: request_give(). */
	request->endpoint = endpoint;
	request->kind = (uint8_t)kind;
	request->done = request->forgotten = request->owned = request->refused = false;
	request->status.code = MX_STATUS_SUCCESS;
	request->status.match_info = match_info;
	request->status.context = context;
	return request;
}

static inline void request_give(struct request *request)
{
	struct mx_endpoint *endpoint = request->endpoint;

	request_limit(request, 0);
	if (link_listed(&request->link))
		link_remove(&request->link);
	if (request->searched) {
		kept_remove(&endpoint->requests, &endpoint->searched, request_index(request));
		request->searched = false;
	}
	if (request->vector) {
		free(request->vector);
		request->vector = NULL;
	}
	request->kind = REQUEST_FREE;
	request->handle += UINT64_C(1) << REQUEST_GENERATION_AT;
	request->next = endpoint->free;
	endpoint->free = request;
}

/* The request of a slot; NULL: there is none. Requests stay until the endpoint closes, and no
 * batch moves, so that any handle can be looked up, without the lock too. */
static inline struct request *request_at(const struct mx_endpoint *endpoint, uint32_t index)
{
	uint64_t number = (uint64_t)index + (1u << REQUEST_BATCH_BITS);
	unsigned last = 63u ^ (unsigned)__builtin_clzll(number), batch = last - REQUEST_BATCH_BITS;

	if (batch >= REQUEST_BATCHES || !endpoint->batches[batch])
		return NULL;
	return &endpoint->batches[batch][number & ~(UINT64_C(1) << last)];
}

static inline mx_request_t request_handle(const struct request *request)
{
	return (mx_request_t)(uintptr_t)request->handle;
}

/* The request of a handle; NULL: it is none of this endpoint's that is pending. */
static inline struct request *request_of(
	const struct mx_endpoint *endpoint, const mx_request_t *handle)
{
	uint64_t bits = handle ? (uintptr_t)*handle : 0;
	struct request *request = request_at(endpoint, (uint32_t)bits);

	return request && request->handle == bits && request->kind != REQUEST_FREE ? request : NULL;
}

#endif
