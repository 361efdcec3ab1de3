/* SPDX-License-Identifier: BSD-3-Clause */
/* setting.h - the values of settings in this process. */
#ifndef APPS_SETTING_H
#define APPS_SETTING_H

/* Such as "20480-21503" of PTL_UDP_PORTS; "" if there is no setting of that name. */
const char *setting_value(const char *name);

#endif
