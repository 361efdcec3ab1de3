/* SPDX-License-Identifier: BSD-3-Clause */
/* lists.c - prints what manual pages list, from the tables that the library itself uses: "settings"
 * or "counters", a line each of name, default (for settings), and meaning, with a tab between. */
#include <stdio.h>
#include <string.h>

#include <base/port.h>
#include <base/settings.h>
#include <engine/statistics.h>
#include <transport/statistics.h>

static void settings_print(void)
{
	for (unsigned i = 0; i < SETTING_COUNT; i++) {
		const struct setting_description *setting = setting_describe((enum setting)i);

		printf("%s\t%s\t%s\n", setting->name, setting->fallback, setting->help);
	}
}

static void counters_print(void)
{
#define X(name, help) printf("%s\t%s\n", #name, help);
	ENGINE_COUNTERS(X)
	ENGINE_DROPS(X)
	TRANSPORT_COUNTERS(X)
#undef X
#define X(field, name, help) printf("%s\t%s\n", name, help);
	PORT_COUNTERS(X)
#undef X
}

int main(int count, char **words)
{
	if (count == 2 && strcmp(words[1], "settings") == 0) {
		settings_print();
		return 0;
	}
	if (count == 2 && strcmp(words[1], "counters") == 0) {
		counters_print();
		return 0;
	}
	fputs("lists settings|counters\n", stderr);
	return 2;
}
