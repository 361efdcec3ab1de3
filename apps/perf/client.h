/* client.h - the end that measures. One thread owns it. */
#ifndef PERF_CLIENT_H
#define PERF_CLIENT_H

#include "effort.h"
#include "endpoint.h"
#include "options.h"
#include "result.h"
#include "server.h"

struct client;

/* Meets the server at `peer`: waits while it serves others; ends the program if there is none.
 * server: NULL, or the server itself, where the endpoint's thread runs it too. largest: of all sizes
 * to come. */
struct client *client_open(struct endpoint *endpoint, ptl_process_id_t peer, struct server *server,
	const struct options *options, uint64_t largest);

/* Measures one size; ends the program if the server dies. progress, if not NULL, is called now and
 * then with the part that is done, 0 to 1. The result's times stay as they are until the next
 * measure. */
struct result client_measure(struct client *client, enum measure measure, uint64_t size,
	const struct effort *effort, void (*progress)(void *context, double part), void *context);
/* The same with bare frames; ends the program if they do not come through. */
struct result client_bare(struct client *client, enum measure measure, uint64_t size,
	const struct effort *effort, void (*progress)(void *context, double part), void *context);

void client_close(struct client *client);

#endif
