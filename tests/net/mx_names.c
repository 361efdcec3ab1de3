/* SPDX-License-Identifier: BSD-3-Clause */
/* mx_names.c - a process of MX that finds another one's host by its name; mx_names.py starts
 * two.
 *
 *     mx_names ENDPOINT_ID OTHER
 *
 * It opens an endpoint, says "ready", and waits for a line. Then it finds OTHER, and OTHER's
 * name by its NIC id, says "found", and waits for a line before it ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <myriexpress.h>

#define FILTER 7

#define check(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                    \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static void say(const char *word)
{
	char line[16];

	printf("%s\n", word);
	fflush(stdout);
	check(fgets(line, sizeof(line), stdin) != NULL);
}

int main(int count, char **words)
{
	char name[MX_MAX_HOSTNAME_LEN] = "", nobody[] = "nobody-there:0", expected[128];
	uint64_t own = 0, found = 0;
	mx_endpoint_t endpoint;

	check(count == 3);
	mx_set_error_handler(MX_ERRORS_RETURN);
	check(mx_init() == MX_SUCCESS);
	check(mx_open_endpoint(0, (uint32_t)atoi(words[1]), FILTER, NULL, 0, &endpoint) ==
		MX_SUCCESS);
	check(mx_board_number_to_nic_id(0, &own) == MX_SUCCESS);
	say("ready");
	check(mx_hostname_to_nic_id(words[2], &found) == MX_SUCCESS);
	check(found != own);
	check(mx_nic_id_to_hostname(found, name) == MX_SUCCESS);
	(void)snprintf(expected, sizeof(expected), "%s:0", words[2]);
	check(strcmp(name, expected) == 0);
	check(mx_hostname_to_nic_id(name, &own) == MX_SUCCESS && own == found);
	check(mx_hostname_to_nic_id(nobody, &own) == MX_HOST_NOT_FOUND);
	check(mx_nic_id_to_hostname(found + 77, name) == MX_HOST_NOT_FOUND);
	say("found");
	check(mx_close_endpoint(endpoint) == MX_SUCCESS);
	return mx_finalize() == MX_SUCCESS ? 0 : 1;
}
