/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel.c - see kernel.h. */
#include <errno.h>
#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/log.h>
#include <pmd-glue/kernel.h>
#include <pmd-glue/kinds.h>

#define ALTERNATIVE_ROOM 128   /* the kernel's ALTIFNAMSIZ */
#define LINK_ANSWER      16384 /* bytes of a link's attributes, at most; the rest is not needed */

/* The kernel would look up eth1 for eth1:2. */
bool kernel_has(const char *name)
{
	return strlen(name) < IF_NAMESIZE && !strchr(name, ':') && if_nametoindex(name) != 0;
}

/* Asks for the link that has this alternative name. Returns its index, or 0. */
static unsigned link_index(int netlink, const char *name)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg link;
		struct rtattr attribute;
		char name[ALTERNATIVE_ROOM];
	} request = {
		.header = {.nlmsg_len = sizeof(request),
			.nlmsg_type = RTM_GETLINK,
			.nlmsg_flags = NLM_F_REQUEST},
		.attribute = {RTA_LENGTH(ALTERNATIVE_ROOM), IFLA_ALT_IFNAME},
	};
	struct {
		struct nlmsghdr header;
		struct ifinfomsg link;
		char attributes[LINK_ANSWER];
	} answer;
	snprintf(request.name, sizeof(request.name), "%s", name);
	if (send(netlink, &request, sizeof(request), 0) != (ssize_t)sizeof(request) ||
		recv(netlink, &answer, sizeof(answer), 0) <
			(ssize_t)NLMSG_LENGTH(sizeof(answer.link)) ||
		answer.header.nlmsg_type != RTM_NEWLINK)
		return 0;
	return (unsigned)answer.link.ifi_index;
}

/* The index of an interface by any of its names; 0: there is none. */
static unsigned name_index(const char *name)
{
	unsigned index;
	int netlink;
	if (strlen(name) < IF_NAMESIZE)
		return if_nametoindex(name);
	if (strlen(name) >= ALTERNATIVE_ROOM)
		return 0;
	netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (netlink < 0)
		return 0;
	index = link_index(netlink, name);
	close(netlink);
	return index;
}

const char *kernel_primary(const char *name, char *text, size_t size)
{
	size_t before = strncmp(name, "xdp:", 4) == 0 || strncmp(name, "udp:", 4) == 0 ? 4 : 0;
	const char *rest = name + before;
	char primary[IF_NAMESIZE];
	unsigned index = rest[0] && !strpbrk(rest, ":,/") ? name_index(rest) : 0;
	if (index == 0 || !if_indextoname(index, primary) || strcmp(primary, rest) == 0)
		return name;
	snprintf(text, size, "%.*s%s", (int)before, name, primary);
	log_info("%s is an alternative name of %s", rest, primary);
	return text;
}

uint64_t kernel_space(void)
{
	struct stat space;
	return stat("/proc/thread-self/ns/net", &space) == 0 ? space.st_ino : 1;
}

int kernel_query(const char *interface)
{
	int query = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (query < 0)
		log_error("%s: cannot ask the kernel about it: %s", interface, strerror(errno));
	return query;
}

int kernel_ask(int query, const char *interface, unsigned long request, struct ifreq *answer)
{
	memset(answer, 0, sizeof(*answer));
	snprintf(answer->ifr_name, sizeof(answer->ifr_name), "%s", interface);
	return ioctl(query, request, answer);
}

bool kernel_driver(int query, const char *interface, char driver[KERNEL_DRIVER_ROOM],
	char device[KERNEL_DRIVER_ROOM])
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq answer = {.ifr_data = (char *)&info};
	snprintf(answer.ifr_name, sizeof(answer.ifr_name), "%s", interface);
	if (ioctl(query, SIOCETHTOOL, &answer) != 0)
		return false;
	snprintf(driver, KERNEL_DRIVER_ROOM, "%.31s", info.driver);
	if (device)
		snprintf(device, KERNEL_DRIVER_ROOM, "%.31s", info.bus_info);
	return true;
}

bool kernel_carrier(int query, const char *interface)
{
	struct ethtool_value value = {.cmd = ETHTOOL_GLINK};
	struct ifreq answer = {.ifr_data = (char *)&value};
	snprintf(answer.ifr_name, sizeof(answer.ifr_name), "%s", interface);
	return ioctl(query, SIOCETHTOOL, &answer) != 0 || value.data != 0;
}

/* The flag changes up to a second late. ethtool reports at once that a link has gone; a link that
 * comes up drops all frames until the flag changes. */
bool kernel_runs(int query, const char *interface)
{
	struct ifreq answer;
	if (kernel_ask(query, interface, SIOCGIFFLAGS, &answer) != 0 ||
		!(answer.ifr_flags & IFF_UP) || !(answer.ifr_flags & IFF_RUNNING))
		return false;
	return kernel_carrier(query, interface);
}

bool kernel_may_open(void)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static bool administrates(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct held[_LINUX_CAPABILITY_U32S_3];
	return syscall(SYS_capget, &header, held) == 0 &&
	       (held[0].effective & UINT32_C(1) << CAP_NET_ADMIN) != 0;
}

bool kernel_is_up(const char *interface)
{
	struct ifreq answer;
	bool up = false;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	if (kernel_ask(fd, interface, SIOCGIFFLAGS, &answer) == 0)
		up = (answer.ifr_flags & IFF_UP) != 0;
	close(fd);
	return up;
}

uint32_t kernel_check(int query, const char *interface, const char *kind)
{
	struct ifreq answer;
	if (kernel_ask(query, interface, SIOCGIFFLAGS, &answer) != 0) {
		log_error("%s%s: there is no such interface: ip link lists those that there are",
			kind, interface);
		return 0;
	}
	if (!(answer.ifr_flags & IFF_UP)) {
		log_error("%s%s: the interface is down: ip link set %s up", kind, interface,
			interface);
		return 0;
	}
	if (kernel_ask(query, interface, SIOCGIFHWADDR, &answer) != 0 ||
		answer.ifr_hwaddr.sa_family != ARPHRD_ETHER) {
		log_error(
			"%s%s: the interface is not an Ethernet: postern-info lists those that are",
			kind, interface);
		return 0;
	}
	if (!kernel_may_open() || (kind[0] && !administrates())) {
		if (kind[0])
			log_error("%s%s: sending raw frames by af_xdp needs root: run the program "
				  "with sudo, or start `posternd --iface %s%s` as root",
				kind, interface, kind, interface);
		else
			log_error("%s: sending raw frames " KERNEL_NEEDS, interface, interface,
				interface);
		return 0;
	}
	if (kernel_ask(query, interface, SIOCGIFMTU, &answer) != 0) {
		log_error(
			"%s%s: the kernel does not tell its MTU: %s: ip link show %s tells whether "
			"the interface is still there",
			kind, interface, strerror(errno), interface);
		return 0;
	}
	return (uint32_t)answer.ifr_mtu;
}

uint32_t kernel_frame_size(const char *interface, uint32_t has, uint32_t wanted, uint32_t limit)
{
	if (wanted > has) {
		log_error("%s: PTL_MTU=%u is more than the interface's MTU of %u: ip link set %s "
			  "mtu %u",
			interface, wanted, has, interface, wanted);
		return 0;
	}
	if (wanted == 0)
		wanted = has;
	if (wanted + FRAME_HEADER > limit)
		wanted = limit - FRAME_HEADER;
	return kinds_frame_size(interface, wanted);
}
