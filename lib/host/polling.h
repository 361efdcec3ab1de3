/* SPDX-License-Identifier: BSD-3-Clause */
/* polling.h - who drives an interface's engine: a poll thread, or calls of the program, beside
 * which a helper may be. interface.h has what others ask of it. The library's lock is held.
 */
#ifndef HOST_POLLING_H
#define HOST_POLLING_H

#include <stdbool.h>

#include <host/interface.h>

/* Is the CPU that the user wants for the thread to be had? Returns false after an error line. */
bool polling_cpu_usable(unsigned device);
/* Hands the interface's engine to what drives it by the settings of this device. 0; -1: there is no
 * thread to be had, or no memory, and the engine is the caller's. */
int polling_begin(struct interface *interface, unsigned device, struct segment *segment);
/* Takes the engine back: from here on it is the caller's. */
void polling_end(struct interface *interface);
/* A turn for the other interfaces of this process, to whom the caller may have sent frames that
 * nothing announces. */
unsigned polling_drive(void);
/* Wakes a thread that sleeps in the helper's place. Needs no lock. */
void polling_disturb(struct progress *progress);

#endif
