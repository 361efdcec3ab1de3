/* SPDX-License-Identifier: BSD-3-Clause */
/* completion.c - test, wait, peek, probe. Each is a look under the endpoint's lock; those that
 * block repeat it (endpoint_block()). */
#include <mx/state.h>

#include <base/clock.h>

#define PROBE_NAP MILLISECOND /* a kept message makes no event */

/* --- one request */

static bool request_look(void *context)
{
	const struct held *held = context;

	return held_is_gone(held) || held->request->done;
}

static inline mx_return_t request_test(struct mx_endpoint *endpoint, mx_request_t *handle,
	bool blocks, uint32_t timeout, mx_status_t *status, uint32_t *result, const char *name)
{
	struct request *request;
	mx_return_t code;

	*result = 0;
	if (!(blocks ? endpoint_enter_blocking(endpoint, name, &code)
		     : endpoint_enter(endpoint, name, &code)))
		return code;
	request = request_of(endpoint, handle);
	if (!request)
		return endpoint_fail(endpoint, MX_BAD_REQUEST, name, no_request);
	if (!request->done) {
		struct held held = request_hold(request);

		if (blocks)
			(void)endpoint_block(endpoint, request_look, &held, timeout, 0);
		else
			endpoint_progress(endpoint);
		if (held_is_gone(&held))
			return endpoint_fail(endpoint, MX_BAD_REQUEST, name, no_request);
	}
	if (request->done) {
		if (status)
			*status = request->status;
		request_give(request);
		*handle = NULL;
		*result = 1;
	}
	return endpoint_leave(endpoint);
}

mx_return_t mx_test(
	mx_endpoint_t endpoint, mx_request_t *request, mx_status_t *status, uint32_t *result)
{
	return request_test(endpoint, request, false, 0, status, result, "mx_test");
}

mx_return_t mx_wait(mx_endpoint_t endpoint, mx_request_t *request, uint32_t timeout,
	mx_status_t *status, uint32_t *result)
{
	return request_test(endpoint, request, true, timeout, status, result, "mx_wait");
}

/* --- any request */

/* What is looked for among requests that have ended, or messages that are kept. */
struct search {
	struct mx_endpoint *endpoint;
	uint64_t bits, mask;
	struct request *found;
	struct message_found message;
	bool waits; /* a probe: it has looked, and blocks */
};

static bool any_look(void *context)
{
	struct search *search = context;

	search->found = request_ended(search->endpoint, search->bits, search->mask);
	return search->found;
}

static const char bad_mask[] = "match_info has a bit that match_mask has not; clear it";

static mx_return_t any_test(struct mx_endpoint *endpoint, bool blocks, uint32_t timeout,
	uint64_t match_info, uint64_t match_mask, mx_status_t *status, uint32_t *result,
	const char *name)
{
	struct search search = {.endpoint = endpoint, .bits = match_info, .mask = match_mask};
	mx_return_t code;

	*result = 0;
	if (!(blocks ? endpoint_enter_blocking : endpoint_enter)(endpoint, name, &code))
		return code;
	if ((match_info & ~match_mask) != 0)
		return endpoint_fail(endpoint, MX_BAD_MATCH_MASK, name, bad_mask);
	if (!any_look(&search)) {
		if (blocks)
			(void)endpoint_block(endpoint, any_look, &search, timeout, 0);
		else
			endpoint_progress(endpoint);
		(void)any_look(&search);
	}
	if (search.found) {
		if (status)
			*status = search.found->status;
		request_give(search.found);
		*result = 1;
	}
	return endpoint_leave(endpoint);
}

mx_return_t mx_test_any(mx_endpoint_t endpoint, uint64_t match_info, uint64_t match_mask,
	mx_status_t *status, uint32_t *result)
{
	return any_test(endpoint, false, 0, match_info, match_mask, status, result, "mx_test_any");
}

mx_return_t mx_wait_any(mx_endpoint_t endpoint, uint32_t timeout, uint64_t match_info,
	uint64_t match_mask, mx_status_t *status, uint32_t *result)
{
	return any_test(
		endpoint, true, timeout, match_info, match_mask, status, result, "mx_wait_any");
}

