/* SPDX-License-Identifier: BSD-3-Clause */
/* hold.h - makes sure that one process at a time drives a card. Under vfio the kernel does so as
 * well. Under uio nothing else does, and two processes would overwrite each other's rings.
 *
 * I1. A hold is a record lock on a file named after the card, in the directory where DPDK keeps
 *     what belongs to running processes of the user. The kernel releases it when the process ends,
 *     however it ends, reports its holder, and does not pass it to forked children.
 * I2. Another user can neither take nor block it, because a directory that is not the user's own is
 *     not used. Users other than root can use cards under vfio only.
 * I3. A record lock ends when its process closes any descriptor of the file. So each file is opened
 *     once, and stays open.
 */
#ifndef PMD_GLUE_HOLD_H
#define PMD_GLUE_HOLD_H

/* Takes a card by its PCI address, until this process ends; a second time does nothing. Returns 0,
 * or -1 after an error line that names the process that has the card. Under the front end's
 * lock. */
int hold_take(const char *address);

#endif
