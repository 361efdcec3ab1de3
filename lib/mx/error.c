/* SPDX-License-Identifier: BSD-3-Clause */
/* error.c - error handlers, and the texts of codes.
 *
 * handler is NULL until a program sets one: then the environment decides, at each error, because
 * programs set variables just before mx_init(), and errors may come before it.
 */
#include <mx/library.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/environment.h>
#include <base/log.h>

#define TEXT_BYTES 512

static _Atomic(mx_error_handler_t) handler;

static mx_return_t error_is_fatal(char *text, mx_return_t code)
{
	log_error("%s: %s", text, mx_strerror(code));
	exit(-1);
}

static mx_return_t error_returns(char *text, mx_return_t code)
{
	(void)text;
	return code;
}

const mx_error_handler_t MX_ERRORS_ARE_FATAL = error_is_fatal;
const mx_error_handler_t MX_ERRORS_RETURN = error_returns;

static mx_error_handler_t handler_default(void)
{
	const char *fatal = environment_text("MX_ERRORS_ARE_FATAL");

	return fatal && strcmp(fatal, "0") == 0 ? error_returns : error_is_fatal;
}

mx_error_handler_t mx_set_error_handler(mx_error_handler_t wanted)
{
	mx_error_handler_t previous =
		atomic_exchange_explicit(&handler, wanted, memory_order_acq_rel);

	return previous ? previous : handler_default();
}

mx_return_t error_raise(
	mx_error_handler_t own, mx_return_t code, const char *function, const char *format, ...)
{
	char text[TEXT_BYTES];
	va_list arguments;
	int length;

	if (!own)
		own = atomic_load_explicit(&handler, memory_order_acquire);
	if (!own)
		own = handler_default();
	length = snprintf(text, sizeof(text), "%s: ", function);
	va_start(arguments, format);
	vsnprintf(text + length, sizeof(text) - (size_t)length, format, arguments);
	va_end(arguments);
	return own(text, code);
}

mx_return_t error_raise_closed(const char *function)
{
	return error_raise(NULL, MX_NOT_INITIALIZED, function,
		library_is_forked()
			? "MX cannot be used in a process made by fork(); call exec() first"
			: "call mx_init() first");
}

const char *mx_strerror(mx_return_t code)
{
	static const char *const texts[] = {
		[MX_SUCCESS] = "success",
		[MX_BAD_BAD_BAD] = "error without a code of its own",
		[MX_FAILURE] = "failure",
		[MX_ALREADY_INITIALIZED] = "already initialized",
		[MX_NOT_INITIALIZED] = "not initialized",
		[MX_NO_DEV] = "no network interface",
		[MX_NO_DRIVER] = "the network interface cannot be used",
		[MX_NO_PERM] = "no permission",
		[MX_BOARD_UNKNOWN] = "unknown board",
		[MX_BAD_ENDPOINT] = "bad endpoint",
		[MX_BAD_SEG_LIST] = "the list of segments is NULL",
		[MX_BAD_SEG_MEM] = "bad memory in a segment",
		[MX_BAD_SEG_CNT] = "too many segments",
		[MX_BAD_REQUEST] = "bad request",
		[MX_BAD_MATCH_MASK] = "the match value has bits outside its mask",
		[MX_NO_RESOURCES] = "not enough memory",
		[MX_BAD_ADDR_LIST] = "bad list of addresses",
		[MX_BAD_ADDR_COUNT] = "bad number of addresses",
		[MX_BAD_ROOT] = "bad root",
		[MX_NOT_COMPLETED] = "not completed",
		[MX_BUSY] = "in use",
		[MX_BAD_INFO_KEY] = "unknown key of information",
		[MX_BAD_INFO_VAL] = "bad address for information",
		[MX_BAD_NIC] = "bad NIC",
		[MX_BAD_PARAM_LIST] = "the list of parameters is NULL",
		[MX_BAD_PARAM_NAME] = "unknown parameter",
		[MX_BAD_PARAM_VAL] = "bad value of a parameter",
		[MX_BAD_HOSTNAME_ARGS] = "a host name or its result is NULL",
		[MX_HOST_NOT_FOUND] = "host not found",
		[MX_REQUEST_PENDING] = "the request is pending",
		[MX_TIMEOUT] = "timeout",
		[MX_NO_MATCH] = "no match",
		[MX_BAD_ENDPOINT_ID] = "bad endpoint id",
		[MX_CONNECTION_FAILED] = "the peer has no such endpoint open",
		[MX_BAD_CONNECTION_KEY] = "the peer's filter differs",
		[MX_BAD_INFO_LENGTH] = "bad length for information",
		[MX_NIC_NOT_FOUND] = "NIC not found",
		[MX_BAD_KERNEL_VERSION] = "bad version of the kernel's module",
		[MX_BAD_LIB_VERSION] = "bad version of the library",
		[MX_NIC_DEAD] = "the NIC is dead",
		[MX_CANCEL_NOT_SUPPORTED] = "the request cannot be cancelled",
		[MX_CLOSE_IN_HANDLER] = "an endpoint cannot be closed in its handler",
		[MX_BAD_MATCHING_FOR_CONTEXT_ID_MASK] =
			"the mask leaves out bits of the context id",
		[MX_NOT_SUPPORTED_WITH_CONTEXT_ID] = "not supported with context ids",
	};

	return (unsigned)code < sizeof(texts) / sizeof(texts[0]) ? texts[code]
								 : "unknown return code";
}

const char *mx_strstatus(mx_status_code_t code)
{
	static const char *const texts[] = {
		[MX_STATUS_SUCCESS] = "success",
		[MX_STATUS_PENDING] = "pending",
		[MX_STATUS_BUFFERED] = "buffered",
		[MX_STATUS_REJECTED] = "rejected, because the peer's filter differs",
		[MX_STATUS_TIMEOUT] = "timeout",
		[MX_STATUS_TRUNCATED] = "the message was longer than the memory",
		[MX_STATUS_CANCELLED] = "cancelled",
		[MX_STATUS_ENDPOINT_UNKNOWN] = "nobody has the peer's NIC id",
		[MX_STATUS_ENDPOINT_CLOSED] = "the peer's endpoint is closed",
		[MX_STATUS_ENDPOINT_UNREACHABLE] = "the peer is unreachable",
		[MX_STATUS_BAD_SESSION] = "the address is of an earlier session of the peer",
		[MX_STATUS_BAD_KEY] = "not connected, because the peer's filter differs",
		[MX_STATUS_BAD_ENDPOINT] = "the peer cannot have such an endpoint id",
		[MX_STATUS_BAD_RDMAWIN] = "the sender does not know the message any more",
		[MX_STATUS_ABORTED] = "the peer gave the transfer up",
		[MX_STATUS_EVENTQ_FULL] = "the event queue is full",
		[MX_STATUS_NO_RESOURCES] = "not enough memory",
	};

	return (unsigned)code < sizeof(texts) / sizeof(texts[0]) ? texts[code]
								 : "unknown status code";
}
