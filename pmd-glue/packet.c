/* packet.c - ports on interfaces of the kernel: af_packet, which any interface can, and af_xdp,
 * which is faster.
 *
 * Opened and closed under the front end's lock; owned by one poll core in between.
 *
 * I1. No frame longer than the interface's MTU is sent: af_packet would count it as sent and lose
 * it.
 *
 * I2. Frames that an interface of af_packet refuses all the same (a veth, whose other end takes
 * smaller ones) do not stop the others for long: while frames are given, the port looks now and then
 * whether they leave, and throws away those that do not.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if_arp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <rte_ethdev.h>

#include <base/clock.h>
#include <base/log.h>
#include <pmd-glue/driver.h>
#include <pmd-glue/eal.h>
#include <pmd-glue/ethdev.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/kinds.h>
#include <pmd-glue/packet.h>
#include <pmd-glue/sendring.h>

#define PACKET_OVERHEAD 96u    /* of a slot in the kernel's ring: header, address, alignment */
#define PACKET_FRAME    60000u /* the largest that works */
#define SLOT_SMALL      2048u
#define BLOCK_UNIT      4096u
#define FRAMES          1024u
#define FRAMES_LARGE    256u   /* of slots larger than SLOT_LARGE: they are all in memory */
#define SLOT_LARGE      16384u
#define OPEN_ATTEMPTS  10      /* another process may pick the same fanout group */
#define OPEN_PAUSE     3000000 /* ns */
#define XDP_FRAME      1518u
#define XDP_FRAME_HUGE 3542u
#define XDP_ROOM       2048u /* the kernel wants buffers of at least that */
#define SOCKETS_MAX    256u /* of a kind in this process */
#define LINK_INTERVAL  (100 * MILLISECOND)
#define RING_INTERVAL  (10 * MILLISECOND)
#define REFUSED_TIME   (50 * MILLISECOND) /* who is merely busy takes the next frame sooner */
#define REFUSED_SIZES  16u /* that are thrown away at a time: no poll core waits for more */

/* Does what af_packet's driver takes leave? */
struct departure {
	struct sendring ring;
	bool unsure;    /* frames were given since the ring was last seen empty */
	bool warned;
	uint64_t look;  /* the time from which on it is looked at again */
	uint64_t given; /* frames, so far */
	uint64_t left;  /* of them, when the first one behind was refused, */
	uint64_t since; /* which was then; 0: it was not */
};

struct packet {
	struct ethdev ethdev; /* first: a port is an ethdev is a packet port */
	int query;            /* a socket to ask the kernel with, and to be known by: packet_claim() */
	char interface[IFNAMSIZ];
	struct departure departure;
};

static unsigned packet_count; /* for names of devices; under the front end's lock */

/* --- asking the kernel --- */

static int interface_ask(int fd, const char *interface, unsigned long request, struct ifreq *answer)
{
	memset(answer, 0, sizeof(*answer));
	snprintf(answer->ifr_name, sizeof(answer->ifr_name), "%s", interface);
	return ioctl(fd, request, answer);
}

/* Is it up, with somebody at the other end? IFF_RUNNING would say so as well, up to a second late. */
static bool interface_runs(int fd, const char *interface)
{
	struct ethtool_value value = {.cmd = ETHTOOL_GLINK};
	struct ifreq answer;
	if (interface_ask(fd, interface, SIOCGIFFLAGS, &answer) != 0 ||
		!(answer.ifr_flags & IFF_UP))
		return false;
	answer.ifr_data = (char *)&value;
	if (ioctl(fd, SIOCETHTOOL, &answer) == 0)
		return value.data != 0;
	return (answer.ifr_flags & IFF_RUNNING) != 0;
}

/* Does it run, and has the kernel made all of it ready? A link that comes up refuses frames for up to a second. */
static bool interface_ready(int fd, const char *interface)
{
	struct ifreq answer;
	return interface_runs(fd, interface) &&
	       interface_ask(fd, interface, SIOCGIFFLAGS, &answer) == 0 &&
	       (answer.ifr_flags & IFF_RUNNING) != 0;
}

/* DPDK's driver opens such a socket, and when it starts it gives the interface the address that this has, which only its administrator
 * may. */
bool packet_may_open(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct held[_LINUX_CAPABILITY_U32S_3];
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	close(fd);
	return syscall(SYS_capget, &header, held) == 0 &&
	       (held[0].effective & UINT32_C(1) << CAP_NET_ADMIN) != 0;
}

