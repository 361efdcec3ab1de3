/* SPDX-License-Identifier: BSD-3-Clause */
/* rendezvous.c - see rendezvous.h.
 *
 *      connector                                  acceptor
 *      memory, sealed
 *      HELLO {who, sizes} + memory, page   ---->  checks, maps
 *                                          <----  ANSWER {who, sizes} + page
 *      wake-ups                            <--->  wake-ups
 *
 * A page is one process's: it alone can write to it, others map it to read its word.
 */
#include <pmd-glue/rendezvous.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/membarrier.h>

#include <base/cancel.h>
#include <base/clock.h>
#include <base/log.h>
#include <base/pages.h>
#include <base/remedy.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/directory.h>
#include <pmd-glue/shared.h>

#define CONNECTIONS_MAX 1024u
#define HALF_OPEN_MAX   16u
#define HALF_OPEN_TIME  SECOND
#define BACKLOG         256
/* In one series of rendezvous_turn(). */
#define EVENTS_AT_ONCE  64
#define ACCEPTS_AT_ONCE 16u
#define VAIN_AT_ONCE    4u  /* of these, connections that are refused, or have said nothing yet */
#define WAKES_AT_ONCE   64u /* of one connection */

static_assert(sizeof(struct rendezvous_hello) <= PARCEL_BYTES, "a parcel holds it");

/* A connection that has not said HELLO. */
struct half_open {
	int socket;
	uint64_t deadline;
};

struct rendezvous {
	struct rendezvous *next; /* of this process's */
	struct rendezvous_options options;
	struct directory directory;
	uint64_t incarnation;
	int listener;
	int set;
	int page_file;
	bool cheap;  /* H5: this process is registered */
	bool looked; /* in this series of rendezvous_turn() */
	uint64_t refused[REFUSALS];
	struct sleeper sleeper;
	struct link reporting; /* connections with events to report */
	unsigned half_open_count;
	unsigned connection_count;
	struct half_open half_open[HALF_OPEN_MAX]; /* the oldest first */
	struct rendezvous_connection *connections[CONNECTIONS_MAX];
	/* Of the connections, again, each + 1; 0: none. A child made by fork() while the owner was
	 * at work must not follow pointers. */
	int sockets[CONNECTIONS_MAX];
};

/* A process that has not answered wants to be woken. */
static const _Atomic uint32_t unanswered = WORD_ASLEEP;

