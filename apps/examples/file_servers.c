/* SPDX-License-Identifier: BSD-3-Clause */
/* file_servers.c - parallel file servers, after chapter 5 of the Portals 3.2 specification.
 *
 * Four servers stripe a file over four disks and look like one to an application:
 *
 *     application                         server 0          server 1, 2, 3
 *     describes its buffer        ─────▶  request   ─────▶  the same request
 *                                 ◀─────  stripes 0, 4, ..  ◀─────  stripes 1, 5, ..
 *     adds up lengths until the file is complete
 *
 * The servers decide what goes where in the application's buffer (PTL_MD_MANAGE_REMOTE); to read
 * they put into it, to write they get from it. An entry in the application's access control table
 * lets the servers, and nobody else, reach the Portal of its files.
 *
 * All five are interfaces of this one program, each with a thread of its own. It exits with 0 if
 * the file is read as it was written and an intruder is kept out.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <portals.h>
#include <postern.h>

#define SERVERS         4
#define INTERFACES      "loop:files;loop:files;loop:files;loop:files;loop:files"
#define SERVER_PID      700 /* every file server has this process id, on a node of its own */
#define PORTAL_REQUESTS 1   /* of a server */
#define PORTAL_FILES    2   /* of an application */
#define COOKIE_SERVERS  1   /* entry of the application's access control table */
#define STRIPE          (16 * 1024)
#define FILE_SIZE       (60 * STRIPE + 1234)
#define DISK_SIZE       (FILE_SIZE / SERVERS + STRIPE)
/* that a server has room for; a lasting one would attach new room in time */
#define REQUESTS   64
#define QUEUE_ROOM 256

enum operation { READ_FILE, WRITE_FILE, CLOSE_SERVER };

/* All that a server needs to know to move data. */
struct request {
	enum operation operation;
	int forwarded; /* 0: from the application; the other servers have to be told */
	ptl_process_id_t application;
	ptl_pt_index_t portal;
	ptl_ac_index_t cookie;
	ptl_match_bits_t buffer; /* match bits */
	ptl_size_t length;
};

/* What a server and the application have in common. */
struct node {
	ptl_handle_ni_t ni;
	ptl_process_id_t id;
	ptl_handle_eq_t queue;    /* what this node does to others' memory */
	ptl_handle_eq_t arrivals; /* what others do to its own, which may happen meanwhile */
};

struct server {
	struct node node;
	unsigned number;
	const struct server *all;
	struct request requests[REQUESTS];
	unsigned char disk[DISK_SIZE];
};

static void check(int code, const char *call)
{
	if (code == PTL_OK)
		return;
	fprintf(stderr, "%s: %s\n", call, postern_error_text(code));
	exit(1);
}

static void expect(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "The check \"%s\" failed: the library or this program has a fault.\n",
		what);
	exit(1);
}

static void node_open(struct node *node, ptl_interface_t interface, ptl_pid_t pid)
{
	check(PtlNIInit(interface, pid, NULL, NULL, &node->ni), "PtlNIInit");
	check(PtlGetId(node->ni, &node->id), "PtlGetId");
	check(PtlEQAlloc(node->ni, QUEUE_ROOM, &node->queue), "PtlEQAlloc");
	check(PtlEQAlloc(node->ni, QUEUE_ROOM, &node->arrivals), "PtlEQAlloc");
}

/* The next event of one kind or another; anything that failed ends the program. */
static ptl_event_t wait_for(ptl_handle_eq_t queue, ptl_event_kind_t kind, ptl_event_kind_t other)
{
	ptl_event_t event;

	do {
		check(PtlEQWait(queue, &event), "PtlEQWait");
		expect(event.ni_fail_type == PTL_NI_OK, postern_fail_text(event.ni_fail_type));
	} while (event.type != kind && event.type != other);
	return event;
}

static void send_request(struct node *from, ptl_process_id_t to, const struct request *request)
{
	struct request copy = *request;
	ptl_md_t memory = {
		.start = &copy, .length = sizeof(copy), .threshold = 1, .eventq = from->queue};
	ptl_handle_md_t descriptor;

	check(PtlMDBind(from->ni, memory, &descriptor), "PtlMDBind");
	check(PtlPut(descriptor, PTL_NOACK_REQ, to, PORTAL_REQUESTS, 0, 0, 0, 0), "PtlPut");
	wait_for(from->queue, PTL_EVENT_SEND_END, PTL_EVENT_SEND_END);
	check(PtlMDUnlink(descriptor), "PtlMDUnlink");
}