bool packet_is_up(const char *interface)
{
	struct ifreq answer;
	bool up = false;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	if (interface_ask(fd, interface, SIOCGIFFLAGS, &answer) == 0)
		up = (answer.ifr_flags & IFF_UP) != 0;
	close(fd);
	return up;
}

/* --- the port --- */

static bool packet_link(struct port *port)
{
	struct packet *packet = (struct packet *)port;
	struct ethdev *ethdev = &packet->ethdev;
	uint64_t now = glue_now(NULL);
	if (now < ethdev->look)
		return ethdev->up;
	ethdev->look = now + LINK_INTERVAL;
	ethdev->up = interface_runs(packet->query, packet->interface);
	return ethdev->up;
}

static void packet_close(struct port *port)
{
	struct packet *packet = (struct packet *)port;
	sendring_close(&packet->departure.ring);
	ethdev_close(&packet->ethdev);
	close(packet->query);
	free(packet);
}

static const struct port_operations packet_operations = {
	.receive = ethdev_receive,
	.transmit = ethdev_transmit,
	.link = packet_link,
	.counters = ethdev_counters,
	.interrupt = ethdev_interrupt,
	.describe = ethdev_describe,
	.close = packet_close,
};

/* --- departure --- */

static void refusal_tell(struct packet *packet, uint32_t length)
{
	const char *name = packet->interface;
	if (packet->departure.warned || length <= FRAME_HEADER)
		return;
	packet->departure.warned = true;
	log_warning("%s: the kernel does not send frames of %" PRIu32 " bytes, they are thrown away: its other end "
		    "seems to take smaller ones only; give both ends the same MTU by ip link set %s mtu N, or set PTL_MTU",
		name, length - FRAME_HEADER, name);
}

/* Throws away what is refused, from the longest frames down, until the ring drains. */
static void departure_clear(struct packet *packet)
{
	struct departure *departure = &packet->departure;
	uint32_t length = 0;
	int answer = -ENOBUFS;
	for (unsigned n = 0; n < REFUSED_SIZES && answer == -ENOBUFS; n++) {
		packet->ethdev.oversized += sendring_discard(&departure->ring, &length);
		answer = sendring_kick(&departure->ring);
	}
	if (answer == -ENOBUFS)
		return;
	departure->since = 0;
	refusal_tell(packet, length);
}

static void departure_look(struct packet *packet, uint64_t now)
{
	struct departure *departure = &packet->departure;
	int answer = sendring_kick(&departure->ring);
	uint64_t left;
	departure->look = now + RING_INTERVAL;
	departure->unsure = answer > 0 || answer == -ENOBUFS || answer == -EAGAIN;
	if (answer != -ENOBUFS || !sendring_map(&departure->ring)) {
		departure->since = 0;
		return;
	}
	left = departure->given - sendring_waiting(&departure->ring);
	if (departure->since == 0 || left != departure->left ||
		!interface_ready(packet->query, packet->interface)) {
		departure->left = left;
		departure->since = now;
	} else if (now - departure->since >= REFUSED_TIME) {
		departure_clear(packet);
	}
}

static void departure_watch(struct packet *packet)
{
	uint64_t now;
	if (!packet->departure.unsure)
		return;
	now = glue_now(NULL);
	if (now >= packet->departure.look)
		departure_look(packet, now);
}

static uint16_t departure_receive(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	departure_watch((struct packet *)port);
	return ethdev_receive(port, frames, count);
}

static uint16_t departure_transmit(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct departure *departure = &((struct packet *)port)->departure;
	uint16_t taken = ethdev_transmit(port, frames, count);
	departure->given += taken;
	departure->unsure |= taken > 0;
	return taken;
}

/* Nobody calls when a frame has been refused for long enough. */
static int departure_interrupt(struct port *port, bool on)
{
	struct packet *packet = (struct packet *)port;
	if (on && packet->departure.unsure) {
		departure_look(packet, glue_now(NULL));
		if (packet->departure.unsure)
			return -1;
	}
	return ethdev_interrupt(port, on);
}

static const struct port_operations departure_operations = {
	.receive = departure_receive,
	.transmit = departure_transmit,
	.link = packet_link,
	.counters = ethdev_counters,
	.interrupt = departure_interrupt,
	.describe = ethdev_describe,
	.close = packet_close,
};

/* --- opening --- */

/* Checks what can be checked beforehand, so that the sentence can say what is wrong. Gives the
 * interface's MTU. */
