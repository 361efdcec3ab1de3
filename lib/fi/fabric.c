/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric.c - fabrics, domains, and queues of events that are not completions. */
#include <fi/remote.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <base/futex.h>
#include <base/guard.h>
#include <base/settings.h>
#include <base/timespec.h>
#include <host/member.h>

#define TURN MILLISECOND /* of the thread that makes progress for FI_PROGRESS_AUTO */

/* --- what is open, in the order of opening */

static pthread_mutex_t opened_lock = PTHREAD_MUTEX_INITIALIZER;
static struct link opened_list = LIST_INITIAL(opened_list);

/* name: NULL: it has none. Returns NULL without memory. */
static struct opened *opened_make(struct fid *fid, const char *name)
{
	const size_t bytes = name ? strlen(name) + 1 : 1;
	struct opened *opened = calloc(1, sizeof(*opened) + bytes);

	if (!opened)
		return NULL;
	opened->fid = fid;
	memcpy(opened->name, name ? name : "", bytes);
	return opened;
}

static void opened_add(struct opened *opened)
{
	pthread_mutex_lock(&opened_lock);
	list_append(&opened_list, &opened->link);
	pthread_mutex_unlock(&opened_lock);
}

static void opened_remove(struct opened *opened)
{
	pthread_mutex_lock(&opened_lock);
	link_remove(&opened->link);
	pthread_mutex_unlock(&opened_lock);
	free(opened);
}

void *opened_find(size_t class, const char *name, const void *wanted)
{
	struct fid *found = NULL;

	pthread_mutex_lock(&opened_lock);
	list_each (const struct opened, opened, &opened_list, link)
		if (!found && opened->fid->fclass == class && strcmp(opened->name, name) == 0 &&
			(!wanted || wanted == opened->fid))
			found = opened->fid;
	pthread_mutex_unlock(&opened_lock);
	return found;
}

/* --- event queues */

struct event {
	struct link link;
	uint32_t event;
	int err; /* 0: it is none */
	size_t size;
	char data[];
};

int eq_post(struct eq *eq, uint32_t number, const void *data, size_t size, int err)
{
	struct event *event = malloc(sizeof(*event) + size);

	if (!event)
		return -FI_ENOMEM;
	*event = (struct event){.event = number, .err = err, .size = size};
	memcpy(event->data, data, size);
	pthread_mutex_lock(&eq->mutex);
	if (eq->event >= 0 && list_empty(&eq->events))
		(void)eventfd_write(eq->event, 1);
	list_append(&eq->events, &event->link);
	pthread_cond_broadcast(&eq->changed);
	pthread_mutex_unlock(&eq->mutex);
	return 0;
}

/* The mutex is held. */
static void event_drop(struct eq *eq, struct event *event)
{
	eventfd_t count;

	link_remove(&event->link);
	free(event);
	if (eq->event >= 0 && list_empty(&eq->events))
		(void)eventfd_read(eq->event, &count);
}

/* The mutex is held. */
static ssize_t eq_take(struct eq *eq, uint32_t *number, void *buffer, size_t room, uint64_t flags)
{
	struct event *event = list_first(&eq->events, struct event, link);
	size_t size;

	if (!event)
		return -FI_EAGAIN;
	if (event->err != 0)
		return -FI_EAVAIL;
	if (room < event->size)
		return -FI_ETOOSMALL;
	size = event->size;
	*number = event->event;
	memcpy(buffer, event->data, size);
	if (!(flags & FI_PEEK))
		event_drop(eq, event);
	return (ssize_t)size;
}

static ssize_t eq_read(
	struct fid_eq *fid, uint32_t *event, void *buffer, size_t length, uint64_t flags)
{
	struct eq *eq = object_of(fid, struct eq);
	ssize_t result;

	pthread_mutex_lock(&eq->mutex);
	result = eq_take(eq, event, buffer, length, flags);
	pthread_mutex_unlock(&eq->mutex);
	return result;
}

