/* SPDX-License-Identifier: BSD-3-Clause */
/* test_listener.c - tests of pmd-glue/listener.c: a client asks over its socket. */
#include "glue_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <base/guard.h>
#include <base/report.h>
#include <pmd-glue/listener.h>

#define ANSWER_BYTES 16384

static void *nowhere; /* memory that is not there */
static char directory[] = "/tmp/postern-test-XXXXXX";

static void tell(const char *command, const char *parameters, struct report *report)
{
	(void)command;
	if (strcmp(parameters, "long") == 0) {
		for (unsigned n = 0; n < ANSWER_BYTES; n++)
			report_number(report, "n", n);
		return;
	}
	if (strcmp(parameters, "fault") == 0) {
		uint64_t word;

		report_flag(report, "there", guard_copy(&word, nowhere, sizeof(word)));
		return;
	}
	report_text(report, "parameters", parameters);
	report_flag(report, "flag", true);
	report_nothing(report, "nothing");
	report_array(report, "numbers");
	report_number(report, NULL, 7);
	report_number(report, NULL, 8);
	report_close(report);
	report_array(report, "none");
	report_close(report);
	report_array(report, "objects");
	for (unsigned n = 0; n < 2; n++) {
		report_object(report, NULL);
		report_text(report, "caf\303\251", "caf\303\251");
		report_close(report);
	}
	report_close(report);
}

static struct sockaddr_un address_of(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", directory, name);
	return address;
}

/* A client; -1: nobody listens there. */
static int client_open(const char *name)
{
	struct sockaddr_un address = address_of(name);
	int client = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	assert_true(client >= 0);
	if (connect(client, (struct sockaddr *)&address, sizeof(address)) == 0)
		return client;
	close(client);
	return -1;
}

/* The next message; "" at the end. */
static const char *hear(int client)
{
	static char heard[2 * ANSWER_BYTES];
	struct pollfd polled = {.fd = client, .events = POLLIN};
	ssize_t length;

	assert_int_equal(poll(&polled, 1, 30000), 1);
	length = recv(client, heard, sizeof(heard) - 1, 0);
	heard[length < 0 ? 0 : length] = '\0';
	return heard;
}

static const char *ask(int client, const char *question)
{
	assert_int_equal(
		send(client, question, strlen(question), MSG_NOSIGNAL), (ssize_t)strlen(question));
	return hear(client);
}

static int client_greeted(void)
{
	int client = client_open("dpdk_telemetry.v2");
	char pid[32];

	assert_true(client >= 0);
	snprintf(pid, sizeof(pid), "\"pid\": %d,", (int)getpid());
	assert_non_null(strstr(hear(client), pid));
	return client;
}

static int begin(void **state)
{
	(void)state;
	return listener_begin(directory) ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	listener_end();
	return access(address_of("dpdk_telemetry.v2").sun_path, F_OK) == 0 ? -1 : 0;
}

static void listener__answers_as_dpdk_would(void **state)
{
	int client = client_greeted();

	(void)state;
	assert_string_equal(ask(client, "/test/it,a,b"),
		"{\"/test/it\": {\"parameters\": \"a,b\", \"flag\": 1, \"numbers\": [7, 8], "
		"\"none\": [], \"objects\": {\"0\": {\"caf\303\251\": \"caf?\"}, \"1\": "
		"{\"caf\303\251\": \"caf?\"}}}}");
	assert_string_equal(
		ask(client, "/"), "{\"/\": [\"/\", \"/help\", \"/info\", \"/test/it\"]}");
	assert_string_equal(
		ask(client, "/help,/test/it"), "{\"/help\": {\"/test/it\": \"what it is\"}}");
	assert_non_null(strstr(ask(client, "/info"), "\"max_output_len\": 16384"));
	close(client);
}

/* Its thread looks at engines, which may copy just then. */
static void listener__survives_memory_that_is_not_there(void **state)
{
	int client = client_greeted();

	(void)state;
	nowhere = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(nowhere != MAP_FAILED);
	guard_start();
	assert_string_equal(ask(client, "/test/it,fault"), "{\"/test/it\": {\"there\": 0}}");
	munmap(nowhere, 1);
	close(client);
}

static void listener__survives_questions_that_make_no_sense(void **state)
{
	int client = client_greeted();
	char *many = malloc(5000);

	(void)state;
	assert_string_equal(ask(client, "/weather"), "{\"/weather\": null}");
	assert_string_equal(ask(client, "\"\\\377\n"), "{\"\\u0022\\u005c?\": null}");
	assert_string_equal(ask(client, ",,,"), "{\"\": null}");
	assert_string_equal(ask(client, "/help,/weather"), "{\"/help\": null}");
	assert_string_equal(ask(client, "/test/it,long"),
		"{\"/test/it\": {\"error\": \"the answer is too long\"}}");
	memset(many, '/', 5000);
	many[4999] = '\0';
	/* A client that asks so much is disconnected. */
	assert_string_equal(ask(client, many), "");
	free(many);
	close(client);
	close(client_greeted());
}

