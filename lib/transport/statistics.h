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
	X(frames_gathered, "of these: with data sent from its place, without a copy")              \
	X(bytes_received, "message data bytes received")                                           \
	X(bytes_sent, "message data bytes sent, without retransmissions")                          \
	X(messages_received, "messages of which the first frame arrived")                          \
	X(messages_sent, "messages given to the transport")                                        \
	X(acks_sent, "frames sent that hold an acknowledgement alone")                             \
	X(acks_received, "frames received that hold an acknowledgement alone")                     \
	X(retransmits, "frames sent again")                                                        \
	X(retransmits_rack, "of these: found lost by later deliveries (RACK)")                     \
	X(retransmits_probe, "of these: tail loss probes")                                         \
	X(retransmits_timeout, "of these: after a retransmission timeout")                         \
	X(spurious, "retransmissions that turned out to be unnecessary")                           \
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
	X(dropped_arp, "malformed ARP messages, or answers without a question")                    \
	X(dropped_short, "frames shorter than their headers say")                                  \
	X(dropped_version, "frames of another protocol version or type")                           \
	X(dropped_sealed, "encrypted frames, or frames with a reserved flag")                      \
	X(dropped_ring, "frames that move a stream to shared memory, which is reserved")           \
	X(dropped_checksum, "frames whose checksum is wrong")                                      \
	X(dropped_malformed, "frames whose fields contradict each other")                          \
	X(dropped_no_process, "frames for a process that is not here")                             \
	X(dropped_stale, "frames of or for an earlier run of a process, or unexpected answers")    \
	X(dropped_again, "frames that would have begun a stream that has ended")                   \
	X(dropped_window, "frames beyond the receive window")                                      \
	X(dropped_no_memory, "frames dropped for lack of buffers or room for peers")               \
	X(refusals_received, "ICMP errors for frames in flight or for questions")                  \
	X(denials_sent, "answers that the process in the question is not here")                    \
	X(denials_received, "answers that no process has the process id in the question")          \
	X(dropped_bad_ack, "acknowledgements of frames that were never sent")                      \
	X(marks_received, "frames that were marked for congestion on their way (ECN)")             \
	X(arps_sent, "ARP questions sent")                                                         \
	X(arps_answered, "ARP questions for this node's address that were answered")               \
	X(arps_received, "ARP messages received")                                                  \
	X(asks_sent, "address questions sent")                                                     \
	X(asks_broadcast, "of these: sent by broadcast")                                           \
	X(asks_received, "address questions for this process")                                     \
	X(dropped_ask, "of these: not answered, because there were too many of them")              \
	X(challenges_sent,                                                                         \
		"times a peer was asked because a frame claimed another run or address of it")     \
	X(resets_sent, "times a peer was told that its target run or stream has ended")            \
	X(resets_received, "times a peer reported that the target run or stream has ended")        \
	X(pings_sent, "echo questions sent")                                                       \
	X(pings_received, "echo questions for this process")                                       \
	X(pongs_sent, "of these: answered")                                                        \
	X(pongs_received, "answers to this process's echo questions")                              \
	X(dropped_ping, "echo questions not answered, because there were too many of them")        \
	X(dropped_pong, "answers to echo questions that came late, twice, or without a question")  \
	X(finds_sent, "questions for a host's name sent")                                          \
	X(finds_received, "questions for this host's name that were received")                     \
	X(find_answers_received, "answers to this process's questions for a name")                 \
	X(dropped_find, "questions for a name not answered, because there were too many of them")  \
	X(dropped_find_answer,                                                                     \
		"answers to questions for a name that came late or without a question")            \
	X(duplicates_seen,                                                                         \
		"frames by which another process claims this one's node and process id")           \
	X(peers_made, "peers learnt of")                                                           \
	X(peers_forgotten, "idle peers whose state was released")                                  \
	X(peers_dead, "peers declared dead after PTL_PEER_TIMEOUT")                                \
	X(peers_restarted, "peers found to have restarted")

struct transport_counters {
#define X(name, help) uint64_t name;
	TRANSPORT_COUNTERS(X)
#undef X
};

#endif
