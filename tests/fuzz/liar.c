/* SPDX-License-Identifier: BSD-3-Clause */
/* liar.c - see liar.h. */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/random.h>
#include <sys/syscall.h>

#include <host/events.h>
#include <pmd-glue/glue.h>
#include <transport/transport.h>
#include <wire/message.h>

#include "fuzz.h"
#include "liar.h"

#define LANES         64 /* interfaces that were opened last */
#define SEEN          16 /* headers that were seen last */
#define FORGED        16
#define DATA          70000 /* bytes of a forged message, at most */
#define BEGINNING     256   /* of one that goes on for ever */
#define LOOK_TAKES    200   /* ns between two looks at the clock */
#define BACKOFF_TAKES 20000000

/* An interface: its transport, and who wants to hear from that. */
struct lane {
	struct transport *transport;
	struct transport_upcalls upcalls;
	struct process self;
};

/* A message that nobody sent. */
struct forgery {
	struct lane *lane;
	struct process from;
	struct message_header header;
	uint32_t length;
	bool begun; /* the rest never comes */
};

static struct script *script;
static struct lane lanes[LANES];
static unsigned lane_count;
static struct {
	struct message_header header;
	struct process from;
} seen[SEEN];
static unsigned seen_count;
static struct forgery forged[FORGED];
static unsigned forged_count;
static unsigned countdown;      /* messages until one is a lie; 0: none is */
static _Thread_local bool acts; /* this thread, which has the script */
static uint64_t now, entropy;
static uint8_t data_bytes[DATA];

void liar_begin(struct script *of)
{
	script = of;
	lane_count = seen_count = forged_count = countdown = 0;
	acts = true;
	now = 1000000000;
	entropy = 1;
}

void liar_wait(uint64_t time)
{
	now += time;
}

void liar_lie(void)
{
	countdown = 1 + script_byte(script) % 8;
}

/* --- lies */

/* Mostly something that was said of the same thing elsewhere, or a little off. */
static uint64_t word_other(uint64_t value, unsigned field)
{
	uint8_t how = script_byte(script);
	const uint64_t *words =
		(const uint64_t *)(const void *)&seen[script_byte(script) % SEEN].header;

	if (how < 96)
		return value + how % 16 - 8;
	if (how < 176)
		return words[2 + field];
	if (how < 208)
		return script_word(script);
	return how < 232 ? UINT64_C(1) << script_byte(script) % 64 : UINT64_MAX >> how % 64;
}

static void header_change(struct message_header *header)
{
	uint8_t what = script_byte(script), more = script_byte(script);

	if (what & 1)
		header->kind = (uint8_t)(more % 16 + (more == 255 ? 240 : 0));
	if (what & 2)
		header->portal = more >> 4 & 3;
	if (what & 4)
		header->match_bits = word_other(header->match_bits, 0);
	if (what & 8)
		header->value = word_other(header->value, 1);
	if (what & 16)
		header->requested = word_other(header->requested, 2);
	if (what & 32)
		header->operation = word_other(header->operation, 3);
	if (what & 64)
		header->handle = word_other(header->handle, 4);
	if (what & 128)
		header->offset = word_other(header->offset, 5);
	if (more & 64)
		header->cookie = (uint32_t)word_other(header->cookie, 0);
	if (more & 128) {
		header->detail = script_byte(script) & (MESSAGE_VERDICT | MESSAGE_TIER);
		header->space = script_byte(script) % 3;
	}
}

/* Codes a header; returns 0 if there is none that is read as it (L2). */
static uint32_t header_code(
	struct message_header *header, uint64_t extent, uint8_t bytes[MESSAGE_HEADER_BYTES])
{
	struct message_header again;
	uint32_t length = message_encode(header, bytes);

	return message_decode(bytes, length, extent, &again) ? length : 0;
}

/* Is the message that comes a lie? Returns false if it is lost; header: what is to be said. */
static bool message_pass(struct process from, const void *header, uint32_t *header_length,
	uint64_t extent, uint8_t bytes[MESSAGE_HEADER_BYTES])
{
	struct message_header decoded;

	memcpy(bytes, header, *header_length);
	if (!message_decode(bytes, *header_length, extent, &decoded))
		return true;
	seen[seen_count % SEEN].header = decoded;
	seen[seen_count++ % SEEN].from = from;
	if (countdown == 0 || --countdown != 0)
		return true;
	if (script_byte(script) % 4 == 0)
		return false;
	header_change(&decoded);
	*header_length = header_code(&decoded, extent, bytes);
	return *header_length != 0;
}

