/* SPDX-License-Identifier: BSD-3-Clause */
/* list.h - doubly linked lists through links inside their elements. Removal needs no list. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* A list's head, or an element's link: next is NULL while the element is in no list. */
struct link {
	struct link *next;
	struct link *prev;
};

#define link_entry(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

static inline void list_init(struct link *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool list_empty(const struct link *list)
{
	return list->next == list;
}

static inline bool link_listed(const struct link *link)
{
	return link->next != NULL;
}

static inline void list_append(struct link *list, struct link *link)
{
	link->next = list;
	link->prev = list->prev;
	list->prev->next = link;
	list->prev = link;
}

static inline void link_remove(struct link *link)
{
	link->next->prev = link->prev;
	link->prev->next = link->next;
	link->next = NULL;
	link->prev = NULL;
}

#endif
