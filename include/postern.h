/* postern.h - what Postern adds to Portals: version, hugepage memory, texts, statistics, settings, a look inside. */
#ifndef POSTERN_H
#define POSTERN_H

#include <stddef.h>
#include <stdint.h>
#include <portals.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the header; postern_version() tells the library's. */
#define POSTERN_VERSION_MAJOR 0
#define POSTERN_VERSION_MINOR 1
#define POSTERN_VERSION_PATCH 0

/* The library's version, "0.1.0". Any thread, any time; never NULL. */
PTL_API const char *postern_version(void);

/* The words for a return code, an event kind, and a failure type: "PTL_INV_MD", ... and a sentence.
 * Any thread, any time; never NULL, also for values that do not exist. */
PTL_API const char *postern_error_name(int code);
PTL_API const char *postern_error_text(int code);
PTL_API const char *postern_event_name(ptl_event_kind_t kind);
PTL_API const char *postern_fail_text(ptl_ni_fail_t why);

/* The sentence that the last failing initialisation in this thread wrote to standard error: what failed, on what, why,
 * and what to do. Never NULL, "" when nothing failed. */
PTL_API const char *postern_last_error(void);

/* Memory for descriptors that is quick to move: hugepages on the NUMA node of the interface's port when there are any,
 * ordinary pages otherwise.
 *   interface  on whose node
 *   size       bytes; 0 counts as 1
 * The memory, aligned to 64 bytes and zeroed, or NULL: there is none, or interface is not a valid handle. It outlives the
 * interface. Any thread. */
PTL_API void *postern_alloc(ptl_handle_ni_t interface, size_t size);
/* Gives memory of postern_alloc() back; NULL is nothing. Any thread; in a child made by fork() it does nothing. */
PTL_API void postern_free(void *memory);

/* One counter of an interface. name is static: "frames_received", "dropped_no_match", ... */
struct postern_stat {
	const char *name;
	const char *help;
	uint64_t value;
};

/* The counters of an interface.
 *   interface  whose
 *   stats      out: up to count of them; may be NULL when count is 0
 *   count      room in stats, counters
 * How many counters there are, which may be more than count; 0: interface is not a valid handle, or stats no address.
 * Any thread; its poll thread stands aside for a moment. */
PTL_API unsigned postern_stats(ptl_handle_ni_t interface, struct postern_stat *stats, unsigned count);

/* One PTL_ setting: its name, default, meaning, and its value in this process now. */
struct postern_setting {
	const char *name;
	const char *fallback;
	const char *help;
	const char *value;
};

/* All settings, as postern_stats() gives counters; the texts are valid until the next PtlInit that opens the library.
 * Returns 0 when settings is no address, and in a child made by fork(). Any thread, any time. */
PTL_API unsigned postern_settings(struct postern_setting *settings, unsigned count);

/* What can be looked at in an interface: "port", "ni", "peers", ... name and help are static. paged: the topic is a list, of
 * which postern_inspect() gives a part at a time. */
struct postern_topic {
	const char *name;
	const char *help;
	int paged;
};

/* All topics, as postern_settings() gives settings. Any thread, any time. */
PTL_API unsigned postern_topics(struct postern_topic *topics, unsigned count);

/* The state of an interface as text: one JSON object without line breaks.
 *   interface  whose
 *   topic      one of postern_topics()
 *   first      for lists: where the page begins, 0 or what the page before calls "next"; otherwise ignored
 *   count      for lists: items in the page at most, 0 for as many as a page may have; a page may have fewer, also none, though
 *              more follow: the page's "next" says so
 *   json       out: the text with its final 0, cut off when there is no room; may be NULL when size is 0
 *   size       room in json, bytes
 * As snprintf(): the length of the whole text without its final 0, however little of it found room, so that a caller can ask
 * again with more. A minus before a return code when there is none: -PTL_NOINIT; -PTL_INV_NI; -PTL_SEGV, topic or json is no
 * address; -PTL_FAIL, there is no such topic, and postern_last_error() lists those that there are.
 * A list is {"total": N, "first": F, "next": F2 or null, "items": [...]}. Its items come in the order of the interface's tables.
 * Those that come or go between two pages may be missing or come twice.
 * Any thread; the interface's poll thread stands aside for a moment, which does not grow with what there is. */
PTL_API int postern_inspect(ptl_handle_ni_t interface, const char *topic, unsigned first, unsigned count, char *json,
	size_t size);

#ifdef __cplusplus
}
#endif

#endif
