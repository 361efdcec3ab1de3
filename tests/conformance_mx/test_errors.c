/* SPDX-License-Identifier: BSD-3-Clause */
/* test_errors.c - mx_init() and mx_finalize(), error handlers, texts. MX is closed before and after
 * each test, so children may use it.
 *
 * Covers: lib/mx/error.c, lib/mx/library.c. */
#include "fixture.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static char last_text[256];
static mx_return_t last_code;
static unsigned calls;

static mx_return_t remember(char *text, mx_return_t code)
{
	snprintf(last_text, sizeof(last_text), "%s", text);
	last_code = code;
	calls++;
	return MX_NO_MATCH;
}

static int default_restore(void **state)
{
	(void)state;
	unsetenv("MX_ERRORS_ARE_FATAL");
	mx_set_error_handler(NULL);
	return 0;
}

static void body_error(void)
{
	(void)mx_finalize();
}

static void an_error_is_fatal_by_default(void **state)
{
	char text[512];

	(void)state;
	assert_int_equal(child_run(body_error, text, sizeof(text)), 255);
	assert_non_null(strstr(text, "mx_finalize"));
	assert_non_null(strstr(text, mx_strerror(MX_NOT_INITIALIZED)));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void the_environment_lets_errors_return(void **state)
{
	(void)state;
	setenv("MX_ERRORS_ARE_FATAL", "0", 1);
	assert_int_equal(child_run(body_error, NULL, 0), 0);
	assert_ptr_equal(mx_set_error_handler(NULL), MX_ERRORS_RETURN);
	setenv("MX_ERRORS_ARE_FATAL", "1", 1);
	assert_int_equal(child_run(body_error, NULL, 0), 255);
}

static void both_handlers_can_be_called(void **state)
{
	char text[] = "of a test";

	(void)state;
	assert_int_equal(MX_ERRORS_RETURN(text, MX_BUSY), MX_BUSY);
	assert_ptr_not_equal(MX_ERRORS_RETURN, MX_ERRORS_ARE_FATAL);
}

static void setting_a_handler_returns_the_previous_one(void **state)
{
	(void)state;
	assert_ptr_equal(mx_set_error_handler(MX_ERRORS_RETURN), MX_ERRORS_ARE_FATAL);
	assert_ptr_equal(mx_set_error_handler(remember), MX_ERRORS_RETURN);
	assert_ptr_equal(mx_set_error_handler(NULL), remember);
	assert_ptr_equal(mx_set_error_handler(NULL), MX_ERRORS_ARE_FATAL);
}

static void a_handler_decides_what_the_call_returns(void **state)
{
	uint64_t nic_id;

	(void)state;
	mx_set_error_handler(remember);
	calls = 0;
	assert_code(mx_board_number_to_nic_id(0, &nic_id), MX_NO_MATCH);
	assert_int_equal(calls, 1);
	assert_int_equal(last_code, MX_NOT_INITIALIZED);
	assert_non_null(strstr(last_text, "mx_board_number_to_nic_id: "));
	assert_null(strchr(last_text, '\n'));
}

static void every_call_before_mx_init_is_refused(void **state)
{
	char name[MX_MAX_HOSTNAME_LEN] = "alpha";
	mx_mapper_state_t mapper;
	mx_endpt_handle_t handle;
	uint64_t nic_id;
	uint32_t number;

	(void)state;
	mx_set_error_handler(MX_ERRORS_RETURN);
	assert_code(mx_finalize(), MX_NOT_INITIALIZED);
	assert_code(mx_get_info(NULL, MX_NIC_COUNT, NULL, 0, &number, 4), MX_NOT_INITIALIZED);
	assert_code(mx_hostname_to_nic_id(name, &nic_id), MX_NOT_INITIALIZED);
	assert_code(mx_nic_id_to_hostname(1, name), MX_NOT_INITIALIZED);
	assert_code(mx_nic_id_to_board_number(1, &number), MX_NOT_INITIALIZED);
	assert_code(mx_open_board(0, &handle), MX_NOT_INITIALIZED);
	assert_code(mx__get_mapper_state(0, &mapper), MX_NOT_INITIALIZED);
	assert_int_equal(mx__regcache_clean(name, sizeof(name)), 0);
}

static void a_second_mx_init_changes_nothing(void **state)
{
	uint32_t boards;

	(void)state;
	mx_set_error_handler(MX_ERRORS_RETURN);
	assert_ok(mx_init());
	assert_code(mx_init(), MX_ALREADY_INITIALIZED);
	assert_ok(mx_get_info(NULL, MX_NIC_COUNT, NULL, 0, &boards, sizeof(boards)));
	assert_ok(mx_finalize());
	assert_code(mx_finalize(), MX_NOT_INITIALIZED);
}

static void mx_init_follows_mx_finalize(void **state)
{
	(void)state;
	mx_set_error_handler(MX_ERRORS_RETURN);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t nic_id = 0;

		assert_ok(mx_init());
		assert_ok(mx_board_number_to_nic_id(0, &nic_id));
		assert_ok(mx_finalize());
	}
}

