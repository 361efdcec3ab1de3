/* SPDX-License-Identifier: BSD-3-Clause */
/* eal.h - EAL as the rest of pmd-glue sees it. */
#ifndef PMD_GLUE_EAL_H
#define PMD_GLUE_EAL_H

#include <stdbool.h>
#include <stddef.h>

/* Has glue_start() been called, and does EAL run, in this process? False in a child made by
 * fork(). */
bool glue_started(void);
bool eal_started(void);

/* Starts EAL, unless it runs. Called before one of DPDK's devices is opened or EAL's memory is
 * used. After glue_start(). Returns 0, or -1 after an error line. */
int eal_need(void);

/* DPDK's gravest complaint since eal_reason_clear(), without its newline, or a text that says that
 * there was none. It is copied to the buffer, which is returned. */
const char *eal_reason(char *buffer, size_t size);
void eal_reason_clear(void);

/* DPDK replaces the handler of SIGBUS when it touches new hugepages, and some drivers pin the
 * thread that adds a device. eal_leave() restores what was so before eal_enter(). */
struct eal_guard;
struct eal_guard *eal_enter(void);
void eal_leave(struct eal_guard *guard);

/* Has EAL's interrupt thread call the function, and waits for it: no driver's callback runs
 * meanwhile. This thread calls it when that one does not come to it. */
void eal_call(void (*function)(void *context), void *context);

/* What to do when a thread cannot be had. */
void eal_thread_remedy(char *remedy, size_t size);

/* The directory where EAL keeps files of this user's running processes, found as EAL finds it. It
 * may not exist. */
void eal_runtime_directory(char *path, size_t size);
/* Makes it, or another that only this user writes to; one that is there is taken if it is this
 * user's, and no one else may write there. Returns false with errno. */
bool eal_directory_make(const char *path);

/* Is this a PCI address ("3:0.0", "0000:03:00.0")? */
bool eal_is_pci(const char *name);

/* Splits text at blanks into at most count words, with quotes and backslashes as a shell has them.
 * The words lie in storage (strlen(text) + 1 bytes). Returns how many, or -1 when a quote is not
 * closed or there are too many. */
int eal_split(const char *text, char *storage, char **words, int count);

#endif
