/* SPDX-License-Identifier: BSD-3-Clause */
/* local.c - see local.h. */
#include <pmd-glue/local.h>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/log.h>

/* The address that the kernel sends from to hosts for which it has no special route; 0: it has no
 * route to them. Nothing is sent. */
static uint32_t address_usual(void)
{
	/* of a network that is kept for documentation (RFC 5737) */
	const struct sockaddr_in far = {.sin_family = AF_INET,
		.sin_port = htons(9),
		.sin_addr.s_addr = htonl(UINT32_C(0xc0000201))};
	struct sockaddr_in own = {.sin_family = AF_INET};
	socklen_t size = sizeof(own);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&far, sizeof(far)) != 0 ||
		getsockname(fd, (struct sockaddr *)&own, &size) != 0)
		own.sin_addr.s_addr = 0;
	if (fd >= 0)
		close(fd);
	return ntohl(own.sin_addr.s_addr);
}

/* Is this entry the interface, or the address, that is looked for? Without either, any that reaches
 * other hosts will do. */
static bool entry_fits(const struct ifaddrs *one, const char *name, uint32_t address, uint32_t has)
{
	uint32_t mask = 0;

	if (name)
		return strcmp(one->ifa_name, name) == 0;
	if (address == 0)
		return (one->ifa_flags & IFF_LOOPBACK) == 0 && (one->ifa_flags & IFF_UP) != 0;
	/* Every address of a loopback's network is the host's own. */
	if ((one->ifa_flags & IFF_LOOPBACK) != 0 && one->ifa_netmask)
		mask = ntohl(((const struct sockaddr_in *)(const void *)one->ifa_netmask)
				     ->sin_addr.s_addr);
	return mask != 0 ? ((has ^ address) & mask) == 0 : has == address;
}

/* Finds an interface of this host that has an IPv4 address, by its name or that address (0: by
 * none). Returns the address; 0: there is none. */
static uint32_t interface_find(const char *name, uint32_t address, char *interface)
{
	struct ifaddrs *all, *one;
	uint32_t has = 0;

	if (getifaddrs(&all) != 0)
		return 0;
	for (one = all; one; one = one->ifa_next) {
		if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET)
			continue;
		has = ntohl(
			((const struct sockaddr_in *)(const void *)one->ifa_addr)->sin_addr.s_addr);
		if (entry_fits(one, name, address, has))
			break;
	}
	if (one)
		snprintf(interface, IFNAMSIZ, "%s", one->ifa_name);
	freeifaddrs(all);
	if (!one)
		return 0;
	return address != 0 ? address : has;
}

/* name: "", or an interface, or an IPv4 address. Returns false after an error line. */
static bool address_choose_ip4(struct local *local, const char *name)
{
	bool named = name[0] != '\0';
	struct in_addr given = {0};

	local->nodes.family = AF_INET;
	if (named && inet_pton(AF_INET, name, &given) == 1) {
		if (given.s_addr != 0)
			local->nid = interface_find(NULL, ntohl(given.s_addr), local->interface);
		if (local->nid == 0)
			log_error("PTL_IFACE_NAME: no interface of this host has the address %s: "
				  "ip address lists those that there are",
				name);
		return local->nid != 0;
	}
	if (!named)
		given.s_addr = htonl(address_usual());
	local->nid = interface_find(named ? name : NULL, ntohl(given.s_addr), local->interface);
	if (local->nid != 0)
		return true;
	if (!named)
		log_error(
			"udp: no interface of this host that is up has an IPv4 address: write the "
			"one to use, such as udp:127.0.0.1 for processes of this host, or for "
			"IPv6 set PTL_HOSTS");
	else if (if_nametoindex(name) == 0)
		log_error("PTL_IFACE_NAME: there is no interface %s here: ip link lists the "
			  "kernel's",
			name);
	else
		log_error("udp:%s: the interface has no IPv4 address: ip address add ADDRESS/24 "
			  "dev %s, or for IPv6 set PTL_HOSTS",
			name, name);
	return false;
}

/* Finds an IPv6 address of this host that PTL_HOSTS has, by the name of its interface, or as given.
 * Returns false if there is none. */
static bool node_find(struct local *local, const char *name, const struct in6_addr *given)
{
	struct ifaddrs *all, *one;

	if (getifaddrs(&all) != 0)
		return false;
	for (one = all; one; one = one->ifa_next) {
		union udp_name has;

		if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET6 ||
			(name && strcmp(one->ifa_name, name) != 0))
			continue;
		memcpy(&has.ip6, one->ifa_addr, sizeof(has.ip6));
		if ((!given || memcmp(given, &has.ip6.sin6_addr, sizeof(*given)) == 0) &&
			nodes_find(&local->nodes, &has, &local->nid))
			break;
	}
	if (one)
		snprintf(local->interface, sizeof(local->interface), "%s", one->ifa_name);
	freeifaddrs(all);
	return one != NULL;
}

/* name: "", or an interface, or an IPv6 address. Returns false after an error line. */
static bool address_choose_ip6(struct local *local, const char *name, const char *port)
{
	bool named = name[0] != '\0', addressed;
	union udp_name own = {.ip6.sin6_family = AF_INET6};
	const char *fault;

	addressed = inet_pton(AF_INET6, name, &own.ip6.sin6_addr) == 1;
	fault = addressed ? nodes_address_fault(&own.ip6.sin6_addr) : NULL;
	if (fault) {
		log_error("PTL_IFACE_NAME: %s %s", name, fault);
		return false;
	}
	if (!nodes_load(&local->nodes))
		return false;
	if (node_find(local, addressed || !named ? NULL : name,
		    addressed ? &own.ip6.sin6_addr : NULL))
		return true;
	if (named && !addressed && if_nametoindex(name) == 0)
		log_error("PTL_IFACE_NAME: there is no interface %s here: ip link lists the "
			  "kernel's",
			name);
	else if (addressed && nodes_find(&local->nodes, &own, &local->nid))
		log_error("PTL_IFACE_NAME: no interface of this host has the address %s: "
			  "ip -6 address lists those that there are",
			name);
	else
		log_error("%s: PTL_HOSTS has no line for %s: write its node id and its address "
			  "into the file, on all hosts; ip -6 address lists addresses",
			port,
			addressed ? name : (named ? "an address of the interface" : "this host"));
	return false;
}

bool local_choose(struct local *local, const char *name, const char *port)
{
	struct in_addr ip4;

	if (strchr(name, ':') || (nodes_are_listed() && inet_pton(AF_INET, name, &ip4) != 1))
		return address_choose_ip6(local, name, port);
	return address_choose_ip4(local, name);
}

bool local_is_there(void)
{
	char interface[IFNAMSIZ];

	return nodes_are_listed() || interface_find(NULL, address_usual(), interface) != 0;
}
