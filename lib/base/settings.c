/* SPDX-License-Identifier: BSD-3-Clause */
/* settings.c - see settings.h; the table of settings is in setting_table.c.
 *
 * The library's lock guards the values; the table is constant.
 *
 * I1. settings_load() checks every item of every value before it keeps any: a load that fails
 *     changes nothing, and what the getters parse has been parsed before.
 * I2. A value that is set but blank counts as not set.
 */
#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <base/clock.h>
#include <base/environment.h>
#include <base/log.h>
#include <base/number.h>
#include <base/remedy.h>
#include <base/setting_table.h>
#include <base/settings.h>

#define PREFIX         "PTL_"
#define LIST_SEPARATOR ';'
#define NAME_MAX_BYTES 64 /* longer names are not compared with known ones */
/* edits between a wrong name and the one that was meant, at most, and in no more than half of it */
#define CLOSE_ENOUGH 3

#define PREFIX_MAX 32
#define RANGE_MIN  16u
#define RANGE_MAX  16384u

/* One value as it was read. Texts are this module's own copies. */
struct setting_value {
	char *text;     /* NULL: the default holds */
	char *items;    /* of a list: each item, trimmed, with its final 0 */
	unsigned count; /* items */
};

static struct setting_value setting_values[SETTING_COUNT];

/* Values that setting_replace() replaced, whose texts may still be read. */
static struct setting_value *retired_values;
static unsigned retired_count;

extern char **environ;

static const struct setting_row *setting_row(enum setting setting)
{
	assert((unsigned)setting < SETTING_COUNT);
	return &setting_table[setting];
}

const struct setting_description *setting_describe(enum setting setting)
{
	return &setting_row(setting)->description;
}

enum setting setting_find(const char *name)
{
	unsigned i = 0;

	while (i < SETTING_COUNT && strcmp(setting_table[i].description.name, name) != 0)
		i++;
	return (enum setting)i;
}

/* What a number may end in, by type. */
struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit units_number[] = {{"", 1}, {NULL, 0}};
static const struct unit units_size[] = {{"", 1}, {"K", KIBIBYTE}, {"M", MEBIBYTE}, {"G", GIBIBYTE},
	{"k", KIBIBYTE}, {"m", MEBIBYTE}, {"g", GIBIBYTE}, {NULL, 0}};
static const struct unit units_duration[] = {
	{"ns", 1}, {"us", MICROSECOND}, {"ms", MILLISECOND}, {"s", SECOND}, {NULL, 0}};

static const struct unit *type_units(enum setting_type type)
{
	if (type == TYPE_SIZE)
		return units_size;
	return type == TYPE_DURATION ? units_duration : units_number;
}

/* Digits, then one of the units. A number too large for 64 bits is UINT64_MAX, which no setting
 * allows. */
static bool number_parse(const char *text, const struct unit *units, uint64_t *number)
{
	const int base = text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10;
	char *end;

	if (!isdigit((unsigned char)text[0])) /* strtoull() takes signs and blanks */
		return false;
	*number = strtoull(text, &end, base);
	for (; units->name; units++)
		if (strcmp(end, units->name) == 0) {
			if (__builtin_mul_overflow(*number, units->factor, number))
				*number = UINT64_MAX;
			return true;
		}
	return false;
}

/* Up to three digits and their value; what follows them, or NULL. */
static const char *small_parse(const char *text, unsigned max, unsigned *value)
{
	const char *start = text;

	*value = 0;
	for (; isdigit((unsigned char)*text) && text - start < 3; text++)
		*value = *value * 10 + (unsigned)(*text - '0');
	return text == start || *value > max ? NULL : text;
}

/* Four numbers with dots; what follows them, or NULL. */
static const char *address_parse(const char *text, uint64_t *address)
{
	unsigned byte;

	*address = 0;
	for (unsigned i = 0; i < 4; i++) {
		if (i > 0 && *text++ != '.')
			return NULL;
		text = small_parse(text, UINT8_MAX, &byte);
		if (!text)
			return NULL;
		*address = *address << 8 | byte;
	}
	return text;
}

/* The last port is in the high half. */
static bool range_parse(const char *text, uint64_t *number)
{
	uint32_t first, last;

	if (!number_read(&text, "-", &first) || *text++ != '-' || !number_read(&text, "", &last))
		return false;
	*number = first | (uint64_t)last << 32;
	return first > 0 && last <= UINT16_MAX && last + 1 >= (uint64_t)first + RANGE_MIN &&
	       last < (uint64_t)first + RANGE_MAX;
}

