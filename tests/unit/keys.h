/* SPDX-License-Identifier: BSD-3-Clause */
/* keys.h - a second front end, for a test: values of fixed memory are put and gotten by key.
 *
 * It stands on lib/host and lib/engine alone. An endpoint is an interface; a key is the match bits
 * of an entry. Calls of one endpoint are made by one thread.
 */
#ifndef UNIT_KEYS_H
#define UNIT_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include <transport/transport.h>

enum keys_code {
	KEYS_OK,
	KEYS_CLOSED,  /* keys_init() was not called */
	KEYS_INVALID, /* the endpoint or the address is none */
	KEYS_FULL,
	KEYS_UNKNOWN, /* the target has no such key, or is not there */
	KEYS_FAILED
};

int keys_init(void);
void keys_fini(void);

int keys_open(unsigned interface, uint32_t pid, uint64_t *endpoint);
int keys_close(uint64_t endpoint);
int keys_self(uint64_t endpoint, struct process *self);

/* Makes memory the value of a key: others may put into it and get from it. */
int keys_offer(uint64_t endpoint, uint64_t key, void *memory, size_t length);
/* Returns when the value at the target has changed. A longer one is cut off. */
int keys_put(
	uint64_t endpoint, struct process target, uint64_t key, const void *data, size_t length);
/* Returns when data has the value, of which there may be less: *length. */
int keys_get(uint64_t endpoint, struct process target, uint64_t key, void *data, size_t *length);

/* What the host tells of an endpoint, as text. */
int keys_look(uint64_t endpoint, const char *topic, char *text, size_t size);

#endif
