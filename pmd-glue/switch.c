/* SPDX-License-Identifier: BSD-3-Clause */
/* switch.c - see switch.h.
 *
 *      port --- burst ---> process id ---> pair_transmit()
 *      pairs, in turns --- attest() ---> pair of a process here, or `held` ---> port
 *
 * Frames that the port does not take are held. From a user whose share of these is used up no more
 * are taken until it does.
 */
#include <pmd-glue/switch.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <linux/membarrier.h>

#include <rte_byteorder.h>
#include <rte_mbuf.h>

#include <base/clock.h>
#include <base/log.h>
#include <base/port.h>
#include <base/remedy.h>
#include <base/spinning.h>
#include <pmd-glue/clients.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/rendezvous.h>
#include <pmd-glue/pair.h>

#define BACKLOG        256
#define EVENTS_AT_ONCE 64 /* in a look */
#define BURST          64u
#define QUANTUM        32u /* frames of a user in a turn, W3 */
#define OFFENCES_MAX   32u /* of a user in a TICK, W2 */
#define OFFENCES_REST  (64 * MILLISECOND)
#define REFORM_TIME    (16 * MILLISECOND)
#define LEFT_BY_OTHERS 3u   /* quarters of a pair that frames of other users leave free, */
#define LEFT_BY_PORT   1u   /* and those of the port */
#define HELD_MAX       256u /* frames */
#define HELD_SHARE     64u  /* of a user */
#define NOBODY         ((uid_t)-1)
#define HELD_TIME      (10 * MILLISECOND)
#define ENDED_TIME     (100 * MILLISECOND) /* long enough for a process that calls again */
#define TICK           MILLISECOND
#define REST_TIME      SECOND /* between two looks at what memory pairs need */
#define TICK_TURNS     32u
#define SLEEP_TIME     100 /* ms at most */
#define SLEEP_SHORT    1   /* the same for a port that cannot call, and while a user rests */
#define VLAN_TYPE      0x8100u
#define VLAN_BYTES     4u

/* What switch_look() wants. */
struct look {
	struct switch_count *count;
	struct switch_process *processes;
	unsigned first, room;
	int found;
};

struct switch_state {
	struct switch_options options;
	struct port *port;
	char directory[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	struct sockaddr_un address;
	int lock;
	int wakeup; /* an eventfd in the clients' set */
	struct sleeper sleeper;
	_Atomic bool stop;
	unsigned turns; /* since the last look at the time */
	uint64_t begun;
	uint64_t now; /* as of that look */
	uint64_t tick;
	uint64_t resting;   /* until then a user rests, W2 */
	uint64_t cool;      /* the time of the next clients_cool(), */
	uint64_t rest;      /* and of the next clients_rest() */
	unsigned user_turn; /* whose turn it is */
	unsigned held_count;
	uint64_t held_since;
	struct switch_count count;
	_Atomic(struct look *) look;
	pthread_mutex_t look_lock; /* one thread looks at a time */
	sem_t looked;
	struct rte_mbuf *held[HELD_MAX];
	uid_t held_of[HELD_MAX];
	struct clients clients;
};

/* --- frames --- */

/* The process of this node that a frame names; false: a process of another node, or none. inward: a
 * frame from the port may be for a process of any node. */
static bool frame_target(
	const struct switch_state *state, const struct rte_mbuf *frame, bool inward, uint32_t *pid)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(frame, const uint8_t *);
	uint32_t at = state->options.at, type_at = 2 * sizeof(state->port->address), nid;
	rte_be16_t type;

	if (frame->data_len < at + VLAN_BYTES + sizeof(nid) + sizeof(*pid))
		return false;
	memcpy(&type, bytes + type_at, sizeof(type));
	if (type == RTE_BE16(VLAN_TYPE)) {
		at += VLAN_BYTES;
		memcpy(&type, bytes + type_at + VLAN_BYTES, sizeof(type));
	}
	memcpy(&nid, bytes + at, sizeof(nid));
	memcpy(pid, bytes + at + sizeof(nid), sizeof(*pid));
	*pid = rte_le_to_cpu_32(*pid);
	nid = rte_le_to_cpu_32(nid);
	return rte_be_to_cpu_16(type) == state->options.ethertype &&
	       (nid == state->options.nid || (inward && nid == PORT_ANY_NODE));
}

