/* SPDX-License-Identifier: BSD-3-Clause */
/* device.c - ports on network cards by their PCI address, and on any other device that DPDK can
 * make from a string. Called under the front end's lock.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>

#include <base/log.h>
#include <base/remedy.h>
#include <pmd-glue/device.h>
#include <pmd-glue/driver.h>
#include <pmd-glue/eal.h>
#include <pmd-glue/ethdev.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/hold.h>
#include <pmd-glue/hugepages.h>
#include <pmd-glue/kinds.h>

#define PCI_SYSFS          "/sys/bus/pci/devices/"
#define PCI_CLASS_ETHERNET 0x0200u

bool device_is_network(const char *address)
{
	char path[128];
	unsigned class = 0;
	FILE *file;
	snprintf(path, sizeof(path), PCI_SYSFS "%s/class", address);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (fscanf(file, "%x", &class) != 1)
		class = 0;
	fclose(file);
	return class >> 8 == PCI_CLASS_ETHERNET;
}

bool device_driver(const char *address, char *driver, size_t size)
{
	char path[128], target[PATH_MAX];
	ssize_t length;
	snprintf(path, sizeof(path), PCI_SYSFS "%s/driver", address);
	length = readlink(path, target, sizeof(target) - 1);
	if (length <= 0)
		return false;
	target[length] = 0;
	snprintf(driver, size, "%s", basename(target));
	return true;
}

bool device_driver_serves(const char *driver)
{
	/* The first three hand the card to DPDK; Mellanox cards are shared with their kernel
	 * driver. */
	static const char *const serving[] = {
		"vfio-pci", "igb_uio", "uio_pci_generic", "mlx5_core", "mlx4_core"};
	for (size_t n = 0; n < sizeof(serving) / sizeof(serving[0]); n++)
		if (strcmp(driver, serving[n]) == 0)
			return true;
	return false;
}

bool device_driver_is_uio(const char *driver)
{
	return strcmp(driver, "uio_pci_generic") == 0 || strcmp(driver, "igb_uio") == 0;
}

const char *device_binder(bool iommu)
{
	return iommu ? "vfio-pci" : "uio_pci_generic";
}

bool device_iommu(const char *address)
{
	char path[128];
	snprintf(path, sizeof(path), PCI_SYSFS "%s/iommu_group", address);
	return access(path, F_OK) == 0;
}

void device_address(const char *given, char *address)
{
	const char *colon = strchr(given, ':');
	unsigned domain = 0, bus = 0, device = 0, function = 0;
	if (colon && strchr(colon + 1, ':'))
		sscanf(given, "%x:%x:%x.%x", &domain, &bus, &device, &function);
	else
		sscanf(given, "%x:%x.%x", &bus, &device, &function);
	snprintf(address, PCI_ADDRESS, "%04x:%02x:%02x.%x", domain & 0xffffu, bus & 0xffu,
		device & 0x1fu, function & 7u);
}

/* Why DPDK does not have a card, when the kernel's driver is the reason. */
static void device_explain_driver(const char *address, const char *driver)
{
	const char *binder = device_binder(device_iommu(address));
	char whose[96] = "no driver has this device";
	if (driver[0])
		snprintf(whose, sizeof(whose), "the kernel's driver %s has this device", driver);
	log_error("%s: %s: give it to DPDK by modprobe %s && dpdk-devbind.py -b %s %s", address,
		whose, binder, binder, address);
}

/* Why a card under uio_pci_generic cannot be had. */
static void device_explain_uio(const char *address, const char *driver, const char *why)
{
	if (geteuid() != 0)
		log_error("%s: without an IOMMU (%s) only root can use this device: run the "
			  "program as root",
			address, driver);
	else if (!glue_hugepages())
		log_error("%s: without an IOMMU (%s) DPDK needs hugepages for this device, %" PRIu64
			  " MiB at least, of which %" PRIu64
			  " MiB are free: sysctl vm.nr_hugepages=%u",
			address, driver, HUGEPAGES_LEAST >> 20, hugepages_free() >> 20,
			hugepages_wanted());
	else
		log_error("%s: DPDK cannot use this device (%s): set PTL_DEBUG=dpdk to see "
			  "DPDK's messages",
			address, why);
}

