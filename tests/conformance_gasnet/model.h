/* SPDX-License-Identifier: BSD-3-Clause */
/* model.h - what the ranks of test_model.c tell its oracle, and are told. */
#ifndef MODEL_H
#define MODEL_H

#include "fake_portals.h"

#define REQUESTS 60u   /* of each rank to each */
#define ROOM     4096u /* bytes of the longest message */

/* How a request is answered. */
enum answer { ANSWER_NONE, ANSWER_SHORT, ANSWER_MEDIUM, ANSWER_LONG, ANSWERS };

/* A request's call has returned; its reply's handler begins. */
FAKE_API void model_sent(unsigned to, unsigned credits);
FAKE_API void model_answered(unsigned from, unsigned credits);
/* A handler of a request ends. credits: those of its request. */
FAKE_API void model_handled(unsigned from, unsigned credits, bool replied);
/* This fiber has sent its requests, and has all answers. Returns true when all fibers have. */
FAKE_API bool model_is_over(bool own);

/* Of each copy of the library with model_rank.c. */
typedef void model_rank_run(unsigned thread);

#endif
