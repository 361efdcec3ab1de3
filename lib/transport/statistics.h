/* SPDX-License-Identifier: BSD-3-Clause */
/* statistics.h - what a transport counts. Few files include it, so that a new counter makes few of
 * them compile again. */
#ifndef TRANSPORT_STATISTICS_H
#define TRANSPORT_STATISTICS_H

#include <stdint.h>

/* Every event worth counting: X(name, help). Prints as "name"; the help is for users. */
#define TRANSPORT_COUNTERS(X)                                                                      \
	X(frames_received, "frames taken from the port")                                           \
	X(frames_sent, "frames given to the port, retransmissions included")                       \
	X(frames_gathered, "of these: with data sent from where it lies, without a copy")          \
	X(bytes_received, "message data bytes received")                                           \
	X(bytes_sent, "message data bytes sent, without retransmissions")                          \
	X(messages_received, "messages that started here")                                         \
	X(messages_sent, "messages given to the transport")                                        \
	X(acks_sent, "frames sent for an acknowledgement alone")                                   \
	X(acks_received, "frames received that hold an acknowledgement alone")                     \
	X(retransmits, "frames sent again")                                                        \
	X(retransmits_rack, "of these: found lost by later deliveries (RACK)")                     \
	X(retransmits_probe, "of these: tail loss probes")                                         \
	X(retransmits_timeout, "of these: after a retransmission timeout")                         \
	X(spurious, "retransmissions that turned out unneeded")                                    \
	X(timeouts, "retransmission timeouts; each doubles the next")                              \
	X(congestion_cuts, "times a window was cut for delay, marks or loss")                      \
	X(credit_stalls, "times a peer had data to send and no credit or window")                  \
	X(port_full, "times the port did not take a frame at once")                                \
	X(reordered, "frames that arrived early and were held or placed at once")                  \
	X(dropped_duplicate, "frames received before")                                             \
	X(dropped_foreign, "frames of other protocols or for other hosts")                         \
	X(dropped_ipv4, "frames whose IPv4 header is wrong")                                       \
	X(dropped_fragment, "fragments of IPv4 packets, which are not put together")               \
	X(dropped_udp, "frames whose UDP length or checksum is wrong")                             \
	X(dropped_spoofed, "frames whose node id is not the IPv4 address that they come from")     \
	X(dropped_arp, "ARP messages that are wrong, or answers that nobody asked for")            \
	X(dropped_short, "frames shorter than their headers say")                                  \
	X(dropped_version, "frames of another protocol version or type")                           \
	X(dropped_sealed, "frames that are sealed, or bear a will, which is not read here")        \
	X(dropped_ring, "frames after which a stream would go on in a ring, which is not here")    \
	X(dropped_checksum, "frames whose checksum is wrong")                                      \
	X(dropped_malformed, "frames whose fields contradict each other")                          \
	X(dropped_no_process, "frames for a process that does not live here")                      \
	X(dropped_stale, "frames of or for another life of a process, or an unasked answer")       \
	X(dropped_again, "frames that would have begun a stream that has been over")               \
	X(dropped_window, "frames beyond the receive window")                                      \
	X(dropped_no_memory, "frames refused for lack of buffers or peers")                        \
	X(refusals_received, "frames in flight, or questions, that a peer's host refused")         \
	X(denials_received, "answers to questions that no process has the id that was asked for")  \
	X(dropped_bad_ack, "acknowledgements of what was never sent")                              \
	X(marks_received, "frames that met congestion on their way (ECN)")                         \
	X(arps_sent, "ARP questions sent")                                                         \
	X(arps_answered, "ARP questions for this node's address, answered")                        \
	X(arps_received, "ARP messages received")                                                  \
	X(asks_sent, "address questions sent")                                                     \
	X(asks_everybody, "of these: sent to everybody")                                           \
	X(asks_received, "address questions for this process")                                     \
	X(dropped_ask, "of these: not answered, because there were too many of them")              \
	X(lives_doubted,                                                                           \
		"times a peer was asked because a frame said that its life or address is another") \
	X(resets_sent, "times a peer was told that it talks to a life or stream that is gone")     \
	X(resets_received, "times a peer told so")                                                 \
	X(pings_sent, "echo questions sent")                                                       \
	X(pings_received, "echo questions for this process")                                       \
	X(pongs_sent, "of these: answered")                                                        \
	X(pongs_received, "answers to own echo questions")                                         \
	X(dropped_ping, "echo questions not answered, because there were too many of them")        \
	X(dropped_pong, "answers to echo questions that came too late, twice, or unasked")         \
	X(finds_sent, "questions for a host's name sent")                                          \
	X(finds_received, "questions for this host's name")                                        \
	X(founds_received, "answers to own questions for a name")                                  \
	X(dropped_find, "questions for a name not answered, because there were too many of them")  \
	X(dropped_found, "answers about names that came too late, or that nobody asked for")       \
	X(duplicates_seen,                                                                         \
		"frames by which another process claims this one's node and process id")           \
	X(peers_made, "peers met")                                                                 \
	X(peers_forgotten, "peers forgotten when idle")                                            \
	X(peers_dead, "peers declared dead after PTL_PEER_TIMEOUT")                                \
	X(peers_restarted, "peers found to have restarted")

struct transport_counters {
#define X(name, help) uint64_t name;
	TRANSPORT_COUNTERS(X)
#undef X
};

#endif
