/* SPDX-License-Identifier: BSD-3-Clause */
/* wait.c - how threads wait for a completion queue or a counter: in a call, or at a descriptor.
 *
 * A descriptor (FI_WAIT_FD) is an epoll descriptor of an eventfd, of a timer, and of those of the
 * endpoints' queues of events. fi_trywait() makes progress, lowers all of them and looks once more.
 * From then on the descriptor is readable when an endpoint has an event, when another thread has
 * changed the object, or when the time of a call has come that nothing else would tell of: a
 * greeting that is repeated, a peer that is asked for a sign of life, with PTL_PROGRESS=inline any
 * call at all. */
#include <fi/remote.h>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <base/clock.h>
#include <base/futex.h>
#include <host/interface.h>

#define NAP  (100 * MICROSECOND) /* of a thread that waits for several endpoints */
#define LOOK (250 * MILLISECOND) /* of one that waits for one */

/* --- descriptors */

static bool watch_add(const struct notice *notice, int descriptor)
{
	struct epoll_event event = {.events = EPOLLIN};

	return descriptor >= 0 && epoll_ctl(notice->poll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

static void descriptor_close(int *descriptor)
{
	if (*descriptor >= 0)
		close(*descriptor);
	*descriptor = -1;
}

bool notice_open(struct notice *notice, struct domain *domain, enum fi_wait_obj object)
{
	*notice = (struct notice){
		.domain = domain, .object = object, .poll = -1, .event = -1, .timer = -1};
	list_init(&notice->bindings);
	if (object != FI_WAIT_FD)
		return true;
	notice->poll = epoll_create1(EPOLL_CLOEXEC);
	notice->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	notice->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (notice->poll >= 0 && watch_add(notice, notice->event) &&
		watch_add(notice, notice->timer))
		return true;
	notice_close(notice);
	return false;
}

void notice_close(struct notice *notice)
{
	descriptor_close(&notice->poll);
	descriptor_close(&notice->event);
	descriptor_close(&notice->timer);
}

/* --- endpoints */

static bool watches_open(const struct notice *notice, struct binding *binding)
{
	struct remote *remote = binding->endpoint->remote;
	bool opened;

	binding->watches[0] = messages_watch(binding->endpoint->messages);
	opened = watch_add(notice, binding->watches[0]);
	for (unsigned i = 0; i < QUEUES && remote && opened; i++) {
		binding->watches[1 + i] = remote_watch(remote, i);
		opened = watch_add(notice, binding->watches[1 + i]);
	}
	return opened;
}

static void watches_close(struct binding *binding)
{
	for (unsigned i = 0; i < sizeof(binding->watches) / sizeof(binding->watches[0]); i++)
		descriptor_close(&binding->watches[i]);
}

/* A descriptor that is closed stays watched while the queue's, of which it is a copy, is open. */
static void watches_drop(const struct notice *notice, struct binding *binding)
{
	for (unsigned i = 0; i < sizeof(binding->watches) / sizeof(binding->watches[0]); i++)
		(void)epoll_ctl(notice->poll, EPOLL_CTL_DEL, binding->watches[i], NULL);
	watches_close(binding);
}

bool notice_join(struct notice *notice, struct binding *binding)
{
	list_each (struct binding, other, &notice->bindings, link)
		if (other->endpoint == binding->endpoint)
			return true;
	if (notice->object == FI_WAIT_FD && !watches_open(notice, binding)) {
		watches_drop(notice, binding);
		return false;
	}
	notice_rouse(notice); /* threads that wait for another endpoint alone */
	list_append(&notice->bindings, &binding->link);
	return true;
}

void notice_part(struct binding *binding)
{
	if (!link_listed(&binding->link))
		return;
	link_remove(&binding->link);
	watches_close(binding);
}

void notice_drive(const struct notice *notice)
{
	list_each (struct binding, binding, &notice->bindings, link)
		endpoint_progress(binding->endpoint);
}

/* --- waits */

void notice_wake(struct notice *notice)
{
	struct binding *binding;

	if (notice->armed) {
		notice->armed = false;
		(void)eventfd_write(notice->event, 1);
	}
	if (notice->blocked == 0)
		return;
	futex_wake(&notice->changes, INT32_MAX);
	binding = list_first(&notice->bindings, struct binding, link);
	if (binding)
		binding->endpoint->roused = notice->domain->roused = true;
}

struct sleep {
	struct notice *notice;
	const struct remote *remote; /* NULL: there is none */
	uint32_t changes;
};

static bool sleep_look(void *context)
{
	const struct sleep *sleep = context;

	return atomic_load_explicit(&sleep->notice->changes, memory_order_acquire) !=
		       sleep->changes ||
	       (sleep->remote && remote_has_events(sleep->remote));
}

/* Does the endpoint need calls soon, whatever happens? */
static bool endpoint_is_late(const struct endpoint *endpoint)
{
	return endpoint->asking != 0 || !list_empty(&endpoint->greetings.waiting) ||
	       messages_is_late(endpoint->messages) ||
	       (endpoint->remote && remote_is_late(endpoint->remote));
}

/* An endpoint that closes waits until nobody sleeps at it. */
void notice_sleep(struct notice *notice, uint64_t left)
{
	struct domain *domain = notice->domain;
	struct sleep sleep = {.notice = notice,
		.changes = atomic_load_explicit(&notice->changes, memory_order_relaxed)};
	struct binding *binding = list_first(&notice->bindings, struct binding, link);
	struct endpoint *only = binding && binding->link.next == &notice->bindings &&
						binding->endpoint->messages &&
						!binding->endpoint->closing
					? binding->endpoint
					: NULL;

	notice->blocked++;
	if (only) {
		uint64_t most = endpoint_is_late(only) ? MILLISECOND : LOOK;

		only->looks = 0;
		only->sleepers++;
		sleep.remote = only->remote;
		domain_leave(domain);
		messages_await(only->messages, only->remote ? only->remote->queues : NULL,
			only->remote ? QUEUES : 0, sleep_look, &sleep, left < most ? left : most);
		domain_enter(domain);
		only->sleepers--;
	} else {
		const uint64_t most = list_empty(&notice->bindings) ? left : NAP;

		domain_leave(domain);
		futex_wait(&notice->changes, sleep.changes, left < most ? left : most);
		domain_enter(domain);
	}
	notice->blocked--;
}

bool endpoint_is_inline(const struct endpoint *endpoint)
{
	const struct interface *interface = &interfaces[handle_interface(endpoint->interface)];

	return interface->inlined && !interface_is_helped(interface);
}

/* When the descriptor is to be readable, whatever happens. 0: never. */
static uint64_t endpoint_time(const struct endpoint *endpoint)
{
	if (endpoint_is_late(endpoint) || endpoint_is_inline(endpoint))
		return MILLISECOND;
	return messages_pending(endpoint->messages) != 0 || endpoint->directed != 0 ? LOOK : 0;
}

static void timer_set(const struct notice *notice, uint64_t time)
{
	const struct itimerspec when = {.it_value.tv_nsec = (long)time};

	(void)timerfd_settime(notice->timer, 0, &when, NULL);
}

int notice_arm(struct notice *notice)
{
	uint64_t time = 0;
	eventfd_t count;

	(void)eventfd_read(notice->event, &count);
	notice->armed = true;
	list_each (struct binding, binding, &notice->bindings, link) {
		struct remote *remote = binding->endpoint->remote;
		uint64_t own = endpoint_time(binding->endpoint);

		binding->endpoint->looks = 0;
		messages_lower(binding->endpoint->messages);
		if (remote)
			remote_lower(remote);
		if (messages_has_events(binding->endpoint->messages) ||
			(remote && remote_has_events(remote)))
			return -FI_EAGAIN;
		if (own != 0 && (time == 0 || own < time))
			time = own;
	}
	timer_set(notice, time);
	return 0;
}

int notice_control(const struct notice *notice, int command, void *argument)
{
	switch (command) {
	case FI_GETWAIT:
		if (notice->object != FI_WAIT_FD)
			return -FI_ENODATA;
		*(int *)argument = notice->poll;
		return 0;
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)argument = notice->object;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

bool wait_is_offered(enum fi_wait_obj object)
{
	return object == FI_WAIT_NONE || object == FI_WAIT_UNSPEC || object == FI_WAIT_FD;
}

/* --- fi_trywait() */

static int object_arm(struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return cq_arm(object_of(fid, struct cq));
	case FI_CLASS_CNTR:
		return counter_arm(object_of(fid, struct counter));
	case FI_CLASS_EQ:
		return eq_arm(object_of(fid, struct eq));
	default:
		return -FI_EINVAL;
	}
}

int wait_try(struct fid_fabric *fabric, struct fid **fids, int count)
{
	int result = 0;

	(void)fabric;
	for (int i = 0; i < count && result == 0; i++)
		result = object_arm(fids[i]);
	return result;
}
