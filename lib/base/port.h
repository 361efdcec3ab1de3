/* SPDX-License-Identifier: BSD-3-Clause */
/* port.h - a port as the engine sees it: something that takes and gives frames.
 *
 * A NIC, a node, a kernel interface, the in-process loopback, fault injection around another port
 * and the simulator all look like this; pmd-glue and tests/sim implement it. One poll core owns a
 * port; nothing here is thread-safe.
 *
 * A frame is a DPDK mbuf whose data starts at the Ethernet header (no FCS). Frames for the own
 * address need not be looped back by a port: the transport delivers them itself.
 */
#ifndef BASE_PORT_H
#define BASE_PORT_H

#include <stdbool.h>
#include <stdint.h>

#define PORT_MTU_MIN 256 /* bytes after the Ethernet header that a port must carry */
/* and may: a frame's length field and an mbuf's room have 16 bits, headroom included */
#define PORT_MTU_MAX 65280

struct rte_mbuf;
struct rte_mempool;
struct port;

struct port_counters {
	uint64_t missed;  /* frames that the device dropped for lack of descriptors */
	uint64_t errors;  /* frames that the device reported as bad, both directions */
	uint64_t no_mbuf; /* receive buffers that could not be had */
	/* of the pool that are not free now: in rings, in queues, kept for retransmission */
	uint64_t buffers;
	uint64_t captured;   /* frames in the capture under way */
	uint64_t uncaptured; /* frames that it was too slow for */
};

/* As users see them: X(field, name, help). */
#define PORT_COUNTERS(X)                                                                           \
	X(missed, "port_missed", "frames that the device dropped for lack of descriptors")         \
	X(errors, "port_errors", "frames that the device reported as bad")                         \
	X(no_mbuf, "port_no_mbuf", "receive buffers that could not be had")                        \
	X(buffers, "port_buffers", "frame buffers in use now (not a count: it also falls)")        \
	X(captured, "port_captured", "frames in the current capture")                              \
	X(uncaptured, "port_capture_dropped", "frames that the current capture was too slow for")

/* What a port does without because the system refuses it. */
struct port_lack {
	const char *what;   /* an option of sockets or a system call: "UDP_GRO" */
	const char *effect; /* a clause */
};

#define PORT_LACKS 16u

/* What a port says of itself, for topics and programs that look inside. */
struct port_description {
	char driver[32];          /* "node", "loop" */
	char device[64];          /* its name in DPDK; "" */
	uint32_t transmit_frames; /* that its ring for sending holds; 0: it has none */
	bool faults;              /* PTL_FAULT is at work */
	unsigned lack_count;
	struct port_lack lacks[PORT_LACKS];
};

/* EtherTypes between a port that is addressed and its owner, never on a wire: of what a host has
 * refused (see there), and of a frame that met congestion on its way (ECN) */
#define PORT_REFUSED       0x88b6 /* IEEE 802 local experimental 2 */
#define PORT_MARKED        0xffff
#define PORT_REFUSAL_BYTES 64u
#define PORT_ANY_NODE      UINT32_MAX /* a node id that every process takes for its own */

/* Which frames an owner wants: for a port that others share. */
struct port_selection {
	uint16_t ethertype;
	/* that they are sent to, over IPv4; 0: they are no UDP. With UDP all of ARP is wanted,
	 * too */
	uint16_t udp_port;
	/* where in a frame without a VLAN tag, bytes from the Ethernet header on, */
	uint32_t at;
	/* this stands: it names the owner, node id (or PORT_ANY_NODE) and process id */
	uint8_t key[8];
	bool any_process; /* the owner stands for all of its node: the process id does not count */
};

