/* SPDX-License-Identifier: BSD-3-Clause */
/* tier.h - what events of spaces with tiers (tiers.h) tell, for the engine and the front end. */
#ifndef ENGINE_TIER_H
#define ENGINE_TIER_H

#include <stdint.h>

#define TIERS 2 /* lists of a Portal: requests go to the first of whose entries one matches */

enum tier_event {
	TIER_GET, /* target */
	TIER_GET_KEPT,
	TIER_PUT,
	TIER_PUT_KEPT,
	TIER_ATOMIC,
	TIER_ATOMIC_KEPT,
	TIER_FETCH,
	TIER_FETCH_KEPT,
	TIER_REPLY, /* initiator */
	TIER_SEND,
	TIER_ACK,
	TIER_DISABLED, /* target: the engine has disabled a Portal */
	TIER_LINK,
	TIER_UNLINK, /* an entry left by itself, and no message to it is in progress */
	TIER_FREE,   /* and no kept message refers to its memory */
	TIER_SEARCH,
	TIER_EVENTS
};

/* In masks: of an event that tells of success; in region.log also of one that tells of failure. */
#define TIER_BIT(kind)        (UINT32_C(1) << (kind))
#define TIER_BIT_FAILED(kind) (UINT32_C(1) << ((kind) + TIER_EVENTS))

/* The outcome of a message, as an answer carries it on the wire. */
enum tier_verdict {
	TIER_OK,
	TIER_UNDELIVERABLE, /* the target process is not there, or no longer */
	TIER_DROPPED,       /* no Portal or no entry for it */
	TIER_REFUSED,       /* its Portal is disabled */
	TIER_PERMISSION,    /* the entry is for another user */
	TIER_OPERATION,     /* the entry is for other operations */
	TIER_NO_MATCH,      /* of a search */
	TIER_FAULT,         /* memory that is not there */
	/* of two-sided messages, and of no answer: the target process has ended, or it is known
	 * that it is not there */
	TIER_CLOSED,
	TIER_SILENT = 15 /* the entry wants nothing told to the initiator; of no event */
};

/* What a kept message takes of memory beside its data in an entry: its place in the lists, which
 * may be in all of their views, its header, and a copy of short data (unexpected.h, U6). */
#define KEPT_BYTES 448
#define SPARE_MOST (UINT32_C(1) << 20) /* such messages that are in no rank's least share */

/* The word EVENT_REGION of an event's slot. EVENT_START, EVENT_USER, EVENT_VALUE and the words
 * EVENT_INITIATOR to EVENT_OFFSET are as always; the others mean nothing. */
#define TIER_DATA            2 /* in place of a list: `start` is a struct event_data's (state.h) */
#define TIER_KIND_AT         0
#define TIER_LIST_AT         8
#define TIER_VERDICT_AT      16
#define TIER_OPERATION_AT    24
#define TIER_TYPE_AT         32
#define TIER_FIELD(word, at) ((uint8_t)((word) >> (at)))

#endif
