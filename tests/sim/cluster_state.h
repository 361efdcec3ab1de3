/* SPDX-License-Identifier: BSD-3-Clause */
/* cluster_state.h - what the files of a cluster share: requests of its programs, their endpoints,
 * and which message each receive is to get. */
#ifndef SIM_CLUSTER_STATE_H
#define SIM_CLUSTER_STATE_H

#include <inttypes.h>

#include <messages/state.h>
#include <mx/state.h>
#include <sim/cluster.h>

#define NUMBER_AT     32 /* match bits: number of the send, sender's node, tag */
#define NODE_AT       4
#define TAGS          4
#define BITS_TAG      UINT64_C(0xf)
#define BITS_NODE     UINT64_C(0xfffffff0)
#define BITS_NUMBER   UINT64_C(0xffffffff00000000)
#define POISON        0xa5
#define CLUSTER_SPACE 1
#define CONTEXTS      4 /* at most */
#define FILTER        0x9a7e

enum post_kind { POST_SEND, POST_RECEIVE, POST_CONNECT };

/* A request. */
struct post {
	enum post_kind kind;
	bool synchronous;
	bool arrived;  /* a send */
	bool whole;    /* and all of its data that comes by itself, or is being fetched */
	bool taken;    /* a message: the library has it, for the handler */
	bool shown;    /* and the handler has left it */
	bool consumed; /* the handler has used it, or its peer was dismissed */
	bool linked;   /* a receive: the poll core has it, or had it */
	bool done, cancelled, forgotten;
	bool over;         /* its endpoint has closed */
	bool wildcard;     /* a receive of the end, for whatever comes */
	bool met, missed;  /* a connect: its filter was the peer's, or was not, meanwhile */
	bool expired;      /* it has ended because its time was over */
	uint64_t deadline; /* ns, before which it does not expire; 0: never */
	uint32_t filter;   /* of a connect */

	uint32_t number; /* from 1 */
	uint32_t node;   /* whose it is */
	uint32_t life;
	uint32_t to;            /* of a send or a connect */
	uint32_t session;       /* of a send: that it goes to */
	uint32_t rank;          /* of a message: its sender's number at the receiver */
	struct ledger *account; /* of a message that is kept; NULL: it was taken */
	uint32_t name;          /* of the session that is the account's */
	uint64_t bits, mask;
	uint64_t length; /* of the data, or the room */
	uint8_t *data;
	mx_request_t request;
	struct post *partner; /* what the oracle says that it matches */
};

#define POSTS_MAX  1000000
#define LINE_POSTS 16384

/* Posts that wait, in order. */
struct line {
	struct post *posts[LINE_POSTS];
	uint32_t count;
};

/* How an endpoint reaches another one. */
struct route {
	bool known;
	mx_endpoint_addr_t address;
	const struct post *connect; /* under way; NULL */
};

/* Messages of one endpoint that another one kept, in their session, ever. */
struct ledger {
	uint32_t name; /* of the session: the sender's rank, at the receiver */
	uint64_t kept;
	uint64_t taken; /* of them */
	uint64_t heard; /* of these: what the sender has got credit for */
};

/* A node's program and its endpoint. */
struct member {
	mx_endpoint_t endpoint; /* NULL: it is not open */
	struct node *node;
	uint32_t session;
	uint64_t left;       /* steps */
	struct line posted;  /* receives that the poll core has */
	struct line kept;    /* messages that nobody has got */
	struct line pending; /* requests of this life that have not ended */
	struct post *showing;
	struct post *withdrawn; /* by mx_cancel() that is under way */
	struct post *tested;    /* by mx_test() that is under way: the handler does not cancel it */
	bool withdraws;         /* and the oracle says that it will be taken back */
	struct post ask;        /* criteria of mx_iprobe() */
	struct post *found;     /* by it, says the oracle */
	bool handles, halted;
	bool greedy;                 /* it sends more than it has credit for */
	uint64_t refusals;           /* of messages without credit, in this life */
	struct post *last[CONTEXTS]; /* wildcard receives of the end */
	uint32_t filter;
	uint64_t context; /* bits of the context id */
	uint64_t timeout; /* of requests from now on, ns; 0: without end */
	uint64_t looked;  /* when the last step ended, ns */
	bool quiet;       /* nothing of it was under way before its last look */
	struct route *routes;
};