void liar_forge(void)
{
	static const uint32_t lengths[] = {0, 1, 8, 100, 1024, 32768, 32769, DATA};
	uint8_t what = script_byte(script), whom = script_byte(script);
	struct forgery *forgery = &forged[forged_count];

	if (lane_count == 0 || forged_count == FORGED)
		return;
	*forgery =
		(struct forgery){.lane = &lanes[whom % (lane_count < LANES ? lane_count : LANES)],
			.header = seen[what % SEEN].header,
			.from = seen[what % SEEN].from,
			.length = lengths[whom >> 5],
			.begun = what & 64 || whom >> 5 >= 6}; /* no frame has so much */
	if (what & 16)                                         /* a stranger */
		forgery->from.nid += script_byte(script);
	if (what & 32)
		forgery->from.pid += script_byte(script) - 128u;
	header_change(&forgery->header);
	forged_count += forgery->lane->transport != NULL;
}

static void forgery_hand_in(const struct forgery *forgery)
{
	const struct transport_upcalls *upcalls = &forgery->lane->upcalls;
	struct message_header header = forgery->header;
	uint8_t bytes[MESSAGE_HEADER_BYTES];
	uint64_t extent = forgery->begun ? forgery->length + BEGINNING : forgery->length;
	uint32_t length = header_code(&header, extent, bytes);
	struct record record = {.kind = RECORD_START,
		.header = bytes,
		.header_length = (uint8_t)length,
		.data = data_bytes,
		.data_length = BEGINNING,
		.extent = extent};
	struct inbound inbound = {0};

	if (length == 0)
		return;
	if (!forgery->begun) {
		upcalls->message_whole(upcalls->context, forgery->from, bytes, length, data_bytes,
			forgery->length);
		return;
	}
	upcalls->message_begin(upcalls->context, forgery->from, &record, &inbound);
	if (inbound.want_end)
		upcalls->message_end(upcalls->context, inbound.context, TRANSPORT_DEAD);
}

/* --- between transport and engine */

static void lane_whole(void *context, struct process from, const void *header,
	uint32_t header_length, const void *data, uint32_t length)
{
	const struct lane *lane = context;
	uint8_t bytes[MESSAGE_HEADER_BYTES];

	if (message_pass(from, header, &header_length, length, bytes))
		lane->upcalls.message_whole(
			lane->upcalls.context, from, bytes, header_length, data, length);
}

static void lane_begin(
	void *context, struct process from, const struct record *record, struct inbound *inbound)
{
	const struct lane *lane = context;
	struct record said = *record;
	uint8_t bytes[MESSAGE_HEADER_BYTES];
	uint32_t length = record->header_length;

	if (!message_pass(from, record->header, &length, record->extent, bytes))
		return;
	said.header = bytes;
	said.header_length = (uint8_t)length;
	lane->upcalls.message_begin(lane->upcalls.context, from, &said, inbound);
}

static void lane_end(void *context, void *inbound_context, enum transport_fail why)
{
	const struct lane *lane = context;

	lane->upcalls.message_end(lane->upcalls.context, inbound_context, why);
}

static void lane_done(void *context, struct message *message, enum transport_fail why)
{
	const struct lane *lane = context;

	lane->upcalls.message_done(lane->upcalls.context, message, why);
}

static void lane_ping_done(void *context, struct ping *ping)
{
	const struct lane *lane = context;

	lane->upcalls.ping_done(lane->upcalls.context, ping);
}

static void lane_duplicate(void *context, const uint8_t *address)
{
	const struct lane *lane = context;

	lane->upcalls.duplicate(lane->upcalls.context, address);
}

struct transport *__real_transport_create(const struct transport_options *options,
	struct port *port, const struct clock *clock, const struct transport_upcalls *upcalls,
	struct transport_counters *counters);
struct transport *__wrap_transport_create(const struct transport_options *options,
	struct port *port, const struct clock *clock, const struct transport_upcalls *upcalls,
	struct transport_counters *counters);
void __real_transport_close(struct transport *transport);
void __wrap_transport_close(struct transport *transport);
void __real_transport_process(struct transport *transport);
void __wrap_transport_process(struct transport *transport);

