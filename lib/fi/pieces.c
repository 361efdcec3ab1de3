/* SPDX-License-Identifier: BSD-3-Clause */
/* pieces.c - the local memory of a call, which may lie in several places. */
#include <fi/state.h>

#include <stdlib.h>
#include <string.h>

int pieces_measure(const struct iovec *iov, size_t count, uint64_t *length)
{
	*length = 0;
	if (count > IOV_MAX_PARTS || (count > 0 && !iov))
		return -FI_EINVAL;
	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len > MESSAGE_MAX - *length)
			return -FI_EMSGSIZE;
		*length += iov[i].iov_len;
	}
	return 0;
}

struct map_vector *pieces_copy(const struct iovec *iov, size_t count)
{
	struct map_vector *vector = malloc(map_vector_size((uint32_t)count));

	if (!vector)
		return NULL;
	vector->count = 0;
	for (size_t i = 0; i < count; i++)
		map_vector_add(vector, iov[i].iov_base, iov[i].iov_len);
	return vector;
}

void pieces_gather(const struct iovec *iov, size_t count, void *to)
{
	char *next = to;

	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len > 0)
			memcpy(next, iov[i].iov_base, iov[i].iov_len);
		next += iov[i].iov_len;
	}
}