/* A frame of this user was dropped, or found no room at another's process (W2). */
static void user_offends(struct switch_state *state, struct user *user)
{
	struct offences *offences = &user->offences;

	if (user->rests > state->now)
		return; /* his turn is not over yet */
	if (state->now - offences->since >= TICK) {
		offences->since = state->now;
		offences->frames = 0;
	}
	if (++offences->frames <= OFFENCES_MAX)
		return;
	offences->rest = state->now - user->rests >= REFORM_TIME
				 ? TICK
				 : RTE_MIN(2 * offences->rest, OFFENCES_REST);
	offences->frames = 0;
	user->rests = state->now + offences->rest;
	state->resting = RTE_MAX(state->resting, user->rests);
	state->count.rested++;
}

/* W2. sender: whose frame it is; NULL: the port's. */
static void client_give(struct switch_state *state, struct client *client, struct rte_mbuf *frame,
	struct client *sender)
{
	bool own = sender && sender->user == client->user;
	unsigned left = own ? 0 : sender ? LEFT_BY_OTHERS : LEFT_BY_PORT;

	client_warm(&state->clients, client);
	if ((own || pair_leaves(client->pair, left)) &&
		pair_transmit(client->pair, &frame, 1) == 1) {
		if (sender && !own)
			sender->asked++;
		rendezvous_wake(&client->connection);
		return;
	}
	client->full++;
	state->count.full++;
	rte_pktmbuf_free(frame);
	if (!sender || own)
		return;
	if (client->asked > 0)
		client->asked--;
	else
		user_offends(state, sender->user);
}

/* There is room. uid: whose frame it is; NOBODY: the switch's. */
static void frame_hold(struct switch_state *state, struct rte_mbuf *frame, uid_t uid)
{
	if (state->held_count == 0)
		state->held_since = glue_now(NULL);
	state->held_of[state->held_count] = uid;
	state->held[state->held_count++] = frame;
}

/* Frames that may be held for this user besides those that are. */
static unsigned held_room(const struct switch_state *state, uid_t uid)
{
	unsigned count = 0;

	for (unsigned n = 0; n < state->held_count; n++)
		count += state->held_of[n] == uid;
	return RTE_MIN(HELD_SHARE - RTE_MIN(count, HELD_SHARE), HELD_MAX - state->held_count);
}

/* A process that is not here, and will not call again (W6). Returns false if it might. */
static bool absent_identity(
	struct switch_state *state, uint32_t pid, struct switch_identity *identity)
{
	const struct ended *ended = ended_find(&state->clients, pid);
	const uint64_t now = glue_now(NULL);

	if (ended) {
		*identity = ended->identity;
		return now - ended->time >= ENDED_TIME;
	}
	*identity = (struct switch_identity){
		.nid = state->options.nid, .pid = pid, .vlan = state->options.vlan};
	memcpy(identity->address, state->port->address, sizeof(identity->address));
	return now - state->begun >= state->options.return_time;
}

/* The answer to a frame for a process that is not here (W6). NULL: there is none. */
static struct rte_mbuf *farewell_make(
	struct switch_state *state, const struct rte_mbuf *frame, uint32_t pid)
{
	struct switch_identity identity;
	uint8_t bytes[FAREWELL_BYTES];
	struct rte_mbuf *answer;
	uint32_t length;

	if (frame->nb_segs != 1 || !absent_identity(state, pid, &identity))
		return NULL;
	length = state->options.farewell(
		rte_pktmbuf_mtod(frame, const uint8_t *), frame->data_len, &identity, bytes);
	answer = length > 0 ? rte_pktmbuf_alloc(state->port->pool) : NULL;
	if (!answer)
		return NULL;
	memcpy(rte_pktmbuf_mtod(answer, void *), bytes, length);
	answer->data_len = (uint16_t)length;
	answer->pkt_len = length;
	state->count.farewells++;
	return answer;
}

