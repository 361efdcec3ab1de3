/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_settings.c - settings: the first byte says which, the rest is its value. */
#include <string.h>

#include <base/settings.h>

#include "fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

/* Everything that a caller may ask of a loaded value. */
static void value_check(enum setting setting)
{
	unsigned items = setting_items(setting);

	fuzz_assert(setting_text(setting) != NULL);
	fuzz_assert(items >= 1);
	for (unsigned n = 0; n < items + 2; n++)
		fuzz_assert(setting_item(setting, n) != NULL);
	setting_is(setting, "core");
	switch (setting) {
	case SETTING_NID:
		for (unsigned n = 0; n < items + 2; n++)
			fuzz_assert(setting_number_item(setting, n, 5) < UINT32_MAX);
		break;
	case SETTING_POLL_CORE:
	case SETTING_MTU:
		for (unsigned n = 0; n < items + 2; n++)
			fuzz_assert(setting_number_item(setting, n, 5) <= 65536);
		break;
	case SETTING_PEER_TIMEOUT:
	case SETTING_PEERS_MAX:
	case SETTING_LIST_MAX:
	case SETTING_EVENT_MEMORY:
		fuzz_assert(setting_number(setting) != 0);
		break;
	default:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum setting setting;
	char *value;

	if (size == 0 || size > 4096)
		return 0;
	setting = (enum setting)(data[0] % SETTING_COUNT);
	value = malloc(size);
	memcpy(value, data + 1, size - 1);
	value[size - 1] = '\0';
	setenv(setting_describe(setting)->name, value, 1);
	if (settings_load() == 0)
		value_check(setting);
	unsetenv(setting_describe(setting)->name);
	/* A name near the setting's own, for the warning. */
	if (strlen(value) > 0 && !strchr(value, '=')) {
		char name[128];

		snprintf(name, sizeof(name), "PTL_%s", value);
		setenv(name, "1", 1);
		settings_load();
		unsetenv(name);
	}
	free(value);
	return 0;
}
