/* SPDX-License-Identifier: BSD-3-Clause */
/* setting.h - settings that may change while interfaces are open. */
#ifndef HOST_SETTING_H
#define HOST_SETTING_H

#include <stdint.h>

#include <base/core.h>
#include <host/front.h>

/* Makes the new value of a setting hold, for the interface of a handle or for all. OK; GONE: the
 * handle is none; FAILED, after an error line: the old value holds. */
enum answer setting_set(const struct front *front, uint64_t handle, const char *name,
	const char *value) CORE_API(setting_set);

#endif
