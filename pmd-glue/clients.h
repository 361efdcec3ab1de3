/* SPDX-License-Identifier: BSD-3-Clause */
/* clients.h - the processes that posternd serves: who they are, how they come in, who has
 * ended, and which of them the switch looks at. Part of the switch (switch.h), whose thread calls
 * all of it.
 *
 * C1. A process is in the list of its user, and found by its process id. A user without processes
 *     is forgotten. Users choose the ids, so buckets and sets are chosen by a hash that no user
 *     knows: nobody can fill one bucket, and make the switch slow for all.
 * C2. A process is hot while its pair carries frames, and becomes cold when it has carried none for
 *     1 to 2 ms. Only hot processes, and users who have one, take turns (W3 of switch.h). In each
 *     turn clients_look() looks at COLD_LOOKS cold ones, whatever their number, so that a frame
 *     costs the same beside many idle processes; those that have sent something become hot. It
 *     looks at all of them once a millisecond, before the switch sleeps, and once it wakes.
 * C3. A user has no more processes than are left for all others, and CLIENTS_OF_USER, or what
 *     switch_options says, at most: so whoever comes first leaves places for the users who come
 *     later.
 *
 * C4. The switch waits for nobody's descriptors to be closed, nor for the memory of a process that
 *     has ended to be freed (disposal.h). A process that sends descriptors with a wake-up is
 *     dropped. While too many of a user's wait to be closed, his newcomers are not heard; those of
 *     all other users are.
 */
#ifndef PMD_GLUE_CLIENTS_H
#define PMD_GLUE_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <pmd-glue/client.h>
#include <pmd-glue/rendezvous.h>
#include <pmd-glue/switch.h>

#define CLIENTS_MAX     1024u
#define CLIENTS_OF_USER 256u
#define USERS_MAX       CLIENTS_MAX
#define CLIENT_BUCKETS  1024u
#define HALF_OPEN_MAX   256u
/* Processes that have ended, in sets: of CLIENTS_MAX, one in 50 finds its set full. */
#define ENDED_SETS 256u
#define ENDED_WAYS 8u

struct pair;
struct user;

/* A process. */
struct client {
	struct rendezvous_connection connection; /* who it is, and for wake-ups */
	struct pair *pair;
	int memory; /* the pair's file, so that a thread of disposal.h frees it (C4) */
	struct user *user;
	struct client *next; /* in its bucket */
	unsigned at;         /* in its user's list */
	unsigned cold_at;    /* of a cold one: in the list of these (C2) */
	bool heard;          /* its pair has carried frames since the last clients_cool() */
	/* frames that it sent to others' processes, less those to it for which it had no room (W2
	 * of switch.h) */
	uint64_t asked;
	struct switch_identity identity;
	uint64_t dropped, full;
};

/* Frames of a user that were dropped, or found no room at others' processes (W2 of switch.h). */
struct offences {
	uint64_t since;  /* the time from which these */
	unsigned frames; /* are counted */
	uint64_t rest;   /* the last one, ns */
};

struct user {
	uid_t uid;
	unsigned at; /* in the list of users */
	unsigned count;
	unsigned hot;   /* clients below it are hot, the others cold */
	unsigned turn;  /* whose turn it is */
	uint64_t rests; /* until then nothing is taken from his processes (W2) */
	struct offences offences;
	struct client *clients[CLIENTS_OF_USER];
};

/* A connection that has said nothing. */
struct half_open {
	int socket;
	uid_t uid;
	uint64_t deadline;
};

/* A process that has ended (W6 of switch.h). */
struct ended {
	struct switch_identity identity;
	uint64_t time; /* 0: there is none */
};

struct clients {
	const struct switch_options *options;
	uint64_t chance[2]; /* of the hash of process ids (C1) */
	/* The switch's. */
	int listener;  /* -1: none */
	int set;       /* an epoll descriptor with all sockets; with a client's, its address */
	int page_file; /* of the switch's page */
	bool cheap;    /* H5 of rendezvous.h */

	uint64_t refused[CLIENT_VERDICTS];
	uint64_t looked_at; /* the time of the last look at newcomers, which added to `calls` */
	unsigned calls;     /* connections that may be heard in this look */
	unsigned count;
	unsigned user_count;
	unsigned hot_users; /* users below it have hot clients */
	unsigned cold_count;
	unsigned cold_next; /* the next look at cold clients begins there */
	bool all;           /* the next look is at all cold ones */
	unsigned half_open_count;
	struct half_open half_open[HALF_OPEN_MAX]; /* the oldest first */
	struct user *users[USERS_MAX];
	struct client *cold[CLIENTS_MAX];
	struct client *buckets[CLIENT_BUCKETS];
	struct ended ended[ENDED_SETS][ENDED_WAYS];
};

/* NULL: there is none of this process id. */
struct client *client_find(struct clients *clients, uint32_t pid);
/* Takes wake-ups off its socket; true: it has ended. */
bool client_hear(struct client *client);
/* Ends a process that has broken the rules, */
void client_end(struct clients *clients, struct client *client);
/* or whose socket says that it has ended. */
void client_leave(struct clients *clients, struct client *client);
/* Its pair carries a frame: it is hot from now on. */
void client_warm(struct clients *clients, struct client *client);
/* NULL: no process of this id is known to have ended. */
struct ended *ended_find(struct clients *clients, uint32_t pid);

/* Cold ones that have sent something become hot (C2). */
void clients_look(struct clients *clients);
/* Once a millisecond: hot ones become cold whose pairs have carried nothing since. */
void clients_cool(struct clients *clients);
/* Pairs give back what memory they do not need. */
void clients_rest(struct clients *clients);
/* Connections that had said nothing may have by now. */
void half_open_look(struct clients *clients);
/* Those who call. */
void newcomers_accept(struct clients *clients);
/* Ends all. */
void clients_close(struct clients *clients);

#endif