static void another_major_version_is_refused(void **state)
{
	(void)state;
	mx_set_error_handler(MX_ERRORS_RETURN);
	assert_code(mx__init_api(0), MX_BAD_LIB_VERSION);
	assert_code(mx__init_api(0x2ff), MX_BAD_LIB_VERSION);
	assert_code(mx__init_api(0x400), MX_BAD_LIB_VERSION);
	assert_code(mx__init_api(-1), MX_BAD_LIB_VERSION);
	assert_ok(mx__init_api(0x3ff));
	assert_ok(mx_finalize());
}

static void a_wrong_setting_fails_mx_init(void **state)
{
	(void)state;
	mx_set_error_handler(MX_ERRORS_RETURN);
	setenv("PTL_MX_HOSTNAME", "alpha:0", 1);
	assert_code(mx_init(), MX_BAD_BAD_BAD);
	unsetenv("PTL_MX_HOSTNAME");
	setenv("PTL_ENCAP", "smoke", 1);
	assert_code(mx_init(), MX_BAD_BAD_BAD);
	unsetenv("PTL_ENCAP");
	assert_ok(mx_init());
	assert_ok(mx_finalize());
}

static void programs_of_mx_1_0_find_a_function_mx_init(void **state)
{
	mx_return_t (*init)(void);
	void *symbol = dlsym(RTLD_DEFAULT, "mx_init");

	(void)state;
	assert_non_null(symbol);
	memcpy(&init, &symbol, sizeof(init));
	assert_ok(init());
	assert_ok(mx_finalize());
}

static mx_endpoint_t inherited;

/* The parent's endpoint is not the child's, whose calls would wait for ever. */
static void body_forked(void)
{
	mx_endpoint_addr_t address;
	mx_request_t request;
	mx_status_t status;
	uint64_t nic_id;
	uint32_t result;

	_exit(mx_board_number_to_nic_id(0, &nic_id) == MX_NOT_INITIALIZED &&
				mx_get_endpoint_addr(inherited, &address) == MX_NOT_INITIALIZED &&
				mx_irecv(inherited, NULL, 0, 0, 0, NULL, &request) ==
					MX_NOT_INITIALIZED &&
				mx_probe(inherited, MX_INFINITE, 0, 0, &status, &result) ==
					MX_NOT_INITIALIZED &&
				mx_close_endpoint(inherited) == MX_NOT_INITIALIZED &&
				mx_init() == MX_BAD_BAD_BAD
			? 42
			: 1);
}

static void a_forked_child_is_refused(void **state)
{
	uint64_t nic_id;

	(void)state;
	mx_set_error_handler(MX_ERRORS_RETURN);
	assert_ok(mx_init());
	assert_ok(mx_board_number_to_nic_id(0, &nic_id));
	assert_ok(mx_open_endpoint(0, MX_ANY_ENDPOINT, 1, NULL, 0, &inherited));
	assert_int_equal(child_run(body_forked, NULL, 0), 42);
	assert_ok(mx_finalize());
}

/* first to last have texts that differ, and the codes around them have one, too. */
static void texts_check(const char *(*text_of)(int code), int last)
{
	const char *unknown = text_of(last + 1);

	assert_non_null(unknown);
	assert_ptr_equal(text_of(-1), unknown);
	assert_ptr_equal(text_of(INT32_MAX), unknown);
	for (int code = 0; code <= last; code++) {
		assert_non_null(text_of(code));
		assert_true(strlen(text_of(code)) > 0);
		assert_string_not_equal(text_of(code), unknown);
		for (int other = 0; other < code; other++)
			assert_string_not_equal(text_of(code), text_of(other));
	}
}

static const char *text_of_return(int code)
{
	return mx_strerror((mx_return_t)code);
}