struct cluster {
	struct simulation *simulation;
	struct prng prng;
	uint64_t interval, size_max;
	uint32_t share;          /* of credit, at first */
	uint32_t spare;          /* headers that are in no share */
	uint64_t block;          /* bytes of a block, if there is little memory; else 0 */
	struct ledger *accounts; /* of each pair, from and to */
	struct member *members;
	struct post **all;
	uint32_t count;
	uint32_t *arrived; /* number of the last message from a node that another has got */
	uint32_t *lives;   /* and the sender's life */
	bool *severed;     /* a pair: one has disconnected the other */
};

/* cluster_requests.c */
struct post *post_make(struct member *member, enum post_kind kind, uint64_t length);
uint64_t length_choose(struct cluster *cluster);
/* Connects instead if there is no address. */
void send_make(struct member *member, uint32_t to, uint64_t length);
void receive_make(struct member *member);
void receive_post(struct member *member, struct post *post);
void post_cancel(struct member *member, struct post *post);
void cancel_any(struct member *member);
void forget_any(struct member *member);
void probe_any(struct member *member);
/* Another time limit for all requests that come. */
void timeout_change(struct member *member);
/* An endpoint has opened: its filter is another one, maybe. */
void connects_meet(struct cluster *cluster, uint32_t to);
/* Requests that have a limit end in time. */
void limits_check(const struct member *member);

/* cluster_results.c */
void bytes_check(const struct post *receive, const struct post *message, uint64_t length);
void source_check(const struct cluster *cluster, const struct post *post, mx_endpoint_addr_t source,
	uint32_t of);
/* Looks for requests that have ended, in one of MX's ways; by peeks, until there are none. */
void tests(struct member *member);
void tests_peeked(struct member *member);

/* cluster_program.c */
void member_plan(struct cluster *cluster, struct member *member);

/* cluster_oracle.c */
#define FAIL(cluster, ...) simulation_fail((cluster)->simulation, __VA_ARGS__)

struct cluster *cluster_here(void);
/* The endpoint whose engine is at work: of the node that is entered, or one beside it. */
struct member *member_of(const struct space *space);
void post_wrong(const struct post *post, const char *what, uint64_t value);
/* May requests between them fail? */
bool cluster_troubled(const struct cluster *cluster, uint32_t one, uint32_t other);
/* May its message, or its data, be withdrawn? It expired, or may have: nobody knows yet. */
bool post_may_vanish(const struct cluster *cluster, const struct post *post);
uint8_t post_pattern(uint32_t number, uint64_t at);

bool post_matches(const struct post *receive, const struct post *message);
struct post *line_find(const struct line *line, const struct post *receive, bool shown);
void line_add(struct line *line, struct post *post);
bool line_remove(struct line *line, const struct post *post);
void oracle_pair(struct member *member, struct post *receive, struct post *message);
/* What the library had taken for the handler and gave to a receive. */
void oracle_catch_up(struct member *member);
/* Is a message on its way to the handler? A receive may get it yet. */
bool oracle_awaits_handler(const struct member *member);
/* A receive is about to be posted: it may match what the handler has left. */
void oracle_receive(struct member *member, struct post *receive);
/* The handler has been given a message, and has returned. */
struct post *oracle_show(struct member *member, uint64_t bits);
void oracle_shown(struct member *member, bool finished);

/* cluster_credits.c */
/* The credit of each pair, in this run. */
uint32_t credits_choose(struct prng *prng);
/* A message comes that no receive has got: is it kept? */
bool credits_admit(struct member *member, struct space *space, const struct post *message);
void credits_keep(struct member *member, struct post *message, uint32_t name);
/* It has been received, or used. */
void credits_take(struct post *message);
/* A word of a peer's comes. */
void credits_word(struct member *member, uint32_t from, const struct message_header *header);
/* A greedy program is about to send. */
void credits_forge(const struct member *member);
/* C6; and when all is quiet. */
void credits_check(struct member *member);
void credits_settle(struct member *member);

#endif
