/* SPDX-License-Identifier: BSD-3-Clause */
/* devices.c - the devices of this machine, and what each needs to be used. Reads /sys, opens
 * nothing. */
#include <dirent.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pmd-glue/device.h>
#include <pmd-glue/gate.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/hugepages.h>
#include <pmd-glue/kernel.h>
#include <pmd-glue/kinds.h>

#define INTERFACES    "/sys/class/net"
#define PCI_DEVICES   "/sys/bus/pci/devices"
#define TYPE_ETHERNET 1 /* of /sys/class/net/NAME/type */

struct device_list {
	struct glue_device *devices;
	unsigned count;
	unsigned found;
};

static void __attribute__((format(printf, 5, 6))) list_add(struct device_list *list,
	const char *name, const char *driver, bool usable, const char *note, ...)
{
	struct glue_device *device;
	va_list arguments;
	if (list->found == list->count)
		return;
	device = &list->devices[list->found++];
	memset(device, 0, sizeof(*device));
	snprintf(device->name, sizeof(device->name), "%s", name);
	snprintf(device->driver, sizeof(device->driver), "%s", driver);
	device->usable = usable;
	va_start(arguments, note);
	vsnprintf(device->note, sizeof(device->note), note, arguments);
	va_end(arguments);
}

static long file_number(const char *directory, const char *name, const char *file)
{
	char path[PATH_MAX], text[32] = "";
	FILE *stream;
	snprintf(path, sizeof(path), "%s/%s/%s", directory, name, file);
	stream = fopen(path, "re");
	if (!stream)
		return -1;
	if (!fgets(text, sizeof(text), stream))
		text[0] = 0;
	fclose(stream);
	return text[0] ? strtol(text, NULL, 0) : -1;
}

/* The driver of a kernel interface's device. An interface without a device was made by the kernel
 * itself. */
static void interface_driver(const char *name, char *driver, size_t size)
{
	char path[128], target[PATH_MAX];
	const char *slash;
	ssize_t length;
	snprintf(path, sizeof(path), INTERFACES "/%s/device/driver", name);
	length = readlink(path, target, sizeof(target) - 1);
	target[length < 0 ? 0 : length] = 0;
	slash = strrchr(target, '/');
	snprintf(driver, size, "%s", slash ? slash + 1 : "virtual");
}

static void list_interface(struct device_list *list, const char *name)
{
	struct sockaddr_un gate;
	char driver[32];
	if (file_number(INTERFACES, name, "type") != TYPE_ETHERNET)
		return;
	interface_driver(name, driver, sizeof(driver));
	if (!kernel_is_up(name))
		list_add(list, name, driver, false, "is down: ip link set %s up", name);
	else if (gate_address(&gate, name) && access(gate.sun_path, F_OK) == 0)
		list_add(list, name, driver, true, "usable, through posternd");
	else if (!kernel_may_open())
		list_add(list, name, driver, false, KERNEL_NEEDS, name, name);
	else
		list_add(list, name, driver, true, "usable, MTU %ld",
			file_number(INTERFACES, name, "mtu"));
}

static int entry_named(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* The kernel interface of a card: below the device itself, or below a device that its driver adds,
 * such as virtio0. */
static bool card_interface(const char *address, char *name, size_t size)
{
	char pattern[PATH_MAX];
	glob_t found;
	bool any;
	snprintf(pattern, sizeof(pattern), PCI_DEVICES "/%s/net/*", address);
	any = glob(pattern, 0, NULL, &found) == 0;
	if (!any) {
		globfree(&found);
		snprintf(pattern, sizeof(pattern), PCI_DEVICES "/%s/virtio*/net/*", address);
		any = glob(pattern, 0, NULL, &found) == 0;
	}
	if (any)
		snprintf(name, size, "%s", strrchr(found.gl_pathv[0], '/') + 1);
	globfree(&found);
	return any;
}

static void list_card(struct device_list *list, const char *address)
{
	char driver[32] = "", interface[IF_NAMESIZE] = "";
	const char *binder = device_binder(device_iommu(address));
	if (!device_is_network(address))
		return;
	card_interface(address, interface, sizeof(interface));
	if (!device_driver(address, driver, sizeof(driver)))
		list_add(list, address, "none", false,
			"has no driver: modprobe %s && dpdk-devbind.py -b %s %s", binder, binder,
			address);
	else if (!device_driver_serves(driver))
		list_add(list, address, driver, false,
			"is the kernel's %s: unless a connection needs it, modprobe %s && "
			"dpdk-devbind.py -b %s %s",
			interface, binder, binder, address);
	else if (device_driver_is_uio(driver) && !hugepages_usable(HUGEPAGES_LEAST))
		list_add(list, address, driver, false, "needs hugepages: sysctl vm.nr_hugepages=%u",
			hugepages_wanted());
	else if (interface[0])
		list_add(list, address, driver, true, "usable; it is the kernel's %s as well",
			interface);
	else
		list_add(list, address, driver, true, "usable");
}

static void list_directory(struct device_list *list, const char *directory,
	void (*add)(struct device_list *, const char *))
{
	struct dirent **entries;
	int count = scandir(directory, &entries, entry_named, alphasort);
	for (int n = 0; n < count; n++) {
		add(list, entries[n]->d_name);
		free(entries[n]);
	}
	if (count >= 0)
		free(entries);
}

unsigned glue_devices(struct glue_device *devices, unsigned count)
{
	struct device_list list = {.devices = devices, .count = count};
	list_add(&list, "node", "node", true,
		"usable, and the usual one: joins the processes of this user here");
	list_add(&list, "loop:NAME", "loopback", true, "usable: joins interfaces of one process");
	if (udp_is_usable())
		list_add(&list, "udp", "udp", true, "usable by every user: joins hosts by IP");
	else
		list_add(&list, "udp", "udp", false, "has no route: ip route");
	list_directory(&list, INTERFACES, list_interface);
	list_directory(&list, PCI_DEVICES, list_card);
	return list.found;
}