static void close_and_forget(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Counts a refusal; the first one for each reason has a line in the log. */
#define complain(rendezvous, reason, ...)                                                          \
	do {                                                                                       \
		if ((rendezvous)->refused[reason]++ == 0)                                          \
			log_warning(__VA_ARGS__);                                                  \
	} while (0)

/* --- H7 --- */

static pthread_mutex_t rendezvous_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rendezvous *opened;
static bool rendezvous_handle_fork;

static void rendezvous_before_fork(void)
{
	pthread_mutex_lock(&rendezvous_lock);
}

static void rendezvous_after_fork(void)
{
	pthread_mutex_unlock(&rendezvous_lock);
}

static void rendezvous_in_child(void)
{
	for (struct rendezvous *rendezvous = opened; rendezvous; rendezvous = rendezvous->next) {
		close_and_forget(&rendezvous->listener);
		close_and_forget(&rendezvous->set);
		directory_close(&rendezvous->directory);
		for (unsigned n = 0; n < HALF_OPEN_MAX; n++)
			close_and_forget(&rendezvous->half_open[n].socket);
		for (unsigned n = 0; n < CONNECTIONS_MAX; n++)
			if (rendezvous->sockets[n] != 0)
				close(rendezvous->sockets[n] - 1);
	}
	opened = NULL;
	pthread_mutex_unlock(&rendezvous_lock);
}

static bool rendezvous_add(struct rendezvous *rendezvous)
{
	bool added;
	pthread_mutex_lock(&rendezvous_lock);
	added = rendezvous_handle_fork || pthread_atfork(rendezvous_before_fork,
						  rendezvous_after_fork, rendezvous_in_child) == 0;
	rendezvous_handle_fork = added;
	if (added) {
		rendezvous->next = opened;
		opened = rendezvous;
	}
	pthread_mutex_unlock(&rendezvous_lock);
	return added;
}

static void rendezvous_remove(struct rendezvous *rendezvous)
{
	struct rendezvous **at = &opened;
	pthread_mutex_lock(&rendezvous_lock);
	while (*at && *at != rendezvous)
		at = &(*at)->next;
	if (*at)
		*at = rendezvous->next;
	pthread_mutex_unlock(&rendezvous_lock);
}

/* --- memory --- */

static bool page_make(struct rendezvous *rendezvous)
{
	rendezvous->sleeper.word = shared_page_make(&rendezvous->page_file);
	return rendezvous->sleeper.word != NULL;
}

/* --- messages --- */

static struct rendezvous_hello hello_make(
	const struct rendezvous *rendezvous, enum rendezvous_kind kind)
{
	return (struct rendezvous_hello){.magic = RENDEZVOUS_MAGIC,
		.version = RENDEZVOUS_VERSION,
		.kind = kind,
		.nid = rendezvous->options.nid,
		.pid = rendezvous->directory.pid,
		.frame_size = rendezvous->options.frame_size,
		.pair_bytes = rendezvous->options.pair_bytes,
		.incarnation = rendezvous->incarnation};
}

static bool hello_send(
	const struct rendezvous *rendezvous, int socket, enum rendezvous_kind kind, int memory)
{
	struct rendezvous_hello hello = hello_make(rendezvous, kind);
	const int fds[] = {rendezvous->page_file, memory};

	return parcel_send(socket, &hello, sizeof(hello), fds, kind == RENDEZVOUS_HELLO ? 2 : 1);
}

static const struct rendezvous_hello *hello_of(const struct parcel *parcel)
{
	return (const struct rendezvous_hello *)(const void *)parcel->bytes;
}

/* H2. Who is at the other end, by the kernel's word. */
static bool peer_trusted(struct rendezvous *rendezvous, int socket, struct ucred *who)
{
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t size = sizeof(peer);
	(void)getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size);
	*who = peer;
	if (peer.uid == rendezvous->directory.uid || peer.uid == 0)
		return true;
	complain(rendezvous, REFUSED_USER,
		"node: system process %d of user %u in %s is refused, because this process is user "
		"%u's: run both as one user",
		peer.pid, peer.uid, rendezvous->directory.path, rendezvous->directory.uid);
	return false;
}

static bool hello_sizes(struct rendezvous *rendezvous, const struct rendezvous_hello *hello)
{
	if (hello->frame_size != rendezvous->options.frame_size) {
		complain(rendezvous, REFUSED_SIZE,
			"node: process id %u in %s has frames of %u bytes and this process of %u, "
			"so they cannot talk: give both the same PTL_MTU",
			hello->pid, rendezvous->directory.path, hello->frame_size,
			rendezvous->options.frame_size);
		return false;
	}
	if (hello->pair_bytes != rendezvous->options.pair_bytes) {
		complain(rendezvous, REFUSED_VERSION,
			"node: process id %u in %s shares %llu bytes and this process %zu, so they "
			"cannot talk: run both with the same version of Postern",
			hello->pid, rendezvous->directory.path,
			(unsigned long long)hello->pair_bytes, rendezvous->options.pair_bytes);
		return false;
	}
	return true;
}

