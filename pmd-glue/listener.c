/* SPDX-License-Identifier: BSD-3-Clause */
/* listener.c - see listener.h.
 *
 * DPDK's protocol: on a SOCK_SEQPACKET socket a client is greeted by an object with the process id,
 * and each message of it, "COMMAND" or "COMMAND,PARAMETERS", is answered by an object with one
 * member of the command's name. What DPDK cannot say, these answers do not say either
 * (telemetry.c): an array of objects is an object with numbered members, a flag is 0 or 1, null is
 * left out.
 *
 * I1. A socket listens before it has its name, so a name behind which nobody listens is one of a
 *     process that has died. It is removed under a lock, by a process that has looked again under
 *     it, so no living process loses its own.
 * I2. One thread serves all clients, and never waits for one of them: a client that does not take
 *     an answer is disconnected. It owns its socket and clients; when the socket is shut down, it
 *     ends. Without a descriptor for a newcomer it tries again ten times a second.
 * I3. Only the user of the process may connect, and root, whatever the directory's mode is.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_version.h>

#include <base/guard.h>
#include <base/log.h>
#include <base/report.h>
#include <pmd-glue/listener.h>
#include <pmd-glue/telemetry.h>

#define SOCKET_NAME  "dpdk_telemetry.v2"
#define NUMBERS      32767u /* of processes with one prefix */
#define CLIENTS      10u
#define LEVELS       8u /* of objects in objects; no report has more */
#define NAME_BYTES   64u
#define TEXT_BYTES   128u
#define ASKED_BYTES  1024u
#define REST_TIME    100    /* ms */
#define GREETED_TIME 1000   /* ms, in which a process that is not stopped greets a client */
#define ANSWER_BYTES 16384u /* as clients expect */

struct offer {
	char command[NAME_BYTES];
	char help[NAME_BYTES];
	glue_tell tell;
};

static struct offer offers[LISTENER_COMMANDS];
static unsigned offer_count;
static pthread_mutex_t offers_lock = PTHREAD_MUTEX_INITIALIZER;

/* The socket of this process. Under the caller's lock. */
static struct sockaddr_un own_address = {.sun_family = AF_UNIX};
static int own_socket; /* the thread's to close */
static pid_t own_process;

/* --- answers --- */

struct level {
	char name[NAME_BYTES]; /* of an array that has not begun */
	bool array;
	bool begun; /* its first item has come, which decides what it is */
	bool numbered;
	unsigned items;
};

/* A report on its way to a client. */
struct answer {
	struct report report; /* first: what is passed on */
	struct report_json json;
	struct level levels[LEVELS];
	unsigned depth;
};

/* The innermost array begins, if it has not. Returns the next item's name. */
static const char *answer_item(
	struct answer *answer, const char *name, bool object, char *number, size_t size)
{
	struct level *level;

	if (answer->depth == 0)
		return name;
	level = &answer->levels[answer->depth - 1];
	if (!level->array)
		return name;
	if (!level->begun) {
		level->begun = true;
		level->numbered = object;
		answer->json.report.form->open(&answer->json.report, level->name, !object);
	}
	if (!level->numbered)
		return NULL;
	snprintf(number, size, "%u", level->items++);
	return number;
}

static void answer_open(struct report *report, const char *name, bool array)
{
	struct answer *answer = (struct answer *)report;
	char number[16];

	assert(answer->depth < LEVELS);
	name = answer_item(answer, name, true, number, sizeof(number));
	answer->levels[answer->depth] = (struct level){.array = array};
	if (array)
		snprintf(answer->levels[answer->depth].name, NAME_BYTES, "%s", name ? name : "");
	else
		report_object(&answer->json.report, name);
	answer->depth++;
}

static void answer_close(struct report *report)
{
	struct answer *answer = (struct answer *)report;
	struct level *level = &answer->levels[--answer->depth];

	if (level->array && !level->begun)
		report_array(&answer->json.report, level->name);
	report_close(&answer->json.report);
}

