/* SPDX-License-Identifier: BSD-3-Clause */
/* test_launchers.c - the table of launchers, row by row, and as real ones were recorded: Debian
 * 12's slurm-wlm 22.05, openmpi-bin 4.1, mpich 4.0 and postern-run, alone and inside each other. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <job/launchers.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* In the texts below: PMI_FD of a socket that is open, and of one that was closed. */
#define OPEN   "PMI_FD=200 "
#define CLOSED "PMI_FD=201 "

static int ends[2];

static int socket_open(void **state)
{
	(void)state;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
		return -1;
	return dup2(ends[0], 200) == 200 && close(201) != 0 ? 0 : -1;
}

static int socket_close(void **state)
{
	(void)state;
	close(ends[0]);
	close(ends[1]);
	return close(200);
}

/* Reads the table in an environment of words NAME=VALUE. */
static struct launcher read_in(const char *words, bool lists)
{
	struct launcher launcher;
	char *copy = strdup(words), *at = copy;

	clearenv();
	for (char *word; (word = strsep(&at, " "));) {
		char *value = strchr(word, '=');

		if (!value)
			continue;
		*value = '\0';
		setenv(word, value + 1, 1);
	}
	free(copy);
	launcher_read(&launcher, lists);
	return launcher;
}

static void is_rank(const char *words, enum launcher_kind kind, uint32_t rank, uint32_t size)
{
	struct launcher launcher = read_in(words, true);

	assert_int_equal(launcher.kind, kind);
	assert_string_equal(launcher.why, "");
	assert_int_equal(launcher.rank, rank);
	assert_int_equal(launcher.size, size);
	assert_int_equal(launcher.socket, kind == LAUNCHER_PMI ? 200 : -1);
}

static void is_alone(const char *words)
{
	is_rank(words, LAUNCHER_NONE, 0, 1);
}

static void is_refused(const char *words, const char *part)
{
	struct launcher launcher = read_in(words, true);

	if (!strstr(launcher.why, part))
		fail_msg("in \"%s\": \"%s\" does not have \"%s\"", words, launcher.why, part);
}

static void is_pmix(const char *words, uint32_t rank, const char *name_space)
{
	struct launcher launcher = read_in(words, true);

	assert_int_equal(launcher.kind, LAUNCHER_PMIX);
	assert_int_equal(launcher.rank, rank);
	assert_string_equal(launcher.name_space, name_space);
	assert_int_equal(launcher.socket, -1);
}

static void launcher__alone_is_alone(void **state)
{
	(void)state;
	is_alone("");
	is_alone("PTL_JOB=");
	is_alone("PTL_JOB=alone " OPEN "PMI_RANK=1 PMI_SIZE=2 PMIX_RANK=1 PMIX_NAMESPACE=n");
	is_alone("PTL_JOB=alone SLURM_STEP_NUM_TASKS=4 OMPI_COMM_WORLD_SIZE=4");
	is_refused("PTL_JOB=together", "PTL_JOB is \"together\": set it to alone");
}

/* A Slurm batch script before any srun, what salloc starts, srun -n 1, one process of torchrun. */
static void launcher__a_process_that_is_alone_on_purpose_is_no_rank(void **state)
{
	(void)state;
	is_alone("SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_JOB_ID=14 SLURM_TASK_PID=9169");
	is_alone("SLURM_NTASKS=2 SLURM_JOB_ID=15");
	is_alone("SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_STEP_ID=0 "
		 "SLURM_JOB_ID=4 SLURM_STEP_TASKS_PER_NODE=1");
	is_alone("RANK=0 WORLD_SIZE=1 MASTER_ADDR=a MASTER_PORT=29500");
	is_alone("RANK=0 WORLD_SIZE=4");
	is_alone("OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0");
	is_alone("PMI_FD= PMI_RANK=");
}

#define SLURM_TWO                                                                                  \
	"SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_JOB_ID=2 "     \
	"SLURM_STEP_TASKS_PER_NODE=2 "
#define SLURM_ONE                                                                                  \
	"SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_STEP_ID=0 SLURM_JOB_ID=5 "     \
	"SLURM_STEP_TASKS_PER_NODE=1 "
#define PMIX_SLURM  "PMIX_NAMESPACE=slurm.pmix.5.0 PMIX_SERVER_URI2=pmix-server.3271;tcp4://h:1 "
#define PMIX_MPIRUN "PMIX_NAMESPACE=1744699393 PMIX_SERVER_URI2=1744699392.0;tcp4://h:2 "

