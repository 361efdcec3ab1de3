/* client.c - see client.h. */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_SECONDS 1
#define NAME_BYTES       128

/* One packet into answer; false: none comes. */
static bool client_receive(struct client *client)
{
	ssize_t length = recv(client->socket, client->answer, sizeof(client->answer) - 1, 0);

	if (length <= 0)
		return false;
	client->answer[length] = '\0';
	return true;
}

bool client_open(struct client *client, const char *path)
{
	const struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(address.sun_path))
		return false;
	strcpy(address.sun_path, path);
	client->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (client->socket < 0)
		return false;
	setsockopt(client->socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(client->socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	/* It greets with its version. */
	if (connect(client->socket, (struct sockaddr *)&address, sizeof(address)) == 0 &&
		client_receive(client))
		return true;
	close(client->socket);
	return false;
}

void client_close(struct client *client)
{
	close(client->socket);
}

bool client_ask(struct client *client, const char *question)
{
	return send(client->socket, question, strlen(question), MSG_NOSIGNAL) >= 0 &&
	       client_receive(client);
}

/* What stands behind "name":, NULL: it is not there. */
static const char *member_find(const char *answer, const char *name)
{
	char quoted[NAME_BYTES];
	const char *found;

	snprintf(quoted, sizeof(quoted), "\"%s\":", name);
	found = strstr(answer, quoted);
	if (!found)
		return NULL;
	found += strlen(quoted);
	return found + strspn(found, " ");
}

uint64_t client_number(const struct client *client, const char *name)
{
	const char *found = member_find(client->answer, name);

	return found ? strtoull(found, NULL, 10) : 0;
}

uint64_t client_sum(const struct client *client, const char *prefix)
{
	char quoted[NAME_BYTES];
	const char *found = client->answer;
	uint64_t sum = 0;

	snprintf(quoted, sizeof(quoted), "\"%s", prefix);
	while ((found = strstr(found, quoted))) {
		found = strchr(found, ':');
		if (!found)
			break;
		sum += strtoull(found + 1, NULL, 10);
	}
	return sum;
}

void client_text(const struct client *client, const char *name, char *text, size_t size)
{
	const char *found = member_find(client->answer, name);
	size_t length = 0;

	if (found && *found == '"')
		for (found++; *found != '\0' && *found != '"' && length + 1 < size; found++) {
			if (*found == '\\' && found[1] != '\0')
				found++;
			text[length++] =
				(unsigned char)*found < ' ' || *found == '\x7f' ? '?' : *found;
		}
	text[length] = '\0';
}

unsigned client_numbers(
	const struct client *client, const char *name, uint64_t *numbers, unsigned count)
{
	const char *found = member_find(client->answer, name);
	unsigned items = 0;
	char *end;

	if (!found || *found != '[')
		return 0;
	for (found++; items < count; found = end + strspn(end, ", ")) {
		numbers[items] = strtoull(found, &end, 10);
		if (end == found)
			break;
		items++;
	}
	return items;
}
