/* SPDX-License-Identifier: BSD-3-Clause */
/* checks.c - cores, their isolation and frequency, memory, and the kernel's settings. */
#include <stdio.h>
#include <string.h>

#include <pmd-glue/device.h>
#include <pmd-glue/hugepages.h>

#include "doctor.h"

#define CPU_FILES              "/sys/devices/system/cpu"
#define NODE_FILES             "/sys/devices/system/node"
#define HUGE_FILES             "/sys/kernel/mm/hugepages"
#define NODES_MAX              64
#define RECEIVE_MEMORY_ADVISED (4 << 20) /* bytes that an ordinary user's socket may have */

/* CPUs that are on and that this process may use. */
static void cpus_usable(const struct doctor *doctor, struct cpu_set_list *usable)
{
	struct cpu_set_list allowed;
	char list[4096];

	if (!host_cpus(&doctor->host, usable, CPU_FILES "/online"))
		cpus_parse("0", usable);
	if (!host_field(
		    &doctor->host, "/proc/self/status", "Cpus_allowed_list", list, sizeof(list)))
		return;
	cpus_parse(list, &allowed);
	usable->count = 0;
	for (unsigned i = 0; i < HOST_CPUS; i++) {
		usable->has[i] = usable->has[i] && allowed.has[i];
		usable->count += usable->has[i];
	}
}

/* Calls look once for each CPU of PTL_POLL_CORE. Returns false if there is none. */
static bool poll_cores(struct doctor *doctor, void (*look)(struct doctor *doctor, unsigned cpu))
{
	bool seen[HOST_CPUS] = {false};
	bool any = false;

	for (unsigned i = 0; doctor->poll_thread && i < doctor->interface_count; i++) {
		int cpu = doctor->interfaces[i].cpu;

		if (cpu < 0 || cpu >= HOST_CPUS || seen[cpu])
			continue;
		seen[cpu] = true;
		any = true;
		look(doctor, (unsigned)cpu);
	}
	return any;
}

void check_cores(struct doctor *doctor)
{
	struct cpu_set_list usable;

	cpus_usable(doctor, &usable);
	if (usable.count > 1 || !doctor->poll_thread) {
		doctor_find(doctor, LEVEL_OK, "this process may use %u CPUs", usable.count);
		return;
	}
	doctor_find(doctor, LEVEL_WARNING,
		"the polling thread and the program share the only CPU, and each waits for the "
		"other");
	doctor_fix(doctor, "export PTL_PROGRESS=inline");
}

static void poll_core_look(struct doctor *doctor, unsigned cpu)
{
	struct cpu_set_list usable;
	unsigned other = 0;

	cpus_usable(doctor, &usable);
	if (usable.has[cpu]) {
		doctor_find(doctor, LEVEL_OK, "CPU %u has a polling thread", cpu);
		return;
	}
	for (unsigned i = 0; i < HOST_CPUS; i++)
		if (usable.has[i])
			other = i;
	doctor_find(doctor, LEVEL_FAILURE,
		"PTL_POLL_CORE is CPU %u, which is off, or which this process may not use", cpu);
	doctor_fix(doctor, "export PTL_POLL_CORE=%u", other);
}

void check_poll_core(struct doctor *doctor)
{
	struct cpu_set_list usable;
	unsigned last = 0;

	if (!doctor->poll_thread) {
		doctor_find(doctor, LEVEL_OK, "there is no polling thread (PTL_PROGRESS)");
		return;
	}
	if (poll_cores(doctor, poll_core_look))
		return;
	if (!doctor->poll_busy) {
		doctor_find(doctor, LEVEL_OK,
			"the polling thread shares CPUs, and sleeps when no messages come");
		return;
	}
	cpus_usable(doctor, &usable);
	for (unsigned i = 0; i < HOST_CPUS; i++)
		if (usable.has[i])
			last = i;
	doctor_find(doctor, LEVEL_WARNING,
		"with PTL_POLL=busy the polling thread never sleeps, but it has no CPU of its own; "
		"other threads on its CPU run slowly");
	doctor_fix(doctor, "export PTL_POLL_CORE=%u", last);
}

static void isolation_look(struct doctor *doctor, unsigned cpu)
{
	struct cpu_set_list isolated, tickless;
	bool apart, quiet;

	host_cpus(&doctor->host, &isolated, CPU_FILES "/isolated");
	host_cpus(&doctor->host, &tickless, CPU_FILES "/nohz_full");
	apart = isolated.has[cpu];
	quiet = tickless.has[cpu];
	if (apart && quiet) {
		doctor_find(doctor, LEVEL_OK, "CPU %u is isolated and has no timer ticks", cpu);
		return;
	}
	doctor_find(doctor, LEVEL_WARNING,
		"CPU %u has a polling thread, but the kernel %s%s%s there", cpu,
		apart ? "" : "runs other threads", apart || quiet ? "" : " and ",
		quiet ? "" : "ticks");
	doctor_fix(doctor,
		"sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&isolcpus=%u nohz_full=%u rcu_nocbs=%u /' "
		"/etc/default/grub && sudo update-grub && sudo reboot",
		cpu, cpu, cpu);
}

