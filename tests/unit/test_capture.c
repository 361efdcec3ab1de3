/* SPDX-License-Identifier: BSD-3-Clause */
/* test_capture.c - tests of pmd-glue/capture.c and recorder.c: ports that are captured, the file
 * read block by block.
 *
 * Covers: pmd-glue/capture.c, pmd-glue/recorder.c.
 */
#include "../nap.h"
#include "glue_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pmd-glue/capture.h>
#include <pmd-glue/kinds.h>
#include <pmd-glue/pcapng.h>
#include <pmd-glue/recorder.h>

#define BLOCK_SECTION    0x0a0d0d0au
#define BLOCK_INTERFACE  1u
#define BLOCK_STATISTICS 5u
#define BLOCK_PACKET     6u
#define BLOCKS           4096
#define FILE_BYTES       (8u << 20)
#define FRAME            100u

struct block {
	uint32_t type;
	uint32_t interface;
	uint32_t captured;
	uint32_t length;
	uint32_t direction;
	uint64_t time;
	const uint8_t *data; /* of a packet */
	uint64_t received;   /* of statistics */
	uint64_t dropped;
};

static char directory[] = "/tmp/ptn-capture-XXXXXX";
static char path[128];
static struct port *left, *right;
static uint8_t file[FILE_BYTES];
static struct block blocks[BLOCKS];