struct transport *__wrap_transport_create(const struct transport_options *options,
	struct port *port, const struct clock *clock, const struct transport_upcalls *upcalls,
	struct transport_counters *counters)
{
	struct lane *lane = &lanes[lane_count++ % LANES];
	const struct transport_upcalls own = {.message_whole = lane_whole,
		.message_begin = lane_begin,
		.message_end = lane_end,
		.message_done = lane_done,
		.ping_done = lane_ping_done,
		.duplicate = lane_duplicate,
		.context = lane};

	fuzz_assert(!lane->transport || lane_count > LANES);
	*lane = (struct lane){.upcalls = *upcalls, .self = options->self};
	lane->transport = __real_transport_create(options, port, clock, &own, counters);
	return lane->transport;
}

static struct lane *lane_of(const struct transport *transport)
{
	for (unsigned i = 0; i < LANES; i++)
		if (lanes[i].transport == transport)
			return &lanes[i];
	return NULL;
}

void __wrap_transport_close(struct transport *transport)
{
	struct lane *lane = lane_of(transport);

	__real_transport_close(transport);
	fuzz_assert(lane);
	lane->transport = NULL;
}

/* L1 */
void __wrap_transport_process(struct transport *transport)
{
	struct lane *lane = lane_of(transport);

	for (unsigned i = 0; i < forged_count; i++) {
		if (forged[i].lane != lane)
			continue;
		const struct forgery forgery = forged[i];

		forged[i--] = forged[--forged_count];
		forgery_hand_in(&forgery);
	}
	__real_transport_process(transport);
}

/* --- tables that are as large as a script needs: pages are most of what opening takes */

#define ENTRIES 1024
#define KEPT    8192
#define EVENTS  4096

enum answer __real_postern_core_interface_open_space(const struct front *front, uint64_t interface,
	const struct space_choice *choice, const struct segment_limits *limits, uint64_t *handle);
enum answer __wrap_postern_core_interface_open_space(const struct front *front, uint64_t interface,
	const struct space_choice *choice, const struct segment_limits *limits, uint64_t *handle);
enum answer __real_postern_core_events_make(
	const struct visit *visit, uint64_t count, uint64_t *handle);
enum answer __wrap_postern_core_events_make(
	const struct visit *visit, uint64_t count, uint64_t *handle);

enum answer __wrap_postern_core_interface_open_space(const struct front *front, uint64_t interface,
	const struct space_choice *choice, const struct segment_limits *limits, uint64_t *handle)
{
	struct segment_limits small = *limits;

	small.entries = small.attached = ENTRIES;
	small.list_length = ENTRIES;
	small.regions = 2 * ENTRIES;
	small.unexpected = KEPT;
	return __real_postern_core_interface_open_space(front, interface, choice, &small, handle);
}

enum answer __wrap_postern_core_events_make(
	const struct visit *visit, uint64_t count, uint64_t *handle)
{
	return __real_postern_core_events_make(visit, count < EVENTS ? count : EVENTS, handle);
}

/* --- time and chance */

uint64_t __wrap_glue_now(void *context);
void __wrap_postern_core_backoff(unsigned *looks);
ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned flags);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

uint64_t __wrap_glue_now(void *context)
{
	(void)context;
	return now += LOOK_TAKES;
}

/* A thread waits for something. */
void __wrap_postern_core_backoff(unsigned *looks)
{
	(void)looks;
	now += BACKOFF_TAKES;
}

/* Nobody else would wake this thread, which is the only one that acts: a sleep takes its time at
 * once. */
long __wrap_syscall(long number, ...)
{
	long words[5]; /* as many as come in registers */
	va_list arguments;

	va_start(arguments, number);
	for (unsigned i = 0; i < 5; i++)
		words[i] = va_arg(arguments, long);
	va_end(arguments);
	if (!acts || (number != SYS_futex && number != SYS_futex_waitv))
		return __real_syscall(number, words[0], words[1], words[2], words[3], words[4]);
	now += BACKOFF_TAKES;
	errno = ETIMEDOUT;
	return -1;
}

ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned flags)
{
	uint8_t *bytes = buffer;

	(void)flags;
	for (size_t i = 0; i < size; i++) {
		entropy = entropy * UINT64_C(6364136223846793005) + 1442695040888963407;
		bytes[i] = (uint8_t)(entropy >> 56);
	}
	return (ssize_t)size;
}
