/* SPDX-License-Identifier: BSD-3-Clause */
/* endpoint.c - see state.h: how endpoints open and close, who is inside, progress, threads that
 * block. */
#include <mx/state.h>

#include <limits.h>
#include <string.h>
#include <sys/random.h>

#include <base/cancel.h>
#include <base/clock.h>
#include <base/environment.h>
#include <base/log.h>
#include <base/pages.h>
#include <base/backoff.h>
#include <base/settings.h>
#include <engine/segment.h>
#include <host/interface.h>
#include <host/linger.h>

#define MESSAGES_SPACE 1
#define MOMENT         MILLISECOND         /* of a thread that blocks, see endpoint_looks() */
#define LOOK           (250 * MILLISECOND) /* of a thread that blocks, after what is due */

struct mx_endpoint endpoints[ENDPOINTS_MAX];
/* Opening and closing. */
static struct cancel_lock opening = CANCEL_LOCK_INITIAL;

struct mx_endpoint *endpoint_at(unsigned slot)
{
	return slot - 1 < ENDPOINTS_MAX ? &endpoints[slot - 1] : NULL;
}

/* --- calls */

bool endpoint_raise_closed(
	const struct mx_endpoint *endpoint, const char *function, mx_return_t *code)
{
	*code = front_is_open(&mx_front)
			? error_raise(NULL, MX_BAD_ENDPOINT, function,
				  "the endpoint %p is not open; use one of mx_open_endpoint()",
				  (const void *)endpoint)
			: error_raise_closed(function);
	return false;
}

void endpoint_unlock(struct mx_endpoint *endpoint)
{
	bool rouse = endpoint->wake;

	endpoint->wake = false;
	if (rouse)
		atomic_fetch_add(&endpoint->changes, 1);
	lock_give(&endpoint->lock);
	if (rouse)
		messages_rouse(endpoint->messages);
}

bool endpoint_enter_blocking(struct mx_endpoint *endpoint, const char *function, mx_return_t *code)
{
	if (!endpoint_enter(endpoint, function, code))
		return false;
	if (!handler_is_here(endpoint))
		return true;
	*code = endpoint_fail(endpoint, MX_BAD_BAD_BAD, function,
		"the unexpected handler may not block; call it when the handler has returned");
	return false;
}

void endpoint_rouse(struct mx_endpoint *endpoint)
{
	endpoint_unlock(endpoint);
	lock_take(&endpoint->lock);
}

mx_return_t endpoint_fail(
	struct mx_endpoint *endpoint, mx_return_t code, const char *function, const char *text)
{
	mx_error_handler_t handler = endpoint->handler;

	endpoint_leave(endpoint);
	return error_raise(handler, code, function, "%s", text);
}

mx_return_t endpoint_refuse(struct mx_endpoint *endpoint, const char *function, const char *text)
{
	mx_return_t code;

	if (!endpoint_enter(endpoint, function, &code))
		return code;
	return endpoint_fail(endpoint, MX_FAILURE, function, text);
}

void endpoint_go_on(struct mx_endpoint *endpoint)
{
	sessions_progress(endpoint);
	if (endpoint->timed != 0)
		requests_progress(endpoint);
	if (endpoint->unexpected)
		handler_progress(endpoint);
}

bool endpoint_serve(struct mx_endpoint *endpoint)
{
	bool connecting;

	if (!atomic_load(&endpoint->open) || !lock_try(&endpoint->lock))
		return false;
	if (!atomic_load_explicit(&endpoint->open, memory_order_relaxed)) {
		lock_give(&endpoint->lock);
		return false;
	}
	endpoint->inside++;
	messages_hear(endpoint->messages);
	sessions_progress(endpoint);
	connecting = !list_empty(&endpoint->connects);
	endpoint_leave(endpoint);
	return connecting;
}

/* --- threads that block */

struct block {
	const struct mx_endpoint *endpoint;
	uint32_t changes;
};

