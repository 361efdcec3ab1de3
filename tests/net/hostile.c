/* SPDX-License-Identifier: BSD-3-Clause */
/* hostile.c - a process that attacks the processes 1 to COUNT of its node until it is killed. It
 * says "at it" when it has begun. The node is PTL_IFACE_NAME=node:NAME in $XDG_RUNTIME_DIR, or the
 * one that posternd makes of the interface PTL_IFACE_NAME: then it attacks posternd as well.
 *
 *     hostile WAY COUNT
 *
 *     spin       only computes, which is what the others are compared with
 *     visit      connects, says nothing or something strange, and leaves
 *     unsealed   offers memory that is not sealed, and truncates it
 *     scribble   sends frames, while a second thread writes anything anywhere in the memory that it
 *                shares with the others
 *     flood      sends frames as quickly as they are taken: of random bytes, through posternd such
 *                as it lets pass
 *     claim      sends frames through posternd in the names of others
 *     wake       wakes the others again and again, though it has nothing to say; not posternd
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <rte_byteorder.h>
#include <rte_mbuf.h>

#include <base/settings.h>
#include <pmd-glue/client.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/rendezvous.h>
#include <pmd-glue/pair.h>
#include <wire/frame.h>
#include <wire/message.h>

#define PID        99u
#define BURST      32u
#define MAPS_MOST  64u
#define SEALS      (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | F_SEAL_FUTURE_WRITE)
#define HEADER     14u
#define SLOT_WORDS 32u /* a slot has a word that publishes it, and then a head */

static unsigned count;
static const char *interface;
static const char *node; /* NULL: posternd's */
static _Thread_local uint64_t seed = 88172645463325252;

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "hostile: ");
	perror(what);
	exit(1);
}

static uint64_t draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void begun(void)
{
	static bool said;

	if (!said)
		puts("at it");
	said = true;
	fflush(stdout);
}

/* --- by a socket of its own */

/* To a process, or to posternd. -1: it cannot take any more. */
static int attach(unsigned pid)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		fail("socket");
	if (node)
		snprintf(address.sun_path, sizeof(address.sun_path), "%s/postern/%s/%u",
			getenv("XDG_RUNTIME_DIR"), node, pid);
	else
		(void)posternd_address(&address, interface);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -1;
}

static void spin(void)
{
	begun();
	for (;;)
		(void)draw();
}

static void visit(void)
{
	for (unsigned n = 0;; n++) {
		int fd = attach(n % count + 1);

		if (fd >= 0 && n % 3 == 0)
			(void)send(fd, "?", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (fd >= 0)
			close(fd);
		begun();
	}
}

static int file_make(size_t bytes)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
		fail("memfd_create");
	return fd;
}

static void hello_send(int fd, const int *files)
{
	struct rendezvous_hello hello = {.magic = RENDEZVOUS_MAGIC,
		.version = RENDEZVOUS_VERSION,
		.kind = RENDEZVOUS_HELLO,
		.nid = (uint32_t)setting_number_item(SETTING_NID, 0, 0),
		.pid = PID,
		.frame_size = (uint32_t)setting_number_item(SETTING_MTU, 0, 0) + HEADER,
		.pair_bytes = pair_bytes(),
		.incarnation = 1};
	struct client_hello call = {.magic = CLIENT_MAGIC,
		.version = CLIENT_VERSION,
		.pid = PID,
		.pair_bytes = pair_bytes()};

	(void)parcel_send(fd, node ? (void *)&hello : (void *)&call,
		node ? sizeof(hello) : sizeof(call), files, 2);
}

static void unsealed(void)
{
	for (unsigned n = 0;; n++) {
		int fd = attach(n % count + 1);
		int files[] = {file_make((size_t)sysconf(_SC_PAGESIZE)), file_make(pair_bytes())};

		if (fcntl(files[0], F_ADD_SEALS, SEALS) != 0)
			fail("F_ADD_SEALS");
		if (fd >= 0) {
			hello_send(fd, files);
			if (ftruncate(files[1], 0) != 0)
				fail("ftruncate");
			close(fd);
		}
		close(files[0]);
		close(files[1]);
		begun();
	}
}

/* --- by a rendezvous */

