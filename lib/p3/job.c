/* SPDX-License-Identifier: BSD-3-Clause */
/* job.c - postern_job_...: this process's place in its job (lib/job).
 *
 * Each card is read when a rank's address is first asked for. A process that no launcher started is
 * a job of one, which speaks to nobody.
 */
#include <postern.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/cancel.h>
#include <base/log.h>
#include <base/port.h>
#include <host/member.h>
#include <job/job.h>
#include <p3/interface.h>

enum job_state { JOB_NONE, JOB_JOINED, JOB_LEFT };

/* One thread at a time speaks to the launcher. */
static struct cancel_lock job_lock = CANCEL_LOCK_INITIAL;
static enum job_state job_state;
static struct process *addresses; /* by rank; one that is not known yet has PTL_NID_ANY */
static struct job job;
static bool is_given; /* by postern_job_given() */

/* Returns `done`; false, after an error line. */
static bool job_succeeds(bool done)
{
	if (!done)
		log_error("rank %u: %s", job.rank, job.why);
	return done;
}

/* --- joining */

static void job_end(void)
{
	free(addresses);
	addresses = NULL;
	job_state = JOB_LEFT;
}

/* What the job is to know of an interface. */
struct member {
	struct card card;
	uint64_t handle;
	char port[sizeof(((struct port *)NULL)->name)];
};

static uint64_t joined_by; /* the interface that joined */

/* A loop is of no use where there are others. */
static bool member_reaches_others(const struct member *member)
{
	if (job.size == 1 || (strcmp(member->port, "the loopback") != 0 &&
				     strncmp(member->port, "loop:", strlen("loop:")) != 0))
		return true;
	log_error("rank %u of %u: the interface is %s, which reaches no other process: set "
		  "PTL_IFACE_NAME to node, or to a network interface such as eth1",
		job.rank, job.size, member->port);
	return false;
}

/* No other than the own one is known yet. */
static bool addresses_make(const struct member *member)
{
	addresses = malloc(job.size * sizeof(*addresses));
	if (!addresses)
		return false;
	for (uint32_t n = 0; n < job.size; n++)
		addresses[n].nid = PTL_NID_ANY;
	addresses[job.rank] = member->card.process;
	joined_by = member->handle;
	return true;
}

static bool job_is_new(void)
{
	if (job_state == JOB_NONE)
		return true;
	log_error("this process has %s its job already: a process joins one job, once",
		job_state == JOB_JOINED ? "joined" : "left");
	return false;
}

static int job_join(const struct member *member)
{
	if (!job_is_new() || !job_succeeds(job_find(&job, false)) || !member_reaches_others(member))
		return PTL_FAIL;
	if (!addresses_make(member))
		return PTL_NOSPACE;
	/* A poll thread or a helper serves the others while this thread sleeps until the launcher
	 * speaks. */
	member_watch(&portals, joined_by, &job.watch);
	job.drive = job.watch.silent ? interface_drive : NULL;
	if (!job_succeeds(job_meet(&job, &member->card))) {
		job_close(&job);
		job_end();
		return PTL_FAIL;
	}
	job_state = JOB_JOINED;
	return PTL_OK;
}

/* PTL_OK, PTL_NOINIT, or PTL_INV_NI. */
static int member_look(ptl_handle_ni_t interface, struct member *member)
{
	struct visit visit;
	int code = visit_enter(&visit, interface, HANDLE_INTERFACE, PTL_INV_NI);

	if (code != PTL_OK)
		return code;
	*member = (struct member){.handle = interface};
	memcpy(member->port, visit.interface->port->name, sizeof(member->port));
	visit_leave(&visit);
	return member_card(&portals, interface, &member->card) ? PTL_OK : PTL_INV_NI;
}

int postern_job_join(ptl_handle_ni_t interface, unsigned *rank, unsigned *size)
{
	struct member member;
	int code = member_look(interface, &member);

	if (code != PTL_OK)
		return code;
	if (ADDRESS_IS_BAD(rank) || ADDRESS_IS_BAD(size))
		return PTL_SEGV;
	log_clear_error();
	cancel_lock_take(&job_lock);
	code = job_join(&member);
	if (code == PTL_OK) {
		*rank = job.rank;
		*size = job.size;
	}
	cancel_lock_give(&job_lock);
	return code;
}

/* --- cards by an exchange of the program's own */

int postern_job_card(ptl_handle_ni_t interface, void *card)
{
	struct member member;
	int code = member_look(interface, &member);

	if (code != PTL_OK)
		return code;
	if (address_is_bad(card, CARD_BYTES, 1))
		return PTL_SEGV;
	card_encode(&member.card, card);
	return PTL_OK;
}