/* X5. Without the lock. */
static bool block_look(void *context)
{
	const struct block *block = context;

	return atomic_load_explicit(&block->endpoint->changes, memory_order_acquire) !=
	       block->changes;
}

/* Is there something that makes no event? A message that is kept, for the handler; a greeting that
 * waits; a fetch or a connect that is tried again. */
static bool endpoint_looks(const struct mx_endpoint *endpoint)
{
	return endpoint->unexpected || !list_empty(&endpoint->greetings.waiting) ||
	       !list_empty(&endpoint->connects) || messages_is_late(endpoint->messages);
}

bool endpoint_block(struct mx_endpoint *endpoint, bool (*found)(void *context), void *context,
	uint32_t milliseconds, uint64_t nap)
{
	const uint64_t start = library_now();
	const uint64_t time = milliseconds == MX_INFINITE ? UINT64_MAX : milliseconds * MILLISECOND;
	const uint32_t wakeups = endpoint->wakeups;

	for (;;) {
		struct block block = {.endpoint = endpoint};
		uint64_t passed, left;

		endpoint->looks = 0;
		endpoint_progress(endpoint);
		if (found(context))
			return true;
		passed = library_now() - start;
		if (endpoint->closing || endpoint->wakeups != wakeups || passed >= time)
			return false;
		left = time - passed < LOOK ? time - passed : LOOK;
		if (nap != 0 && nap < left)
			left = nap;
		if (endpoint_looks(endpoint) && left > MOMENT)
			left = MOMENT;
		block.changes = atomic_load_explicit(&endpoint->changes, memory_order_relaxed);
		endpoint->blocked++;
		endpoint_unlock(endpoint);
		messages_await(endpoint->messages, NULL, 0, block_look, &block, left);
		lock_take(&endpoint->lock);
		endpoint->blocked--;
	}
}

mx_return_t mx_wakeup(mx_endpoint_t endpoint)
{
	mx_return_t code;

	if (!endpoint_enter(endpoint, "mx_wakeup", &code))
		return code;
	endpoint->wakeups++;
	endpoint_wake(endpoint);
	return endpoint_leave(endpoint);
}

/* --- opening and closing */

/* What mx_open_endpoint() is told. */
struct wish {
	uint32_t filter;
	mx_error_handler_t handler;
	uint64_t memory;
	uint8_t context_bits, context_shift;
};

static mx_return_t params_read(const mx_param_t *params, uint32_t count, struct wish *wish)
{
	for (uint32_t i = 0; i < count; i++) {
		const mx_param_t *param = &params[i];

		switch (param->key) {
		case MX_PARAM_ERROR_HANDLER:
			wish->handler = param->val.error_handler;
			break;
		case MX_PARAM_UNEXP_QUEUE_MAX:
			wish->memory = param->val.unexp_queue_max;
			if (wish->memory < MEMORY_LEAST)
				wish->memory = MEMORY_LEAST;
			break;
		case MX_PARAM_CONTEXT_ID:
			wish->context_bits = param->val.context_id.bits;
			wish->context_shift = param->val.context_id.shift;
			if (wish->context_bits > MX_CONTEXT_ID_BITS_MAX ||
				wish->context_bits + wish->context_shift > 64)
				return MX_BAD_PARAM_VAL;
			break;
		default:
			return MX_BAD_PARAM_NAME;
		}
	}
	return MX_SUCCESS;
}

/* Side by side: what is used of both at first is one page. */
struct tables {
	struct wheel timers;
	struct session sessions[SESSIONS_MAX];
};