void check_isolation(struct doctor *doctor)
{
	if (!poll_cores(doctor, isolation_look))
		doctor_find(doctor, LEVEL_OK,
			"no CPU is reserved for a polling thread (PTL_POLL_CORE)");
}

static void siblings_look(struct doctor *doctor, unsigned cpu)
{
	struct cpu_set_list siblings;
	unsigned other = HOST_CPUS;

	host_cpus(&doctor->host, &siblings, CPU_FILES "/cpu%u/topology/thread_siblings_list", cpu);
	for (unsigned i = 0; i < HOST_CPUS; i++)
		if (siblings.has[i] && i != cpu)
			other = i;
	if (other == HOST_CPUS) {
		doctor_find(doctor, LEVEL_OK, "CPU %u has its core to itself", cpu);
		return;
	}
	doctor_find(doctor, LEVEL_WARNING,
		"CPU %u has a polling thread, which is slowed down by CPU %u on the same core", cpu,
		other);
	doctor_fix(doctor, "echo 0 | sudo tee " CPU_FILES "/cpu%u/online", other);
}

void check_siblings(struct doctor *doctor)
{
	if (!poll_cores(doctor, siblings_look))
		doctor_find(doctor, LEVEL_OK, "no CPU is reserved for a polling thread");
}

void check_governor(struct doctor *doctor)
{
	struct cpu_set_list online;
	char governor[64];
	bool any = false;

	host_cpus(&doctor->host, &online, CPU_FILES "/online");
	for (unsigned i = 0; i < HOST_CPUS; i++) {
		if (!online.has[i] || !host_line(&doctor->host, governor, sizeof(governor),
					      CPU_FILES "/cpu%u/cpufreq/scaling_governor", i))
			continue;
		any = true;
		if (strcmp(governor, "performance") == 0)
			continue;
		doctor_find(doctor, LEVEL_WARNING,
			"CPU %u has the frequency governor \"%s\", so it wakes slowly from sleep",
			i, governor);
		doctor_fix(doctor,
			"echo performance | sudo tee " CPU_FILES "/cpu*/cpufreq/scaling_governor");
		return;
	}
	doctor_find(doctor, LEVEL_OK,
		any ? "all CPUs have the frequency governor \"performance\""
		    : "this system does not control the frequency of its CPUs");
}

/* Counts hugepages of all sizes: *pages there are, *free of them. In MiB. */
static void hugepages_count(const struct doctor *doctor, long long *pages, long long *unused)
{
	static const long long kilobytes[] = {64, 1024, 2048, 32768, 524288, 1048576, 16777216};

	*pages = *unused = 0;
	for (size_t i = 0; i < sizeof(kilobytes) / sizeof(kilobytes[0]); i++) {
		long long there = host_number(&doctor->host, 0,
			HUGE_FILES "/hugepages-%lldkB/nr_hugepages", kilobytes[i]);
		long long free_ones = host_number(&doctor->host, 0,
			HUGE_FILES "/hugepages-%lldkB/free_hugepages", kilobytes[i]);

		*pages += there * kilobytes[i] / 1024;
		*unused += free_ones * kilobytes[i] / 1024;
	}
}

/* Cards that DPDK has without an IOMMU. */
static unsigned cards_uio(const struct doctor *doctor)
{
	unsigned count = 0;
	char driver[64];

	for (unsigned i = 0; i < doctor->interface_count; i++)
		if (doctor->interfaces[i].kind == KIND_PCI &&
			host_link(&doctor->host, driver, sizeof(driver),
				"/sys/bus/pci/devices/%s/driver", doctor->interfaces[i].device))
			count += device_driver_is_uio(driver);
	return count;
}

void check_hugepages(struct doctor *doctor)
{
	const long long least = (long long)(HUGEPAGES_LEAST >> 20),
			advised = (long long)(HUGEPAGES_ADVISED >> 20);
	unsigned cards = cards_uio(doctor);
	const char *need = cards > 0 ? "cards under uio_pci_generic need them"
				     : "memory access is slower without them";
	enum level level = cards > 0 ? LEVEL_FAILURE : LEVEL_WARNING;
	long long pages, unused;

	hugepages_count(doctor, &pages, &unused);
	if (unused >= least) {
		doctor_find(doctor, LEVEL_OK, "%lld MiB, %lld of them free", pages, unused);
		return;
	}
	if (pages > 0)
		doctor_find(doctor, level,
			"%lld of %lld MiB are free, and Postern uses them if %lld are: %s", unused,
			pages, least, need);
	else
		doctor_find(doctor, level, "there are none; %s", need);
	doctor_fix(doctor, "sudo sysctl -w vm.nr_hugepages=%lld",
		(pages - unused + advised * (cards > 1 ? cards : 1)) / 2);
}

/* The NUMA node of an interface's device; -1: none in particular. */
static long long device_node(const struct doctor *doctor, const struct doctor_interface *interface)
{
	if (interface->kind == KIND_PCI)
		return host_number(
			&doctor->host, -1, "/sys/bus/pci/devices/%s/numa_node", interface->device);
	if (interface->kind == KIND_KERNEL || interface->kind == KIND_XDP ||
		(interface->kind == KIND_UDP && interface->device[0] != '\0'))
		return host_number(
			&doctor->host, -1, "/sys/class/net/%s/device/numa_node", interface->device);
	return -1;
}

