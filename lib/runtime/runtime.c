/* SPDX-License-Identifier: BSD-3-Clause */
/* runtime.c - see portals4/pmi.h. One job, and one lock that all calls take but PMI_Abort(), which
 * must end a process that is in another call. */
#include <portals4/pmi.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/remedy.h>
#include <job/job.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct job job;
static bool open;

/* What this process keeps because no launcher does: what it has put itself, and with PMIx what the
 * others had put before a barrier. */
struct pair {
	struct pair *next;
	char *key, *value;
};
static struct pair *pairs;

static void pair_free(struct pair *pair)
{
	free(pair->key);
	free(pair->value);
	free(pair);
}

static bool pair_add(struct pair **list, const char *key, const char *value)
{
	struct pair *pair = malloc(sizeof(*pair));

	if (pair) {
		*pair = (struct pair){*list, strdup(key), strdup(value)};
		if (pair->key && pair->value) {
			*list = pair;
			return true;
		}
		pair_free(pair);
	}
	return job_wrong(
		&job, "there is no memory for the value of %s: %s", key, remedy_for_memory());
}

static bool pair_find(const struct pair *pair, const char *key, char *value, size_t size)
{
	while (pair && strcmp(pair->key, key) != 0)
		pair = pair->next;
	if (!pair || strlen(pair->value) >= size)
		return job_wrong(&job,
			"the key %s has no value that fits into %zu bytes: put it before the "
			"barrier that precedes this call, or give a larger buffer",
			key, size);
	strcpy(value, pair->value);
	return true;
}

/* --- What a launcher keeps that gives all at once (job.has_all): a program that gets more than a
 * few values gets them from a copy of all, until the next barrier or an own put. A launcher that
 * keeps a lot is asked for one value at a time. */

#define SINGLE_GETS 8u
#define COPY_MOST   (4u << 20) /* bytes of keys and values */

static struct pair *copied;
static unsigned gets; /* since it was forgotten */
static size_t copy_bytes;

static void copy_forget(void)
{
	gets = 0;
	if (copy_bytes <= COPY_MOST)
		copy_bytes = 0;
	while (copied) {
		struct pair *pair = copied;

		copied = pair->next;
		pair_free(pair);
	}
}

/* What there is no room for is asked for later. */
static void copy_take(void *context, const char *key, const char *value)
{
	(void)context;
	copy_bytes += strlen(key) + strlen(value);
	if (copy_bytes <= COPY_MOST)
		(void)pair_add(&copied, key, value);
}

static bool launcher_get(const char *key, char *value, size_t size)
{
	if (job.has_all && copy_bytes <= COPY_MOST && ++gets == SINGLE_GETS &&
		!job_get_all(&job, copy_take, NULL))
		return false;
	if (copied && pair_find(copied, key, value, size))
		return true;
	return job_get(&job, 0, key, value, size);
}

static bool launcher_put(const char *key, const char *value)
{
	if (copied)
		copy_forget();
	return job_put(&job, key, value);
}

/* --- cards: libportals, if it is in this process, says where this process is, and asks where the
 * others are (p4/cards.c). They share that at the next barrier. */

#define CARDS_SINGLE_MOST 64u /* ranks whose cards are worth a question each */

PMI_API void postern_runtime_show(const uint8_t card[CARD_BYTES]);
PMI_API void postern_runtime_watch(unsigned (*drive)(void), const struct watch *watch);
PMI_API bool postern_runtime_card(uint32_t rank, uint8_t card[CARD_BYTES]);

static struct card own;
static enum { OWN_NONE, OWN_KNOWN, OWN_SHARED } own_state;

void postern_runtime_show(const uint8_t card[CARD_BYTES])
{
	pthread_mutex_lock(&lock);
	if (own_state == OWN_NONE && card_decode(&own, card))
		own_state = OWN_KNOWN;
	pthread_mutex_unlock(&lock);
}

static watch_answers *rank_answers;

/* What a thread that waits for the others does (job/job.h). drive: NULL: this process answers
 * others while it computes. */
void postern_runtime_watch(unsigned (*drive)(void), const struct watch *watch)
{
	pthread_mutex_lock(&lock);
	if (own_state == OWN_NONE) {
		job.drive = drive;
		job.watch = *watch;
		job.watch.answers = NULL;
		rank_answers = watch->answers;
	}
	pthread_mutex_unlock(&lock);
}

/* Behind the first barrier the others have shared their cards, too. */
static void others_look_after(void)
{
	if (own_state != OWN_SHARED || job.watch.answers || !rank_answers)
		return;
	job.watch.answers = rank_answers;
	rank_answers = NULL;
	job_look_after(&job, &own);
}

