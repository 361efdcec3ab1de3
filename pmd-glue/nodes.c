/* SPDX-License-Identifier: BSD-3-Clause */
/* nodes.c - see nodes.h. */
#include <pmd-glue/nodes.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/environment.h>
#include <base/log.h>
#include <base/remedy.h>
#include <base/settings.h>

#define BLANKS    " \t\r\n"
#define NODES_MAX (1u << 20)
#define SHOWN     80 /* bytes of a wrong line */

bool nodes_are_listed(void)
{
	return setting_text(SETTING_HOSTS)[0] != '\0';
}

const char *nodes_address_fault(const struct in6_addr *address)
{
	if (IN6_IS_ADDR_V4MAPPED(address) || IN6_IS_ADDR_V4COMPAT(address))
		return "stands for an IPv4 address, whose node id is that address itself, without "
		       "PTL_HOSTS";
	if (IN6_IS_ADDR_UNSPECIFIED(address))
		return "is the unspecified address: give the address of a host";
	if (IN6_IS_ADDR_MULTICAST(address))
		return "is a multicast address: give the address of a host";
	if (IN6_IS_ADDR_LINKLOCAL(address))
		return "is a link-local address: give a global address, or one that begins with "
		       "fd";
	return NULL;
}

/* --- the file --- */

static int node_compare(const void *one, const void *two)
{
	uint32_t a = ((const struct node_address *)one)->node;
	uint32_t b = ((const struct node_address *)two)->node;

	return (a > b) - (a < b);
}

static int address_compare(const void *one, const void *two)
{
	return memcmp(&((const struct node_address *)one)->address,
		&((const struct node_address *)two)->address, sizeof(struct in6_addr));
}

/* A number, or four with dots. */
static bool node_parse(const char *text, uint32_t *node)
{
	struct in_addr dotted;
	unsigned long long number;
	char *end;

	if (inet_pton(AF_INET, text, &dotted) == 1) {
		*node = ntohl(dotted.s_addr);
		return *node != UINT32_MAX;
	}
	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	number = strtoull(text, &end, 10);
	*node = (uint32_t)number;
	return errno == 0 && *end == '\0' && number < UINT32_MAX;
}

/* Reads a line, which is changed. Returns what is wrong with it; NULL: nothing. empty: there is
 * nothing in it. */
static const char *line_read(char *line, struct node_address *entry, bool *empty)
{
	static const char form[] = "write a node id and its IPv6 address, such as 7 fd00::7";
	char *rest, *node, *address;

	line[strcspn(line, "#")] = '\0';
	node = strtok_r(line, BLANKS, &rest);
	*empty = !node;
	if (!node)
		return NULL;
	address = strtok_r(NULL, BLANKS, &rest);
	if (!address || strtok_r(NULL, BLANKS, &rest) || !node_parse(node, &entry->node))
		return form;
	if (inet_pton(AF_INET6, address, &entry->address) != 1)
		return form;
	return nodes_address_fault(&entry->address);
}

static bool nodes_grow(struct nodes *nodes)
{
	struct node_address *more;

	if ((nodes->count & (nodes->count - 1)) != 0)
		return true;
	more = realloc(nodes->by_node, (nodes->count ? 2 * nodes->count : 1) * sizeof(*more));
	if (more)
		nodes->by_node = more;
	return more != NULL;
}

/* Adds what the lines say; false after an error line. */
static bool lines_read(struct nodes *nodes, FILE *file, const char *path)
{
	char *line = NULL, shown[SHOWN];
	const char *fault = NULL;
	size_t room = 0;
	unsigned number;

	for (number = 1; !fault && getline(&line, &room, file) >= 0; number++) {
		struct node_address entry;
		bool empty;

		snprintf(shown, sizeof(shown), "%.*s", (int)strcspn(line, "\r\n"), line);
		fault = line_read(line, &entry, &empty);
		if (fault || empty)
			continue;
		if (nodes->count == NODES_MAX || !nodes_grow(nodes))
			fault = "there is no room for so many";
		else
			nodes->by_node[nodes->count++] = entry;
	}
	free(line);
	if (fault)
		log_error("PTL_HOSTS: line %u of %s is \"%s\": %s", number - 1, path, shown, fault);
	else if (ferror(file))
		log_error("PTL_HOSTS: %s cannot be read to its end", path);
	return !fault && !ferror(file);
}