static void wake(void)
{
	struct rendezvous_options options = {.name = node,
		.nid = (uint32_t)setting_number_item(SETTING_NID, 0, 0),
		.pid = RENDEZVOUS_PID_ANY,
		.frame_size = (uint32_t)setting_number_item(SETTING_MTU, 0, 0) + HEADER,
		.pair_bytes = pair_bytes(),
		.touched = pair_bytes_touched()};
	struct rendezvous *rendezvous = rendezvous_open(&options);
	struct rendezvous_connection *connections[MAPS_MOST] = {NULL}, *connection;
	enum rendezvous_event event;

	if (!rendezvous || count > MAPS_MOST)
		fail("rendezvous_open");
	for (unsigned n = 0; n < count; n++)
		if (!(connections[n] = rendezvous_connect(rendezvous, n + 1)))
			fail("rendezvous_connect");
	for (;;) {
		while (rendezvous_turn(rendezvous, &connection, &event))
			;
		for (unsigned n = 0; n < count; n++)
			if (connections[n]->answered && connections[n]->socket >= 0)
				(void)send(
					connections[n]->socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		begun();
	}
}

/* --- by a port */

static struct port *port_open(void)
{
	struct port *port;
	bool absent;

	if (node)
		port = glue_port_open(0, interface,
			(uint32_t)setting_number_item(SETTING_MTU, 0, 0), GLUE_PID_ANY);
	else
		port = client_port_open(interface, 0, 0, CLIENT_PID_ANY, &absent);
	if (!port)
		exit(1);
	return port;
}

/* A frame of random bytes for a process; NULL: there is no buffer. */
static struct rte_mbuf *frame_make(struct port *port, unsigned pid, uint32_t size)
{
	struct rte_mbuf *frame = rte_pktmbuf_alloc(port->pool);
	rte_be32_t to = rte_cpu_to_be_32(pid);
	uint8_t *bytes;

	if (!frame)
		return NULL;
	frame->data_len = (uint16_t)size;
	frame->pkt_len = size;
	bytes = rte_pktmbuf_mtod(frame, uint8_t *);
	for (uint32_t n = 0; n + 8 <= size; n += 8) {
		uint64_t word = draw();

		memcpy(bytes + n, &word, sizeof(word));
	}
	memcpy(bytes, "\x02P", 2);
	memcpy(bytes + 2, &to, sizeof(to));
	memcpy(bytes + 6, port->address, 6);
	memcpy(bytes + 12, "\x88\xb5", 2);
	return frame;
}

/* Ways in which a frame is wrong, a bit each. */
enum lie { LIE_NID = 1, LIE_PID = 2, LIE_UID = 4, LIE_ADDRESS = 8, LIE_TYPE = 16, LIE_SUM = 32 };

/* A frame with a message, for a process of posternd's node or another one. NULL: no buffer. */
static struct rte_mbuf *frame_claim(struct port *port, unsigned pid, unsigned lies)
{
	struct message_header header = {
		.kind = MESSAGE_PUT, .uid = port->uid + ((lies & LIE_UID) != 0)};
	struct record record = {.kind = RECORD_WHOLE, .header_length = MESSAGE_HEADER_LEAST};
	uint32_t psn = (uint32_t)draw();
	struct frame frame = {.type = FRAME_DATA,
		.flags = FRAME_FIRST | FRAME_START,
		.records = 1,
		.length = FRAME_HEADER_BYTES + RECORD_WHOLE_BYTES + MESSAGE_HEADER_LEAST,
		.destination_nid = port->nid + (draw() % 4 == 0),
		.destination_pid = pid,
		.destination_incarnation = (uint32_t)draw(),
		.source_nid = port->nid + ((lies & LIE_NID) != 0),
		.source_pid = lies & LIE_PID ? pid : port->pid,
		.source_incarnation = 1,
		.psn = psn,
		.first = psn};
	struct rte_mbuf *mbuf = frame_make(port, pid, HEADER + frame.length);
	uint8_t *bytes, encoded[MESSAGE_HEADER_BYTES];

	if (!mbuf)
		return NULL;
	bytes = rte_pktmbuf_mtod(mbuf, uint8_t *);
	memset(bytes, 0xff, 6);
	bytes[11] = (uint8_t)(bytes[11] + ((lies & LIE_ADDRESS) != 0));
	bytes[13] = (uint8_t)(bytes[13] + ((lies & LIE_TYPE) != 0));
	(void)message_encode(&header, encoded);
	memcpy(record_write(bytes + HEADER + FRAME_HEADER_BYTES, &record), encoded,
		MESSAGE_HEADER_LEAST);
	frame_encode(&frame, bytes + HEADER);
	bytes[HEADER + FRAME_HEADER_BYTES - 1] ^= (uint8_t)((lies & LIE_SUM) != 0);
	return mbuf;
}

static struct rte_mbuf *frame_any(struct port *port, unsigned n, bool lying)
{
	unsigned pid = n % count + 1;

	if (node)
		return frame_make(port, pid,
			64 + (uint32_t)(draw() % (draw() % 16 == 0 ? port->frame_size - 64 : 400)));
	return frame_claim(port, pid, lying ? 1u << draw() % 6 : 0);
}

/* Sends, and takes what comes, for ever. */
static _Noreturn void port_run(struct port *port, bool lying)
{
	struct rte_mbuf *frames[BURST];

	for (unsigned n = 0;; n++) {
		struct rte_mbuf *frame = frame_any(port, n, lying);
		uint16_t taken = port_receive(port, frames, BURST);

		rte_pktmbuf_free_bulk(frames, taken);
		if (frame && port_transmit(port, &frame, 1) == 0)
			rte_pktmbuf_free(frame);
		if (n == 1000)
			begun();
	}
}

static void flood(void)
{
	port_run(port_open(), false);
}

static void claim(void)
{
	port_run(port_open(), true);
}

/* The memory of all pairs, as it is mapped now. */
static unsigned maps_find(uint64_t *starts)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned found = 0;
	char line[512];

	while (maps && found < MAPS_MOST && fgets(line, sizeof(line), maps)) {
		uint64_t start, end;

		if (strstr(line, "postern-pair") &&
			sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 &&
			end - start == pair_bytes())
			starts[found++] = start;
	}
	if (maps)
		fclose(maps);
	return found;
}

