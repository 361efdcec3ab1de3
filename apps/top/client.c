/* SPDX-License-Identifier: BSD-3-Clause */
/* client.c - see client.h. */
#include "client.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define TIMEOUT_SECONDS 1
#define ANSWER_BYTES    20000 /* DPDK sends 16 KiB at most */

/* Reads the next answer. Returns false if none comes, or one that is no JSON. */
static bool client_receive(struct client *client)
{
	char bytes[ANSWER_BYTES];
	ssize_t length = recv(client->socket, bytes, sizeof(bytes), 0);

	json_decref(client->answer);
	client->answer = length > 0 ? json_loadb(bytes, (size_t)length, 0, NULL) : NULL;
	return client->answer != NULL;
}

bool client_open(struct client *client, const char *path)
{
	const struct timeval timeout = {.tv_sec = TIMEOUT_SECONDS};
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(address.sun_path))
		return false;
	strcpy(address.sun_path, path);
	client->answer = NULL;
	client->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (client->socket < 0)
		return false;
	setsockopt(client->socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(client->socket, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	/* It greets with its version. */
	if (connect(client->socket, (struct sockaddr *)&address, sizeof(address)) == 0 &&
		client_receive(client))
		return true;
	client_close(client);
	return false;
}

void client_close(struct client *client)
{
	json_decref(client->answer);
	close(client->socket);
}

bool client_ask(struct client *client, const char *question)
{
	return send(client->socket, question, strlen(question), MSG_NOSIGNAL) >= 0 &&
	       client_receive(client);
}

static json_t *member_find(json_t *object, const char *name)
{
	json_t *found = json_object_get(object, name), *value;
	const char *key;

	json_object_foreach(object, key, value)
	{
		if (found)
			break;
		found = member_find(value, name);
	}
	return found;
}

json_t *client_member(const struct client *client, const char *name)
{
	return member_find(client->answer, name);
}

uint64_t client_number(const struct client *client, const char *name)
{
	return (uint64_t)json_integer_value(member_find(client->answer, name));
}

static uint64_t members_sum(json_t *object, const char *prefix)
{
	uint64_t sum = 0;
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		if (strncmp(key, prefix, strlen(prefix)) == 0)
			sum += (uint64_t)json_integer_value(value);
		sum += members_sum(value, prefix);
	}
	return sum;
}

uint64_t client_sum(const struct client *client, const char *prefix)
{
	return members_sum(client->answer, prefix);
}

void client_text(const struct client *client, const char *name, char *text, size_t size)
{
	const char *found = json_string_value(member_find(client->answer, name));

	snprintf(text, size, "%s", found ? found : "");
	text_clean(text);
}

void text_clean(char *text)
{
	for (unsigned char *byte = (unsigned char *)text; *byte != '\0'; byte++)
		if (*byte < ' ' || *byte == 0x7f)
			*byte = '?';
		else if (*byte == 0xc2 && byte[1] >= 0x80 && byte[1] < 0xa0) /* U+0080 to U+009F */
			byte[0] = byte[1] = '?';
}

unsigned client_numbers(
	const struct client *client, const char *name, uint64_t *numbers, unsigned count)
{
	json_t *found = member_find(client->answer, name), *value;
	size_t i;

	json_array_foreach(found, i, value)
	{
		if (i == count)
			return count;
		numbers[i] = (uint64_t)json_integer_value(value);
	}
	return (unsigned)json_array_size(found);
}
