/* SPDX-License-Identifier: BSD-3-Clause */
/* job.c - see job.h.
 *
 * Each process writes its card into the launcher's key-value space under its rank, and enters the
 * first barrier. Behind it all cards are there.
 */
#include <job/job.h>

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/log.h>
#include <base/timespec.h>
#include <job/launchers.h>
#include <job/pmix_client.h>
#include <job/watch.h>

#define KEY "postern" /* of a process's card */

#define NAP (200 * MICROSECOND) /* of a thread that drives and waits for the launcher */

#define CARDS_SINGLE 8u /* that a process asks for one by one before it wants all */

bool job_find(struct job *job, bool lists)
{
	const struct launcher *launcher = launcher_find(lists);

	job->kind = LAUNCHER_NONE;
	job->rank = launcher->rank;
	job->size = launcher->size;
	job->socket = launcher->socket;
	if (launcher->why[0] != '\0')
		return job_wrong(job, "%s", launcher->why);
	if (launcher->kind == LAUNCHER_PMIX && !pmix_begin(job, launcher->name_space))
		return false;
	job->kind = launcher->kind;
	return true;
}

uint64_t job_sleep(struct job *job)
{
	uint64_t most = watch_turn(job);
	bool drove = job->drive && job->drive() != 0;

	if (drove)
		return 0;
	return job->drive && most > NAP ? NAP : most;
}

/* --- PMI 1 */

/* Waits until the launcher has said something, or is gone. */
static void launcher_await(struct job *job)
{
	struct pollfd socket = {.fd = job->socket, .events = POLLIN};

	do {
		uint64_t sleep = job_sleep(job);
		const struct timespec time = timespec_of(sleep);

		socket.revents = 0;
		(void)ppoll(&socket, 1, sleep == UINT64_MAX ? NULL : &time, NULL);
	} while (socket.revents == 0);
}

/* The launcher's next line. NULL after an error: job.why. */
static const char *line_await(struct job *job, bool sent)
{
	const char *line = NULL;

	while (sent && !(line = pmi_line(&job->lines))) {
		launcher_await(job);
		sent = pmi_read(&job->lines, job->socket);
	}
	if (!line)
		(void)job_wrong(job,
			"the launcher of this job has ended, or PMI_FD=%d is not its socket: "
			"start the job again",
			job->socket);
	return line;
}

/* The launcher's answer, cmd=ANSWER, to a question that was sent. NULL after an error: job.why. */
static const char *answer_await(struct job *job, const char *answer, bool sent)
{
	char command[PMI_KEY], code[PMI_KEY];
	const char *line = line_await(job, sent);

	if (!line)
		return NULL;
	if (pmi_word(line, "cmd", command, sizeof(command)) && strcmp(command, answer) == 0 &&
		(!pmi_word(line, "rc", code, sizeof(code)) || strcmp(code, "0") == 0))
		return line;
	(void)job_wrong(job,
		"the launcher of this job answered \"%.200s\" where cmd=%s was expected: start "
		"the job by postern-run or mpiexec.hydra",
		line, answer);
	return NULL;
}

#define job_ask(job, answer, ...) answer_await(job, answer, pmi_write((job)->socket, __VA_ARGS__))

/* The process shows itself to the launcher. */
static bool pmi_begin(struct job *job)
{
	const char *line;
	uint32_t has_all;

	(void)fcntl(job->socket, F_SETFD, FD_CLOEXEC);
	line = job_ask(job, "response_to_init", "cmd=init pmi_version=1 pmi_subversion=1\n");
	job->has_all = line && pmi_number(line, "get_all", &has_all) && has_all == 1;
	if (!line || !(line = job_ask(job, "my_kvsname", "cmd=get_my_kvsname\n")))
		return false;
	return pmi_word(line, "kvsname", job->space, sizeof(job->space)) ||
	       job_wrong(job, "the launcher of this job names no key-value space: start the job "
			      "by postern-run or mpiexec.hydra");
}

static bool pmi_get(struct job *job, const char *key, char *value, size_t size)
{
	const char *line =
		job_ask(job, "get_result", "cmd=get kvsname=%s key=%s\n", job->space, key);

	return line && (pmi_word(line, "value", value, size) ||
			       job_wrong(job,
				       "the launcher of this job has no value for the key %s that "
				       "fits into %zu bytes: put it before the barrier that "
				       "precedes this call, or give a larger buffer",
				       key, size));
}

/* --- the job */

bool job_begin(struct job *job)
{
	return job->kind != LAUNCHER_PMI || pmi_begin(job);
}

