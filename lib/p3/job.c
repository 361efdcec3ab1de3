/* SPDX-License-Identifier: BSD-3-Clause */
/* job.c - postern_job_...: this process's place in its job (lib/job).
 *
 * Each address is read when it is first asked for. A process that no launcher started is a job of
 * one, which speaks to nobody.
 */
#include <postern.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/cancel.h>
#include <base/log.h>
#include <base/port.h>
#include <base/settings.h>
#include <job/job.h>
#include <p3/interface.h>

enum job_state { JOB_NONE, JOB_JOINED, JOB_LEFT };

/* One thread at a time speaks to the launcher. */
static pthread_mutex_t job_lock = PTHREAD_MUTEX_INITIALIZER;
/* Of the thread that has the lock (cancel.h). */
static int job_cancel;
static enum job_state job_state;
static struct process *addresses; /* by rank; one that is not known yet has PTL_NID_ANY */
static struct job job;

static void job_take(void)
{
	int before = cancel_hold();

	pthread_mutex_lock(&job_lock);
	job_cancel = before;
}

static void job_give(void)
{
	int before = job_cancel;

	pthread_mutex_unlock(&job_lock);
	cancel_release(before);
}

/* Returns `done`; false, after an error line. */
static bool job_succeeds(bool done)
{
	if (!done)
		log_error("rank %u: %s", job.rank, job.why);
	return done;
}

/* --- joining */

static bool interfaces_drive(void)
{
	return interface_drive() != 0;
}

static void job_end(void)
{
	free(addresses);
	addresses = NULL;
	job_state = JOB_LEFT;
}

/* What the job is to know of an interface. */
struct member {
	struct process address;
	bool drives;    /* it has no poll thread: a waiting thread moves its messages, */
	bool is_helped; /* or, in the meantime, a helper */
	uint64_t handle;
	char port[sizeof(((struct port *)NULL)->name)];
};

static uint64_t joined_by; /* the interface that joined */

static bool member_answers(struct process process, uint64_t timeout)
{
	return front_process_answers(&portals, joined_by, process, timeout);
}

/* Ranks answer while they compute, so one that does not is dead. */
static void watch_want(const struct member *member)
{
	if (member->drives && !member->is_helped)
		return;
	joined_by = member->handle;
	job.watch.answers = member_answers;
	job.watch.patience = setting_number(SETTING_PEER_TIMEOUT);
}

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

static int job_join(const struct member *member)
{
	if (job_state != JOB_NONE) {
		log_error("this process has %s its job already: postern_job_join() is called once",
			job_state == JOB_JOINED ? "joined" : "left");
		return PTL_FAIL;
	}
	if (!job_succeeds(job_find(&job, false)) || !member_reaches_others(member))
		return PTL_FAIL;
	addresses = malloc(job.size * sizeof(*addresses));
	if (!addresses)
		return PTL_NOSPACE;
	for (uint32_t n = 0; n < job.size; n++)
		addresses[n].nid = PTL_NID_ANY;
	addresses[job.rank] = member->address;
	job.drive = member->drives ? interfaces_drive : NULL;
	if (!job_succeeds(job_meet(&job, member->address))) {
		job_close(&job);
		job_end();
		return PTL_FAIL;
	}
	watch_want(member);
	job_state = JOB_JOINED;
	return PTL_OK;
}

int postern_job_join(ptl_handle_ni_t interface, unsigned *rank, unsigned *size)
{
	struct member member;
	struct visit visit;
	int code = visit_enter(&visit, interface, HANDLE_INTERFACE, PTL_INV_NI);

	if (code != PTL_OK)
		return code;
	member = (struct member){
		.address = visit.interface->self,
		.drives = visit.interface->inlined,
		.is_helped = interface_is_helped(visit.interface),
		.handle = interface,
	};
	memcpy(member.port, visit.interface->port->name, sizeof(member.port));
	visit_leave(&visit);
	if (ADDRESS_IS_BAD(rank) || ADDRESS_IS_BAD(size))
		return PTL_SEGV;
	log_clear_error();
	job_take();
	code = job_join(&member);
	if (code == PTL_OK) {
		*rank = job.rank;
		*size = job.size;
	}
	job_give();
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
	job_take();
	if (job_state == JOB_JOINED)
		return PTL_OK;
	log_error("%s: this process %s: call postern_job_join() first", function,
		job_state == JOB_LEFT ? "has left its job" : "has not joined its job");
	job_give();
	return PTL_FAIL;
}

static bool address_know(uint32_t rank)
{
	return addresses[rank].nid != PTL_NID_ANY ||
	       job_succeeds(job_address(&job, rank, &addresses[rank]));
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
	job_give();
	return code;
}

int postern_job_barrier(void)
{
	int code = job_enter("postern_job_barrier");

	if (code != PTL_OK)
		return code;
	if (!job_succeeds(job_barrier(&job)))
		code = PTL_FAIL;
	job_give();
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
	job_give();
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
