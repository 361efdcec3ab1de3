/* SPDX-License-Identifier: BSD-3-Clause */
/* test_eal.c - tests of pmd-glue/eal.c. EAL starts once in a process: each case has a child, forked
 * before it.
 *
 * Covers: pmd-glue/eal.c, pmd-glue/descriptors.c.
 */
#include "../nap.h"
#include "glue_fixture.h"

#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_lcore.h>

#include <pmd-glue/eal.h>
#include <pmd-glue/directory.h>
#include <pmd-glue/pool.h>

#include "rendezvous_rig.h"

#define HANGS_AFTER 6000 /* looks, one every 10 ms */

/* Runs a case in a child; its result is what the case returns. A child that hangs while EAL starts
 * has its signals blocked. */
static int apart(int (*run)(void))
{
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(run());
	assert_true(child > 0);
	for (unsigned n = 0; waitpid(child, &status, WNOHANG) == 0; n++) {
		if (n == HANGS_AFTER)
			kill(child, SIGKILL);
		usleep(10000);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                    \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static int start(void)
{
	return settings_load() == 0 && glue_start() == 0 && eal_need() == 0 ? 0 : -1;
}

static void handler(int signal)
{
	(void)signal;
}

static int case_leaves_no_trace(void)
{
	cpu_set_t before, after;
	sigset_t mask, mask_after;
	struct sigaction action = {.sa_handler = handler}, handlers[32], found;
	char *locale;

	CPU_ZERO(&before);
	CPU_ZERO(&after);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	CHECK(pthread_sigmask(SIG_SETMASK, &mask, NULL) == 0);
	CHECK(sigaction(SIGBUS, &action, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
	CHECK(sched_getaffinity(0, sizeof(before), &before) == 0);
	for (int signal = 1; signal < 32; signal++)
		CHECK(sigaction(signal, NULL, &handlers[signal]) == 0);
	locale = strdup(setlocale(LC_ALL, NULL));
	CHECK(start() == 0);
	CHECK(sched_getaffinity(0, sizeof(after), &after) == 0 && CPU_EQUAL(&before, &after));
	CHECK(pthread_sigmask(SIG_SETMASK, NULL, &mask_after) == 0);
	for (int signal = 1; signal < 32; signal++) {
		CHECK(sigismember(&mask, signal) == sigismember(&mask_after, signal));
		CHECK(sigaction(signal, NULL, &found) == 0);
		CHECK(found.sa_handler == handlers[signal].sa_handler);
	}
	CHECK(strcmp(locale, setlocale(LC_ALL, NULL)) == 0);
	free(locale);
	return 0;
}

/* Starts with standard output in a file; gives the file's size at the end. */
static long start_hearing_output(int *result)
{
	char name[] = "/tmp/postern-test-XXXXXX";
	int fd = mkstemp(name);
	struct stat status;

	unlink(name);
	dup2(fd, STDOUT_FILENO);
	*result = start();
	fflush(NULL);
	return fstat(fd, &status) == 0 ? (long)status.st_size : -1;
}

static int case_is_silent(void)
{
	int result;

	CHECK(start_hearing_output(&result) == 0);
	CHECK(result == 0);
	return 0;
}

static int case_refuses_bad_arguments(void)
{
	int result;

	setenv("PTL_EAL_ARGS", "--no-such-thing", 1);
	CHECK(start_hearing_output(&result) == 0);
	CHECK(result != 0);
	CHECK(strstr(log_last_error(), "PTL_EAL_ARGS"));
	/* EAL is not to be tried again. */
	setenv("PTL_EAL_ARGS", "", 1);
	CHECK(start() != 0);
	return 0;
}

static int case_refuses_open_quotes(void)
{
	setenv("PTL_EAL_ARGS", "-m '64", 1);
	CHECK(start() != 0);
	CHECK(strstr(log_last_error(), "quote"));
	setenv("PTL_EAL_ARGS", "-m '64'", 1);
	CHECK(start() == 0);
	return 0;
}

static int case_starts_once(void)
{
	CHECK(!glue_started());
	CHECK(settings_load() == 0 && glue_start() == 0);
	CHECK(glue_started() && !eal_started());
	CHECK(glue_start() == 0);
	CHECK(!eal_started());
	CHECK(eal_need() == 0);
	CHECK(eal_started());
	CHECK(glue_start() == 0 && eal_need() == 0);
	return 0;
}

/* Is a driver of DPDK's among what the process has mapped? */
static bool driver_is_loaded(void)
{
	char line[512];
	bool loaded = false;
	FILE *maps = fopen("/proc/self/maps", "r");

	while (maps && fgets(line, sizeof(line), maps))
		loaded |= strstr(line, "librte_net_") || strstr(line, "librte_mempool_ring");
	if (maps)
		fclose(maps);
	return loaded;
}

/* A frame of each port goes nowhere, and its buffer comes back. */
static int send_and_receive(struct port *port)
{
	struct rte_mbuf *frame = rte_pktmbuf_alloc(port->pool);

	CHECK(frame && rte_pktmbuf_append(frame, 100));
	memset(rte_pktmbuf_mtod(frame, void *), 0, 100);
	CHECK(port_transmit(port, &frame, 1) == 1);
	CHECK(port_receive(port, &frame, 1) == 0 || frame->pkt_len > 0);
	return 0;
}

/* EAL starts for the first device that needs it, beside a port and a thread that did not. */
static int case_starts_for_a_device(void)
{
	struct port *loop, *device;

	CHECK(settings_load() == 0 && glue_start() == 0);
	glue_thread_enter();
	CHECK(rte_lcore_id() != LCORE_ID_ANY);
	loop = glue_port_open(0, "loop:a", 0, GLUE_PID_ANY);
	CHECK(loop && send_and_receive(loop) == 0);
	CHECK(!eal_started() && !driver_is_loaded());
	device = glue_port_open(1, "net_null0", 0, GLUE_PID_ANY);
	CHECK(device && eal_started() && driver_is_loaded());
	CHECK(send_and_receive(device) == 0);
	CHECK(send_and_receive(loop) == 0);
	port_close(loop);
	port_close(device);
	/* A pool that is made only now has a cache for this thread, too, when it is used much. */
	loop = glue_port_open(0, "loop:b", 1000, GLUE_PID_ANY);
	CHECK(loop);
	for (unsigned n = 0; n <= POOL_CACHE; n++)
		CHECK(send_and_receive(loop) == 0);
	CHECK(loop->pool->local_cache[rte_lcore_id()].size > 0);
	port_close(loop);
	return 0;
}

/* DPDK's interrupt thread makes itself a new one whenever there is something new to wait for. */
static bool descriptor_is_fleeting(int fd)
{
	char name[32], target[64];
	ssize_t length;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	length = readlink(name, target, sizeof(target) - 1);
	target[length < 0 ? 0 : length] = 0;
	return strcmp(target, "anon_inode:[eventpoll]") == 0;
}

static int case_closes_on_exec(void)
{
	struct port *node;
	char name[32], device[40];
	bool before[1024];

	snprintf(name, sizeof(name), "exec-%d", (int)getpid());
	snprintf(device, sizeof(device), "node:%s", name);
	for (int fd = 0; fd < 1024; fd++)
		before[fd] = fcntl(fd, F_GETFD) >= 0;
	CHECK(start() == 0);
	node = glue_port_open(0, device, 0, GLUE_PID_ANY);
	CHECK(node != NULL);
	CHECK(glue_port_open(1, "net_null0", 0, GLUE_PID_ANY) != NULL);
	for (int fd = STDERR_FILENO + 1; fd < 1024; fd++) {
		int flags = fcntl(fd, F_GETFD);
		CHECK(before[fd] || flags < 0 || (flags & FD_CLOEXEC) ||
			descriptor_is_fleeting(fd));
	}
	node->operations->close(node);
	directory_remove(name);
	return 0;
}

static atomic_bool started;

static unsigned descriptors_open(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* One of each kind, none of which is to be closed by exec(). Returns how many. */
static int descriptors_make(int *fds)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	fds[0] = eventfd(0, 0);
	fds[1] = timerfd_create(CLOCK_MONOTONIC, 0);
	fds[2] = epoll_create1(0);
	fds[3] = memfd_create("mine", 0);
	fds[4] = socket(AF_UNIX, SOCK_STREAM, 0);
	fds[5] = socket(AF_INET, SOCK_DGRAM, 0);
	(void)bind(fds[4], (struct sockaddr *)&address, sizeof(sa_family_t));
	if (pipe(fds + 6) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, fds + 8) != 0)
		return 0;
	(void)epoll_ctl(fds[2], EPOLL_CTL_ADD, fds[6], &(struct epoll_event){.events = EPOLLIN});
	(void)epoll_ctl(fds[2], EPOLL_CTL_ADD, fds[1], &(struct epoll_event){.events = EPOLLIN});
	return 10;
}

/* Opens them when DPDK has begun to. */
static void *open_meanwhile(void *fds)
{
	unsigned before = descriptors_open();

	atomic_store(&started, true);
	while (descriptors_open() == before)
		nap();
	return (void *)(intptr_t)descriptors_make(fds);
}

static int case_spares_others_descriptors(void)
{
	pthread_t thread;
	void *count;
	int fds[10];

	CHECK(pthread_create(&thread, NULL, open_meanwhile, fds) == 0);
	while (!atomic_load(&started))
		nap();
	CHECK(start() == 0);
	CHECK(pthread_join(thread, &count) == 0);
	CHECK((intptr_t)count == 10);
	for (int n = 0; n < 10; n++)
		CHECK((fcntl(fds[n], F_GETFD) & FD_CLOEXEC) == 0);
	return 0;
}

static int case_says_what_is_wrong_without_sys(void)
{
	int result;

	/* Users other than root may do so in a user namespace, where there are any. */
	if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
		return 0;
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		mount("none", "/sys", "tmpfs", 0, NULL) != 0)
		return 0;
	CHECK(start_hearing_output(&result) == 0);
	CHECK(result != 0);
	CHECK(strstr(log_last_error(), "mount -t sysfs"));
	return 0;
}

/* Prints all the time that DPDK starts. */
static void *print_meanwhile(void *lines)
{
	while (!atomic_load(&started))
		*(long *)lines += printf("a line\n") > 0;
	return NULL;
}

static int case_loses_no_output_of_others(void)
{
	char name[] = "/tmp/postern-test-XXXXXX";
	int fd = mkstemp(name);
	long lines = 0;
	pthread_t thread;
	struct stat status;

	unlink(name);
	dup2(fd, STDOUT_FILENO);
	setenv("PTL_EAL_ARGS", "--no-such-thing", 1);
	CHECK(pthread_create(&thread, NULL, print_meanwhile, &lines) == 0);
	CHECK(start() != 0);
	atomic_store(&started, true);
	CHECK(pthread_join(thread, NULL) == 0);
	fflush(NULL);
	CHECK(fstat(fd, &status) == 0);
	CHECK((long)status.st_size == lines * (long)strlen("a line\n"));
	return 0;
}

static int case_in_child(void)
{
	CHECK(!eal_started());
	CHECK(glue_start() != 0);
	CHECK(strstr(log_last_error(), "forked"));
	CHECK(glue_port_open(0, "", 0, GLUE_PID_ANY) == NULL);
	CHECK(!glue_hugepages());
	glue_thread_enter();
	return 0;
}

static int case_refuses_children(void)
{
	int status;
	pid_t child;

	CHECK(start() == 0);
	child = fork();
	if (child == 0)
		_exit(case_in_child());
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return 0;
}

static int case_goes_on_with_anothers_eal(void)
{
	static char words[][20] = {
		"program", "--no-huge", "--no-pci", "--no-shconf", "-m", "64", "--log-level=error"};
	char *arguments[7];
	struct port *port;

	for (int n = 0; n < 7; n++)
		arguments[n] = words[n];
	CHECK(rte_eal_init(7, arguments) >= 0);
	CHECK(start() == 0);
	port = glue_port_open(0, "", 0, GLUE_PID_ANY);
	CHECK(port != NULL);
	port_close(port);
	return 0;
}

static void *start_in_thread(void *result)
{
	*(int *)result = start();
	return NULL;
}

static int case_starts_in_any_thread(void)
{
	pthread_t thread;
	int result = -1;

	CHECK(pthread_create(&thread, NULL, start_in_thread, &result) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(result == 0);
	CHECK(glue_port_open(0, "", 0, GLUE_PID_ANY) != NULL);
	return 0;
}

static int case_runs_on_one_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		cpu_set_t all;
		CHECK(sched_getaffinity(0, sizeof(all), &all) == 0);
		if (CPU_ISSET((size_t)cpu, &all))
			CPU_SET((size_t)cpu, &one);
		if (CPU_COUNT(&one) == 1)
			break;
	}
	CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
	CHECK(start() == 0);
	return 0;
}

static void glue_start__leaves_affinity_signals_and_locale_alone(void **state)
{
	(void)state;
	assert_int_equal(apart(case_leaves_no_trace), 0);
}

static void glue_start__prints_nothing_on_standard_output(void **state)
{
	(void)state;
	assert_int_equal(apart(case_is_silent), 0);
}

static void glue_start__prints_nothing_but_what_is_wrong_without_sys(void **state)
{
	(void)state;
	assert_int_equal(apart(case_says_what_is_wrong_without_sys), 0);
}

static void glue_start__loses_nothing_that_others_print(void **state)
{
	(void)state;
	assert_int_equal(apart(case_loses_no_output_of_others), 0);
}

static void glue_start__leaves_descriptors_of_other_threads_alone(void **state)
{
	(void)state;
	assert_int_equal(apart(case_spares_others_descriptors), 0);
}

static void glue_start__refuses_bad_arguments_in_a_sentence(void **state)
{
	(void)state;
	assert_int_equal(apart(case_refuses_bad_arguments), 0);
	assert_int_equal(apart(case_refuses_open_quotes), 0);
}

static void glue_start__may_be_called_again(void **state)
{
	(void)state;
	assert_int_equal(apart(case_starts_once), 0);
}

static void eal_need__is_called_by_the_first_device_of_dpdks(void **state)
{
	(void)state;
	assert_int_equal(apart(case_starts_for_a_device), 0);
}

static void glue_start__leaves_no_descriptors_to_other_programs(void **state)
{
	(void)state;
	assert_int_equal(apart(case_closes_on_exec), 0);
}

static void glue_start__refuses_a_forked_child(void **state)
{
	(void)state;
	assert_int_equal(apart(case_refuses_children), 0);
}

static void glue_start__goes_on_with_an_eal_that_runs(void **state)
{
	(void)state;
	assert_int_equal(apart(case_goes_on_with_anothers_eal), 0);
}

static void glue_start__works_in_any_thread_and_on_one_cpu(void **state)
{
	(void)state;
	assert_int_equal(apart(case_starts_in_any_thread), 0);
	assert_int_equal(apart(case_runs_on_one_cpu), 0);
}

/* A device reads and writes at the I/O addresses that buffers have. */
static int buffers_have_true_addresses(void)
{
	struct rte_mempool *pool;
	struct rte_mbuf *buffer;
	unsigned count = 0;

	CHECK(start() == 0);
	pool = mempool_take("test", 1514, 1024, SOCKET_ID_ANY, false);
	CHECK(pool);
	while ((buffer = rte_pktmbuf_alloc(pool))) {
		CHECK(buffer->buf_iova != RTE_BAD_IOVA);
		CHECK(buffer->buf_iova == rte_mem_virt2iova(buffer->buf_addr));
		CHECK(rte_mempool_virt2iova(buffer) == rte_mem_virt2iova(buffer));
		count++;
	}
	CHECK(count == pool->size);
	return 0;
}

static int buffers_of_virtual_addresses(void)
{
	setenv("PTL_EAL_ARGS", "--iova-mode=va", 1);
	CHECK(buffers_have_true_addresses() == 0);
	CHECK(rte_eal_iova_mode() == RTE_IOVA_VA);
	return 0;
}

/* Without hugepages EAL has virtual addresses all the same. */
static int buffers_of_physical_addresses(void)
{
	setenv("PTL_EAL_ARGS", "--iova-mode=pa", 1);
	CHECK(buffers_have_true_addresses() == 0);
	return 0;
}

static void mempool_take__gives_buffers_with_true_io_addresses(void **state)
{
	(void)state;
	assert_int_equal(apart(buffers_of_virtual_addresses), 0);
	assert_int_equal(apart(buffers_of_physical_addresses), 0);
}

static int case_runtime_directory(void)
{
	char directory[64];

	CHECK(setenv("XDG_RUNTIME_DIR", "/run/user/77", 1) == 0);
	if (getuid() == 0) {
		eal_runtime_directory(directory, sizeof(directory));
		CHECK(strcmp(directory, "/var/run/dpdk") == 0);
		CHECK(setuid(NOBODY) == 0);
	}
	eal_runtime_directory(directory, sizeof(directory));
	CHECK(strcmp(directory, "/run/user/77/dpdk") == 0);
	CHECK(unsetenv("XDG_RUNTIME_DIR") == 0);
	eal_runtime_directory(directory, sizeof(directory));
	CHECK(strcmp(directory, "/tmp/dpdk") == 0);
	return 0;
}

/* --- beside a stopped process */

#define ROOM 1u /* connections that DPDK's sockets keep, and one more */

/* A process of the same user is stopped, and its socket has room for so many more connections. */
static int case_starts_beside_a_stopped_one(unsigned room)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	char path[80];

	CHECK(getuid() != 0 || (chown(runtime, NOBODY, NOBODY) == 0 && setgid(NOBODY) == 0 &&
				       setuid(NOBODY) == 0));
	snprintf(path, sizeof(path), "%s/dpdk", runtime);
	CHECK(mkdir(path, 0700) == 0);
	snprintf(path, sizeof(path), "%s/dpdk/postern", runtime);
	CHECK(mkdir(path, 0700) == 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/dpdk_telemetry.v2", path);
	CHECK(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0);
	CHECK(listen(listener, ROOM) == 0);
	for (unsigned n = 0; n < ROOM + 1 - room; n++)
		CHECK(connect(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0),
			      (struct sockaddr *)&address, sizeof(address)) == 0);
	CHECK(start() == 0);
	CHECK(eal_started());
	return 0;
}

