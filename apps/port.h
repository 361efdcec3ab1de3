/* SPDX-License-Identifier: BSD-3-Clause */
/* port.h - an interface's topic "port", read. */
#ifndef APPS_PORT_H
#define APPS_PORT_H

#include <jansson.h>
#include <postern.h>

/* The caller releases it by json_decref(). NULL: the interface is gone, or there is no memory. */
json_t *port_read(ptl_handle_ni_t ni);

#endif