static int packet_check(const struct packet *packet, const char *kind, uint32_t *mtu)
{
	const char *name = packet->interface;
	struct ifreq answer;
	if (interface_ask(packet->query, name, SIOCGIFFLAGS, &answer) != 0) {
		log_error("%s%s: there is no such interface: ip link lists those that there are",
			kind, name);
		return -1;
	}
	if (!(answer.ifr_flags & IFF_UP)) {
		log_error("%s%s: the interface is down: ip link set %s up", kind, name, name);
		return -1;
	}
	if (!packet_may_open()) {
		log_error("%s%s: sending raw frames %s", kind, name,
			kind[0] ? "by af_xdp needs root: run the program with sudo"
				: PACKET_NEEDS);
		return -1;
	}
	if (interface_ask(packet->query, name, SIOCGIFHWADDR, &answer) != 0 ||
		answer.ifr_hwaddr.sa_family != ARPHRD_ETHER) {
		log_error(
			"%s%s: the interface is not an Ethernet: postern-info lists those that are",
			kind, name);
		return -1;
	}
	if (interface_ask(packet->query, name, SIOCGIFMTU, &answer) != 0) {
		log_error(
			"%s%s: the kernel does not tell its MTU: %s", kind, name, strerror(errno));
		return -1;
	}
	*mtu = (uint32_t)answer.ifr_mtu;
	return 0;
}

/* The largest frame: what the interface has, less if less is wanted. 0 after an error line. */
static uint32_t packet_frame_size(
	const char *interface, uint32_t has, uint32_t wanted, uint32_t limit)
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

/* A slot of the kernel's ring for such frames, and the block that it divides: blocks are whole
 * pages. */
static void packet_ring(uint32_t frame_size, uint32_t *slot, uint32_t *block)
{
	uint32_t least = frame_size + PACKET_OVERHEAD;
	if (least <= SLOT_SMALL)
		*slot = SLOT_SMALL;
	else
		*slot = (least + BLOCK_UNIT - 1) / BLOCK_UNIT * BLOCK_UNIT;
	*block = *slot < BLOCK_UNIT ? BLOCK_UNIT : *slot;
}

static struct packet *packet_create(const char *interface)
{
	struct packet *packet = calloc(1, sizeof(*packet));
	if (!packet) {
		log_error("%s: out of memory", interface);
		return NULL;
	}
	packet->ethdev.id = RTE_MAX_ETHPORTS;
	snprintf(packet->interface, sizeof(packet->interface), "%s", interface);
	packet->query = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (packet->query >= 0)
		return packet;
	log_error("%s: cannot ask the kernel about it: %s", interface, strerror(errno));
	free(packet);
	return NULL;
}

/* The sockets of a kind that this process has. */
static unsigned sockets_list(int domain, int *sockets, unsigned count)
{
	struct dirent *entry;
	unsigned found = 0;
	DIR *directory = opendir("/proc/self/fd");
	if (!directory)
		return 0;
	while (found < count && (entry = readdir(directory))) {
		int fd = atoi(entry->d_name), is = -1;
		socklen_t size = sizeof(is);
		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &is, &size) == 0 && is == domain)
			sockets[found++] = fd;
	}
	closedir(directory);
	return found;
}

/* The socket that the driver keeps to itself: the one that was not there before. -1: it cannot be told. */
static int socket_new(int domain, const int *before, unsigned before_count)
{
	int now[SOCKETS_MAX], fresh = -1;
	unsigned count = sockets_list(domain, now, SOCKETS_MAX);
	for (unsigned n = 0; n < count; n++) {
		unsigned known = 0;
		while (known < before_count && before[known] != now[n])
			known++;
		if (known < before_count)
			continue;
		if (fresh >= 0)
			return -1;
		fresh = now[n];
	}
	return fresh;
}

/* Two processes that start at once may pick one fanout group, and one of them is turned away: it
 * tries again. */
static int packet_plug(const char *arguments)
{
	const struct timespec pause = {.tv_nsec = OPEN_PAUSE};
	for (int n = 0; n < OPEN_ATTEMPTS; n++) {
		if (ethdev_plug(arguments) == 0)
			return 0;
		nanosleep(&pause, NULL);
	}
	return -1;
}

static int packet_start(struct packet *packet, int domain, const char *arguments,
	const char *device, const struct ethdev_options *options)
{
	int sockets[SOCKETS_MAX];
	unsigned count = sockets_list(domain, sockets, SOCKETS_MAX);
	char why[256];
	if (packet_plug(arguments) != 0) {
		if (driver_missing(options->name, device))
			return -1;
		log_error("%s: DPDK cannot open it (%s): see PTL_LOG_LEVEL=debug for all that it "
			  "says",
			options->name, eal_reason(why, sizeof(why)));
		return -1;
	}
	if (ethdev_open(&packet->ethdev, device, options) != 0)
		return -1;
	packet->ethdev.port.operations = &packet_operations;
	packet->ethdev.socket = socket_new(domain, sockets, count);
	packet->ethdev.port.calls = packet->ethdev.socket >= 0;
	return 0;
}

