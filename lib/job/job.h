/* SPDX-License-Identifier: BSD-3-Clause */
/* job.h - the processes of a job, for all front ends: which launcher has started them
 * (launchers.h), what they tell each other, barriers, the end of all.
 *
 * One thread at a time.
 */
#ifndef JOB_JOB_H
#define JOB_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include <base/core.h>
#include <base/pmi.h>
#include <job/card.h>
#include <job/launchers.h>
#include <job/lifeline.h>
#include <transport/transport.h>

#define JOB_SIZE_MAX (UINT32_C(1) << 20)

struct front;

/* Does a process answer the interface within timeout ns, or may it be alive nevertheless (W2)? */
typedef bool watch_answers(
	const struct front *front, uint64_t interface, struct process process, uint64_t timeout);

/* watch.h. A front end sets the first five (host/member.h), before barriers at which it wants a
 * watch. */
struct watch {
	watch_answers *answers; /* NULL: nobody is looked after (yet) */
	const struct front *front;
	uint64_t interface;
	uint64_t peer_timeout; /* ns of silence after which a rank is dead; 0: no watch */
	bool silent; /* this process answers in its own calls only; set before job_show() */
	bool active;
	bool joins;               /* W4 */
	struct process neighbour; /* known since job_meet() */
	uint64_t heard, due;      /* ns */
	struct lifeline lifeline; /* to the neighbour, if that one is silent */
};

struct job {
	uint32_t rank, size;
	enum launcher_kind kind;
	int socket; /* LAUNCHER_PMI: to the launcher */
	/* Moves messages while the launcher is awaited, and returns 0 if there were none; NULL:
	 * somebody else does. */
	unsigned (*drive)(void);
	struct watch watch;
	char space[PMI_SPACE]; /* name of the launcher's key-value space */
	bool has_all;          /* LAUNCHER_PMI: it gives all keys and values at once, if asked */
	bool is_grouped;       /* LAUNCHER_PMI: it has the cards of groups of ranks, too */
	unsigned cards_asked;  /* one by one */
	struct card *cards;    /* of all ranks; NULL: they were not fetched at once */
	struct pmi_lines lines;
	char why[512]; /* the error, after a function returned false */
};

/* Sets what the last function that returned false says. */
#define job_wrong(job, ...) (snprintf((job)->why, sizeof((job)->why), __VA_ARGS__), false)

/* Takes what the environment said when this process first opened an interface. lists: the front end
 * takes PTL_ADI_HOSTS. With PMIx it asks the server for the size of the job, so job_leave() or
 * job_close() follows. Returns false after an error: job.why. */
bool job_find(struct job *job, bool lists) CORE_API(job_find);
/* Are there only addresses, PTL_ADI_HOSTS? Then the front end does what concerns all. */
static inline bool job_is_listed(const struct job *job)
{
	return job->kind == LAUNCHER_LIST;
}

/* The rank that this one watches (watch.h). */
static inline uint32_t job_neighbour(const struct job *job)
{
	return (job->rank + 1) % job->size;
}

/* Does a launcher connect the processes? Without one the functions below succeed at once. */
static inline bool job_is_launched(const struct job *job)
{
	return job->kind == LAUNCHER_PMI || job->kind == LAUNCHER_PMIX;
}

/* Says hello to the launcher. After it job_put() and job_get() share keys and values with all
 * ranks: texts without blanks, of less than PMI_KEY and PMI_VALUE bytes, which others can get after
 * the next barrier. rank: whose key it is, where the launcher speaks PMIx. */
bool job_begin(struct job *job) CORE_API(job_begin);
bool job_put(struct job *job, const char *key, const char *value) CORE_API(job_put);
bool job_get(struct job *job, uint32_t rank, const char *key, char *value, size_t size)
	CORE_API(job_get);
/* Only with job.has_all: hands all keys and values that the launcher has to `take`. */
bool job_get_all(struct job *job, void (*take)(void *context, const char *key, const char *value),
	void *context) CORE_API(job_get_all);

/* Gives the launcher this process's card, which all others can get behind the next barrier. */
bool job_show(struct job *job, const struct card *self) CORE_API(job_show);
/* With the front end's watch, behind that barrier: looks after the right neighbour. Without a
 * neighbour that has a card, and is on the same network, it looks after nobody. */
void job_look_after(struct job *job, const struct card *self) CORE_API(job_look_after);
/* Begins, gives the launcher this process's card, and returns when all others have done so. Fails
 * if this process does not reach its right neighbour: if there are ranks on different networks,
 * some have such a neighbour. */
bool job_meet(struct job *job, const struct card *self) CORE_API(job_meet);
/* The card of a rank. Only with a launcher. A process that asks for more than a few gets all of
 * them from a launcher that gives all at once: postern-run; from others, in a large job, 20
 * for each question. */
bool job_card(struct job *job, uint32_t rank, struct card *card) CORE_API(job_card);
/* Returns when all others have come here, too. With a watch it ends the job, and does not return,
 * if a rank is dead. */
bool job_barrier(struct job *job) CORE_API(job_barrier);
/* This process leaves the job; then there is no launcher any more, whatever it answered. */
bool job_leave(struct job *job) CORE_API(job_leave);
/* Ends what job_find() and job_meet() have begun, without a word to the launcher. */
void job_close(struct job *job) CORE_API(job_close);
/* The exit code that a system shows of an abort's: its last byte, but not 0 for a code that is not.
 */
static inline int job_exit_code(int code)
{
	return code != 0 && (code & 255) == 0 ? 1 : code & 255;
}

/* The launcher shall end all processes of the job, this one included: it has a second for that,
 * then the call returns. Any thread, also while another one is in a call. */
void job_abort(struct job *job, int code) CORE_API(job_abort);

/* "NID:PID,NID:PID,...": how many; 0: it is no such list. processes: NULL, or room for them. */
uint32_t job_hosts(const char *text, struct process *processes) CORE_API(job_hosts);

#endif
