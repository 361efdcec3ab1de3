/* SPDX-License-Identifier: BSD-3-Clause */
/* job.c - postern_job_...: this process's place in its job, by PMI (base/pmi.h).
 *
 * Each process writes its address into the launcher's key-value space under its rank, and enters
 * the first barrier. Behind it all addresses are there, and each is read when it is first asked
 * for. A process that no launcher started is a job of one, which speaks to nobody.
 */
#include <postern.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <base/clock.h>
#include <base/log.h>
#include <base/pmi.h>
#include <base/port.h>
#include <p3/interface.h>

#define SIZE_MOST (1u << 20)
#define NAP       (200 * MICROSECOND) /* of a thread that drives and waits for the launcher */

enum job_state { JOB_NONE, JOB_JOINED, JOB_LEFT };

struct job {
	enum job_state state;
	int socket;  /* to the launcher; -1: there is none */
	bool drives; /* the interface has no poll thread: a waiting thread moves its messages */
	uint32_t rank;
	uint32_t size;
	ptl_process_id_t *addresses; /* by rank; one that is not known yet has PTL_NID_ANY */
	char space[PMI_SPACE];       /* name of the launcher's key-value space */
	struct pmi_lines lines;
};

/* One thread at a time speaks to the launcher. */
static pthread_mutex_t job_lock = PTHREAD_MUTEX_INITIALIZER;
static struct job job = {.socket = -1};

/* --- the launcher */

/* Waits until the launcher has said something, or is gone. */
static void launcher_await(void)
{
	struct pollfd socket = {.fd = job.socket, .events = POLLIN};
	const struct timespec nap = {.tv_nsec = NAP}, none = {0};

	do {
		bool drove = job.drives && interface_drive() != 0;

		socket.revents = 0;
		(void)ppoll(&socket, 1, drove ? &none : job.drives ? &nap : NULL, NULL);
	} while (socket.revents == 0);
}

/* The launcher's answer, cmd=ANSWER, to a question that was sent. NULL after an error line. */
static const char *answer_await(const char *answer, bool sent)
{
	char command[PMI_KEY], code[PMI_KEY];
	const char *line = NULL;

	while (sent && !(line = pmi_line(&job.lines))) {
		launcher_await();
		sent = pmi_read(&job.lines, job.socket);
	}
	if (!line) {
		log_error("rank %u: the launcher of this job has ended, or PMI_FD=%d is not its "
			  "socket: start the job again",
			job.rank, job.socket);
		return NULL;
	}
	if (pmi_word(line, "cmd", command, sizeof(command)) && strcmp(command, answer) == 0 &&
		(!pmi_word(line, "rc", code, sizeof(code)) || strcmp(code, "0") == 0))
		return line;
	log_error(
		"rank %u: the launcher of this job answered \"%.200s\" where cmd=%s was expected: "
		"start the job by postern-run or mpiexec.hydra",
		job.rank, line, answer);
	return NULL;
}

#define job_ask(answer, ...) answer_await(answer, pmi_write(job.socket, __VA_ARGS__))

static bool barrier_pass(void)
{
	return job_ask("barrier_out", "cmd=barrier_in\n");
}

/* Tells the launcher where this process is, and waits until all others have done so. */
static bool address_publish(ptl_process_id_t self)
{
	const char *line = job_ask("response_to_init", "cmd=init pmi_version=1 pmi_subversion=1\n");

	if (!line || !(line = job_ask("my_kvsname", "cmd=get_my_kvsname\n")))
		return false;
	if (!pmi_word(line, "kvsname", job.space, sizeof(job.space))) {
		log_error("rank %u: the launcher of this job names no key-value space: start the "
			  "job by postern-run or mpiexec.hydra",
			job.rank);
		return false;
	}
	return job_ask("put_result", "cmd=put kvsname=%s key=postern-%u value=%u:%u\n", job.space,
		       job.rank, self.nid, self.pid) &&
	       barrier_pass();
}

static bool address_fetch(uint32_t rank, ptl_process_id_t *address)
{
	char value[sizeof("4294967295:4294967295")];
	const char *line =
		job_ask("get_result", "cmd=get kvsname=%s key=postern-%u\n", job.space, rank);

	if (!line)
		return false;
	if (pmi_word(line, "value", value, sizeof(value)) &&
		sscanf(value, "%u:%u", &address->nid, &address->pid) == 2 &&
		process_is_valid(*address))
		return true;
	log_error(
		"rank %u: the launcher of this job has no address of rank %u: start the job again",
		job.rank, rank);
	address->nid = PTL_NID_ANY;
	return false;
}

