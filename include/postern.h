/* postern.h - what Postern adds to Portals: version, hugepage memory, texts, statistics, settings. */
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

#ifdef __cplusplus
}
#endif

#endif
