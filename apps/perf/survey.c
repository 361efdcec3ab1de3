/* survey.c - see survey.h. */
#include <stdlib.h>

#include "survey.h"

/* The progress of a slice as that of the whole. */
struct stage {
	double done;
	double share;
	void (*progress)(void *context, double part);
	void *context;
};

static void stage_progress(void *context, double part)
{
	const struct stage *stage = context;

	if (stage->progress != NULL)
		stage->progress(stage->context, stage->done + stage->share * part);
}

static void survey_begin(struct survey *survey)
{
	histogram_clear(&survey->times);
	survey->slices = 0;
}

static int rate_compare(const void *left, const void *right)
{
	double a = *(const double *)left;
	double b = *(const double *)right;

	return (a > b) - (a < b);
}

static void survey_add(struct survey *survey, const struct result *slice)
{
	struct result *result = &survey->result;
	uint64_t messages = survey->slices > 0 ? result->messages : 0;
	double seconds = survey->slices > 0 ? result->seconds : 0;

	if (slice->times != NULL)
		histogram_merge(&survey->times, slice->times);
	survey->rates[survey->slices++] = result_rate(slice);
	*result = *slice;
	result->messages += messages;
	result->seconds += seconds;
	if (slice->times != NULL)
		result->times = &survey->times;
}

/* The median of the slices' rates is the rate. */
static void survey_end(struct survey *survey)
{
	qsort(survey->rates, survey->slices, sizeof(survey->rates[0]), rate_compare);
	survey->result.rate = survey->rates[survey->slices / 2];
}

void survey_run(struct client *client, const struct trial *trial, const struct effort *effort,
	struct survey *messages, struct survey *bare, void (*progress)(void *context, double part),
	void *context)
{
	unsigned slices = bare != NULL ? SURVEY_SLICES : 1;
	struct effort each = {
		.seconds = effort->seconds / slices,
		.iterations = (effort->iterations + slices - 1) / slices,
	};
	struct stage stage = {
		.share = bare != NULL ? 0.5 / slices : 1, .progress = progress, .context = context};

	survey_begin(messages);
	if (bare != NULL)
		survey_begin(bare);
	for (unsigned i = 0; i < slices; i++) {
		struct result slice;

		if (bare != NULL) {
			slice = client_bare(client, trial, &each, stage_progress, &stage);
			survey_add(bare, &slice);
			stage.done += stage.share;
		}
		slice = client_measure(client, trial, &each, stage_progress, &stage);
		survey_add(messages, &slice);
		stage.done += stage.share;
	}
	survey_end(messages);
	if (bare != NULL)
		survey_end(bare);
}