static const char *text_of_status(int code)
{
	return mx_strstatus((mx_status_code_t)code);
}

static void every_code_has_a_text(void **state)
{
	(void)state;
	texts_check(text_of_return, MX_NOT_SUPPORTED_WITH_CONTEXT_ID);
	texts_check(text_of_status, MX_STATUS_NO_RESOURCES);
}

static void body_retries(void)
{
	if (mx_init() == MX_SUCCESS)
		_exit(1);
}

static void a_wrong_number_of_retries_fails_mx_init(void **state)
{
	static const char *const wrong[] = {"0", "many", "4x", "172801", "-1", ""};
	char text[512];

	(void)state;
	mx_set_error_handler(MX_ERRORS_RETURN);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		setenv("MX_MAX_RETRIES", wrong[i], 1);
		assert_int_equal(child_run(body_retries, text, sizeof(text)), 0);
		assert_non_null(strstr(text, "MX_MAX_RETRIES"));
		assert_non_null(strstr(text, "172800"));
	}
	unsetenv("MX_MAX_RETRIES");
}

/* A process with an endpoint, which makes progress until it is stopped. */
static pid_t peer_start(void)
{
	pid_t child = fork();
	mx_endpoint_t endpoint;

	if (child != 0)
		return child;
	if (mx_init() != MX_SUCCESS || mx_open_endpoint(0, 2, 7, NULL, 0, &endpoint) != MX_SUCCESS)
		_exit(1);
	while (mx_progress(endpoint) == MX_SUCCESS)
		usleep(1000);
	_exit(1);
}

/* Sends to a process that is stopped. Returns how the send has ended, or -1. */
static int send_to_silence(pid_t peer)
{
	static char data[100000];
	mx_segment_t segment = {data, sizeof(data)};
	mx_endpoint_t one;
	mx_endpoint_addr_t self, address;
	mx_request_t request;
	mx_status_t status;
	uint64_t nic_id;
	uint32_t id, done = 0;

	if (mx_init() != MX_SUCCESS || mx_open_endpoint(0, 1, 7, NULL, 0, &one) != MX_SUCCESS ||
		mx_get_endpoint_addr(one, &self) != MX_SUCCESS ||
		mx_decompose_endpoint_addr(self, &nic_id, &id) != MX_SUCCESS ||
		mx_connect(one, nic_id, 2, 7, 30000, &address) != MX_SUCCESS ||
		kill(peer, SIGSTOP) != 0 ||
		mx_issend(one, &segment, 1, address, 0, NULL, &request) != MX_SUCCESS ||
		mx_wait(one, &request, 8000, &status, &done) != MX_SUCCESS || done == 0)
		return -1;
	return (int)status.code;
}

static void body_silence(void)
{
	char node[64];
	pid_t peer;
	int code;

	(void)snprintf(node, sizeof(node), "node:retries-%d", (int)getpid());
	setenv("PTL_IFACE_NAME", node, 1);
	peer = peer_start();
	code = send_to_silence(peer);
	kill(peer, SIGKILL);
	waitpid(peer, NULL, 0);
	_exit(code == MX_STATUS_ENDPOINT_UNREACHABLE ? 0 : code == -1 ? 2 : 1);
}

/* A peer that a busy machine keeps from answering for a second is not there, before it is stopped:
 * then another one is tried. */
static int silence_heard(void)
{
	int code;

	do
		code = child_run(body_silence, NULL, 0);
	while (code == 2);
	return code;
}

static void the_number_of_retries_is_the_peer_timeout(void **state)
{
	(void)state;
	mx_set_error_handler(MX_ERRORS_RETURN);
	setenv("MX_MAX_RETRIES", "2", 1);
	assert_int_equal(silence_heard(), 0);
	setenv("PTL_PEER_TIMEOUT", "60s", 1);
	setenv("MX_MAX_RETRIES", "many", 1); /* nobody reads it */
	assert_int_equal(child_run(body_retries, NULL, 0), 1);
	unsetenv("PTL_PEER_TIMEOUT");
	unsetenv("MX_MAX_RETRIES");
}

/* A signal ends it if the endpoint waits for a peer that does not answer. */
static void body_close_under_way(void)
{
	mx_endpoint_t endpoint;
	mx_request_t request;
	uint64_t nic_id;

	(void)alarm(60);
	assert_ok(mx_init());
	assert_ok(mx_board_number_to_nic_id(0, &nic_id));
	assert_ok(mx_open_endpoint(0, 1, 1, NULL, 0, &endpoint));
	assert_ok(mx_iconnect(endpoint, nic_id + 1, 1, 1, 0, NULL, &request));
	assert_ok(mx_close_endpoint(endpoint));
	assert_ok(mx_finalize());
}