/* A frame of the port for a process that is not here. */
static void frame_unknown(struct switch_state *state, struct rte_mbuf *frame, uint32_t pid)
{
	struct rte_mbuf *answer =
		held_room(state, NOBODY) > 0 ? farewell_make(state, frame, pid) : NULL;

	if (answer)
		frame_hold(state, answer, NOBODY);
	state->count.unknown++;
	rte_pktmbuf_free(frame);
}

/* From the port to processes. */
static unsigned switch_inward(struct switch_state *state)
{
	struct rte_mbuf *frames[BURST];
	uint16_t count = port_receive(state->port, frames, BURST);

	for (uint16_t n = 0; n < count; n++) {
		struct client *client;
		uint32_t pid;

		if (!frame_target(state, frames[n], true, &pid)) {
			state->count.unknown++;
			rte_pktmbuf_free(frames[n]);
			continue;
		}
		client = client_find(&state->clients, pid);
		if (client)
			client_give(state, client, frames[n], NULL);
		else
			frame_unknown(state, frames[n], pid);
	}
	state->count.from_port += count;
	return count;
}

/* What is held, to the port. */
static void switch_push(struct switch_state *state)
{
	unsigned count = state->held_count, sent;
	uint64_t now;

	if (count == 0)
		return;
	sent = port_transmit(state->port, state->held, (uint16_t)count);
	state->count.to_port += sent;
	state->held_count -= sent;
	memmove(state->held, state->held + sent, state->held_count * sizeof(*state->held));
	memmove(state->held_of, state->held_of + sent, state->held_count * sizeof(*state->held_of));
	if (state->held_count == 0)
		return;
	now = glue_now(NULL);
	if (sent > 0)
		state->held_since = now;
	else if (now - state->held_since > HELD_TIME) {
		state->count.lost += state->held_count;
		rte_pktmbuf_free_bulk(state->held, state->held_count);
		state->held_count = 0;
	}
}

/* A frame of a process, copied (W1). */
static void switch_forward(
	struct switch_state *state, struct client *client, struct rte_mbuf *frame)
{
	enum switch_verdict verdict = state->options.attest(
		rte_pktmbuf_mtod(frame, const uint8_t *), frame->data_len, &client->identity);
	struct client *other;
	struct rte_mbuf *answer;
	uint32_t pid;

	if (verdict != SWITCH_FINE) {
		state->count.dropped[verdict]++;
		client->dropped++;
		rte_pktmbuf_free(frame);
		if (verdict != SWITCH_NAME) /* W2 */
			user_offends(state, client->user);
	} else if (!frame_target(state, frame, false, &pid)) {
		frame_hold(state, frame, client->connection.uid);
	} else if ((other = client_find(&state->clients, pid))) {
		state->count.between++;
		client_give(state, other, frame, client);
	} else {
		answer = farewell_make(state, frame, pid);
		if (answer)
			client_give(state, client, answer, client);
		frame_hold(state, frame, client->connection.uid); /* W5 */
	}
}

/* What a user sends, up to its quantum and what can be held. */
static unsigned user_forward(struct switch_state *state, struct user *user)
{
	unsigned left = RTE_MIN(QUANTUM, held_room(state, user->uid)), taken = 0;

	if (user->rests > state->now)
		return 0;
	for (unsigned n = user->hot; n > 0 && taken < left; n--) {
		struct rte_mbuf *frames[QUANTUM];
		struct client *client = user->clients[user->turn++ % user->hot];
		uint16_t count = pair_receive(client->pair, frames, (uint16_t)(left - taken));

		for (uint16_t i = 0; i < count; i++)
			switch_forward(state, client, frames[i]);
		taken += count;
		client->heard |= count > 0;
		if (count > 0 || pair_sound(client->pair))
			continue;
		state->count.broken++;
		log_info("%s: process id %u of user %u has broken the rules of its memory and is "
			 "dropped",
			state->options.name, client->connection.pid, client->connection.uid);
		client_end(&state->clients, client);
		break; /* the user may have gone with it */
	}
	return taken;
}

