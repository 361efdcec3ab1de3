/* SPDX-License-Identifier: BSD-3-Clause */
/* switch.c - what a frame through posternd costs while others have come to it and send nothing.
 *
 *     bench-switch [FRAMES]      frames in a round; as root, because /run/postern is root's
 *
 * Two processes, which are this one, and posternd's switch take turns in one thread: a process
 * sends a frame, the switch takes it, checks it and gives it to the other process, which takes it
 * and has the next one sent. So every turn of the switch carries one frame. The figure is the least
 * of ROUNDS rounds, divided by their frames; others on the machine cost it little.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include <base/clock.h>
#include <base/port.h>
#include <base/settings.h>
#include <pmd-glue/client.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/kinds.h>
#include <pmd-glue/pair.h>
#include <pmd-glue/switch.h>
#include <wire/frame.h>
#include <wire/message.h>

#include "apps/node/attest.h"

#define NID     7u
#define FRAMES  20000u
#define ROUNDS  25u
#define AT_ONCE 8u
#define OF_USER 20u    /* idle processes; a user may have no more than there is room for others */
#define USERS   60000u /* their users' numbers begin here */

static char name[32];
static struct switch_state *the_switch;
static struct port *sender, *receiver;
static struct rte_mbuf *frame;
static unsigned left; /* frames of this round */

static void need(bool fine, const char *what)
{
	if (fine)
		return;
	fprintf(stderr, "bench-switch: %s is not as it should be\n", what);
	exit(1);
}

static void frame_send(void)
{
	struct rte_mbuf *one = frame;

	rte_mbuf_refcnt_update(frame, 1);
	need(port_transmit(sender, &one, 1) == 1, "the sender's memory");
}

/* Called for each frame that the switch forwards. */
static enum switch_verdict attest_and_go_on(
	const uint8_t *bytes, uint32_t length, struct switch_identity *who)
{
	struct rte_mbuf *frames[AT_ONCE];

	rte_pktmbuf_free_bulk(frames, port_receive(receiver, frames, AT_ONCE));
	if (--left == 0)
		switch_stop(the_switch);
	else
		frame_send();
	return attest(bytes, length, who);
}

/* A put of nothing, from the sender to the receiver. */
static struct rte_mbuf *frame_put(void)
{
	struct message_header header = {.kind = MESSAGE_PUT, .uid = sender->uid};
	struct record record = {.kind = RECORD_WHOLE, .header_length = MESSAGE_HEADER_LEAST};
	struct frame head = {.type = FRAME_DATA,
		.flags = FRAME_START,
		.records = 1,
		.length = FRAME_HEADER_BYTES + RECORD_WHOLE_BYTES + MESSAGE_HEADER_LEAST,
		.destination_nid = NID,
		.destination_pid = receiver->pid,
		.source_nid = NID,
		.source_pid = sender->pid};
	uint8_t encoded[MESSAGE_HEADER_BYTES], *bytes;
	struct rte_mbuf *made = rte_pktmbuf_alloc(sender->pool);

	need(made != NULL, "the pool of buffers");
	made->data_len = (uint16_t)(FRAME_ETHERNET_BYTES + head.length);
	made->pkt_len = made->data_len;
	bytes = rte_pktmbuf_mtod(made, uint8_t *);
	memcpy(bytes, receiver->address, FRAME_ADDRESS_BYTES);
	memcpy(bytes + FRAME_ADDRESS_BYTES, sender->address, FRAME_ADDRESS_BYTES);
	bytes[FRAME_ETHERNET_BYTES - 2] = FRAME_ETHERTYPE >> 8;
	bytes[FRAME_ETHERNET_BYTES - 1] = FRAME_ETHERTYPE & 0xff;
	need(message_encode(&header, encoded) == MESSAGE_HEADER_LEAST, "the message's header");
	memcpy(record_write(bytes + FRAME_ETHERNET_BYTES + FRAME_HEADER_BYTES, &record), encoded,
		MESSAGE_HEADER_LEAST);
	frame_encode(&head, bytes + FRAME_ETHERNET_BYTES);
	return made;
}

/* --- processes --- */

static void *run(void *unused)
{
	glue_thread_enter();
	switch_run(the_switch);
	return unused;
}

static struct port *process_open(uint32_t pid)
{
	bool absent;
	struct port *port = client_port_open(name, 0, 0, pid, &absent);

