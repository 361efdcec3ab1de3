/* SPDX-License-Identifier: BSD-3-Clause */
/* bare.c - see bare.h. */
#include <string.h>
#include <time.h>

#include <rte_byteorder.h>
#include <rte_mbuf.h>

#include <base/port.h>

#include "bare_frame.h"

#define WINDOWS      2u /* on their way, as stream.h has it for messages */
#define WINDOW_LEAST 2u
#define WINDOW_MOST  65536u

#define LOOK_TURNS  16u                 /* idle turns between two looks at the clock */
#define IDLE_SPINS  (50 * MICROSECOND)  /* of silence, before others have the CPU, */
#define IDLE_NAP    (50 * MICROSECOND)  /* for so long each time */
#define SAY_TIME    MILLISECOND         /* between two words into silence */
#define RESEND_TIME (50 * MILLISECOND)  /* until a message that is not answered counts as lost */
#define END_TIMEOUT (100 * MILLISECOND) /* the measure is over, whether the peer knows or not */
#define TIMEOUT     (3 * SECOND)

/* --- the measures: how much each end sends, and when */

static uint32_t frames_of(const struct bare *bare, uint64_t size)
{
	return size <= bare->payload ? 1 : (uint32_t)((size + bare->payload - 1) / bare->payload);
}

static void parts_assign(struct bare *bare, uint64_t size)
{
	bool asks = measure_gets(bare->measure);

	bare->out_size = asks && bare->client ? 0 : size;
	bare->in_size = asks && !bare->client ? 0 : size;
	bare->out_frames = frames_of(bare, bare->out_size);
	bare->in_frames = frames_of(bare, bare->in_size);
	bare->streams = !measure_is_latency(bare->measure) &&
			(bare->measure == MEASURE_BIDIRECTIONAL || bare->client != asks);
}

/* A port loses no frame as long as it has room to hold frames for a receiver that does not look. */
static uint32_t window_fit(const struct bare *bare, uint64_t frames)
{
	uint64_t most = bare->port->receive_frames > 0 ? bare->port->receive_frames : WINDOW_MOST;

	if (frames > most)
		frames = most;
	return frames < WINDOW_LEAST ? WINDOW_LEAST : (uint32_t)frames;
}

void bare_open(struct bare *bare, const struct bare_options *options)
{
	struct encapsulation_options link = {.vlan = options->encapsulation->vlan};

	memset(bare, 0, sizeof(*bare));
	histogram_clear(&bare->times);
	encapsulation_init(&bare->link, &link, options->port->address, false);
	bare->port = options->port;
	bare->memory = options->memory;
	bare->memory_size = options->memory_size;
	bare->client = options->client;
	bare->session = options->session;
	bare->effort = options->effort;
	bare->measure = options->measure;
	bare->messages = options->window;
	bare->payload =
		bare->port->frame_size - bare->link.bytes - (uint32_t)sizeof(struct bare_header);
	bare->size = options->size;
	if (!bare->client)
		return;
	memcpy(bare->to, &options->to, BARE_ADDRESS);
	bare->cost = clock_cost();
	bare->window =
		window_fit(bare, (uint64_t)options->window * WINDOWS * frames_of(bare, bare->size));
	bare->owed = 1u << BARE_HELLO;
}

void bare_close(struct bare *bare)
{
	rte_pktmbuf_free_bulk(&bare->pending[bare->pending_at], bare->pending_count);
	bare->pending_count = 0;
}

/* --- the client's measure */

static void message_send(struct bare *bare)
{
	bare->number++;
	bare->index = 0;
	bare->due = bare->out_frames;
	bare->start = clock_look();
}

/* Frames that have arrived, at the other end or, where that one sends, here. */
static uint64_t frames_done(const struct bare *bare)
{
	return bare->arrived + bare->received;
}

static uint64_t messages_done(const struct bare *bare)
{
	return (frames_done(bare) - bare->base) /
	       (bare->streams ? bare->out_frames : bare->in_frames);
}

static void course_start(struct bare *bare, bool warm_up)
{
	bare->base = frames_done(bare);
	bare->course = course_begin(
		&bare->effort, !measure_is_latency(bare->measure) ? bare->messages : 1, warm_up);
	histogram_clear(&bare->times);
	bare->state = warm_up ? BARE_WARM : BARE_RUN;
}

