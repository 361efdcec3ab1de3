/* SPDX-License-Identifier: BSD-3-Clause */
/* endpoint.c - see endpoint.h. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include <postern.h>

#include "complain.h"
#include "effort.h"
#include "endpoint.h"
#include "options.h"
#include "shape.h"

#define IDLE_LOOKS 256     /* in vain, between two looks at the clock */
#define IDLE_SPINS 1000000 /* ns in vain, before other threads have the CPU, */
#define IDLE_NAP   50000   /* for so many ns each time */
#define RETRY_NS   1000000 /* between looks at a descriptor that is in use */

static struct control control_unpack(ptl_match_bits_t bits, ptl_hdr_data_t number)
{
	return (struct control){
		.kind = (enum control_kind)(bits >> 56),
		.measure = (uint8_t)(bits >> 48),
		.session = (uint16_t)(bits >> 32),
		.argument = (uint32_t)bits,
		.number = number,
	};
}

static ptl_match_bits_t control_bits(const struct control *control)
{
	return (ptl_match_bits_t)control->kind << 56 | (ptl_match_bits_t)control->measure << 48 |
	       (ptl_match_bits_t)control->session << 32 | control->argument;
}

static int control_put(
	struct endpoint *endpoint, ptl_process_id_t to, const struct control *control)
{
	return PtlPut(endpoint->voice, PTL_NOACK_REQ, to, PORTAL_CONTROL, 0, control_bits(control),
		0, control->number);
}

void endpoint_say(struct endpoint *endpoint, ptl_process_id_t to, const struct control *control)
{
	complain_unless_ok(control_put(endpoint, to, control), "PtlPut");
}

struct control endpoint_control(const struct endpoint *endpoint, const ptl_event_t *event)
{
	bool heard = event->type == PTL_EVENT_PUT_END && event->portal == PORTAL_CONTROL;
	bool failed = event->type == PTL_EVENT_SEND_FAIL && event->md_handle == endpoint->voice;

	if (heard || failed)
		return control_unpack(event->match_bits, event->hdr_data);
	return (struct control){.kind = CONTROL_NONE};
}

struct control endpoint_reached(const struct endpoint *endpoint, const ptl_event_t *event)
{
	if (event->type == PTL_EVENT_SEND_END && event->md_handle == endpoint->voice)
		return control_unpack(event->match_bits, event->hdr_data);
	return (struct control){.kind = CONTROL_NONE};
}

/* The ticker thread: its puts are the library's business, the rest is under the lock. */
static void *ticker_run(void *argument)
{
	struct endpoint *endpoint = argument;
	const struct control tick = {.kind = CONTROL_TICK};
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	pthread_mutex_lock(&endpoint->lock);
	while (!endpoint->closing) {
		next.tv_nsec += 1000000000 / TICKS_A_SECOND;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		while (!endpoint->closing && pthread_cond_timedwait(&endpoint->wake,
						     &endpoint->lock, &next) != ETIMEDOUT)
			;
		if (endpoint->closing || atomic_exchange_explicit(&endpoint->tick_pending, true,
						 memory_order_relaxed))
			continue;
		control_put(endpoint, endpoint->id, &tick);
	}
	pthread_mutex_unlock(&endpoint->lock);
	return NULL;
}

static void ticker_start(struct endpoint *endpoint)
{
	pthread_condattr_t attributes;
	int code;

	pthread_mutex_init(&endpoint->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&endpoint->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	endpoint->closing = false;
	atomic_init(&endpoint->tick_pending, false);
	code = pthread_create(&endpoint->ticker, NULL, ticker_run, endpoint);
	if (code != 0)
		complain("no thread can be started: %s; end other programs, or raise the limits "
			 "(ulimit -u, ulimit -v).",
			strerror(code));
}

static void ticker_stop(struct endpoint *endpoint)
{
	pthread_mutex_lock(&endpoint->lock);
	endpoint->closing = true;
	pthread_cond_signal(&endpoint->wake);
	pthread_mutex_unlock(&endpoint->lock);
	pthread_join(endpoint->ticker, NULL);
	pthread_cond_destroy(&endpoint->wake);
	pthread_mutex_destroy(&endpoint->lock);
}

/* Anybody may speak on the control Portal, as often as they like: the descriptor has no bytes to
 * run out of. */
static void control_open(struct endpoint *endpoint)
{
	const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};
	const ptl_md_t ear = {
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_ACK_DISABLE,
		.eventq = endpoint->eq,
	};
	const ptl_md_t voice = {.threshold = PTL_MD_THRESH_INF, .eventq = endpoint->eq};

	/* of any user: client and server need not be the same one's */
	complain_unless_ok(
		PtlACEntry(endpoint->ni, 0, anybody, PTL_UID_ANY, PTL_PT_INDEX_ANY), "PtlACEntry");
	complain_unless_ok(PtlMEAttach(endpoint->ni, PORTAL_CONTROL, anybody, 0, ~UINT64_C(0),
				   PTL_RETAIN, PTL_INS_AFTER, &endpoint->control_entry),
		"PtlMEAttach");
	complain_unless_ok(PtlMDAttach(endpoint->control_entry, ear, PTL_RETAIN, PTL_RETAIN, NULL),
		"PtlMDAttach");
	complain_unless_ok(PtlMDBind(endpoint->ni, voice, &endpoint->voice), "PtlMDBind");
}

