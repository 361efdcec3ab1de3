/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi.h - how the processes of a job find each other: the client of PMI 1 that is installed beside
 * Portals 4 (libportals_runtime), with the names that MPICH's and Sandia's have.
 *
 * The launcher offers PMI 1, as postern-run, Hydra and Slurm's srun with --mpi=pmi2 do, or PMIx, as
 * Open MPI's mpirun and srun --mpi=pmix do; PMIx needs libpmix.so.2, and then each rank stores what
 * all ranks have put. Without a launcher a process is a job of its own, with one rank. Any thread
 * may call any function; calls run one at a time.
 *
 * At the first barrier after PtlNIInit() the ranks also exchange their addresses, which PtlSetMap()
 * then uses, so that no rank asks the network for another one by broadcast.
 *
 * A function returns PMI_SUCCESS, or
 *   PMI_FAIL                    The job cannot be joined, the launcher has ended or refuses the
 *                               call, or a key has no value that fits. A line on standard error
 *                               says which.
 *   PMI_ERR_INIT                PMI_Init() was not called, or PMI_Finalize() was. PMI_Init(),
 *                               PMI_Initialized(), PMI_Abort() and the three functions that get a
 *                               length do not return this.
 *   PMI_ERR_INVALID_ARG         A pointer is NULL.
 *   PMI_ERR_INVALID_KEY         A key is empty, too long, or contains a blank.
 *   PMI_ERR_INVALID_VAL         The same of a value.
 *   PMI_ERR_INVALID_LENGTH      PMI_KVS_Get_my_name(): length is too small for the name.
 *   PMI_ERR_INVALID_VAL_LENGTH  PMI_KVS_Get(): length is not positive.
 * The other codes are never returned.
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

/* Joins the job. *spawned becomes 0. A second call does nothing more. */
PMI_API int PMI_Init(int *spawned);
/* Gets PMI_TRUE between PMI_Init() and PMI_Finalize(), and PMI_FALSE otherwise. */
PMI_API int PMI_Initialized(PMI_BOOL *initialized);
/* Leaves the job: afterwards the process may end without ending the others. */
PMI_API int PMI_Finalize(void);

/* Get the number of ranks, and the rank of this process, from 0. */
PMI_API int PMI_Get_size(int *size);
PMI_API int PMI_Get_rank(int *rank);
/* Gets the number of ranks, as PMI_Get_size() does. */
PMI_API int PMI_Get_universe_size(int *size);
/* Gets 0. */
PMI_API int PMI_Get_appnum(int *number);

/* Returns when all ranks have called it. Afterwards each rank can get what the others had put
 * before the call. Blocks; with PTL_PROGRESS=inline it drives the interface meanwhile. */
PMI_API int PMI_Barrier(void);
/* Ends all ranks, and does not return. It may be called while another thread is in a function of
 * this header.
 *   exit_code  of this process, and of the job if the launcher passes it on; only the low byte is
 *              used; if that is 0 and exit_code is not, it becomes 1
 *   text       a line for standard error, or NULL */
PMI_API int PMI_Abort(int exit_code, const char text[]);

/* There is one key-value space, the job's, so the name of the space is not compared. Lengths are in
 * bytes, with the final 0. */

/* Gets the name of the key-value space.
 *   name, length  out: room for the name, and its size */
PMI_API int PMI_KVS_Get_my_name(char name[], int length);
/* Get the largest sizes: 256 of a name, 64 of a key, 1,024 of a value. */
PMI_API int PMI_KVS_Get_name_length_max(int *length);
PMI_API int PMI_KVS_Get_key_length_max(int *length);
PMI_API int PMI_KVS_Get_value_length_max(int *length);
/* Puts a value under a key. Neither is empty or contains blanks. No key is put twice in a job. */
PMI_API int PMI_KVS_Put(const char name[], const char key[], const char value[]);
/* Does nothing: the next barrier publishes what was put. */
PMI_API int PMI_KVS_Commit(const char name[]);
/* Gets the value of a key that a rank put before the last barrier.
 *   value, length  out: room for the value, and its size */
PMI_API int PMI_KVS_Get(const char name[], const char key[], char value[], int length);

/* These are not supported: each returns PMI_FAIL, without a line on standard error. */
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