static void launcher__each_is_recognised(void **state)
{
	(void)state;
	is_rank(OPEN "PMI_RANK=1 PMI_SIZE=2", LAUNCHER_PMI, 1, 2);
	is_rank(OPEN "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALNRANKS=2", LAUNCHER_PMI, 1, 2);
	is_rank(OPEN "PMI_RANK=1 PMI_SIZE=2 " SLURM_TWO, LAUNCHER_PMI, 1, 2);
	is_pmix(PMIX_SLURM "PMIX_RANK=1 " SLURM_TWO, 1, "slurm.pmix.5.0");
	is_pmix(PMIX_MPIRUN "PMIX_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1", 1,
		"1744699393");
	is_rank("PTL_ADI_HOSTS=1:1,2:2 PTL_ADI_RANK=1", LAUNCHER_LIST, 1, 2);
	assert_int_equal(
		read_in("PTL_ADI_HOSTS=1:1,2:2 PTL_ADI_RANK=1", false).kind, LAUNCHER_NONE);
}

/* Outer and inner one; those of mpirun inside itself share all names. */
static void launcher__of_nested_ones_the_inner_one_counts(void **state)
{
	static const char *const pmi_in[] = {
		"PMI_RANK=1 PMI_SIZE=2 ", /* PMI-1 */
		"PMI_RANK=1 PMI_SIZE=2 PMIX_RANK=0 OMPI_COMM_WORLD_SIZE=1 " PMIX_MPIRUN,
		"PMI_RANK=1 PMI_SIZE=2 MPI_LOCALNRANKS=2 PMIX_RANK=0 " PMIX_MPIRUN,
		"PMI_RANK=1 PMI_SIZE=2 PMIX_RANK=0 " PMIX_SLURM SLURM_ONE, /* srun --mpi=pmix */
		"PMI_RANK=1 PMI_SIZE=2 " SLURM_ONE, /* srun, with and without --mpi=pmi2 */
		"PMI_RANK=1 PMI_SIZE=2 " SLURM_TWO,
	};
	static const char *const mpirun_in[] = {
		CLOSED "PMI_RANK=0 PMI_SIZE=1 ",           /* PMI-1 */
		"",                                        /* mpirun */
		SLURM_ONE,                                 /* srun, and srun --mpi=pmix */
		CLOSED "PMI_RANK=0 PMI_SIZE=1 " SLURM_ONE, /* srun --mpi=pmi2 */
		"SLURM_NTASKS=2 SLURM_JOB_ID=16 ",         /* salloc */
	};
	static const char *const srun_in[] = {
		CLOSED "PMI_RANK=0 PMI_SIZE=1 ", /* PMI-1 */
		"OMPI_COMM_WORLD_SIZE=2 ",       /* mpirun */
	};
	char words[1024];

	(void)state;
	for (unsigned i = 0; i < COUNT(pmi_in); i++) {
		snprintf(words, sizeof(words), OPEN "%s", pmi_in[i]);
		is_rank(words, LAUNCHER_PMI, 1, 2);
	}
	for (unsigned i = 0; i < COUNT(mpirun_in); i++) {
		snprintf(words, sizeof(words), "%sPMIX_RANK=1 OMPI_COMM_WORLD_SIZE=2 " PMIX_MPIRUN,
			mpirun_in[i]);
		is_pmix(words, 1, "1744699393");
	}
	for (unsigned i = 0; i < COUNT(srun_in); i++) {
		snprintf(words, sizeof(words), "%sPMIX_RANK=1 " PMIX_SLURM SLURM_TWO, srun_in[i]);
		is_pmix(words, 1, "slurm.pmix.5.0");
	}
}

/* As Debian's launchers were seen to say it. */
static void launcher__says_whether_a_job_is_on_several_hosts(void **state)
{
	static const char *const spread[] = {
		PMIX_MPIRUN "PMIX_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=3",
		PMIX_SLURM "PMIX_RANK=1 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=2",
		PMIX_SLURM "PMIX_RANK=1 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=2 "
			   "OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_LOCAL_SIZE=1",
		OPEN "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALNRANKS=1",
		OPEN "PMI_RANK=1 PMI_SIZE=2 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=2",
	};
	static const char *const together[] = {
		PMIX_MPIRUN "PMIX_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2",
		PMIX_MPIRUN "PMIX_RANK=1 OMPI_COMM_WORLD_SIZE=2",
		/* mpirun starts its daemons by srun */
		PMIX_MPIRUN "PMIX_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 "
			    "SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=2",
		PMIX_SLURM "PMIX_RANK=1 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=1",
		OPEN "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALNRANKS=2",
		/* postern-run inside a step of Slurm's */
		OPEN "PMI_RANK=1 PMI_SIZE=2 SLURM_STEP_NUM_TASKS=4 SLURM_STEP_NUM_NODES=2",
		OPEN "PMI_RANK=1 PMI_SIZE=2",
		"OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=1 PTL_JOB=alone",
		"SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=2",
		"",
	};

	(void)state;
	for (unsigned i = 0; i < COUNT(spread); i++)
		if (!read_in(spread[i], false).spread)
			fail_msg("in \"%s\" there are several hosts", spread[i]);
	for (unsigned i = 0; i < COUNT(together); i++)
		if (read_in(together[i], false).spread)
			fail_msg("in \"%s\" there is one host", together[i]);
}

