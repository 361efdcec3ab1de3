/* SPDX-License-Identifier: BSD-3-Clause */
/* setting.c - see setting.h. */
#include "setting.h"

#include <string.h>

#include <postern.h>

#define SETTINGS_MAX 128

const char *setting_value(const char *name)
{
	struct postern_setting settings[SETTINGS_MAX];
	unsigned count = postern_settings(settings, SETTINGS_MAX);

	for (unsigned i = 0; i < count && i < SETTINGS_MAX; i++)
		if (strcmp(settings[i].name, name) == 0)
			return settings[i].value;
	return "";
}
