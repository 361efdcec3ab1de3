/* SPDX-License-Identifier: BSD-3-Clause */
/* driver.c - see driver.h. When EAL starts it loads all drivers that are installed. */
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
	const char *found = strstr(loaded->dlpi_name, library->name);
	(void)size;
	if (found)
		library->path = found;
	return found != NULL;
}

/* From its name on, "librte_eal.so.23"; NULL: it is not loaded. */
static const char *library_find(const char *name)
{
	struct library library = {.name = name};
	dl_iterate_phdr(library_compare, &library);
	return library.path;
}

bool driver_missing(const char *name, const char *device)
{
	static const char eal[] = "librte_eal.so";
	const char *loaded = library_find(eal), *driver = NULL;
	char library[64], package[64];
	for (size_t n = 0; n < sizeof(drivers) / sizeof(drivers[0]); n++)
		if (strncmp(device, drivers[n].device, strlen(drivers[n].device)) == 0)
			driver = drivers[n].driver;
	if (!driver || !loaded)
		return false;
	snprintf(library, sizeof(library), "librte_net_%s.so", driver);
	if (library_find(library))
		return false;
	/* Debian's packages have the number of DPDK's interface at their end. */
	snprintf(package, sizeof(package), "librte-net-%s%s", driver,
		loaded + sizeof(eal) - 1 + (loaded[sizeof(eal) - 1] == '.'));
	for (char *letter = package; *letter; letter++)
		if (*letter == '_')
			*letter = '-';
	log_error("%s: DPDK's driver %s is not installed: on Debian apt install %s", name, library,
		package);
	return true;
}
