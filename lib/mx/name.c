/* SPDX-License-Identifier: BSD-3-Clause */
/* name.c - names of NICs, "host:board", and their NIC ids.
 *
 * A name is looked for, in this order, among
 *
 *     this host's boards     under PTL_MX_HOSTNAME or the system's name. All processes of a node
 *                            have its node id, so they are found here, too
 *     the file PTL_MX_HOSTS  lines "NAME NID"
 *     DNS                    where a node id is an IPv4 address: board 0 only. An address is a name
 *     the network            of each board without PTL_ENCAP=udp: an endpoint answers for its host
 *                            (transport/name.c), if its id is below NAMED_IDS
 */
#include <mx/library.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/environment.h>
#include <base/hostname.h>
#include <base/log.h>
#include <base/number.h>
#include <base/settings.h>
#include <host/submission.h>
#include <host/visitor.h>
#include <mx/state.h>

#define BLANKS       " \t\r\n"
#define NAMED_IDS    64u             /* endpoint ids that are asked for a name */
#define NAME_TIMEOUT (1000000000ull) /* ns, for each board */

/* --- names */

/* A decimal number that takes up all of the text, behind which a blank, a comment or nothing is. */
static bool number_parse(const char *text, size_t length, uint32_t *number)
{
	const char *end = text;

	return number_read(&end, BLANKS "#", number) && end == text + length;
}

/* Takes "host:board" or "host", whose board is 0, apart. Returns false if it is no such name. */
static bool name_parse(const char *name, size_t length, size_t *host_length, uint32_t *board)
{
	const char *colon = memchr(name, ':', length);

	*host_length = colon ? (size_t)(colon - name) : length;
	*board = 0;
	return *host_length > 0 &&
	       (!colon || number_parse(colon + 1, length - *host_length - 1, board));
}

/* A node id as PTL_NID has it: a number, or an IPv4 address. */
static bool nid_parse(const char *text, size_t length, uint32_t *nid)
{
	char copy[INET_ADDRSTRLEN];
	struct in_addr address;

	if (number_parse(text, length, nid))
		return *nid != UINT32_MAX;
	if (length >= sizeof(copy))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	if (inet_pton(AF_INET, copy, &address) != 1)
		return false;
	*nid = ntohl(address.s_addr);
	return *nid != UINT32_MAX;
}

/* --- the own name */

bool hostname_check(void)
{
	const char *wanted = environment_text("PTL_MX_HOSTNAME");

	if (!wanted || (strlen(wanted) <= HOSTNAME_BYTES && !strpbrk(wanted, ":" BLANKS)))
		return true;
	log_error("PTL_MX_HOSTNAME is \"%.128s\": give a name of %u bytes at most, without ':' and "
		  "spaces",
		wanted, HOSTNAME_BYTES);
	return false;
}

/* --- the file */

/* What is looked for in it. */
struct search {
	const char *host; /* NULL: the name of nid; `length` bytes */
	size_t length;
	uint32_t board, nid;
	char *name; /* out, for nid: MX_MAX_HOSTNAME_LEN bytes */
};

/* Reads a line, "NAME NID". 0: it is empty or a comment; -1: it is wrong; 1: *name points to a
 * name of *length bytes in the line. */
static int hosts_line(const char *line, const char **name, size_t *length, uint32_t *nid)
{
	const size_t end = strcspn(line, "#"), start = strspn(line, BLANKS);
	const char *number;
	size_t number_length, host_length;
	uint32_t board;

	if (start >= end)
		return 0;
	*name = line + start;
	*length = strcspn(*name, BLANKS "#");
	number = *name + *length;
	number += strspn(number, BLANKS);
	if (number >= line + end)
		return -1;
	number_length = strcspn(number, BLANKS "#");
	if (number + number_length + strspn(number + number_length, BLANKS) < line + end)
		return -1;
	/* Room for the board that a name may leave out. */
	return *length <= HOSTNAME_BYTES + 3 && name_parse(*name, *length, &host_length, &board) &&
			       host_length <= HOSTNAME_BYTES &&
			       nid_parse(number, number_length, nid)
		       ? 1
		       : -1;
}

/* Is this line what is looked for? */
static bool search_look(struct search *search, const char *name, size_t length, uint32_t nid)
{
	size_t host_length;
	uint32_t board;

	(void)name_parse(name, length, &host_length, &board);
	if (!search->host && search->nid == nid) {
		(void)snprintf(search->name, MX_MAX_HOSTNAME_LEN, "%.*s:%u", (int)host_length, name,
			board);
		return true;
	}
	if (!search->host || search->board != board ||
		!hostname_is_same(search->host, search->length, name, host_length))
		return false;
	search->nid = nid;
	return true;
}

