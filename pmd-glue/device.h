/* device.h - what is known of a PCI device without opening it. */
#ifndef PMD_GLUE_DEVICE_H
#define PMD_GLUE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

/* The kernel driver that has the device; false: none. */
bool device_driver(const char *address, char *driver, size_t size);
/* Does DPDK get at devices of this driver? */
bool device_driver_serves(const char *driver);

#endif
