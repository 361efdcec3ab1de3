/* SPDX-License-Identifier: BSD-3-Clause */
/* endpoint.h - one interface as a measurement sees it: a process id, one event queue, control
 * messages and a tick.
 *
 * A control message is a put of no bytes to the control Portal: its match bits and its header data
 * say everything.
 *
 *      63      56 55      48 47             32 31                              0
 *     +----------+----------+-----------------+---------------------------------+
 *     |   kind   |  measure |     session     |            argument             |   match bits
 *     +----------+----------+-----------------+---------------------------------+
 *     |                                 number                                  |   header data
 *     +-------------------------------------------------------------------------+
 *
 * N1. One thread owns an endpoint; the ticker thread uses only what endpoint.c says it does.
 * N2. A thread that waits for an event gets one soon: the ticker puts a TICK to the own process
 *     four times a second, so that deadlines are kept and the progress line moves although
 *     PtlEQWait knows no time-out.
 * N3. A message to a process that is dead ends in a SEND_FAIL event, which carries the session it
 *     belonged to.
 */
#ifndef PERF_ENDPOINT_H
#define PERF_ENDPOINT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <portals.h>

#define PORTAL_CONTROL 0
#define PORTAL_DATA    1
#define TICKS_A_SECOND 4

enum control_kind {
	CONTROL_NONE,
	CONTROL_TICK,    /* from the own ticker */
	CONTROL_HELLO,   /* client: measure = PROTOCOL, argument = window, number = largest size */
	CONTROL_WELCOME, /* server: go ahead */
	CONTROL_BUSY,    /* server: another client is being served */
	CONTROL_REFUSED, /* server: measure = its PROTOCOL, argument = its largest window; the same
			  * as the client's if it is the memory that is missing */
	CONTROL_SHAPE,   /* client: the form of the match list for the next measure; argument =
			  * depth, number = wildcards, and position in its upper half */
	CONTROL_PREPARE, /* client: a measure begins; argument = window, number = size */
	CONTROL_READY,   /* server: the first message may come; argument and number = where its end
			  * of the line is, after a MEET */
	CONTROL_CREDIT,  /* either: a window of messages has arrived */
	CONTROL_STOP,    /* client: the measure is over */
	CONTROL_STOPPED, /* server: nothing of it is on its way any more */
	CONTROL_PING,    /* either: fails if the other has died */
	CONTROL_BYE,     /* client: the session is over; argument = BYE_FOR_NOW: another follows */
	CONTROL_BARE,  /* client: bare frames follow; until they end, nobody listens to messages */
	CONTROL_BARED, /* server: they may come; number = own MAC address */
	CONTROL_MEET,  /* client: messages of the next measure are of another library; measure =
			* enum library, argument and number = where its end of the line is */
	CONTROL_NUMBER /* either: before a MEET, or the READY after one; number = another number of
			* where its end of the line is, argument = which */
};

#define BYE_FOR_NOW 1
#define PROTOCOL    6 /* of the control messages */

struct control {
	enum control_kind kind;
	uint8_t measure;
	uint16_t session;
	uint32_t argument;
	uint64_t number;
};

struct endpoint {
	unsigned line_interface; /* the number of the one that lines use; its opener sets it */
	ptl_handle_ni_t ni;
	ptl_process_id_t id;
	ptl_handle_eq_t eq;
	ptl_handle_me_t control_entry;
	ptl_handle_md_t voice; /* no bytes; control messages are put from it */
	bool poll;
	/* Called while nothing has come, if not NULL: the other end in the same thread. */
	void (*aside)(void *context);
	void *aside_context;
	/* Of the thread that looks for events. */
	uint32_t empty; /* looks in vain in a row */
	uint64_t since; /* when those began, ns; 0: too few yet */
	bool has_event; /* taken in a rest, and not given yet: */
	ptl_event_t event;

	pthread_t ticker;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t wake;
	bool closing;
	/* put and not yet seen; relaxed: only keeps ticks from piling up */
	atomic_bool tick_pending;
};

/* Opens interface number `interface` as process pid, with a queue for `events` events and room for
 * match lists of DEPTH_MAX entries; ends the program if that fails. */
void endpoint_open(struct endpoint *endpoint, ptl_interface_t interface, ptl_pid_t pid,
	uint32_t events, bool poll);
void endpoint_close(struct endpoint *endpoint);

/* Waits for the next event. */
void endpoint_next(struct endpoint *endpoint, ptl_event_t *event);
/* The next event, if there is one. */
bool endpoint_try(struct endpoint *endpoint, ptl_event_t *event);

/* To be called after a look that found nothing, at events or elsewhere: the other end in the same
 * thread has its turn, and other threads after a millisecond in vain: they may want this CPU.
 * Returns true if they had it. */
bool endpoint_idle(struct endpoint *endpoint);
/* A look elsewhere has found something. */
static inline void endpoint_busy(struct endpoint *endpoint)
{
	endpoint->empty = 0;
	endpoint->since = 0;
}

/* The control message that an event brings, or, for a SEND_FAIL, the one that failed; kind is
 * CONTROL_NONE if it is about something else. */
struct control endpoint_control(const struct endpoint *endpoint, const ptl_event_t *event);
/* The control message that has reached the process that it was for, says an event; CONTROL_NONE
 * likewise. */
struct control endpoint_reached(const struct endpoint *endpoint, const ptl_event_t *event);

void endpoint_say(struct endpoint *endpoint, ptl_process_id_t to, const struct control *control);

/* Memory where the peer's data lands, and may be got from. Gets are not logged: nothing would bound
 * how many events they put into the queue of a thread that is busy elsewhere. */
#define MATCH_PUT 0
#define MATCH_GET 1
struct landing {
	ptl_handle_me_t puts;
	ptl_handle_me_t gets;
	void *memory;
	size_t size;
	bool owner; /* of the memory */
};

/* shared: another peer's landing, whose memory is used here too, or NULL. Returns false if there is
 * no memory. */
bool landing_open(struct landing *landing, struct endpoint *endpoint, ptl_process_id_t peer,
	size_t size, const struct landing *shared);
/* Waits until nothing is landing any more. */
void landing_close(struct landing *landing);

/* Unlinks an entry with its descriptor, or a descriptor; waits until no operation uses it. */
void descriptor_entry_close(ptl_handle_me_t entry);
void descriptor_close(ptl_handle_md_t descriptor);

#endif
