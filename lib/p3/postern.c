/* SPDX-License-Identifier: BSD-3-Clause */
/* postern.c - what postern.h adds: version, words, memory, counters, settings. */
#include <postern.h>

#include <string.h>

#include <base/log.h>
#include <base/port.h>
#include <base/settings.h>
#include <host/interface.h>
#include <host/library.h>
#include <pmd-glue/glue.h>

#define TEXT_OF(x)       #x
#define VERSION(a, b, c) TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)

const char *postern_version(void)
{
	return VERSION(POSTERN_VERSION_MAJOR, POSTERN_VERSION_MINOR, POSTERN_VERSION_PATCH);
}

/* Every return code: X(name, text). */
#define CODES(X)                                                                                   \
	X(PTL_OK, "success")                                                                       \
	X(PTL_FAIL, "the library could not be initialised")                                        \
	X(PTL_NOINIT, "the library has not been initialised in this process")                      \
	X(PTL_NOSPACE, "there is no memory, or a limit of the interface has been reached")         \
	X(PTL_SEGV, "a pointer argument is not a legal address")                                   \
	X(PTL_INIT_DUP, "the interface had been initialised before")                               \
	X(PTL_INIT_INV, "there is no such interface, or its device cannot be used")                \
	X(PTL_INV_NI, "not a valid interface handle")                                              \
	X(PTL_INV_EQ, "not a valid event queue handle")                                            \
	X(PTL_INV_MD, "not a valid memory descriptor handle, or an inactive descriptor")           \
	X(PTL_INV_ME, "not a valid match entry handle")                                            \
	X(PTL_INV_HANDLE, "not a valid handle")                                                    \
	X(PTL_INV_PROC, "not a valid process id")                                                  \
	X(PTL_INV_PTINDEX, "not a valid Portal table index")                                       \
	X(PTL_INV_SR_INDX, "not a valid status register")                                          \
	X(PTL_INV_ASIZE, "not a valid access control table size")                                  \
	X(PTL_AC_INV_INDEX, "not a valid access control table index")                              \
	X(PTL_PT_INV_INDEX, "not a valid Portal table index in an access control entry")           \
	X(PTL_PT_FULL, "no Portal is free")                                                        \
	X(PTL_ML_TOOLONG, "the match list is as long as it may become")                            \
	X(PTL_INUSE, "the match entry has a memory descriptor already")                            \
	X(PTL_MD_INUSE, "the memory descriptor has operations pending")                            \
	X(PTL_ILL_MD, "not a legal memory descriptor")                                             \
	X(PTL_NOUPDATE, "the event queue was not empty, so the descriptor was not updated")        \
	X(PTL_EQ_EMPTY, "the event queue is empty, or another thread waits for its next event")    \
	X(PTL_EQ_DROPPED, "success, but at least one event before this one was lost")

static const char *const code_names[] = {
#define X(name, text) [name] = #name,
	CODES(X)
#undef X
};

static const char *const code_texts[] = {
#define X(name, text) [name] = text,
	CODES(X)
#undef X
};

static const char *const event_names[] = {
#define X(name) [name] = #name,
	X(PTL_EVENT_GET_START) X(PTL_EVENT_GET_END) X(PTL_EVENT_GET_FAIL) X(PTL_EVENT_PUT_START)
		X(PTL_EVENT_PUT_END) X(PTL_EVENT_PUT_FAIL) X(PTL_EVENT_REPLY_START)
			X(PTL_EVENT_REPLY_END) X(PTL_EVENT_REPLY_FAIL) X(PTL_EVENT_SEND_START)
				X(PTL_EVENT_SEND_END) X(PTL_EVENT_SEND_FAIL) X(PTL_EVENT_ACK)
					X(PTL_EVENT_UNLINK)
#undef X
};

static const char *const fail_texts[] = {
	[PTL_NI_OK] = "no failure",
	[PTL_NI_UNREACHABLE] = "no process with that id answered within PTL_PEER_TIMEOUT",
	[PTL_NI_PEER_DEAD] = "the process fell silent for PTL_PEER_TIMEOUT",
	[PTL_NI_PEER_RESTARTED] = "the process ended, or another took its place, meanwhile",
	[PTL_NI_UNDELIVERABLE] = "the target discarded the request",
	[PTL_NI_SHUTDOWN] = "this process shut its interface down",
};

#define COUNT(table)          (sizeof(table) / sizeof((table)[0]))
#define PICK(table, i, other) ((size_t)(i) < COUNT(table) ? (table)[(size_t)(i)] : (other))

