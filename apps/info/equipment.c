/* SPDX-License-Identifier: BSD-3-Clause */
/* equipment.c - devices: drivers, what may be opened, links. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/capability.h>

#include <pmd-glue/device.h>

#include "doctor.h"

#define PCI_FILES      "/sys/bus/pci/devices"
#define NET_FILES      "/sys/class/net"
#define FLAG_UP        1
#define FILES_LEAST    256
#define MEMLOCK_LEAST  (1ull << 30)
#define FRAMES_KERNEL  1500
#define CLASS_ETHERNET 0x0200 /* the first two bytes of a PCI device's class */

static bool is_kernel(const struct doctor_interface *interface)
{
	return interface->kind == KIND_KERNEL || interface->kind == KIND_XDP;
}

/* Calls look for each interface of these kinds; says "there is no ..." when there is none. */
static void each(struct doctor *doctor, bool (*wanted)(const struct doctor_interface *),
	void (*look)(struct doctor *, const struct doctor_interface *), const char *otherwise)
{
	unsigned before = doctor->finding_count;

	for (unsigned i = 0; i < doctor->interface_count; i++)
		if (wanted(&doctor->interfaces[i]))
			look(doctor, &doctor->interfaces[i]);
	if (doctor->finding_count == before)
		doctor_find(doctor, LEVEL_OK, "%s", otherwise);
}

static bool is_pci(const struct doctor_interface *interface)
{
	return interface->kind == KIND_PCI;
}

static void binder_fix(struct doctor *doctor, const char *device, bool iommu)
{
	const char *binder = device_binder(iommu);

	doctor_fix(doctor, "sudo modprobe %s && sudo dpdk-devbind.py -b %s %s", binder, binder,
		device);
}

static void driver_look(struct doctor *doctor, const struct doctor_interface *interface)
{
	const char *device = interface->device;
	char driver[64], group[32];

	if (!host_exists(&doctor->host, PCI_FILES "/%s", device)) {
		doctor_find(doctor, LEVEL_FAILURE, "there is no PCI device %s", device);
		doctor_fix(doctor, "dpdk-devbind.py --status-dev net");
		return;
	}
	if (host_number(&doctor->host, CLASS_ETHERNET << 8, PCI_FILES "/%s/class", device) >> 8 !=
		CLASS_ETHERNET) {
		doctor_find(doctor, LEVEL_FAILURE, "%s is no Ethernet card", device);
		doctor_fix(doctor, "postern-info");
		return;
	}
	if (!host_link(&doctor->host, driver, sizeof(driver), PCI_FILES "/%s/driver", device)) {
		doctor_find(doctor, LEVEL_FAILURE, "%s has no driver", device);
	} else if (device_driver_serves(driver)) {
		doctor_find(doctor, LEVEL_OK, "%s is bound to %s", device, driver);
		return;
	} else {
		doctor_find(doctor, LEVEL_FAILURE,
			"%s belongs to the kernel's driver %s; take it only if no connection needs "
			"it",
			device, driver);
	}
	binder_fix(doctor, device,
		host_link(
			&doctor->host, group, sizeof(group), PCI_FILES "/%s/iommu_group", device));
}

void check_driver(struct doctor *doctor)
{
	each(doctor, is_pci, driver_look, "no interface is a card that DPDK drives");
}

static void iommu_look(struct doctor *doctor, const struct doctor_interface *interface)
{
	char driver[64] = "", unsafe[8] = "";

	host_link(&doctor->host, driver, sizeof(driver), PCI_FILES "/%s/driver", interface->device);
	if (device_driver_is_uio(driver)) {
		doctor_find(doctor, LEVEL_OK,
			"%s is used without one: it can write to all memory of this machine",
			interface->device);
		return;
	}
	if (strcmp(driver, "vfio-pci") != 0)
		return;
	if (host_entries(&doctor->host, "/sys/kernel/iommu_groups") > 0) {
		doctor_find(doctor, LEVEL_OK, "it protects memory from %s", interface->device);
		return;
	}
	host_line(&doctor->host, unsafe, sizeof(unsafe),
		"/sys/module/vfio/parameters/enable_unsafe_noiommu_mode");
	if (unsafe[0] == 'Y' || unsafe[0] == '1') {
		doctor_find(doctor, LEVEL_WARNING,
			"there is none: %s can write to all memory of this machine",
			interface->device);
		doctor_fix(doctor,
			"sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&intel_iommu=on iommu=pt /' "
			"/etc/default/grub && sudo update-grub && sudo reboot");
		return;
	}
	doctor_find(doctor, LEVEL_FAILURE, "there is none, and vfio-pci needs one");
	binder_fix(doctor, interface->device, false);
}