static bool parcel_fits(
	struct rendezvous *rendezvous, const struct parcel *parcel, enum rendezvous_kind kind)
{
	const struct rendezvous_hello *hello = hello_of(parcel);
	if (parcel->starved) {
		complain(rendezvous, REFUSED_RESOURCES,
			"node: a process waits in %s to be let in, but the descriptors that it "
			"sends find no room here: %s",
			rendezvous->directory.path, remedy_for(EMFILE, ""));
		return false;
	}
	if (parcel->length < offsetof(struct rendezvous_hello, kind) ||
		hello->magic != RENDEZVOUS_MAGIC) {
		complain(rendezvous, REFUSED_STRANGE,
			"node: a program that does not speak as Postern does has connected in %s "
			"and is refused: keep others out of this directory",
			rendezvous->directory.path);
		return false;
	}
	if (hello->version != RENDEZVOUS_VERSION) {
		complain(rendezvous, REFUSED_VERSION,
			"node: a process in %s speaks version %u and this process version %u, so "
			"they cannot talk: run both with the same version of Postern",
			rendezvous->directory.path, hello->version, RENDEZVOUS_VERSION);
		return false;
	}
	if (parcel->length != sizeof(*hello) || hello->kind != kind || hello->incarnation == 0 ||
		hello->pid == RENDEZVOUS_PID_ANY || hello->pid == rendezvous->directory.pid) {
		complain(rendezvous, REFUSED_STRANGE,
			"node: a process in %s that claims process id %u breaks the protocol and "
			"is refused: keep programs other than Postern's out of this directory",
			rendezvous->directory.path, hello->pid);
		return false;
	}
	if (hello->nid != rendezvous->options.nid) {
		complain(rendezvous, REFUSED_NODE,
			"node: process id %u in %s has node id %u and this process %u, so they "
			"cannot talk: give both the same PTL_NID, or different names (node:NAME)",
			hello->pid, rendezvous->directory.path, hello->nid,
			rendezvous->options.nid);
		return false;
	}
	return hello_sizes(rendezvous, hello);
}

/* --- connections --- */

static bool socket_watch(
	const struct rendezvous *rendezvous, int socket, struct rendezvous_connection *connection)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
	return epoll_ctl(rendezvous->set, EPOLL_CTL_ADD, socket, &event) == 0 ||
	       (errno == EEXIST && epoll_ctl(rendezvous->set, EPOLL_CTL_MOD, socket, &event) == 0);
}

/* The set is told, because a child made by fork() may still hold the socket open. */
static void socket_close(const struct rendezvous *rendezvous, int *socket)
{
	if (*socket >= 0)
		epoll_ctl(rendezvous->set, EPOLL_CTL_DEL, *socket, NULL);
	close_and_forget(socket);
}

static void connection_report(struct rendezvous *rendezvous,
	struct rendezvous_connection *connection, enum rendezvous_event event)
{
	connection->events |= 1u << event;
	if (!link_listed(&connection->listed))
		list_append(&rendezvous->reporting, &connection->listed);
}

static void connection_hang_up(
	struct rendezvous *rendezvous, struct rendezvous_connection *connection)
{
	socket_close(rendezvous, &connection->socket);
	rendezvous->sockets[connection->slot] = 0;
}

static void connection_end(struct rendezvous *rendezvous, struct rendezvous_connection *connection)
{
	connection_hang_up(rendezvous, connection);
	connection_report(rendezvous, connection, RENDEZVOUS_ENDED);
}

static void page_unmap(struct rendezvous_connection *connection)
{
	if (connection->word != &unanswered)
		munmap((void *)(uintptr_t)connection->word, shared_page_bytes());
	connection->word = &unanswered;
}

/* The connection that lives. */
static struct rendezvous_connection *connection_find(
	const struct rendezvous *rendezvous, uint32_t pid)
{
	for (unsigned n = 0; n < rendezvous->connection_count; n++)
		if (rendezvous->connections[n]->pid == pid &&
			rendezvous->connections[n]->socket >= 0)
			return rendezvous->connections[n];
	return NULL;
}

static bool connection_room(struct rendezvous *rendezvous)
{
	if (rendezvous->connection_count < CONNECTIONS_MAX)
		return true;
	complain(rendezvous, REFUSED_CONNECTIONS,
		"node: this process has connections to %u processes in %s, which is the most, and "
		"refuses further ones: start fewer processes on this machine",
		CONNECTIONS_MAX, rendezvous->directory.path);
	errno = EMFILE;
	return false;
}

/* A connection without a socket. */
static struct rendezvous_connection *connection_make(struct rendezvous *rendezvous, uint32_t pid)
{
	struct rendezvous_connection *connection = calloc(1, sizeof(*connection));
	if (!connection)
		return NULL;
	connection->word = &unanswered;
	connection->cheap = rendezvous->cheap;
	connection->pid = pid;
	connection->socket = -1;
	connection->slot = rendezvous->connection_count++;
	rendezvous->connections[connection->slot] = connection;
	return connection;
}