static int case_starts_beside_a_full_socket(void)
{
	return case_starts_beside_a_stopped_one(0);
}

/* The look of this process itself takes the last place. */
static int case_starts_beside_an_almost_full_socket(void)
{
	return case_starts_beside_a_stopped_one(1);
}

static void eal_need__waits_for_no_full_socket(void **state)
{
	(void)state;
	assert_int_equal(apart(case_starts_beside_a_full_socket), 0);
}

static void eal_need__waits_for_no_almost_full_socket(void **state)
{
	(void)state;
	assert_int_equal(apart(case_starts_beside_an_almost_full_socket), 0);
}

/* As DPDK has it. */
static void eal_runtime_directory__is_the_user_s(void **state)
{
	(void)state;
	assert_int_equal(apart(case_runtime_directory), 0);
}

static void eal_split__reads_words_as_a_shell_does(void **state)
{
	static const char text[] = "  -m 64 'a b'\"c\\\"d\" e\\ f '' \t";
	char storage[sizeof(text)];
	char *words[8];

	(void)state;
	assert_int_equal(eal_split(text, storage, words, 8), 5);
	assert_string_equal(words[0], "-m");
	assert_string_equal(words[1], "64");
	assert_string_equal(words[2], "a bc\"d");
	assert_string_equal(words[3], "e f");
	assert_string_equal(words[4], "");
	assert_int_equal(eal_split("", storage, words, 8), 0);
	assert_int_equal(eal_split("'a", storage, words, 8), -1);
	assert_int_equal(eal_split("a b c", storage, words, 2), -1);
}