/* Of a thread that waits, also if it is cancelled then. */
static void eq_await_end(void *waited)
{
	struct eq *eq = waited;

	eq->waiting--;
	pthread_mutex_unlock(&eq->mutex);
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *event, void *buffer, size_t length,
	int timeout, uint64_t flags)
{
	struct eq *eq = object_of(fid, struct eq);
	struct timespec end;
	ssize_t result;
	int waited = 0;

	if (eq->object == FI_WAIT_NONE)
		return -FI_EINVAL;
	end = timespec_of(time_monotonic() + (timeout > 0 ? (uint64_t)timeout * MILLISECOND : 0));
	pthread_mutex_lock(&eq->mutex);
	eq->waiting++;
	pthread_cleanup_push(eq_await_end, eq);
	while ((result = eq_take(eq, event, buffer, length, flags)) == -FI_EAGAIN && waited == 0 &&
		timeout != 0)
		waited = timeout < 0 ? pthread_cond_wait(&eq->changed, &eq->mutex)
				     : pthread_cond_timedwait(&eq->changed, &eq->mutex, &end);
	pthread_cleanup_pop(true);
	return result;
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *entry, uint64_t flags)
{
	struct eq *eq = object_of(fid, struct eq);
	struct event *event;
	ssize_t result = -FI_EAGAIN;

	pthread_mutex_lock(&eq->mutex);
	event = list_first(&eq->events, struct event, link);
	if (event && event->err != 0) {
		struct fi_eq_entry about;

		memcpy(&about, event->data, sizeof(about));
		entry->fid = about.fid;
		entry->context = about.context;
		entry->data = about.data;
		entry->err = entry->prov_errno = event->err;
		entry->err_data = NULL;
		entry->err_data_size = 0;
		if (!(flags & FI_PEEK))
			event_drop(eq, event);
		result = sizeof(*entry);
	}
	pthread_mutex_unlock(&eq->mutex);
	return result;
}

const char *error_text(int number, char *buffer, size_t length)
{
	const char *text = fi_strerror(number);

	if (buffer && length > 0)
		(void)snprintf(buffer, length, "%s", text);
	return text;
}

static ssize_t eq_write(
	struct fid_eq *fid, uint32_t event, const void *buffer, size_t length, uint64_t flags)
{
	int result;

	(void)flags;
	if (length > INT32_MAX)
		return -FI_EINVAL;
	result = eq_post(object_of(fid, struct eq), event, buffer, length, 0);
	return result == 0 ? (ssize_t)length : result;
}

static const char *eq_strerror(
	struct fid_eq *fid, int number, const void *data, char *buffer, size_t length)
{
	(void)fid;
	(void)data;
	return error_text(number, buffer, length);
}

/* A child made by fork() has neither the threads that wait, nor one that may have the mutex. */
static bool eq_is_awaited(struct eq *eq)
{
	bool awaited;

	if (library_is_forked())
		return false;
	pthread_mutex_lock(&eq->mutex);
	awaited = eq->waiting != 0;
	pthread_mutex_unlock(&eq->mutex);
	return awaited;
}

static int eq_close(struct fid *fid)
{
	struct eq *eq = object_of(fid, struct eq);

	if (atomic_load(&eq->uses) != 0 || eq_is_awaited(eq))
		return -FI_EBUSY;
	list_each (struct event, event, &eq->events, link)
		free(event);
	if (eq->event >= 0)
		close(eq->event);
	if (!library_is_forked()) { /* else it would wait for them */
		pthread_cond_destroy(&eq->changed);
		pthread_mutex_destroy(&eq->mutex);
	}
	atomic_fetch_sub(&eq->fabric->uses, 1);
	free(eq);
	return 0;
}

int eq_arm(struct eq *eq)
{
	int result;

	if (eq->object != FI_WAIT_FD)
		return -FI_EINVAL;
	pthread_mutex_lock(&eq->mutex);
	result = list_empty(&eq->events) ? 0 : -FI_EAGAIN;
	pthread_mutex_unlock(&eq->mutex);
	return result;
}

static int eq_control(struct fid *fid, int command, void *argument)
{
	const struct eq *eq = object_of(fid, struct eq);

	return notice_control(
		&(struct notice){.object = eq->object, .poll = eq->event}, command, argument);
}

