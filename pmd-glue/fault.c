/* SPDX-License-Identifier: BSD-3-Clause */
/* fault.c - a port around a port that loses, repeats, delays, reorders and damages frames, as
 * PTL_FAULT says.
 *
 * Owned by the poll core that owns the port inside.
 *
 *      transmit --> fate --> line --> transmit of the port inside
 *      receive  <-- line <-- fate <-- receive of the port inside
 *
 * I1. The faults of the n-th frame of a side depend on the seed, the interface's number and n
 *     alone. Only the moment at which a delayed frame leaves depends on the clock.
 * I2. A line is sorted by the time at which its frames leave; frames of the same time leave in the
 *     order in which they came.
 * I3. Frames may be shared with their sender, so copies of them are damaged and repeated.
 * I4. Frames in two pieces, which refer to an application's memory, wait in the line of their
 *     sender's port only. Those that another port of this process passes to this one are copied.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include <base/clock.h>
#include <base/log.h>
#include <base/port.h>
#include <base/random.h>
#include <base/remedy.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/kinds.h>

#define LINE_FRAMES  4096u /* in flight on one side; a power of two */
#define BURST        32u
#define DETOUR_LEAST (10 * MICROSECOND) /* how much later a frame that is reordered leaves */
#define DETOUR_SPAN  (190 * MICROSECOND)
#define DELAY_MAX    (10 * SECOND)
#define FLIPS_MAX    3u                  /* bits of one frame */
#define CERTAIN      (UINT64_C(1) << 53) /* a probability is a count out of so many */

enum fault_kind { FAULT_DROP, FAULT_DUPLICATE, FAULT_REORDER, FAULT_CORRUPT, FAULT_KINDS };
enum fault_side { SIDE_TRANSMIT, SIDE_RECEIVE, SIDES };

struct fault_plan {
	uint64_t chance[FAULT_KINDS]; /* of CERTAIN */
	uint64_t delay;               /* ns */
	uint64_t seed;
	bool sides[SIDES];
};

struct line {
	struct rte_mbuf *frames[LINE_FRAMES];
	uint64_t due[LINE_FRAMES];
	uint32_t head; /* free-running, as the tail */
	uint32_t tail;
	uint64_t random;
	uint64_t decided; /* frames */
	uint64_t count[FAULT_KINDS];
};

struct fault {
	struct port port; /* first: a port is a fault */
	struct port *inside;
	struct fault_plan plan;
	struct line lines[SIDES];
};

/* --- the line --- */

static uint32_t line_length(const struct line *line)
{
	return line->tail - line->head;
}

static bool line_full(const struct line *line)
{
	return line_length(line) + 2 > LINE_FRAMES; /* a frame and its duplicate */
}

static void line_put(struct line *line, struct rte_mbuf *frame, uint64_t due)
{
	uint32_t at = line->tail++;
	for (; at != line->head && line->due[(at - 1) % LINE_FRAMES] > due; at--) {
		line->frames[at % LINE_FRAMES] = line->frames[(at - 1) % LINE_FRAMES];
		line->due[at % LINE_FRAMES] = line->due[(at - 1) % LINE_FRAMES];
	}
	line->frames[at % LINE_FRAMES] = frame;
	line->due[at % LINE_FRAMES] = due;
}

/* Copies the frames at the line's front that are due; they stay there until line_pass(). */
static uint16_t line_due(
	const struct line *line, uint64_t now, struct rte_mbuf **frames, uint16_t count)
{
	uint16_t found = 0;
	while (found < count && found < line_length(line) &&
		line->due[(line->head + found) % LINE_FRAMES] <= now) {
		frames[found] = line->frames[(line->head + found) % LINE_FRAMES];
		found++;
	}
	return found;
}

static void line_pass(struct line *line, uint16_t count)
{
	line->head += count;
}

/* --- fate --- */

static void frame_spoil(struct rte_mbuf *frame, uint64_t random)
{
	uint8_t *bytes = rte_pktmbuf_mtod(frame, uint8_t *);
	unsigned flips = 1 + (unsigned)(random >> 60) % FLIPS_MAX;
	for (unsigned n = 0; n < flips && frame->pkt_len > 0; n++) {
		uint64_t bit = random % ((uint64_t)frame->pkt_len * 8);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		random = random * RANDOM_STEP + 1;
	}
}

static struct rte_mbuf *fault_copy(struct fault *fault, const struct rte_mbuf *frame)
{
	return rte_pktmbuf_copy(frame, fault->port.pool, 0, UINT32_MAX);
}

/* Takes a frame. The same number of random numbers is drawn for each frame, whatever its fate
 * (I1). */