/* Gives a connection a socket, instead of the one that it may have. */
static bool connection_join(
	struct rendezvous *rendezvous, struct rendezvous_connection *connection, int socket)
{
	if (!socket_watch(rendezvous, socket, connection))
		return false;
	socket_close(rendezvous, &connection->socket);
	connection->socket = socket;
	rendezvous->sockets[connection->slot] = socket + 1;
	return true;
}

void rendezvous_drop(struct rendezvous *rendezvous, struct rendezvous_connection *connection)
{
	struct rendezvous_connection *last =
		rendezvous->connections[rendezvous->connection_count - 1];
	connection_hang_up(rendezvous, connection);
	if (link_listed(&connection->listed))
		link_remove(&connection->listed);
	page_unmap(connection);
	rendezvous->connections[connection->slot] = last;
	rendezvous->sockets[connection->slot] = last->socket + 1;
	last->slot = connection->slot;
	rendezvous->sockets[--rendezvous->connection_count] = 0;
	free(connection);
}

/* The acceptor has told its page. */
static bool connection_answered(struct rendezvous *rendezvous,
	struct rendezvous_connection *connection, const struct parcel *parcel)
{
	void *page;
	if (!parcel_fits(rendezvous, parcel, RENDEZVOUS_ANSWER) ||
		hello_of(parcel)->pid != connection->pid)
		return false;
	page = shared_accept(parcel->fds[0], shared_page_bytes(), SHARED_PAGE_SEALS, PROT_READ);
	if (!page)
		return false;
	connection->word = page;
	connection->incarnation = hello_of(parcel)->incarnation;
	connection->answered = true;
	connection_report(rendezvous, connection, RENDEZVOUS_ANSWERED);
	return true;
}

/* Takes wake-ups off a socket. Descriptors that came with them are closed by the kernel. */
static enum heard wakes_take(struct rendezvous_connection *connection)
{
	char byte;
	ssize_t length = 1;
	for (unsigned n = 0; n < WAKES_AT_ONCE && length > 0; n++) {
		length = recv(connection->socket, &byte, sizeof(byte), MSG_DONTWAIT);
		connection->wakes_received += length > 0;
	}
	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return HEARD_NOTHING;
	return length > 0 ? HEARD_MESSAGE : HEARD_END;
}

/* What the other process has said. HEARD_END: it says no more. */
static enum heard connection_hear(
	struct rendezvous *rendezvous, struct rendezvous_connection *connection)
{
	struct parcel parcel;
	enum heard heard;
	bool good;
	if (connection->answered)
		return wakes_take(connection);
	heard = parcel_receive(&parcel, connection->socket, 1);
	if (heard != HEARD_MESSAGE)
		return heard;
	good = connection_answered(rendezvous, connection, &parcel);
	parcel_close(&parcel);
	return good ? wakes_take(connection) : HEARD_END;
}

static void connection_wake(struct rendezvous_connection *connection, uint32_t word)
{
	const int cancel = cancel_hold();
	ssize_t sent = send(connection->socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);

	/* A full socket wakes as well as one more message would. */
	if (connection->answered && (sent == 1 || errno == EAGAIN))
		connection->woken = word;
	connection->wakes_sent += sent == 1;
	cancel_release(cancel);
}

void rendezvous_rouse(struct rendezvous_connection *connection)
{
	uint32_t word;

	atomic_thread_fence(memory_order_seq_cst);
	word = atomic_load_explicit(connection->word, memory_order_relaxed);
	if ((word & WORD_ASLEEP) != 0 && word != connection->woken)
		connection_wake(connection, word);
}

/* --- newcomers --- */

/* Another process's files, mapped. */
struct accepted {
	void *memory;
	void *page;
};

