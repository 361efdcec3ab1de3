/* SPDX-License-Identifier: BSD-3-Clause */
/* process.c - see process.h.
 *
 * DPDK keeps a process's socket in a directory named after its --file-prefix, which may be any; so
 * all are looked at. Sockets of processes that have died stay there; nobody listens at them. Only
 * this user's own sockets are asked: another user may have laid sockets that never answer in /tmp,
 * and each would delay the table by a second.
 */
#include "process.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/list.h>
#include <base/timespec.h>

#include "client.h"

#define PATTERN "/dpdk/*/" SOCKET "*"
#define SOCKET  "dpdk_telemetry.v2" /* and ":1", ":2", ... of further processes */

struct process {
	struct link link;
	char *path; /* of its socket */
	struct client client;
	uint64_t id;
	char program[TEXT_BYTES];
	unsigned count;
	struct interface interfaces[INTERFACES_MAX];
};

static struct link processes = LIST_INITIAL(processes);

static void interface_free(struct interface *interface)
{
	node_free(&interface->node);
	counters_free(&interface->counters);
}

static void process_forget(struct process *process)
{
	link_remove(&process->link);
	for (unsigned i = 0; i < process->count; i++)
		interface_free(&process->interfaces[i]);
	client_close(&process->client);
	free(process->path);
	free(process);
}

/* Is it a Postern process, and which? */
static bool process_identify(struct process *process)
{
	if (!client_ask(&process->client, "/postern/process"))
		return false;
	process->id = client_number(&process->client, "pid");
	client_text(&process->client, "program", process->program, sizeof(process->program));
	return process->id != 0;
}

static bool process_known(const char *path)
{
	list_each (const struct process, process, &processes, link)
		if (strcmp(process->path, path) == 0)
			return true;
	return false;
}

/* Is it a socket of this user, and no link? */
static bool is_own_socket(const char *path)
{
	struct stat found;

	return lstat(path, &found) == 0 && S_ISSOCK(found.st_mode) && found.st_uid == geteuid();
}

static void process_try(const char *path)
{
	struct process *process;

	if (process_known(path) || !is_own_socket(path))
		return;
	process = calloc(1, sizeof(*process));
	if (!process)
		return;
	process->path = strdup(path);
	if (!process->path || !client_open(&process->client, path)) {
		free(process->path);
		free(process);
		return;
	}
	list_append(processes.next, &process->link); /* in front of the others */
	if (!process_identify(process))
		process_forget(process);
}

static void directory_look(const char *base)
{
	char pattern[4096];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s" PATTERN, base);
	if (glob(pattern, 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			process_try(found.gl_pathv[i]);
	globfree(&found);
}

/* The interface of this number, a new one at the end, NULL when there are too many. */
static struct interface *process_slot(struct process *process, uint64_t number)
{
	struct interface *interface;

	for (unsigned i = 0; i < process->count; i++)
		if (process->interfaces[i].number == number)
			return &process->interfaces[i];
	if (process->count == INTERFACES_MAX)
		return NULL;
	interface = &process->interfaces[process->count++];
	*interface = (struct interface){.number = number};
	return interface;
}

static bool ask_about(struct process *process, const char *topic, uint64_t number)
{
	char question[64];

	snprintf(question, sizeof(question), "/postern/%s,%llu", topic, (unsigned long long)number);
	return client_ask(&process->client, question);
}

/* Returns false if the process does not answer any more. */
static bool interface_read(struct process *process, struct interface *interface, enum view view)
{
	struct client *client = &process->client;
	struct counts *now = &interface->now;
	char progress[TEXT_BYTES];
	uint64_t nid = interface->nid, pid = interface->pid;

	interface->before = *now;
	if (!ask_about(process, "ni", interface->number))
		return false;
	interface->nid = client_number(client, "nid");
	interface->pid = client_number(client, "pid");
	interface->peers = client_number(client, "peers");
	client_text(client, "name", interface->device, sizeof(interface->device));
	client_text(client, "progress", progress, sizeof(progress));
	interface->inlined = strcmp(progress, "core") != 0;
	if (!ask_about(process, "stats", interface->number))
		return false;
	now->at = time_monotonic();
	now->frames_in = client_number(client, "frames_received");
	now->frames_out = client_number(client, "frames_sent");
	now->messages_in = client_number(client, "messages_received");
	now->messages_out = client_number(client, "messages_sent");
	now->bytes_in = client_number(client, "bytes_received");
	now->bytes_out = client_number(client, "bytes_sent");
	now->retransmits = client_number(client, "retransmits");
	now->drops = client_sum(client, "dropped_");
	if (!ask_about(process, "poll", interface->number))
		return false;
	now->busy = client_number(client, "busy_ns");
	now->elapsed = client_number(client, "elapsed_ns");
	if (view == VIEW_NODES && !node_read(&interface->node, client, interface->number, now->at))
		return false;
	if (view == VIEW_COUNTERS &&
		!counters_read(&interface->counters, client, interface->number))
		return false;
	/* Another life of the interface counts from nothing. */
	interface->rated = interface->before.at != 0 && nid == interface->nid &&
			   pid == interface->pid && now->frames_in >= interface->before.frames_in &&
			   now->frames_out >= interface->before.frames_out;
	interface->seen = true;
	return true;
}

static void process_drop_unseen(struct process *process)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < process->count; i++)
		if (process->interfaces[i].seen)
			process->interfaces[kept++] = process->interfaces[i];
		else
			interface_free(&process->interfaces[i]);
	process->count = kept;
}