static struct fi_ops eq_fid_ops = FID_OPS(eq_close, none_bind, eq_control);
static struct fi_ops_eq eq_ops = {
	.size = sizeof(eq_ops),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

int eq_open(
	struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **opened, void *context)
{
	pthread_condattr_t clock;
	struct eq *eq;

	if (attr && !wait_is_offered(attr->wait_obj))
		return -FI_ENOSYS;
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	eq->object = attr ? attr->wait_obj : FI_WAIT_NONE;
	eq->event = eq->object == FI_WAIT_FD ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) : -1;
	if (eq->object == FI_WAIT_FD && eq->event < 0) {
		free(eq);
		return -FI_ENOMEM;
	}
	eq->fid.fid = (struct fid){FI_CLASS_EQ, context, &eq_fid_ops};
	eq->fid.ops = &eq_ops;
	eq->fabric = object_of(fabric, struct fabric);
	pthread_mutex_init(&eq->mutex, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&eq->changed, &clock);
	pthread_condattr_destroy(&clock);
	list_init(&eq->events);
	atomic_fetch_add(&eq->fabric->uses, 1);
	*opened = &eq->fid;
	return 0;
}

/* --- domains */

/* Closed ones, under opened_lock, to be used again. Their memory stays, for a thread that has
 * closed the last object of one, or has woken the thread that closes it, may yet look at its lock.
 */
static struct domain *domains_closed;

/* Zero but for its lock. NULL: no memory. */
static struct domain *domain_take(void)
{
	struct domain *domain;

	pthread_mutex_lock(&opened_lock);
	domain = domains_closed;
	if (domain)
		domains_closed = domain->next;
	pthread_mutex_unlock(&opened_lock);
	if (!domain) {
		domain = calloc(1, sizeof(*domain));
		if (domain)
			lock_start(&domain->lock);
		return domain;
	}
	memset(domain, 0, offsetof(struct domain, lock));
	return domain;
}

/* No thread has its lock. */
static void domain_give(struct domain *domain)
{
	pthread_mutex_lock(&opened_lock);
	domain->next = domains_closed;
	domains_closed = domain;
	pthread_mutex_unlock(&opened_lock);
}

void domain_rouse(struct domain *domain)
{
	domain->roused = false;
	list_each (struct endpoint, endpoint, &domain->endpoints, link) {
		if (endpoint->roused)
			messages_rouse(endpoint->messages);
		endpoint->roused = false;
	}
}

void domains_forget(void)
{
	opened_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	list_each (const struct opened, opened, &opened_list, link) {
		struct domain *domain = object_of(opened->fid, struct domain);

		if (opened->fid->fclass != FI_CLASS_DOMAIN)
			continue;
		domain->lock = (struct lock){0};
		lock_start(&domain->lock);
		list_each (struct endpoint, endpoint, &domain->endpoints, link)
			endpoint->sleepers = 0;
	}
}

/* FI_PROGRESS_AUTO: what the front end does for peers, while the program makes no calls. */
static void *domain_run(void *argument)
{
	struct domain *domain = argument;

	(void)pthread_setname_np(pthread_self(), "postern-fi");
	while (atomic_load(&domain->stop) == 0) {
		if (lock_try(&domain->lock)) {
			list_each (struct endpoint, endpoint, &domain->endpoints, link)
				endpoint_progress(endpoint);
			domain_leave(domain);
		}
		futex_wait(&domain->stop, 0, TURN);
	}
	return NULL;
}

/* The program's signals are for its own threads, which may block them later and wait for them. */
static bool domain_run_begin(struct domain *domain)
{
	sigset_t before;
	bool begun;

	guard_block_signals(&before);
	begun = pthread_create(&domain->thread, NULL, domain_run, domain) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return begun;
}

static int domain_close(struct fid *fid)
{
	struct domain *domain = object_of(fid, struct domain);
	bool busy;

	/* A thread that has just closed the last object has to give the lock back first. */
	domain_enter(domain);
	busy = domain->uses != 0;
	domain_leave(domain);
	if (busy)
		return -FI_EBUSY;
	atomic_store(&domain->stop, 1);
	futex_wake(&domain->stop, 1);
	if (domain->automatic && !library_is_forked())
		pthread_join(domain->thread, NULL);
	if (domain->eq)
		atomic_fetch_sub(&domain->eq->uses, 1);
	atomic_fetch_sub(&domain->fabric->uses, 1);
	opened_remove(domain->opened);
	domain_give(domain);
	return 0;
}

