/* SPDX-License-Identifier: BSD-3-Clause */
/* postern.c - what postern.h adds: version, words, memory, counters, settings, captures,
 * inspection. */
#include <postern.h>

#include <string.h>

#include <base/log.h>
#include <base/settings.h>
#include <host/inspection.h>
#include <host/recording.h>
#include <host/setting.h>
#include <host/statistics.h>
#include <p3/code.h>
#include <p3/instruments.h>
#include <p3/interface.h>

#define TEXT_OF(x)       #x
#define VERSION(a, b, c) TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)

const char *postern_version(void)
{
	return VERSION(POSTERN_VERSION_MAJOR, POSTERN_VERSION_MINOR, POSTERN_VERSION_PATCH);
}

/* Every return code: X(name, text). */
#define CODES(X)                                                                                   \
	X(PTL_OK, "success")                                                                       \
	X(PTL_FAIL, "the call failed, and a line on standard error says why")                      \
	X(PTL_NOINIT, "the library has not been initialised in this process")                      \
	X(PTL_NOSPACE, "no memory is free, or the interface has as many objects of the kind as "   \
		       "it may (limits of "                                                        \
		       "PtlNIInit, shown by postern-info)")                                        \
	X(PTL_SEGV, "a pointer argument is not a legal address")                                   \
	X(PTL_INIT_DUP, "the interface had been initialised before")                               \
	X(PTL_INIT_INV,                                                                            \
		"there is no such interface, or its device or the process id cannot be used")      \
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
	[PTL_NI_UNREACHABLE] = "no process with that id answered in time: postern-ping says why",
	[PTL_NI_PEER_DEAD] = "the process has ended, or fell silent for PTL_PEER_TIMEOUT",
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
	return interface_alloc(&portals, interface, size);
}

void postern_free(void *memory)
{
	interface_free(memory);
}

/* Where the counters go, one after the other. */
struct stat_list {
	struct postern_stat *stats;
	unsigned room;
	unsigned count; /* also of those that found no room */
};

static void stat_add(void *context, const char *name, const char *help, uint64_t value)
{
	struct stat_list *list = context;

	if (list->count < list->room)
		list->stats[list->count] = (struct postern_stat){name, help, value};
	list->count++;
}

unsigned postern_stats(ptl_handle_ni_t handle, struct postern_stat *stats, unsigned count)
{
	struct stat_list list = {stats, count, 0};

	if (!front_is_open(&portals) || (count > 0 && address_is_bad(stats, count * sizeof(*stats),
							      _Alignof(struct postern_stat))))
		return 0;
	interface_stats(&portals, handle, stat_add, &list);
	return list.count;
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

int postern_set(ptl_handle_ni_t handle, const char *name, const char *value)
{
	if (!front_is_open(&portals))
		return PTL_NOINIT;
	if (address_is_bad(name, 1, 1) || address_is_bad(value, 1, 1))
		return PTL_SEGV;
	return code_of(setting_set(&portals, handle, name, value), PTL_INV_NI);
}

int postern_capture_start(ptl_handle_ni_t handle, const char *file, unsigned snaplen)
{
	if (!front_is_open(&portals))
		return PTL_NOINIT;
	if (address_is_bad(file, 1, 1))
		return PTL_SEGV;
	return code_of(recording_start(&portals, handle, file, snaplen), PTL_INV_NI);
}

int postern_capture_stop(ptl_handle_ni_t handle)
{
	if (!front_is_open(&portals))
		return PTL_NOINIT;
	return code_of(recording_stop(&portals, handle), PTL_INV_NI);
}

unsigned postern_topics(struct postern_topic *topics, unsigned count)
{
	if (count > portals.topic_count)
		count = portals.topic_count;
	if (count > 0 &&
		address_is_bad(topics, count * sizeof(*topics), _Alignof(struct postern_topic)))
		return 0;
	for (unsigned i = 0; i < count; i++)
		topics[i] = (struct postern_topic){
			portals.topics[i].name, portals.topics[i].help, portals.topics[i].paged};
	return portals.topic_count;
}

int postern_inspect(ptl_handle_ni_t handle, const char *topic, unsigned first, unsigned count,
	char *json, size_t size)
{
	enum answer answer;
	size_t length;

	if (!front_is_open(&portals))
		return -PTL_NOINIT;
	if (address_is_bad(topic, 1, 1) || (size > 0 && address_is_bad(json, size, 1)))
		return -PTL_SEGV;
	answer = inspection_write(
		&portals, handle, topic, (struct page){first, count}, json, size, &length);
	return answer == ANSWER_OK ? (int)length : -code_of(answer, PTL_INV_NI);
}

const struct instruments *postern_instruments(const char *release)
{
	return strcmp(release, postern_version()) == 0 ? &host_instruments : NULL;
}