static bool parcel_map(
	struct rendezvous *rendezvous, const struct parcel *parcel, struct accepted *accepted)
{
	size_t bytes = rendezvous->options.pair_bytes;
	accepted->page =
		shared_accept(parcel->fds[0], shared_page_bytes(), SHARED_PAGE_SEALS, PROT_READ);
	accepted->memory =
		shared_accept(parcel->fds[1], bytes, SHARED_SEALS, PROT_READ | PROT_WRITE);
	if (accepted->page && accepted->memory)
		return true;
	if (accepted->page)
		munmap(accepted->page, shared_page_bytes());
	if (accepted->memory)
		munmap(accepted->memory, bytes);
	complain(rendezvous, REFUSED_MEMORY,
		"node: process id %u in %s shares memory that is unsealed, of another size or "
		"cannot be mapped, and is refused: run both with the same version of Postern",
		hello_of(parcel)->pid, rendezvous->directory.path);
	return false;
}

/* H4, by an earlier connection to the same process id: may the newcomer come in? *replaced: the
 * earlier connection, if it was this process's and is given up. */
static bool newcomer_welcome(struct rendezvous *rendezvous, const struct rendezvous_hello *hello,
	struct rendezvous_connection **replaced)
{
	struct rendezvous_connection *connection = connection_find(rendezvous, hello->pid);
	bool ended;
	*replaced = NULL;
	if (!connection)
		return true;
	/* What it said before this HELLO, or before it ended, tells the two lives apart. */
	ended = connection_hear(rendezvous, connection) == HEARD_END;
	if (!connection->answered && hello->pid < rendezvous->directory.pid) {
		*replaced = connection;
		return true;
	}
	/* Sent before the other process had seen this one's connection. */
	if (!ended && (!connection->answered || connection->incarnation == hello->incarnation))
		return false;
	connection_end(rendezvous, connection);
	return true;
}

/* Makes a connection of a newcomer's socket; false: it is refused. */
static bool newcomer_enter(struct rendezvous *rendezvous, int socket, const struct parcel *parcel,
	const struct ucred *who)
{
	struct accepted accepted;
	struct rendezvous_connection *connection, *replaced;
	if (!newcomer_welcome(rendezvous, hello_of(parcel), &replaced) ||
		(!replaced && !connection_room(rendezvous)) ||
		!parcel_map(rendezvous, parcel, &accepted))
		return false;
	connection = replaced ? replaced : connection_make(rendezvous, hello_of(parcel)->pid);
	if (!connection || !hello_send(rendezvous, socket, RENDEZVOUS_ANSWER, -1) ||
		!connection_join(rendezvous, connection, socket)) {
		munmap(accepted.page, shared_page_bytes());
		munmap(accepted.memory, rendezvous->options.pair_bytes);
		if (connection && !replaced)
			rendezvous_drop(rendezvous, connection);
		return false;
	}
	page_unmap(connection);
	connection->word = accepted.page;
	connection->memory = accepted.memory;
	connection->incarnation = hello_of(parcel)->incarnation;
	connection->uid = who->uid;
	connection->process = who->pid;
	connection->end = 1;
	connection->answered = true;
	connection_report(rendezvous, connection, replaced ? RENDEZVOUS_REPLACED : RENDEZVOUS_CAME);
	return true;
}

/* A process that does not fit finds the same in the answer, and has a line for its user. */
static void refusal_explain(struct rendezvous *rendezvous, int socket)
{
	char byte;
	/* The end of a socket with unread wake-ups would overtake the answer. */
	for (unsigned n = 0; n < WAKES_AT_ONCE; n++)
		if (recv(socket, &byte, sizeof(byte), MSG_DONTWAIT) <= 0)
			break;
	(void)hello_send(rendezvous, socket, RENDEZVOUS_ANSWER, -1);
}

enum newcomer {
	NEWCOMER_WAITS, /* it has said nothing yet */
	NEWCOMER_IN,    /* it has become a connection */
	NEWCOMER_OUT,   /* it is refused, and its socket closed */
};

static enum newcomer newcomer_hear(struct rendezvous *rendezvous, int socket)
{
	struct parcel parcel;
	struct ucred who;
	enum heard heard = parcel_receive(&parcel, socket, 2);
	bool entered = false;
	if (heard == HEARD_NOTHING)
		return NEWCOMER_WAITS;
	rendezvous->refused[REFUSED_SILENT] += heard == HEARD_END;
	if (heard == HEARD_MESSAGE && peer_trusted(rendezvous, socket, &who)) {
		if (parcel_fits(rendezvous, &parcel, RENDEZVOUS_HELLO))
			entered = newcomer_enter(rendezvous, socket, &parcel, &who);
		else
			refusal_explain(rendezvous, socket);
	}
	parcel_close(&parcel);
	if (!entered)
		socket_close(rendezvous, &socket);
	return entered ? NEWCOMER_IN : NEWCOMER_OUT;
}

