/* SPDX-License-Identifier: BSD-3-Clause */
/* library.c - the beginning: init, attach, handlers; queries, errors, locks. */
#include "state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HANDLER_FIRST 128u
#define HANDLERS      128u

struct gasnet gasnet = {.wait_mode = GASNET_WAIT_SPINBLOCK};
void (*gasnet_client_attach_hook)(void *, uintptr_t);
extern void (*gasnet_client_attach_hook)(void *, uintptr_t) __attribute__((visibility("default")));

#define LINE_ROOM 1024u

static void (*handlers[HANDLERS])(void);

/* What scripts look for in a program. */
#define IDENT(name, text)                                                                          \
	static const char ident_##name[] __attribute__((used)) = "$" #name ": " text " $"
IDENT(GASNetAPIVersion, "1.8");
IDENT(GASNetThreadModel, "GASNET_" GASNET_POSTERN_MODE_STR);
IDENT(GASNetConduitName, GASNET_CONDUIT_NAME_STR);
IDENT(GASNetCoreLibraryVersion, GASNET_CORE_VERSION_STR);
IDENT(GASNetCoreLibraryName, GASNET_CORE_NAME_STR);

/* In one write, so that lines of several ranks do not mix. */
static void say(const char *format, va_list arguments)
{
	char text[LINE_ROOM];

	vsnprintf(text, sizeof(text), format, arguments);
	fprintf(stderr, "gasnet: rank %u: %s\n", gasnet.rank, text);
}

void complain(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
}

void fatal(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
	if (gasnet.traces)
		backtrace_write();
	if (gasnet.freezes)
		freeze();
	abort();
}

void must_be(int code, const char *call)
{
	if (code == PTL_OK)
		return;
	exit_await();
	fatal("%.*s: %s", (int)strcspn(call, "("), call, PtlToStr(code, PTL_STR_ERROR));
}

PER_THREAD unsigned locks_held;

void call_refuse(const char *call, bool handlers_may)
{
	if (handlers_run > 0 && !handlers_may)
		fatal("%s in a handler: a handler may reply, and take locks", call);
	if (locks_held > 0)
		fatal("%s by a thread that holds a lock: release it with gasnet_hsl_unlock first",
			call);
}

/* --- handlers */

void (*handler_find(unsigned index, uint32_t from))(void)
{
	void (*function)(void) =
		index < HANDLER_FIRST ? transfer_handler(index) : handlers[index - HANDLER_FIRST];

	if (!function && index < HANDLER_FIRST)
		function = collective_handler(index);
	if (!function)
		fatal("a message of rank %u is for handler %u, which this rank has not registered: "
		      "register the same handlers in all ranks",
			from, index);
	return function;
}

/* Returns false after a line. The table is changed after all of it has been checked. */
static bool handlers_take(gasnet_handlerentry_t *table, int count)
{
	unsigned next = 0;

	if (count < 0 || count > (int)HANDLERS || (count > 0 && !table)) {
		complain("gasnet_attach: the table has %d handlers: register 0 to %u", count,
			HANDLERS);
		return false;
	}
	memset(handlers, 0, sizeof(handlers)); /* of an attempt that failed */
	for (int i = 0; i < count; i++) {
		unsigned index = table[i].index;

		if (index == 0)
			continue;
		if (index < HANDLER_FIRST || handlers[index - HANDLER_FIRST]) {
			complain("gasnet_attach: handler index %u %s: use each of %u to 255 once, "
				 "or 0",
				index,
				index < HANDLER_FIRST ? "is the library's" : "stands there twice",
				HANDLER_FIRST);
			return false;
		}
		handlers[index - HANDLER_FIRST] = (void (*)(void))table[i].fnptr;
	}
	for (int i = 0; i < count; i++) {
		if (table[i].index != 0)
			continue;
		while (handlers[next])
			next++;
		handlers[next] = (void (*)(void))table[i].fnptr;
		table[i].index = (gasnet_handler_t)(HANDLER_FIRST + next);
	}
	return true;
}

/* --- init and attach */

int GASNET_POSTERN_INIT(int *argc, char ***argv, int segment, const char *configuration)
{
	(void)argc;
	(void)argv;
	if (gasnet.stage != STAGE_NONE) {
		complain("gasnet_init was called before: call it once");
		return GASNET_ERR_NOT_INIT;
	}
	gasnet.segment_kind = segment;
	gasnet.debug = strstr(configuration, ",debug,");
	/* Before Portals is opened, whose handlers of faults pass on what is not theirs. */
	exit_catch();
	if (!start_join())
		return GASNET_ERR_RESOURCE;
	gasnet.stage = STAGE_JOINED;
	return GASNET_OK;
}

