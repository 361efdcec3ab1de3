/* SPDX-License-Identifier: BSD-3-Clause */
/* no_pmix.c - pmix_client.h in a build without PMIx's headers. launchers.c has refused the
 * launcher, so nothing here is called. */
#include <job/pmix_client.h>

#include <stdlib.h>

#define NONE __attribute__((unused))
#define MISSING(function)                                                                          \
	function                                                                                   \
	{                                                                                          \
		abort();                                                                           \
	}

MISSING(bool pmix_begin(NONE struct job *job, NONE const char *name_space))
MISSING(bool pmix_put(NONE struct job *job, NONE const char *key, NONE const char *value))
MISSING(bool pmix_fence(NONE struct job *job))
MISSING(bool pmix_get(NONE struct job *job, NONE uint32_t rank, NONE const char *key,
	NONE char *value, NONE size_t size))
MISSING(bool pmix_end(NONE struct job *job))
MISSING(void pmix_abort(NONE int code))
