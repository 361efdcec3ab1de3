/* SPDX-License-Identifier: BSD-3-Clause */
/* launchers.c - see launchers.h. Rows of the table in order; the first that fits counts. */
#include <job/launchers.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <base/environment.h>
#include <base/number.h>
#include <job/job.h>

#define launcher_wrong(launcher, ...)                                                              \
	((void)snprintf((launcher)->why, sizeof((launcher)->why), __VA_ARGS__))

/* A variable that is set and not empty; else NULL. */
static const char *variable(const char *name)
{
	const char *text = environment_text(name);

	return text && *text ? text : NULL;
}

static bool variable_number(const char *name, uint32_t *number)
{
	const char *text = variable(name);

	return text && number_read(&text, "", number);
}

/* Returns false after an error: launcher->why. */
static bool variable_read(struct launcher *launcher, const char *name, uint32_t least,
	uint32_t most, uint32_t *number, const char *advice)
{
	const char *text = environment_text(name);

	if (variable_number(name, number) && *number >= least && *number <= most)
		return true;
	if (text)
		launcher_wrong(launcher, "%s is \"%.64s\", which is no number from %u to %u: %s",
			name, text, least, most, advice);
	else
		launcher_wrong(launcher, "%s is not set: %s", name, advice);
	return false;
}

/* --- rows */

/* PTL_JOB=alone */
static bool alone_row(struct launcher *launcher)
{
	const char *text = variable("PTL_JOB");

	if (!text)
		return false;
	if (strcmp(text, "alone") != 0)
		launcher_wrong(launcher,
			"PTL_JOB is \"%.64s\": set it to alone for a job of one process, or unset "
			"it",
			text);
	return true;
}

static const char pmi_advice[] =
	"start the job by postern-run or mpiexec.hydra, or set PTL_JOB=alone if this process is in "
	"no job";

/* PMI_FD is a connected stream socket. A launcher that has started another one has its variables
 * in the environment, too, but that one has closed its socket. */
static bool pmi_row(struct launcher *launcher)
{
	struct sockaddr_storage peer;
	socklen_t size = sizeof(peer), type_size = sizeof(int);
	uint32_t number;
	int type;

	if (!variable_number("PMI_FD", &number) || number > INT32_MAX ||
		getsockopt((int)number, SOL_SOCKET, SO_TYPE, &type, &type_size) != 0 ||
		type != SOCK_STREAM ||
		getpeername((int)number, (struct sockaddr *)&peer, &size) != 0)
		return false;
	launcher->socket = (int)number;
	launcher->kind = LAUNCHER_PMI;
	(void)(variable_read(launcher, "PMI_SIZE", 1, JOB_SIZE_MAX, &launcher->size, pmi_advice) &&
		variable_read(
			launcher, "PMI_RANK", 0, launcher->size - 1, &launcher->rank, pmi_advice));
	return true;
}

/* Was Postern built with PMIx's headers? */
#ifdef POSTERN_PMIX
#define PMIX_IS_KNOWN true
#else
#define PMIX_IS_KNOWN false
#endif

static bool pmix_row(struct launcher *launcher)
{
	if (!variable("PMIX_NAMESPACE") || !variable("PMIX_RANK"))
		return false;
	launcher->kind = LAUNCHER_PMIX;
	launcher->size = 0;
	snprintf(launcher->name_space, sizeof(launcher->name_space), "%s",
		variable("PMIX_NAMESPACE"));
	if (variable_read(
		    launcher, "PMIX_RANK", 0, JOB_SIZE_MAX - 1, &launcher->rank, pmi_advice) &&
		!PMIX_IS_KNOWN)
		launcher_wrong(launcher,
			"rank %u was started by PMIx, which this build of Postern does not know: "
			"start the job by srun --mpi=pmi2, mpiexec.hydra or postern-run",
			launcher->rank);
	return true;
}

static bool list_row(struct launcher *launcher)
{
	const char *text = environment_text("PTL_ADI_HOSTS");

	if (!text && !environment_text("PTL_ADI_RANK"))
		return false;
	launcher->kind = LAUNCHER_LIST;
	launcher->size = text ? job_hosts(text, NULL) : 0;
	if (launcher->size == 0)
		launcher_wrong(launcher,
			"PTL_ADI_HOSTS is %s%.64s%s: give node id and process id of each rank, "
			"such as 1:1000,2:1001",
			text ? "\"" : "not set", text ? text : "", text ? "\"" : "");
	else
		(void)variable_read(launcher, "PTL_ADI_RANK", 0, launcher->size - 1,
			&launcher->rank, "give this process's place in PTL_ADI_HOSTS");
	return true;
}