/* A subnet's prefix is in the high half. */
static bool item_parse(const struct setting_row *row, const char *text, uint64_t *number)
{
	const char *rest;
	unsigned prefix;

	if (row->type == TYPE_RANGE)
		return range_parse(text, number);
	if (row->type != TYPE_NODE && row->type != TYPE_ADDRESS && row->type != TYPE_SUBNET)
		return number_parse(text, type_units(row->type), number);
	rest = address_parse(text, number);
	if (!rest)
		return row->type == TYPE_NODE && number_parse(text, units_number, number);
	if (row->type == TYPE_SUBNET) {
		rest = *rest == '/' ? small_parse(rest + 1, PREFIX_MAX, &prefix) : NULL;
		if (!rest)
			return false;
		*number |= (uint64_t)prefix << 32;
	}
	return *rest == '\0';
}

/* Finds `length` bytes of text without the blanks at both ends. Returns where they begin. */
static const char *trim(const char *text, size_t *length)
{
	while (*length > 0 && isspace((unsigned char)*text)) {
		text++;
		--*length;
	}
	while (*length > 0 && isspace((unsigned char)text[*length - 1]))
		--*length;
	return text;
}

/* Copies these, and ends them; returns the byte after. */
static char *trim_copy(char *to, const char *text, size_t length)
{
	text = trim(text, &length);
	memcpy(to, text, length);
	to[length] = '\0';
	return to + length + 1;
}

/* A module's bit; 0: the name is none. "1" is all. */
static uint32_t module_parse(const char *name)
{
	return log_module_find(strcmp(name, "1") == 0 ? "all" : name);
}

/* The modules that a list names, a bit each; "0" is none. Returns false if one of the names is no
 * module's; that name is copied to wrong, of NAME_MAX_BYTES. */
static bool modules_parse(const char *text, uint32_t *modules, char *wrong)
{
	char name[NAME_MAX_BYTES];

	*modules = 0;
	for (;;) {
		size_t length = strcspn(text, ",");
		uint32_t module;

		snprintf(wrong, NAME_MAX_BYTES, "%.*s",
			(int)(length < NAME_MAX_BYTES ? length : NAME_MAX_BYTES - 1), text);
		trim_copy(name, wrong, strlen(wrong));
		module = module_parse(name);
		if (module == 0 && name[0] != '\0' && strcmp(name, "0") != 0)
			return false;
		*modules |= module;
		if (text[length] == '\0')
			return true;
		text += length + 1;
	}
}

/* The index of one of a row's choices, which some rows also take as a number; that of the NULL
 * behind them: the text is none. */
static unsigned choice_find(const struct setting_row *row, const char *text)
{
	unsigned i = 0;

	for (; row->choices[i]; i++)
		if (strcmp(text, row->choices[i]) == 0 ||
			(row->numbered && text[0] == (char)('0' + i) && text[1] == '\0'))
			break;
	return i;
}

/* What is wrong with an item, to follow the word "which"; NULL when nothing is. */
static const char *item_fault(
	const struct setting_row *row, const char *text, char *buffer, size_t size)
{
	static const char *const kinds[] = {
		[TYPE_NUMBER] = "is not a number",
		[TYPE_SIZE] = "is not a size",
		[TYPE_DURATION] = "is not a length of time with its unit (ns, us, ms or s)",
		[TYPE_NODE] = "is not a number",
		[TYPE_ADDRESS] = "is not an IPv4 address",
		[TYPE_SUBNET] = "is not an IPv4 address with the length of its prefix",
		[TYPE_RANGE] = "is not a range of 16 to 16384 UDP ports",
	};
	char wrong[NAME_MAX_BYTES];
	uint64_t number = 0;
	uint32_t modules;

	if (row->type == TYPE_TEXT)
		return NULL;
	if (row->type == TYPE_MODULES) {
		if (modules_parse(text, &modules, wrong))
			return NULL;
		snprintf(buffer, size, "names %.40s, which is no module", wrong);
		return buffer;
	}
	if (row->type == TYPE_CHOICE) {
		return row->choices[choice_find(row, text)] ? NULL : "is not one of its values";
	}
	if (row->list && text[0] == '\0')
		return NULL;
	if (!item_parse(row, text, &number))
		return kinds[row->type];
	if (row->max == 0 || (number >= row->min && number <= row->max))
		return NULL;
	if (row->type == TYPE_NUMBER || row->type == TYPE_NODE)
		snprintf(buffer, size, "is not between %" PRIu64 " and %" PRIu64, row->min,
			row->max);
	else
		snprintf(buffer, size, "is too %s", number < row->min ? "small" : "large");
	return buffer;
}