	need(port != NULL, "posternd's answer");
	return port;
}

/* One that comes and sends nothing. Its socket stays open until this program ends. */
static void process_come(uint32_t pid)
{
	struct client_hello hello = {.magic = CLIENT_MAGIC,
		.version = CLIENT_VERSION,
		.pid = pid,
		.pair_bytes = pair_bytes()};
	int fds[] = {shared_file(shared_page_bytes(), shared_page_bytes()),
		shared_file(pair_bytes(), pair_bytes_touched())};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct client_answer answer = {0};
	struct sockaddr_un address;

	need(fd >= 0 && fds[0] >= 0 && fds[1] >= 0, "the limit of open files");
	need(fcntl(fds[0], F_ADD_SEALS, SHARED_PAGE_SEALS) == 0 &&
			fcntl(fds[1], F_ADD_SEALS, SHARED_SEALS) == 0,
		"the kernel's sealing");
	need(posternd_address(&address, name) &&
			connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
			parcel_send(fd, &hello, sizeof(hello), fds, RTE_DIM(fds)) &&
			recv(fd, &answer, sizeof(answer), 0) == (ssize_t)sizeof(answer) &&
			answer.verdict == CLIENT_WELCOME,
		"posternd's answer");
	close(fds[0]);
	close(fds[1]);
}

/* Processes come until so many idle ones are there. */
static void processes_come(unsigned *there, unsigned wanted)
{
	pthread_t thread;

	need(pthread_create(&thread, NULL, run, NULL) == 0, "a thread");
	if (!sender) {
		sender = process_open(1);
		receiver = process_open(2);
	}
	for (; *there < wanted; ++*there) {
		need(seteuid(USERS + *there / OF_USER) == 0, "this process's user (root)");
		process_come(3 + *there);
		need(seteuid(0) == 0, "this process's user");
	}
	switch_stop(the_switch);
	pthread_join(thread, NULL);
}

/* --- measuring --- */

/* Nanoseconds for a frame. */
static double round_time(unsigned frames)
{
	uint64_t begun = glue_now(NULL);

	left = frames;
	frame_send();
	switch_run(the_switch);
	return (double)(glue_now(NULL) - begun) / frames;
}

static double frame_time(unsigned frames)
{
	double least = round_time(frames);

	for (unsigned n = 1; n < ROUNDS; n++)
		least = RTE_MIN(least, round_time(frames));
	return least;
}

static void switch_begin(void)
{
	struct switch_options options = {.name = name,
		.nid = NID,
		.at = FRAME_ETHERNET_BYTES + 8,
		.ethertype = FRAME_ETHERTYPE,
		.mode = 0666,
		.group = (gid_t)-1,
		.attest = attest_and_go_on,
		.farewell = farewell};

	need(geteuid() == 0, "this process's user (root)");
	need(settings_load() == 0 && glue_start() == 0, "this process's settings");
	glue_thread_enter();
	snprintf(name, sizeof(name), "bench-%ld", (long)getpid());
	options.port = loop_open("switch", 0);
	need(options.port != NULL, "the loop");
	the_switch = switch_open(&options);
	need(the_switch != NULL, "the switch");
}

static void switch_end(void)
{
	char path[96];

	rte_pktmbuf_free(frame);
	sender->operations->close(sender);
	receiver->operations->close(receiver);
	switch_close(the_switch);
	snprintf(path, sizeof(path), CLIENT_DIRECTORY "/%s/lock", name);
	(void)unlink(path);
	*strrchr(path, '/') = 0;
	(void)rmdir(path);
}

int main(int count, char **words)
{
	static const unsigned idle[] = {0, 63, 250, 1000};
	unsigned frames = count > 1 ? (unsigned)strtoul(words[1], NULL, 10) : FRAMES, there = 0;
	struct rlimit files;
	double alone = 0;

	need(frames > 0, "the number of frames");
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	switch_begin();
	printf("idle processes  ns a frame  to none\n");
	for (unsigned n = 0; n < RTE_DIM(idle); n++) {
		double time;

		processes_come(&there, idle[n]);
		if (!frame)
			frame = frame_put();
		time = frame_time(frames);
		alone = n == 0 ? time : alone;
		printf("%14u  %10.0f  %7.2f\n", idle[n], time, time / alone);
	}
	switch_end();
	return 0;
}
