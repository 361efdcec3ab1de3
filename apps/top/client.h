/* SPDX-License-Identifier: BSD-3-Clause */
/* client.h - questions to a process's telemetry socket, as DPDK's library answers them.
 *
 * Answers are one JSON object each, {"/command": {"member": value, ...}}; values may be such
 * objects again. A member is known by its name, at whatever depth.
 */
#ifndef TOP_CLIENT_H
#define TOP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct client {
	int socket;
	json_t *answer; /* to the last question; NULL: there was none */
};

/* Returns false if nobody listens there, or if it is no telemetry socket. Does not
 * wait for long. */
bool client_open(struct client *client, const char *path);
void client_close(struct client *client);

/* Asks and waits a second at most. Returns false if there is no answer, or if it is no JSON, and
 * the client is of no use any more. */
bool client_ask(struct client *client, const char *question);

/* The member of this name, at any depth; NULL: there is none. The client's. */
json_t *client_member(const struct client *client, const char *name);
/* A number of the last answer; 0 when it is not there. */
uint64_t client_number(const struct client *client, const char *name);
/* The sum of all numbers whose names begin so. */
uint64_t client_sum(const struct client *client, const char *prefix);
/* A text of the last answer, cut off if need be, and clean; "" when it is not there. */
void client_text(const struct client *client, const char *name, char *text, size_t size);
/* The process may be anybody's, and a terminal obeys control characters: they become '?'. */
void text_clean(char *text);
/* Numbers of an array of the last answer; how many, up to count. */
unsigned client_numbers(
	const struct client *client, const char *name, uint64_t *numbers, unsigned count);

#endif