/* Registrations are the only events that a domain has. */
static int domain_bind(struct fid *fid, struct fid *bound, uint64_t flags)
{
	struct domain *domain = object_of(fid, struct domain);

	if (bound->fclass != FI_CLASS_EQ || domain->eq)
		return -FI_EINVAL;
	if ((flags & ~FI_REG_MR) != 0)
		return -FI_EBADFLAGS;
	if (flags & FI_REG_MR) {
		domain->eq = object_of(bound, struct eq);
		atomic_fetch_add(&domain->eq->uses, 1);
	}
	return 0;
}

/* What all that reach each other have alike. */
static uint32_t locality_of(const struct domain *domain, const char *item)
{
	switch (domain->kind) {
	case ADDRESS_NODE:
		return member_locality(CARD_NODE, item ? item : "");
	case ADDRESS_ETHERNET_UDP:
		return member_locality(CARD_ETHERNET_UDP, "");
	case ADDRESS_UDP:
		return member_locality(
			setting_nodes_are_addresses(domain->device) ? CARD_UDP : CARD_UDP6, "");
	default:
		return 0;
	}
}

static struct fi_ops domain_fid_ops = FID_OPS(domain_close, domain_bind, regions_control);

int domain_open(
	struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **opened, void *context)
{
	struct domain *domain;
	enum fi_threading threading;

	if (!info || !info->domain_attr)
		return -FI_EINVAL;
	threading = info->domain_attr->threading;
	domain = domain_take();
	if (!domain)
		return -FI_ENOMEM;
	if (!info_device(info->domain_attr->name, &domain->device, &domain->kind)) {
		domain_give(domain);
		return -FI_EINVAL;
	}
	domain->locality = locality_of(domain, info->domain_attr->name);
	domain->fid.fid = (struct fid){FI_CLASS_DOMAIN, context, &domain_fid_ops};
	domain->fid.ops = &domain_ops;
	domain->fid.mr = &mr_ops;
	domain->fabric = object_of(fabric, struct fabric);
	domain->automatic = info->domain_attr->data_progress == FI_PROGRESS_AUTO ||
			    info->domain_attr->control_progress == FI_PROGRESS_AUTO;
	domain->locked = threading != FI_THREAD_DOMAIN || domain->automatic;
	domain->basic = info->domain_attr->mr_mode == FI_MR_BASIC;
	list_init(&domain->endpoints);
	list_init(&domain->counters);
	regions_init(domain);
	domain->opened = opened_make(&domain->fid.fid, info->domain_attr->name);
	if (!domain->opened) {
		domain_give(domain);
		return -FI_ENOMEM;
	}
	if (domain->automatic && !domain_run_begin(domain)) {
		free(domain->opened);
		domain_give(domain);
		return -FI_EAGAIN;
	}
	opened_add(domain->opened);
	atomic_fetch_add(&domain->fabric->uses, 1);
	*opened = &domain->fid;
	return 0;
}

/* --- fabrics */

static int fabric_close(struct fid *fid)
{
	struct fabric *fabric = object_of(fid, struct fabric);

	if (atomic_load(&fabric->uses) != 0)
		return -FI_EBUSY;
	front_close(&fi_front);
	opened_remove(fabric->opened);
	free(fabric);
	return 0;
}

static struct fi_ops fabric_fid_ops = FID_OPS(fabric_close, none_bind, none_control);

int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **opened, void *context)
{
	struct fabric *fabric = calloc(1, sizeof(*fabric));

	if (!fabric)
		return -FI_ENOMEM;
	fabric->opened = opened_make(&fabric->fid.fid, attr->name);
	if (!fabric->opened) {
		free(fabric);
		return -FI_ENOMEM;
	}
	/* On standard error stands what is wrong. */
	if (front_open(&fi_front) != ANSWER_OK) {
		free(fabric->opened);
		free(fabric);
		return -FI_ENODEV;
	}
	fabric->fid.fid = (struct fid){FI_CLASS_FABRIC, context, &fabric_fid_ops};
	fabric->fid.ops = &fabric_ops;
	fabric->fid.api_version = attr->api_version;
	opened_add(fabric->opened);
	*opened = &fabric->fid;
	return 0;
}
