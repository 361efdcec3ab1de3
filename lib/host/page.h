/* SPDX-License-Identifier: BSD-3-Clause */
/* page.h - pages of an interface's objects, for the functions that tell of them (inspection.h). Any
 * thread, with the library's lock. */
#ifndef HOST_PAGE_H
#define HOST_PAGE_H

#include <base/handle.h>
#include <base/report.h>
#include <engine/segment.h>
#include <host/inspection.h>

#define PAGE_ITEMS 64 /* at most */
#define LOOK_ITEMS 8  /* that are told while the poll core stands aside once */

/* The objects of a page, by index. */
struct selection {
	uint32_t count;
	uint32_t next; /* where the next page begins; UINT32_MAX: there is none */
	uint32_t indices[PAGE_ITEMS];
};

/* How many items a page may have. */
uint32_t page_count(struct page page);
/* Open and close the array of a page's items. next: as in struct selection. */
void list_open(struct report *report, uint32_t total, struct page page);
void list_close(struct report *report, uint32_t next);
/* A kind of objects of which pages are told. */
struct object_kind {
	enum handle_kind handle;
	/* NULL: an object whose handle lives is in use */
	bool (*in_use)(const struct segment *segment, uint32_t index);
	uint32_t (*total)(const struct segment *segment);
	/* Does the poll core know an object that is in use? NULL: it does, if the object still is.
	 * This and tell() are called while the poll core stands aside (inspection.c, I1). */
	bool (*is_known)(const struct segment *segment, uint32_t index);
	/* Writes the members of an object that is open. */
	void (*tell)(struct interface *interface, uint32_t index, struct report *report);
};

/* Those of `limit` objects of a kind that are in use. */
void select_page(struct selection *selection, struct segment *segment, struct page page,
	uint32_t limit, const struct object_kind *kind);
/* Tells a page of the `limit` objects of an interface. */
void objects_tell(struct interface *interface, struct page page, const struct object_kind *kind,
	uint32_t limit, struct report *report);
/* How many of `limit` objects are not in their free list. */
uint32_t objects_in_use(const struct segment *segment, uint64_t free_list, uint32_t limit);
uint32_t entries_in_use(const struct segment *segment);
uint32_t regions_in_use(const struct segment *segment); /* without those that are entries' */
uint32_t queues_in_use(const struct segment *segment);
uint32_t counters_in_use(const struct segment *segment);
/* A Portal is in use that has an entry. */
bool portal_is_used(const struct segment *segment, uint32_t index);
uint32_t portals_in_use(const struct segment *segment);

/* A number below HANDLE_INTERFACES. */
uint32_t interface_number(const struct interface *interface);
/* A handle, as programs know it; 0: none. */
uint64_t handle_name(const struct interface *interface, uint64_t handle);
uint64_t object_handle(
	const struct interface *interface, enum handle_kind kind, uint32_t index, uint64_t gate);

#endif
