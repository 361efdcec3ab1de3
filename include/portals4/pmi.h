/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi.h - how the processes of a job find each other: the client of PMI 1 that is installed beside
 * Portals 4 (libportals_runtime), with the names that MPICH's and Sandia's have.
 *
 * Launchers that speak PMI 1 will do: postern-run, Hydra, and Slurm's srun with --mpi=pmi2. So will
 * those that speak PMIx, such as Open MPI's mpirun and srun --mpi=pmix, with libpmix.so.2; there
 * each rank keeps what all have put. Without a launcher a process is a job of its own, with one
 * rank. Any thread may call; one call runs at a time. After an error a line on standard error says
 * why.
 *
 * At the first barrier behind PtlNIInit() ranks also tell each other where they are, and
 * PtlSetMap() takes that: no message asks all hosts then.
 */
#ifndef PORTALS4_PMI_H
#define PORTALS4_PMI_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PMI_API __attribute__((visibility("default")))
#else
#define PMI_API
#endif

typedef int PMI_BOOL;
#define PMI_FALSE 0
#define PMI_TRUE  1

#define PMI_SUCCESS                0
#define PMI_FAIL                   (-1)
#define PMI_ERR_INIT               1 /* PMI_Init() was not called, or PMI_Finalize() was */
#define PMI_ERR_NOMEM              2
#define PMI_ERR_INVALID_ARG        3
#define PMI_ERR_INVALID_KEY        4
#define PMI_ERR_INVALID_KEY_LENGTH 5
#define PMI_ERR_INVALID_VAL        6
#define PMI_ERR_INVALID_VAL_LENGTH 7
#define PMI_ERR_INVALID_LENGTH     8
#define PMI_ERR_INVALID_NUM_ARGS   9
#define PMI_ERR_INVALID_ARGS       10
#define PMI_ERR_INVALID_NUM_PARSED 11
#define PMI_ERR_INVALID_KEYVALP    12
#define PMI_ERR_INVALID_SIZE       13

/* A key and its value, for PMI_Spawn_multiple(). */
typedef struct PMI_keyval_t {
	const char *key;
	char *val;
} PMI_keyval_t;

/* Joins the job. *spawned is set to 0. A second call does nothing. */
PMI_API int PMI_Init(int *spawned);
PMI_API int PMI_Initialized(PMI_BOOL *initialized);
/* Leaves the job: afterwards the process may end without ending the others. */
PMI_API int PMI_Finalize(void);

PMI_API int PMI_Get_size(int *size);
PMI_API int PMI_Get_rank(int *rank);
/* The number of ranks, too. */
PMI_API int PMI_Get_universe_size(int *size);
/* Sets *number to 0. */
PMI_API int PMI_Get_appnum(int *number);

/* Returns when all ranks have called it. What they had put can be got then. */
PMI_API int PMI_Barrier(void);
/* Ends all ranks with an exit code, this one included; does not return. A line goes to standard
 * error if text is not NULL. */
PMI_API int PMI_Abort(int exit_code, const char text[]);

/* Lengths are in bytes, with the final 0. There is one key-value space, the job's. */
PMI_API int PMI_KVS_Get_my_name(char name[], int length);
PMI_API int PMI_KVS_Get_name_length_max(int *length);
PMI_API int PMI_KVS_Get_key_length_max(int *length);
PMI_API int PMI_KVS_Get_value_length_max(int *length);
/* Neither key nor value has blanks, and no key is put twice. */
PMI_API int PMI_KVS_Put(const char name[], const char key[], const char value[]);
/* Does nothing: the next barrier publishes what was put. */
PMI_API int PMI_KVS_Commit(const char name[]);
PMI_API int PMI_KVS_Get(const char name[], const char key[], char value[], int length);

/* Not offered by any of the launchers: each returns PMI_FAIL. */
PMI_API int PMI_Publish_name(const char service[], const char port[]);
PMI_API int PMI_Unpublish_name(const char service[]);
PMI_API int PMI_Lookup_name(const char service[], char port[]);
PMI_API int PMI_Spawn_multiple(int count, const char *commands[], const char **arguments[],
	const int most[], const int info_sizes[], const PMI_keyval_t *infos[], int preput_size,
	const PMI_keyval_t preput[], int errors[]);

#ifdef __cplusplus
}
#endif

#endif
