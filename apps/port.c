/* SPDX-License-Identifier: BSD-3-Clause */
/* port.c - see port.h. */
#include "port.h"

#include <string.h>

#define PORT_JSON    4096
#define SETTINGS_MAX 64

json_t *port_read(ptl_handle_ni_t ni)
{
	char text[PORT_JSON];
	int length = postern_inspect(ni, "port", 0, 0, text, sizeof(text));

	return length > 0 && (size_t)length < sizeof(text) ? json_loads(text, 0, NULL) : NULL;
}

const char *port_udp_ports(void)
{
	static struct postern_setting settings[SETTINGS_MAX];
	unsigned count = postern_settings(settings, SETTINGS_MAX);

	for (unsigned i = 0; i < count && i < SETTINGS_MAX; i++)
		if (strcmp(settings[i].name, "PTL_UDP_PORTS") == 0)
			return settings[i].value;
	return "";
}