static void answer_number(struct report *report, const char *name, uint64_t value)
{
	struct answer *answer = (struct answer *)report;
	char number[16];

	name = answer_item(answer, name, false, number, sizeof(number));
	report_number(&answer->json.report, name, value);
}

static void answer_text(struct report *report, const char *name, const char *text)
{
	struct answer *answer = (struct answer *)report;
	char number[16], plain[TEXT_BYTES];

	name = answer_item(answer, name, false, number, sizeof(number));
	telemetry_plain(text, plain, sizeof(plain));
	report_text(&answer->json.report, name, plain);
}

static const struct report_form answer_form = {
	.open = answer_open,
	.close = answer_close,
	.number = answer_number,
	.text = answer_text,
	.flag = telemetry_flag,
	.nothing = telemetry_nothing,
};

/* --- questions --- */

static void tell_process(struct report *report)
{
	report_text(report, "version", rte_version());
	report_number(report, "pid", (uint64_t)getpid());
	report_number(report, "max_output_len", ANSWER_BYTES);
}

static void tell_commands(struct report *report)
{
	report_array(report, "/");
	report_text(report, NULL, "/");
	report_text(report, NULL, "/help");
	report_text(report, NULL, "/info");
	pthread_mutex_lock(&offers_lock);
	for (unsigned n = 0; n < offer_count; n++)
		report_text(report, NULL, offers[n].command);
	pthread_mutex_unlock(&offers_lock);
	report_close(report);
}

/* Returns false if there is no such command. */
static bool offer_find(const char *command, struct offer *offer)
{
	bool found = false;

	pthread_mutex_lock(&offers_lock);
	for (unsigned n = 0; n < offer_count && !found; n++) {
		found = strcmp(offers[n].command, command) == 0;
		if (found)
			*offer = offers[n];
	}
	pthread_mutex_unlock(&offers_lock);
	return found;
}

/* The member that answers a command. */
static void tell_answer(struct answer *answer, const char *command, const char *parameters)
{
	struct report *report = &answer->report;
	struct offer offer;
	char plain[TEXT_BYTES];

	if (strcmp(command, "/") == 0) {
		tell_commands(report);
		return;
	}
	telemetry_plain(command, plain, sizeof(plain));
	if (strcmp(command, "/info") == 0) {
		report_object(report, plain);
		tell_process(report);
		report_close(report);
	} else if (strcmp(command, "/help") == 0 && offer_find(parameters, &offer)) {
		report_object(report, plain);
		report_text(report, offer.command, offer.help);
		report_close(report);
	} else if (offer_find(command, &offer)) {
		report_object(report, plain);
		offer.tell(command, parameters, report);
		report_close(report);
	} else {
		report_nothing(&answer->json.report, plain);
	}
}

static void answer_begin(struct answer *answer, char *text)
{
	*answer = (struct answer){.report = {&answer_form}};
	report_json_init(&answer->json, text, ANSWER_BYTES);
	report_object(&answer->report, NULL);
}

/* Returns false if the client does not take it. */
static bool answer_send(struct answer *answer, int client, const char *command)
{
	uint64_t length;

	report_close(&answer->report);
	length = report_json_end(&answer->json);
	if (length >= ANSWER_BYTES) {
		answer_begin(answer, answer->json.text);
		report_object(&answer->report, command);
		report_text(&answer->report, "error", "the answer is too long");
		report_close(&answer->report);
		report_close(&answer->report);
		length = report_json_end(&answer->json);
	}
	return send(client, answer->json.text, length, MSG_DONTWAIT | MSG_NOSIGNAL) ==
	       (ssize_t)length;
}

static bool client_greet(int client)
{
	char text[ANSWER_BYTES];
	struct answer answer;

	answer_begin(&answer, text);
	tell_process(&answer.report);
	return answer_send(&answer, client, "");
}

