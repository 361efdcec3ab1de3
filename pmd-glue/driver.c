/* SPDX-License-Identifier: BSD-3-Clause */
/* driver.c - see driver.h. When EAL starts it loads all drivers that are installed. */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <base/log.h>
#include <pmd-glue/driver.h>

/* The beginnings of devices' names, and the driver's name. */
static const struct {
	const char *device;
	const char *driver;
} drivers[] = {
	{"net_af_packet", "af_packet"},
	{"net_af_xdp", "af_xdp"},
	{"net_bonding", "bond"},
	{"net_failsafe", "failsafe"},
	{"net_memif", "memif"},
	{"net_null", "null"},
	{"net_pcap", "pcap"},
	{"net_ring", "ring"},
	{"net_softnic", "softnic"},
	{"net_tap", "tap"},
	{"net_tun", "tap"},
	{"net_vdev_netvsc", "vdev_netvsc"},
	{"net_vhost", "vhost"},
	{"net_virtio_user", "virtio"},
};

struct library {
	const char *name; /* "librte_eal.so" */
	const char *path; /* of the loaded one */
};

static int library_compare(struct dl_phdr_info *loaded, size_t size, void *context)
{
	struct library *library = context;
	(void)size;
	if (!strstr(loaded->dlpi_name, library->name))
		return 0;
	library->path = loaded->dlpi_name;
	return 1;
}

/* Its path; NULL: it is not loaded. */
static const char *library_find(const char *name)
{
	struct library library = {.name = name};
	dl_iterate_phdr(library_compare, &library);
	return library.path;
}

/* The rest of the path of DPDK's core, ".23"; NULL: DPDK is no shared library. */
static const char *dpdk_version(const char **path)
{
	static const char eal[] = "librte_eal.so";
	*path = library_find(eal);
	return *path ? strstr(*path, eal) + sizeof(eal) - 1 : NULL;
}

/* kind: "net_tap"; version: ".23" */
static void library_missing(const char *name, const char *kind, const char *version)
{
	char package[64];
	/* Debian's packages have the number of DPDK's interface at their end. */
	snprintf(package, sizeof(package), "librte-%s%s", kind, version + (version[0] == '.'));
	for (char *letter = package; *letter; letter++)
		if (*letter == '_')
			*letter = '-';
	log_error("%s: DPDK's librte_%s.so is not installed: on Debian apt install %s", name, kind,
		package);
}

bool driver_missing(const char *name, const char *device)
{
	const char *path, *version = dpdk_version(&path), *driver = NULL;
	char kind[32], library[64];
	for (size_t n = 0; n < sizeof(drivers) / sizeof(drivers[0]); n++)
		if (strncmp(device, drivers[n].device, strlen(drivers[n].device)) == 0)
			driver = drivers[n].driver;
	if (!driver || !version)
		return false;
	snprintf(kind, sizeof(kind), "net_%s", driver);
	snprintf(library, sizeof(library), "librte_%s.so", kind);
	if (library_find(library))
		return false;
	library_missing(name, kind, version);
	return true;
}

void *library_function(const char *name, const char *kind, const char *function)
{
	const char *eal, *version = dpdk_version(&eal);
	char path[PATH_MAX];
	void *library;
	if (!version)
		return NULL;
	snprintf(path, sizeof(path), "%.*s_%s.so%s", (int)(version - eal) - (int)strlen("_eal.so"),
		eal, kind, version);
	library = dlopen(path, RTLD_NOW);
	if (!library) {
		log_debug(LOG_DPDK, "%s", dlerror());
		library_missing(name, kind, version);
		return NULL;
	}
	return dlsym(library, function);
}