/* Moves one stripe between the disk and the application's buffer. */
static void stripe_move(
	struct server *server, const struct request *request, ptl_size_t on_disk, ptl_size_t offset)
{
	ptl_size_t left = request->length - offset;
	ptl_md_t memory = {.start = server->disk + on_disk,
		.length = left < STRIPE ? left : STRIPE,
		.threshold = 1,
		.eventq = server->node.queue};
	ptl_handle_md_t descriptor;

	check(PtlMDBind(server->node.ni, memory, &descriptor), "PtlMDBind");
	if (request->operation == READ_FILE)
		check(PtlPut(descriptor, PTL_NOACK_REQ, request->application, request->portal,
			      request->cookie, request->buffer, offset, 0),
			"PtlPut");
	else
		check(PtlGet(descriptor, request->application, request->portal, request->cookie,
			      request->buffer, offset),
			"PtlGet");
	wait_for(server->node.queue, PTL_EVENT_SEND_END, PTL_EVENT_REPLY_END);
	check(PtlMDUnlink(descriptor), "PtlMDUnlink");
}

static void request_serve(struct server *server, const struct request *request)
{
	ptl_size_t on_disk = 0;

	if (!request->forwarded) {
		struct request copy = *request;

		copy.forwarded = 1;
		for (unsigned i = 0; i < SERVERS; i++)
			if (i != server->number)
				send_request(&server->node, server->all[i].node.id, &copy);
	}
	if (request->operation == CLOSE_SERVER)
		return;
	for (ptl_size_t offset = (ptl_size_t)server->number * STRIPE; offset < request->length;
		offset += SERVERS * STRIPE, on_disk += STRIPE)
		stripe_move(server, request, on_disk, offset);
}

/* Requests are put one behind the other into server->requests and served in that order. They have a
 * queue of their own, so that a request that comes while another is served waits. */
static void server_open(struct server *server, ptl_interface_t interface)
{
	const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_handle_me_t entry;
	ptl_md_t memory = {.start = server->requests,
		.length = sizeof(server->requests),
		.threshold = PTL_MD_THRESH_INF,
		.max_offset = sizeof(server->requests),
		.options = PTL_MD_OP_PUT | PTL_MD_ACK_DISABLE};

	node_open(&server->node, interface, SERVER_PID);
	memory.eventq = server->node.arrivals;
	check(PtlMEAttach(server->node.ni, PORTAL_REQUESTS, anybody, 0, 0, PTL_RETAIN,
		      PTL_INS_AFTER, &entry),
		"PtlMEAttach");
	check(PtlMDAttach(entry, memory, PTL_RETAIN, PTL_RETAIN, NULL), "PtlMDAttach");
}

static void *server_run(void *argument)
{
	struct server *server = argument;
	const struct request *request;
	ptl_event_t event;

	do {
		event = wait_for(server->node.arrivals, PTL_EVENT_PUT_END, PTL_EVENT_PUT_END);
		request = &server->requests[event.offset / sizeof(struct request)];
		request_serve(server, request);
	} while (request->operation != CLOSE_SERVER);
	return NULL;
}

/* Offers a buffer to the servers, asks one of them, and waits until every byte of it has been
 * moved. */
