/* SPDX-License-Identifier: BSD-3-Clause */
/* clients.c - see clients.h. */
#include <pmd-glue/clients.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>

#include <base/clock.h>
#include <base/log.h>
#include <base/port.h>
#include <base/random.h>
#include <pmd-glue/disposal.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/kernel.h>
#include <pmd-glue/pair.h>

#define HALF_OPEN_SHARE 16u /* of a user */
#define HALF_OPEN_TIME  SECOND
/* Connections that are heard: so many for each millisecond, and in a look, which may be late on a
 * busy machine. */
#define CALL_TIME     MILLISECOND
#define CALL_SHARE    4u
#define CALLS_AT_ONCE 64u
/* In a look: */
#define WAKES_AT_ONCE 4u /* of a process, which need not send more than one */
#define COLD_LOOKS    4u
#define PIDS_TRIED    65536u
#define PID_MAX       0x7fffffffu /* of those that CLIENT_PID_ANY finds */

/* --- processes --- */

/* C1. */
static uint64_t pid_hash(const struct clients *clients, uint32_t pid)
{
	return random_mix((pid + clients->chance[0]) * (clients->chance[1] | 1));
}

static struct client **bucket_of(struct clients *clients, uint32_t pid)
{
	return &clients->buckets[pid_hash(clients, pid) % CLIENT_BUCKETS];
}

struct client *client_find(struct clients *clients, uint32_t pid)
{
	struct client *client = *bucket_of(clients, pid);

	while (client && client->connection.pid != pid)
		client = client->next;
	return client;
}

static struct user *user_find(const struct clients *clients, uid_t uid)
{
	for (unsigned n = 0; n < clients->user_count; n++)
		if (clients->users[n]->uid == uid)
			return clients->users[n];
	return NULL;
}

/* NULL: no memory. */
static struct user *user_of(struct clients *clients, uid_t uid)
{
	struct user *user = user_find(clients, uid);

	if (user || clients->user_count == USERS_MAX || !(user = calloc(1, sizeof(*user))))
		return user;
	user->uid = uid;
	user->at = clients->user_count;
	clients->users[clients->user_count++] = user;
	return user;
}

/* --- hot and cold (C2) --- */

static void users_swap(struct clients *clients, unsigned a, unsigned b)
{
	struct user *kept = clients->users[a];

	clients->users[a] = clients->users[b];
	clients->users[b] = kept;
	clients->users[a]->at = a;
	clients->users[b]->at = b;
}

static void user_swap(struct user *user, unsigned a, unsigned b)
{
	struct client *kept = user->clients[a];

	user->clients[a] = user->clients[b];
	user->clients[b] = kept;
	user->clients[a]->at = a;
	user->clients[b]->at = b;
}

static bool client_hot(const struct client *client)
{
	return client->at < client->user->hot;
}

static void cold_remove(struct clients *clients, struct client *client)
{
	struct client *last = clients->cold[--clients->cold_count];

	clients->cold[client->cold_at] = last;
	last->cold_at = client->cold_at;
}

void client_warm(struct clients *clients, struct client *client)
{
	struct user *user = client->user;

	client->heard = true;
	if (client_hot(client))
		return;
	cold_remove(clients, client);
	user_swap(user, client->at, user->hot++);
	if (user->hot == 1)
		users_swap(clients, user->at, clients->hot_users++);
}

static void client_cool(struct clients *clients, struct client *client)
{
	struct user *user = client->user;

	client->cold_at = clients->cold_count;
	clients->cold[clients->cold_count++] = client;
	user_swap(user, client->at, --user->hot);
	if (user->hot == 0)
		users_swap(clients, user->at, --clients->hot_users);
}

void clients_cool(struct clients *clients)
{
	clients->all = true;
	for (unsigned n = clients->hot_users; n-- > 0;) {
		struct user *user = clients->users[n];

		for (unsigned i = user->hot; i-- > 0;) {
			if (!user->clients[i]->heard)
				client_cool(clients, user->clients[i]);
			else
				user->clients[i]->heard = false;
		}
	}
}

void clients_look(struct clients *clients)
{
	unsigned left = clients->cold_count;

	if (!clients->all && left > COLD_LOOKS)
		left = COLD_LOOKS;
	clients->all = false;
	for (; left > 0; left--) {
		struct client *client;

		if (clients->cold_next >= clients->cold_count)
			clients->cold_next = 0;
		client = clients->cold[clients->cold_next];
		if (pair_waits(client->pair))
			client_warm(clients, client); /* the last cold one is here now */
		else
			clients->cold_next++;
	}
}