/* I1. */
static bool nodes_sort(struct nodes *nodes, const char *path)
{
	size_t bytes = nodes->count * sizeof(*nodes->by_node);
	char text[INET6_ADDRSTRLEN];

	nodes->by_address = malloc(bytes);
	if (!nodes->by_address) {
		log_error("PTL_HOSTS: out of memory: %s", remedy_for_memory());
		return false;
	}
	memcpy(nodes->by_address, nodes->by_node, bytes);
	qsort(nodes->by_node, nodes->count, sizeof(*nodes->by_node), node_compare);
	qsort(nodes->by_address, nodes->count, sizeof(*nodes->by_address), address_compare);
	for (uint32_t n = 1; n < nodes->count; n++) {
		if (node_compare(&nodes->by_node[n - 1], &nodes->by_node[n]) == 0) {
			log_error("PTL_HOSTS: %s has two addresses for node %u: leave one", path,
				nodes->by_node[n].node);
			return false;
		}
		if (address_compare(&nodes->by_address[n - 1], &nodes->by_address[n]) == 0) {
			log_error("PTL_HOSTS: %s has two nodes at %s: leave one", path,
				inet_ntop(AF_INET6, &nodes->by_address[n].address, text,
					sizeof(text)));
			return false;
		}
	}
	return true;
}

static bool file_read(struct nodes *nodes, const char *path)
{
	const char *reason;
	FILE *file = environment_open(path, &reason);
	bool done;

	if (!file) {
		log_error("PTL_HOSTS: %s cannot be read: %s; set it to a regular file that this "
			  "user can read, or unset it",
			path, reason);
		return false;
	}
	done = lines_read(nodes, file, path);
	(void)fclose(file);
	if (done && nodes->count == 0)
		log_error("PTL_HOSTS: %s names no host: write lines such as 7 fd00::7", path);
	return done && nodes->count > 0 && nodes_sort(nodes, path);
}

bool nodes_load(struct nodes *nodes)
{
	*nodes = (struct nodes){.family = AF_INET6};
	if (!nodes_are_listed())
		log_error("an IPv6 address is no node id: set PTL_HOSTS to a file with a line for "
			  "each host, of its node id and its address, such as 7 fd00::7");
	else if (file_read(nodes, setting_text(SETTING_HOSTS)))
		return true;
	nodes_free(nodes);
	return false;
}

void nodes_free(struct nodes *nodes)
{
	free(nodes->by_node);
	free(nodes->by_address);
	nodes->by_node = nodes->by_address = NULL;
	nodes->count = 0;
}

/* --- from one to the other --- */

socklen_t nodes_name(
	const struct nodes *nodes, uint32_t node, uint16_t udp_port, union udp_name *name)
{
	const struct node_address wanted = {.node = node}, *found;

	if (nodes->family == AF_INET) {
		name->ip4 = (struct sockaddr_in){.sin_family = AF_INET,
			.sin_port = htons(udp_port),
			.sin_addr.s_addr = htonl(node)};
		return sizeof(name->ip4);
	}
	if (nodes->count == 0)
		return 0;
	found = bsearch(&wanted, nodes->by_node, nodes->count, sizeof(wanted), node_compare);
	if (!found)
		return 0;
	name->ip6 = (struct sockaddr_in6){
		.sin6_family = AF_INET6, .sin6_port = htons(udp_port), .sin6_addr = found->address};
	return sizeof(name->ip6);
}

bool nodes_find(const struct nodes *nodes, const union udp_name *name, uint32_t *node)
{
	struct node_address wanted = {.node = 0};
	const struct node_address *found;

	if (name->any.sa_family != nodes->family)
		return false;
	if (nodes->family == AF_INET) {
		*node = ntohl(name->ip4.sin_addr.s_addr);
		return true;
	}
	wanted.address = name->ip6.sin6_addr;
	if (nodes->count == 0)
		return false;
	found = bsearch(&wanted, nodes->by_address, nodes->count, sizeof(wanted), address_compare);
	if (found)
		*node = found->node;
	return found != NULL;
}

const char *udp_name_text(const union udp_name *name, char *text, socklen_t size)
{
	return name->any.sa_family == AF_INET6
		       ? inet_ntop(AF_INET6, &name->ip6.sin6_addr, text, size)
		       : inet_ntop(AF_INET, &name->ip4.sin_addr, text, size);
}