/* From processes to processes and to the port. */
static unsigned switch_outward(struct switch_state *state)
{
	struct clients *clients = &state->clients;
	unsigned work = 0;

	clients_look(clients);
	for (unsigned n = clients->hot_users;
		n > 0 && clients->hot_users > 0 && state->held_count < HELD_MAX; n--)
		work += user_forward(
			state, clients->users[state->user_turn++ % clients->hot_users]);
	switch_push(state);
	return work;
}

/* --- what comes beside frames --- */

/* The frames that a process had sent before it ended: at most as many as its ring holds, because
 * another process may have the memory and go on. */
static void client_drain(struct switch_state *state, struct client *client)
{
	struct rte_mbuf *frames[QUANTUM];
	unsigned left = PAIR_SLOTS;
	uint16_t count;

	do {
		unsigned room = RTE_MIN(HELD_MAX - state->held_count, QUANTUM);

		count = pair_receive(client->pair, frames, (uint16_t)RTE_MIN(room, left));
		for (uint16_t n = 0; n < count; n++)
			switch_forward(state, client, frames[n]);
		switch_push(state);
		left -= count;
	} while (count > 0 && left > 0);
}

/* Clients first: what is accepted afterwards may free them. */
static void switch_hear(struct switch_state *state)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	int count = epoll_wait(state->clients.set, events, EVENTS_AT_ONCE, 0);
	bool others = false;
	eventfd_t rung;

	for (int n = 0; n < count; n++) {
		struct client *client = events[n].data.ptr;

		others |= !client;
		if (client && client_hear(client)) {
			client_drain(state, client);
			client_leave(&state->clients, client);
		}
	}
	if (others)
		(void)eventfd_read(state->wakeup, &rung);
	half_open_look(&state->clients);
	if (others)
		newcomers_accept(&state->clients);
}

/* --- looking --- */

static void look_answer(struct switch_state *state, struct look *look)
{
	unsigned at = 0;

	*look->count = state->count;
	memcpy(look->count->refused, state->clients.refused, sizeof(look->count->refused));
	look->count->users = state->clients.user_count;
	look->count->processes = state->clients.count;
	look->found = 0;
	for (unsigned n = 0; n < state->clients.user_count; n++)
		for (unsigned i = 0; i < state->clients.users[n]->count; i++, at++) {
			const struct client *client = state->clients.users[n]->clients[i];
			struct pair_counters own;

			if (at < look->first || (unsigned)look->found == look->room)
				continue;
			own = pair_count(client->pair);
			look->processes[look->found++] =
				(struct switch_process){.pid = client->connection.pid,
					.uid = client->connection.uid,
					.process = client->connection.process,
					.sent = own.received,
					.received = own.sent,
					.dropped = client->dropped,
					.full = client->full};
		}
	sem_post(&state->looked);
}

int switch_look(struct switch_state *state, struct switch_count *count,
	struct switch_process *processes, unsigned first, unsigned room)
{
	struct look look = {.count = count, .processes = processes, .first = first, .room = room};
	struct look *mine = &look;
	struct timespec end;
	int found;

	pthread_mutex_lock(&state->look_lock);
	atomic_store(&state->look, &look);
	(void)eventfd_write(state->wakeup, 1);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec++;
	while (sem_timedwait(&state->looked, &end) != 0)
		if (errno == ETIMEDOUT) {
			/* Unless it is being answered now. */
			if (atomic_compare_exchange_strong(&state->look, &mine, NULL)) {
				pthread_mutex_unlock(&state->look_lock);
				return -1;
			}
			while (sem_wait(&state->looked) != 0)
				; /* a signal */
			break;
		}
	found = look.found;
	pthread_mutex_unlock(&state->look_lock);
	return found;
}

/* --- running --- */