static uint32_t word(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* The bytes of an option's value; all that this test looks for are eight or four. */
static uint64_t option(const uint8_t *at, const uint8_t *end, uint16_t wanted)
{
	while (at + 4 <= end) {
		uint16_t code = (uint16_t)word(at), length = (uint16_t)(word(at) >> 16);
		uint64_t value = 0;

		if (code == wanted) {
			memcpy(&value, at + 4, length);
			return value;
		}
		at += 4 + (length + 3u) / 4 * 4;
	}
	fail_msg("option %u is missing", wanted);
	return 0;
}

/* Reads a file, which must be whole blocks that begin with a section; returns their number. */
static unsigned blocks_read(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t bytes = read(fd, file, sizeof(file));
	unsigned count = 0;

	close(fd);
	assert_in_range(bytes, 28, sizeof(file) - 1);
	for (const uint8_t *at = file; at < file + bytes; at += word(at + 4), count++) {
		const uint8_t *end = at + word(at + 4);
		struct block *block = &blocks[count];

		assert_in_range(count, 0, BLOCKS - 1);
		assert_true(end <= file + bytes);
		assert_int_equal(word(end - 4), word(at + 4));
		*block = (struct block){.type = word(at), .interface = word(at + 8)};
		if (block->type == BLOCK_PACKET) {
			block->time = (uint64_t)word(at + 12) << 32 | word(at + 16);
			block->captured = word(at + 20);
			block->length = word(at + 24);
			block->data = at + PCAPNG_PACKET_HEAD;
			block->direction = (uint32_t)option(
				block->data + (block->captured + 3) / 4 * 4, end, 2);
		} else if (block->type == BLOCK_STATISTICS) {
			block->received = option(at + 20, end, 4);
			block->dropped = option(at + 20, end, 5);
		}
	}
	assert_int_equal(blocks[0].type, BLOCK_SECTION);
	return count;
}

static unsigned blocks_of(unsigned count, uint32_t type)
{
	unsigned found = 0;

	for (unsigned n = 0; n < count; n++)
		found += blocks[n].type == type;
	return found;
}

static struct capture *capture_on(struct port *port, unsigned interface, const char *name)
{
	struct capture *capture = capture_start(port, interface, name, 0);

	assert_non_null(capture);
	capture_attach(capture);
	return capture;
}

static void capture_off(struct capture *capture)
{
	capture_detach(capture);
	capture_finish(capture);
}

/* Sends a frame from left to right. */
static void pass(uint8_t fill)
{
	struct rte_mbuf *frame;

	port_send(left, frame_make(left, right->address, FRAME, fill));
	frame = port_take(right);
	assert_true(frame_is(frame, FRAME, fill));
	rte_pktmbuf_free(frame);
}

static void capture__has_every_frame_with_its_direction_and_time(void **state)
{
	struct capture *capture = capture_on(left, 0, path);
	uint64_t before = recorder_time();
	struct rte_mbuf *frame;
	unsigned count;

	(void)state;
	pass(1);
	pass(2);
	port_send(right, frame_make(right, left->address, 77, 3));
	frame = port_take(left);
	rte_pktmbuf_free(frame);
	assert_int_equal(port_count(left).captured, 3);
	assert_int_equal(port_count(left).uncaptured, 0);
	capture_off(capture);

	count = blocks_read(path);
	assert_int_equal(count, 6);
	assert_int_equal(blocks[1].type, BLOCK_INTERFACE);
	assert_int_equal(blocks[2].length, FRAME);
	assert_int_equal(blocks[2].captured, FRAME);
	assert_int_equal(blocks[2].data[FRAME - 1], 1);
	assert_memory_equal(blocks[2].data, right->address, 6);
	assert_int_equal(blocks[2].direction, PCAPNG_OUTBOUND);
	assert_int_equal(blocks[3].data[FRAME - 1], 2);
	assert_int_equal(blocks[4].direction, PCAPNG_INBOUND);
	assert_int_equal(blocks[4].length, 77);
	assert_true(blocks[2].time >= before && blocks[2].time <= blocks[3].time);
	assert_true(blocks[4].time <= recorder_time());
	assert_int_equal(blocks[5].type, BLOCK_STATISTICS);
	assert_int_equal(blocks[5].received, 3);
	assert_int_equal(blocks[5].dropped, 0);
}

static void capture__leaves_a_port_as_it_was(void **state)
{
	const struct port_operations *before = left->operations;
	struct capture *capture = capture_on(left, 0, path);

	(void)state;
	assert_ptr_not_equal(left->operations, before);
	assert_true(left->operations->link(left));
	assert_ptr_equal(capture_find(left), capture);
	capture_off(capture);
	assert_ptr_equal(left->operations, before);
	assert_null(capture_find(left));
	assert_int_equal(port_count(left).captured, 0);
	pass(1);
	assert_int_equal(blocks_of(blocks_read(path), BLOCK_PACKET), 0);
}

static void capture__keeps_as_much_of_a_frame_as_asked(void **state)
{
	struct capture *capture = capture_start(left, 0, path, 33);

	(void)state;
	capture_attach(capture);
	pass(1);
	capture_off(capture);
	assert_int_equal(blocks_read(path), 4);
	assert_int_equal(blocks[2].captured, 33);
	assert_int_equal(blocks[2].length, FRAME);
}

/* Takes what it is told to. */
static uint16_t stingy_takes;
static struct port_operations stingy_operations;

static uint16_t stingy_transmit(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	(void)port;
	count = count < stingy_takes ? count : stingy_takes;
	rte_pktmbuf_free_bulk(frames, count);
	return count;
}

static void capture__has_only_frames_that_the_port_took(void **state)
{
	const struct port_operations *before = left->operations;
	struct rte_mbuf *frames[3];
	struct capture *capture;

	(void)state;
	stingy_operations = *before;
	stingy_operations.transmit = stingy_transmit;
	left->operations = &stingy_operations;
	capture = capture_on(left, 0, path);
	for (uint8_t n = 0; n < 3; n++)
		frames[n] = frame_make(left, right->address, FRAME, n);
	stingy_takes = 0;
	assert_int_equal(port_transmit(left, frames, 3), 0);
	stingy_takes = 2;
	assert_int_equal(port_transmit(left, frames, 3), 2);
	assert_int_equal(port_transmit(left, frames + 2, 1), 1);
	capture_off(capture);
	left->operations = before;
	assert_int_equal(blocks_read(path), 6);
	for (uint8_t n = 0; n < 3; n++)
		assert_int_equal(blocks[2 + n].data[14], n);
	assert_int_equal(blocks[5].received, 3);
}

static void capture__has_frames_of_several_pieces_whole(void **state)
{
	struct rte_mbuf *first = frame_make(left, right->address, 20, 1);
	struct rte_mbuf *second = frame_make(left, right->address, 50, 0);
	struct capture *capture = capture_on(left, 0, path);

	(void)state;
	memset(rte_pktmbuf_mtod(second, void *), 9, 50);
	assert_int_equal(rte_pktmbuf_chain(first, second), 0);
	port_send(left, first);
	rte_pktmbuf_free(port_take(right));
	capture_off(capture);
	blocks_read(path);
	assert_int_equal(blocks[2].captured, 70);
	assert_int_equal(blocks[2].data[19], 1);
	assert_int_equal(blocks[2].data[20], 9);
	assert_int_equal(blocks[2].data[69], 9);
}

static void capture__of_two_ports_goes_into_one_file_each_in_order(void **state)
{
	struct capture *first = capture_on(left, 0, path);
	struct capture *second = capture_on(right, 1, path);
	unsigned count;

	(void)state;
	for (unsigned n = 0; n < 500; n++)
		pass((uint8_t)n);
	capture_off(first);
	pass(0); /* the other one goes on */
	capture_off(second);
	count = blocks_read(path);
	assert_int_equal(blocks_of(count, BLOCK_SECTION), 1);
	assert_int_equal(blocks_of(count, BLOCK_INTERFACE), 2);
	assert_int_equal(blocks_of(count, BLOCK_PACKET), 1001);
	assert_int_equal(blocks_of(count, BLOCK_STATISTICS), 2);
	for (unsigned n = 0, next[2] = {0, 0}; n < count; n++) {
		const struct block *block = &blocks[n];

		if (block->type != BLOCK_PACKET || next[block->interface] == 500)
			continue;
		assert_int_equal(
			block->direction, block->interface == 1 ? PCAPNG_INBOUND : PCAPNG_OUTBOUND);
		assert_int_equal(block->data[FRAME - 1], (uint8_t)next[block->interface]++);
	}
}

static void capture__counts_what_the_tape_has_no_room_for(void **state)
{
	char fifo[160];
	struct capture *capture;
	uint64_t sent = 0;

	(void)state;
	snprintf(fifo, sizeof(fifo), "%s/slow", directory);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	capture = capture_on(left, 0, fifo); /* nobody reads it */
	while (port_count(left).uncaptured < 10 && sent < 1000000) {
		struct rte_mbuf *frame = frame_make(left, right->address, 9000, 1);

		port_send(left, frame);
		rte_pktmbuf_free(port_take(right));
		sent++;
	}
	assert_int_equal(port_count(left).uncaptured, 10);
	assert_int_equal(port_count(left).captured, sent - 10);
	capture_off(capture); /* does not wait for a reader */
	unlink(fifo);
}

static void capture__goes_to_standard_output(void **state)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), output = dup(1);
	struct capture *capture;

	(void)state;
	fflush(stdout);
	assert_int_equal(dup2(fd, 1), 1);
	capture = capture_start(left, 0, "-", 0);
	assert_int_equal(dup2(output, 1), 1);
	close(output);
	close(fd);
	assert_non_null(capture);
	capture_attach(capture);
	pass(1);
	capture_off(capture);
	assert_int_equal(blocks_of(blocks_read(path), BLOCK_PACKET), 1);
}