bool job_put(struct job *job, const char *key, const char *value)
{
	if (job->kind == LAUNCHER_PMI)
		return job_ask(job, "put_result", "cmd=put kvsname=%s key=%s value=%s\n",
			job->space, key, value);
	return job->kind != LAUNCHER_PMIX || pmix_put(job, key, value);
}

bool job_get(struct job *job, uint32_t rank, const char *key, char *value, size_t size)
{
	if (job->kind == LAUNCHER_PMI)
		return pmi_get(job, key, value, size);
	return job->kind == LAUNCHER_PMIX ? pmix_get(job, rank, key, value, size)
					  : job_wrong(job, "this process is in no job: start it by "
							   "postern-run or mpiexec.hydra");
}

/* The key of a rank's card. PMIx has a space of keys for each rank, PMI one for all. */
static void card_key(const struct job *job, uint32_t rank, char key[PMI_KEY])
{
	if (job->kind == LAUNCHER_PMI)
		snprintf(key, PMI_KEY, KEY "-%u", rank);
	else
		snprintf(key, PMI_KEY, KEY);
}

static bool barrier_pass(struct job *job)
{
	bool done = true;

	if (job->kind == LAUNCHER_PMI)
		done = job_ask(job, "barrier_out", "cmd=barrier_in\n");
	else if (job->kind == LAUNCHER_PMIX)
		done = pmix_fence(job);
	watch_end(job);
	return done;
}

bool job_barrier(struct job *job)
{
	watch_begin(job);
	return barrier_pass(job);
}

/* The neighbour of the watch is one that this process reaches. */
static bool neighbour_take(struct job *job, const struct card *self, const struct card *card)
{
	job->watch.neighbour = card->process;
	if (card_unreached(self, card, job_neighbour(job), job->why, sizeof(job->why)))
		return false;
	lifeline_begin(&job->watch.lifeline, self, card);
	return true;
}

static bool neighbour_meet(struct job *job, const struct card *self)
{
	struct card card;

	return !job_is_launched(job) || job->size == 1 ||
	       (job_card(job, job_neighbour(job), &card) && neighbour_take(job, self, &card));
}

void job_look_after(struct job *job, const struct card *self)
{
	struct card card;

	if (!job_is_launched(job) || job->size == 1)
		return;
	if (job_card(job, job_neighbour(job), &card)) {
		if (neighbour_take(job, self, &card))
			return;
		log_warning("rank %u: %s", job->rank, job->why);
	}
	job->watch.answers = NULL;
	job->watch.peer_timeout = 0; /* all have joined: W4 has nothing to say any more */
}

bool job_show(struct job *job, const struct card *self)
{
	char key[PMI_KEY], value[CARD_TEXT];
	struct card card = *self;

	if (job->watch.silent && job->size > 1)
		lifeline_listen(&job->watch.lifeline, &card);
	card_key(job, job->rank, key);
	card_write(&card, value);
	return job_put(job, key, value);
}

bool job_get_all(struct job *job, void (*take)(void *context, const char *key, const char *value),
	void *context)
{
	const char *line = job_ask(job, "all", "cmd=get_all\n");
	char key[PMI_KEY], value[PMI_VALUE];
	uint32_t count;

	if (!line)
		return false;
	if (!pmi_number(line, "count", &count))
		return job_wrong(job, "the launcher of this job does not say how many keys it has");
	for (; count > 0; count--) {
		line = line_await(job, true);
		if (!line)
			return false;
		if (pmi_word(line, "key", key, sizeof(key)) &&
			pmi_word(line, "value", value, sizeof(value)))
			take(context, key, value);
	}
	return true;
}

/* --- groups of cards: a launcher that does not give all cards at once is asked once for those of
 * GROUP ranks, which the first rank of each group has gathered. */

#define GROUP       20u /* short cards in a value: Hydra takes lines below 1,024 bytes */
#define GROUPS_FROM 64u /* ranks, from which on the barrier of the gathering is worth it */

static_assert(GROUP * CARD_SHORT < PMI_VALUE, "a group's cards are a value");

static bool is_worth_groups(const struct job *job)
{
	return job->kind == LAUNCHER_PMI && !job->has_all && job->size > GROUPS_FROM;
}

static uint32_t group_size(const struct job *job, uint32_t first)
{
	return job->size - first < GROUP ? job->size - first : GROUP;
}

static void group_key(uint32_t first, char key[PMI_KEY])
{
	snprintf(key, PMI_KEY, KEY "-from-%u", first);
}

