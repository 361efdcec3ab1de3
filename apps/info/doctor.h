/* SPDX-License-Identifier: BSD-3-Clause */
/* doctor.h - what stands in the way of a program that uses Postern on this machine, and the command
 * that fixes it.
 *
 * A check is a function in a table (doctor.c). It adds one finding or more.
 */
#ifndef INFO_DOCTOR_H
#define INFO_DOCTOR_H

#include <postern.h>

#include "host.h"

#define DOCTOR_INTERFACES 64
#define DOCTOR_PEERS      256
#define FINDING_TEXT      384

enum level { LEVEL_OK, LEVEL_WARNING, LEVEL_FAILURE };

/* What a port is, by its name in PTL_IFACE_NAME. */
enum kind { KIND_LOOP, KIND_NODE, KIND_KERNEL, KIND_UDP, KIND_XDP, KIND_PCI, KIND_OTHER };

struct doctor_interface {
	enum kind kind;
	char name[128]; /* as given */
	/* of it: the kernel interface, the PCI address, or the node's name; "" for UDP sockets
	 * whose interface the kernel chooses */
	char device[128];
	long mtu;      /* PTL_MTU, 0: the device's */
	int cpu;       /* PTL_POLL_CORE, -1: the system's choice */
	uint32_t mask; /* with PTL_IP: the bits that its subnet shares, 0: no subnet is known */
	bool gateway;  /* PTL_GATEWAY */
};

struct finding {
	const char *check;
	enum level level;
	char text[FINDING_TEXT];
	/* Commands for a shell, one a line; remarks follow a #. NULL: there are none. */
	char *fix;
};

struct doctor {
	struct host host;
	bool live; /* of this machine: interfaces are opened and peers asked */
	ptl_pid_t pid;
	ptl_process_id_t peers[DOCTOR_PEERS];
	unsigned peer_count;
	/* from the settings */
	bool poll_thread; /* by PTL_PROGRESS */
	bool poll_busy;
	unsigned interface_count;
	struct doctor_interface interfaces[DOCTOR_INTERFACES];
	bool udp;   /* PTL_ENCAP: node ids are addresses */
	bool named; /* PTL_IFACE_NAME is set */
	bool alone; /* an interface without a name reaches this process only */
	int started;
	/* the result */
	const char *check; /* the one that runs */
	struct finding *findings;
	unsigned finding_count;
};

/* Adds a finding; doctor_fix() adds to it a command that fixes it. */
void doctor_find(struct doctor *doctor, enum level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void doctor_fix(struct doctor *doctor, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

bool doctor_has(const struct doctor *doctor, enum kind kind);

/* checks.c: of CPUs, memory and the kernel. */
void check_cores(struct doctor *doctor);
void check_poll_core(struct doctor *doctor);
void check_isolation(struct doctor *doctor);
void check_siblings(struct doctor *doctor);
void check_governor(struct doctor *doctor);
void check_hugepages(struct doctor *doctor);
void check_numa(struct doctor *doctor);
void check_kernel(struct doctor *doctor);
/* equipment.c: of devices. */
void check_driver(struct doctor *doctor);
void check_iommu(struct doctor *doctor);
void check_permissions(struct doctor *doctor);
void check_limits(struct doctor *doctor);
void check_link(struct doctor *doctor);
/* network.c: of what can be opened and asked. */
void check_node(struct doctor *doctor);
void check_interfaces(struct doctor *doctor);

/* Reads words behind "doctor", looks, prints; the exit code: 0, 1 when something fails, 2 when the
 * words are wrong. */
int doctor_main(int count, char **words);

#endif