static void course_end(struct bare *bare, uint64_t messages, uint64_t now)
{
	if (bare->state == BARE_WARM) {
		course_start(bare, false);
		return;
	}
	bare->result = (struct result){
		.window = bare->messages,
		.messages = messages,
		.seconds = (double)(now - bare->course.start) / (double)SECOND,
		.times = !measure_is_latency(bare->measure) ? NULL : &bare->times,
	};
	bare->state = BARE_END;
	bare->owed |= 1u << BARE_BYE;
}

/* A message was answered. */
static void answered(struct bare *bare)
{
	uint64_t now = clock_look();
	/* what goes there and back is two messages, a question is none */
	unsigned ways = measure_gets(bare->measure) ? 1 : 2;

	histogram_add(&bare->times, clock_between(bare->start, now, bare->cost) / ways);
	if (course_part(&bare->course, bare->times.count, now) >= 1)
		course_end(bare, bare->times.count, now);
	if (bare->state != BARE_END)
		message_send(bare);
}

/* Half a window has arrived somewhere. */
static void counted(struct bare *bare)
{
	uint64_t messages = messages_done(bare);
	uint64_t now = clock_look();

	if (course_part(&bare->course, messages / bare->messages, now) >= 1)
		course_end(bare, messages, now);
}

double bare_part(const struct bare *bare)
{
	uint64_t done = bare->times.count;

	if (bare->state != BARE_RUN)
		return bare->state < BARE_RUN ? 0 : 1;
	if (!measure_is_latency(bare->measure))
		done = messages_done(bare) / bare->messages;
	return course_part(&bare->course, done, clock_look());
}

/* --- receiving */

static bool running(const struct bare *bare)
{
	return bare->state == BARE_WARM || bare->state == BARE_RUN;
}

static void hello_heard(struct bare *bare, const struct bare_header *header, const uint8_t *frame)
{
	uint64_t size;

	memcpy(&size, frame + bare->link.bytes + sizeof(*header), sizeof(size));
	if (bare->client || header->measure >= MEASURE_COUNT || size > bare->memory_size ||
		header->index == 0)
		return;
	bare->owed |= 1u << BARE_WELCOME;
	if (bare->state != BARE_MEET) /* said again: the answer was lost */
		return;
	memcpy(bare->to, frame + BARE_ADDRESS, BARE_ADDRESS);
	bare->measure = header->measure;
	bare->size = size;
	if (header->index < bare->payload)
		bare->payload = header->index;
	bare->window = window_fit(bare, header->number);
	parts_assign(bare, size);
	bare->state = BARE_RUN;
}

static void welcome_heard(struct bare *bare, const struct bare_header *header)
{
	if (!bare->client || bare->state != BARE_MEET || header->index == 0 ||
		header->index > bare->payload)
		return;
	bare->payload = header->index;
	bare->window = window_fit(bare, header->number);
	parts_assign(bare, bare->size);
	course_start(bare, true);
	if (measure_is_latency(bare->measure))
		message_send(bare);
}

static void credit_heard(struct bare *bare, const struct bare_header *header)
{
	uint32_t newly = header->number - (uint32_t)bare->arrived;

	if (!bare->streams || header->sequence - bare->passed > bare->sent - bare->passed)
		return;
	bare->passed = header->sequence;
	bare->arrived += newly;
	if (bare->client && running(bare))
		counted(bare);
}

static void message_heard(struct bare *bare, uint32_t number)
{
	if (!bare->client) {
		bare->number = number;
		bare->index = 0;
		bare->due = bare->out_frames;
	} else if (number == bare->number && running(bare)) {
		answered(bare);
	}
}

static void data_heard(struct bare *bare, const struct bare_header *header, const uint8_t *payload,
	uint32_t length)
{
	uint32_t wanted;

	if (bare->state == BARE_MEET || header->index >= bare->in_frames)
		return;
	wanted = bare_payload(bare->in_size, bare->payload, header->index);
	if (length < wanted)
		return;
	memcpy(bare->memory + (uint64_t)header->index * bare->payload, payload, wanted);
	bare->expected = header->sequence + 1;
	bare->received++;
	if (measure_is_latency(bare->measure)) {
		if (header->index == bare->in_frames - 1)
			message_heard(bare, header->number);
	} else if (bare->received - bare->credited >= bare->window / 2) {
		bare->credited = bare->received;
		bare->owed |= 1u << BARE_CREDIT;
		if (bare->client && running(bare))
			counted(bare);
	}
}

