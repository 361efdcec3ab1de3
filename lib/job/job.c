/* SPDX-License-Identifier: BSD-3-Clause */
/* job.c - see job.h.
 *
 * Each process writes its address into the launcher's key-value space under its rank, and enters
 * the first barrier. Behind it all addresses are there.
 */
#include <job/job.h>

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <base/clock.h>
#include <job/launchers.h>

#define NAP (200 * MICROSECOND) /* of a thread that drives and waits for the launcher */

bool job_find(struct job *job, bool lists)
{
	const struct launcher *launcher = launcher_find(lists);

	job->socket = launcher->kind == LAUNCHER_PMI ? launcher->socket : -1;
	job->listed = launcher->kind == LAUNCHER_LIST;
	job->rank = launcher->rank;
	job->size = launcher->size;
	return launcher->why[0] == '\0' || job_wrong(job, "%s", launcher->why);
}

/* --- the launcher */

/* Waits until the launcher has said something, or is gone. */
static void launcher_await(struct job *job)
{
	struct pollfd socket = {.fd = job->socket, .events = POLLIN};
	const struct timespec nap = {.tv_nsec = NAP}, none = {0};

	do {
		bool drove = job->drive && job->drive();

		socket.revents = 0;
		(void)ppoll(&socket, 1, drove ? &none : job->drive ? &nap : NULL, NULL);
	} while (socket.revents == 0);
}

/* The launcher's answer, cmd=ANSWER, to a question that was sent. NULL after an error: job.why. */
static const char *answer_await(struct job *job, const char *answer, bool sent)
{
	char command[PMI_KEY], code[PMI_KEY];
	const char *line = NULL;

	while (sent && !(line = pmi_line(&job->lines))) {
		launcher_await(job);
		sent = pmi_read(&job->lines, job->socket);
	}
	if (!line) {
		(void)job_wrong(job,
			"the launcher of this job has ended, or PMI_FD=%d is not its socket: "
			"start the job again",
			job->socket);
		return NULL;
	}
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

bool job_meet(struct job *job, struct process self)
{
	const char *line;

	if (!job_is_launched(job))
		return true;
	(void)fcntl(job->socket, F_SETFD, FD_CLOEXEC);
	line = job_ask(job, "response_to_init", "cmd=init pmi_version=1 pmi_subversion=1\n");
	if (!line || !(line = job_ask(job, "my_kvsname", "cmd=get_my_kvsname\n")))
		return false;
	if (!pmi_word(line, "kvsname", job->space, sizeof(job->space)))
		return job_wrong(job, "the launcher of this job names no key-value space: start "
				      "the job by postern-run or mpiexec.hydra");
	return job_ask(job, "put_result", "cmd=put kvsname=%s key=postern-%u value=%u:%u\n",
		       job->space, job->rank, self.nid, self.pid) &&
	       job_barrier(job);
}

bool job_address(struct job *job, uint32_t rank, struct process *address)
{
	char value[sizeof("4294967295:4294967295")];
	const char *line =
		job_ask(job, "get_result", "cmd=get kvsname=%s key=postern-%u\n", job->space, rank);

	if (!line)
		return false;
	if (pmi_word(line, "value", value, sizeof(value)) && job_hosts(value, NULL) == 1)
		return job_hosts(value, address) == 1;
	return job_wrong(job,
		"the launcher of this job has no address of rank %u: start the job again", rank);
}

bool job_barrier(struct job *job)
{
	return !job_is_launched(job) || job_ask(job, "barrier_out", "cmd=barrier_in\n");
}

bool job_leave(struct job *job)
{
	bool left = !job_is_launched(job) || job_ask(job, "finalize_ack", "cmd=finalize\n");

	job_close(job);
	return left;
}

void job_close(struct job *job)
{
	if (job_is_launched(job))
		close(job->socket);
	job->socket = -1;
}

void job_abort(struct job *job, int code)
{
	if (job_is_launched(job))
		(void)pmi_write(job->socket, "cmd=abort exitcode=%d\n", code);
}