/* The first thread may unmap it meanwhile, so it is written to through a file. */
static void *scribble_run(void *context)
{
	int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	uint64_t starts[MAPS_MOST];

	(void)context;
	if (memory < 0)
		fail("/proc/self/mem");
	seed += 1;
	for (;;) {
		unsigned found = maps_find(starts);

		for (unsigned n = 0; found > 0 && n < 100; n++) {
			size_t room = n % 2 == 0 ? pair_bytes_touched() : pair_bytes();
			uint64_t at = draw() % (room / 8) * 8, word = draw();

			if (n % 4 == 0) { /* lengths that may be, in a slot or near it */
				at -= at % (8 * SLOT_WORDS);
				word = draw() % 64 | draw() % 33000 << 32 | draw() % 33000 << 48;
			}
			(void)!pwrite(
				memory, &word, sizeof(word), (off_t)(starts[draw() % found] + at));
		}
	}
	return NULL;
}

static void scribble(void)
{
	struct port *port = port_open();
	pthread_t thread;

	if (pthread_create(&thread, NULL, scribble_run, NULL) != 0)
		fail("pthread_create");
	port_run(port, false);
}

int main(int argc, char **words)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} ways[] = {{"spin", spin}, {"visit", visit}, {"unsealed", unsealed},
		{"scribble", scribble}, {"flood", flood}, {"claim", claim}, {"wake", wake}};

	interface = getenv("PTL_IFACE_NAME");
	if (argc != 3 || !interface) {
		fprintf(stderr, "usage: PTL_IFACE_NAME=NAME hostile WAY COUNT\n");
		return 2;
	}
	node = strncmp(interface, "node:", 5) == 0 ? interface + 5 : NULL;
	count = (unsigned)atoi(words[2]);
	if (settings_load() != 0 || glue_start() != 0)
		return 1;
	glue_thread_enter();
	for (size_t n = 0; n < sizeof(ways) / sizeof(ways[0]); n++)
		if (strcmp(ways[n].name, words[1]) == 0)
			ways[n].run();
	return 2;
}
