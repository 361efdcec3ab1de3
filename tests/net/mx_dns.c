/* SPDX-License-Identifier: BSD-3-Clause */
/* mx_dns.c - names of NICs by the resolver; mx_dns.py starts it beside a file of hosts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <myriexpress.h>

#define check(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                    \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static uint64_t nic_id_of(const char *name)
{
	uint64_t nic_id = 0;
	char copy[256];

	snprintf(copy, sizeof(copy), "%s", name);
	return mx_hostname_to_nic_id(copy, &nic_id) == MX_SUCCESS ? nic_id : 0;
}

int main(void)
{
	char name[MX_MAX_HOSTNAME_LEN] = "", longest[128];
	uint64_t own = 0;

	mx_set_error_handler(MX_ERRORS_RETURN);
	check(mx_init() == MX_SUCCESS);
	check(mx_board_number_to_nic_id(0, &own) == MX_SUCCESS);
	check(nic_id_of("alpha") == own);
	check(nic_id_of("beta") == own + 2);
	check(nic_id_of("Beta.Example.Org:0") == own + 2);
	check(nic_id_of("10.0.0.7:0") == own + 2);
	check(nic_id_of("127.0.0.9") == own - 0x0a000005 + 0x7f000009);
	check(nic_id_of("beta:1") == 0);
	check(nic_id_of("delta") == 0);
	check(nic_id_of("localhost") == 0);
	check(nic_id_of("gamma") == 0);
	check(mx_nic_id_to_hostname(own + 2, name) == MX_SUCCESS);
	check(strcmp(name, "beta.example.org:0") == 0);
	check(nic_id_of(name) == own + 2);
	/* Found, but no name of MX: it has no room in MX_MAX_HOSTNAME_LEN. */
	memset(longest, 'l', 60);
	longest[60] = '.';
	memset(longest + 61, 'm', 60);
	longest[121] = '\0';
	check(nic_id_of(longest) == own + 3);
	check(mx_nic_id_to_hostname(own + 3, name) == MX_HOST_NOT_FOUND);
	check(mx_nic_id_to_hostname(own + 4, name) == MX_HOST_NOT_FOUND);
	check(strcmp(name, "beta.example.org:0") == 0);
	return mx_finalize() == MX_SUCCESS ? 0 : 1;
}