static bool barrier(void)
{
	if (!job_barrier(&job))
		return false;
	others_look_after();
	return true;
}

static bool own_share(void)
{
	if (own_state != OWN_KNOWN || !job_is_launched(&job))
		return true;
	own_state = OWN_SHARED;
	return job_show(&job, &own);
}

bool postern_runtime_card(uint32_t rank, uint8_t card[CARD_BYTES])
{
	struct card one;
	bool found;

	pthread_mutex_lock(&lock);
	found = open && own_state == OWN_SHARED && rank < job.size &&
		(job.has_all || job.kind == LAUNCHER_PMIX || job.size <= CARDS_SINGLE_MOST) &&
		job_card(&job, rank, &one);
	pthread_mutex_unlock(&lock);
	if (found)
		card_encode(&one, card);
	return found;
}

static int failed(const char *call)
{
	fprintf(stderr, "%s: %s\n", call, job.why);
	return PMI_FAIL;
}

/* Takes the lock. Returns PMI_SUCCESS, or another code without the lock. */
static int enter(bool argument)
{
	pthread_mutex_lock(&lock);
	if (open && argument)
		return PMI_SUCCESS;
	pthread_mutex_unlock(&lock);
	return argument ? PMI_ERR_INIT : PMI_ERR_INVALID_ARG;
}

static int leave(int code)
{
	pthread_mutex_unlock(&lock);
	return code;
}

/* A number of the job, which in no job is that of a process alone. */
static int number_get(int *number, const uint32_t *value)
{
	int code = enter(number != NULL);

	if (code != PMI_SUCCESS)
		return code;
	*number = (int)*value;
	return leave(PMI_SUCCESS);
}

/* --- PMIx finds a key only with the rank that put it, which PMI's callers do not say: so each rank
 * publishes all that it has put since the last barrier in parts, and reads all others' parts behind
 * it. A part is '.', or '+' if there is another one, and keys and values, each with a blank. */

#define PART (8 * PMI_VALUE) /* bytes */

static struct pair *published; /* the newest of the pairs that others have, or have put */
static uint32_t round_number;

static bool part_publish(uint32_t part, const char *text)
{
	char key[PMI_KEY];

	snprintf(key, sizeof(key), "postern-%u-%u", round_number, part);
	return job_put(&job, key, text);
}

static bool pairs_publish(void)
{
	char text[PART] = ".";
	size_t length = 1;
	uint32_t part = 0;

	for (const struct pair *pair = pairs; pair != published; pair = pair->next) {
		size_t more = strlen(pair->key) + strlen(pair->value) + 2;

		if (length + more >= sizeof(text)) {
			text[0] = '+';
			if (!part_publish(part++, text))
				return false;
			text[0] = '.';
			length = 1;
		}
		length += (size_t)snprintf(
			text + length, sizeof(text) - length, "%s %s ", pair->key, pair->value);
	}
	return part_publish(part, text);
}

/* Takes a rank's part. *more: there is another one. */
static bool part_take(uint32_t rank, uint32_t part, bool *more)
{
	char key[PMI_KEY], text[PART], *rest = NULL;

	snprintf(key, sizeof(key), "postern-%u-%u", round_number, part);
	if (!job_get(&job, rank, key, text, sizeof(text)))
		return false;
	*more = text[0] == '+';
	for (char *word = text[0] ? strtok_r(text + 1, " ", &rest) : NULL; word;
		word = strtok_r(NULL, " ", &rest)) {
		const char *value = strtok_r(NULL, " ", &rest);

		if (value && !pair_add(&pairs, word, value))
			return false;
	}
	return true;
}

static bool pairs_share(void)
{
	if (!pairs_publish() || !barrier())
		return false;
	for (uint32_t rank = 0; rank < job.size; rank++) {
		bool more = rank != job.rank;

		for (uint32_t part = 0; more; part++)
			if (!part_take(rank, part, &more))
				return false;
	}
	published = pairs;
	round_number++;
	return true;
}

/* Are values kept by the launcher, and not by this process? */
static bool launcher_keeps(void)
{
	return job.kind == LAUNCHER_PMI;
}

static bool job_open(void)
{
	return job_find(&job, false) && job_begin(&job);
}

int PMI_Init(int *spawned)
{
	int code = PMI_SUCCESS;

	if (!spawned)
		return PMI_ERR_INVALID_ARG;
	*spawned = 0;
	pthread_mutex_lock(&lock);
	if (!open && !job_open())
		code = failed("PMI_Init");
	open = open || code == PMI_SUCCESS;
	return leave(code);
}

int PMI_Initialized(PMI_BOOL *initialized)
{
	if (!initialized)
		return PMI_ERR_INVALID_ARG;
	pthread_mutex_lock(&lock);
	*initialized = open ? PMI_TRUE : PMI_FALSE;
	return leave(PMI_SUCCESS);
}

