/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_rendezvous.c - a rendezvous, into whose socket other programs of the user say what the input
 * has: HELLO with any bytes, and with descriptors of any kind, in any order, from several clients.
 * The connections that come of it have mapped memory and a trusted name, and all descriptors are
 * closed in the end.
 *
 * The input is steps: a byte that says what, and for a message one that says which descriptors, one
 * for its length, and changes of its bytes, each a place and a value, until a place beyond it.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <pmd-glue/rendezvous.h>
#include <pmd-glue/shared.h>

#include "fuzz.h"

#define CLIENTS     6u
#define PAIR_BYTES  ((size_t)16384)
#define FRAME       1514u
#define OWN_PID     50u
#define MESSAGE     64u
#define CONNECTIONS 16u

enum { STEP_CONNECT, STEP_CLOSE, STEP_SAY, STEP_WAKE, STEP_TURN, STEP_DROP, STEPS };
/* What goes along with a message. */
enum {
	FILES_RIGHT,
	FILES_NONE,
	FILES_ONE,
	FILES_SWAPPED,
	FILES_UNSEALED,
	FILES_SHORT,
	FILES_KINDS
};

static char runtime[] = "/tmp/postern-fuzz-XXXXXX";
static char path[128];
static int page, memory, unsealed, brief;

static void clean(void)
{
	char *slash;

	rmdir(path);
	slash = strrchr(path, '/');
	*slash = '\0';
	rmdir(path);
	rmdir(runtime);
}

static int file_make(size_t bytes, int seals)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	fuzz_assert(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
	fuzz_assert(seals == 0 || fcntl(fd, F_ADD_SEALS, seals) == 0);
	return fd;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fuzz_assert(mkdtemp(runtime));
	setenv("XDG_RUNTIME_DIR", runtime, 1);
	page = file_make(shared_page_bytes(), SHARED_PAGE_SEALS);
	memory = file_make(PAIR_BYTES, SHARED_SEALS);
	unsealed = file_make(PAIR_BYTES, 0);
	brief = file_make(PAIR_BYTES - 4096, SHARED_SEALS);
	snprintf(path, sizeof(path), "%s/postern/fuzz", runtime);
	return atexit(clean);
}