static void *fifo_read(void *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	int out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ssize_t bytes;

	while ((bytes = read(fd, file, sizeof(file))) > 0)
		assert_int_equal(write(out, file, (size_t)bytes), bytes);
	close(out);
	close(fd);
	return NULL;
}

static void capture__goes_through_a_fifo(void **state)
{
	char fifo[160];
	struct capture *capture;
	pthread_t reader;
	unsigned count;

	(void)state;
	snprintf(fifo, sizeof(fifo), "%s/fifo", directory);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	unlink(path);
	capture = capture_on(left, 0, fifo);
	for (unsigned n = 0; n < 2000; n++)
		pass(1);
	assert_int_equal(pthread_create(&reader, NULL, fifo_read, fifo), 0);
	/* Frames sent before the reader came are there as well. The reader makes its file once both
	 * have opened the FIFO. */
	for (unsigned n = 0; n < 2000; n++)
		pass(2);
	while (access(path, F_OK) != 0)
		nap();
	capture_off(capture);
	pthread_join(reader, NULL);
	count = blocks_read(path);
	assert_int_equal(blocks_of(count, BLOCK_PACKET), 4000);
	unlink(fifo);
}

/* Text that is written to standard error between these two calls is in `file`. */
static int heard_instead = -1;

static void hear_begin(void)
{
	char name[160];
	int fd;

	snprintf(name, sizeof(name), "%s/said", directory);
	fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	unlink(name);
	heard_instead = dup(STDERR_FILENO);
	assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	close(fd);
}

static void hear_end(void)
{
	ssize_t bytes = pread(STDERR_FILENO, file, sizeof(file) - 1, 0);

	dup2(heard_instead, STDERR_FILENO);
	close(heard_instead);
	assert_true(bytes >= 0);
	file[bytes] = 0;
}

/* Captures to what will fail, until it has, and sees that frames pass as before. */
static void expect_end(const char *name, const char *reason)
{
	uint64_t end = glue_now(NULL) + TIMEOUT;
	struct capture *capture;

	hear_begin();
	capture = capture_on(left, 0, name);
	while (!capture_ended(capture)) {
		assert_true(glue_now(NULL) < end);
		pass(1);
	}
	pass(2);
	capture_off(capture);
	pass(3);
	hear_end();
	assert_non_null(strstr((const char *)file, "has ended and the program goes on"));
	assert_non_null(strstr((const char *)file, reason));
	assert_ptr_equal(strchr((const char *)file, '\n'), strrchr((const char *)file, '\n'));
}