static bool process_read(struct process *process, enum view view)
{
	uint64_t numbers[INTERFACES_MAX];
	unsigned count;

	if (!process_identify(process))
		return false;
	count = client_numbers(&process->client, "interfaces", numbers, INTERFACES_MAX);
	for (unsigned i = 0; i < process->count; i++)
		process->interfaces[i].seen = false;
	for (unsigned i = 0; i < count; i++) {
		struct interface *interface = process_slot(process, numbers[i]);

		if (interface && !interface_read(process, interface, view))
			return false;
	}
	process_drop_unseen(process);
	return true;
}

void processes_look(enum view view)
{
	const char *session = getenv("XDG_RUNTIME_DIR");

	if (getuid() == 0) {
		directory_look("/var/run");
	} else {
		if (session && session[0] != '\0')
			directory_look(session);
		/* Processes that were started outside the session. */
		if (!session || strcmp(session, "/tmp") != 0)
			directory_look("/tmp");
	}
	list_each (struct process, process, &processes, link)
		if (!process_read(process, view))
			process_forget(process);
}

bool processes_hidden(void)
{
	const char *session = getenv("XDG_RUNTIME_DIR");
	struct stat state;

	return getuid() != 0 && (!session || session[0] == '\0') &&
	       lstat("/tmp/dpdk", &state) == 0 && state.st_uid != getuid();
}

struct process *process_first(void)
{
	return list_first(&processes, struct process, link);
}

struct process *process_next(const struct process *process)
{
	return list_element(process->link.next, &processes, struct process, link);
}

uint64_t process_id(const struct process *process)
{
	return process->id;
}

unsigned process_instance(const struct process *process)
{
	const char *number = strrchr(process->path, '/') + 1 + strlen(SOCKET);

	return *number == ':' ? (unsigned)strtoul(number + 1, NULL, 10) : 0;
}

const char *process_prefix(const struct process *process, char *buffer, size_t size)
{
	const char *end = strrchr(process->path, '/'), *begin = end;

	while (begin[-1] != '/')
		begin--;
	snprintf(buffer, size, "%.*s", (int)(end - begin), begin);
	return buffer;
}

const char *process_program(const struct process *process)
{
	return process->program;
}

unsigned process_interfaces(const struct process *process)
{
	return process->count;
}

const struct interface *process_interface(const struct process *process, unsigned i)
{
	return &process->interfaces[i];
}

double rate_of(const struct interface *interface, uint64_t before, uint64_t now)
{
	uint64_t time = interface->now.at - interface->before.at;

	if (!interface->rated || time == 0 || now < before)
		return 0;
	return (double)(now - before) * 1e9 / (double)time;
}

double busy_of(const struct interface *interface)
{
	const struct counts *now = &interface->now, *before = &interface->before;
	double part;

	if (interface->inlined || !interface->rated || now->elapsed <= before->elapsed ||
		now->busy < before->busy)
		return -1;
	part = (double)(now->busy - before->busy) / (double)(now->elapsed - before->elapsed);
	/* A turn is counted at its end, also its time before the last look, so 1 is exceeded. */
	return part < 1 ? part : 1;
}