static unsigned descriptors_count(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned count = 0;

	fuzz_assert(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

/* --- the input */

struct script {
	const uint8_t *at, *end;
};

static uint8_t script_byte(struct script *script)
{
	return script->at < script->end ? *script->at++ : 0;
}

/* --- clients */

static int client_connect(const struct rendezvous *rendezvous)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	fuzz_assert(client >= 0);
	fuzz_assert(snprintf(address.sun_path, sizeof(address.sun_path), "%s/%u",
			    rendezvous_path(rendezvous),
			    rendezvous_pid(rendezvous)) < (int)sizeof(address.sun_path));
	if (connect(client, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return client;
	close(client);
	return -1;
}

static void client_say(int client, unsigned number, struct script *script)
{
	const struct rendezvous_hello hello = {.magic = RENDEZVOUS_MAGIC,
		.version = RENDEZVOUS_VERSION,
		.kind = RENDEZVOUS_HELLO,
		.nid = 7,
		.pid = OWN_PID - 2 + number,
		.frame_size = FRAME,
		.pair_bytes = PAIR_BYTES,
		.incarnation = 1 + number};
	const int files[FILES_KINDS][2] = {[FILES_RIGHT] = {page, memory},
		[FILES_NONE] = {-1, -1},
		[FILES_ONE] = {page, -1},
		[FILES_SWAPPED] = {memory, page},
		[FILES_UNSEALED] = {page, unsealed},
		[FILES_SHORT] = {page, brief}};
	const int *sent = files[script_byte(script) % FILES_KINDS];
	uint8_t bytes[MESSAGE + 16] = {0};
	size_t length = script_byte(script), at;

	memcpy(bytes, &hello, sizeof(hello));
	length = length == 0 || length > sizeof(bytes) ? sizeof(hello) : length;
	while (script->at < script->end && (at = script_byte(script)) < length)
		bytes[at] = script_byte(script);
	(void)parcel_send(client, bytes, length, sent, (unsigned)((sent[0] >= 0) + (sent[1] >= 0)));
}

/* --- the rendezvous's owner */

struct world {
	struct rendezvous *rendezvous;
	int clients[CLIENTS];
	struct rendezvous_connection *connections[CONNECTIONS];
	unsigned count;
};

static void connection_forget(struct world *world, unsigned n)
{
	struct rendezvous_connection *connection = world->connections[n];

	fuzz_assert(munmap(connection->memory, PAIR_BYTES) == 0);
	rendezvous_drop(world->rendezvous, connection);
	world->connections[n] = world->connections[--world->count];
}

static void connection_came(struct world *world, struct rendezvous_connection *connection)
{
	const volatile uint8_t *bytes = connection->memory;

	fuzz_assert(world->count < CONNECTIONS);
	fuzz_assert(connection->pid != OWN_PID && connection->pid != RENDEZVOUS_PID_ANY);
	fuzz_assert(connection->uid == geteuid() && connection->process == getpid());
	fuzz_assert(connection->incarnation != 0 && connection->answered && connection->end == 1);
	for (unsigned n = 0; n < world->count; n++)
		fuzz_assert(world->connections[n]->pid != connection->pid);
	(void)bytes[0];
	(void)bytes[PAIR_BYTES - 1];
	rendezvous_wake(connection); /* reads the word */
	world->connections[world->count++] = connection;
}

static void turn(struct world *world)
{
	struct rendezvous_connection *connection;
	enum rendezvous_event event;

	while (rendezvous_turn(world->rendezvous, &connection, &event)) {
		fuzz_assert(event == RENDEZVOUS_CAME || event == RENDEZVOUS_ENDED);
		if (event == RENDEZVOUS_CAME) {
			connection_came(world, connection);
			continue;
		}
		for (unsigned n = 0; n < world->count; n++)
			if (world->connections[n] == connection) {
				connection_forget(world, n);
				break;
			}
	}
}

static void step(struct world *world, struct script *script)
{
	uint8_t what = script_byte(script);
	unsigned number = what / STEPS % CLIENTS;
	int *client = &world->clients[number];

	if (*client < 0 && what % STEPS != STEP_TURN && what % STEPS != STEP_DROP)
		*client = client_connect(world->rendezvous);
	switch (what % STEPS) {
	case STEP_CLOSE:
		if (*client >= 0)
			close(*client);
		*client = -1;
		break;
	case STEP_SAY:
		if (*client >= 0)
			client_say(*client, number, script);
		break;
	case STEP_WAKE:
		if (*client >= 0)
			(void)send(*client, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		break;
	case STEP_TURN:
		turn(world);
		break;
	case STEP_DROP:
		if (world->count > 0)
			connection_forget(world, number % world->count);
		break;
	default:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct rendezvous_options options = {.name = "fuzz",
		.nid = 7,
		.pid = OWN_PID,
		.passing = true,
		.frame_size = FRAME,
		.pair_bytes = PAIR_BYTES,
		.touched = 4096};
	struct script script = {data, data ? data + size : data};
	unsigned before = descriptors_count();
	struct world world = {.rendezvous = rendezvous_open(&options)};

	fuzz_assert(world.rendezvous);
	for (unsigned n = 0; n < CLIENTS; n++)
		world.clients[n] = -1;
	while (script.at < script.end)
		step(&world, &script);
	turn(&world);
	while (world.count > 0)
		connection_forget(&world, 0);
	rendezvous_close(world.rendezvous);
	for (unsigned n = 0; n < CLIENTS; n++)
		if (world.clients[n] >= 0)
			close(world.clients[n]);
	fuzz_assert(descriptors_count() == before);
	return 0;
}
