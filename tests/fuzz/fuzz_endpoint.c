/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_endpoint.c - endpoints of MX, with sessions and two-sided messages, on a loop, and peers
 * that lie: whatever is greeted, sent, announced, fetched, answered, acknowledged or credited may
 * be changed on its way, lost, or said by nobody (liar.h). The program that uses the endpoints is
 * as bad: it passes handles and addresses of any bits.
 *
 * The input is a script of steps: a call on one of two endpoints, a lie, or time that passes.
 *
 * Whatever comes, it holds that
 *
 * E1. no byte outside a buffer is touched (the address sanitizer watches);
 * E2. each call returns, with a code that is one;
 * E3. a request that has ended says how, and that it has not got more than its buffer has room for;
 * E4. an endpoint closes, and its id can be opened again.
 */
#include <mx/state.h>

#include "fuzz.h"
#include "liar.h"

#define STEPS_MAX 400
#define ENDS      2
#define REQUESTS  32
#define ADDRESSES 16
#define MEMORIES  512
#define FILTER    7
#define OPENS_MAX 8
#define TIMEOUT   1 /* ms */

/* A handle that was told, and the room of its buffer, as long as nobody gave it back. */
struct posted {
	mx_request_t request;
	uint32_t room;
	unsigned end;
};

static struct script *script;
static mx_endpoint_t ends[ENDS];
static struct posted posted[REQUESTS];
static mx_endpoint_addr_t addresses[ADDRESSES];
static unsigned address_count, opens;
static void *memories[MEMORIES]; /* they stay as long as endpoints are open */
static unsigned memory_count;

/* --- what calls are given */

static uint32_t length_choose(void)
{
	static const uint32_t lengths[] = {0, 1, 8, 1000, 1024, 1025, 32768, 32769, 100000};

	return lengths[script_byte(script) % (sizeof(lengths) / sizeof(lengths[0]))];
}

static void *memory_make(uint32_t length)
{
	if (memory_count == MEMORIES)
		return NULL;
	return memories[memory_count++] = calloc(1, length ? length : 1);
}

static void address_note(mx_endpoint_addr_t address)
{
	addresses[address_count++ % ADDRESSES] = address;
}

/* One that was told, or with bits that are not as they were. */
static mx_endpoint_addr_t address_choose(void)
{
	uint8_t what = script_byte(script);
	mx_endpoint_addr_t address = addresses[what % ADDRESSES];

	if (what >= 160)
		address.stuff[what & 1] ^= UINT64_C(1) << script_byte(script) % 64;
	if (what >= 224)
		for (unsigned i = 0; i < 4; i++)
			address.stuff[i & 1] ^= (uint64_t)script_word(script) << i / 2 * 32;
	return address;
}

static mx_request_t *request_choose(struct posted **one)
{
	static mx_request_t strange;
	uint8_t what = script_byte(script);
	uint64_t bits;

	*one = &posted[what % REQUESTS];
	if (what < 192)
		return &(*one)->request;
	bits = (uint64_t)(uintptr_t)(*one)->request ^ UINT64_C(1) << script_byte(script) % 64;
	*one = NULL;
	strange = (mx_request_t)(uintptr_t)bits;
	return &strange;
}

static struct posted *posted_free(unsigned end)
{
	for (unsigned i = 0; i < REQUESTS; i++)
		if (!posted[i].request) {
			posted[i].end = end;
			return &posted[i];
		}
	return NULL;
}

/* --- what calls return */

/* E2 */
static void code_check(mx_return_t code)
{
	fuzz_assert(code <= MX_NOT_SUPPORTED_WITH_CONTEXT_ID);
}

/* E3. room: of a receive that is known. */
static void status_check(const mx_status_t *status, uint32_t room)
{
	fuzz_assert(status->code <= MX_STATUS_NO_RESOURCES && status->code != MX_STATUS_PENDING &&
		    status->code != MX_STATUS_BUFFERED && status->code != MX_STATUS_EVENTQ_FULL);
	fuzz_assert(status->xfer_length <= room);
	if (status->code == MX_STATUS_SUCCESS)
		fuzz_assert(status->xfer_length == status->msg_length);
	if (status->code == MX_STATUS_SUCCESS)
		address_note(status->source);
}

static void request_test(mx_endpoint_t end)
{
	struct posted *one;
	mx_request_t *request = request_choose(&one);
	mx_status_t status;
	uint32_t result;

	code_check(script_byte(script) & 1 ? mx_wait(end, request, TIMEOUT, &status, &result)
					   : mx_test(end, request, &status, &result));
	if (result != 0)
		status_check(&status, one ? one->room : UINT32_MAX);
}

