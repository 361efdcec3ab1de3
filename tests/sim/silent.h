/* SPDX-License-Identifier: BSD-3-Clause */
/* silent.h - processes that ask for data and never acknowledge it: forged, or dead since they
 * asked. All of them are behind one link of the network, the one after the nodes' links.
 *
 * Each asks one node where it is, and when it is told gets SILENT_BYTES there, SILENT_GETS times at
 * once. It does the same again every SILENT_PERIOD, while the nodes have something to do.
 */
#ifndef SIM_SILENT_H
#define SIM_SILENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sim/node.h>

#define SILENT_GETS   10
#define SILENT_BYTES  300000 /* of each get */
#define SILENT_PERIOD (60 * SECOND)

struct silent {
	struct simulation *simulation;
	const struct node_settings *settings;
	uint32_t count;
	uint16_t *streams; /* the last one of each process */
	uint64_t gets;     /* asked for */
};

void silent_init(struct silent *silent, struct simulation *simulation,
	const struct node_settings *settings, uint32_t count);
void silent_free(struct silent *silent);
/* All nodes are open: they begin. */
void silent_start(struct silent *silent);
/* Is the process one of them? */
bool silent_has(const struct silent *silent, uint32_t nid, uint32_t pid);
/* A parcel for one of them; takes it over. */
void silent_deliver(struct silent *silent, struct parcel *parcel);

#endif