static void half_open_remove(struct rendezvous *rendezvous, unsigned n)
{
	struct half_open *half_open = &rendezvous->half_open[n];
	rendezvous->half_open_count--;
	memmove(half_open, half_open + 1, (rendezvous->half_open_count - n) * sizeof(*half_open));
	rendezvous->half_open[rendezvous->half_open_count].socket = -1;
}

static void half_open_add(struct rendezvous *rendezvous, int socket)
{
	if (rendezvous->half_open_count == HALF_OPEN_MAX) {
		rendezvous->refused[REFUSED_SILENT]++;
		socket_close(rendezvous, &rendezvous->half_open[0].socket);
		half_open_remove(rendezvous, 0);
	}
	rendezvous->half_open[rendezvous->half_open_count++] =
		(struct half_open){.socket = socket, .deadline = glue_now(NULL) + HALF_OPEN_TIME};
	/* Without a watch it is still looked at, once somebody else wakes the owner. */
	(void)socket_watch(rendezvous, socket, NULL);
}

static void half_open_look(struct rendezvous *rendezvous)
{
	uint64_t now = rendezvous->half_open_count > 0 ? glue_now(NULL) : 0;
	unsigned vain = 0;
	for (unsigned n = 0; n < rendezvous->half_open_count && vain < VAIN_AT_ONCE;) {
		struct half_open *half_open = &rendezvous->half_open[n];
		enum newcomer newcomer = newcomer_hear(rendezvous, half_open->socket);
		if (newcomer == NEWCOMER_WAITS && now < half_open->deadline) {
			n++;
			continue;
		}
		if (newcomer == NEWCOMER_WAITS) {
			rendezvous->refused[REFUSED_SILENT]++;
			socket_close(rendezvous, &half_open->socket);
		}
		vain += newcomer != NEWCOMER_IN;
		half_open_remove(rendezvous, n);
	}
}

/* Lets connections in; true: there are no more. A process that attacks by connections costs this
 * one little of each millisecond. */
static bool newcomers_accept(struct rendezvous *rendezvous)
{
	unsigned vain = 0;
	for (unsigned n = 0; n < ACCEPTS_AT_ONCE && vain < VAIN_AT_ONCE; n++) {
		enum newcomer newcomer;
		int socket =
			accept4(rendezvous->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (socket < 0 && (errno == EMFILE || errno == ENFILE))
			complain(rendezvous, REFUSED_RESOURCES,
				"node: a process waits in %s to be let in: %s: %s",
				rendezvous->directory.path, strerror(errno),
				remedy_for(errno, "the whole machine has too many files open"));
		if (socket < 0)
			return errno == EAGAIN;
		newcomer = newcomer_hear(rendezvous, socket);
		if (newcomer == NEWCOMER_WAITS)
			half_open_add(rendezvous, socket);
		vain += newcomer != NEWCOMER_IN;
	}
	return false;
}

/* --- what the owner calls --- */

/* A process that refuses this one's connection because of its own (H4) has connected before it
 * refuses. So the end of an unanswered connection counts only when all newcomers have been
 * heard. */
static void rendezvous_look(struct rendezvous *rendezvous)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	int count = epoll_wait(rendezvous->set, events, EVENTS_AT_ONCE, 0);
	bool emptied;
	if (count <= 0 && rendezvous->half_open_count == 0)
		return;
	half_open_look(rendezvous);
	emptied = newcomers_accept(rendezvous);
	for (int n = 0; n < count; n++) {
		struct rendezvous_connection *connection = events[n].data.ptr;
		if (connection && connection->socket >= 0 &&
			connection_hear(rendezvous, connection) == HEARD_END &&
			(connection->answered || emptied))
			connection_end(rendezvous, connection);
	}
}