const char *postern_error_name(int code)
{
	return PICK(code_names, code, "unknown return code");
}

const char *postern_error_text(int code)
{
	return PICK(code_texts, code, "unknown return code");
}

const char *postern_event_name(ptl_event_kind_t kind)
{
	return PICK(event_names, kind, "unknown event kind");
}

const char *postern_fail_text(ptl_ni_fail_t why)
{
	return PICK(fail_texts, why, "unknown failure");
}

const char *postern_last_error(void)
{
	return log_last_error();
}

void *postern_alloc(ptl_handle_ni_t interface, size_t size)
{
	struct visit visit;
	void *memory;
	int socket;

	if (visit_enter(&visit, interface, HANDLE_INTERFACE, PTL_INV_NI) != PTL_OK)
		return NULL;
	socket = visit.interface->socket;
	visit_leave(&visit);
	library_glue_lock();
	memory = glue_memory_alloc(size == 0 ? 1 : size, socket);
	library_glue_unlock();
	return memory;
}

void postern_free(void *memory)
{
	/* A forked child shares the allocator's books with its parent, to whom the memory
	 * belongs. */
	if (!memory || library_is_forked())
		return;
	library_glue_lock();
	glue_memory_free(memory);
	library_glue_unlock();
}

#define ONE(name, help) +1
static_assert(0 ENGINE_COUNTERS(ONE) ENGINE_DROPS(ONE) TRANSPORT_COUNTERS(ONE) + 6 <= STATS_MAX,
	"all fit");

/* Where the counters go, one after the other. */
struct stat_list {
	struct postern_stat *stats;
	unsigned room;
	unsigned count; /* also of those that found no room */
};

static void stat_add(struct stat_list *list, const char *name, const char *help, uint64_t value)
{
	if (list->count < list->room)
		list->stats[list->count] = (struct postern_stat){name, help, value};
	list->count++;
}

static void stats_add_engine(struct stat_list *list, const struct engine_counters *counters)
{
#define X(name, help)                                                                              \
	stat_add(list, #name, help, atomic_load_explicit(&counters->name, memory_order_relaxed));
	ENGINE_COUNTERS(X)
	ENGINE_DROPS(X)
#undef X
}

static void stats_add_transport(struct stat_list *list, const struct transport_counters *counters)
{
#define X(name, help)                                                                              \
	stat_add(list, #name, help, __atomic_load_n(&counters->name, __ATOMIC_RELAXED));
	TRANSPORT_COUNTERS(X)
#undef X
}

static void stats_add_port(struct stat_list *list, const struct port_counters *counters)
{
#define X(field, name, help) stat_add(list, name, help, counters->field);
	PORT_COUNTERS(X)
#undef X
}

static void look_counters(struct interface *interface, void *counters)
{
	interface->port->operations->counters(interface->port, counters);
}

unsigned interface_stats(struct interface *interface, struct postern_stat *stats, unsigned count)
{
	struct stat_list list = {stats, count, 0};
	const struct segment *segment = interface->submission.segment;
	struct port_counters port = {0};

	interface_look(interface, look_counters, &port);
	stats_add_engine(&list, &segment->counters);
	stats_add_transport(&list, &segment->transport);
	stats_add_port(&list, &port);
	return list.count;
}

unsigned postern_stats(ptl_handle_ni_t handle, struct postern_stat *stats, unsigned count)
{
	struct interface *interface;
	unsigned known = 0;

	if (!library_is_open() || (count > 0 && address_is_bad(stats, count * sizeof(*stats),
							_Alignof(struct postern_stat))))
		return 0;
	/* The lock keeps the interface open, as a visit would, while the port's owner is asked to
	 * stand aside. */
	library_lock();
	interface = interface_of(handle);
	if (interface)
		known = interface_stats(interface, stats, count);
	library_unlock();
	return known;
}

unsigned postern_settings(struct postern_setting *settings, unsigned count)
{
	if (count > SETTING_COUNT)
		count = SETTING_COUNT;
	if (library_is_forked() || (count > 0 && address_is_bad(settings, count * sizeof(*settings),
							 _Alignof(struct postern_setting))))
		return 0;
	library_lock();
	for (unsigned i = 0; i < count; i++) {
		const struct setting_description *description = setting_describe((enum setting)i);

		settings[i] = (struct postern_setting){
			.name = description->name,
			.fallback = description->fallback,
			.help = description->help,
			.value = setting_text((enum setting)i),
		};
	}
	library_unlock();
	return SETTING_COUNT;
}