void clients_rest(struct clients *clients)
{
	for (unsigned n = 0; n < clients->user_count; n++)
		for (unsigned i = 0; i < clients->users[n]->count; i++)
			pair_rest(clients->users[n]->clients[i]->pair);
}

/* --- coming and going --- */

/* It has no client any more, so it is cold. */
static void user_forget(struct clients *clients, struct user *user)
{
	users_swap(clients, user->at, --clients->user_count);
	free(user);
}

static void socket_close(const struct clients *clients, uid_t uid, int socket)
{
	(void)epoll_ctl(clients->set, EPOLL_CTL_DEL, socket, NULL);
	(void)shutdown(socket, SHUT_RDWR); /* its other end hears it at once */
	disposal_hang_up(uid, socket);
}

void client_end(struct clients *clients, struct client *client)
{
	struct user *user = client->user;
	struct client **at = bucket_of(clients, client->connection.pid);

	while (*at != client)
		at = &(*at)->next;
	*at = client->next;
	if (client_hot(client))
		client_cool(clients, client);
	cold_remove(clients, client);
	user_swap(user, client->at, --user->count);
	if (user->count == 0)
		user_forget(clients, user);
	socket_close(clients, client->connection.uid, client->connection.socket);
	munmap((void *)(uintptr_t)client->connection.word, shared_page_bytes());
	pair_close(client->pair);
	disposal_close(client->connection.uid, &client->memory, 1);
	free(client);
	clients->count--;
}

static struct ended *ended_set(struct clients *clients, uint32_t pid)
{
	return clients->ended[pid_hash(clients, pid) % ENDED_SETS];
}

struct ended *ended_find(struct clients *clients, uint32_t pid)
{
	struct ended *set = ended_set(clients, pid);

	for (unsigned n = 0; n < ENDED_WAYS; n++)
		if (set[n].time != 0 && set[n].identity.pid == pid)
			return &set[n];
	return NULL;
}

/* Of those whose ids share a set, the one that ended first is forgotten. */
static void ended_add(struct clients *clients, const struct switch_identity *identity)
{
	struct ended *set = ended_set(clients, identity->pid), *first = set;

	for (unsigned n = 1; n < ENDED_WAYS; n++)
		if (set[n].time < first->time)
			first = &set[n];
	*first = (struct ended){*identity, glue_now(NULL)};
}

/* Its socket says that it has ended. */
void client_leave(struct clients *clients, struct client *client)
{
	if (client->identity.life != 0)
		ended_add(clients, &client->identity);
	client_end(clients, client);
}

/* Takes wake-ups off its socket; true: it has ended. */
bool client_hear(struct client *client)
{
	enum heard heard = HEARD_MESSAGE;

	for (unsigned n = 0; n < WAKES_AT_ONCE && heard == HEARD_MESSAGE; n++)
		heard = byte_take(client->connection.socket);
	return heard == HEARD_END;
}

/* --- newcomers --- */

/* Is this process id free, now that a process which had it may have ended? */
static bool pid_free(struct clients *clients, uint32_t pid)
{
	struct client *client = client_find(clients, pid);

	if (!client)
		return true;
	if (!client_hear(client))
		return false;
	client_leave(clients, client);
	return true;
}

/* Chooses a process id for a newcomer that wants any. Returns false if none is free. */
static bool pid_choose(struct clients *clients, uint32_t wish, uint32_t *pid)
{
	for (uint32_t n = 0; n < PIDS_TRIED; n++) {
		*pid = (wish + n) & PID_MAX;
		if (!client_find(clients, *pid))
			return true;
	}
	return false;
}

/* C3. May a process of this user come in at all? */
static enum client_verdict share_check(const struct clients *clients, uid_t uid)
{
	const struct user *user = user_find(clients, uid);
	unsigned has = user ? user->count : 0;
	unsigned most = clients->options->user_most ? clients->options->user_most : CLIENTS_OF_USER;

	if (clients->count == CLIENTS_MAX)
		return CLIENT_FULL;
	return has < RTE_MIN(most, CLIENTS_MAX - clients->count) ? CLIENT_WELCOME : CLIENT_SHARE;
}

static enum client_verdict hello_check(const struct parcel *parcel)
{
	const struct client_hello *hello = (const struct client_hello *)(const void *)parcel->bytes;

	if (parcel->length < offsetof(struct client_hello, pid) || hello->magic != CLIENT_MAGIC)
		return CLIENT_STRANGE;
	if (hello->version != CLIENT_VERSION || parcel->length != sizeof(*hello) ||
		hello->pair_bytes != pair_bytes())
		return CLIENT_VERSIONS;
	return hello->space == 0 || hello->space == kernel_space() ? CLIENT_WELCOME : CLIENT_SPACE;
}