static void launcher__that_cannot_be_used_is_an_error(void **state)
{
	(void)state;
	is_refused(SLURM_TWO, "srun has started 2 tasks without a PMI: start them by srun "
			      "--mpi=pmix or srun --mpi=pmi2, or set PTL_JOB=alone");
	is_refused("OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0",
		"mpirun has started 2 processes, but PMIX_NAMESPACE and PMIX_RANK are missing");
	is_refused("OMPI_COMM_WORLD_SIZE=2 PMIX_RANK=0", "are missing");
	is_refused("RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=29500",
		"WORLD_SIZE=2 processes were started by torchrun");
	is_refused(CLOSED "PMI_RANK=1 PMI_SIZE=2", "PMI_FD=201 is no open socket");
	is_refused("PMI_RANK=1 PMI_SIZE=2 PMI_PORT=h:1", "PMI_PORT and no PMI_FD");
	is_refused("PMIX_NAMESPACE=n PMIX_RANK=x", "PMIX_RANK is \"x\"");
}

static void launcher__environment_that_makes_no_sense_is_an_error(void **state)
{
	int file = open("/dev/null", O_RDONLY);

	(void)state;
	is_refused("PMI_RANK=0 PMI_SIZE=2", "PMI_FD is not set: start the job");
	is_refused("PMI_FD=x PMI_RANK=0 PMI_SIZE=2", "PMI_FD is \"x\"");
	is_refused("PMI_FD=4294967295 PMI_RANK=0 PMI_SIZE=2", "PMI_FD is \"4294967295\"");
	is_refused(OPEN "PMI_RANK=0", "PMI_SIZE is not set");
	is_refused(OPEN "PMI_RANK=0 PMI_SIZE=0", "PMI_SIZE is \"0\"");
	is_refused(OPEN "PMI_RANK=0 PMI_SIZE=99999999", "PMI_SIZE is \"99999999\"");
	is_refused(OPEN "PMI_RANK=2 PMI_SIZE=2", "PMI_RANK is \"2\"");
	is_refused(OPEN "PMI_RANK=-1 PMI_SIZE=2", "PMI_RANK is \"-1\"");
	is_refused(OPEN "PMI_SIZE=2", "PMI_RANK is not set");
	is_refused("PTL_ADI_HOSTS=1:1,2:2", "PTL_ADI_RANK is not set");
	is_refused("PTL_ADI_HOSTS=1:1,2:2 PTL_ADI_RANK=2", "PTL_ADI_RANK is \"2\"");
	is_refused("PTL_ADI_HOSTS=1:1;2:2 PTL_ADI_RANK=0", "PTL_ADI_HOSTS is \"1:1;2:2\"");
	is_refused("PTL_ADI_RANK=0", "PTL_ADI_HOSTS is not set");
	assert_int_equal(dup2(file, 202), 202); /* a file is no socket */
	is_refused("PMI_FD=202 PMI_RANK=0 PMI_SIZE=2", "PMI_FD=202 is no open socket");
	close(202);
	close(file);
}

/* L3. */
static void launcher__is_found_once(void **state)
{
	(void)state;
	clearenv();
	assert_int_equal(launcher_find(true)->kind, LAUNCHER_NONE);
	setenv("PMI_RANK", "0", 1);
	assert_string_equal(launcher_find(true)->why, "");
	assert_string_equal(launcher_find(false)->why, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(launcher__alone_is_alone),
		cmocka_unit_test(launcher__a_process_that_is_alone_on_purpose_is_no_rank),
		cmocka_unit_test(launcher__each_is_recognised),
		cmocka_unit_test(launcher__of_nested_ones_the_inner_one_counts),
		cmocka_unit_test(launcher__says_whether_a_job_is_on_several_hosts),
		cmocka_unit_test(launcher__that_cannot_be_used_is_an_error),
		cmocka_unit_test(launcher__environment_that_makes_no_sense_is_an_error),
		cmocka_unit_test(launcher__is_found_once),
	};

	return cmocka_run_group_tests(tests, socket_open, socket_close);
}
