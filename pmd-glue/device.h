/* device.h - what is known of a PCI device without opening it. */
#ifndef PMD_GLUE_DEVICE_H
#define PMD_GLUE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#define PCI_ADDRESS 16 /* bytes of an address in full, "0000:03:00.0", and its 0 */

/* The address in full, of PCI_ADDRESS bytes. */
void device_address(const char *given, char *address);
/* The kernel driver that has the device; false: none. */
bool device_driver(const char *address, char *driver, size_t size);
/* Does DPDK get at devices of this driver? */
bool device_driver_serves(const char *driver);

#endif
