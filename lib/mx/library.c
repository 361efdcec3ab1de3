/* SPDX-License-Identifier: BSD-3-Clause */
/* library.c - mx_init() and mx_finalize(), and boards. */
#include <mx/library.h>

#include <stdio.h>

#include <base/environment.h>
#include <base/cancel.h>
#include <base/log.h>
#include <base/port.h>
#include <base/settings.h>
#include <engine/segment.h>
#include <host/inspection.h>
#include <host/interface.h>

#define RETRY_MS    500u
#define RETRIES_MAX 172800u /* a day */

static const struct topic topics[] = {
	TOPICS_OF_ALL,
	TOPICS_OF_ALL_BEHIND,
};

struct front mx_front = {
	.name = "MX",
	.start = "mx_init",
	.closed = MX_NOT_INITIALIZED,
	.topics = topics,
	.topic_count = sizeof(topics) / sizeof(topics[0]),
	.words = &message_words,
	.start_timeout = SECOND, /* a program that names an endpoint has learnt that it is open */
	.forked = endpoints_forget,
};

static struct cancel_lock init_lock = CANCEL_LOCK_INITIAL;

/* MX_MAX_RETRIES: how often a silent peer is tried, a half second each. PTL_PEER_TIMEOUT, if it is
 * set, says it instead. Returns false after an error line. */
static bool peer_timeout_set(void)
{
	const char *text = environment_text("MX_MAX_RETRIES");
	unsigned tries = 0;
	char peer_timeout[16], rest;
	int result;

	if (!text || setting_is_given(SETTING_PEER_TIMEOUT))
		return true;
	if (sscanf(text, "%u%c", &tries, &rest) != 1 || tries == 0 || tries > RETRIES_MAX) {
		log_error(
			"MX_MAX_RETRIES is \"%.64s\": set it to a number from 1 to %u, or unset it",
			text, RETRIES_MAX);
		return false;
	}
	(void)snprintf(peer_timeout, sizeof(peer_timeout), "%ums", tries * RETRY_MS);
	library_lock();
	result = setting_change(SETTING_PEER_TIMEOUT, 0, peer_timeout);
	library_unlock();
	return result == 0;
}

static enum answer library_open(void)
{
	enum answer answer = hostname_check() ? front_open(&mx_front) : ANSWER_FAILED;

	if (answer != ANSWER_OK || peer_timeout_set())
		return answer;
	front_close(&mx_front);
	return ANSWER_FAILED;
}

static mx_return_t library_init(int api)
{
	enum answer answer = ANSWER_OK;
	bool already;

	if (api >> 8 != MX_API >> 8)
		return error_raise(NULL, MX_BAD_LIB_VERSION, "mx_init",
			"the program was compiled for MX API 0x%x, and this library has 0x%x; "
			"compile it with this library's myriexpress.h",
			(unsigned)api, MX_API);
	cancel_lock_take(&init_lock);
	already = front_is_open(&mx_front);
	if (!already)
		answer = library_open();
	cancel_lock_give(&init_lock);
	if (already)
		return error_raise(NULL, MX_ALREADY_INITIALIZED, "mx_init", "call it once");
	if (answer != ANSWER_OK)
		return error_raise(
			NULL, MX_BAD_BAD_BAD, "mx_init", "the line above says what to change");
	return MX_SUCCESS;
}

mx_return_t mx__init_api(int api)
{
	return library_init(api);
}

/* A function for programs that were compiled for MX 1.0; for others it is a macro. */
#undef mx_init
MX_FUNCTION mx_return_t mx_init(void);
mx_return_t mx_init(void)
{
	return library_init(MX_API);
}

mx_return_t mx_finalize(void)
{
	bool open;

	/* Before the lock: another thread that closes waits, with it, until the handler returns. */
	if (front_is_open(&mx_front) && endpoints_are_handled())
		return error_raise(NULL, MX_CLOSE_IN_HANDLER, "mx_finalize",
			"an unexpected handler calls it; call it when the handler has returned");
	cancel_lock_take(&init_lock);
	open = front_is_open(&mx_front);
	if (open) {
		endpoints_close();
		front_close(&mx_front);
	}
	cancel_lock_give(&init_lock);
	return open ? MX_SUCCESS : error_raise_closed("mx_finalize");
}

/* The library's lock is held. */
static uint32_t boards_count_locked(void)
{
	return front_is_open(&mx_front) ? setting_items(SETTING_IFACE_NAME) : 0;
}

uint32_t boards_count(void)
{
	uint32_t count;

	library_lock();
	count = boards_count_locked();
	library_unlock();
	return count;
}

mx_return_t board_raise(
	mx_error_handler_t own, const char *function, uint32_t number, mx_return_t code)
{
	switch (code) {
	case MX_NOT_INITIALIZED:
		return error_raise_closed(function);
	case MX_BOARD_UNKNOWN:
		return error_raise(own, code, function,
			"board %u does not exist: PTL_IFACE_NAME names %u boards, numbered from 0; "
			"add one to PTL_IFACE_NAME",
			number, boards_count());
	default:
		return error_raise(own, code, function,
			"board %u cannot be opened; the line above says why", number);
	}
}

mx_return_t board_check(const char *function, uint32_t number)
{
	uint32_t count = boards_count();

	if (number < count)
		return MX_SUCCESS;
	return board_raise(
		NULL, function, number, count == 0 ? MX_NOT_INITIALIZED : MX_BOARD_UNKNOWN);
}

mx_return_t answer_code(enum answer answer)
{
	switch (answer) {
	case ANSWER_OK:
		return MX_SUCCESS;
	case ANSWER_TAKEN:
		return MX_BUSY;
	case ANSWER_NO_MEMORY:
	case ANSWER_FAILED:
		return MX_NO_RESOURCES;
	default:
		return MX_NO_DRIVER;
	}
}

/* Of one that is open. The library's lock is held. */
static void board_describe(uint32_t number, struct board *board)
{
	const struct interface *interface = &interfaces[number];

	board->handle = atomic_load_explicit(&interface->handle, memory_order_relaxed);
	board->nid = interface->self.nid;
	board->socket = interface->socket;
	(void)snprintf(board->device, sizeof(board->device), "%s", interface->port->name);
}

mx_return_t board_open(uint32_t number, struct board *board)
{
	const struct segment_limits none = {0};
	mx_return_t code = MX_SUCCESS;

	library_lock();
	if (!front_is_open(&mx_front))
		code = MX_NOT_INITIALIZED;
	else if (number >= boards_count_locked())
		code = MX_BOARD_UNKNOWN;
	else if (!interface_is_open(&mx_front, number))
		code = answer_code(interface_open(&mx_front, number, INTERFACE_PID_ANY, &none));
	if (code == MX_SUCCESS)
		board_describe(number, board);
	library_unlock();
	return code;
}
