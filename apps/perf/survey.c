/* SPDX-License-Identifier: BSD-3-Clause */
/* survey.c - see survey.h. */
#include <stdlib.h>

#include "survey.h"

/* The progress of a run as that of the whole. */
struct stage {
	double done;
	double share;
	void (*progress)(void *context, double part);
	void *context;
};

static void stage_progress(void *context, double part)
{
	const struct stage *stage = context;

	if (stage->progress)
		stage->progress(stage->context, stage->done + stage->share * part);
}

static void survey_begin(struct survey *survey)
{
	histogram_clear(&survey->times);
	survey->count = 0;
}

static void survey_add(struct survey *survey, const struct result *one)
{
	struct result *result = &survey->result;
	struct run *run = &survey->runs[survey->count];
	uint64_t messages = survey->count > 0 ? result->messages : 0;
	double seconds = survey->count > 0 ? result->seconds : 0;

	*run = (struct run){.rate = result_rate(one)};
	if (one->times) {
		figures_take(one->times, run->figures);
		histogram_merge(&survey->times, one->times);
	}
	survey->count++;
	*result = *one;
	result->messages += messages;
	result->seconds += seconds;
	result->runs = survey->runs;
	result->run_count = survey->count;
	if (one->times)
		result->times = &survey->times;
}

static int rate_compare(const void *left, const void *right)
{
	double a = *(const double *)left;
	double b = *(const double *)right;

	return (a > b) - (a < b);
}

static void survey_end(struct survey *survey)
{
	double rates[RUNS_MAX] = {0};

	for (unsigned i = 0; i < survey->count; i++)
		rates[i] = survey->runs[i].rate;
	qsort(rates, survey->count, sizeof(rates[0]), rate_compare);
	survey->result.rate = rates[survey->count / 2];
}

void survey_join(struct survey *survey, const struct survey *other)
{
	survey->result.messages += other->result.messages;
	if (survey->result.times)
		histogram_merge(&survey->times, &other->times);
	for (unsigned i = 0; i < survey->count; i++)
		survey->runs[i].rate += other->runs[i].rate;
	survey_end(survey);
}

void survey_run(struct client *client, const struct trial *trial, const struct effort *effort,
	unsigned runs, struct survey *messages, struct survey *bare,
	void (*progress)(void *context, double part), void *context)
{
	struct effort each = {
		.seconds = effort->seconds / runs,
		.warm_up = effort->warm_up,
		.iterations = (effort->iterations + runs - 1) / runs,
	};
	struct stage stage = {
		.share = (bare ? 0.5 : 1) / runs, .progress = progress, .context = context};

	survey_begin(messages);
	if (bare)
		survey_begin(bare);
	for (unsigned i = 0; i < runs; i++) {
		struct result one;

		if (bare) {
			one = client_bare(client, trial, &each, stage_progress, &stage);
			survey_add(bare, &one);
			stage.done += stage.share;
		}
		one = client_measure(client, trial, &each, stage_progress, &stage);
		survey_add(messages, &one);
		stage.done += stage.share;
	}
	survey_end(messages);
	if (bare)
		survey_end(bare);
}
