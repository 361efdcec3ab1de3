/* SPDX-License-Identifier: BSD-3-Clause */
/* devices.c - the devices of this machine, and what each needs to be used. Opens none. Asks the
 * kernel, not /sys, for interfaces: /sys may show those of another network namespace. */
#include <dirent.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <pmd-glue/device.h>
#include <pmd-glue/client.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/hugepages.h>
#include <pmd-glue/kernel.h>
#include <pmd-glue/kinds.h>
#include <pmd-glue/local.h>

#define PCI_DEVICES "/sys/bus/pci/devices"

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

static void list_interface(struct device_list *list, int query, const char *name)
{
	char driver[KERNEL_DRIVER_ROOM] = "virtual";
	struct sockaddr_un meeting;
	struct ifreq answer;
	if (kernel_ask(query, name, SIOCGIFHWADDR, &answer) != 0 ||
		answer.ifr_hwaddr.sa_family != ARPHRD_ETHER)
		return;
	kernel_driver(query, name, driver, NULL);
	if (!kernel_is_up(name))
		list_add(list, name, driver, false, "is down: ip link set %s up", name);
	else if (posternd_address(&meeting, name) && access(meeting.sun_path, F_OK) == 0)
		list_add(list, name, driver, true, "usable, through posternd");
	else if (!kernel_may_open())
		list_add(list, name, driver, false, KERNEL_NEEDS, name, name);
	else
		list_add(list, name, driver, true, "usable, MTU %d",
			kernel_ask(query, name, SIOCGIFMTU, &answer) == 0 ? answer.ifr_mtu : 0);
}

static int entry_named(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* The kernel interface of a card in this network namespace; "" if there is none. */
static const char *card_interface(
	const struct if_nameindex *interfaces, int query, const char *address)
{
	char driver[KERNEL_DRIVER_ROOM], device[KERNEL_DRIVER_ROOM];
	for (; interfaces && interfaces->if_name; interfaces++)
		if (kernel_driver(query, interfaces->if_name, driver, device) &&
			strcmp(device, address) == 0)
			return interfaces->if_name;
	return "";
}

static void list_card(struct device_list *list, const char *address, const char *interface)
{
	char driver[32] = "";
	const char *binder = device_binder(device_iommu(address));
	if (!device_is_network(address))
		return;
	if (!device_driver(address, driver, sizeof(driver)))
		list_add(list, address, "none", false,
			"has no driver: modprobe %s && dpdk-devbind.py -b %s %s", binder, binder,
			address);
	else if (!device_driver_serves(driver) && !interface[0])
		list_add(list, address, driver, false,
			"is the kernel's, and no interface of this network namespace: it may be in "
			"use in another one; run postern-info there");
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

static void list_cards(struct device_list *list, const struct if_nameindex *interfaces, int query)
{
	struct dirent **entries;
	int count = scandir(PCI_DEVICES, &entries, entry_named, alphasort);
	for (int n = 0; n < count; n++) {
		const char *address = entries[n]->d_name;
		list_card(list, address, card_interface(interfaces, query, address));
		free(entries[n]);
	}
	if (count >= 0)
		free(entries);
}

/* Those of the kernel, and the cards. */
static void list_machine(struct device_list *list)
{
	struct if_nameindex *interfaces = if_nameindex();
	int query = kernel_query("the list of interfaces");
	for (unsigned n = 0; interfaces && interfaces[n].if_name; n++)
		list_interface(list, query, interfaces[n].if_name);
	list_cards(list, interfaces, query);
	if (interfaces)
		if_freenameindex(interfaces);
	if (query >= 0)
		close(query);
}

unsigned glue_devices(struct glue_device *devices, unsigned count)
{
	struct device_list list = {.devices = devices, .count = count};
	list_add(&list, "node", "node", true,
		"usable, the default: connects processes of this user on this machine");
	list_add(
		&list, "loop:NAME", "loopback", true, "usable: connects interfaces of one process");
	if (local_is_there())
		list_add(&list, "udp", "udp", true, "usable by every user: connects hosts by IP");
	else
		list_add(&list, "udp", "udp", false,
			"there is no IPv4 address but those of this host alone: ip address");
	list_machine(&list);
	return list.found;
}