static bool group_put(struct job *job)
{
	char key[PMI_KEY], value[PMI_VALUE], text[PMI_VALUE];
	size_t length = 0;

	for (uint32_t n = 0; n < group_size(job, job->rank); n++) {
		card_key(job, job->rank + n, key);
		if (!job_get(job, job->rank + n, key, text, sizeof(text)))
			return false;
		if (strlen(text) < CARD_SHORT)
			return job_wrong(job,
				"rank %u has shared no card: use one release of Postern on all "
				"hosts",
				job->rank + n);
		memcpy(value + length, text, CARD_SHORT);
		length += CARD_SHORT;
	}
	value[length] = '\0';
	group_key(job->rank, key);
	return job_put(job, key, value);
}

static bool groups_gather(struct job *job)
{
	if (!is_worth_groups(job))
		return true;
	job->is_grouped = true;
	return (job->rank % GROUP != 0 || group_put(job)) && barrier_pass(job);
}

/* What is no card is missing. */
static bool group_read(struct job *job, uint32_t first)
{
	char key[PMI_KEY], value[PMI_VALUE] = "", text[CARD_TEXT];
	struct card card;

	group_key(first, key);
	if (!job_get(job, first, key, value, sizeof(value)))
		return false;
	for (uint32_t n = 0; n < group_size(job, first); n++) {
		memset(text, '0', sizeof(text) - 1);
		text[sizeof(text) - 1] = '\0';
		memcpy(text, value + (size_t)n * CARD_SHORT, CARD_SHORT);
		if (card_read(&card, text))
			job->cards[first + n] = card;
	}
	return true;
}

static bool groups_read(struct job *job)
{
	for (uint32_t first = 0; first < job->size; first += GROUP)
		if (!group_read(job, first))
			return false;
	return true;
}

bool job_meet(struct job *job, const struct card *self)
{
	if (!job_begin(job) || !job_show(job, self))
		return false;
	watch_begin_joining(job);
	return barrier_pass(job) && groups_gather(job) && neighbour_meet(job, self);
}

/* A pair of all: the card of a rank, or one that is none. */
static void card_take(void *context, const char *key, const char *value)
{
	struct job *job = context;
	struct card card;
	uint32_t rank;

	if (sscanf(key, KEY "-%" SCNu32, &rank) == 1 && rank < job->size && card_read(&card, value))
		job->cards[rank] = card;
}

/* Fetches all cards. Those that are missing have no node. */
static bool cards_fetch(struct job *job)
{
	job->cards = calloc(job->size, sizeof(*job->cards));
	if (!job->cards)
		return job_wrong(job, "there is no memory for the cards of %u ranks", job->size);
	for (uint32_t rank = 0; rank < job->size; rank++)
		job->cards[rank].process.nid = UINT32_MAX;
	return job->has_all ? job_get_all(job, card_take, job) : groups_read(job);
}

/* The card of a rank as the launcher has it. *is_one: it is a card. */
static bool card_find(struct job *job, uint32_t rank, struct card *card, bool *is_one)
{
	char key[PMI_KEY], value[PMI_VALUE];

	if ((job->has_all || job->is_grouped) && !job->cards && ++job->cards_asked > CARDS_SINGLE &&
		!cards_fetch(job))
		return false;
	if (job->cards) {
		*card = job->cards[rank];
		*is_one = card->process.nid != UINT32_MAX;
		return true;
	}
	card_key(job, rank, key);
	if (!job_get(job, rank, key, value, sizeof(value)))
		return false;
	*is_one = card_read(card, value);
	return true;
}

bool job_card(struct job *job, uint32_t rank, struct card *card)
{
	bool is_one;

	if (!card_find(job, rank, card, &is_one))
		return false;
	return is_one ||
	       job_wrong(job,
		       "the launcher of this job has no card of rank %u: start the job again, with "
		       "one release of Postern on all hosts",
		       rank);
}

bool job_leave(struct job *job)
{
	bool left = true;

	if (job->kind == LAUNCHER_PMI)
		left = job_ask(job, "finalize_ack", "cmd=finalize\n");
	else if (job->kind == LAUNCHER_PMIX)
		left = pmix_end(job);
	if (job->kind == LAUNCHER_PMIX)
		job->kind = LAUNCHER_NONE;
	job_close(job);
	return left;
}

void job_close(struct job *job)
{
	if (job->kind == LAUNCHER_PMI)
		close(job->socket);
	else if (job->kind == LAUNCHER_PMIX)
		(void)pmix_end(job);
	job->kind = LAUNCHER_NONE;
	lifeline_end(&job->watch.lifeline);
	free(job->cards);
	job->cards = NULL;
}

void job_abort(struct job *job, int code)
{
	const struct timespec second = {.tv_sec = 1};

	if (!job_is_launched(job))
		return;
	if (job->kind == LAUNCHER_PMI)
		(void)pmi_write(job->socket, "cmd=abort exitcode=%d\n", code);
	else
		pmix_abort(code);
	nanosleep(&second, NULL);
}
