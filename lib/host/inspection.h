/* SPDX-License-Identifier: BSD-3-Clause */
/* inspection.h - the topics that can be looked at in an interface, as postern_inspect() and
 * telemetry offer them. */
#ifndef HOST_INSPECTION_H
#define HOST_INSPECTION_H

#include <stdbool.h>
#include <stdint.h>
#include <base/report.h>

struct interface;

/* Of a list: where a page begins, and how many items it may have. */
struct page {
	uint32_t first;
	uint32_t count;
};

struct topic {
	const char *name;
	const char *alias; /* NULL: none */
	const char *help;
	bool paged;
	/* Writes members of an object that is open. The library's lock is held, and the interface
	 * is open. */
	void (*tell)(struct interface *interface, struct page page, struct report *report);
};

extern const struct topic inspection_topics[];
extern const unsigned inspection_topic_count;

/* NULL: there is none of that name. */
const struct topic *inspection_topic(const char *name);

#endif
