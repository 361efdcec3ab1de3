/* SPDX-License-Identifier: BSD-3-Clause */
/* probe.h - places where bpftrace, perf and SystemTap can look on (USDT): a nop each, while nobody
 * does.
 *
 *     put          operation, nid, pid, portal, match bits, bytes          a put, or any request of
 *                                                                          Portals 4, is handed to
 *                                                                          the transport
 *     acknowledge  operation, nid, pid, portal, match bits, why            its peer has it (why is
 *                                                                          0), or it failed
 *     match        nid, pid, portal, match bits, bytes, descriptor         a request's search;
 *                                                                          descriptor -1: none
 *     place        nid, pid, address, bytes                                data is where its
 *                                                                          descriptor wants it
 *     retransmit   nid, pid, frame's number, how many before               a frame is sent again
 *     drop         reason, nid, pid                                        of this process itself;
 *                                                                          a counter's name
 *     count        counter, successes, failures                            a counter has changed:
 *                                                                          what it is now
 *     trigger      counter, threshold, successes and failures              a command is to run that
 *                                                                          waited for the counter
 *     disable      portal, nid, pid                                        flow control refuses
 *                                                                          what comes; of this
 *                                                                          process itself
 *
 * nid and pid are the other process's but for drop and disable; operation names a put from its
 * begin to its end. A short two-sided message (engine/letters.h) has no acknowledge. The lowest 22
 * bits of a counter are its index (topic ct). Without sys/sdt.h (systemtap-sdt-dev) there are none.
 */
#ifndef BASE_PROBE_H
#define BASE_PROBE_H

#ifdef POSTERN_PROBES
#define SDT_USE_VARIADIC 1
#include <sys/sdt.h>
#define PROBE(name, ...) STAP_PROBEV(postern, name, __VA_ARGS__)
#else
/* Never defined: no code, but what is only there to be looked at counts as used. */
int probe_of_nobody(int, ...);
#define PROBE(name, ...) ((void)sizeof(probe_of_nobody(0, __VA_ARGS__)))
#endif

/* For counters: a probe where the counter's name says that something is dropped, which the compiler
 * knows. */
#define PROBE_COUNTER(name, nid, pid)                                                              \
	do {                                                                                       \
		if (__builtin_strncmp(name, "dropped_", 8) == 0)                                   \
			PROBE(drop, name, nid, pid);                                               \
	} while (0)

#endif