struct port_operations {
	/* Writes up to count received frames to frames; returns how many. They belong to the
	 * caller. */
	uint16_t (*receive)(struct port *port, struct rte_mbuf **frames, uint16_t count);
	/* Takes frames from the front and returns how many it took; those are the port's to free,
	 * the rest stay the caller's. The port neither writes to a frame nor relies on its content
	 * once its reference is dropped; the sender may hold a second reference (for
	 * retransmission) and writes to the frame only while it holds the only one. */
	uint16_t (*transmit)(struct port *port, struct rte_mbuf **frames, uint16_t count);
	/* Is the link up? Cheap enough for once a millisecond. */
	bool (*link)(struct port *port);
	void (*counters)(struct port *port, struct port_counters *counters);
	/* May be NULL: the port hears nobody else's frames. From now on, for good, it receives
	 * these alone; called once. */
	void (*select)(struct port *port, const struct port_selection *wanted);
	/* May be NULL. description: zeroed before. */
	void (*describe)(struct port *port, struct port_description *description);
	/* May be NULL: the port cannot call. on: from now on the descriptor that is returned is
	 * readable when a frame waits, or comes, that has not been received; a thread that wants to
	 * sleep on it looks once more first. -1: not at present. off: the caller is awake and polls
	 * again; returns -1. */
	int (*interrupt)(struct port *port, bool on);
	/* May be NULL: not known. Has another process, from which frames came lately, looked for
	 * frames last on the CPU that the caller is on? Then it needs this CPU to answer. Any
	 * answer is safe. */
	bool (*shares_cpu)(struct port *port);
	/* May be NULL: not known. Is there certainly no process of this name now? A look costs a
	 * system call. */
	bool (*absent)(struct port *port, uint32_t nid, uint32_t pid);
	/* May be NULL. Lets go of the frames of two segments that the port still holds to send:
	 * they are lost or copied. */
	void (*recall)(struct port *port);
	/* Stops the device and frees the port. */
	void (*close)(struct port *port);
};

struct port {
	const struct port_operations *operations;
	/* for frames to send: data room >= RTE_PKTMBUF_HEADROOM + frame_size */
	struct rte_mempool *pool;
	/* of the pool's buffers: caches of threads may hold so many, where others cannot have
	 * them */
	uint32_t aside;
	uint32_t frame_size; /* largest frame, bytes from the Ethernet header on */
	/* bytes of headers around a frame that are not in it, but in what PTL_MTU counts */
	uint16_t around;
	/* frames that the port can hold for a receiver that does not poll */
	uint16_t receive_frames;
	/* the port fills in IPv4 and UDP checksums where a frame's mbuf asks for it */
	bool checksum_offload;
	/* The port is known to send frames of two segments, the second of which is an external
	 * buffer anywhere in the process's memory, and to let go of both as soon as they have left,
	 * not only when other frames follow. */
	bool gathers;
	/* Memory of the second segment that has gone before it was read costs the frame, not the
	 * program. */
	bool guards;
	/* A received frame of two segments has them from its sender: the second one is all the data
	 * of the last record, if the sender keeps the rules. */
	bool parts;
	/* of data, from which on a second segment costs less than a copy */
	uint32_t gather_bytes;
	/* Consecutive frames of one length to one process, as many as this, cost little more to
	 * send than one; 0: all cost the same. */
	uint16_t joins;
	bool calls; /* interrupt() works */
	/* Unless the user says otherwise the program's calls drive it (PTL_PROGRESS=both). Its
	 * frames come from other processes or from the kernel, which wake a thread that sleeps and
	 * want CPUs of their own, so that a polling thread would stand in their way. */
	bool helped;
	/* ns that a look takes which finds no frame; 0: next to nothing */
	uint32_t look;
	/* it reaches nobody on other hosts */
	bool lone;
	bool alone; /* it reaches nobody else at all */
	/* frames arrive from outside this process (so the poll core may not sleep long) */
	bool external;
	/* its functions above may be cancellation points (cancel.h) */
	bool cancels;
	uint8_t address[6]; /* own MAC address */
	/* The node id and the process id of the owner are the port's to give, and are these. */
	bool named;
	uint32_t nid, pid;
	/* The port knows at which address each node is, by itself or from a file, and the system
	 * knows the names of addresses. Such a port hears of frames that the host refused which
	 * they were for: it gives the owner PORT_REFUSAL_BYTES of what
	 * followed the frame's Ethernet header, as a frame from that address with the type
	 * PORT_REFUSED. Anybody may have forged it. */
	bool addressed;
	/* Node ids of a port that is addressed are those of a file (PTL_HOSTS), because IPv6
	 * addresses are longer. */
	bool listed;
	/* So is the user whose id all messages must bear: frames with another one do not leave. */
	bool attested;
	uint32_t uid;
	/* written by receive: since when the first frame of the burst has waited, by the clock of
	 * the port's owner; 0: not known, some time since the last call */
	uint64_t arrived;
	int socket;    /* NUMA node, -1 if it does not matter */
	char name[64]; /* for messages: "node:x", "0000:03:00.0" */
};

static inline uint16_t port_receive(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	return port->operations->receive(port, frames, count);
}

static inline uint16_t port_transmit(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	return port->operations->transmit(port, frames, count);
}

static inline bool port_absent(struct port *port, uint32_t nid, uint32_t pid)
{
	return port->operations->absent && port->operations->absent(port, nid, pid);
}

#endif