int gasnet_attach(
	gasnet_handlerentry_t *table, int numentries, uintptr_t segsize, uintptr_t minheapoffset)
{
	static const char *const kinds[] = {"FAST", "LARGE", "EVERYTHING"};

	if (gasnet.stage != STAGE_JOINED) {
		complain("gasnet_attach: %s", gasnet.stage == STAGE_NONE
						      ? "call gasnet_init first"
						      : "it was called before: call it once");
		return GASNET_ERR_NOT_INIT;
	}
	if (gasnet.segment_kind != 2 &&
		(segsize % GASNET_PAGESIZE != 0 || segsize > gasnet.ranks[gasnet.rank].limit)) {
		complain("gasnet_attach: a segment cannot have %zu bytes: use a multiple of "
			 "%d, and at most %zu",
			(size_t)segsize, GASNET_PAGESIZE, (size_t)gasnet.ranks[gasnet.rank].limit);
		return GASNET_ERR_BAD_ARG;
	}
	if (!handlers_take(table, numentries) || !segment_make(segsize, minheapoffset))
		return GASNET_ERR_RESOURCE;
	receive_open();
	send_open();
	barrier_open();
	transfer_open();
	collective_open();
	rings_open();
	if (!start_exchange(kinds[gasnet.segment_kind]))
		return GASNET_ERR_RESOURCE;
	gasnet.stage = STAGE_ATTACHED;
	if (gasnet_client_attach_hook)
		gasnet_client_attach_hook(
			gasnet.ranks[gasnet.rank].address, gasnet.ranks[gasnet.rank].size);
	return GASNET_OK;
}

/* --- queries */

gasnet_node_t gasnet_mynode(void)
{
	return gasnet.rank;
}

gasnet_node_t gasnet_nodes(void)
{
	return gasnet.size;
}

uintptr_t gasnet_getMaxLocalSegmentSize(void)
{
	return gasnet.ranks[gasnet.rank].limit;
}

uintptr_t gasnet_getMaxGlobalSegmentSize(void)
{
	return gasnet.limit_least;
}

int gasnet_getSegmentInfo(gasnet_seginfo_t *table, int numentries)
{
	if (gasnet.stage != STAGE_ATTACHED)
		return GASNET_ERR_NOT_INIT;
	if (!table || numentries < 1)
		return GASNET_ERR_BAD_ARG;
	for (uint32_t i = 0; i < gasnet.size && i < (uint32_t)numentries; i++)
		table[i] = (gasnet_seginfo_t){gasnet.ranks[i].address, gasnet.ranks[i].size};
	return GASNET_OK;
}

int gasnet_getNodeInfo(gasnet_nodeinfo_t *table, int numentries)
{
	if (gasnet.stage == STAGE_NONE)
		return GASNET_ERR_NOT_INIT;
	if (!table || numentries < 1)
		return GASNET_ERR_BAD_ARG;
	for (uint32_t i = 0; i < gasnet.size && i < (uint32_t)numentries; i++)
		table[i] = (gasnet_nodeinfo_t){gasnet.ranks[i].host, i};
	return GASNET_OK;
}

int gasnet_set_waitmode(int mode)
{
	if (mode < GASNET_WAIT_SPIN || mode > GASNET_WAIT_SPINBLOCK)
		return GASNET_ERR_BAD_ARG;
	__atomic_store_n(&gasnet.wait_mode, mode, __ATOMIC_RELAXED);
	return GASNET_OK;
}

/* --- errors */

static const struct {
	int code;
	const char *name, *description;
} errors[] = {
	{GASNET_OK, "GASNET_OK", "no error"},
	{GASNET_ERR_NOT_INIT, "GASNET_ERR_NOT_INIT",
		"the library is not initialised, or was initialised before"},
	{GASNET_ERR_RESOURCE, "GASNET_ERR_RESOURCE", "a resource is missing"},
	{GASNET_ERR_BAD_ARG, "GASNET_ERR_BAD_ARG", "an argument is not valid"},
	{GASNET_ERR_NOT_READY, "GASNET_ERR_NOT_READY", "not complete yet"},
	{GASNET_ERR_BARRIER_MISMATCH, "GASNET_ERR_BARRIER_MISMATCH",
		"the ranks entered the barrier under different names"},
};

#define ERRORS (sizeof(errors) / sizeof(errors[0]))

const char *gasnet_ErrorName(int code)
{
	for (size_t i = 0; i < ERRORS; i++)
		if (errors[i].code == code)
			return errors[i].name;
	return "no error code of GASNet";
}

const char *gasnet_ErrorDesc(int code)
{
	for (size_t i = 0; i < ERRORS; i++)
		if (errors[i].code == code)
			return errors[i].description;
	return "no error code of GASNet";
}

/* --- handler-safe locks */

#ifndef GASNET_SEQ
static void hsl_must(int code, const char *what)
{
	if (code != 0)
		fatal("gasnet_hsl_%s: %s", what, strerror(code));
}

void gasnet_hsl_init(gasnet_hsl_t *hsl)
{
	hsl_must(pthread_mutex_init(&hsl->mutex, NULL), "init");
}

void gasnet_hsl_destroy(gasnet_hsl_t *hsl)
{
	hsl_must(pthread_mutex_destroy(&hsl->mutex), "destroy");
}

void gasnet_hsl_lock(gasnet_hsl_t *hsl)
{
	hsl_must(pthread_mutex_lock(&hsl->mutex), "lock");
	if (gasnet.debug)
		locks_held++;
}

void gasnet_hsl_unlock(gasnet_hsl_t *hsl)
{
	if (gasnet.debug && locks_held-- == 0)
		fatal("gasnet_hsl_unlock: this thread holds no lock: lock it first with "
		      "gasnet_hsl_lock");
	hsl_must(pthread_mutex_unlock(&hsl->mutex), "unlock");
}

int gasnet_hsl_trylock(gasnet_hsl_t *hsl)
{
	if (pthread_mutex_trylock(&hsl->mutex) != 0)
		return GASNET_ERR_NOT_READY;
	if (gasnet.debug)
		locks_held++;
	return GASNET_OK;
}
#endif