static void any_test(mx_endpoint_t end)
{
	uint64_t bits = script_byte(script) & 3, mask = script_byte(script) & 3;
	mx_status_t status;
	mx_request_t request;
	uint32_t result;

	switch (script_byte(script) % 6) {
	case 0:
		code_check(mx_iprobe(end, bits, mask, &status, &result));
		break;
	case 1:
		code_check(mx_probe(end, TIMEOUT, bits, mask, &status, &result));
		break;
	case 2:
		code_check(mx_ipeek(end, &request, &result));
		result = 0;
		break;
	case 3:
		code_check(mx_wait_any(end, TIMEOUT, bits, mask, &status, &result));
		break;
	default:
		code_check(mx_test_any(end, bits, mask, &status, &result));
	}
	if (result != 0)
		status_check(&status, UINT32_MAX);
}

/* --- calls */

static void message_send(unsigned at)
{
	uint8_t what = script_byte(script);
	mx_endpoint_addr_t to = address_choose();
	struct posted *one = posted_free(at);
	mx_request_t *handle = one && what < 240 ? &one->request : NULL;
	uint32_t length = length_choose();
	mx_segment_t segments[2] = {{memory_make(length), length}, {&opens, what & 8 ? 3 : 0}};

	if (!segments[0].segment_ptr)
		return;
	if (one)
		one->room = UINT32_MAX;
	code_check((what & 4 ? mx_issend : mx_isend)(
		ends[at], segments, 2, to, what & 3, NULL, handle));
}

static void message_receive(unsigned at)
{
	uint8_t what = script_byte(script);
	struct posted *one = posted_free(at);
	uint32_t length = length_choose();
	void *memory = memory_make(length);
	mx_segment_t segments[2] = {
		{memory, length / 2}, {(char *)memory + length / 2, length - length / 2}};

	if (!memory)
		return;
	if (what & 4)
		segments[0].segment_length = length;
	if (one)
		one->room = length;
	code_check(mx_irecv(ends[at], segments, what & 4 ? 1 : 2, what & what >> 4 & 3,
		what >> 4 & 3, NULL, one && what < 240 ? &one->request : NULL));
}

static void connect_begin(unsigned at)
{
	uint8_t what = script_byte(script);
	struct posted *one = posted_free(at);
	const mx_endpoint_addr_t to = addresses[what & 1];
	uint32_t id, filter = what & 128 ? 8 : FILTER;
	uint64_t nic;

	mx_decompose_endpoint_addr(to, &nic, &id);
	if (what & 64)
		id += script_byte(script);
	if (what & 32)
		nic += script_byte(script);
	if (one)
		one->room = UINT32_MAX;
	code_check(
		mx_iconnect(ends[at], nic, id, filter, what & 3, NULL, one ? &one->request : NULL));
}

static void request_call(mx_endpoint_t end)
{
	struct posted *one;
	mx_request_t *request = request_choose(&one);
	uint32_t result;
	void *context;

	switch (script_byte(script) % 6) {
	case 0:
		code_check(mx_cancel(end, request, &result));
		break;
	case 1:
		code_check(mx_forget(end, request));
		break;
	case 2:
		code_check(mx_ibuffered(end, request, &result));
		break;
	case 3:
		code_check(mx_buffered(end, request, TIMEOUT, &result));
		break;
	case 4:
		code_check(mx_context(request, &context));
		break;
	default:
		code_check(mx_set_request_timeout(end, *request, script_byte(script)));
	}
}

static void address_call(mx_endpoint_t end)
{
	mx_endpoint_addr_t address = address_choose();
	uint32_t id, session;
	uint64_t nic;
	void *context;

	switch (script_byte(script) % 5) {
	case 0:
		code_check(mx_disconnect(end, address));
		break;
	case 1:
		code_check(mx_set_endpoint_addr_context(address, ends));
		break;
	case 2:
		code_check(mx_get_endpoint_addr_context(address, &context));
		fuzz_assert(!context || context == ends);
		break;
	case 3:
		code_check(mx_decompose_endpoint_addr(address, &nic, &id));
		break;
	default:
		code_check(mx_decompose_endpoint_addr2(address, &nic, &id, &session));
	}
}

/* The handler sends, receives, disconnects, and decides, as the script says. */
static mx_unexp_handler_action_t handle(void *context, mx_endpoint_addr_t source,
	uint64_t match_value, uint32_t length, void *data_if_available)
{
	unsigned at = (unsigned)((mx_endpoint_t *)context - ends);
	const volatile char *data = data_if_available;
	uint8_t what = script_byte(script);

	(void)match_value;
	address_note(source);
	if (data && length > 0)
		(void)(data[0] + data[length - 1]); /* E1 */
	if (what & 2)
		message_receive(at);
	if (what & 4)
		message_send(at);
	if (what & 8)
		code_check(mx_disconnect(ends[at], source));
	if (what & 16)
		request_call(ends[at]);
	if (what & 32)
		any_test(ends[at]);
	return what & 1 ? MX_RECV_FINISHED : MX_RECV_CONTINUE;
}

