/* SPDX-License-Identifier: BSD-3-Clause */
/* agenda.c - see agenda.h. */
#include <stddef.h>

#include "agenda.h"

#define SWEEP_LAST (UINT64_C(4) << 20)
#define SMALL      8

/* The sizes of a measure: as given, else one that shows what is asked for, else a sweep. */
static struct numbers sizes_of(const struct options *options, enum measure measure)
{
	bool special = options->depths.items[0] > 0 || options->peers.count > 1 ||
		       options->peers.items[0] > 1 || options->pairs.count > 1 ||
		       options->pairs.items[0] > 1 || options->fault_count > 0;
	struct numbers sizes = options->sizes;

	if (measure == MEASURE_FETCH_LATENCY) /* an element */
		return (struct numbers){.count = 1, .items = {SMALL}};
	if (sizes.count > 0)
		return sizes;
	if (measure_is_rate(measure) || measure_is_search(measure) || special)
		return (struct numbers){.count = 1, .items = {SMALL}};
	for (uint64_t size = 1; size <= SWEEP_LAST; size <<= 1)
		sizes.items[sizes.count++] = size;
	return sizes;
}

/* Every size of a measure, with everything else as it is in the trial. */
static void sizes_run(const struct agenda *agenda, struct trial *trial,
	void (*run)(void *context, const struct trial *trial), void *context)
{
	struct numbers sizes = sizes_of(agenda->options, trial->measure);

	for (unsigned i = 0; i < sizes.count; i++) {
		trial->size = sizes.items[i];
		run(context, trial);
	}
}

/* Every shape of the match list. */
static void shapes_run(const struct agenda *agenda, struct trial *trial,
	void (*run)(void *context, const struct trial *trial), void *context)
{
	const struct options *options = agenda->options;

	for (unsigned w = 0; w < options->wildcards.count; w++)
		for (unsigned p = 0; p < options->positions.count; p++)
			for (unsigned d = 0; d < options->depths.count; d++) {
				trial->shape = (struct match_shape){
					.depth = (uint32_t)options->depths.items[d],
					.wildcards = (uint32_t)options->wildcards.items[w],
					.position = (enum position)options->positions.items[p],
				};
				sizes_run(agenda, trial, run, context);
			}
}

void agenda_run(const struct agenda *agenda, const char *faults,
	void (*run)(void *context, const struct trial *trial), void *context)
{
	const struct options *options = agenda->options;

	/* One of the two lists has one item, which is 1. */
	unsigned most = options->peers.count * options->pairs.count;

	for (unsigned m = 0; m < MEASURE_COUNT; m++)
		for (unsigned i = 0; options->measures[m] && i < most; i++) {
			struct trial trial = {
				.measure = (enum measure)m,
				.peers = (unsigned)options->peers.items[i % options->peers.count],
				.pairs = (unsigned)options->pairs.items[i % options->pairs.count],
				.faults = faults,
				.two_sided = !library_has_lists(options->library),
			};

			shapes_run(agenda, &trial, run, context);
		}
}

static void agenda_count(void *context, const struct trial *trial)
{
	struct agenda *agenda = context;

	agenda->steps++;
	if (trial->size > agenda->largest)
		agenda->largest = trial->size;
	if (trial->peers > agenda->peers)
		agenda->peers = trial->peers;
	if (trial->pairs > agenda->pairs)
		agenda->pairs = trial->pairs;
}

struct agenda agenda_make(const struct options *options)
{
	struct agenda agenda = {.options = options};

	agenda_run(&agenda, NULL, agenda_count, &agenda);
	return agenda;
}