static bool answer_send(const struct clients *clients, int socket, enum client_verdict verdict,
	const struct switch_identity *who)
{
	struct client_answer answer = {.magic = CLIENT_MAGIC,
		.version = CLIENT_VERSION,
		.verdict = verdict,
		.frame_size = clients->options->port->frame_size};

	if (who) {
		answer.nid = who->nid;
		answer.pid = who->pid;
		answer.uid = who->uid;
		answer.vlan = who->vlan;
		memcpy(answer.address, who->address, sizeof(answer.address));
	}
	return parcel_send(socket, &answer, sizeof(answer), &clients->page_file, 1);
}

/* Maps what a newcomer brings, opens its pair and answers. The socket stays the caller's unless
 * CLIENT_WELCOME is returned. */
static enum client_verdict client_open(struct clients *clients, struct client *client,
	const struct parcel *parcel, const struct ucred *who, uint32_t pid)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
	struct rendezvous_connection *connection = &client->connection;
	void *page =
		shared_accept(parcel->fds[0], shared_page_bytes(), SHARED_PAGE_SEALS, PROT_READ);
	void *memory =
		shared_accept(parcel->fds[1], pair_bytes(), SHARED_SEALS, PROT_READ | PROT_WRITE);
	enum client_verdict verdict = CLIENT_MEMORY;

	client->identity = (struct switch_identity){.nid = clients->options->nid,
		.pid = pid,
		.uid = who->uid,
		.vlan = clients->options->vlan};
	memcpy(client->identity.address, clients->options->port->address,
		sizeof(client->identity.address));
	*connection = (struct rendezvous_connection){.word = page,
		.cheap = clients->cheap,
		.answered = true,
		.socket = connection->socket,
		.pid = pid,
		.uid = who->uid,
		.process = who->pid};
	if (page && memory) {
		verdict = CLIENT_RESOURCES;
		client->pair = pair_open(memory, 1, clients->options->port->pool,
			clients->options->port->frame_size, NULL);
	}
	if (client->pair) {
		pair_set_whole(client->pair);
		memory = NULL;
		if ((epoll_ctl(clients->set, EPOLL_CTL_MOD, connection->socket, &event) == 0 ||
			    epoll_ctl(clients->set, EPOLL_CTL_ADD, connection->socket, &event) ==
				    0) &&
			answer_send(clients, connection->socket, CLIENT_WELCOME, &client->identity))
			return CLIENT_WELCOME;
		pair_close(client->pair);
	}
	if (memory)
		munmap(memory, pair_bytes());
	if (page)
		munmap(page, shared_page_bytes());
	return verdict;
}

static enum client_verdict client_enter(
	struct clients *clients, int socket, const struct parcel *parcel, const struct ucred *who)
{
	const struct client_hello *hello = (const struct client_hello *)(const void *)parcel->bytes;
	enum client_verdict verdict = hello_check(parcel);
	struct client *client, **bucket;
	struct ended *ended;
	struct user *user;
	uint32_t pid;

	if (verdict != CLIENT_WELCOME)
		return verdict;
	pid = hello->pid;
	if (pid != CLIENT_PID_ANY && !pid_free(clients, pid))
		return CLIENT_PID;
	verdict = share_check(clients, who->uid);
	if (verdict != CLIENT_WELCOME)
		return verdict;
	if (pid == CLIENT_PID_ANY && !pid_choose(clients, hello->wish, &pid))
		return CLIENT_PID;
	client = calloc(1, sizeof(*client));
	user = client ? user_of(clients, who->uid) : NULL;
	if (!user) {
		free(client);
		return CLIENT_RESOURCES;
	}
	client->connection.socket = socket;
	verdict = client_open(clients, client, parcel, who, pid);
	if (verdict != CLIENT_WELCOME) {
		if (user->count == 0)
			user_forget(clients, user);
		free(client);
		return verdict;
	}
	close(parcel->fds[0]); /* it is mapped */
	client->memory = parcel->fds[1];
	client->user = user;
	client->at = user->count;
	user->clients[user->count++] = client;
	client->cold_at = clients->cold_count;
	clients->cold[clients->cold_count++] = client;
	bucket = bucket_of(clients, pid);
	client->next = *bucket;
	*bucket = client;
	clients->count++;
	ended = ended_find(clients, pid);
	if (ended)
		ended->time = 0;
	return CLIENT_WELCOME;
}

static struct ucred socket_owner(int socket)
{
	struct ucred who = {.uid = (uid_t)-1};
	socklen_t size = sizeof(who);

	(void)getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size);
	return who;
}

enum newcomer {
	NEWCOMER_WAITS, /* it has said nothing yet */
	NEWCOMER_IN,    /* it has become a process */
	NEWCOMER_OUT    /* it is refused, and its socket closed */
};

