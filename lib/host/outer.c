/* SPDX-License-Identifier: BSD-3-Clause */
/* outer.c - see outer.h. */
#include <host/outer.h>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <string.h>

#include <base/log.h>
#include <base/settings.h>

#define LOOP_ADDRESS   0x7f000001u /* 127.0.0.1, of the first interface */
#define MULTICAST_FROM 0xe0000000u
#define PREFIX_POINT   31 /* from here on a subnet has no address for all */

static uint32_t subnet_hosts(uint8_t prefix)
{
	return prefix == 0 ? UINT32_MAX : (uint32_t)(UINT64_C(0xffffffff) >> prefix);
}

/* An address that one host may have in its subnet. */
static bool host_possible(uint32_t address, uint8_t prefix)
{
	uint32_t host = address & subnet_hosts(prefix);

	if (address == 0 || address >= MULTICAST_FROM)
		return false;
	return prefix >= PREFIX_POINT || (host != 0 && host != subnet_hosts(prefix));
}

/* A loopback needs no address of the network: its node id will do, and all others are on the same
 * wire. */
static void loop_choose(unsigned number, struct encapsulation_options *options)
{
	options->address =
		(uint32_t)setting_number_item(SETTING_NID, number, LOOP_ADDRESS + number);
	options->prefix = 0;
}

static int address_choose(
	unsigned number, const struct port *port, struct encapsulation_options *options)
{
	bool set = setting_subnet_item(SETTING_IP, number, &options->address, &options->prefix);

	if (!set && port->external) {
		log_error("interface %u has PTL_ENCAP=udp but no address; set PTL_IP to its own "
			  "such as 192.168.1.5/24",
			number);
		return -1;
	}
	if (!set)
		loop_choose(number, options);
	if (set && options->prefix == 0) {
		log_error(
			"PTL_IP of interface %u is \"%s\", whose subnet would hold all addresses; "
			"give the length of the subnet's prefix such as /24",
			number, setting_item(SETTING_IP, number));
		return -1;
	}
	if (!host_possible(options->address, options->prefix)) {
		log_error("%s of interface %u is \"%s\", which is no host's address; set PTL_IP to "
			  "the interface's own such as 192.168.1.5/24",
			set ? "PTL_IP" : "PTL_NID", number,
			setting_item(set ? SETTING_IP : SETTING_NID, number));
		return -1;
	}
	if (setting_number_item(SETTING_NID, number, options->address) != options->address) {
		log_error("PTL_NID of interface %u is \"%s\", but with PTL_ENCAP=udp its "
			  "address is its node id; unset PTL_NID",
			number, setting_item(SETTING_NID, number));
		return -1;
	}
	return 0;
}

static int gateway_choose(unsigned number, struct encapsulation_options *options)
{
	uint32_t gateway = (uint32_t)setting_number_item(SETTING_GATEWAY, number, 0);

	options->gateway = gateway;
	if (gateway == 0)
		return 0;
	if (((gateway ^ options->address) & ~subnet_hosts(options->prefix)) == 0 &&
		gateway != options->address && host_possible(gateway, options->prefix))
		return 0;
	log_error("PTL_GATEWAY of interface %u is \"%s\", which is no other host in the subnet of "
		  "its PTL_IP; set it to the router's address there",
		number, setting_item(SETTING_GATEWAY, number));
	return -1;
}

/* Two that answer for one address disturb each other. */
static void kernel_check(unsigned number, const struct encapsulation_options *options)
{
	struct ifaddrs *all, *one;
	struct sockaddr_in address;

	if (getifaddrs(&all) != 0)
		return;
	for (one = all; one; one = one->ifa_next) {
		if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET)
			continue;
		memcpy(&address, one->ifa_addr, sizeof(address));
		if (ntohl(address.sin_addr.s_addr) == options->address)
			log_warning("PTL_IP of interface %u is \"%s\", which is also the "
				    "kernel's address on %s, where the kernel answers for it; set "
				    "PTL_IP to an unused address",
				number, setting_item(SETTING_IP, number), one->ifa_name);
	}
	freeifaddrs(all);
}

int outer_choose(unsigned number, const struct port *port, struct encapsulation_options *options)
{
	*options = (struct encapsulation_options){
		.udp = setting_is(SETTING_ENCAP, "udp"),
		.vlan = (uint16_t)setting_number_item(SETTING_VLAN, number, 0),
		.port = (uint16_t)setting_number(SETTING_UDP_PORT),
	};
	if (!options->udp)
		return 0;
	if (address_choose(number, port, options) != 0)
		return -1;
	if (port->external)
		kernel_check(number, options);
	return gateway_choose(number, options);
}