static void capture__ends_on_a_full_disk_and_nothing_else_does(void **state)
{
	(void)state;
	expect_end("/dev/full", "No space left on device: remove files from that file system");
}

static void capture__ends_at_the_limit_of_file_sizes_with_a_file_that_can_be_read(void **state)
{
	struct rlimit before, limit = {.rlim_cur = 100001, .rlim_max = RLIM_INFINITY};
	struct stat status;

	(void)state;
	getrlimit(RLIMIT_FSIZE, &before);
	limit.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	expect_end(path, "File too large"); /* SIGXFSZ would have ended this test */
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(stat(path, &status), 0);
	assert_in_range(status.st_size, 90000, 100000);
	blocks_read(path);
}

static void capture__ends_when_the_reader_of_a_pipe_goes(void **state)
{
	char fifo[160];
	uint64_t end = glue_now(NULL) + TIMEOUT;
	struct capture *capture;
	int fd;

	(void)state;
	snprintf(fifo, sizeof(fifo), "%s/gone", directory);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	capture = capture_on(left, 0, fifo);
	close(fd);
	while (!capture_ended(capture)) { /* SIGPIPE would have ended this test */
		assert_true(glue_now(NULL) < end);
		pass(1);
		/* Whoever opens it as reader only now finds the writer, or makes it begin. */
		fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		close(fd);
	}
	capture_off(capture);
	unlink(fifo);
}

static atomic_bool refusing; /* devices that are written to */
static atomic_uint refusals;

ssize_t __real_write(int fd, const void *bytes, size_t count);
ssize_t __wrap_write(int fd, const void *bytes, size_t count);

ssize_t __wrap_write(int fd, const void *bytes, size_t count)
{
	struct stat status;

	if (!atomic_load(&refusing) || fstat(fd, &status) != 0 || !S_ISCHR(status.st_mode))
		return __real_write(fd, bytes, count);
	atomic_fetch_add(&refusals, 1);
	errno = EAGAIN;
	return -1;
}

/* It calls itself writable all the time. */
static void capture__ends_on_a_device_that_takes_no_bytes(void **state)
{
	struct capture *capture = capture_on(left, 0, "/dev/null");

	(void)state;
	atomic_store(&refusing, true);
	pass(1);
	capture_off(capture); /* waits no longer than its timeout */
	atomic_store(&refusing, false);
	/* 50 in its timeout of a second; the rest is for what came before it. */
	assert_in_range(atomic_load(&refusals), 1, 10000);
}

static void capture_start__refuses_what_cannot_be_with_a_reason(void **state)
{
	struct capture *capture;
	char name[160];

	(void)state;
	log_clear_error();
	assert_null(capture_start(left, 0, "/nowhere/at/all", 0));
	assert_non_null(strstr(log_last_error(), "create its directory"));
	assert_null(capture_start(left, 0, directory, 0));
	assert_non_null(strstr(log_last_error(), "name of a file"));
	assert_null(capture_start(left, 0, "", 0));
	assert_non_null(strstr(log_last_error(), "missing"));
	memset(name, 'x', sizeof(name));
	capture = capture_on(left, 0, path);
	assert_null(capture_start(left, 0, path, 0));
	assert_non_null(strstr(log_last_error(), "is being captured"));
	capture_off(capture);
}

static void capture__to_a_file_that_failed_is_one_that_failed(void **state)
{
	uint64_t end = glue_now(NULL) + TIMEOUT;
	struct capture *first = capture_on(left, 0, "/dev/full"), *second;

	(void)state;
	while (!capture_ended(first))
		assert_true(glue_now(NULL) < end);
	log_clear_error();
	assert_null(capture_start(right, 1, "/dev/full", 0));
	assert_non_null(strstr(log_last_error(), "has failed"));
	/* A setting is for interfaces that open later as well: they go without. */
	fixture_set("PTL_CAPTURE", "/dev/full");
	assert_int_equal(capture_begin(right, 1), 0);
	fixture_set("PTL_CAPTURE", NULL);
	second = capture_find(right);
	assert_true(capture_ended(second));
	pass(1);
	capture_off(first);
	capture_off(second);
	first = capture_on(left, 0, path);
	capture_off(first);
}