static void value_free(struct setting_value *value)
{
	free(value->text);
	free(value->items);
	*value = (struct setting_value){0};
}

/* The end of the item that text begins with; text that is no list is one item. */
static const char *item_end(const struct setting_row *row, const char *text)
{
	const char *end = row->list ? strchr(text, LIST_SEPARATOR) : NULL;

	return end ? end : text + strlen(text);
}

/* Splits the value's text. */
static void value_split(const struct setting_row *row, struct setting_value *value)
{
	const char *text = value->text, *end;
	char *to = value->items;

	do {
		end = item_end(row, text);
		to = trim_copy(to, text, (size_t)(end - text));
		value->count++;
		text = end + 1;
	} while (*end != '\0');
}

static const char *value_item(const struct setting_value *value, unsigned n)
{
	const char *item = value->items;

	for (; n > 0; n--)
		item += strlen(item) + 1;
	return item;
}

/* Complains about the first bad item; returns 0 when there is none. */
static int value_check(const struct setting_row *row, const struct setting_value *value)
{
	char buffer[96];
	const char *name = row->description.name;
	const char *item = value->items;

	for (unsigned i = 0; i < value->count; i++, item += strlen(item) + 1) {
		const char *fault = item_fault(row, item, buffer, sizeof(buffer));

		if (!fault)
			continue;
		if (value->count == 1)
			log_error("%s is \"%s\", which %s; %s", name, item, fault, row->remedy);
		else
			log_error("item %u of %s is \"%s\", which %s; %s", i + 1, name, item, fault,
				row->remedy);
		return -1;
	}
	return 0;
}

/* The same for a program with more rights than its user, whose environment is the user's. */
static int value_trust(const struct setting_row *row, const struct setting_value *value)
{
	const char *item = value->items;

	for (unsigned i = 0; i < value->count; i++, item += strlen(item) + 1) {
		const char *fault = environment_fault(row->trust, item);

		if (!fault)
			continue;
		log_error("%s is \"%s\", %s", row->description.name, item, fault);
		return -1;
	}
	return 0;
}

static bool text_blank(const char *text)
{
	for (; *text != '\0'; text++)
		if (!isspace((unsigned char)*text))
			return false;
	return true;
}

/* Takes a value in from its text; 0, or -1 after a complaint. */
static int value_take(const struct setting_row *row, struct setting_value *value, const char *text)
{
	if (!text || text_blank(text)) /* I2 */
		return 0;
	value->text = strdup(text);
	value->items = malloc(strlen(text) + 1); /* each separator makes room for a final 0 */
	if (!value->text || !value->items) {
		log_error("there is no memory for the value of %s: %s", row->description.name,
			remedy_for_memory());
		return -1;
	}
	value_split(row, value);
	return value_check(row, value);
}

/* Levenshtein's distance of two names, or more than CLOSE_ENOUGH when one is too long to compare.
 * Capitals do not count, and a name that was cut short is close. */
static unsigned name_distance(const char *name, size_t length, const char *known)
{
	unsigned row[NAME_MAX_BYTES + 1];
	size_t known_length = strlen(known);

	if (length > NAME_MAX_BYTES || known_length > NAME_MAX_BYTES)
		return NAME_MAX_BYTES;
	if (length > strlen(PREFIX) && length < known_length &&
		strncasecmp(name, known, length) == 0)
		return 1;
	for (size_t j = 0; j <= known_length; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= length; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= known_length; j++) {
			unsigned best =
				diagonal + (strncasecmp(&name[i - 1], &known[j - 1], 1) != 0);

			if (best > row[j] + 1)
				best = row[j] + 1;
			if (best > row[j - 1] + 1)
				best = row[j - 1] + 1;
			diagonal = row[j];
			row[j] = best;
		}
	}
	return row[known_length];
}

/* Warns unless the first length bytes of name are a setting's name. */
static void name_check(const char *name, size_t length)
{
	const char *closest = NULL;
	unsigned least = UINT32_MAX;
	int width = length > NAME_MAX_BYTES ? NAME_MAX_BYTES : (int)length;

	for (unsigned i = 0; i < SETTING_COUNT; i++) {
		const char *known = setting_table[i].description.name;
		unsigned distance = name_distance(name, length, known);

		if (distance == 0 && strlen(known) == length && memcmp(name, known, length) == 0)
			return;
		if (distance < least) {
			least = distance;
			closest = known;
		}
	}
	if (least <= CLOSE_ENOUGH && 2 * least <= length - strlen(PREFIX))
		log_warning("%.*s is not a setting and has no effect; did you mean %s?", width,
			name, closest);
	else
		log_warning("%.*s is not a setting and has no effect; postern-info lists the "
			    "settings",
			width, name);
}

