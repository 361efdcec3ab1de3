/* SPDX-License-Identifier: BSD-3-Clause */
/* setting.c - see setting.h. */
#include <host/setting.h>

#include <base/log.h>
#include <base/settings.h>
#include <host/interface.h>
#include <pmd-glue/glue.h>

#define LENGTH(table) (sizeof(table) / sizeof((table)[0]))

/* Each makes a new value hold; 0, or -1 after an error line, and then the old one does. The
 * library's lock is held. */

static int change_log_level(struct interface *interface, const char *value)
{
	(void)interface;
	return setting_change(SETTING_LOG_LEVEL, 0, value);
}

static int change_poll(struct interface *interface, const char *value)
{
	if (interface->inlined) {
		log_error("PTL_POLL has no meaning here because this process has no poll thread: "
			  "start the program with PTL_PROGRESS=core");
		return -1;
	}
	if (setting_change(SETTING_POLL, 0, value) != 0)
		return -1;
	interface_change_poll();
	return 0;
}

static int change_fault(struct interface *interface, const char *value)
{
	unsigned number = interface->first;
	int result;

	interface_pause(interface);
	result = glue_fault_change(interface->port, number, value);
	interface_resume(interface);
	return result == 0 ? setting_change(SETTING_FAULT, number, value) : -1;
}

static const struct change {
	enum setting setting;
	int (*make)(struct interface *interface, const char *value);
} changes[] = {
	{SETTING_LOG_LEVEL, change_log_level},
	{SETTING_POLL, change_poll},
	{SETTING_FAULT, change_fault},
};

/* The library's lock is held. */
static enum answer setting_change_of(
	struct interface *interface, const char *name, const char *value)
{
	enum setting setting = setting_find(name);

	for (unsigned i = 0; i < LENGTH(changes); i++)
		if (changes[i].setting == setting)
			return changes[i].make(interface, value) == 0 ? ANSWER_OK : ANSWER_FAILED;
	if (setting == SETTING_COUNT)
		log_error(
			"%s is not a setting; PTL_LOG_LEVEL, PTL_POLL and PTL_FAULT can be changed",
			name);
	else
		log_error("%s cannot change while Postern is in use: set it in the environment "
			  "before the program starts; only PTL_LOG_LEVEL, PTL_POLL and PTL_FAULT "
			  "can change",
			name);
	return ANSWER_FAILED;
}

enum answer setting_set(
	const struct front *front, uint64_t handle, const char *name, const char *value)
{
	struct interface *interface;
	enum answer answer = ANSWER_GONE;

	log_clear_error();
	library_lock();
	interface = interface_of(front, handle);
	if (interface)
		answer = setting_change_of(interface, name, value);
	library_unlock();
	return answer;
}
