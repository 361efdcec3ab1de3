/* SPDX-License-Identifier: BSD-3-Clause */
/* handler.c - the unexpected handler: when it is called, and when not.
 *
 * A message that matches no receive is shown to it by a thread that is inside a call on the
 * endpoint, with the lock let go. Receives that match the message wait meanwhile, whichever thread
 * posts them (messages/messages.h, M10), so they get it and no later one.
 *
 * H1. `handling` is true while it runs: no other thread calls it, and it not itself.
 */
#include <mx/state.h>

/* Clients read so many bytes without a look at the pointer. */
#define DATA_LEAST 1024

/* Calls it for one message. The lock is held, but not during the call. */
static void handler_call(struct mx_endpoint *endpoint, const struct unexpected *shown)
{
	const struct transfer *message = &shown->transfer;
	const mx_unexp_handler_t handler = endpoint->unexpected;
	void *const context = endpoint->unexpected_context;
	const mx_endpoint_addr_t source = endpoint->sessions[message->peer].address;
	/* A message without bytes has data, too. */
	void *const data = shown->moved == message->whole ? (void *)(uintptr_t)shown->data : NULL;
	mx_unexp_handler_action_t action;

	endpoint->handling = true;
	endpoint->handler_thread = pthread_self();
	endpoint_unlock(endpoint);
	action = handler(context, source, message->bits, length_told(message->whole), data);
	lock_take(&endpoint->lock);
	endpoint->handling = false;
	if (endpoint->awaiting != 0) {
		atomic_fetch_add_explicit(&endpoint->handled, 1, memory_order_relaxed);
		futex_wake(&endpoint->handled, INT_MAX);
	}
	messages_shown(endpoint->messages, action == MX_RECV_FINISHED);
}

void handler_progress(struct mx_endpoint *endpoint)
{
	struct unexpected *shown;

	while (endpoint->unexpected && !endpoint->handling && !endpoint->halted &&
		(shown = messages_show(endpoint->messages, DATA_LEAST)))
		handler_call(endpoint, shown);
}

/* Until it does not run in another thread. */
static void handler_await(struct mx_endpoint *endpoint)
{
	while (endpoint->handling && !handler_is_here(endpoint)) {
		uint32_t handled = atomic_load_explicit(&endpoint->handled, memory_order_relaxed);

		endpoint->awaiting++;
		lock_give(&endpoint->lock);
		futex_wait(&endpoint->handled, handled, UINT64_MAX);
		lock_take(&endpoint->lock);
		endpoint->awaiting--;
	}
}

mx_return_t mx_register_unexp_handler(
	mx_endpoint_t endpoint, mx_unexp_handler_t handler, void *context)
{
	mx_return_t code;

	if (!endpoint_enter(endpoint, "mx_register_unexp_handler", &code))
		return code;
	handler_await(endpoint);
	endpoint->unexpected = handler;
	endpoint->unexpected_context = context;
	endpoint_wake(endpoint); /* threads that block look for messages from now on */
	return endpoint_leave(endpoint);
}

mx_return_t mx_register_unexp_callback(
	mx_endpoint_t endpoint, mx_matching_callback_t callback, void *context)
{
	(void)callback;
	(void)context;
	return endpoint_refuse(endpoint, "mx_register_unexp_callback",
		"this form is not supported; use mx_register_unexp_handler()");
}

mx_return_t mx_progress(mx_endpoint_t endpoint)
{
	mx_return_t code;

	if (!endpoint_enter(endpoint, "mx_progress", &code))
		return code;
	endpoint_progress(endpoint);
	return endpoint_leave(endpoint);
}

static mx_return_t progression_set(struct mx_endpoint *endpoint, bool halted, const char *name)
{
	mx_return_t code;

	if (!endpoint_enter(endpoint, name, &code))
		return code;
	endpoint->halted = halted;
	endpoint_wake(endpoint);
	handler_await(endpoint);
	return endpoint_leave(endpoint);
}

mx_return_t mx_disable_progression(mx_endpoint_t endpoint)
{
	return progression_set(endpoint, true, "mx_disable_progression");
}

mx_return_t mx_reenable_progression(mx_endpoint_t endpoint)
{
	return progression_set(endpoint, false, "mx_reenable_progression");
}
