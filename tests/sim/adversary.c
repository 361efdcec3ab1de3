/* SPDX-License-Identifier: BSD-3-Clause */
/* adversary.c - see adversary.h. */
#include <sim/adversary.h>

#include <stdlib.h>
#include <string.h>

#include <sim/report.h>

#define KEPT_MAX    4096 /* frames, of the whole run alike */
#define SOON        0.5  /* of what he sends: within the time in which windows move */
#define SOON_TIME   MILLISECOND
#define ELSEWHERE   0.05 /* of repeated frames: from another MAC address */
#define TO_ANOTHER  0.1  /* to another node */
#define SOURCE_AT   6
#define ADDRESS_END 12

struct kept {
	uint8_t *bytes;
	uint32_t length;
};

struct archive {
	struct kept kept[KEPT_MAX];
	uint64_t seen;
};

/* Each frame of the run is kept with the same chance. */
static void frame_keep(struct star *star, const struct parcel *parcel)
{
	struct archive *archive = star->archive;
	uint64_t place = archive->seen++;
	struct kept *kept;

	if (place >= KEPT_MAX)
		place = prng_below(&star->prng, archive->seen);
	if (place >= KEPT_MAX)
		return;
	kept = &archive->kept[place];
	free(kept->bytes);
	kept->bytes = report_memory(malloc(parcel->length));
	kept->length = parcel->length;
	if (parcel->frame != NULL)
		star->frame_copy(parcel->frame, kept->bytes);
	else
		memcpy(kept->bytes, parcel->bytes, parcel->length);
}

static uint64_t later(struct star *star)
{
	uint64_t most = prng_chance(&star->prng, SOON) ? SOON_TIME : star->settings.repeat_time;

	return star->clock->now + prng_below(&star->prng, most);
}

static void frame_repeat(struct star *star)
{
	const struct archive *archive = star->archive;
	uint64_t count = archive->seen < KEPT_MAX ? archive->seen : KEPT_MAX;
	const struct kept *kept = &archive->kept[prng_below(&star->prng, count)];
	uint32_t other = (uint32_t)prng_below(&star->prng, star->nodes);
	struct parcel *parcel = star_parcel(star, other, kept->length);

	memcpy(parcel->bytes, kept->bytes, kept->length);
	if (kept->length >= ADDRESS_END && prng_chance(&star->prng, ELSEWHERE))
		star_address(other, 0, parcel->bytes + SOURCE_AT);
	if (kept->length >= ADDRESS_END && prng_chance(&star->prng, TO_ANOTHER))
		star_address((uint32_t)prng_below(&star->prng, star->nodes), 0, parcel->bytes);
	star->counters.repeated++;
	star_pass(star, parcel, later(star));
}

bool adversary_sees(struct star *star, struct parcel *parcel, uint64_t when)
{
	if (star->archive == NULL)
		star->archive = report_memory(calloc(1, sizeof(*star->archive)));
	frame_keep(star, parcel);
	if (prng_chance(&star->prng, star->settings.repeat))
		frame_repeat(star);
	if (!prng_chance(&star->prng, star->settings.withhold))
		return false;
	star->counters.withheld++;
	star_pass(star, parcel, when + later(star) - star->clock->now);
	return true;
}

void adversary_free(struct star *star)
{
	for (unsigned i = 0; star->archive != NULL && i < KEPT_MAX; i++)
		free(star->archive->kept[i].bytes);
	free(star->archive);
}