/* Why a card under vfio-pci cannot be had. The kernel lets one process open its group. */
static void device_explain_vfio(const char *address, const char *why)
{
	char path[128], target[PATH_MAX], group[64];
	ssize_t length;
	int fd;
	snprintf(path, sizeof(path), PCI_SYSFS "%s/iommu_group", address);
	length = readlink(path, target, sizeof(target) - 1);
	if (length <= 0) {
		log_error("%s: vfio-pci has this device, but there is no IOMMU: give it to DPDK by "
			  "modprobe uio_pci_generic && dpdk-devbind.py -b uio_pci_generic %s",
			address, address);
		return;
	}
	target[length] = 0;
	snprintf(group, sizeof(group), "/dev/vfio/%.40s", basename(target));
	fd = open(group, O_RDWR | O_CLOEXEC);
	if (fd < 0 && errno == EBUSY)
		log_error("%s: another process has %s: end it (fuser %s names it), or use another "
			  "card",
			address, group, group);
	else if (fd < 0)
		log_error("%s: this user cannot open %s (%s): chown USER %s", address, group,
			strerror(errno), group);
	else
		log_error("%s: DPDK cannot use this device (%s): if \"dmesg\" speaks of interrupt "
			  "remapping, echo 1 > "
			  "/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts; "
			  "PTL_DEBUG=dpdk shows all that DPDK says",
			address, why);
	if (fd >= 0)
		close(fd);
}

/* Why DPDK does not have a card, in one sentence. */
static void device_explain(const char *address)
{
	char path[128], driver[64] = "", why[256];
	snprintf(path, sizeof(path), PCI_SYSFS "%s", address);
	eal_reason(why, sizeof(why));
	if (access(path, F_OK) != 0)
		log_error("%s: there is no such PCI device: lspci -D lists the present ones",
			address);
	else if (!device_is_network(address))
		log_error(
			"%s: this PCI device is no Ethernet card: postern-info lists the Ethernet "
			"cards",
			address);
	else if (!device_driver(address, driver, sizeof(driver)) || !device_driver_serves(driver))
		device_explain_driver(address, driver);
	else if (!rte_eal_has_pci())
		log_error("%s: DPDK was started without PCI devices: name the device in "
			  "PTL_IFACE_NAME before the program starts",
			address);
	else if (device_driver_is_uio(driver))
		device_explain_uio(address, driver, why);
	else if (strcmp(driver, "vfio-pci") == 0)
		device_explain_vfio(address, why);
	else
		log_error("%s: DPDK cannot use this device (%s): set PTL_DEBUG=dpdk to see "
			  "DPDK's messages",
			address, why);
}

struct port *device_open_pci(const char *given, uint32_t mtu, uint16_t vlan)
{
	char address[PCI_ADDRESS];
	uint16_t id;
	struct ethdev *ethdev;
	struct ethdev_options options = {
		.name = address, .mtu = mtu, .vlan = vlan, .external = true};
	device_address(given, address);
	if (hold_take(address) != 0)
		return NULL;
	/* An earlier interface of this process closed the device: it is plugged in again. */
	if (rte_eth_dev_get_port_by_name(address, &id) != 0) {
		struct eal_guard *guard = eal_enter();
		eal_reason_clear();
		if (rte_eal_has_pci())
			rte_eal_hotplug_add("pci", address, "");
		eal_leave(guard);
	}
	if (rte_eth_dev_get_port_by_name(address, &id) != 0) {
		device_explain(address);
		return NULL;
	}
	ethdev = calloc(1, sizeof(*ethdev));
	if (!ethdev) {
		log_error("%s: out of memory: %s", address, remedy_for_memory());
		return NULL;
	}
	if (ethdev_open(ethdev, address, &options) == 0)
		return &ethdev->port;
	free(ethdev);
	return NULL;
}

struct port *device_open_string(const char *string, uint32_t mtu, uint16_t vlan)
{
	char name[sizeof(((struct ethdev *)NULL)->device)], why[256];
	struct ethdev *ethdev;
	struct ethdev_options options = {
		.name = name, .mtu = mtu, .vlan = vlan, .remove = true, .external = true};
	size_t length = strcspn(string, ",");
	if (length >= sizeof(name)) {
		log_error("PTL_IFACE_NAME=%s: the device's name is too long: use at most %zu "
			  "letters before the comma",
			string, sizeof(name) - 1);
		return NULL;
	}
	memcpy(name, string, length);
	name[length] = 0;
	if (ethdev_plug(string) != 0) {
		if (driver_missing(name, name))
			return NULL;
		log_error("PTL_IFACE_NAME=%s: DPDK cannot make this device (%s): write it as after "
			  "--vdev, such as "
			  "net_memif0,role=client,socket=/run/vpp/memif.sock",
			string, eal_reason(why, sizeof(why)));
		return NULL;
	}
	ethdev = calloc(1, sizeof(*ethdev));
	if (!ethdev) {
		log_error("%s: out of memory: %s", name, remedy_for_memory());
		ethdev_unplug(name);
		return NULL;
	}
	if (ethdev_open(ethdev, name, &options) == 0)
		return &ethdev->port;
	free(ethdev);
	return NULL;
}
