/* SPDX-License-Identifier: BSD-3-Clause */
/* server.h - the end that answers: serves one client after another. One thread owns it. */
#ifndef PERF_SERVER_H
#define PERF_SERVER_H

#include "endpoint.h"
#include "lend.h"
#include "library.h"

struct server;

/* window: the largest that the endpoint's queue has room for. library: whose messages it takes
 * beside those of Portals 3.2. quiet: says nothing of clients that come and go. */
struct server *server_open(
	struct endpoint *endpoint, uint32_t window, enum library library, bool quiet);
void server_close(struct server *server);

/* Serves until a client has been served, or for ever. Returns false when that client died. */
bool server_run(struct server *server, bool once);
/* Handles what has come, without waiting: for a program that serves beside other work. Returns
 * false if no message of another library has come. */
bool server_turn(struct server *server);

/* The server's end of bare frames, for a process that runs both. */
void server_bare(const struct server *server, struct lend_end *end);

#endif