static int packet_open_af_packet(struct packet *packet, uint32_t mtu)
{
	char arguments[256], device[32];
	uint32_t has, slot, block, frames;
	struct ethdev_options options = {
		.name = packet->interface, .copies = true, .remove = true, .external = true};
	if (packet_check(packet, "", &has) != 0)
		return -1;
	options.frame_size = packet_frame_size(packet->interface, has, mtu, PACKET_FRAME);
	if (options.frame_size == 0)
		return -1;
	packet_ring(options.frame_size, &slot, &block);
	options.room = slot; /* the driver wants a buffer to hold a slot */
	frames = slot > SLOT_LARGE ? FRAMES_LARGE : FRAMES;
	snprintf(device, sizeof(device), "net_af_packet_postern%u", packet_count++);
	snprintf(arguments, sizeof(arguments),
		"%s,iface=%s,qpairs=1,blocksz=%u,framesz=%u,framecnt=%u", device, packet->interface,
		block, slot, frames);
	if (packet_start(packet, AF_PACKET, arguments, device, &options) != 0)
		return -1;
	packet->ethdev.port.receive_frames = (uint16_t)frames;
	if (sendring_open(&packet->departure.ring, packet->ethdev.socket, block, slot, frames))
		packet->ethdev.port.operations = &departure_operations;
	return 0;
}

/* libxdp and libbpf come with DPDK's driver and say what they do on standard error: they are asked not to. */
static void libraries_hush(void)
{
	static const struct {
		const char *library;
		const char *function;
	} loud[] = {{"libxdp.so.1", "libxdp_set_print"}, {"libbpf.so.1", "libbpf_set_print"}};
	for (size_t n = 0; n < sizeof(loud) / sizeof(loud[0]); n++) {
		void *library = dlopen(loud[n].library, RTLD_NOW | RTLD_NOLOAD);
		void *(*set_print)(void *);
		if (!library)
			continue;
		*(void **)&set_print = dlsym(library, loud[n].function);
		if (set_print)
			set_print(NULL);
		dlclose(library);
	}
}

static int packet_open_af_xdp(struct packet *packet, uint32_t mtu)
{
	char arguments[256], device[32], name[IFNAMSIZ + 8];
	uint32_t has;
	struct ethdev_options options = {
		.name = name, .room = XDP_ROOM, .remove = true, .external = true};
	snprintf(name, sizeof(name), "xdp:%s", packet->interface);
	if (packet_check(packet, "xdp:", &has) != 0)
		return -1;
	options.frame_size = packet_frame_size(
		packet->interface, has, mtu, glue_hugepages() ? XDP_FRAME_HUGE : XDP_FRAME);
	if (options.frame_size == 0)
		return -1;
	libraries_hush();
	snprintf(device, sizeof(device), "net_af_xdp_postern%u", packet_count++);
	snprintf(arguments, sizeof(arguments), "%s,iface=%s", device, packet->interface);
	return packet_start(packet, AF_XDP, arguments, device, &options);
}

/* Who has a port on an interface gives its socket that name, which ends with the process, or with its children that have not called
 * exec(), and is the network namespace's own. */
static void packet_claim(const struct packet *packet)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int length = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "postern/%s", packet->interface);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	if (bind(packet->query, (const struct sockaddr *)&name, size) != 0 && errno == EADDRINUSE)
		log_warning("%s: another port is on this interface: both hear the network, but neither the other: give each one of its own, such as ip link add NAME link %s type macvlan mode bridge",
			packet->interface, packet->interface);
}

static struct port *packet_open_by(
	const char *interface, uint32_t mtu, int (*open)(struct packet *, uint32_t))
{
	struct packet *packet = packet_create(interface);
	if (!packet)
		return NULL;
	if (open(packet, mtu) == 0) {
		packet_claim(packet);
		return &packet->ethdev.port;
	}
	close(packet->query);
	free(packet);
	return NULL;
}

struct port *packet_open(const char *interface, uint32_t mtu)
{
	return packet_open_by(interface, mtu, packet_open_af_packet);
}

struct port *packet_open_xdp(const char *interface, uint32_t mtu)
{
	return packet_open_by(interface, mtu, packet_open_af_xdp);
}