static bool search_read(struct search *search, FILE *file, const char *path)
{
	char *line = NULL;
	bool found = false;
	size_t room = 0;

	for (unsigned number = 1; !found && getline(&line, &room, file) >= 0; number++) {
		size_t length;
		const char *name;
		uint32_t nid;
		int kind = hosts_line(line, &name, &length, &nid);

		if (kind < 0)
			log_error(
				"PTL_MX_HOSTS: line %u of %s, \"%.*s\", is invalid and ignored: "
				"write a name of at most %u bytes, such as alpha or alpha:1, and a "
				"node id, such as 7 or 10.0.0.7",
				number, path, (int)strcspn(line, "\r\n"), line, HOSTNAME_BYTES);
		found = kind > 0 && search_look(search, name, length, nid);
	}
	if (ferror(file))
		log_error("PTL_MX_HOSTS: %s cannot be read to its end: %s; set it to a file with "
			  "lines such as alpha 10.0.0.7",
			path, strerror(errno));
	free(line);
	return found;
}

static bool file_search(struct search *search)
{
	const char *path = environment_text("PTL_MX_HOSTS"), *reason;
	bool found;
	FILE *file;

	if (!path || !*path)
		return false;
	file = environment_open(path, &reason);
	if (!file) {
		log_error("PTL_MX_HOSTS: %s cannot be read: %s; set it to a regular file that this "
			  "user can read, or unset it",
			path, reason);
		return false;
	}
	found = search_read(search, file, path);
	(void)fclose(file);
	return found;
}

/* --- DNS */

static bool nodes_are_addresses(void)
{
	bool udp;

	library_lock();
	udp = setting_nodes_are_addresses(0);
	library_unlock();
	return udp;
}

static bool dns_search(struct search *search)
{
	const struct addrinfo wanted = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM};
	struct addrinfo *found, *next;
	struct in_addr numeric;
	char host[NI_MAXHOST];

	if (search->board != 0 || search->length >= sizeof(host) || !nodes_are_addresses())
		return false;
	memcpy(host, search->host, search->length);
	host[search->length] = '\0';
	if (inet_pton(AF_INET, host, &numeric) == 1) {
		search->nid = ntohl(numeric.s_addr);
		return true;
	}
	if (getaddrinfo(host, NULL, &wanted, &found) != 0)
		return false;
	for (next = found; next; next = next->ai_next) {
		struct sockaddr_in address;

		memcpy(&address, next->ai_addr, sizeof(address));
		search->nid = ntohl(address.sin_addr.s_addr);
		/* Debian gives the host's own name an address of the loopback. */
		if (search->nid >> 24 != IN_LOOPBACKNET)
			break;
	}
	freeaddrinfo(found);
	return next != NULL;
}

static bool dns_name(uint32_t nid, char *name)
{
	const struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(nid)};
	char host[NI_MAXHOST];

	if (!nodes_are_addresses() ||
		getnameinfo((const struct sockaddr *)&address, sizeof(address), host, sizeof(host),
			NULL, 0, NI_NAMEREQD) != 0 ||
		strlen(host) > HOSTNAME_BYTES)
		return false;
	(void)snprintf(name, MX_MAX_HOSTNAME_LEN, "%.*s:0", HOSTNAME_BYTES, host);
	return true;
}

/* --- the network */

static_assert(HOSTNAME_BYTES < sizeof(((struct frame_name *)NULL)->host), "a name fits");

void hostname_announce(uint64_t interface, uint32_t board)
{
	struct frame_name name = {.board = board};
	struct command command = {.kind = COMMAND_HOST_NAME};
	char own[MX_MAX_HOSTNAME_LEN];
	struct visit visit;

	(void)hostname_own(own, sizeof(own));
	(void)snprintf(name.host, sizeof(name.host), "%.*s", HOSTNAME_BYTES, own);
	command.object.other = (uintptr_t)&name;
	if (front_visit(&mx_front, &visit, interface, HANDLE_INTERFACE, -1) != 0)
		return;
	(void)visit_call(&visit, &command, NULL, NULL);
	visit_leave(&visit);
}

/* Asks the network of a board. Returns false if there is no answer, or more than one. */
static bool board_ask(uint32_t number, struct name_query *query)
{
	struct command command = {.kind = COMMAND_HOST_FIND};
	enum answer answer = ANSWER_CLOSED;
	struct visit visit;
	struct board board;

	if (board_open(number, &board) != MX_SUCCESS)
		return false;
	command.object.other = (uintptr_t)query;
	if (front_visit(&mx_front, &visit, board.handle, HANDLE_INTERFACE, -1) == 0) {
		answer = submission_ping(
			&visit.interface->submission, &command, interface_drive, NULL);
		visit_leave(&visit);
	}
	if (answer != ANSWER_OK)
		return false;
	if (query->outcome == NAME_AMBIGUOUS)
		log_error("nodes %u and %u both have the name \"%s:%u\": give one of them "
			  "another PTL_MX_HOSTNAME, or write the name into the file "
			  "PTL_MX_HOSTS",
			query->nid, query->other, query->name.host, query->name.board);
	return query->outcome == NAME_FOUND;
}