static void names_check(void)
{
	for (char **variable = environ; variable && *variable; variable++)
		if (strncmp(*variable, PREFIX, strlen(PREFIX)) == 0 &&
			!environment_is_foreign(*variable, strcspn(*variable, "=")))
			name_check(*variable, strcspn(*variable, "="));
}

static void log_apply(void)
{
	char wrong[NAME_MAX_BYTES];
	uint32_t modules;

	log_set_level((enum log_level)choice_find(
		&setting_table[SETTING_LOG_LEVEL], setting_text(SETTING_LOG_LEVEL)));
	modules_parse(setting_text(SETTING_DEBUG), &modules, wrong); /* checked, I1 */
	log_set_modules(modules);
}

static void values_forget(void)
{
	for (unsigned i = 0; i < retired_count; i++)
		value_free(&retired_values[i]);
	free(retired_values);
	retired_values = NULL;
	retired_count = 0;
}

/* To something else than it would be anyway. */
bool setting_is_given(enum setting setting)
{
	return setting_values[setting].text != NULL;
}

bool setting_environment(enum setting setting, unsigned n, char *item, size_t size)
{
	const struct setting_row *row = setting_row(setting);
	const char *text = getenv(row->description.name);
	size_t length;

	if (!text || text_blank(text)) /* I2 */
		text = row->description.fallback;
	for (; n > 0; n--) {
		text = item_end(row, text);
		if (*text++ == '\0')
			return false;
	}
	length = (size_t)(item_end(row, text) - text);
	text = trim(text, &length);
	if (length >= size)
		return false;
	(void)trim_copy(item, text, length);
	return true;
}

static bool setting_is_set(enum setting setting)
{
	return strcmp(setting_text(setting), setting_describe(setting)->fallback) != 0;
}

static bool progress_is_free(void)
{
	return setting_is(SETTING_PROGRESS, "auto");
}

static bool progress_has_thread(void)
{
	return !setting_is(SETTING_PROGRESS, "inline");
}