static bool tables_make(struct mx_endpoint *endpoint, const struct wish *wish)
{
	uint64_t secret[2] = {0};

	if (!endpoint->sessions) {
		struct tables *tables = pages_map(sizeof(*tables));

		if (!tables)
			return false;
		endpoint->timers = &tables->timers;
		endpoint->sessions = tables->sessions;
	}
	/* Peers choose bits that are searched for. */
	(void)!getrandom(secret, sizeof(secret), GRND_NONBLOCK);
	if (!kept_table_init(&endpoint->requests, 0, secret))
		return false;
	list_init(&endpoint->ended);
	kept_list_init(&endpoint->searched);
	list_init(&endpoint->connects);
	greetings_init(&endpoint->greetings);
	wheel_init(endpoint->timers, library_now());
	endpoint->timed = 0;
	endpoint->request_timeout = 0;
	endpoint->context_bits = wish->context_bits;
	endpoint->context_shift = wish->context_shift;
	endpoint->filter = wish->filter;
	endpoint->handler = wish->handler;
	endpoint->closing = endpoint->wake = false;
	endpoint->unexpected = NULL;
	endpoint->halted = false;
	return true;
}

static enum answer interface_make(struct mx_endpoint *endpoint, bool tries)
{
	const struct segment_limits none = {0};
	enum answer answer;

	library_lock();
	answer = interface_open_beside(&mx_front, endpoint->board, MX_PROCESS + endpoint->id, tries,
		&none, &endpoint->interface);
	if (answer == ANSWER_OK) {
		const struct interface *interface =
			&interfaces[handle_interface(endpoint->interface)];

		endpoint->self = interface->self;
		endpoint->number = interface->incarnation;
	}
	library_unlock();
	return answer;
}

/* MX_ZOMBIE_SEND */
static bool sends_complete_early(void)
{
	const char *text = environment_text("MX_ZOMBIE_SEND");

	return !text || strcmp(text, "0") != 0;
}

static enum answer messages_make(struct mx_endpoint *endpoint, const struct wish *wish)
{
	struct messages_options options = {
		.front = &mx_front,
		.interface = endpoint->interface,
		.space = MESSAGES_SPACE,
		.count = SESSIONS_MAX,
		.late = !sends_complete_early(),
		.eager = COPY_SEND_MAX,
		.memory = wish->memory,
		.owner = endpoint,
		.done = request_done,
		.failed = session_failed,
		.greeted = session_greeted,
		.answered = session_answered,
	};

	messages_divide(&options);
	return messages_open(&options, &endpoint->messages);
}

/* The endpoint of a free slot, under a board and an id that it has. tries: another id will
 * do if this one is in use. */
static mx_return_t endpoint_open(struct mx_endpoint *endpoint, bool tries, const struct wish *wish)
{
	enum answer answer = ANSWER_NO_MEMORY;

	endpoint->messages = NULL;
	if (!tables_make(endpoint, wish))
		goto no_tables;
	answer = interface_make(endpoint, tries);
	if (answer != ANSWER_OK)
		goto no_tables;
	answer = messages_make(endpoint, wish);
	if (answer != ANSWER_OK)
		goto no_messages;
	hostname_announce(endpoint->interface, endpoint->board);
	atomic_fetch_add(&endpoint->generation, 1);
	if (sessions_open(endpoint)) {
		lock_start(&endpoint->lock);
		atomic_store(&endpoint->open, true);
		return MX_SUCCESS;
	}
	answer = ANSWER_NO_MEMORY;
	messages_close(endpoint->messages);
no_messages:
	(void)interface_close(&mx_front, endpoint->interface);
no_tables:
	kept_table_free(&endpoint->requests);
	return answer_code(answer);
}

static bool endpoint_is_here(uint32_t board, uint32_t id)
{
	for (unsigned i = 0; i < ENDPOINTS_MAX; i++)
		if (atomic_load(&endpoints[i].open) && endpoints[i].board == board &&
			endpoints[i].id == id)
			return true;
	return false;
}

/* An unused slot. */
static struct mx_endpoint *endpoint_find_free(void)
{
	static bool made;

	for (unsigned i = 0; i < ENDPOINTS_MAX && !made; i++)
		endpoints[i].slot = i + 1;
	made = true;
	for (unsigned i = 0; i < ENDPOINTS_MAX; i++)
		if (!endpoints[i].taken)
			return &endpoints[i];
	return NULL;
}