/* Asks the network of one board after the other for what is wanted. An ambiguous answer ends the
 * search: the next board's nodes must not settle it. */
static bool network_ask(const struct frame_name *wanted, uint32_t nid, struct name_query *query)
{
	const uint32_t boards = nodes_are_addresses() ? 0 : boards_count();

	for (uint32_t i = 0; i < boards; i++) {
		*query = (struct name_query){
			.wanted = *wanted,
			.nid = nid,
			.pid = MX_PROCESS,
			.pids = NAMED_IDS,
			.timeout = NAME_TIMEOUT,
			.outcome = NAME_UNKNOWN,
		};
		if (board_ask(i, query))
			return true;
		if (query->outcome == NAME_AMBIGUOUS)
			return false;
	}
	return false;
}

static bool network_search(struct search *search)
{
	struct frame_name wanted = {.board = search->board};
	struct name_query query;

	if (search->length > HOSTNAME_BYTES)
		return false;
	memcpy(wanted.host, search->host, search->length);
	if (!network_ask(&wanted, 0, &query))
		return false;
	search->nid = query.nid;
	return true;
}

static bool network_name(uint32_t nid, char *name)
{
	const struct frame_name none = {.board = 0};
	struct name_query query;

	if (!network_ask(&none, nid, &query) || strlen(query.name.host) > HOSTNAME_BYTES ||
		query.name.board > 99)
		return false;
	(void)snprintf(name, MX_MAX_HOSTNAME_LEN, "%.*s:%u", HOSTNAME_BYTES, query.name.host,
		query.name.board);
	return true;
}

/* --- calls */

/* Returns false if it is no board of this host. */
static bool own_search(struct search *search)
{
	char own[MX_MAX_HOSTNAME_LEN];
	struct board board;

	if (!hostname_is_same(search->host, search->length, own, hostname_own(own, sizeof(own))) ||
		board_open(search->board, &board) != MX_SUCCESS)
		return false;
	search->nid = board.nid;
	return true;
}

mx_return_t mx_hostname_to_nic_id(char *hostname, uint64_t *nic_id)
{
	static const char function[] = "mx_hostname_to_nic_id";
	struct search search = {.host = hostname};

	if (!front_is_open(&mx_front))
		return error_raise_closed(function);
	if (!hostname || !nic_id)
		return error_raise(NULL, MX_BAD_HOSTNAME_ARGS, function,
			"%s is NULL; give a host's name, and memory for its NIC id",
			hostname ? "nic_id" : "hostname");
	if (!name_parse(hostname, strlen(hostname), &search.length, &search.board))
		return error_raise(NULL, MX_HOST_NOT_FOUND, function,
			"\"%.128s\" is no name; give host:board, such as alpha:0", hostname);
	if (!own_search(&search) && !file_search(&search) && !dns_search(&search) &&
		!network_search(&search))
		return error_raise(NULL, MX_HOST_NOT_FOUND, function,
			"no host with the name \"%.128s\" was found; %s write the name into the "
			"file PTL_MX_HOSTS",
			hostname,
			nodes_are_addresses() ? "correct the name, or"
					      : "start a program with an endpoint on it, or");
	*nic_id = nic_id_of(search.nid);
	return MX_SUCCESS;
}

mx_return_t mx_nic_id_to_hostname(uint64_t nic_id, char *hostname)
{
	static const char function[] = "mx_nic_id_to_hostname";
	struct search search = {.name = hostname};
	char own[MX_MAX_HOSTNAME_LEN];
	uint32_t board;

	if (!front_is_open(&mx_front))
		return error_raise_closed(function);
	if (!hostname)
		return error_raise(NULL, MX_BAD_HOSTNAME_ARGS, function,
			"hostname is NULL; give memory for it");
	if (board_of_nic_id(nic_id, &board)) {
		(void)hostname_own(own, sizeof(own));
		(void)snprintf(
			hostname, MX_MAX_HOSTNAME_LEN, "%.*s:%u", HOSTNAME_BYTES, own, board);
		return MX_SUCCESS;
	}
	if (nic_id_nid(nic_id, &search.nid) &&
		(file_search(&search) || dns_name(search.nid, hostname) ||
			network_name(search.nid, hostname)))
		return MX_SUCCESS;
	return error_raise(NULL, MX_HOST_NOT_FOUND, function,
		"no name is known for NIC id %012llx; write it into the file PTL_MX_HOSTS%s",
		(unsigned long long)nic_id,
		nodes_are_addresses() ? "" : ", or start a program with an endpoint there");
}
