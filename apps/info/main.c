/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - postern-info: shows the devices and settings that this machine and environment give to a
 * program that uses Postern.
 *
 * The only program that looks behind the public headers: it lists devices by pmd-glue, which opens
 * none.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <mx/board.h>
#include <postern.h>
#include <pmd-glue/glue.h>

#include "../json.h"
#include "../output.h"
#include "doctor.h"
#include "libfabric.h"

#define DEVICES_MAX    256
#define SETTINGS_MAX   64
#define INTERFACES_MAX 64
#define EXIT_UNWELL    1
#define EXIT_USAGE     2
#define TEXT_WIDTH     96 /* columns of help texts */
#define TEXT_INDENT    10
#define TOPIC_BYTES    65536

static const char help_text[] =
	"Usage: postern-info [OPTION...]\n"
	"       postern-info doctor [OPTION...] [NID:PID ...]\n"
	"\n"
	"Shows the version, the devices that an interface can use, and the interfaces of\n"
	"PTL_IFACE_NAME with their limits and their names as boards of MX. Shows every setting\n"
	"with its value, default and meaning. Opens each interface for a moment, as a test. With\n"
	"\"doctor\" it looks for obstacles, and prints the commands that remove them; see\n"
	"postern-info doctor --help.\n"
	"\n"
	"  -j, --json     one JSON object\n"
	"  -h, --help     this text\n"
	"  -V, --version  the library's version\n"
	"\n"
	"Exit codes: 0 all went well, 1 an interface cannot be opened or doctor finds a failure, 2 "
	"the\n"
	"options were wrong.\n";

struct interface {
	int code;        /* of PtlNIInit */
	char error[512]; /* why it failed */
	ptl_process_id_t id;
	ptl_ni_limits_t limits;
	json_t *node; /* the topic of this name; NULL: it is on no node */
};

struct info {
	unsigned device_count;
	struct glue_device devices[DEVICES_MAX];
	unsigned setting_count;
	struct postern_setting settings[SETTINGS_MAX];
	int started; /* code of PtlInit */
	unsigned interface_count;
	struct interface interfaces[INTERFACES_MAX];
	struct libfabric libfabric;
};

/* One page of what an interface tells of its node; NULL: there is none. */
static json_t *node_page(ptl_handle_ni_t ni, unsigned first)
{
	static char text[TOPIC_BYTES];
	int length = postern_inspect(ni, "node", first, 0, text, sizeof(text));
	json_t *page =
		length > 0 && (size_t)length < sizeof(text) ? json_loads(text, 0, NULL) : NULL;

	if (json_is_string(json_object_get(page, "directory")))
		return page;
	json_decref(page);
	return NULL;
}

/* The processes of the node, from all pages. */
static json_t *node_look(ptl_handle_ni_t ni)
{
	json_t *node = node_page(ni, 0), *next = json_object_get(node, "next"), *page;

	while (json_is_integer(next)) {
		page = node_page(ni, (unsigned)json_integer_value(next));
		if (!page)
			break;
		json_array_extend(json_object_get(node, "items"), json_object_get(page, "items"));
		json_object_set(node, "next", json_object_get(page, "next"));
		json_decref(page);
		next = json_object_get(node, "next");
	}
	return node;
}

static void interface_look(struct interface *interface, ptl_interface_t number)
{
	ptl_handle_ni_t ni;

	interface->code = PtlNIInit(number, PTL_PID_ANY, NULL, &interface->limits, &ni);
	if (interface->code == PTL_OK)
		interface->code = PtlGetId(ni, &interface->id);
	if (interface->code != PTL_OK) {
		snprintf(interface->error, sizeof(interface->error), "%s",
			postern_last_error()[0] != '\0' ? postern_last_error()
							: postern_error_text(interface->code));
		return;
	}
	interface->node = node_look(ni);
	PtlNIFini(ni);
}

