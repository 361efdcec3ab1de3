/* server.h - the end that answers: serves one client after another. One thread owns it. */
#ifndef PERF_SERVER_H
#define PERF_SERVER_H

#include "endpoint.h"

/* Serves until a client has been served, or for ever. Returns false when that client died.
 * window: the largest that the endpoint's queue has room for. quiet: says nothing of clients that
 * come and go. */
bool server_run(struct endpoint *endpoint, uint32_t window, bool once, bool quiet);

#endif
