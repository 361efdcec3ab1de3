/* SPDX-License-Identifier: BSD-3-Clause */
/* libfabric.h - whether programs of libfabric find the provider that lib/fi is. */
#ifndef INFO_LIBFABRIC_H
#define INFO_LIBFABRIC_H

#include <stdbool.h>

struct libfabric {
	bool found;
	char text[512]; /* the provider's directory, or the obstacle and its cure */
};

/* Looks where the libfabric that this machine's loader finds would look, in this environment. */
void libfabric_look(struct libfabric *libfabric);

#endif