static mx_return_t open_on(
	struct mx_endpoint *endpoint, uint32_t board, uint32_t id, const struct wish *wish)
{
	uint32_t first = id == MX_ANY_ENDPOINT ? 0 : id;
	uint32_t end = id == MX_ANY_ENDPOINT ? ENDPOINT_IDS : id + 1;
	bool tries = id == MX_ANY_ENDPOINT;

	endpoint->board = board;
	for (id = first; id < end; id++) {
		mx_return_t code;

		if (endpoint_is_here(board, id))
			continue;
		endpoint->id = id;
		code = endpoint_open(endpoint, tries, wish);
		if (code != MX_BUSY)
			return code;
	}
	return MX_BUSY;
}

/* Is the id of no endpoint of this process, on one of these boards? */
static bool id_is_free(uint32_t first, uint32_t end, uint32_t id)
{
	while (first < end && id != MX_ANY_ENDPOINT && endpoint_is_here(first, id))
		first++;
	return first < end;
}

static mx_return_t open_anywhere(
	uint32_t board, uint32_t id, const struct wish *wish, mx_endpoint_t *opened)
{
	struct mx_endpoint *endpoint = endpoint_find_free();
	uint32_t first = board == MX_ANY_NIC ? 0 : board;
	uint32_t end = board == MX_ANY_NIC ? boards_count() : board + 1;
	mx_return_t code = MX_BUSY;

	if (!endpoint)
		return id_is_free(first, end, id) ? MX_NO_RESOURCES : MX_BUSY;
	for (board = first; board < end && code == MX_BUSY; board++)
		code = open_on(endpoint, board, id, wish);
	endpoint->taken = code == MX_SUCCESS;
	if (endpoint->taken) {
		service_begin();
		*opened = endpoint;
	}
	return code;
}

static const char *open_text(mx_return_t code)
{
	switch (code) {
	case MX_BUSY:
		return "an endpoint of this id is open on this board, in this program or another; "
		       "use another id or MX_ANY_ENDPOINT, or make each program a host of its own: "
		       "one by PTL_IFACE_NAME=udp:127.0.0.1 PTL_MX_HOSTNAME=127.0.0.1, the other "
		       "by PTL_IFACE_NAME=udp:127.0.0.2 PTL_MX_HOSTNAME=127.0.0.2, see mx(7)";
	case MX_NO_RESOURCES:
		return "there is not enough memory, or the process has 32 endpoints; close some";
	case MX_BAD_PARAM_NAME:
		return "a parameter has an unknown key; use those of enum mx_param_key";
	case MX_BAD_PARAM_VAL:
		return "a context id has at most 16 bits, within the 64 of a match value; give "
		       "fewer";
	default:
		return "the board cannot be used; the line above says why";
	}
}

mx_return_t mx_open_endpoint(uint32_t board_number, uint32_t endpoint_id, uint32_t filter,
	mx_param_t *params, uint32_t params_count, mx_endpoint_t *endpoint)
{
	static const char name[] = "mx_open_endpoint";
	struct wish wish = {.filter = filter, .memory = MESSAGES_MEMORY};
	mx_return_t code;

	if (!front_is_open(&mx_front))
		return error_raise_closed(name);
	if (!endpoint || (endpoint_id >= ENDPOINT_IDS && endpoint_id != MX_ANY_ENDPOINT))
		return error_raise(NULL, MX_BAD_ENDPOINT, name,
			"endpoint is NULL, or endpoint id %u is not below %u; give another",
			endpoint_id, ENDPOINT_IDS);
	if (!params && params_count != 0)
		return error_raise(NULL, MX_BAD_PARAM_LIST, name,
			"params is NULL and params_count is %u; give the list", params_count);
	if (board_number != MX_ANY_NIC) {
		code = board_check(name, board_number);
		if (board_number >= boards_count())
			return code;
	}
	code = params_read(params, params_count, &wish);
	if (code == MX_SUCCESS) {
		cancel_lock_take(&opening);
		code = open_anywhere(board_number, endpoint_id, &wish, endpoint);
		cancel_lock_give(&opening);
	}
	return code == MX_SUCCESS ? code
				  : error_raise(wish.handler, code, name, "%s", open_text(code));
}