static void fault_decide(
	struct fault *fault, struct line *line, struct rte_mbuf *frame, uint64_t now)
{
	bool hit[FAULT_KINDS];
	uint64_t where, due;
	line->decided++;
	for (int kind = 0; kind < FAULT_KINDS; kind++) {
		hit[kind] = random_next(&line->random) >> 11 < fault->plan.chance[kind];
		line->count[kind] += hit[kind];
	}
	where = random_next(&line->random);
	due = now + fault->plan.delay;
	if (hit[FAULT_DROP]) {
		rte_pktmbuf_free(frame);
		return;
	}
	if (hit[FAULT_CORRUPT]) {
		struct rte_mbuf *copy = fault_copy(fault, frame);
		/* Without a buffer the frame is lost: a frame that is to be damaged is never passed
		 * on undamaged. */
		rte_pktmbuf_free(frame);
		if (!copy)
			return;
		frame_spoil(copy, where);
		frame = copy;
	}
	if (hit[FAULT_DUPLICATE]) {
		struct rte_mbuf *copy = fault_copy(fault, frame);
		if (copy)
			line_put(line, copy, due);
	}
	if (hit[FAULT_REORDER])
		due += DETOUR_LEAST + where % DETOUR_SPAN;
	line_put(line, frame, due);
}

/* --- the port --- */

/* Sends the frames that are due at that time. Returns false if the port inside did not take all of
 * them. */
static bool fault_send(struct fault *fault, uint64_t now)
{
	struct line *line = &fault->lines[SIDE_TRANSMIT];
	struct rte_mbuf *frames[BURST];
	uint16_t due, taken;
	do {
		due = line_due(line, now, frames, BURST);
		taken = due ? port_transmit(fault->inside, frames, due) : 0;
		line_pass(line, taken);
	} while (taken == BURST);
	return taken == due;
}

static bool fault_flush(struct fault *fault)
{
	return line_length(&fault->lines[SIDE_TRANSMIT]) == 0 || fault_send(fault, glue_now(NULL));
}

static uint16_t fault_transmit(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct fault *fault = (struct fault *)port;
	struct line *line = &fault->lines[SIDE_TRANSMIT];
	uint16_t taken = 0;
	uint64_t now;
	if (!fault->plan.sides[SIDE_TRANSMIT])
		return port_transmit(fault->inside, frames, count);
	if (!fault_flush(fault))
		return 0;
	now = glue_now(NULL);
	while (taken < count && !line_full(line))
		fault_decide(fault, line, frames[taken++], now);
	fault_flush(fault);
	return taken;
}

/* A frame that may wait here must not keep memory of its sender's, I4. */
static struct rte_mbuf *fault_own(struct fault *fault, struct rte_mbuf *frame)
{
	struct rte_mbuf *copy;
	if (frame->nb_segs == 1)
		return frame;
	copy = fault_copy(fault, frame);
	rte_pktmbuf_free(frame);
	return copy;
}

static uint16_t fault_receive(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct fault *fault = (struct fault *)port;
	struct line *line = &fault->lines[SIDE_RECEIVE];
	struct rte_mbuf *fresh[BURST];
	uint16_t received = 0;
	uint64_t now;
	fault_flush(fault);
	if (!fault->plan.sides[SIDE_RECEIVE])
		return port_receive(fault->inside, frames, count);
	if (line_length(line) + 2 * BURST <= LINE_FRAMES)
		received = port_receive(fault->inside, fresh, BURST);
	if (received == 0 && line_length(line) == 0)
		return 0;
	now = glue_now(NULL);
	for (uint16_t n = 0; n < received; n++) {
		struct rte_mbuf *frame = fault_own(fault, fresh[n]);
		if (frame)
			fault_decide(fault, line, frame, now);
	}
	received = line_due(line, now, frames, count);
	line_pass(line, received);
	return received;
}

static bool fault_link(struct port *port)
{
	struct fault *fault = (struct fault *)port;
	fault_flush(fault);
	return fault->inside->operations->link(fault->inside);
}

static void fault_counters(struct port *port, struct port_counters *counters)
{
	struct fault *fault = (struct fault *)port;
	fault->inside->operations->counters(fault->inside, counters);
}

static void fault_describe(struct port *port, struct port_description *description)
{
	struct fault *fault = (struct fault *)port;
	if (fault->inside->operations->describe)
		fault->inside->operations->describe(fault->inside, description);
	description->faults = true;
}

static void fault_select(struct port *port, const struct port_selection *wanted)
{
	struct port *inside = ((struct fault *)port)->inside;
	if (inside->operations->select)
		inside->operations->select(inside, wanted);
}

