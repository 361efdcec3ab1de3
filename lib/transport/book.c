/* SPDX-License-Identifier: BSD-3-Clause */
/* book.c - see book.h. Cells are searched from where the process's hash leads to; at least a
 * quarter of them are free. */
#include <transport/book.h>

#include <stdlib.h>
#include <string.h>

#include <transport/peer.h>

#define CELLS_FIRST 64u

static uint32_t book_hash(struct process process)
{
	uint64_t key = (uint64_t)process.nid << 32 | process.pid;

	key *= UINT64_C(0x9e3779b97f4a7c15);
	key ^= key >> 32;
	key *= UINT64_C(0xd6e8feb86659fd93);
	return (uint32_t)(key >> 32);
}

/* The process's cell, or the free one where it would be. */
static struct book_cell *book_cell(const struct book *book, struct process process)
{
	uint32_t i = book_hash(process) & book->mask;

	while (book->cells[i].taken && !process_same(book->cells[i].process, process))
		i = (i + 1) & book->mask;
	return &book->cells[i];
}

static bool book_grow(struct book *book)
{
	struct book larger = {.mask = book->cells ? book->mask * 2 + 1 : CELLS_FIRST - 1};

	if (book->cells && book->count < (book->mask + 1) / 4 * 3)
		return true;
	larger.cells = calloc((size_t)larger.mask + 1, sizeof(*larger.cells));
	if (!larger.cells)
		return false;
	for (uint32_t i = 0; book->cells && i <= book->mask; i++)
		if (book->cells[i].taken)
			*book_cell(&larger, book->cells[i].process) = book->cells[i];
	larger.count = book->count;
	free(book->cells);
	*book = larger;
	return true;
}

void book_put(struct book *book, struct process process, const uint8_t *address)
{
	struct book_cell *cell;

	if (!book_grow(book))
		return;
	cell = book_cell(book, process);
	book->count += !cell->taken;
	cell->process = process;
	cell->taken = true;
	memcpy(cell->address, address, sizeof(cell->address));
}

const uint8_t *book_find(const struct book *book, struct process process)
{
	const struct book_cell *cell = book->cells ? book_cell(book, process) : NULL;

	return cell && cell->taken ? cell->address : NULL;
}

void book_free(struct book *book)
{
	free(book->cells);
	*book = (struct book){0};
}