static void numa_look(struct doctor *doctor, const struct doctor_interface *interface)
{
	long long node = device_node(doctor, interface);
	struct cpu_set_list near;
	unsigned cpu = 0;

	if (node < 0 || interface->cpu < 0 || interface->cpu >= HOST_CPUS ||
		!host_cpus(&doctor->host, &near, NODE_FILES "/node%lld/cpulist", node))
		return;
	if (near.has[interface->cpu]) {
		doctor_find(doctor, LEVEL_OK, "CPU %d and %s are on node %lld", interface->cpu,
			interface->device, node);
		return;
	}
	while (cpu < HOST_CPUS - 1 && !near.has[cpu])
		cpu++;
	doctor_find(doctor, LEVEL_WARNING, "CPU %d polls %s, which is on another NUMA node, %lld",
		interface->cpu, interface->device, node);
	doctor_fix(doctor, "export PTL_POLL_CORE=%u", cpu);
}

void check_numa(struct doctor *doctor)
{
	unsigned before = doctor->finding_count;

	for (unsigned i = 0; i < doctor->interface_count; i++)
		numa_look(doctor, &doctor->interfaces[i]);
	if (host_exists(&doctor->host, NODE_FILES "/node1") &&
		host_number(&doctor->host, 0, "/proc/sys/kernel/numa_balancing") != 0) {
		doctor_find(doctor, LEVEL_WARNING,
			"the kernel moves memory between nodes, and stops threads that touch it");
		doctor_fix(doctor, "sudo sysctl -w kernel.numa_balancing=0");
	}
	if (doctor->finding_count == before)
		doctor_find(doctor, LEVEL_OK, "no polling thread is far from its card or memory");
}

/* Linux 6.18.0 to 6.18.44: a process of another session may wait for seconds, which looks to its
 * peers as if it had fallen silent. */
static void autogroup_look(struct doctor *doctor)
{
	unsigned patch;
	char line[128];

	if (!host_line(&doctor->host, line, sizeof(line), "/proc/sys/kernel/osrelease") ||
		sscanf(line, "6.18.%u", &patch) != 1 || patch > 44 ||
		host_number(&doctor->host, 0, "/proc/sys/kernel/sched_autogroup_enabled") == 0)
		return;
	doctor_find(doctor, LEVEL_WARNING,
		"Linux %s may let a process wait for seconds when more threads want to run than "
		"there are CPUs",
		line);
	doctor_fix(doctor, "sudo sysctl -w kernel.sched_autogroup_enabled=0");
}

void check_kernel(struct doctor *doctor)
{
	unsigned before = doctor->finding_count;
	bool packets = doctor_has(doctor, KIND_KERNEL) || doctor_has(doctor, KIND_XDP);
	bool kernel = packets || doctor_has(doctor, KIND_UDP);
	long long receive_memory =
		host_number(&doctor->host, RECEIVE_MEMORY_ADVISED, "/proc/sys/net/core/rmem_max");
	char line[128];

	if (host_line(&doctor->host, line, sizeof(line),
		    "/sys/kernel/mm/transparent_hugepage/enabled") &&
		strstr(line, "[always]")) {
		doctor_find(doctor, LEVEL_WARNING,
			"transparent hugepages are always on: threads stall while the kernel "
			"builds one");
		doctor_fix(doctor,
			"echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
	}
	if (kernel && host_number(&doctor->host, 1000000, "/proc/sys/net/core/netdev_max_backlog") <
			      1000) {
		doctor_find(doctor, LEVEL_WARNING,
			"the kernel drops frames when %lld wait for a CPU",
			host_number(&doctor->host, 0, "/proc/sys/net/core/netdev_max_backlog"));
		doctor_fix(doctor, "sudo sysctl -w net.core.netdev_max_backlog=10000");
	}
	if (packets &&
		host_number(&doctor->host, 1000000, "/proc/sys/net/core/optmem_max") < 20480) {
		doctor_find(doctor, LEVEL_WARNING,
			"net.core.optmem_max is %lld bytes: packet sockets may be refused",
			host_number(&doctor->host, 0, "/proc/sys/net/core/optmem_max"));
		doctor_fix(doctor, "sudo sysctl -w net.core.optmem_max=131072");
	}
	if (doctor_has(doctor, KIND_UDP) && receive_memory < RECEIVE_MEMORY_ADVISED) {
		doctor_find(doctor, LEVEL_WARNING,
			"a UDP socket can hold only %lld KiB, which many senders fill at once",
			receive_memory / 1024);
		doctor_fix(doctor, "sudo sysctl -w net.core.rmem_max=%d", RECEIVE_MEMORY_ADVISED);
	}
	autogroup_look(doctor);
	if (doctor->finding_count == before)
		doctor_find(doctor, LEVEL_OK, "no setting of the kernel delays messages");
}