/* Reads a question and answers it. Returns false if the client has gone, or is to go. */
static bool client_serve(int client)
{
	char asked[ASKED_BYTES], text[ANSWER_BYTES], *comma;
	struct answer answer;
	ssize_t length = recv(client, asked, sizeof(asked) - 1, MSG_DONTWAIT);

	if (length <= 0)
		return length < 0 && (errno == EAGAIN || errno == EINTR);
	asked[length] = '\0';
	asked[strcspn(asked, "\n")] = '\0';
	comma = strchr(asked, ',');
	if (comma)
		*comma = '\0';
	if (strlen(asked) >= NAME_BYTES)
		return false;
	answer_begin(&answer, text);
	tell_answer(&answer, asked, comma ? comma + 1 : "");
	return answer_send(&answer, client, asked);
}

/* --- the thread --- */

/* Waits after a failure that would come again at once, such as that of a process without a free
 * descriptor. */
static bool listener_rest(void)
{
	(void)poll(NULL, 0, REST_TIME);
	return true;
}

/* Takes in a client where there is room for one. Returns false if the socket was shut down. */
static bool client_accept(struct pollfd *clients, unsigned *count, int listener)
{
	int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (client < 0)
		return errno != EINVAL && listener_rest();
	if (*count > CLIENTS || !client_greet(client)) {
		close(client);
		return true;
	}
	clients[(*count)++] = (struct pollfd){.fd = client, .events = POLLIN};
	return true;
}

/* One turn. Returns false if the socket was shut down. */
static bool listener_turn(struct pollfd *polled, unsigned *count)
{
	if (poll(polled, *count, -1) < 0)
		return listener_rest();
	for (unsigned n = *count; n-- > 1;)
		if (polled[n].revents != 0 && !client_serve(polled[n].fd)) {
			close(polled[n].fd);
			polled[n] = polled[--*count];
		}
	return polled[0].revents == 0 || client_accept(polled, count, polled[0].fd);
}

static void *listener_run(void *context)
{
	struct pollfd polled[1 + CLIENTS + 1] = {{.fd = *(int *)context, .events = POLLIN}};
	unsigned count = 1;

	free(context);
	while (listener_turn(polled, &count))
		;
	for (unsigned n = 0; n < count; n++)
		close(polled[n].fd);
	return NULL;
}

/* Its thread owns the socket from here on. Returns false if there is none. */
static bool thread_begin(int listener)
{
	int *argument = malloc(sizeof(*argument));
	sigset_t before;
	pthread_t thread;
	int error;

	if (!argument)
		return false;
	*argument = listener;
	guard_block_signals(&before); /* it looks at engines, which may copy */
	error = pthread_create(&thread, NULL, listener_run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error != 0) {
		free(argument);
		return false;
	}
	pthread_setname_np(thread, "postern-tell");
	pthread_detach(thread);
	return true;
}

/* --- the name --- */