static enum newcomer newcomer_hear(struct clients *clients, int socket)
{
	struct ucred who = socket_owner(socket);
	enum client_verdict verdict = CLIENT_SILENT;
	struct parcel parcel;
	enum heard heard;

	if (disposal_is_full(who.uid)) /* C4 */
		return NEWCOMER_WAITS;
	heard = parcel_take(&parcel, socket, PARCEL_DESCRIPTORS);
	if (heard == HEARD_NOTHING)
		return NEWCOMER_WAITS;
	if (heard == HEARD_MESSAGE)
		verdict = client_enter(clients, socket, &parcel, &who);
	if (verdict == CLIENT_WELCOME)
		return NEWCOMER_IN;
	disposal_close(who.uid, parcel.fds, parcel.count);
	if (clients->refused[verdict]++ == 0)
		log_info("%s: a process of user %u is refused, reason %u", clients->options->name,
			who.uid, verdict);
	if (heard == HEARD_MESSAGE)
		(void)answer_send(clients, socket, verdict, NULL);
	socket_close(clients, who.uid, socket);
	return NEWCOMER_OUT;
}

static void half_open_remove(struct clients *clients, unsigned n)
{
	struct half_open *half_open = &clients->half_open[n];

	clients->half_open_count--;
	memmove(half_open, half_open + 1, (clients->half_open_count - n) * sizeof(*half_open));
}

static void half_open_drop(struct clients *clients, unsigned n)
{
	const struct half_open *half_open = &clients->half_open[n];

	clients->refused[disposal_is_full(half_open->uid) ? CLIENT_RESOURCES : CLIENT_SILENT]++;
	socket_close(clients, half_open->uid, half_open->socket);
	half_open_remove(clients, n);
}

/* Which one makes room: the oldest of the same user, if that has its share, else the oldest. */
static void half_open_make_room(struct clients *clients, uid_t uid)
{
	unsigned count = 0, oldest = 0;

	for (unsigned n = clients->half_open_count; n-- > 0;)
		if (clients->half_open[n].uid == uid) {
			count++;
			oldest = n;
		}
	if (count >= HALF_OPEN_SHARE)
		half_open_drop(clients, oldest);
	else if (clients->half_open_count == HALF_OPEN_MAX)
		half_open_drop(clients, 0);
}

static void half_open_add(struct clients *clients, int socket)
{
	/* What it says may have to stay unread (C4): the switch sleeps meanwhile. */
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	uid_t uid = socket_owner(socket).uid;

	half_open_make_room(clients, uid);
	clients->half_open[clients->half_open_count++] =
		(struct half_open){socket, uid, glue_now(NULL) + HALF_OPEN_TIME};
	(void)epoll_ctl(clients->set, EPOLL_CTL_ADD, socket, &event);
}

void half_open_look(struct clients *clients)
{
	uint64_t now = clients->half_open_count > 0 ? glue_now(NULL) : 0;

	for (unsigned n = 0; n < clients->half_open_count;) {
		if (newcomer_hear(clients, clients->half_open[n].socket) != NEWCOMER_WAITS)
			half_open_remove(clients, n);
		else if (now >= clients->half_open[n].deadline)
			half_open_drop(clients, n);
		else
			n++;
	}
}

/* A process that attacks by connections costs the others little of each millisecond. One that is
 * let in, and leaves at once, costs more than one that is refused. */
static void calls_allow(struct clients *clients)
{
	uint64_t now = glue_now(NULL);
	uint64_t passed = RTE_MIN((now - clients->looked_at) / CALL_TIME, (uint64_t)CALLS_AT_ONCE);

	clients->looked_at += passed * CALL_TIME;
	if (passed == CALLS_AT_ONCE)
		clients->looked_at = now;
	clients->calls = (unsigned)RTE_MIN(clients->calls + passed * CALL_SHARE, CALLS_AT_ONCE);
}

void newcomers_accept(struct clients *clients)
{
	calls_allow(clients);
	if (disposal_lags())
		return;
	while (clients->calls > 0) {
		int socket = accept4(clients->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (socket < 0) {
			if (errno == EMFILE || errno == ENFILE)
				clients->refused[CLIENT_RESOURCES]++;
			return;
		}
		clients->calls--;
		if (newcomer_hear(clients, socket) == NEWCOMER_WAITS)
			half_open_add(clients, socket);
	}
}

void clients_close(struct clients *clients)
{
	while (clients->user_count > 0)
		client_end(clients, clients->users[0]->clients[0]);
	while (clients->half_open_count > 0)
		half_open_drop(clients, clients->half_open_count - 1);
}