/* Settings that are right but mean nothing beside the others. */
static void effects_check(void)
{
	static const struct {
		enum setting setting, needs;
		const char *value;
		bool (*met)(void); /* another value that will do */
	} pairs[] = {
		{SETTING_IP, SETTING_ENCAP, "udp", NULL},
		{SETTING_GATEWAY, SETTING_ENCAP, "udp", NULL},
		{SETTING_UDP_PORT, SETTING_ENCAP, "udp", NULL},
		{SETTING_POLL, SETTING_PROGRESS, "core", progress_is_free},
		{SETTING_POLL_CORE, SETTING_PROGRESS, "core", progress_has_thread},
	};
	unsigned interfaces = setting_items(SETTING_IFACE_NAME);

	for (unsigned i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (setting_is_set(pairs[i].setting) &&
			!setting_is(pairs[i].needs, pairs[i].value) &&
			(!pairs[i].met || !pairs[i].met()))
			log_warning("%s has no effect without %s=%s",
				setting_describe(pairs[i].setting)->name,
				setting_describe(pairs[i].needs)->name, pairs[i].value);
	for (unsigned i = 0; i < SETTING_COUNT; i++)
		if (setting_items((enum setting)i) > interfaces)
			log_warning("%s has %u items, but PTL_IFACE_NAME names %u interface%s: "
				    "remove the items after that, which have no effect",
				setting_table[i].description.name, setting_items((enum setting)i),
				interfaces, interfaces == 1 ? "" : "s");
}

/* A process whose second node id nobody has would be searched for in vain. */
static int nodes_check(const struct setting_value *nodes, const struct setting_value *interfaces)
{
	unsigned count = !interfaces->text ? 1 : interfaces->count;

	if (!nodes->text || nodes->count <= count)
		return 0;
	log_error("PTL_NID is \"%s\", which are %u node ids, but PTL_IFACE_NAME names %u "
		  "interface%s; give one "
		  "for each interface",
		nodes->text, nodes->count, count, count == 1 ? "" : "s");
	return -1;
}

int settings_load(void)
{
	struct setting_value values[SETTING_COUNT] = {0};
	int result = 0;

	for (unsigned i = 0; i < SETTING_COUNT && result == 0; i++) {
		result = value_take(
			&setting_table[i], &values[i], getenv(setting_table[i].description.name));
		if (result == 0)
			result = value_trust(&setting_table[i], &values[i]);
	}
	if (result == 0)
		result = nodes_check(&values[SETTING_NID], &values[SETTING_IFACE_NAME]);
	for (unsigned i = 0; i < SETTING_COUNT; i++) {
		value_free(result == 0 ? &setting_values[i] : &values[i]);
		if (result == 0)
			setting_values[i] = values[i];
	}
	if (result == 0) {
		values_forget();
		log_apply();
		names_check();
		effects_check();
	}
	return result;
}

/* A setting's text with another item n; the caller frees it. Behind n stands what stood there, or
 * served there, before. */
static char *text_change(enum setting setting, unsigned n, const char *item)
{
	unsigned count = setting_items(setting);
	size_t size = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (unsigned i = 0; i < count || i <= n + 1; i++)
		fprintf(out, "%s%s", i > 0 ? ";" : "", i == n ? item : setting_item(setting, i));
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

/* Keeps what a setting was; false: there is no memory. */
static bool value_retire(const struct setting_value *value)
{
	struct setting_value *more =
		reallocarray(retired_values, retired_count + 1, sizeof(*retired_values));

	if (!more)
		return false;
	retired_values = more;
	retired_values[retired_count++] = *value;
	return true;
}

int setting_replace(enum setting setting, const char *text)
{
	const struct setting_row *row = setting_row(setting);
	struct setting_value value = {0};
	int result = value_take(row, &value, text);

	if (result == 0 && value_retire(&setting_values[setting])) {
		setting_values[setting] = value;
		log_apply();
		return 0;
	}
	if (result == 0)
		log_error("there is no memory for the value of %s: %s", row->description.name,
			remedy_for_memory());
	value_free(&value);
	return -1;
}

int setting_change(enum setting setting, unsigned n, const char *text)
{
	char *list;
	int result;

	if (!setting_row(setting)->list)
		return setting_replace(setting, text);
	list = text_change(setting, n, text);
	result = list ? setting_replace(setting, list) : -1;
	free(list);
	return result;
}

const char *setting_text(enum setting setting)
{
	const struct setting_row *row = setting_row(setting);
	const struct setting_value *value = &setting_values[setting];

	if (!value->text)
		return row->description.fallback;
	return row->list ? value->text
			 : value->items; /* the only item is the text without blanks around it */
}

unsigned setting_items(enum setting setting)
{
	const struct setting_value *value = &setting_values[setting];

	return setting_row(setting)->list && value->text ? value->count : 1;
}

const char *setting_item(enum setting setting, unsigned n)
{
	unsigned count = setting_items(setting);

	if (!setting_values[setting].text)
		return setting_text(setting);
	return value_item(&setting_values[setting], n < count ? n : count - 1);
}

uint64_t setting_number_item(enum setting setting, unsigned n, uint64_t fallback)
{
	const struct setting_row *row = setting_row(setting);
	uint64_t number = fallback;

	assert(row->type != TYPE_TEXT && row->type != TYPE_CHOICE);
	if (!item_parse(row, setting_item(setting, n), &number))
		return fallback; /* blank, I1 */
	return number;
}

bool setting_subnet_item(enum setting setting, unsigned n, uint32_t *address, uint8_t *prefix)
{
	uint64_t number = setting_number_item(setting, n, UINT64_MAX);

	assert(setting_row(setting)->type == TYPE_SUBNET);
	if (number == UINT64_MAX)
		return false;
	*address = (uint32_t)number;
	*prefix = (uint8_t)(number >> 32);
	return true;
}

void setting_range(enum setting setting, uint16_t *first, uint16_t *last)
{
	uint64_t number = 0;

	assert(setting_row(setting)->type == TYPE_RANGE);
	(void)range_parse(setting_text(setting), &number); /* checked, I1 */
	*first = (uint16_t)number;
	*last = (uint16_t)(number >> 32);
}

bool setting_nodes_are_addresses(unsigned n)
{
	const char *name = setting_item(SETTING_IFACE_NAME, n);
	uint64_t address;

	if (setting_is(SETTING_ENCAP, "udp"))
		return true;
	if (strncmp(name, "udp", strlen("udp")) != 0 || (name[3] != ':' && name[3] != '\0'))
		return false;
	if (name[3] == '\0' || strchr(name + strlen("udp:"), ':') == NULL) {
		const char *rest = name[3] == ':' ? address_parse(name + 4, &address) : NULL;
		return (rest && *rest == '\0') || setting_text(SETTING_HOSTS)[0] == '\0';
	}
	return false; /* IPv6 */
}

uint64_t setting_number(enum setting setting)
{
	return setting_number_item(setting, 0, 0);
}

bool setting_is(enum setting setting, const char *choice)
{
	return strcmp(setting_text(setting), choice) == 0;
}
