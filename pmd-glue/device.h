/* SPDX-License-Identifier: BSD-3-Clause */
/* device.h - what is known of a PCI device without opening it. */
#ifndef PMD_GLUE_DEVICE_H
#define PMD_GLUE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#define PCI_ADDRESS 16 /* bytes of an address in full, "0000:03:00.0", and its 0 */

/* The address in full, of PCI_ADDRESS bytes. */
void device_address(const char *given, char *address);
/* Is it an Ethernet card? */
bool device_is_network(const char *address);
/* The kernel driver that has the device. Returns false if none has. */
bool device_driver(const char *address, char *driver, size_t size);
/* Can DPDK use devices that this kernel driver has? */
bool device_driver_serves(const char *driver);
/* Does this driver work without an IOMMU? Then only root can use its cards, and only with
 * hugepages. */
bool device_driver_is_uio(const char *driver);
/* The kernel driver that hands a card over to DPDK, on a machine with or without an IOMMU. */
const char *device_binder(bool iommu);
/* Is the device behind an IOMMU? */
bool device_iommu(const char *address);

#endif
