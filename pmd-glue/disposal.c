/* SPDX-License-Identifier: BSD-3-Clause */
/* disposal.c - see disposal.h. */
#include <pmd-glue/disposal.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

#include <base/guard.h>
#include <pmd-glue/shared.h>

#define WORKERS_MAX 32u
#define OWNERS_MAX  256u
#define LAG         256u /* sockets */
#define MEMORIES    32u  /* count as one descriptor that may wait (D3) */

struct item {
	int fd;
	uid_t uid;
	unsigned weight;
	STAILQ_ENTRY(item) next;
};
STAILQ_HEAD(items, item);

/* A user who has something to be closed that may wait. */
struct owner {
	uid_t uid;
	unsigned weight; /* of all; 0: this is nobody's */
	bool served;     /* a thread closes one of these */
	struct items items;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct items sockets = STAILQ_HEAD_INITIALIZER(sockets); /* not looked at yet */
static unsigned socket_count;
static struct owner owners[OWNERS_MAX + 1]; /* the last is that of all who find no other */
static unsigned owner_turn;
static unsigned workers, closing; /* threads; of them: that may wait */

static void *work(void *unused);

/* Of all functions from here to work() the caller has the lock. */

/* Another thread. Returns false if there is none. */
static bool worker_make(void)
{
	sigset_t before;
	pthread_t thread;
	int error;

	if (workers == WORKERS_MAX)
		return false;
	guard_block_signals(&before);
	error = pthread_create(&thread, NULL, work, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error != 0)
		return false;
	workers++;
	pthread_setname_np(thread, "postern-close");
	pthread_detach(thread);
	return true;
}

/* There is something to do. Without a thread it waits until the next time. */
static void work_announce(void)
{
	if (workers == 0)
		(void)worker_make();
	pthread_cond_signal(&more);
}

/* D1. */
static struct owner *owner_of(uid_t uid)
{
	struct owner *free = &owners[OWNERS_MAX];

	for (unsigned n = OWNERS_MAX; n-- > 0;) {
		if (owners[n].weight == 0)
			free = &owners[n];
		else if (owners[n].uid == uid)
			return &owners[n];
	}
	return free;
}

static void owner_add(struct item *item)
{
	struct owner *owner = owner_of(item->uid);

	if (owner->weight == 0) {
		owner->uid = item->uid;
		STAILQ_INIT(&owner->items);
	}
	/* Only memory has seals. */
	item->weight = fcntl(item->fd, F_GET_SEALS) >= 0 ? 1 : MEMORIES;
	owner->weight += item->weight;
	STAILQ_INSERT_TAIL(&owner->items, item, next);
}

/* Whose turn it is. NULL: nobody's. */
static struct owner *owner_next(void)
{
	for (unsigned n = 0; n <= OWNERS_MAX; n++) {
		struct owner *owner = &owners[owner_turn++ % (OWNERS_MAX + 1)];

		if (owner->weight > 0 && !owner->served)
			return owner;
	}
	return NULL;
}

/* D2. */
static void socket_look(void)
{
	struct item *item = STAILQ_FIRST(&sockets);
	bool empty;

	STAILQ_REMOVE_HEAD(&sockets, next);
	socket_count--;
	pthread_mutex_unlock(&lock);
	empty = messages_drop(item->fd);
	if (empty) {
		close(item->fd);
		free(item);
	}
	pthread_mutex_lock(&lock);
	if (!empty)
		owner_add(item);
}

static void owner_serve(struct owner *owner)
{
	struct item *item = STAILQ_FIRST(&owner->items);

	STAILQ_REMOVE_HEAD(&owner->items, next);
	owner->served = true;
	closing++;
	pthread_mutex_unlock(&lock);
	close(item->fd);
	pthread_mutex_lock(&lock);
	closing--;
	owner->served = false;
	owner->weight -= item->weight;
	free(item);
}

static void *work(void *unused)
{
	struct owner *owner;

	pthread_mutex_lock(&lock);
	for (;;) {
		if (socket_count > 0)
			socket_look();
		else if ((owner = owner_next()) && (closing + 1 < workers || worker_make()))
			owner_serve(owner);
		else
			pthread_cond_wait(&more, &lock);
	}
	return unused;
}

/* NULL: no memory, and the descriptor stays open. */
static struct item *item_make(uid_t uid, int fd)
{
	struct item *item = malloc(sizeof(*item));

	if (item)
		*item = (struct item){.fd = fd, .uid = uid};
	return item;
}

void disposal_close(uid_t uid, const int *fds, unsigned count)
{
	pthread_mutex_lock(&lock);
	for (; count > 0; count--) {
		struct item *item = item_make(uid, *fds++);

		if (item)
			owner_add(item);
	}
	work_announce();
	pthread_mutex_unlock(&lock);
}

void disposal_hang_up(uid_t uid, int socket)
{
	struct item *item = item_make(uid, socket);

	if (!item)
		return;
	pthread_mutex_lock(&lock);
	STAILQ_INSERT_TAIL(&sockets, item, next);
	socket_count++;
	work_announce();
	pthread_mutex_unlock(&lock);
}

bool disposal_is_full(uid_t uid)
{
	bool full;

	pthread_mutex_lock(&lock);
	full = owner_of(uid)->weight >= DISPOSAL_SHARE * MEMORIES;
	pthread_mutex_unlock(&lock);
	return full;
}

bool disposal_lags(void)
{
	bool lags;

	pthread_mutex_lock(&lock);
	lags = socket_count >= LAG;
	pthread_mutex_unlock(&lock);
	return lags;
}