/* --- joining */

/* A number that the launcher has put into the environment. Returns false after an error line. */
static bool environment_number(const char *name, uint32_t least, uint32_t most, uint32_t *number)
{
	const char *text = getenv(name);
	char word[32];

	snprintf(word, sizeof(word), "n=%s", text ? text : "");
	if (text && !strpbrk(text, " \t\r") && pmi_number(word, "n", number) && *number >= least &&
		*number <= most)
		return true;
	log_error("%s is %s%s%s, where this process's launcher should have put a number from %u "
		  "to %u: start the job by postern-run or mpiexec.hydra, or unset PMI_FD, PMI_RANK "
		  "and "
		  "PMI_SIZE",
		name, text ? "\"" : "not set", text ? text : "", text ? "\"" : "", least, most);
	return false;
}

/* What the environment says of the job; fd: the socket to the launcher, -1: there is none. Returns
 * false after an error line. */
static bool launcher_find(int *fd)
{
	uint32_t number;

	*fd = -1;
	job.rank = 0;
	job.size = 1;
	if (!getenv("PMI_FD") && !getenv("PMI_RANK") && !getenv("PMI_SIZE"))
		return true;
	if (!environment_number("PMI_FD", 0, INT32_MAX, &number) ||
		!environment_number("PMI_SIZE", 1, SIZE_MOST, &job.size) ||
		!environment_number("PMI_RANK", 0, job.size - 1, &job.rank))
		return false;
	*fd = (int)number;
	return true;
}

static void job_end(void)
{
	if (job.socket >= 0)
		close(job.socket);
	job.socket = -1;
	free(job.addresses);
	job.addresses = NULL;
	job.state = JOB_LEFT;
}

/* What the job is to know of an interface. */
struct member {
	ptl_process_id_t address;
	bool drives;
	char port[sizeof(((struct port *)NULL)->name)];
};

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
	int fd;

	if (job.state != JOB_NONE) {
		log_error("this process has %s its job already: postern_job_join() is called once",
			job.state == JOB_JOINED ? "joined" : "left");
		return PTL_FAIL;
	}
	if (!launcher_find(&fd) || !member_reaches_others(member))
		return PTL_FAIL;
	job.addresses = malloc(job.size * sizeof(*job.addresses));
	if (!job.addresses)
		return PTL_NOSPACE;
	for (uint32_t n = 0; n < job.size; n++)
		job.addresses[n].nid = PTL_NID_ANY;
	job.addresses[job.rank] = member->address;
	job.drives = member->drives;
	job.socket = fd;
	if (fd >= 0)
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (fd >= 0 && !address_publish(member->address)) {
		job_end();
		return PTL_FAIL;
	}
	job.state = JOB_JOINED;
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
		.address = {visit.interface->self.nid, visit.interface->self.pid},
		.drives = visit.interface->inlined,
	};
	memcpy(member.port, visit.interface->port->name, sizeof(member.port));
	visit_leave(&visit);
	if (ADDRESS_IS_BAD(rank) || ADDRESS_IS_BAD(size))
		return PTL_SEGV;
	log_clear_error();
	pthread_mutex_lock(&job_lock);
	code = job_join(&member);
	if (code == PTL_OK) {
		*rank = job.rank;
		*size = job.size;
	}
	pthread_mutex_unlock(&job_lock);
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
	pthread_mutex_lock(&job_lock);
	if (job.state == JOB_JOINED)
		return PTL_OK;
	log_error("%s: this process %s: call postern_job_join() first", function,
		job.state == JOB_LEFT ? "has left its job" : "has not joined its job");
	pthread_mutex_unlock(&job_lock);
	return PTL_FAIL;
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
	else if (job.addresses[rank].nid == PTL_NID_ANY &&
		 !address_fetch(rank, &job.addresses[rank]))
		code = PTL_FAIL;
	else
		*address = job.addresses[rank];
	pthread_mutex_unlock(&job_lock);
	return code;
}

int postern_job_barrier(void)
{
	int code = job_enter("postern_job_barrier");

	if (code != PTL_OK)
		return code;
	if (job.socket >= 0 && !barrier_pass())
		code = PTL_FAIL;
	pthread_mutex_unlock(&job_lock);
	return code;
}

int postern_job_leave(void)
{
	int code = job_enter("postern_job_leave");

	if (code != PTL_OK)
		return code;
	if (job.socket >= 0 && !job_ask("finalize_ack", "cmd=finalize\n"))
		code = PTL_FAIL;
	job_end();
	pthread_mutex_unlock(&job_lock);
	return code;
}