static void capture_start__refuses_a_file_that_another_process_writes(void **state)
{
	struct capture *capture = capture_on(left, 0, path);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	struct capture *other;
	char name[160];

	(void)state;
	/* flock() locks belong to what open() made, so this is as good as another process. */
	snprintf(name, sizeof(name), "%s/theirs", directory);
	close(fd);
	fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	log_clear_error();
	assert_null(capture_start(right, 1, name, 0));
	assert_non_null(strstr(log_last_error(), "%p"));
	close(fd);
	other = capture_on(right, 1, name);
	capture_off(other);
	capture_off(capture);
	unlink(name);
}

static void capture_start__knows_the_process_and_the_interface(void **state)
{
	char pattern[160], name[160];

	(void)state;
	snprintf(pattern, sizeof(pattern), "%s/a%%p-%%i-%%%%-%%x", directory);
	snprintf(name, sizeof(name), "%s/a%ld-7-%%-%%x", directory, (long)getpid());
	capture_off(capture_on(left, 7, pattern));
	blocks_read(name);
	unlink(name);
}

static void capture_begin__does_what_the_settings_say_inside_the_faults(void **state)
{
	struct port *port;
	struct rte_mbuf *frame, *nothing;

	(void)state;
	fixture_set("PTL_CAPTURE", path);
	fixture_set("PTL_CAPTURE_SNAPLEN", "20");
	fixture_set("PTL_FAULT", "dup=1");
	port = glue_port_open(3, "loop:capture", 0, GLUE_PID_ANY);
	assert_non_null(port);
	assert_non_null(capture_find(port));
	frame = frame_make(port, right->address, FRAME, 5);
	port_send(port, frame);
	assert_int_equal(port_receive(port, &nothing, 1), 0);
	assert_int_equal(port_count(port).captured, 2);
	port_close(port);
	assert_int_equal(blocks_of(blocks_read(path), BLOCK_PACKET), 2);
	assert_int_equal(blocks[2].captured, 20);
	rte_pktmbuf_free(port_take(right));
	rte_pktmbuf_free(port_take(right));

	fixture_set("PTL_CAPTURE", ";;;");
	port = glue_port_open(3, "loop:capture", 0, GLUE_PID_ANY);
	assert_null(capture_find(port));
	port_close(port);
	fixture_set("PTL_CAPTURE", "/nowhere/at/all");
	assert_null(glue_port_open(3, "loop:capture", 0, GLUE_PID_ANY));
	fixture_set("PTL_CAPTURE", NULL);
	fixture_set("PTL_CAPTURE_SNAPLEN", NULL);
	fixture_set("PTL_FAULT", NULL);
}

static int capture_setup(void **state)
{
	if (fixture_start(state) != 0 || !mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/file", directory);
	left = loop_open("capture", 0);
	right = loop_open("capture", 0);
	return left && right ? 0 : -1;
}

static int capture_teardown(void **state)
{
	(void)state;
	port_close(left);
	port_close(right);
	unlink(path);
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(capture__has_every_frame_with_its_direction_and_time),
		cmocka_unit_test(capture__leaves_a_port_as_it_was),
		cmocka_unit_test(capture__keeps_as_much_of_a_frame_as_asked),
		cmocka_unit_test(capture__has_only_frames_that_the_port_took),
		cmocka_unit_test(capture__has_frames_of_several_pieces_whole),
		cmocka_unit_test(capture__of_two_ports_goes_into_one_file_each_in_order),
		cmocka_unit_test(capture__counts_what_the_tape_has_no_room_for),
		cmocka_unit_test(capture__goes_to_standard_output),
		cmocka_unit_test(capture__goes_through_a_fifo),
		cmocka_unit_test(capture__ends_on_a_full_disk_and_nothing_else_does),
		cmocka_unit_test(
			capture__ends_at_the_limit_of_file_sizes_with_a_file_that_can_be_read),
		cmocka_unit_test(capture__ends_when_the_reader_of_a_pipe_goes),
		cmocka_unit_test(capture__ends_on_a_device_that_takes_no_bytes),
		cmocka_unit_test(capture_start__refuses_what_cannot_be_with_a_reason),
		cmocka_unit_test(capture__to_a_file_that_failed_is_one_that_failed),
		cmocka_unit_test(capture_start__refuses_a_file_that_another_process_writes),
		cmocka_unit_test(capture_start__knows_the_process_and_the_interface),
		cmocka_unit_test(capture_begin__does_what_the_settings_say_inside_the_faults),
	};

	return cmocka_run_group_tests(tests, capture_setup, capture_teardown);
}