static void handler_call(unsigned at)
{
	switch (script_byte(script) % 5) {
	case 0:
		code_check(mx_register_unexp_handler(ends[at], NULL, NULL));
		break;
	case 1:
		code_check(mx_disable_progression(ends[at]));
		break;
	case 2:
		code_check(mx_reenable_progression(ends[at]));
		break;
	case 3:
		code_check(mx_wakeup(ends[at]));
		break;
	default:
		code_check(mx_register_unexp_handler(ends[at], handle, &ends[at]));
	}
}

/* The library's thread that answers for silent programs would act when it likes, beside the script,
 * and on engines that the rest of the library does not note as its own. */
bool __wrap_endpoint_serve(struct mx_endpoint *endpoint);

bool __wrap_endpoint_serve(struct mx_endpoint *endpoint)
{
	(void)endpoint;
	return false;
}

/* --- lives */

static void end_open(unsigned at)
{
	mx_endpoint_addr_t address;

	opens++;
	/* E4 */
	fuzz_assert(mx_open_endpoint(at, at, FILTER, NULL, 0, &ends[at]) == MX_SUCCESS);
	fuzz_assert(mx_get_endpoint_addr(ends[at], &address) == MX_SUCCESS);
	addresses[at] = address;
	address_note(address);
}

static void end_close(unsigned at)
{
	fuzz_assert(mx_close_endpoint(ends[at]) == MX_SUCCESS);
	for (unsigned i = 0; i < REQUESTS; i++)
		if (posted[i].end == at)
			posted[i].request = NULL;
}

static void both_work(void)
{
	for (unsigned i = 0; i < 8; i++)
		code_check(mx_progress(ends[i % ENDS]));
}

static void step(void)
{
	uint8_t what = script_byte(script);
	unsigned at = what >> 7;

	switch (what % 16) {
	case 0:
	case 1:
		message_send(at);
		break;
	case 2:
	case 3:
		message_receive(at);
		break;
	case 4:
		connect_begin(at);
		break;
	case 5:
	case 6:
		request_test(ends[at]);
		break;
	case 7:
		any_test(ends[at]);
		break;
	case 8:
		request_call(ends[at]);
		break;
	case 9:
		address_call(ends[at]);
		break;
	case 10:
		handler_call(at);
		break;
	case 11:
	case 12:
		liar_lie();
		break;
	case 13:
		liar_forge();
		break;
	case 14:
		liar_wait(UINT64_C(1) << script_byte(script) % 36);
		break;
	default:
		if (what & 64 || opens >= OPENS_MAX)
			break;
		end_close(at);
		end_open(at);
	}
	if (what & 16)
		both_work();
}

static void connect_both(void)
{
	mx_status_t status;
	mx_request_t request;
	uint32_t result = 0, id;
	uint64_t nic;

	for (unsigned i = 0; i < ENDS; i++) {
		mx_decompose_endpoint_addr(addresses[1 - i], &nic, &id);
		fuzz_assert(mx_iconnect(ends[i], nic, id, FILTER, 0, NULL, &request) == MX_SUCCESS);
		for (result = 0; result == 0;) {
			both_work();
			fuzz_assert(mx_test(ends[i], &request, &status, &result) == MX_SUCCESS);
		}
		fuzz_assert(status.code == MX_STATUS_SUCCESS);
		address_note(status.source);
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	setenv("PTL_IFACE_NAME", "loop:fuzz;loop:fuzz", 1);
	setenv("PTL_NID", "1;2", 1);
	setenv("PTL_PROGRESS", "inline", 1);
	setenv("PTL_TELEMETRY", "off", 1); /* whose thread would not own an engine's assertions */
	setenv("PTL_PEER_TIMEOUT", "1s", 1);
	mx_set_error_handler(MX_ERRORS_RETURN);
	fuzz_assert(mx_init() == MX_SUCCESS);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script input = {data, data + size};

	if (size == 0 || size > 8192)
		return 0;
	script = &input;
	liar_begin(script);
	memset(posted, 0, sizeof(posted));
	memset(addresses, 0, sizeof(addresses));
	address_count = ENDS;
	opens = 0;
	for (unsigned i = 0; i < ENDS; i++)
		end_open(i);
	connect_both();
	for (unsigned i = 0; i < STEPS_MAX && input.at < input.end; i++)
		step();
	both_work();
	for (unsigned i = 0; i < ENDS; i++)
		end_close(i);
	while (memory_count > 0)
		free(memories[--memory_count]);
	return 0;
}