static void switch_tick(struct switch_state *state)
{
	uint64_t now = glue_now(NULL);

	state->turns = 0;
	state->now = now;
	if (now < state->tick)
		return;
	state->tick = now + TICK;
	sleeper_tick(&state->sleeper);
	switch_hear(state);
	if (now >= state->cool) {
		state->cool = now + TICK;
		clients_cool(&state->clients);
	}
	if (now >= state->rest) {
		state->rest = now + REST_TIME;
		clients_rest(&state->clients);
	}
	(void)state->port->operations->link(state->port);
}

static unsigned switch_turn(struct switch_state *state)
{
	struct look *look;
	unsigned work;

	if (++state->turns >= TICK_TURNS || state->tick == 0)
		switch_tick(state);
	if (atomic_load_explicit(&state->look, memory_order_relaxed)) {
		look = atomic_exchange(&state->look, NULL);
		if (look)
			look_answer(state, look);
	}
	work = switch_inward(state);
	return work + switch_outward(state);
}

/* A turn. Returns true if there was work, or is. */
static bool switch_works(struct switch_state *state)
{
	return switch_turn(state) > 0 || state->held_count > 0;
}

/* Sleeps until something comes. Both ends' words, and the port, are asked to call before the last
 * look. Returns true if that found work. */
static bool switch_sleep(struct switch_state *state)
{
	const struct port_operations *port = state->port->operations;
	struct pollfd descriptors[2] = {{.fd = state->clients.set, .events = POLLIN}};
	int called = port->interrupt ? port->interrupt(state->port, true) : -1;
	bool asleep = sleeper_sleep(&state->sleeper, true), work;

	descriptors[1] = (struct pollfd){.fd = called, .events = POLLIN};
	state->tick = 0;
	state->clients.all = true;
	work = switch_works(state);
	if (!work)
		(void)poll(descriptors, called >= 0 ? 2 : 1,
			asleep && called >= 0 && state->resting <= state->now ? SLEEP_TIME
									      : SLEEP_SHORT);
	if (asleep)
		(void)sleeper_sleep(&state->sleeper, false);
	if (port->interrupt)
		(void)port->interrupt(state->port, false);
	state->tick = 0;
	state->clients.all = true;
	return work;
}

/* Without work posternd spins and then sleeps, as every thread does, and it does not yield: beside
 * a program that polls it would get a turn in each time slice (base/spinning.h, W9). */
void switch_run(struct switch_state *state)
{
	struct spinning spinning = {0};

	while (!atomic_load_explicit(&state->stop, memory_order_relaxed)) {
		bool work = switch_works(state);

		if (!work && spinning_goes_on(&spinning, glue_now(NULL))) {
			rte_pause();
			continue;
		}
		if (work || switch_sleep(state))
			spinning_end(&spinning, spinning.slept != 0 ? glue_now(NULL) : 0);
	}
	atomic_store(&state->stop, false);
}

void switch_stop(struct switch_state *state)
{
	atomic_store(&state->stop, true);
	(void)!write(state->wakeup, &(uint64_t){1}, sizeof(uint64_t));
}

/* --- opening --- */

static const char *directory_remedy(int error, const char *otherwise)
{
	return error == EROFS ? "let root write to that file system"
			      : remedy_for_disk(error, otherwise);
}

/* Makes a directory that all users may enter, whatever the umask. */
static bool directory_make(const char *path)
{
	return mkdir(path, 0755) == 0 ? chmod(path, 0755) == 0 : errno == EEXIST;
}

/* Makes the directory, unless it is there, and takes its lock. Returns false after an error
 * line. */