/* Does a process listen there? One that is slow to accept does. */
static bool address_lives(const struct sockaddr_un *address)
{
	int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool lives = client < 0 ||
		     connect(client, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
		     (errno != ECONNREFUSED && errno != ENOENT);

	if (client >= 0)
		close(client);
	return lives;
}

/* Removes a name that is no living process's (I1). Returns true if it may be free now. */
static bool address_clear(const struct sockaddr_un *address, const char *directory)
{
	int lock;
	bool cleared = false;

	if (address_lives(address))
		return false;
	lock = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
		cleared = !address_lives(address) &&
			  (unlink(address->sun_path) == 0 || errno == ENOENT);
	if (lock >= 0)
		close(lock);
	return cleared;
}

/* The n-th name in a directory. Returns false if it is too long for a socket. */
static bool address_number(struct sockaddr_un *address, const char *directory, unsigned n)
{
	const size_t size = sizeof(address->sun_path);

	return snprintf(address->sun_path, size,
		       n == 0 ? "%s/" SOCKET_NAME : "%s/" SOCKET_NAME ":%u", directory,
		       n) < (int)size;
}

/* Gives what listens under another name the first name that is free. */
static bool address_take(
	const struct sockaddr_un *from, struct sockaddr_un *address, const char *directory)
{
	for (unsigned n = 0; n <= NUMBERS; n++) {
		if (!address_number(address, directory, n))
			return false;
		if (link(from->sun_path, address->sun_path) == 0)
			return true;
		if (errno != EEXIST)
			return false;
		if (address_clear(address, directory) &&
			link(from->sun_path, address->sun_path) == 0)
			return true;
	}
	return false;
}

/* A socket that listens under a name of its own; -1: there is none. */
static int socket_make(struct sockaddr_un *address, const char *directory)
{
	int length = snprintf(address->sun_path, sizeof(address->sun_path), "%s/.postern-%ld",
		directory, (long)getpid());
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (listener < 0)
		return -1;
	/* One of an earlier process with this number. */
	(void)unlink(address->sun_path);
	/* The name gets this mode (I3). */
	if (length < (int)sizeof(address->sun_path) && fchmod(listener, 0600) == 0 &&
		bind(listener, (const struct sockaddr *)address, sizeof(*address)) == 0) {
		if (listen(listener, (int)CLIENTS) == 0)
			return listener;
		(void)unlink(address->sun_path);
	}
	close(listener);
	return -1;
}

/* What DPDK finds when it connects to a name. */
enum finding {
	FINDING_FREE,
	FINDING_TAKEN,
	FINDING_STOPPED, /* it would wait, or a later process would */
};

/* A connection that a stopped process never accepts stays among those that it has room for, so only
 * a greeting shows that there is room for one more. */
static enum finding address_look(const struct sockaddr_un *address)
{
	int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd greeting = {.fd = client, .events = POLLIN};
	enum finding finding;
	int ready;

	if (client < 0)
		return FINDING_FREE; /* DPDK gets no socket, either */
	if (connect(client, (const struct sockaddr *)address, sizeof(*address)) != 0) {
		finding = errno == EAGAIN ? FINDING_STOPPED : FINDING_FREE;
	} else {
		do
			ready = poll(&greeting, 1, GREETED_TIME);
		while (ready < 0 && errno == EINTR);
		finding = ready == 1 ? FINDING_TAKEN : FINDING_STOPPED;
	}
	close(client);
	return finding;
}

bool listener_all_accept(const char *directory)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	enum finding finding = FINDING_TAKEN;

	for (unsigned n = 0; n <= NUMBERS && finding == FINDING_TAKEN; n++) {
		if (!address_number(&address, directory, n))
			return true;
		finding = address_look(&address);
	}
	if (finding != FINDING_STOPPED)
		return true;
	log_info("this process does not answer dpdk-telemetry.py because the process that listens "
		 "at %s accepts no connection, and DPDK would wait for it: is it stopped?",
		address.sun_path);
	return false;
}

/* --- the whole --- */

bool listener_add(const char *command, const char *help, glue_tell tell)
{
	bool added;

	pthread_mutex_lock(&offers_lock);
	added = offer_count < LISTENER_COMMANDS && strlen(command) < NAME_BYTES;
	if (added) {
		struct offer *offer = &offers[offer_count++];

		snprintf(offer->command, sizeof(offer->command), "%s", command);
		snprintf(offer->help, sizeof(offer->help), "%s", help);
		offer->tell = tell;
	}
	pthread_mutex_unlock(&offers_lock);
	return added;
}

/* At the end of the process, of which a forked child is another. */
static void name_remove(void)
{
	if (own_process == getpid())
		(void)unlink(own_address.sun_path);
	own_process = 0;
}

bool listener_begin(const char *directory)
{
	static bool prepared;
	struct sockaddr_un first = {.sun_family = AF_UNIX};
	int listener = socket_make(&first, directory);
	bool named;

	if (listener < 0)
		return false;
	named = address_take(&first, &own_address, directory);
	(void)unlink(first.sun_path);
	if (!named) {
		close(listener);
		return false;
	}
	own_process = getpid();
	own_socket = listener;
	if (!prepared)
		prepared = atexit(name_remove) == 0;
	if (thread_begin(listener))
		return true;
	name_remove();
	close(listener);
	return false;
}

void listener_end(void)
{
	if (own_process != getpid())
		return;
	name_remove();
	(void)shutdown(own_socket, SHUT_RDWR);
}