static void listener__waits_for_no_client(void **state)
{
	int slow = client_greeted(), idle[32], client;

	(void)state;
	/* It never takes its answers. */
	while (send(slow, "/test/it", 8, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
	client = client_greeted();
	assert_non_null(strstr(ask(client, "/test/it"), "flag"));
	for (unsigned n = 0; n < 32; n++)
		idle[n] = client_open("dpdk_telemetry.v2");
	assert_non_null(strstr(ask(client, "/test/it"), "flag"));
	for (unsigned n = 0; n < 32; n++)
		close(idle[n]);
	close(client);
	close(slow);
}

static uint64_t cpu_time(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void listener__rests_while_there_is_no_descriptor(void **state)
{
	struct sockaddr_un address = address_of("dpdk_telemetry.v2");
	int client = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct pollfd polled = {.fd = client, .events = POLLIN};
	struct rlimit before, none;
	uint64_t start;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 1; /* so that poll() still takes one */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
	start = cpu_time();
	assert_int_equal(poll(&polled, 1, 400), 0);
	start = cpu_time() - start;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(start < 20000000);
	assert_non_null(strstr(hear(client), "max_output_len"));
	close(client);
}

static void listener_begin__lets_no_other_user_in(void **state)
{
	struct sockaddr_un address = address_of("dpdk_telemetry.v2");
	mode_t mask = umask(0);
	struct stat status;

	(void)state;
	listener_end();
	assert_true(listener_begin(directory));
	umask(mask);
	assert_int_equal(stat(address.sun_path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
}

static void listener_end__lets_clients_go(void **state)
{
	int client = client_greeted();

	(void)state;
	listener_end();
	assert_string_equal(hear(client), "");
	close(client);
	assert_int_equal(client_open("dpdk_telemetry.v2"), -1);
	assert_true(listener_begin(directory));
	close(client_greeted());
}

/* Makes a name; the socket listens until it is closed. */
static int name_make(const char *name)
{
	struct sockaddr_un address = address_of(name);
	int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	return listener;
}

static void listener_begin__leaves_names_to_the_living_alone(void **state)
{
	int living, dead;

	(void)state;
	listener_end();
	living = name_make("dpdk_telemetry.v2");
	dead = name_make("dpdk_telemetry.v2:1");
	close(dead);
	assert_true(listener_begin(directory));
	assert_true((dead = client_open("dpdk_telemetry.v2:1")) >= 0);
	assert_non_null(strstr(hear(dead), "max_output_len"));
	close(dead);
	listener_end();
	assert_int_equal(access(address_of("dpdk_telemetry.v2:1").sun_path, F_OK), -1);
	assert_int_equal(access(address_of("dpdk_telemetry.v2").sun_path, F_OK), 0);
	close(living);
	/* Its own name now. */
	assert_true(listener_begin(directory));
	close(client_greeted());
}

static unsigned threads_count(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned count = 0;

	assert_non_null(tasks);
	while (readdir(tasks))
		count++;
	closedir(tasks);
	return count - 2; /* "." and ".." */
}

/* A process that does not accept is not waited for, neither when its socket is full nor before. */
static void listener_all_accept__finds_who_does_not(void **state)
{
	struct sockaddr_un address = address_of("dpdk_telemetry.v2:1");
	int mute = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	(void)state;
	assert_true(listener_all_accept(directory));
	assert_int_equal(bind(mute, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_true(listener_all_accept(directory)); /* nobody listens there */
	assert_int_equal(listen(mute, 1), 0);
	for (unsigned n = 0; n < 4; n++)
		assert_false(listener_all_accept(directory));
	close(mute);
	assert_true(listener_all_accept(directory));
	assert_int_equal(unlink(address.sun_path), 0);
}

/* A child of a process in which a thread begins or ends right now may find the allocator locked for
 * ever: so the listener has begun before, and earlier ones have ended. */
static void listener__belongs_to_one_process(void **state)
{
	int status;
	pid_t child;

	(void)state;
	close(client_greeted());
	while (threads_count() > 2)
		nap();
	child = fork();
	if (child == 0)
		exit(0);
	assert_int_equal(waitpid(child, &status, 0), child);
	close(client_greeted());
}

static int prepare(void **state)
{
	(void)state;
	return mkdtemp(directory) && listener_add("/test/it", "what it is", tell) ? 0 : -1;
}

static int clear(void **state)
{
	(void)state;
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(listener__answers_as_dpdk_would, begin, end),
		cmocka_unit_test_setup_teardown(
			listener__survives_questions_that_make_no_sense, begin, end),
		cmocka_unit_test_setup_teardown(
			listener__survives_memory_that_is_not_there, begin, end),
		cmocka_unit_test_setup_teardown(listener__waits_for_no_client, begin, end),
		cmocka_unit_test_setup_teardown(
			listener__rests_while_there_is_no_descriptor, begin, end),
		cmocka_unit_test_setup_teardown(listener_begin__lets_no_other_user_in, begin, end),
		cmocka_unit_test_setup_teardown(listener_end__lets_clients_go, begin, end),
		cmocka_unit_test_setup_teardown(
			listener_begin__leaves_names_to_the_living_alone, begin, end),
		cmocka_unit_test_setup_teardown(
			listener_all_accept__finds_who_does_not, begin, end),
		cmocka_unit_test_setup_teardown(listener__belongs_to_one_process, begin, end),
	};

	return cmocka_run_group_tests(tests, prepare, clear);
}
