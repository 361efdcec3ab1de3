/* SPDX-License-Identifier: BSD-3-Clause */
/* sieves.h - which of many entries that ignore different things match, without looking at each.
 *
 * What an entry asks for is read as digits of four bits: those of its match bits, and the lowest of
 * its nid and pid. A sieve is of up to 64 neighbours of the residue (index.h), in list order; it
 * holds, for each value of each digit, a word of the entries that have nothing against that value,
 * a bit each. So the entries that may match are in the words of all digits of a message, and only
 * they are compared: the rest of nid and pid is in no word.
 *
 *     entries        asks for 0x1?, 0x23, 0x??
 *
 *     value          0    1    2    3    4   ...
 *     first digit    ..3  1.3  .23  ..3  ..3          a message brings 0x23:
 *     second digit   1.3  1.3  1.3  123  1.3          .23 & 123 = .23: the second is the first that
 *                                                     matches
 *
 * S1. The sieves, and the entries in each, are in the order of the residue's chain. An entry that
 *     belongs to it names its sieve in entry->sieve.
 * S2. A full sieve is divided; neighbours that have together no more than half of one are united.
 *
 * Private memory of the poll core; entries are in the shared table.
 */
#ifndef MATCH_SIEVES_H
#define MATCH_SIEVES_H

#include <match/blocks.h>
#include <match/order.h>

#define SIEVE_ENTRIES 64
#define DIGITS        20 /* two of each byte of the match bits, and of the lowest of nid and pid */
#define DIGIT_VALUES  16

struct sieve {
	uint64_t pass[DIGITS][DIGIT_VALUES];
	uint32_t entries[SIEVE_ENTRIES];
	uint32_t count;
	uint32_t next; /* in list order, or of those that are not used */
};

struct sieves {
	struct blocks blocks; /* a sieve each */
	uint32_t first;       /* MATCH_NONE: no entries */
	uint32_t unused;
};

void sieves_open(struct sieves *sieves);
void sieves_close(struct sieves *sieves);

/* An entry has come into the residue's chain; false, and it is in no sieve, when there is no memory
 * for the sieve that it needs. */
bool sieves_add(const struct match_table *table, struct sieves *sieves, uint32_t entry);
/* Before it leaves the chain. */
void sieves_remove(const struct match_table *table, struct sieves *sieves, uint32_t entry);

/* The first entry of the residue that matches; or one behind `found` in the list, if that is not
 * MATCH_NONE, whether it matches or not; or MATCH_NONE. */
uint32_t sieves_first(const struct match_table *table, const struct sieves *sieves,
	const struct match_order *order, uint32_t found, const struct match_key *key);
/* The same from entry i of the residue on. */
uint32_t sieves_find(const struct match_table *table, const struct sieves *sieves,
	const struct match_order *order, uint32_t i, uint32_t found, const struct match_key *key);

#endif