/* PMI's variables, and no socket. */
static bool pmi_wrong_row(struct launcher *launcher)
{
	const char *socket = variable("PMI_FD");
	uint32_t number;

	if (!socket && !variable("PMI_RANK") && !variable("PMI_SIZE"))
		return false;
	if (!socket && variable("PMI_PORT"))
		launcher_wrong(launcher,
			"this process's launcher offers PMI_PORT and no PMI_FD: start each rank "
			"by postern-run --meet, or set PTL_JOB=alone if this process is in "
			"no job");
	else if (variable_read(launcher, "PMI_FD", 0, INT32_MAX, &number, pmi_advice))
		launcher_wrong(launcher,
			"PMI_FD=%u is no open socket: a program between the launcher and this one "
			"has closed it, or this process was started by a rank: start the rank "
			"without that program, or set PTL_JOB=alone if this process is in no job",
			number);
	return true;
}

/* srun without a PMI. The script of a batch job has SLURM_PROCID and SLURM_NTASKS as well, and no
 * step. */
static bool srun_row(struct launcher *launcher)
{
	uint32_t tasks;

	if (!variable_number("SLURM_STEP_NUM_TASKS", &tasks) || tasks < 2)
		return false;
	launcher_wrong(launcher,
		"srun has started %u tasks without a PMI: start them by srun --mpi=pmix or srun "
		"--mpi=pmi2, or set PTL_JOB=alone if each is a job of its own",
		tasks);
	return true;
}

static bool mpirun_row(struct launcher *launcher)
{
	uint32_t size;

	if (!variable_number("OMPI_COMM_WORLD_SIZE", &size) || size < 2)
		return false;
	launcher_wrong(launcher,
		"mpirun has started %u processes, but PMIX_NAMESPACE and PMIX_RANK are missing: "
		"let its variables reach this process, or set PTL_JOB=alone if each is a job of "
		"its own",
		size);
	return true;
}

static bool torchrun_row(struct launcher *launcher)
{
	uint32_t size;

	if (!variable("RANK") || !variable("MASTER_ADDR") || !variable("MASTER_PORT") ||
		!variable_number("WORLD_SIZE", &size) || size < 2)
		return false;
	launcher_wrong(launcher,
		"WORLD_SIZE=%u processes were started by torchrun or the like, which offers no "
		"exchange: start each by postern-run --meet, or set PTL_JOB=alone if each process "
		"is "
		"a job of its own",
		size);
	return true;
}

/* --- hosts */

/* Of two launchers inside each other the environment has the variables of both. */
static bool spread_read(const struct launcher *launcher)
{
	uint32_t all, here, nodes;

	if (launcher->kind == LAUNCHER_PMIX && variable_number("OMPI_COMM_WORLD_SIZE", &all) &&
		strncmp(launcher->name_space, "slurm.", strlen("slurm.")) != 0)
		return variable_number("OMPI_COMM_WORLD_LOCAL_SIZE", &here) && here < all;
	if (launcher->kind == LAUNCHER_PMI && variable_number("MPI_LOCALNRANKS", &here))
		return here < launcher->size;
	return (launcher->kind == LAUNCHER_PMI || launcher->kind == LAUNCHER_PMIX) &&
	       variable_number("SLURM_STEP_NUM_NODES", &nodes) && nodes > 1 &&
	       variable_number("SLURM_STEP_NUM_TASKS", &all) &&
	       (launcher->kind == LAUNCHER_PMIX || all == launcher->size);
}

/* --- the table */

void launcher_read(struct launcher *launcher, bool lists)
{
	*launcher = (struct launcher){.size = 1, .socket = -1};
	(void)(alone_row(launcher) || pmi_row(launcher) || pmix_row(launcher) ||
		(lists && list_row(launcher)) || pmi_wrong_row(launcher) || srun_row(launcher) ||
		mpirun_row(launcher) || torchrun_row(launcher));
	launcher->spread = spread_read(launcher);
}

static struct launcher found[2];

static void launchers_find(void)
{
	launcher_read(&found[true], true);
	found[false] = found[true];
	if (found[true].kind == LAUNCHER_LIST)
		launcher_read(&found[false], false);
}

const struct launcher *launcher_find(bool lists)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, launchers_find);
	return &found[lists];
}