/* No interrupt announces a frame that leaves a line. */
static int fault_interrupt(struct port *port, bool on)
{
	struct fault *fault = (struct fault *)port;
	struct port *inside = fault->inside;
	if (!inside->operations->interrupt)
		return -1;
	if (on && (line_length(&fault->lines[SIDE_TRANSMIT]) > 0 ||
			  line_length(&fault->lines[SIDE_RECEIVE]) > 0))
		return -1;
	return inside->operations->interrupt(inside, on);
}

static bool fault_absent(struct port *port, uint32_t nid, uint32_t pid)
{
	return port_absent(((struct fault *)port)->inside, nid, pid);
}

static void line_drop_chains(struct line *line)
{
	uint32_t kept = line->head;
	for (uint32_t at = line->head; at != line->tail; at++) {
		struct rte_mbuf *frame = line->frames[at % LINE_FRAMES];
		if (frame->nb_segs > 1) {
			rte_pktmbuf_free(frame);
			continue;
		}
		line->frames[kept % LINE_FRAMES] = frame;
		line->due[kept++ % LINE_FRAMES] = line->due[at % LINE_FRAMES];
	}
	line->tail = kept;
}

static void fault_recall(struct port *port)
{
	struct fault *fault = (struct fault *)port;
	line_drop_chains(&fault->lines[SIDE_TRANSMIT]);
	if (fault->inside->operations->recall)
		fault->inside->operations->recall(fault->inside);
}

static void fault_close(struct port *port)
{
	static const char *const names[] = {"sent", "received"};
	struct fault *fault = (struct fault *)port;
	/* Frames in the line are on the wire: they arrive although their sender closes its port. */
	fault_send(fault, UINT64_MAX);
	for (int side = 0; side < SIDES; side++) {
		struct line *line = &fault->lines[side];
		for (; line->head != line->tail; line->head++)
			rte_pktmbuf_free(line->frames[line->head % LINE_FRAMES]);
		if (fault->plan.sides[side])
			log_info("%s: of %" PRIu64 " frames %s, PTL_FAULT dropped %" PRIu64
				 ", duplicated %" PRIu64 ", reordered %" PRIu64
				 ", corrupted %" PRIu64,
				port->name, line->decided, names[side], line->count[FAULT_DROP],
				line->count[FAULT_DUPLICATE], line->count[FAULT_REORDER],
				line->count[FAULT_CORRUPT]);
	}
	fault->inside->operations->close(fault->inside);
	free(fault);
}

static const struct port_operations fault_operations = {
	.receive = fault_receive,
	.transmit = fault_transmit,
	.link = fault_link,
	.counters = fault_counters,
	.interrupt = fault_interrupt,
	.absent = fault_absent,
	.recall = fault_recall,
	.select = fault_select,
	.describe = fault_describe,
	.close = fault_close,
};

struct port *fault_inside(struct port *port)
{
	return port->operations == &fault_operations ? ((struct fault *)port)->inside : port;
}

/* --- the specification --- */

/* Reads a decimal number with a point, whatever the locale. Returns the text behind it, or NULL. */
static const char *parse_decimal(const char *text, double *value)
{
	double place = 1;
	const char *start = text;
	bool point = false;
	*value = 0;
	for (; (*text >= '0' && *text <= '9') || (*text == '.' && !point); text++) {
		if (*text == '.') {
			point = true;
		} else if (point) {
			place /= 10;
			*value += (*text - '0') * place;
		} else {
			*value = *value * 10 + (*text - '0');
		}
	}
	return text - start > point ? text : NULL;
}

static bool parse_chance(const char *text, uint64_t *chance)
{
	double value;
	const char *end = parse_decimal(text, &value);
	if (end && *end == '%') {
		value /= 100;
		end++;
	}
	if (!end || *end || value > 1)
		return false;
	*chance = (uint64_t)(value * (double)CERTAIN);
	return true;
}

static bool parse_delay(const char *text, uint64_t *delay)
{
	static const struct {
		const char *name;
		uint64_t length;
	} units[] = {{"ns", 1}, {"us", MICROSECOND}, {"ms", MILLISECOND}, {"s", SECOND}};
	double value;
	const char *end = parse_decimal(text, &value);
	for (size_t n = 0; end && n < sizeof(units) / sizeof(units[0]); n++) {
		if (strcmp(end, units[n].name) != 0 ||
			value * (double)units[n].length > (double)DELAY_MAX)
			continue;
		*delay = (uint64_t)(value * (double)units[n].length);
		return true;
	}
	return false;
}

