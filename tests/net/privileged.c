/* SPDX-License-Identifier: BSD-3-Clause */
/* privileged.c - a program that gets more rights than its user; privileged.py starts it.
 *
 *     privileged open         opens an interface, says "open", and ends at the end of its input
 *     privileged find HOST    says the node id of a host of MX
 *     privileged join         joins the job of its launcher, and says "joined"
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <myriexpress.h>
#include <portals.h>
#include <postern.h>

static bool interface_make(ptl_handle_ni_t *ni)
{
	int interfaces;

	return PtlInit(&interfaces) == PTL_OK &&
	       PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, ni) == PTL_OK;
}

static bool interface_open(void)
{
	ptl_handle_ni_t ni;

	if (!interface_make(&ni))
		return false;
	puts("open");
	fflush(stdout);
	while (getchar() != EOF)
		;
	PtlFini();
	return true;
}

static bool host_find(char *host)
{
	mx_endpoint_t endpoint;
	uint64_t found;

	mx_set_error_handler(MX_ERRORS_RETURN);
	if (mx_init() != MX_SUCCESS ||
		mx_open_endpoint(0, MX_ANY_ENDPOINT, 1, NULL, 0, &endpoint) != MX_SUCCESS ||
		mx_hostname_to_nic_id(host, &found) != MX_SUCCESS)
		return false;
	printf("%" PRIu32 "\n", (uint32_t)found);
	return mx_close_endpoint(endpoint) == MX_SUCCESS && mx_finalize() == MX_SUCCESS;
}

static bool job_join(void)
{
	ptl_handle_ni_t ni;
	unsigned rank, size;

	if (!interface_make(&ni) || postern_job_join(ni, &rank, &size) != PTL_OK ||
		postern_job_barrier() != PTL_OK || postern_job_leave() != PTL_OK)
		return false;
	puts("joined");
	PtlFini();
	return true;
}

int main(int count, char **words)
{
	if (count == 3 && strcmp(words[1], "find") == 0)
		return host_find(words[2]) ? 0 : 1;
	if (count == 2 && strcmp(words[1], "join") == 0)
		return job_join() ? 0 : 1;
	return interface_open() ? 0 : 1;
}
