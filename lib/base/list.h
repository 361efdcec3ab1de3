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

#define LIST_INITIAL(list)                                                                         \
	{                                                                                          \
		&(list), &(list)                                                                   \
	} /* initializes a list that is static */

#define link_entry(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

/* The element of a link in a list; NULL: the link is the list's head. */
#define list_element(link, list, type, member)                                                     \
	((link) == (list) ? NULL : link_entry(link, type, member))
/* NULL: the list is empty. */
#define list_first(list, type, member) list_element((list)->next, list, type, member)
/* A loop over a list's elements in order, which may remove the element that it is at. */
#define list_each(type, element, list, member)                                                     \
	for (type *element = list_first(list, type, member), *element##_next;                      \
		element &&                                                                         \
		(element##_next = list_element((element)->member.next, list, type, member), true); \
		element = element##_next)

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
