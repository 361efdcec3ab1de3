/* SPDX-License-Identifier: BSD-3-Clause */
/* place.h - copies data from a frame to where it belongs. */
#ifndef TRANSPORT_PLACE_H
#define TRANSPORT_PLACE_H

#include <stdint.h>
#include <string.h>

/* Data that lies in a sender's memory in this process may overlap with where it goes. to may be
 * anything when there are no bytes. */
static inline void place_data(void *to, const void *from, uint64_t bytes)
{
	uint64_t first, last;

	if (bytes >= sizeof(first) && bytes <= 2 * sizeof(first)) {
		memcpy(&first, from, sizeof(first));
		memcpy(&last, (const char *)from + bytes - sizeof(last), sizeof(last));
		memcpy(to, &first, sizeof(first));
		memcpy((char *)to + bytes - sizeof(last), &last, sizeof(last));
	} else if (bytes > 0) {
		memmove(to, from, bytes);
	}
}

#endif