static void eal_is_pci__knows_an_address_when_it_sees_one(void **state)
{
	(void)state;
	assert_true(eal_is_pci("0000:03:00.0"));
	assert_true(eal_is_pci("3:0.1"));
	assert_true(eal_is_pci("03:1f.7"));
	assert_false(eal_is_pci(""));
	assert_false(eal_is_pci("eth0"));
	assert_false(eal_is_pci("0000:03:00"));
	assert_false(eal_is_pci("0000:03:00.0x"));
	assert_false(eal_is_pci("net_null0"));
	assert_false(eal_is_pci("loop:03:00.0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(glue_start__leaves_affinity_signals_and_locale_alone),
		cmocka_unit_test(glue_start__prints_nothing_on_standard_output),
		cmocka_unit_test(glue_start__prints_nothing_but_what_is_wrong_without_sys),
		cmocka_unit_test(glue_start__loses_nothing_that_others_print),
		cmocka_unit_test(glue_start__leaves_descriptors_of_other_threads_alone),
		cmocka_unit_test(glue_start__refuses_bad_arguments_in_a_sentence),
		cmocka_unit_test(glue_start__may_be_called_again),
		cmocka_unit_test(eal_need__is_called_by_the_first_device_of_dpdks),
		cmocka_unit_test(glue_start__leaves_no_descriptors_to_other_programs),
		cmocka_unit_test(glue_start__refuses_a_forked_child),
		cmocka_unit_test(glue_start__goes_on_with_an_eal_that_runs),
		cmocka_unit_test(glue_start__works_in_any_thread_and_on_one_cpu),
		cmocka_unit_test(mempool_take__gives_buffers_with_true_io_addresses),
		CASE(eal_need__waits_for_no_full_socket),
		CASE(eal_need__waits_for_no_almost_full_socket),
		cmocka_unit_test(eal_runtime_directory__is_the_user_s),
		cmocka_unit_test(eal_split__reads_words_as_a_shell_does),
		cmocka_unit_test(eal_is_pci__knows_an_address_when_it_sees_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