/* --- peeks */

static mx_return_t request_peek(struct mx_endpoint *endpoint, bool blocks, uint32_t timeout,
	mx_request_t *request, uint32_t *result, const char *name)
{
	struct search search = {.endpoint = endpoint};
	mx_return_t code;

	*result = 0;
	if (!(blocks ? endpoint_enter_blocking : endpoint_enter)(endpoint, name, &code))
		return code;
	if (blocks)
		(void)endpoint_block(endpoint, any_look, &search, timeout, 0);
	else
		endpoint_progress(endpoint);
	if (any_look(&search)) { /* the one that ended first */
		*request = request_handle(search.found);
		*result = 1;
	}
	return endpoint_leave(endpoint);
}

mx_return_t mx_ipeek(mx_endpoint_t endpoint, mx_request_t *request, uint32_t *result)
{
	return request_peek(endpoint, false, 0, request, result, "mx_ipeek");
}

mx_return_t mx_peek(
	mx_endpoint_t endpoint, uint32_t timeout, mx_request_t *request, uint32_t *result)
{
	return request_peek(endpoint, true, timeout, request, result, "mx_peek");
}

/* --- probes */

/* Of several threads that block one returns for a message: each claims what it has found. One that
 * begins finds every message. A message that the handler has not seen yet cannot be claimed. */
static bool probe_look(void *context)
{
	struct search *search = context;
	const struct mx_endpoint *endpoint = search->endpoint;
	bool waits = search->waits;

	search->waits = true;
	return endpoint->crowded ? messages_claim(endpoint->messages, search->bits, ~search->mask,
					   !waits, !endpoint->unexpected, &search->message)
				 : messages_probe(endpoint->messages, search->bits, ~search->mask,
					   &search->message);
}

static bool probe_block(struct search *search, uint32_t timeout)
{
	struct mx_endpoint *endpoint = search->endpoint;
	bool found;

	endpoint->crowded = endpoint->probers++ != 0;
	found = endpoint_block(endpoint, probe_look, search, timeout, PROBE_NAP);
	if (--endpoint->probers == 0)
		endpoint->crowded = false;
	return found;
}

static mx_return_t message_probe(struct mx_endpoint *endpoint, bool blocks, uint32_t timeout,
	uint64_t match_info, uint64_t match_mask, mx_status_t *status, uint32_t *result,
	const char *name)
{
	struct search search = {.endpoint = endpoint, .bits = match_info, .mask = match_mask};
	mx_return_t code;

	*result = 0;
	if (!(blocks ? endpoint_enter_blocking : endpoint_enter)(endpoint, name, &code))
		return code;
	if ((match_info & ~match_mask) != 0)
		return endpoint_fail(endpoint, MX_BAD_MATCH_MASK, name, bad_mask);
	if (blocks) {
		*result = probe_block(&search, timeout);
	} else {
		endpoint_progress(endpoint);
		*result = messages_probe(
			endpoint->messages, match_info, ~match_mask, &search.message);
	}
	if (*result && status)
		*status = (mx_status_t){.code = MX_STATUS_SUCCESS,
			.source = endpoint->sessions[search.message.peer].address,
			.match_info = search.message.bits,
			.msg_length = length_told(search.message.length),
			.xfer_length = length_told(search.message.length)};
	return endpoint_leave(endpoint);
}

mx_return_t mx_iprobe(mx_endpoint_t endpoint, uint64_t match_info, uint64_t match_mask,
	mx_status_t *status, uint32_t *result)
{
	return message_probe(
		endpoint, false, 0, match_info, match_mask, status, result, "mx_iprobe");
}

mx_return_t mx_probe(mx_endpoint_t endpoint, uint32_t timeout, uint64_t match_info,
	uint64_t match_mask, mx_status_t *status, uint32_t *result)
{
	return message_probe(
		endpoint, true, timeout, match_info, match_mask, status, result, "mx_probe");
}