void check_iommu(struct doctor *doctor)
{
	each(doctor, is_pci, iommu_look, "no interface needs one");
}

/* Has this process the capability? Where nothing is known, it has. */
static bool capable(const struct doctor *doctor, unsigned capability)
{
	char value[64];

	if (!host_field(&doctor->host, "/proc/self/status", "CapEff", value, sizeof(value)))
		return true;
	return strtoull(value, NULL, 16) >> capability & 1;
}

/* The name of a kernel interface is known. */
static bool is_linked(const struct doctor_interface *interface)
{
	return is_kernel(interface) ||
	       (interface->kind == KIND_UDP && interface->device[0] != '\0');
}

static bool is_guarded(const struct doctor_interface *interface)
{
	return is_kernel(interface) || interface->kind == KIND_PCI;
}

static void permission_uio(struct doctor *doctor, const char *device, const char *driver)
{
	if (capable(doctor, CAP_SYS_ADMIN) && capable(doctor, CAP_SYS_RAWIO)) {
		doctor_find(doctor, LEVEL_OK, "%s may be opened", device);
		return;
	}
	doctor_find(doctor, LEVEL_FAILURE, "%s under %s is for root alone", device, driver);
	doctor_fix(doctor, "# run the program with sudo");
}

static void permission_pci(struct doctor *doctor, const struct doctor_interface *interface)
{
	char driver[64] = "", group[32];

	host_link(&doctor->host, driver, sizeof(driver), PCI_FILES "/%s/driver", interface->device);
	if (device_driver_is_uio(driver)) {
		permission_uio(doctor, interface->device, driver);
		return;
	}
	if (strcmp(driver, "vfio-pci") != 0)
		return;
	if (!host_link(&doctor->host, group, sizeof(group), PCI_FILES "/%s/iommu_group",
		    interface->device)) {
		if (capable(doctor, CAP_SYS_ADMIN))
			return;
		doctor_find(doctor, LEVEL_FAILURE, "%s without an IOMMU is for root alone",
			interface->device);
		doctor_fix(doctor, "# run the program with sudo");
		return;
	}
	if (host_writable(&doctor->host, "/dev/vfio/%s", group) ||
		host_writable(&doctor->host, "/dev/vfio/noiommu-%s", group)) {
		doctor_find(doctor, LEVEL_OK, "/dev/vfio/%s of %s may be opened", group,
			interface->device);
		return;
	}
	doctor_find(doctor, LEVEL_FAILURE, "/dev/vfio/%s of %s cannot be opened by this user",
		group, interface->device);
	doctor_fix(doctor, "sudo chown $USER /dev/vfio/%s", group);
}