/* Takes a rank's card. Returns false after an error line. */
static bool card_take(const struct member *member, uint32_t rank, const uint8_t *bytes)
{
	struct card card;

	if (!card_decode(&card, bytes))
		(void)job_wrong(&job, "the card of rank %u is none of postern_job_card()", rank);
	else if (rank == job.rank && !process_same(card.process, member->card.process))
		(void)job_wrong(&job,
			"the card of this rank is that of process %u:%u, and this process is "
			"%u:%u",
			card.process.nid, card.process.pid, member->card.process.nid,
			member->card.process.pid);
	else if (!card_unreached(&member->card, &card, rank, job.why, sizeof(job.why))) {
		addresses[rank] = card.process;
		member_knows(&portals, joined_by, &card);
		return true;
	}
	return job_succeeds(false);
}

static int job_take_cards(
	const struct member *member, unsigned rank, unsigned size, const uint8_t *cards)
{
	bool taken = true;

	if (!job_is_new())
		return PTL_FAIL;
	job.rank = rank;
	job.size = size;
	if (!member_reaches_others(member))
		return PTL_FAIL;
	if (!addresses_make(member))
		return PTL_NOSPACE;
	for (uint32_t n = 0; n < size && taken; n++)
		taken = card_take(member, n, cards + (size_t)n * CARD_BYTES);
	if (!taken) {
		job_end();
		return PTL_FAIL;
	}
	is_given = true;
	job_state = JOB_JOINED;
	return PTL_OK;
}

int postern_job_given(ptl_handle_ni_t interface, unsigned rank, unsigned size, const void *cards)
{
	struct member member;
	int code = member_look(interface, &member);

	if (code != PTL_OK)
		return code;
	if (size == 0 || size > JOB_SIZE_MAX || rank >= size)
		return PTL_INV_PROC;
	if (address_range_is_bad((uintptr_t)cards, (uint64_t)size * CARD_BYTES))
		return PTL_SEGV;
	log_clear_error();
	cancel_lock_take(&job_lock);
	code = job_take_cards(&member, rank, size, cards);
	cancel_lock_give(&job_lock);
	return code;
}

/* --- in the job */

/* Takes the lock. PTL_OK, or the code of a function that this process cannot call now, without the
 * lock. */
static int job_enter(const char *function)
{
	if (!front_is_open(&portals))
		return PTL_NOINIT;
	log_clear_error();
	cancel_lock_take(&job_lock);
	if (job_state == JOB_JOINED)
		return PTL_OK;
	log_error("%s: this process has %s", function,
		job_state == JOB_LEFT ? "left its job: use the job before postern_job_leave()"
				      : "not joined its job: call postern_job_join() first");
	cancel_lock_give(&job_lock);
	return PTL_FAIL;
}

static bool address_know(uint32_t rank)
{
	struct card card;

	if (addresses[rank].nid != PTL_NID_ANY)
		return true;
	if (!job_succeeds(job_card(&job, rank, &card)))
		return false;
	addresses[rank] = card.process;
	member_knows(&portals, joined_by, &card);
	return true;
}

int postern_job_address(unsigned rank, ptl_process_id_t *address)
{
	int code = job_enter("postern_job_address");

	if (code != PTL_OK)
		return code;
	if (ADDRESS_IS_BAD(address))
		code = PTL_SEGV;
	else if (rank >= job.size)
		code = PTL_INV_PROC;
	else if (!address_know(rank))
		code = PTL_FAIL;
	else
		*address = (ptl_process_id_t){addresses[rank].nid, addresses[rank].pid};
	cancel_lock_give(&job_lock);
	return code;
}

int postern_job_barrier(void)
{
	int code = job_enter("postern_job_barrier");

	if (code != PTL_OK)
		return code;
	if (is_given) {
		log_error("this job was made by postern_job_given(), and has no launcher that "
			  "could make a barrier: use the program's own exchange");
		code = PTL_FAIL;
	} else if (!job_succeeds(job_barrier(&job))) {
		code = PTL_FAIL;
	}
	cancel_lock_give(&job_lock);
	return code;
}

int postern_job_leave(void)
{
	int code = job_enter("postern_job_leave");

	if (code != PTL_OK)
		return code;
	if (!job_succeeds(job_leave(&job)))
		code = PTL_FAIL;
	job_end();
	cancel_lock_give(&job_lock);
	return code;
}

/* Without the lock: another thread may have it, and wait for ranks that will not come. */
void postern_job_abort(int code)
{
	code = job_exit_code(code);
	fflush(NULL);
	job_abort(&job, code);
	_exit(code);
}