static void closing_an_endpoint_waits_for_no_peer_that_is_silent(void **state)
{
	(void)state;
	mx_set_error_handler(MX_ERRORS_RETURN);
	setenv("PTL_PEER_TIMEOUT", "1000s", 1);
	assert_int_equal(child_run(body_close_under_way, NULL, 0), 0);
	unsetenv("PTL_PEER_TIMEOUT");
}

/* On a node: a peer is killed, and endpoints are looked for that nobody has. */
static void body_gone(void)
{
	char node[64];
	mx_endpoint_t one;
	mx_endpoint_addr_t address;
	mx_request_t request;
	mx_status_t status;
	uint64_t nic_id;
	uint32_t done = 0;
	pid_t peer;

	(void)snprintf(node, sizeof(node), "node:gone-%d", (int)getpid());
	setenv("PTL_IFACE_NAME", node, 1);
	peer = peer_start();
	(void)alarm(90);
	assert_ok(mx_init());
	assert_ok(mx_open_endpoint(0, 1, 7, NULL, 0, &one));
	assert_ok(mx_board_number_to_nic_id(0, &nic_id));
	/* The peer starts. */
	while (mx_connect(one, nic_id, 2, 7, 30000, &address) != MX_SUCCESS)
		;
	kill(peer, SIGKILL);
	waitpid(peer, NULL, 0);
	assert_ok(mx_issend(one, NULL, 0, address, 0, NULL, &request));
	assert_ok(mx_wait(one, &request, 60000, &status, &done));
	assert_int_not_equal(done, 0);
	assert_int_not_equal(status.code, MX_STATUS_SUCCESS);
	assert_code(mx_connect(one, nic_id, 2, 7, 60000, &address), MX_CONNECTION_FAILED);
	assert_code(mx_connect(one, nic_id, 3, 7, 60000, &address), MX_CONNECTION_FAILED);
	assert_ok(mx_close_endpoint(one));
	assert_ok(mx_finalize());
}

static void a_peer_that_is_not_on_the_node_is_missed_soon(void **state)
{
	(void)state;
	mx_set_error_handler(MX_ERRORS_RETURN);
	setenv("PTL_PEER_TIMEOUT", "1000s", 1);
	assert_int_equal(child_run(body_gone, NULL, 0), 0);
	unsetenv("PTL_PEER_TIMEOUT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First, while this process has not started MX, so that its children can. */
		cmocka_unit_test_teardown(a_wrong_number_of_retries_fails_mx_init, default_restore),
		cmocka_unit_test_teardown(
			the_number_of_retries_is_the_peer_timeout, default_restore),
		cmocka_unit_test_teardown(
			closing_an_endpoint_waits_for_no_peer_that_is_silent, default_restore),
		cmocka_unit_test_teardown(
			a_peer_that_is_not_on_the_node_is_missed_soon, default_restore),
		cmocka_unit_test_teardown(an_error_is_fatal_by_default, default_restore),
		cmocka_unit_test_teardown(the_environment_lets_errors_return, default_restore),
		cmocka_unit_test(both_handlers_can_be_called),
		cmocka_unit_test_teardown(
			setting_a_handler_returns_the_previous_one, default_restore),
		cmocka_unit_test_teardown(a_handler_decides_what_the_call_returns, default_restore),
		cmocka_unit_test_teardown(every_call_before_mx_init_is_refused, default_restore),
		cmocka_unit_test_teardown(a_second_mx_init_changes_nothing, default_restore),
		cmocka_unit_test_teardown(mx_init_follows_mx_finalize, default_restore),
		cmocka_unit_test_teardown(another_major_version_is_refused, default_restore),
		cmocka_unit_test_teardown(a_wrong_setting_fails_mx_init, default_restore),
		cmocka_unit_test(programs_of_mx_1_0_find_a_function_mx_init),
		cmocka_unit_test(every_code_has_a_text),
		cmocka_unit_test_teardown(a_forked_child_is_refused, default_restore),
	};

	setenv("PTL_IFACE_NAME", "loop:a", 1);
	setenv("PTL_LOG_LEVEL", "error", 1);
	unsetenv("MX_ERRORS_ARE_FATAL");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
