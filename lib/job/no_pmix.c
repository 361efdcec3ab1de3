/* SPDX-License-Identifier: BSD-3-Clause */
/* no_pmix.c - pmix_client.h in a build without PMIx's headers. launchers.c has refused the
 * launcher, so nothing here is called. */
#include <job/pmix_client.h>

#include <stdlib.h>

bool pmix_begin(struct job *job, const char *name_space)
{
	(void)job;
	(void)name_space;
	abort();
}

bool pmix_put(struct job *job, const char *key, const char *value)
{
	(void)job;
	(void)key;
	(void)value;
	abort();
}

bool pmix_fence(struct job *job)
{
	(void)job;
	abort();
}

bool pmix_get(struct job *job, uint32_t rank, const char *key, char *value, size_t size)
{
	(void)job;
	(void)rank;
	(void)key;
	(void)value;
	(void)size;
	abort();
}

bool pmix_end(struct job *job)
{
	(void)job;
	abort();
}

void pmix_abort(int code)
{
	(void)code;
	abort();
}