static void bye_heard(struct bare *bare)
{
	if (bare->client || bare->state == BARE_MEET)
		return;
	bare->state = BARE_END;
	bare->owed |= 1u << BARE_ENDED;
}

static void frame_heard(struct bare *bare, const struct rte_mbuf *mbuf)
{
	const uint8_t *frame = rte_pktmbuf_mtod(mbuf, const uint8_t *);
	uint32_t before = bare->link.bytes + (uint32_t)sizeof(struct bare_header);
	struct bare_header header;
	uint16_t type;

	if (mbuf->data_len < FRAME_LEAST - ENCAPSULATION_TAG_BYTES || mbuf->nb_segs != 1)
		return;
	memcpy(&type, frame + bare->link.bytes - sizeof(type), sizeof(type));
	memcpy(&header, frame + bare->link.bytes, sizeof(header));
	if (type != rte_cpu_to_be_16(BARE_ETHERTYPE) || header.session != bare->session)
		return;
	bare->quiet = 0;
	switch (header.kind) {
	case BARE_DATA:
		data_heard(bare, &header, frame + before, mbuf->data_len - before);
		break;
	case BARE_CREDIT:
		credit_heard(bare, &header);
		break;
	case BARE_PROBE: /* what was sent before it has arrived, or never will */
		bare->expected = header.sequence;
		bare->credited = bare->received;
		bare->owed |= 1u << BARE_CREDIT;
		break;
	case BARE_HELLO:
		hello_heard(bare, &header, frame);
		break;
	case BARE_WELCOME:
		welcome_heard(bare, &header);
		break;
	case BARE_BYE:
		bye_heard(bare);
		break;
	case BARE_ENDED:
		if (bare->state == BARE_END && bare->client)
			bare->state = BARE_DONE;
		break;
	default:
		break;
	}
}

/* --- turns */

/* Nothing has come for a while: the expected frames may have been lost. */
static void speak(struct bare *bare, uint64_t silence)
{
	if (bare->state == BARE_MEET)
		bare->owed |= bare->client ? 1u << BARE_HELLO : 0;
	else if (bare->state == BARE_END)
		bare->owed |= bare->client ? 1u << BARE_BYE : 0;
	else if (bare->streams)
		bare->owed |= 1u << BARE_PROBE;
	else if (bare->client && !measure_is_latency(bare->measure))
		bare->owed |= 1u << BARE_CREDIT;
	else if (bare->client && silence > RESEND_TIME && bare->due == 0 &&
		 bare->pending_count == 0) {
		message_send(bare);
	}
}

static void idle(struct bare *bare)
{
	const struct timespec nap = {.tv_nsec = IDLE_NAP};
	uint64_t now = clock_look();

	if (bare->quiet == 0) {
		bare->quiet = bare->said = now;
		return;
	}
	if (now - bare->quiet > IDLE_SPINS)
		nanosleep(&nap, NULL);
	if (now - bare->quiet > TIMEOUT)
		bare->state = BARE_LOST;
	else if (bare->client && bare->state == BARE_END && now - bare->quiet > END_TIMEOUT)
		bare->state = BARE_DONE;
	if (now - bare->said < SAY_TIME)
		return;
	bare->said = now;
	speak(bare, now - bare->quiet);
}

bool bare_turn(struct bare *bare)
{
	struct rte_mbuf *frames[BARE_BURST];
	uint16_t count = port_receive(bare->port, frames, BARE_BURST);

	for (unsigned i = 0; i < count; i++)
		frame_heard(bare, frames[i]);
	if (count > 0) {
		rte_pktmbuf_free_bulk(frames, count);
		bare->idle = 0;
	} else if (++bare->idle % LOOK_TURNS == 0) {
		idle(bare);
	}
	bare_send(bare);
	if (bare->state == BARE_END && !bare->client && bare->owed == 0 && bare->pending_count == 0)
		bare->state = BARE_DONE;
	return bare->state < BARE_DONE;
}