static void permission_look(struct doctor *doctor, const struct doctor_interface *interface)
{
	const char *name = interface->kind == KIND_KERNEL ? interface->device : interface->name;

	if (host_exists(&doctor->host, "/run/postern/%s/posternd", name)) {
		doctor_find(doctor, LEVEL_OK, "posternd serves %s", interface->name);
	} else if (interface->kind == KIND_PCI) {
		permission_pci(doctor, interface);
	} else if (interface->kind == KIND_XDP &&
		   !(capable(doctor, CAP_SYS_ADMIN) && capable(doctor, CAP_NET_ADMIN))) {
		doctor_find(
			doctor, LEVEL_FAILURE, "af_xdp on %s is for root alone", interface->device);
		doctor_fix(doctor, "# run the program with sudo");
	} else if (!capable(doctor, CAP_NET_RAW)) {
		doctor_find(doctor, LEVEL_FAILURE, "%s needs CAP_NET_RAW", interface->device);
		doctor_fix(doctor,
			"sudo posternd --iface %s # in another terminal\nsudo setcap "
			"cap_net_raw+ep PROGRAM # or this\n"
			"export PTL_IFACE_NAME=udp:%s # or this, on all hosts",
			interface->device, interface->device);
	} else {
		doctor_find(doctor, LEVEL_OK, "%s may be opened", interface->device);
	}
}

void check_permissions(struct doctor *doctor)
{
	each(doctor, is_guarded, permission_look, "no interface needs a privilege");
}

/* The soft limit; UINT64_MAX: none, or not known. */
static unsigned long long limit_read(const struct doctor *doctor, const char *name)
{
	char value[128], *end;
	unsigned long long number;

	if (!host_field(&doctor->host, "/proc/self/limits", name, value, sizeof(value)))
		return ~0ull;
	number = strtoull(value, &end, 10);
	return end == value ? ~0ull : number;
}

void check_limits(struct doctor *doctor)
{
	unsigned long long locked = limit_read(doctor, "Max locked memory");
	unsigned long long files = limit_read(doctor, "Max open files");
	unsigned before = doctor->finding_count;

	if (doctor_has(doctor, KIND_PCI) && locked < MEMLOCK_LEAST &&
		!capable(doctor, CAP_IPC_LOCK)) {
		doctor_find(doctor, LEVEL_FAILURE,
			"%llu KiB may be locked, which is too little for a card's memory",
			locked / 1024);
		doctor_fix(doctor, "echo \"$USER - memlock unlimited\" | sudo tee "
				   "/etc/security/limits.d/postern.conf # then log in again");
	}
	if (files < FILES_LEAST) {
		doctor_find(
			doctor, LEVEL_WARNING, "this process may have only %llu files open", files);
		doctor_fix(doctor,
			geteuid() == 0 ? "ulimit -n 1024"
				       : "echo \"$USER - nofile 1024\" | sudo tee "
					 "/etc/security/limits.d/postern-files.conf # then log in "
					 "again");
	}
	if (doctor->finding_count == before)
		doctor_find(doctor, LEVEL_OK, "enough files may be open and enough memory locked");
}

static void link_look(struct doctor *doctor, const struct doctor_interface *interface)
{
	const char *device = interface->device;
	long long flags = host_number(&doctor->host, -1, NET_FILES "/%s/flags", device);
	long long mtu = host_number(&doctor->host, FRAMES_KERNEL, NET_FILES "/%s/mtu", device);

	if (flags < 0) {
		doctor_find(doctor, LEVEL_FAILURE, "there is no network interface %s", device);
		doctor_fix(doctor, "ip -brief link");
	} else if (!(flags & FLAG_UP)) {
		doctor_find(doctor, LEVEL_FAILURE, "%s is down", device);
		doctor_fix(doctor, "sudo ip link set %s up", device);
	} else if (host_number(&doctor->host, 1, NET_FILES "/%s/carrier", device) == 0) {
		doctor_find(doctor, LEVEL_FAILURE,
			"%s has no carrier: nothing is plugged in, or the "
			"other side is down",
			device);
		doctor_fix(doctor, "ip -d link show %s", device);
	} else if (interface->mtu > mtu) {
		doctor_find(doctor, LEVEL_FAILURE, "PTL_MTU is %ld, but %s carries %lld",
			interface->mtu, device, mtu);
		doctor_fix(doctor, "sudo ip link set %s mtu %ld", device, interface->mtu);
	} else {
		doctor_find(doctor, LEVEL_OK, "%s is up, MTU %lld", device, mtu);
	}
}

void check_link(struct doctor *doctor)
{
	each(doctor, is_linked, link_look, "no interface is a kernel interface");
}