int PMI_Finalize(void)
{
	int code = enter(true);

	if (code != PMI_SUCCESS)
		return code;
	open = false;
	copy_forget();
	return leave(job_leave(&job) ? PMI_SUCCESS : failed("PMI_Finalize"));
}

int PMI_Get_size(int *size)
{
	return number_get(size, &job.size);
}

int PMI_Get_rank(int *rank)
{
	return number_get(rank, &job.rank);
}

int PMI_Get_universe_size(int *size)
{
	return number_get(size, &job.size);
}

int PMI_Get_appnum(int *number)
{
	static const uint32_t first = 0;

	return number_get(number, &first);
}

int PMI_Barrier(void)
{
	int code = enter(true);

	if (code != PMI_SUCCESS)
		return code;
	copy_forget();
	return leave(own_share() && (job.kind == LAUNCHER_PMIX ? pairs_share() : barrier())
			     ? PMI_SUCCESS
			     : failed("PMI_Barrier"));
}

int PMI_Abort(int exit_code, const char text[])
{
	if (text)
		fprintf(stderr, "%s\n", text);
	job_abort(&job, exit_code);
	_exit(job_exit_code(exit_code));
}

/* --- the key-value space */

static int length_get(int *length, unsigned most)
{
	if (!length)
		return PMI_ERR_INVALID_ARG;
	*length = (int)most;
	return PMI_SUCCESS;
}

int PMI_KVS_Get_my_name(char name[], int length)
{
	int code = enter(name != NULL);
	size_t size;

	if (code != PMI_SUCCESS)
		return code;
	size = strlen(job.space) + 1;
	if (length < 0 || (size_t)length < size)
		return leave(PMI_ERR_INVALID_LENGTH);
	memcpy(name, job.space, size);
	return leave(PMI_SUCCESS);
}

int PMI_KVS_Get_name_length_max(int *length)
{
	return length_get(length, PMI_SPACE);
}

int PMI_KVS_Get_key_length_max(int *length)
{
	return length_get(length, PMI_KEY);
}

int PMI_KVS_Get_value_length_max(int *length)
{
	return length_get(length, PMI_VALUE);
}

/* A text that goes in one word of a line: neither empty, nor with a blank, nor of `most` bytes. */
static bool is_word(const char *text, size_t most)
{
	return text[0] != '\0' && text[strcspn(text, " \t\r\n")] == '\0' && strlen(text) < most;
}

int PMI_KVS_Put(const char name[], const char key[], const char value[])
{
	int code = enter(name && key && value);

	if (code != PMI_SUCCESS)
		return code;
	if (!is_word(key, PMI_KEY))
		return leave(PMI_ERR_INVALID_KEY);
	if (!is_word(value, PMI_VALUE))
		return leave(PMI_ERR_INVALID_VAL);
	return leave((launcher_keeps() ? launcher_put(key, value) : pair_add(&pairs, key, value))
			     ? PMI_SUCCESS
			     : failed("PMI_KVS_Put"));
}

int PMI_KVS_Commit(const char name[])
{
	int code = enter(name != NULL);

	return code == PMI_SUCCESS ? leave(PMI_SUCCESS) : code;
}

int PMI_KVS_Get(const char name[], const char key[], char value[], int length)
{
	int code = enter(name && key && value);

	if (code != PMI_SUCCESS)
		return code;
	if (!is_word(key, PMI_KEY))
		return leave(PMI_ERR_INVALID_KEY);
	if (length <= 0)
		return leave(PMI_ERR_INVALID_VAL_LENGTH);
	return leave((launcher_keeps() ? launcher_get(key, value, (size_t)length)
				       : pair_find(pairs, key, value, (size_t)length))
			     ? PMI_SUCCESS
			     : failed("PMI_KVS_Get"));
}

/* --- what no launcher offers */

int PMI_Publish_name(const char service[], const char port[])
{
	(void)service;
	(void)port;
	return PMI_FAIL;
}

int PMI_Unpublish_name(const char service[])
{
	(void)service;
	return PMI_FAIL;
}

int PMI_Lookup_name(const char service[], char port[])
{
	(void)service;
	(void)port;
	return PMI_FAIL;
}

int PMI_Spawn_multiple(int count, const char *commands[], const char **arguments[],
	const int most[], const int info_sizes[], const PMI_keyval_t *infos[], int preput_size,
	const PMI_keyval_t preput[], int errors[])
{
	(void)count;
	(void)commands;
	(void)arguments;
	(void)most;
	(void)info_sizes;
	(void)infos;
	(void)preput_size;
	(void)preput;
	(void)errors;
	return PMI_FAIL;
}
