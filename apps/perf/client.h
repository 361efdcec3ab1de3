/* SPDX-License-Identifier: BSD-3-Clause */
/* client.h - the end that measures, against one server or several. One thread owns it. */
#ifndef PERF_CLIENT_H
#define PERF_CLIENT_H

#include "effort.h"
#include "endpoint.h"
#include "options.h"
#include "result.h"
#include "server.h"

struct client;

/* The server that the client measures against. */
struct client_peer {
	ptl_process_id_t id;
	struct server *server; /* itself, where the client's thread runs it too; else NULL */
};

/* Meets the servers: waits while they serve others; ends the program if one is not there. largest:
 * of all sizes to come. */
struct client *client_open(struct endpoint *endpoint, const struct client_peer *peers,
	unsigned count, const struct options *options, uint64_t largest);

/* Measures one trial; ends the program if a server dies. progress, if not NULL, is called now and
 * then with the part that is done, 0 to 1. The result's times stay as they are until the next
 * measure. */
struct result client_measure(struct client *client, const struct trial *trial,
	const struct effort *effort, void (*progress)(void *context, double part), void *context);
/* The same with bare frames; ends the program if they do not come through. */
struct result client_bare(struct client *client, const struct trial *trial,
	const struct effort *effort, void (*progress)(void *context, double part), void *context);

/* more: this process will be back. */
void client_close(struct client *client, bool more);

#endif
