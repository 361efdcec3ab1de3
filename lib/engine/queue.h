/* queue.h - event queues: rings that the poll core alone writes and any number of threads read, without a lock.
 *
 * Hand-over of one event:
 *
 *     poll core                                reader
 *     tail - head_seen < count?
 *     words of the slot      (relaxed)
 *     slot.ready = tail's    (release A)  -->  slot.ready == head's?     (acquire A)
 *     tail++                                   copy words                (relaxed)
 *                            <-- (B acquire)   head: h -> h + 1          (compare-and-swap, release B)
 *
 * Q1. A slot is written only after head has passed its last event (B), so a reader whose compare-and-swap succeeds has copied
 *     an event that nobody was writing. One whose compare-and-swap fails throws its copy away.
 *     The poll core need not look at head for every event: head only grows, so one that it saw before is as good until the queue
 *     seems full (head_seen).
 * Q2. Without A a reader could see the old words; without B the poll core could overwrite words still being copied.
 * Q3. A queue may be freed, and its memory and its index be used again, while a reader is on its way. So closing a queue moves head
 *     to a position that no reader has seen, and the next life goes on from there: the compare-and-swap of a reader of an
 *     earlier life fails. A reader looks at the gate after head, so that a head of a later life never goes with its own gate.
 */
#ifndef ENGINE_QUEUE_H
#define ENGINE_QUEUE_H

#include <engine/segment.h>

enum queue_answer { QUEUE_EVENT, QUEUE_EVENT_AFTER_GAP, QUEUE_EMPTY, QUEUE_GONE };

/* Reader. The next event of a queue, removed from it; any thread. index has been checked against the limits. */
enum queue_answer queue_take(struct segment *segment, uint32_t index, uint32_t generation, struct event *event);

/* Application, before the handle exists: makes a queue of count events in the event memory at `slots`, which is
 * queue_bytes(count) zeroed bytes. */
uint64_t queue_bytes(uint64_t count); /* 0: too many */
uint64_t queue_slots(const struct queue *queue); /* where it was given memory */
void queue_init(struct segment *segment, uint32_t index, uint32_t generation, uint64_t count, uint64_t slots);

/* Poll core, all below. */
#define LINK_OWN UINT64_MAX /* in event.link: the event's own sequence */

struct queue *queue_find(struct segment *segment, uint32_t interface, uint64_t handle); /* NULL: 0, stale or not a queue */
bool queue_is_empty(const struct queue *queue);
/* Logs event; sets its sequence and, for LINK_OWN, its link, also when it is lost for lack of room (false). Readers that
 * sleep are woken by queue_ring(), later. */
bool queue_log(struct segment *segment, struct queue *queue, struct event *event);
/* Wakes as many sleepers as there are events, at most. A barrier (base/barrier.h, light) lies between the last queue_log() and this. */
void queue_ring(struct queue *queue);
/* The queue is gone for good: handles are refused, waiters leave. */
void queue_close(struct queue *queue);

#endif