static bool directory_enter(struct switch_state *state)
{
	const char *name = state->options.name, *path = state->directory;
	char lock[sizeof(state->directory) + 8];
	struct stat status;

	if (!directory_make(CLIENT_DIRECTORY) || !directory_make(path) ||
		lstat(path, &status) != 0 || !S_ISDIR(status.st_mode) ||
		status.st_uid != geteuid() || chmod(path, 0755) != 0) {
		log_error("%s: %s cannot be made, or is another user's: %s: %s", name, path,
			strerror(errno), directory_remedy(errno, "run posternd as root"));
		return false;
	}
	snprintf(lock, sizeof(lock), "%s/lock", path);
	state->lock = open(lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (state->lock >= 0 && flock(state->lock, LOCK_EX | LOCK_NB) == 0)
		return true;
	if (errno == EWOULDBLOCK)
		log_error("%s: another posternd has it: end that one first", name);
	else
		log_error("%s: %s cannot be locked: %s: %s", name, lock, strerror(errno),
			directory_remedy(errno,
				remedy_for(errno,
					"run posternd as root, on a file system with locks")));
	return false;
}

static bool listener_open(struct switch_state *state)
{
	struct epoll_event event = {.events = EPOLLIN};
	const char *path = state->address.sun_path;
	mode_t mask;
	bool bound;

	state->clients.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	state->clients.set = epoll_create1(EPOLL_CLOEXEC);
	state->wakeup = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	(void)unlink(path);
	mask = umask(0777); /* nobody calls before the mode is right */
	bound = state->clients.listener >= 0 && state->clients.set >= 0 && state->wakeup >= 0 &&
		bind(state->clients.listener, (const struct sockaddr *)&state->address,
			sizeof(state->address)) == 0;
	umask(mask);
	if (bound && listen(state->clients.listener, BACKLOG) == 0 &&
		(state->options.group == (gid_t)-1 ||
			chown(path, (uid_t)-1, state->options.group) == 0) &&
		chmod(path, state->options.mode) == 0 &&
		epoll_ctl(state->clients.set, EPOLL_CTL_ADD, state->clients.listener, &event) ==
			0 &&
		epoll_ctl(state->clients.set, EPOLL_CTL_ADD, state->wakeup, &event) == 0)
		return true;
	log_error("%s: the socket %s cannot be made: %s: %s", state->options.name, path,
		strerror(errno),
		directory_remedy(errno, remedy_for(errno, "run posternd as root")));
	return false;
}

struct switch_state *switch_open(const struct switch_options *options)
{
	struct switch_state *state = calloc(1, sizeof(*state));

	if (!state) {
		log_error("%s: out of memory: %s", options->name, remedy_for_memory());
		return NULL;
	}
	state->options = *options;
	state->begun = glue_now(NULL);
	(void)!getrandom(state->clients.chance, sizeof(state->clients.chance), 0);
	state->clients.options = &state->options;
	state->lock = state->clients.listener = state->clients.set = state->wakeup =
		state->clients.page_file = -1;
	pthread_mutex_init(&state->look_lock, NULL);
	sem_init(&state->looked, 0, 0);
	state->clients.cheap =
		syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
	if (!posternd_address(&state->address, options->name)) {
		log_error("%s: posternd cannot have a device of this name: name a kernel "
			  "interface, a PCI address or xdp:INTERFACE",
			options->name);
	} else {
		snprintf(state->directory, sizeof(state->directory), "%s", state->address.sun_path);
		*strrchr(state->directory, '/') = 0;
		if (directory_enter(state) && listener_open(state))
			state->sleeper.word = shared_page_make(&state->clients.page_file);
	}
	if (state->sleeper.word) {
		state->port = options->port;
		return state;
	}
	switch_close(state);
	return NULL;
}

void switch_close(struct switch_state *state)
{
	clients_close(&state->clients);
	rte_pktmbuf_free_bulk(state->held, state->held_count);
	if (state->clients.listener >= 0 && state->lock >= 0) {
		(void)unlink(state->address.sun_path);
		close(state->clients.listener);
	}
	if (state->clients.set >= 0)
		close(state->clients.set);
	if (state->wakeup >= 0)
		close(state->wakeup);
	if (state->clients.page_file >= 0)
		close(state->clients.page_file);
	if (state->lock >= 0)
		close(state->lock);
	if (state->sleeper.word)
		munmap((void *)(uintptr_t)state->sleeper.word, shared_page_bytes());
	if (state->port)
		state->port->operations->close(state->port);
	sem_destroy(&state->looked);
	pthread_mutex_destroy(&state->look_lock);
	free(state);
}
