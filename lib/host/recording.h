/* SPDX-License-Identifier: BSD-3-Clause */
/* recording.h - starting and stopping a capture of an open interface. Any thread. */
#ifndef HOST_RECORDING_H
#define HOST_RECORDING_H

#include <stdint.h>

#include <base/core.h>
#include <host/front.h>

/* file: its name, with %p for the process id and %i for the interface's number; "-": standard
 * output. snaplen: bytes of each frame that are kept, 0 for all. OK; GONE: the handle is none;
 * FAILED, after an error line. */
enum answer recording_start(const struct front *front, uint64_t handle, const char *file,
	unsigned snaplen) CORE_API(recording_start);
/* Returns when the file is written, if there is a capture. OK or GONE. */
enum answer recording_stop(const struct front *front, uint64_t handle) CORE_API(recording_stop);

#endif
