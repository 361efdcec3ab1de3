/* match.c - the order of a match list: links, positions, and the walk. See match.h. The poll core
 * owns all of it.
 *
 * Positions are 64-bit labels with gaps between them. A push takes a label one step beyond the end;
 * after 2^26 pushes the labels there may be used up, and the list is moved to the middle of them.
 * An insertion divides a gap. When none is left, a neighbour moves aside into the gap on its other
 * side, as a mark at the end of a list always can; if it cannot, the entries around are spread over
 * the smallest range of labels in which they are thin enough (Bender et al., "Two simplified
 * algorithms for maintaining order in a list"): a few entries for each insertion on average, many
 * at a time seldom.
 *
 * P1. Labels 0 and UINT64_MAX are never used: they stand for the two ends.
 */
#include <assert.h>
#include <stddef.h>

#include <match/index.h>
#include <match/match.h>

static_assert(sizeof(struct match_entry) == 64, "one cache line");

#define POSITION_FIRST (UINT64_C(1) << 63)
#define POSITION_STEP  (UINT64_C(1) << 36)
#define POSITION_SHARE 1024                /* part of a gap that an entry of a run takes */
#define POSITION_ASIDE (UINT64_C(1) << 20) /* a smaller gap is not worth moving into */

/* Ranges that are tried when a gap is used up: 2^20 labels, 2^25, ... 2^60. A range of 2^b labels
 * is thin enough with 2^(2b/5) entries. The last one always is: 2^24 entries are more than handles
 * can name. */
#define SPREAD_BITS_MIN    20
#define SPREAD_BITS_STEP   5
#define SPREAD_BITS_MAX    60
#define SPREAD_LIMIT(bits) (UINT64_C(1) << (2 * (bits) / 5))

/* Above the one a list gets an index, below the other it loses it. */
#define INDEX_ABOVE 16
#define INDEX_BELOW 8

void match_list_init(struct match_list *list)
{
	*list = (struct match_list){.head = MATCH_NONE, .tail = MATCH_NONE, .latest = MATCH_NONE};
}

void match_list_clear(struct match_list *list)
{
	index_destroy(list->index);
	match_list_init(list);
}

/* Makes room around an entry: afterwards there is a gap on both sides of it. */
static void positions_spread(const struct match_table *table, uint32_t entry)
{
	uint64_t position = match_entry(table, entry)->position;
	uint32_t first = entry;
	uint32_t last = entry;
	uint64_t count = 1;
	uint64_t size;
	uint64_t start;

	for (unsigned bits = SPREAD_BITS_MIN;; bits += SPREAD_BITS_STEP) {
		uint32_t i;

		size = UINT64_C(1) << bits;
		start = position & ~(size - 1);
		while ((i = match_entry(table, first)->previous) != MATCH_NONE &&
			match_entry(table, i)->position >= start) {
			first = i;
			count++;
		}
		while ((i = match_entry(table, last)->next) != MATCH_NONE &&
			match_entry(table, i)->position - start < size) {
			last = i;
			count++;
		}
		if (count <= SPREAD_LIMIT(bits) || bits == SPREAD_BITS_MAX)
			break;
	}

	uint64_t step = size / (count + 1);

	for (uint64_t label = start; count > 0; count--) {
		label += step;
		match_entry(table, first)->position = label;
		first = match_entry(table, first)->next;
	}
}

/* Moves the whole list to the middle of the labels, one step between any two entries. */
static void positions_centre(const struct match_table *table, const struct match_list *list)
{
	uint64_t label = POSITION_FIRST - list->length / 2 * POSITION_STEP;

	for (uint32_t i = list->head; i != MATCH_NONE; i = match_entry(table, i)->next) {
		match_entry(table, i)->position = label;
		label += POSITION_STEP;
	}
}

static uint64_t label_of(const struct match_table *table, uint32_t i, uint64_t end)
{
	return i == MATCH_NONE ? end : match_entry(table, i)->position;
}

/* How far an entry moves aside into a gap; 0 when it does not. */
static uint64_t aside(uint64_t gap)
{
	if (gap < POSITION_ASIDE)
		return 0;
	return gap / 2 < POSITION_STEP ? gap / 2 : POSITION_STEP;
}

/* Makes room between two neighbours, or at an end of the list. */
static void positions_make(const struct match_table *table, const struct match_list *list,
	uint32_t previous, uint32_t next)
{
	if (previous == MATCH_NONE || next == MATCH_NONE) {
		positions_centre(table, list);
		return;
	}

	struct match_entry *left = match_entry(table, previous);
	struct match_entry *right = match_entry(table, next);
	uint64_t up = aside(label_of(table, right->next, UINT64_MAX) - right->position);
	uint64_t down = aside(left->position - label_of(table, left->previous, 0));

	if (up > 0)
		right->position += up;
	else if (down > 0)
		left->position -= down;
	else
		positions_spread(table, previous);
}