bool rendezvous_turn(struct rendezvous *rendezvous, struct rendezvous_connection **connection,
	enum rendezvous_event *event)
{
	if ((atomic_load_explicit(rendezvous->sleeper.word, memory_order_relaxed) & WORD_ASLEEP) !=
		0)
		return false;
	if (list_empty(&rendezvous->reporting) && !rendezvous->looked) {
		sleeper_tick(&rendezvous->sleeper);
		rendezvous_look(rendezvous);
	}
	rendezvous->looked = !list_empty(&rendezvous->reporting);
	if (list_empty(&rendezvous->reporting))
		return false;
	*connection = link_entry(rendezvous->reporting.next, struct rendezvous_connection, listed);
	*event = (enum rendezvous_event)__builtin_ctz((*connection)->events);
	(*connection)->events &= (*connection)->events - 1;
	if ((*connection)->events == 0)
		link_remove(&(*connection)->listed);
	return true;
}

bool rendezvous_sleep(struct rendezvous *rendezvous, bool asleep)
{
	return sleeper_sleep(&rendezvous->sleeper, asleep);
}

int rendezvous_set(const struct rendezvous *rendezvous)
{
	return rendezvous->set;
}

uint32_t rendezvous_pid(const struct rendezvous *rendezvous)
{
	return rendezvous->directory.pid;
}

const char *rendezvous_path(const struct rendezvous *rendezvous)
{
	return rendezvous->directory.path;
}

const uint64_t *rendezvous_refused(const struct rendezvous *rendezvous)
{
	return rendezvous->refused;
}

unsigned rendezvous_present(
	const struct rendezvous *rendezvous, struct glue_process *processes, unsigned count)
{
	return directory_present(&rendezvous->directory, processes, count);
}

bool rendezvous_lacks(const struct rendezvous *rendezvous, uint32_t pid)
{
	return directory_lacks(&rendezvous->directory, pid);
}

/* Nothing but time is needed. */
static bool connect_passes(int error)
{
	return error == ENOENT || error == ECONNREFUSED || error == EAGAIN ||
	       error == ETOOMANYREFS || error == ECONNRESET || error == EPIPE;
}

/* The memory of a new connection, mapped, and its file. */
static void *connection_memory(const struct rendezvous *rendezvous, int *file)
{
	void *memory = NULL;
	*file = shared_file(rendezvous->options.pair_bytes, rendezvous->options.touched);
	if (*file >= 0 && fcntl(*file, F_ADD_SEALS, SHARED_SEALS) == 0)
		memory = shared_map(*file, rendezvous->options.pair_bytes, PROT_READ | PROT_WRITE);
	return memory;
}

static struct rendezvous_connection *connect_link(
	struct rendezvous *rendezvous, uint32_t pid, int socket, const struct ucred *who)
{
	struct rendezvous_connection *connection = NULL;
	int file, error;
	void *memory = connection_memory(rendezvous, &file);
	if (memory)
		connection = connection_make(rendezvous, pid);
	if (connection && hello_send(rendezvous, socket, RENDEZVOUS_HELLO, file) &&
		connection_join(rendezvous, connection, socket)) {
		connection->uid = who->uid;
		connection->process = who->pid;
		connection->memory = memory;
		close(file);
		return connection;
	}
	error = errno;
	if (connection)
		rendezvous_drop(rendezvous, connection);
	if (memory)
		munmap(memory, rendezvous->options.pair_bytes);
	close_and_forget(&file);
	errno = error;
	return NULL;
}

struct rendezvous_connection *rendezvous_connect(struct rendezvous *rendezvous, uint32_t pid)
{
	struct sockaddr_un address = directory_address(&rendezvous->directory, pid);
	struct rendezvous_connection *connection = NULL;
	struct ucred who;
	int fd, error;
	assert(pid != rendezvous->directory.pid && !connection_find(rendezvous, pid));
	if (!connection_room(rendezvous))
		return NULL;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
		errno = EACCES;
		if (peer_trusted(rendezvous, fd, &who))
			connection = connect_link(rendezvous, pid, fd, &who);
	}
	if (connection)
		return connection;
	error = errno;
	close_and_forget(&fd);
	if (!connect_passes(error))
		complain(rendezvous, REFUSED_RESOURCES,
			"node: process id %u in %s cannot be reached: %s: %s", pid,
			rendezvous->directory.path, strerror(error),
			remedy_for(error, "end programs that use much memory"));
	errno = error;
	return NULL;
}