static void info_gather(struct info *info)
{
	int interfaces = 0;

	libfabric_look(&info->libfabric);
	info->device_count = glue_devices(info->devices, DEVICES_MAX);
	if (info->device_count > DEVICES_MAX)
		info->device_count = DEVICES_MAX;
	info->started = PtlInit(&interfaces);
	info->setting_count = postern_settings(info->settings, SETTINGS_MAX);
	if (info->setting_count > SETTINGS_MAX)
		info->setting_count = SETTINGS_MAX;
	if (info->started != PTL_OK)
		return;
	for (int i = 0; i < interfaces && i < INTERFACES_MAX; i++)
		interface_look(&info->interfaces[info->interface_count++], (ptl_interface_t)i);
}

static bool info_is_well(const struct info *info)
{
	for (unsigned i = 0; i < info->interface_count; i++)
		if (info->interfaces[i].code != PTL_OK)
			return false;
	return info->started == PTL_OK;
}

/* Text in lines of TEXT_WIDTH columns, each behind TEXT_INDENT blanks. */
static void print_wrapped(const char *text)
{
	size_t column = 0;

	while (*text != '\0') {
		size_t length = strcspn(text, " ");

		if (column == 0 || column + 1 + length > TEXT_WIDTH) {
			printf("%s%*s", column == 0 ? "" : "\n", TEXT_INDENT, "");
			column = TEXT_INDENT;
		} else {
			putchar(' ');
			column++;
		}
		printf("%.*s", (int)length, text);
		column += length;
		text += length;
		text += strspn(text, " ");
	}
	putchar('\n');
}

/* The processes that are present, and the identity that an interface would have. */
static void print_node(const struct interface *interface)
{
	const json_t *items = json_object_get(interface->node, "items"), *item;
	size_t n;

	printf("     directory of the node       %s\n",
		json_string_value(json_object_get(interface->node, "directory")));
	printf("     this process                %u:%u, of user %lld\n", interface->id.nid,
		interface->id.pid,
		(long long)json_integer_value(json_object_get(interface->node, "uid")));
	json_array_foreach(items, n, item) printf("%s%u:%lld, of user %lld\n",
		n == 0 ? "     other processes             " : "                                 ",
		interface->id.nid, (long long)json_integer_value(json_object_get(item, "pid")),
		(long long)json_integer_value(json_object_get(item, "uid")));
	if (n == 0)
		puts("     other processes             none");
}

/* An interface as MX sees it. */
struct board {
	char name[272]; /* HOST:NUMBER */
	unsigned long long nic_id;
};

static struct board board_of(unsigned number, const struct interface *interface)
{
	struct board board = {.nic_id = nic_id_of(interface->id.nid)};
	char host[256];

	(void)hostname_own(host, sizeof(host));
	(void)snprintf(board.name, sizeof(board.name), "%s:%u", host, number);
	return board;
}

static void print_interface(unsigned number, const struct interface *interface)
{
	const ptl_ni_limits_t *limits = &interface->limits;
	const struct board board = board_of(number, interface);

	if (interface->code != PTL_OK) {
		printf("  %u  cannot be opened: %s\n", number, interface->error);
		return;
	}
	printf("  %u  node id                     %u\n", number, interface->id.nid);
	printf("     board for MX                %s, NIC id %012llx\n", board.name, board.nic_id);
	printf("     match entries               %d\n", limits->max_match_entries);
	printf("     memory descriptors          %d\n", limits->max_mem_descriptors);
	printf("     event queues                %d\n", limits->max_event_queues);
	printf("     last access control entry   %u\n", limits->max_atable_index);
	printf("     last Portal                 %u\n", limits->max_ptable_index);
	if (interface->node)
		print_node(interface);
}

static void print_text(const struct info *info)
{
	printf("Postern %s, Portals 3.2\n", postern_version());
	printf("\nDevices, by their names for PTL_IFACE_NAME (+: usable, -: not now):\n");
	for (unsigned i = 0; i < info->device_count; i++) {
		const struct glue_device *device = &info->devices[i];

		printf("  %s %-16s %-16s %s\n", device->usable ? "+" : "-",
			device->name[0] != '\0' ? device->name : "(nothing)", device->driver,
			device->note);
	}
	printf("\nInterfaces:\n");
	if (info->started != PTL_OK)
		printf("  Postern cannot start: %s\n", postern_last_error());
	for (unsigned i = 0; i < info->interface_count; i++)
		print_interface(i, &info->interfaces[i]);
	printf("\nlibfabric:\n  %s %s\n", info->libfabric.found ? "+" : "-", info->libfabric.text);
	printf("\nSettings, from the environment:\n");
	for (unsigned i = 0; i < info->setting_count; i++) {
		const struct postern_setting *setting = &info->settings[i];

		printf("  %s=%s (default: %s)\n", setting->name, setting->value,
			setting->fallback[0] != '\0' ? setting->fallback : "empty");
		print_wrapped(setting->help);
	}
}

