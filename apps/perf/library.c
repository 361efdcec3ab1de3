/* SPDX-License-Identifier: BSD-3-Clause */
/* library.c - see library.h.
 *
 * A module lies beside the program, where it was built, or in the directory of the library's
 * modules, where it was installed.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "library.h"

#define BIT(measure) (1u << (measure))
/* What each library has. */
#define MEASURES_COMMON                                                                            \
	(BIT(MEASURE_LATENCY) | BIT(MEASURE_RATE) | BIT(MEASURE_BANDWIDTH) |                       \
		BIT(MEASURE_BIDIRECTIONAL) | BIT(MEASURE_GET_LATENCY) | BIT(MEASURE_GET_RATE) |    \
		BIT(MEASURE_GET_BANDWIDTH))

static const struct {
	const char *name;
	const char *title;
	const char *file;    /* of the module, */
	const char *package; /* and Debian's package that has it */
	unsigned measures;
} libraries[LIBRARY_COUNT] = {
	[LIBRARY_PORTALS3] = {"portals3", "Portals 3.2", NULL, NULL, MEASURES_COMMON},
	[LIBRARY_PORTALS4] = {"portals4", "Portals 4", "postern-perf-portals4.so", "postern-utils",
		MEASURES_COMMON | BIT(MEASURE_FETCH_LATENCY) | BIT(MEASURE_TRIGGERED_LATENCY) |
			BIT(MEASURE_COUNTED_RATE) | BIT(MEASURE_PUT_LATENCY) |
			BIT(MEASURE_PUT_BANDWIDTH)},
	[LIBRARY_MX] = {"mx", "MX", "postern-perf-mx.so", "postern-mx",
		BIT(MEASURE_LATENCY) | BIT(MEASURE_RATE) | BIT(MEASURE_BANDWIDTH) |
			BIT(MEASURE_UNEXPECTED_RATE) | BIT(MEASURE_OVERLAP_SEND) |
			BIT(MEASURE_OVERLAP_RECEIVE) | BIT(MEASURE_ANY_LATENCY) |
			BIT(MEASURE_KEPT_LATENCY)},
	[LIBRARY_FI] = {"fi", "libfabric", "postern-perf-fi.so", "libpostern-fi",
		BIT(MEASURE_LATENCY) | BIT(MEASURE_RATE) | BIT(MEASURE_BANDWIDTH) |
			BIT(MEASURE_GET_LATENCY) | BIT(MEASURE_GET_RATE) |
			BIT(MEASURE_GET_BANDWIDTH) | BIT(MEASURE_FETCH_LATENCY) |
			BIT(MEASURE_PUT_LATENCY) | BIT(MEASURE_PUT_BANDWIDTH)},
	[LIBRARY_GASNET] = {"gasnet", "GASNet", "postern-perf-gasnet.so", "libgasnet-postern0",
		BIT(MEASURE_LATENCY) | BIT(MEASURE_RATE) | BIT(MEASURE_BANDWIDTH) |
			BIT(MEASURE_GET_LATENCY) | BIT(MEASURE_GET_BANDWIDTH) |
			BIT(MEASURE_PUT_LATENCY) | BIT(MEASURE_PUT_BANDWIDTH)},
};

const char *library_name(enum library library)
{
	return libraries[library].name;
}

const char *library_title(enum library library)
{
	return libraries[library].title;
}

bool library_has(enum library library, enum measure measure)
{
	return libraries[library].measures & BIT(measure);
}

void library_names(char *text, size_t room)
{
	size_t used = 0;

	for (unsigned i = 0; i < LIBRARY_COUNT && used < room; i++)
		used += (size_t)snprintf(text + used, room - used, "%s%s",
			i == 0                   ? ""
			: i == LIBRARY_COUNT - 1 ? " or "
						 : ", ",
			library_name((enum library)i));
}

void library_path(char *path, size_t room, const char *file)
{
	char own[PATH_MAX] = "";
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);
	char *slash = length > 0 ? strrchr(own, '/') : NULL;

	if (slash)
		*slash = '\0';
	snprintf(path, room, "%s/%s", own, file);
	if (access(path, R_OK) != 0)
		snprintf(path, room, "%s/" PERF_MODULES "/%s", own, file);
}

const struct line_module *library_module(enum library library, char *why, size_t room)
{
	const struct line_module *module;
	char path[LIBRARY_PATH_ROOM];
	void *handle;

	library_path(path, sizeof(path), libraries[library].file);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* once: later calls find it open */
	if (!handle) {
		snprintf(why, room, "its module cannot be loaded: %s; package %s has it", dlerror(),
			libraries[library].package);
		return NULL;
	}
	module = dlsym(handle, LINE_MODULE);
	if (module && strcmp(module->release, PERF_RELEASE) == 0)
		return module;
	snprintf(why, room, "%s is not of release " PERF_RELEASE "; install both of the same one",
		path);
	dlclose(handle);
	return NULL;
}
