/* SPDX-License-Identifier: BSD-3-Clause */
/* answer.h - how the engine answers a command that has a reply slot. A front end turns the answer
 * into its own return code. */
#ifndef ENGINE_ANSWER_H
#define ENGINE_ANSWER_H

enum answer {
	ANSWER_OK,
	ANSWER_GONE,      /* the object that the command names does not exist, or no longer */
	ANSWER_PENDING,   /* operations are pending on the object; nothing was changed */
	ANSWER_NO_QUEUE,  /* REGION_UPDATE: the test queue does not exist */
	ANSWER_NOT_EMPTY, /* REGION_UPDATE: the test queue is not empty; nothing was changed */
	ANSWER_NO_MEMORY,
	ANSWER_TAKEN,  /* another process has the process id; an error line has said so */
	ANSWER_CLOSED, /* the interface is being closed */
	ANSWER_FAILED, /* an error line has said why */
	ANSWER_UNKNOWN /* there is no such command */
};

#endif