void endpoint_open(struct endpoint *endpoint, ptl_interface_t interface, ptl_pid_t pid,
	uint32_t events, bool poll)
{
	ptl_ni_limits_t limits = {
		.max_match_entries = DEPTH_MAX + SHAPE_BESIDE,
		.max_mem_descriptors = DEPTH_MAX + SHAPE_BESIDE,
		.max_event_queues = 4,
		.max_ptable_index = PORTAL_SHAPE,
	};
	int code = PtlNIInit(interface, pid, &limits, NULL, &endpoint->ni);

	if (code != PTL_OK && postern_last_error()[0] != '\0')
		complain("interface %u cannot be opened; see above.", interface);
	complain_unless_ok(code, "PtlNIInit");
	complain_unless_ok(PtlGetId(endpoint->ni, &endpoint->id), "PtlGetId");
	complain_unless_ok(PtlEQAlloc(endpoint->ni, events, &endpoint->eq), "PtlEQAlloc");
	endpoint->poll = poll;
	endpoint->has_event = false;
	control_open(endpoint);
	ticker_start(endpoint);
}

void endpoint_close(struct endpoint *endpoint)
{
	ticker_stop(endpoint);
	PtlNIFini(endpoint->ni); /* takes the objects with it */
}

static void event_taken(
	struct endpoint *endpoint, const ptl_event_t *event, int code, const char *call)
{
	if (code == PTL_EQ_DROPPED)
		complain("the event queue overflowed, so the counts are wrong; use a smaller "
			 "--window.");
	if (code != PTL_OK)
		complain_unless_ok(code, call);
	if (event->portal == PORTAL_CONTROL &&
		endpoint_control(endpoint, event).kind == CONTROL_TICK)
		atomic_store_explicit(&endpoint->tick_pending, false, memory_order_relaxed);
}

bool endpoint_try(struct endpoint *endpoint, ptl_event_t *event)
{
	int code = PTL_OK;

	if (endpoint->has_event)
		*event = endpoint->event;
	else
		code = PtlEQGet(endpoint->eq, event);
	if (code == PTL_EQ_EMPTY)
		return false;
	endpoint->has_event = false;
	event_taken(endpoint, event, code, "PtlEQGet");
	endpoint_busy(endpoint);
	return true;
}

/* Lets other threads have the CPU. Meanwhile the library works, of whatever thread: peers may wait
 * for answers that this end does not see. */
static void rest(struct endpoint *endpoint)
{
	int code = postern_eq_poll(&endpoint->eq, 1, IDLE_NAP, &endpoint->event, NULL);

	endpoint->has_event = code == PTL_OK;
	if (code != PTL_OK && code != PTL_EQ_EMPTY)
		event_taken(endpoint, &endpoint->event, code, "postern_eq_poll");
}

bool endpoint_idle(struct endpoint *endpoint)
{
	if (endpoint->aside)
		endpoint->aside(endpoint->aside_context);
	if (++endpoint->empty % IDLE_LOOKS != 0)
		return false;
	if (endpoint->since == 0)
		endpoint->since = clock_look();
	if (clock_look() - endpoint->since < IDLE_SPINS)
		return false;
	rest(endpoint);
	return true;
}

void endpoint_next(struct endpoint *endpoint, ptl_event_t *event)
{
	if (!endpoint->poll && !endpoint->aside && !endpoint->has_event) {
		event_taken(endpoint, event, PtlEQWait(endpoint->eq, event), "PtlEQWait");
		return;
	}
	while (!endpoint_try(endpoint, event))
		endpoint_idle(endpoint);
}

static void retry_pause(void)
{
	nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
}

static ptl_handle_me_t landing_attach(struct endpoint *endpoint, ptl_process_id_t peer,
	ptl_match_bits_t match, ptl_md_t descriptor)
{
	ptl_handle_me_t entry;

	complain_unless_ok(PtlMEAttach(endpoint->ni, PORTAL_DATA, peer, match, 0, PTL_RETAIN,
				   PTL_INS_AFTER, &entry),
		"PtlMEAttach");
	complain_unless_ok(
		PtlMDAttach(entry, descriptor, PTL_RETAIN, PTL_RETAIN, NULL), "PtlMDAttach");
	return entry;
}

bool landing_open(struct landing *landing, struct endpoint *endpoint, ptl_process_id_t peer,
	size_t size, const struct landing *shared)
{
	ptl_md_t descriptor = {
		.length = size,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_ACK_DISABLE,
		.eventq = endpoint->eq,
	};

	landing->size = size;
	landing->owner = !shared;
	landing->memory =
		shared ? shared->memory : postern_alloc(endpoint->ni, size == 0 ? 1 : size);
	if (!landing->memory)
		return false;
	if (landing->owner)
		memset(landing->memory, 0x5a, size); /* so that no page is missing when it counts */
	descriptor.start = landing->memory;
	landing->puts = landing_attach(endpoint, peer, MATCH_PUT, descriptor);
	descriptor.options = PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE;
	descriptor.eventq = PTL_EQ_NONE;
	landing->gets = landing_attach(endpoint, peer, MATCH_GET, descriptor);
	return true;
}

void descriptor_entry_close(ptl_handle_me_t entry)
{
	while (PtlMEUnlink(entry) == PTL_MD_INUSE)
		retry_pause();
}

void landing_close(struct landing *landing)
{
	descriptor_entry_close(landing->puts);
	descriptor_entry_close(landing->gets);
	if (landing->owner)
		postern_free(landing->memory);
	landing->memory = NULL;
}

void descriptor_close(ptl_handle_md_t descriptor)
{
	while (PtlMDUnlink(descriptor) == PTL_MD_INUSE)
		retry_pause();
}