static void file_move(struct node *application, ptl_process_id_t server, enum operation operation,
	unsigned char *buffer, ptl_size_t length)
{
	const ptl_process_id_t servers = {PTL_NID_ANY, SERVER_PID};
	struct request request = {.operation = operation,
		.application = application->id,
		.portal = PORTAL_FILES,
		.cookie = COOKIE_SERVERS,
		.buffer = 42,
		.length = length};
	ptl_md_t memory = {.start = buffer,
		.length = length,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_MANAGE_REMOTE |
			   (operation == READ_FILE ? PTL_MD_OP_PUT : PTL_MD_OP_GET),
		.eventq = application->arrivals};
	ptl_handle_me_t entry;

	check(PtlMEAttach(application->ni, PORTAL_FILES, servers, request.buffer, 0, PTL_RETAIN,
		      PTL_INS_AFTER, &entry),
		"PtlMEAttach");
	check(PtlMDAttach(entry, memory, PTL_RETAIN, PTL_RETAIN, NULL), "PtlMDAttach");
	send_request(application, server, &request);
	for (ptl_size_t moved = 0; moved < length;)
		moved += wait_for(application->arrivals, PTL_EVENT_PUT_END, PTL_EVENT_GET_END)
				 .mlength;
	check(PtlMEUnlink(entry), "PtlMEUnlink");
}

/* The same user, the right cookie and match bits that fit, but not a file server: discarded and
 * counted. */
static void intrude(struct node *application)
{
	unsigned char nonsense[8] = "intruder";
	ptl_md_t memory = {.start = nonsense,
		.length = sizeof(nonsense),
		.threshold = 1,
		.eventq = application->queue};
	ptl_handle_md_t descriptor;
	ptl_sr_value_t before, after;

	check(PtlNIStatus(application->ni, PTL_SR_DROP_COUNT, &before), "PtlNIStatus");
	check(PtlMDBind(application->ni, memory, &descriptor), "PtlMDBind");
	check(PtlPut(descriptor, PTL_NOACK_REQ, application->id, PORTAL_FILES, COOKIE_SERVERS, 42,
		      0, 0),
		"PtlPut");
	wait_for(application->queue, PTL_EVENT_SEND_END, PTL_EVENT_SEND_END);
	do
		check(PtlNIStatus(application->ni, PTL_SR_DROP_COUNT, &after), "PtlNIStatus");
	while (after == before);
	check(PtlMDUnlink(descriptor), "PtlMDUnlink");
}

int main(void)
{
	static unsigned char written[FILE_SIZE], read[FILE_SIZE];
	static struct server servers[SERVERS];
	pthread_t threads[SERVERS];
	struct node application;
	const struct request close = {.operation = CLOSE_SERVER};
	ptl_uid_t user;
	int interfaces;

	setenv("PTL_IFACE_NAME", INTERFACES, 0);
	check(PtlInit(&interfaces), "PtlInit");
	if (interfaces <= SERVERS) {
		fprintf(stderr,
			"file_servers is one process with five interfaces, but PTL_IFACE_NAME "
			"names %d: unset it, and start the program without a launcher\n",
			interfaces);
		return 1;
	}
	node_open(&application, SERVERS, PTL_PID_ANY);
	for (unsigned i = 0; i < SERVERS; i++) {
		servers[i].number = i;
		servers[i].all = servers;
		server_open(&servers[i], i);
	}
	for (unsigned i = 0; i < SERVERS; i++)
		expect(pthread_create(&threads[i], NULL, server_run, &servers[i]) == 0,
			"a thread can be started");

	/* connecting: any of the servers may use the Portal for files with this cookie */
	check(PtlGetUid(application.ni, &user), "PtlGetUid");
	check(PtlACEntry(application.ni, COOKIE_SERVERS,
		      (ptl_process_id_t){PTL_NID_ANY, SERVER_PID}, user, PORTAL_FILES),
		"PtlACEntry");

	for (size_t i = 0; i < FILE_SIZE; i++)
		written[i] = (unsigned char)(i * 2654435761u >> 13);
	file_move(&application, servers[0].node.id, WRITE_FILE, written, FILE_SIZE);
	file_move(&application, servers[2].node.id, READ_FILE, read, FILE_SIZE);
	expect(memcmp(written, read, FILE_SIZE) == 0, "the file is read as it was written");
	printf("%d bytes written to and read from %d servers\n", FILE_SIZE, SERVERS);

	intrude(&application);
	printf("an intruder was kept out\n");

	send_request(&application, servers[1].node.id, &close);
	for (unsigned i = 0; i < SERVERS; i++)
		pthread_join(threads[i], NULL);
	PtlNIFini(application.ni);
	for (unsigned i = 0; i < SERVERS; i++)
		PtlNIFini(servers[i].node.ni);
	PtlFini();
	return 0;
}