/* Sends whose data was taken over leave, as long as peers take some of them (linger.h). */
static void endpoint_linger(struct mx_endpoint *endpoint)
{
	const uint64_t peer_timeout = setting_number(SETTING_PEER_TIMEOUT);
	uint64_t flying = messages_flying(endpoint->messages), since = library_now();
	unsigned looks = 0;

	while (flying != 0 && library_now() - since < peer_timeout && !linger_is_stopped()) {
		if (messages_progress(endpoint->messages) == 0)
			backoff(&looks);
		if (messages_flying(endpoint->messages) == flying)
			continue;
		flying = messages_flying(endpoint->messages);
		since = library_now();
	}
	if (flying != 0)
		log_warning("endpoint %u closes, and %llu sends may not have arrived: %s",
			endpoint->id, (unsigned long long)flying,
			linger_is_stopped() ? "a signal ended the wait"
					    : "their peers received none for "
					      "PTL_PEER_TIMEOUT; post their receives "
					      "before this endpoint closes");
}

/* X7. */
static bool endpoint_is_left(struct mx_endpoint *endpoint)
{
	bool left;

	lock_take(&endpoint->lock);
	left = endpoint->inside == 1;
	lock_give(&endpoint->lock);
	return left;
}

/* No call enters it any more, and the caller alone is to be inside. The handlers of others may open
 * and close endpoints meanwhile. */
static void endpoint_close(struct mx_endpoint *endpoint)
{
	unsigned looks = 0;

	while (!endpoint_is_left(endpoint)) {
		messages_rouse(endpoint->messages);
		backoff(&looks);
	}
	linger_begin();
	endpoint_linger(endpoint);
	cancel_lock_take(&opening);
	/* With what is in flight: the space alone would wait until peers answer or fall silent. */
	(void)interface_close(&mx_front, endpoint->interface);
	messages_close(endpoint->messages);
	requests_close(endpoint);
	sessions_close(endpoint);
	endpoint->inside = 0;
	endpoint->taken = false;
	service_end();
	cancel_lock_give(&opening);
	linger_end();
}

mx_return_t mx_close_endpoint(mx_endpoint_t endpoint)
{
	mx_return_t code;
	int cancel;

	if (!endpoint_enter(endpoint, "mx_close_endpoint", &code))
		return code;
	if (handler_is_here(endpoint))
		return endpoint_fail(endpoint, MX_CLOSE_IN_HANDLER, "mx_close_endpoint",
			"the unexpected handler calls it; call it when the handler has returned");
	endpoint->closing = true;
	endpoint_wake(endpoint);
	atomic_store(&endpoint->open, false);
	endpoint_unlock(endpoint);
	cancel = cancel_hold();
	endpoint_close(endpoint);
	cancel_release(cancel);
	return MX_SUCCESS;
}

void endpoints_forget(void)
{
	service_forget();
	for (unsigned i = 0; i < ENDPOINTS_MAX; i++)
		atomic_store(&endpoints[i].open, false);
}

bool endpoints_are_handled(void)
{
	bool here = false;

	for (unsigned i = 0; i < ENDPOINTS_MAX && !here; i++) {
		lock_take(&endpoints[i].lock);
		here = handler_is_here(&endpoints[i]);
		lock_give(&endpoints[i].lock);
	}
	return here;
}

void endpoints_close(void)
{
	for (unsigned i = 0; i < ENDPOINTS_MAX; i++)
		if (atomic_load(&endpoints[i].open))
			(void)mx_close_endpoint(&endpoints[i]);
}
