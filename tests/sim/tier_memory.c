/* SPDX-License-Identifier: BSD-3-Clause */
/* tier_memory.c - see tier_memory.h. */
#include <sim/tier_memory.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sim/report.h>

/* Where neither the kernel nor a sanitizer puts anything, and room for each. */
#define PLACE      UINT64_C(0x7e9000000000)
#define PLACE_ROOM (UINT64_C(1) << 24)
#define ALIGNMENT  64
#define RUN        4 /* pages that change at once, at most */

uint64_t memory_address(uint32_t node, unsigned which)
{
	return PLACE + (node * UINT64_C(2) + which) * PLACE_ROOM;
}

static void *pages_at(const struct tier_memory *memory, uint64_t page)
{
	return (void *)(uintptr_t)(memory->at + MEMORY_KEPT + page * MEMORY_PAGE);
}

void memory_open(struct tier_memory *memory, uint32_t node, unsigned which)
{
	int file = memfd_create("tiers", 0);
	void *at;

	*memory = (struct tier_memory){.at = memory_address(node, which)};
	if (file < 0 || ftruncate(file, MEMORY_BYTES) != 0)
		report_stop("node %u: no file of memory", node);
	at = mmap((void *)(uintptr_t)memory->at, MEMORY_BYTES, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0);
	memory->bytes = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if ((uintptr_t)at != memory->at || memory->bytes == MAP_FAILED)
		report_stop("node %u: no memory at %#llx", node, (unsigned long long)memory->at);
	memory->kept = report_memory(extent_create(MEMORY_KEPT, ALIGNMENT));
	memory->wild = report_memory(extent_create(MEMORY_BYTES - MEMORY_KEPT, ALIGNMENT));
}

void memory_close(struct tier_memory *memory)
{
	if (!memory->bytes)
		return;
	munmap((void *)(uintptr_t)memory->at, MEMORY_BYTES);
	munmap(memory->bytes, MEMORY_BYTES);
	extent_destroy(memory->kept);
	extent_destroy(memory->wild);
}

uint64_t memory_take(struct tier_memory *memory, uint64_t bytes, bool wild)
{
	uint64_t offset = extent_take(wild ? memory->wild : memory->kept, bytes);

	return offset == EXTENT_NONE || !wild ? offset : MEMORY_KEPT + offset;
}

void memory_give(struct tier_memory *memory, uint64_t offset, uint64_t bytes)
{
	if (offset < MEMORY_KEPT)
		extent_give(memory->kept, offset, bytes);
	else
		extent_give(memory->wild, offset - MEMORY_KEPT, bytes);
}

static void page_note(
	struct tier_page *page, enum memory_access access, bool there, uint64_t moment)
{
	if (there && page->gone[access] != 0)
		page->back[access] = moment;
	if (there)
		page->gone[access] = 0;
	else if (page->gone[access] == 0)
		page->gone[access] = moment;
}

void memory_change(struct tier_memory *memory, struct prng *prng, uint64_t moment)
{
	uint64_t first = prng_below(prng, MEMORY_PAGES);
	uint64_t count = prng_between(prng, 1, RUN);
	double choice = prng_fraction(prng);
	bool reads = choice < 0.75, writes = choice < 0.6;
	int protection = (reads ? PROT_READ : PROT_NONE) | (writes ? PROT_WRITE : PROT_NONE);

	if (count > MEMORY_PAGES - first)
		count = MEMORY_PAGES - first;
	if (mprotect(pages_at(memory, first), count * MEMORY_PAGE, protection) != 0)
		report_stop("pages of memory do not change");
	for (uint64_t i = first; i < first + count; i++) {
		page_note(&memory->pages[i], MEMORY_READ, reads, moment);
		page_note(&memory->pages[i], MEMORY_WRITE, writes, moment);
	}
}

static bool page_is_missing(const struct tier_page *page, enum memory_access access,
	enum memory_when when, uint64_t moment)
{
	const uint64_t gone = page->gone[access];

	switch (when) {
	case MISSING_NOW:
		return gone != 0;
	case MISSING_ONCE:
		return gone != 0 || page->back[access] > moment;
	default:
		return gone != 0 && gone <= moment;
	}
}

bool memory_misses(const struct tier_memory *memory, uint64_t address, uint64_t length,
	enum memory_access access, enum memory_when when, uint64_t moment)
{
	uint64_t offset = address - memory->at;

	if (length == 0)
		return false;
	if (offset >= MEMORY_BYTES || length > MEMORY_BYTES - offset)
		return true;
	for (uint64_t at = offset - offset % MEMORY_PAGE; at < offset + length; at += MEMORY_PAGE)
		if (at >= MEMORY_KEPT &&
			page_is_missing(&memory->pages[(at - MEMORY_KEPT) / MEMORY_PAGE], access,
				when, moment))
			return true;
	return false;
}