/* A label for an entry between two neighbours, either of which may be MATCH_NONE; 0 when there is
 * none left. */
static uint64_t position_between(const struct match_table *table, const struct match_list *list,
	uint32_t previous, uint32_t next)
{
	uint64_t low = label_of(table, previous, 0);
	uint64_t high = label_of(table, next, UINT64_MAX);
	uint64_t gap = high - low;

	if (previous == MATCH_NONE && next == MATCH_NONE)
		return POSITION_FIRST;
	if (next == MATCH_NONE)
		return gap > POSITION_STEP ? low + POSITION_STEP : 0;
	if (previous == MATCH_NONE)
		return gap > POSITION_STEP ? high - POSITION_STEP : 0;
	if (gap < 2)
		return 0;

	/* A program that puts entry after entry before one mark, or after it, goes on doing so:
	 * stay near the latest entry and leave the gap on the other side to those that follow.
	 * Halving it would use it up in 36 insertions. */
	uint64_t share = gap / POSITION_SHARE + 1;

	if (previous == list->latest)
		return low + share;
	if (next == list->latest)
		return high - share;
	return low + gap / 2;
}

static void list_link(const struct match_table *table, struct match_list *list, uint32_t i,
	uint32_t previous, uint32_t next)
{
	struct match_entry *entry = match_entry(table, i);
	uint64_t position = position_between(table, list, previous, next);

	if (position == 0) {
		positions_make(table, list, previous, next);
		position = position_between(table, list, previous, next);
	}
	entry->position = position;
	entry->previous = previous;
	entry->next = next;
	if (previous == MATCH_NONE)
		list->head = i;
	else
		match_entry(table, previous)->next = i;
	if (next == MATCH_NONE)
		list->tail = i;
	else
		match_entry(table, next)->previous = i;
	list->length++;
	list->latest = i;

	if (list->index != NULL)
		index_add(table, list, i);
	else if (list->length > INDEX_ABOVE)
		list->index = index_create(table, list); /* NULL is fine: I4 */
}

void match_push_front(const struct match_table *table, struct match_list *list, uint32_t entry)
{
	list_link(table, list, entry, MATCH_NONE, list->head);
}

void match_push_back(const struct match_table *table, struct match_list *list, uint32_t entry)
{
	list_link(table, list, entry, list->tail, MATCH_NONE);
}

void match_insert_before(
	const struct match_table *table, struct match_list *list, uint32_t current, uint32_t entry)
{
	list_link(table, list, entry, match_entry(table, current)->previous, current);
}

void match_insert_after(
	const struct match_table *table, struct match_list *list, uint32_t current, uint32_t entry)
{
	list_link(table, list, entry, current, match_entry(table, current)->next);
}

void match_remove(const struct match_table *table, struct match_list *list, uint32_t entry)
{
	uint32_t previous = match_entry(table, entry)->previous;
	uint32_t next = match_entry(table, entry)->next;

	if (list->index != NULL)
		index_remove(table, list, entry);
	if (previous == MATCH_NONE)
		list->head = next;
	else
		match_entry(table, previous)->next = next;
	if (next == MATCH_NONE)
		list->tail = previous;
	else
		match_entry(table, next)->previous = previous;
	if (list->latest == entry)
		list->latest = previous; /* most likely the one that was put in before it */
	list->length--;
	if (list->length < INDEX_BELOW && list->index != NULL) {
		index_destroy(list->index);
		list->index = NULL;
	}
}

static uint32_t list_walk(const struct match_table *table, uint32_t i, const struct match_key *key)
{
	while (i != MATCH_NONE && !entry_matches(match_entry(table, i), key))
		i = match_entry(table, i)->next;
	return i;
}

uint32_t match_first(
	const struct match_table *table, const struct match_list *list, const struct match_key *key)
{
	if (list->index != NULL)
		return index_first(table, list->index, key);
	return list_walk(table, list->head, key);
}

uint32_t match_next(const struct match_table *table, const struct match_list *list,
	uint32_t current, const struct match_key *key)
{
	if (list->index != NULL)
		return index_next(table, list->index, current, key);
	return list_walk(table, match_entry(table, current)->next, key);
}

void match_list_describe(const struct match_list *list, struct match_list_info *info)
{
	*info = (struct match_list_info){.length = list->length, .indexed = list->index != NULL};
	if (!info->indexed)
		return;
	info->classes = index_classes(list->index);
	info->residue = index_residue(list->index);
}
