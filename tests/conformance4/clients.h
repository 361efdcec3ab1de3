/* SPDX-License-Identifier: BSD-3-Clause */
/* clients.h - stand-ins of Portals 4's clients: their calls in their order, with their options and
 * limits. Each checks every byte.
 *
 * A stand-in is a job of several processes, which postern-run starts and which find each other by
 * PMI 1, as the clients do.
 */
#ifndef CONFORMANCE4_CLIENTS_H
#define CONFORMANCE4_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <portals4.h>

#define RANKS_MAX 16

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ANYONE       ((ptl_process_t){.phys = {PTL_NID_ANY, PTL_PID_ANY}})
#define ANY_RANK     ((ptl_process_t){.rank = PTL_RANK_ANY})

extern unsigned rank, ranks;

/* Ends the process with a line unless the condition holds. */
#define check(condition) ((condition) ? (void)0 : check_fail(#condition, __FILE__, __LINE__))
_Noreturn void check_fail(const char *what, const char *file, int line);
#define check_ok(call) check_code(call, #call, __FILE__, __LINE__)
void check_code(int code, const char *call, const char *file, int line);

/* Unlinks an entry by PtlMEUnlink or PtlLEUnlink when its last message has ended: the target of a
 * get may learn that later than the initiator. */
void entry_unlink(int (*unlink)(ptl_handle_any_t), ptl_handle_any_t entry);

/* `bytes` bytes that depend on seed, and whether they are these. */
void pattern_fill(void *memory, size_t bytes, uint32_t seed);
void pattern_check(const void *memory, size_t bytes, uint32_t seed);

/* All ranks come here before one goes on. */
void job_barrier(void);
/* Every rank says where it is, and learns where the others are. */
void job_map(ptl_process_t self, ptl_process_t map[RANKS_MAX]);

/* The stand-ins. */
void client_gasnet(void);
void client_nemesis(void);
void client_openmpi(void);
void client_openshmem(void);

#endif