/* --- opening --- */

static bool listener_open(struct rendezvous *rendezvous)
{
	struct sockaddr_un address =
		directory_address(&rendezvous->directory, rendezvous->directory.pid);
	struct epoll_event event = {.events = EPOLLIN};
	rendezvous->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	rendezvous->set = epoll_create1(EPOLL_CLOEXEC);
	if (rendezvous->listener >= 0 && rendezvous->set >= 0 &&
		bind(rendezvous->listener, (const struct sockaddr *)&address, sizeof(address)) ==
			0 &&
		chmod(address.sun_path, S_IRUSR | S_IWUSR) == 0 && /* whatever the umask */
		listen(rendezvous->listener, BACKLOG) == 0 &&
		epoll_ctl(rendezvous->set, EPOLL_CTL_ADD, rendezvous->listener, &event) == 0)
		return true;
	log_error("node: the socket %s/%u cannot be made: %s: %s", rendezvous->directory.path,
		rendezvous->directory.pid, strerror(errno),
		remedy_for_disk(errno,
			remedy_for(errno, "set XDG_RUNTIME_DIR to a directory of your own")));
	return false;
}

static struct rendezvous *rendezvous_make(const struct rendezvous_options *options)
{
	struct rendezvous *rendezvous = pages_map_root(sizeof(*rendezvous));
	if (!rendezvous)
		return NULL;
	rendezvous->options = *options;
	rendezvous->directory.fd = rendezvous->directory.lock = -1;
	rendezvous->listener = rendezvous->set = rendezvous->page_file = -1;
	list_init(&rendezvous->reporting);
	for (unsigned n = 0; n < HALF_OPEN_MAX; n++)
		rendezvous->half_open[n].socket = -1;
	/* H5: this process may be a sender. */
	rendezvous->cheap =
		syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
	if (getrandom(&rendezvous->incarnation, sizeof(rendezvous->incarnation), GRND_NONBLOCK) !=
			sizeof(rendezvous->incarnation) ||
		rendezvous->incarnation == 0)
		rendezvous->incarnation = glue_now(NULL);
	if (rendezvous_add(rendezvous))
		return rendezvous;
	pages_unmap_root(rendezvous, sizeof(*rendezvous));
	return NULL;
}

struct rendezvous *rendezvous_open(const struct rendezvous_options *options)
{
	struct rendezvous *rendezvous = rendezvous_make(options);
	if (!rendezvous) {
		log_error("node: out of memory: %s", remedy_for_memory());
		return NULL;
	}
	if (directory_open(&rendezvous->directory, rendezvous->options.name,
		    options->tell ? options->tell : log_error) &&
		page_make(rendezvous) && directory_take(&rendezvous->directory, options->pid) &&
		listener_open(rendezvous)) {
		rendezvous->options.name = NULL; /* the caller's */
		return rendezvous;
	}
	rendezvous_close(rendezvous);
	return NULL;
}

/* The lock is the last to go: until then nobody else binds a socket of this name. */
void rendezvous_close(struct rendezvous *rendezvous)
{
	while (rendezvous->connection_count > 0)
		rendezvous_drop(
			rendezvous, rendezvous->connections[rendezvous->connection_count - 1]);
	while (rendezvous->half_open_count > 0)
		close_and_forget(&rendezvous->half_open[--rendezvous->half_open_count].socket);
	if (rendezvous->listener >= 0)
		directory_leave(&rendezvous->directory);
	if (rendezvous->options.passing)
		directory_discard(&rendezvous->directory);
	close_and_forget(&rendezvous->listener);
	close_and_forget(&rendezvous->set);
	close_and_forget(&rendezvous->page_file);
	directory_close(&rendezvous->directory);
	if (rendezvous->sleeper.word)
		munmap((void *)(uintptr_t)rendezvous->sleeper.word, shared_page_bytes());
	rendezvous_remove(rendezvous);
	pages_unmap_root(rendezvous, sizeof(*rendezvous));
}