static bool parse_seed(const char *text, uint64_t *seed)
{
	*seed = 0;
	if (!*text || strlen(text) > 19)
		return false;
	for (; *text >= '0' && *text <= '9'; text++)
		*seed = *seed * 10 + (uint64_t)(*text - '0');
	return *text == 0;
}

static bool parse_sides(const char *text, bool *sides)
{
	bool both = strcmp(text, "both") == 0;
	sides[SIDE_TRANSMIT] = both || strcmp(text, "send") == 0;
	sides[SIDE_RECEIVE] = both || strcmp(text, "receive") == 0;
	return sides[SIDE_TRANSMIT] || sides[SIDE_RECEIVE];
}

/* Reads one "name=value". Returns a description of valid values if this one is invalid, else
 * NULL. */
static const char *parse_item(const char *name, const char *value, struct fault_plan *plan)
{
	static const char *const kinds[] = {"drop", "dup", "reorder", "corrupt"};
	static const char chance[] = "write a chance such as 0.01 or 1%";
	for (int kind = 0; kind < FAULT_KINDS; kind++)
		if (strcmp(name, kinds[kind]) == 0)
			return parse_chance(value, &plan->chance[kind]) ? NULL : chance;
	if (strcmp(name, "delay") == 0)
		return parse_delay(value, &plan->delay)
			       ? NULL
			       : "write a length of time such as 50us, at most 10s";
	if (strcmp(name, "seed") == 0)
		return parse_seed(value, &plan->seed) ? NULL : "write a number such as 7";
	if (strcmp(name, "on") == 0)
		return parse_sides(value, plan->sides) ? NULL
						       : "write on=send, on=receive or on=both";
	return "the faults are drop, dup, reorder, corrupt, delay, seed and on";
}

static int fault_parse(const char *specification, struct fault_plan *plan)
{
	char text[256];
	char *rest = text;
	if (strlen(specification) >= sizeof(text)) {
		log_error("PTL_FAULT is too long: use at most %zu letters for an interface",
			sizeof(text) - 1);
		return -1;
	}
	strcpy(text, specification);
	while (rest) {
		char *item = strsep(&rest, ",");
		char *value = strchr(item, '=');
		const char *remedy =
			"write it as "
			"drop=0.01,dup=0.001,reorder=0.01,delay=50us,corrupt=0.0001,seed=7";
		item += strspn(item, " ");
		if (!*item)
			continue;
		if (value) {
			*value++ = 0;
			remedy = parse_item(item, value, plan);
		}
		if (remedy) {
			log_error("PTL_FAULT: %s%s%s is invalid: %s", item, value ? "=" : "",
				value ? value : "", remedy);
			return -1;
		}
	}
	return 0;
}

/* Starts to follow the plan. Frames that wait in a line still leave at their times, so a side that
 * has a line keeps it (I2). */
static void fault_begin(struct fault *fault, unsigned interface, const struct fault_plan *plan)
{
	fault->plan = *plan;
	for (unsigned side = 0; side < SIDES; side++) {
		struct line *line = &fault->lines[side];
		fault->plan.sides[side] |= line_length(line) > 0;
		line->random = plan->seed;
		line->random = random_next(&line->random) + (uint64_t)interface * SIDES + side;
		line->random = random_next(&line->random);
	}
}

static struct fault_plan plan_default(void)
{
	return (struct fault_plan){.seed = 1, .sides[SIDE_TRANSMIT] = true};
}

struct port *fault_open(struct port *port, unsigned interface, const char *specification)
{
	struct fault *fault = calloc(1, sizeof(*fault));
	struct fault_plan plan = plan_default();
	if (!fault)
		log_error("%s: out of memory for PTL_FAULT: unset it, or %s", port->name,
			remedy_for_memory());
	if (!fault || fault_parse(specification, &plan) != 0) {
		free(fault);
		port->operations->close(port);
		return NULL;
	}
	fault->port = *port;
	fault->port.operations = &fault_operations;
	fault->port.guards = false; /* fault_copy() is not */
	fault->inside = port;
	fault_begin(fault, interface, &plan);
	return &fault->port;
}

int glue_fault_change(struct port *port, unsigned interface, const char *specification)
{
	struct fault_plan plan = plan_default();
	if (port->operations != &fault_operations) {
		log_error("faults of %s cannot be changed because the interface was opened without "
			  "PTL_FAULT: start the program with PTL_FAULT=drop=0",
			port->name[0] ? port->name : "the loopback");
		return -1;
	}
	if (fault_parse(specification, &plan) != 0)
		return -1;
	fault_begin((struct fault *)port, interface, &plan);
	return 0;
}
