/* SPDX-License-Identifier: BSD-3-Clause */
/* counter.c - counters of operations that have ended, well or in errors. */
#include <fi/state.h>

#include <stdlib.h>

#include <base/clock.h>

void counter_grow(struct counter *counter, uint64_t values, uint64_t errors)
{
	if (!counter)
		return;
	counter->value += values;
	counter->errors += errors;
	counter->ends += values + errors;
	notice_rouse(&counter->notice);
}

/* --- counters of regions */

/* Reads of the counter drive the endpoint. */
static bool shared_make(struct counter *counter, struct endpoint *endpoint)
{
	struct shared *shared = calloc(1, sizeof(*shared));

	if (!shared)
		return false;
	binding_init(&shared->binding, endpoint);
	if (!notice_join(&counter->notice, &shared->binding)) {
		free(shared);
		return false;
	}
	list_append(&endpoint->shared, &shared->link);
	return true;
}

static void shared_free(struct shared *shared)
{
	notice_part(&shared->binding);
	link_remove(&shared->link);
	free(shared);
}

bool counter_share(struct counter *counter)
{
	if (link_listed(&counter->link))
		return true;
	list_each (struct endpoint, endpoint, &counter->notice.domain->endpoints, link)
		if (endpoint_tallies(endpoint) && !shared_make(counter, endpoint))
			return false;
	list_append(&counter->notice.domain->counters, &counter->link);
	return true;
}

bool counters_join(struct endpoint *endpoint)
{
	bool joined = true;

	if (!endpoint_tallies(endpoint))
		return true;
	list_each (struct counter, counter, &endpoint->domain->counters, link)
		joined = joined && shared_make(counter, endpoint);
	return joined;
}

void counters_part(struct endpoint *endpoint)
{
	list_each (struct shared, shared, &endpoint->shared, link)
		shared_free(shared);
}

/* --- reads */

/* Makes progress, and returns a number; *seen gets it, too. */
static uint64_t counter_look(struct counter *counter, const uint64_t *number, uint64_t *seen)
{
	uint64_t read;

	domain_enter(counter->notice.domain);
	notice_drive(&counter->notice);
	read = *seen = *number;
	domain_leave(counter->notice.domain);
	return read;
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
	struct counter *counter = object_of(fid, struct counter);

	return counter_look(counter, &counter->value, &counter->seen_value);
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	struct counter *counter = object_of(fid, struct counter);

	return counter_look(counter, &counter->errors, &counter->seen_errors);
}

/* --- changes by the program */

static int counter_change(struct counter *counter, uint64_t *number, bool adds, uint64_t value)
{
	domain_enter(counter->notice.domain);
	*number = adds ? *number + value : value;
	counter->polled = counter->ends;
	notice_rouse(&counter->notice);
	domain_leave(counter->notice.domain);
	return 0;
}

static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
	struct counter *counter = object_of(fid, struct counter);

	return counter_change(counter, &counter->value, true, value);
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	struct counter *counter = object_of(fid, struct counter);

	return counter_change(counter, &counter->errors, true, value);
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
	struct counter *counter = object_of(fid, struct counter);

	return counter_change(counter, &counter->value, false, value);
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	struct counter *counter = object_of(fid, struct counter);

	return counter_change(counter, &counter->errors, false, value);
}

/* --- waits */

static int counter_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct counter *counter = object_of(fid, struct counter);
	const uint64_t start = library_now();
	const uint64_t time = timeout < 0 ? UINT64_MAX : (uint64_t)timeout * MILLISECOND;
	uint64_t errors, passed;
	int result;

	if (counter->notice.object == FI_WAIT_NONE)
		return -FI_EINVAL;
	domain_enter(counter->notice.domain);
	errors = counter->errors;
	for (;;) {
		notice_drive(&counter->notice);
		passed = library_now() - start;
		result = counter->value >= threshold ? 0
			 : counter->errors != errors ? -FI_EAVAIL
			 : passed >= time            ? -FI_ETIMEDOUT
						     : -FI_EAGAIN;
		if (result != -FI_EAGAIN)
			break;
		notice_sleep(&counter->notice, time - passed);
	}
	domain_leave(counter->notice.domain);
	return result;
}

int counter_arm(struct counter *counter)
{
	int result = -FI_EAGAIN;

	if (counter->notice.object != FI_WAIT_FD)
		return -FI_EINVAL;
	domain_enter(counter->notice.domain);
	notice_drive(&counter->notice);
	if (counter->value == counter->seen_value && counter->errors == counter->seen_errors)
		result = notice_arm(&counter->notice);
	domain_leave(counter->notice.domain);
	return result;
}

/* --- opening and closing */

/* No region counts in it any more. Those that did have left bindings of endpoints. */
static void counter_leave(struct counter *counter)
{
	list_each (struct binding, binding, &counter->notice.bindings, link)
		shared_free(object_of(binding, struct shared));
	if (link_listed(&counter->link))
		link_remove(&counter->link);
	counter->notice.domain->uses--;
}

static int counter_close(struct fid *fid)
{
	struct counter *counter = object_of(fid, struct counter);
	struct domain *domain = counter->notice.domain;
	bool busy;

	domain_enter(domain);
	busy = counter->uses != 0 || notice_is_awaited(&counter->notice);
	if (!busy)
		counter_leave(counter);
	domain_leave(domain);
	if (busy)
		return -FI_EBUSY;
	notice_close(&counter->notice);
	free(counter);
	return 0;
}

/* A counter has no flags of operations. */
static int counter_control(struct fid *fid, int command, void *argument)
{
	uint64_t *flags = argument;

	switch (command) {
	case FI_GETOPSFLAG:
		*flags = 0;
		return 0;
	case FI_SETOPSFLAG:
		return *flags == 0 ? 0 : -FI_EBADFLAGS;
	default:
		return notice_control(&object_of(fid, struct counter)->notice, command, argument);
	}
}

static struct fi_ops counter_fid_ops = FID_OPS(counter_close, none_bind, counter_control);
static struct fi_ops_cntr counter_ops = {
	.size = sizeof(counter_ops),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_add,
	.adderr = cntr_adderr,
	.set = cntr_set,
	.seterr = cntr_seterr,
	.wait = counter_wait,
};

int counter_open(
	struct fid_domain *fid, struct fi_cntr_attr *attr, struct fid_cntr **opened, void *context)
{
	struct domain *domain = object_of(fid, struct domain);
	struct counter *counter;

	if (attr && !wait_is_offered(attr->wait_obj))
		return -FI_ENOSYS;
	if (attr && (attr->events != FI_CNTR_EVENTS_COMP || attr->flags != 0))
		return -FI_EINVAL;
	counter = calloc(1, sizeof(*counter));
	if (!counter ||
		!notice_open(&counter->notice, domain, attr ? attr->wait_obj : FI_WAIT_NONE)) {
		free(counter);
		return -FI_ENOMEM;
	}
	counter->fid.fid = (struct fid){FI_CLASS_CNTR, context, &counter_fid_ops};
	counter->fid.ops = &counter_ops;
	domain_enter(domain);
	domain->uses++;
	domain_leave(domain);
	*opened = &counter->fid;
	return 0;
}
