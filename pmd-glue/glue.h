/* SPDX-License-Identifier: BSD-3-Clause */
/* glue.h - the only part that uses DPDK's EAL and ethdev: start-up, devices by name, ports, memory,
 * CPUs, the TSC.
 *
 * Every failure is one sentence through log_error() that names the remedy. Functions may be called
 * from any thread; the caller serialises them (the front end's lock), but for glue_now() and the
 * thread functions.
 */
#ifndef PMD_GLUE_GLUE_H
#define PMD_GLUE_GLUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <base/clock.h>
#include <base/port.h>

struct report;

/* Starts EAL once per process, with arguments that suit the machine, and without output; the
 * calling thread's CPU affinity, signal mask and handlers, locale and standard output are as
 * before. If the program has started EAL itself, that EAL is used. Returns 0, or -1 after an error
 * line and in a forked child. */
int glue_start(void);
/* No port is left: no thread of ours runs until the next glue_start(). EAL keeps its own. */
void glue_rest(void);
bool glue_hugepages(void); /* After glue_start(): does EAL have hugepages? */

/* Opens the port of interface number `interface` by its PTL_IFACE_NAME item: "", "loop:NAME",
 * "node" or "node:NAME", UDP sockets ("udp", "udp:eth1", "udp:10.0.0.5", "udp:fd00::5"), a kernel
 * interface ("eth1", "xdp:eth1" for af_xdp), a PCI address, any other DPDK device string. It is
 * captured if PTL_CAPTURE is set, and has faults injected if PTL_FAULT is set. mtu: inner bytes
 * wanted, 0 for the device's own. pid: the process id wanted, which a node gives to one process
 * only, or GLUE_PID_ANY. NULL after an error line. */
#define GLUE_PID_ANY UINT32_MAX
struct port *glue_port_open(unsigned interface, const char *name, uint32_t mtu, uint32_t pid);
/* Has glue_port_open() just failed because another process of the node has the process id? */
bool glue_pid_is_taken(void);
/* For who tries one process id after the other: with true an id that is in use is no error line
 * from now on, and is waited for only as long as a process needs that is being killed. */
void glue_pid_try(bool tries);

/* The same of a card or a kernel interface alone, for posternd: this process is its only owner, and
 * no node lies over it. */
struct port *glue_card_open(const char *name, uint32_t mtu);

/* Node id that a device suggests: from its MAC address; without one, as for loops, the interface's
 * number + 1. Never the wildcard. */
uint32_t glue_port_nid(const struct port *port, unsigned interface);

/* Writes members of an object that is open: of the node that a port belongs to, and how often other
 * processes were refused. While nobody polls the port. */
void glue_node_tell(struct port *port, struct report *report);
/* Other processes of the node. Writes up to `count`, sorted by process id, and returns how many
 * there are; 0 if the port is no node's. While somebody polls the port. */
struct glue_process {
	uint32_t pid, uid;
};
unsigned glue_node_present(struct port *port, struct glue_process *processes, unsigned count);
/* The same as glue_node_tell() of the pair with one of them, and whether there is one. */
void glue_node_tell_pair(struct port *port, uint32_t pid, struct report *report);

/* A capture of what an open port receives and sends, into a pcapng file; snap: bytes kept of a
 * frame at most, 0 for all. capture_start() opens the file ("-": standard output; %p: process id,
 * %i: interface) and gives NULL after an error line; then, while nobody polls the port, it is
 * attached, and at the end detached; capture_finish() waits until all is written. Closing the port
 * does the last two. If the file fails, the capture ends with an error line; the interface goes
 * on. */
struct capture;
struct capture *capture_start(
	struct port *port, unsigned interface, const char *file, uint32_t snap);
void capture_attach(struct capture *capture);
struct capture *capture_find(const struct port *port); /* the capture that is attached, or NULL */
bool capture_ended(const struct capture *capture);     /* by a failure of its file */
void capture_detach(struct capture *capture);
void capture_finish(struct capture *capture);

/* Injects other faults into a port's frames from now on; `faults` is written as PTL_FAULT is. No
 * thread may poll the port meanwhile. 0, or -1 after an error line: the specification is wrong, or
 * the port was opened without PTL_FAULT. */
int glue_fault_change(struct port *port, unsigned interface, const char *specification);

/* Memory of a segment: a mapping of a memfd, zeroed and sparse, in hugepages if there are enough.
 * fd, for tests, may be NULL. glue_segment_commit() makes sure that a range can be used, and
 * returns -1 if there is no memory for it; glue_segment_warm() maps a range that can, so that the
 * first use of a page is as quick as the next ones. glue_segment_reset() gives the memory back and
 * leaves zeroed, readable address space, which the caller unmaps when no thread reads it any more.
 */
void *glue_segment_create(size_t size, int socket, int *fd);
int glue_segment_commit(void *segment, size_t offset, size_t size);
void glue_segment_warm(void *segment, size_t offset, size_t size);
void glue_segment_reset(void *segment, size_t size);

/* postern_alloc()'s memory. */
void *glue_memory_alloc(size_t size, int socket);
void glue_memory_free(void *memory);

/* Nanoseconds by the TSC. Any thread. */
uint64_t glue_now(void *context);

/* A poll thread: signals blocked, named, pinned to cpu (or -1), registered with EAL so that it has
 * a mempool cache. 0 or -1. */
struct glue_thread;
/* May a thread of this process be pinned to this CPU? Returns false after an error line. */
bool glue_cpu_usable(int cpu);
struct glue_thread *glue_thread_start(
	void (*run)(void *), void *argument, int cpu, const char *name);
void glue_thread_join(struct glue_thread *thread);
/* Gives the calling thread a mempool cache until it ends, unless it has one or too many threads
 * have one. A second call costs little. PTL_PROGRESS=inline uses it. */
void glue_thread_enter(void);

/* Answers dpdk-telemetry.py: for `command`, such as "/postern/peers", tell() writes members of an
 * object that is open. parameters: the text after the command and a comma, or "". It is called in
 * threads of DPDK's, of which several may run; one function serves all commands. help: less than 64
 * bytes. After glue_start(), once for each command. Returns false if DPDK has no room for another
 * command. */
struct report;
typedef void (*glue_tell)(const char *command, const char *parameters, struct report *report);
bool glue_telemetry_add(const char *command, const char *help, glue_tell tell);

/* What postern-info shows. */
struct glue_device {
	char name[64]; /* what to write into PTL_IFACE_NAME */
	char driver[32];
	char note[256]; /* "usable", or what is missing and how to get it */
	bool usable;
};
unsigned glue_devices(struct glue_device *devices, unsigned count);

#endif