static void json_member(const char *name, const char *value, const char *after)
{
	printf("\"%s\": ", name);
	json_text(value);
	fputs(after, stdout);
}

static void print_interface_json(unsigned number, const struct interface *interface)
{
	const ptl_ni_limits_t *limits = &interface->limits;
	const struct board board = board_of(number, interface);

	if (interface->code != PTL_OK) {
		printf("{\"usable\": false, ");
		json_member("error", interface->error, "}");
		return;
	}
	printf("{\"usable\": true, \"nid\": %u, \"board\": ", interface->id.nid);
	json_text(board.name);
	printf(", \"nic_id\": \"%012llx\", \"limits\": {\"max_match_entries\": %d, "
	       "\"max_mem_descriptors\": %d, \"max_event_queues\": %d, \"max_atable_index\": %u, "
	       "\"max_ptable_index\": %u}, \"node\": ",
		board.nic_id, limits->max_match_entries, limits->max_mem_descriptors,
		limits->max_event_queues, limits->max_atable_index, limits->max_ptable_index);
	if (interface->node)
		json_dumpf(interface->node, stdout, JSON_COMPACT);
	else
		fputs("null", stdout);
	putchar('}');
}

static void print_json(const struct info *info)
{
	printf("{\n  ");
	json_member("version", postern_version(), ",\n  \"devices\": [");
	for (unsigned i = 0; i < info->device_count; i++) {
		const struct glue_device *device = &info->devices[i];

		printf("%s\n    {", i > 0 ? "," : "");
		json_member("name", device->name, ", ");
		json_member("driver", device->driver, ", ");
		printf("\"usable\": %s, ", device->usable ? "true" : "false");
		json_member("note", device->note, "}");
	}
	printf("\n  ],\n  \"interfaces\": [");
	for (unsigned i = 0; i < info->interface_count; i++) {
		printf("%s\n    ", i > 0 ? "," : "");
		print_interface_json(i, &info->interfaces[i]);
	}
	printf("\n  ],\n  \"libfabric\": {\"found\": %s, ",
		info->libfabric.found ? "true" : "false");
	json_member("note", info->libfabric.text, "},\n  \"settings\": [");
	for (unsigned i = 0; i < info->setting_count; i++) {
		const struct postern_setting *setting = &info->settings[i];

		printf("%s\n    {", i > 0 ? "," : "");
		json_member("name", setting->name, ", ");
		json_member("value", setting->value, ", ");
		json_member("default", setting->fallback, ", ");
		json_member("help", setting->help, "}");
	}
	printf("\n  ]\n}\n");
}

int main(int count, char **words)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	static struct info info;
	bool json = false;
	int letter;

	output_watch("postern-info", EXIT_UNWELL);
	if (count > 1 && strcmp(words[1], "doctor") == 0)
		return doctor_main(count - 1, words + 1);
	while ((letter = getopt_long(count, words, "jhV", options, NULL)) != -1) {
		switch (letter) {
		case 'j':
			json = true;
			break;
		case 'h':
			fputs(help_text, stdout);
			return 0;
		case 'V':
			printf("postern-info %s\n", postern_version());
			return 0;
		default:
			fputs("postern-info --help lists the options.\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < count) {
		fprintf(stderr,
			"postern-info: \"%s\" is not an option; postern-info --help lists "
			"them.\n",
			words[optind]);
		return EXIT_USAGE;
	}
	info_gather(&info);
	if (json)
		print_json(&info);
	else
		print_text(&info);
	PtlFini();
	return info_is_well(&info) ? 0 : EXIT_UNWELL;
}
