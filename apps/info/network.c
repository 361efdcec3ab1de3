/* SPDX-License-Identifier: BSD-3-Clause */
/* network.c - interfaces are opened, namesakes listened for, peers asked. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <pmd-glue/directory.h>

#include "../parse.h"
#include "../path.h"
#include "../port.h"
#include "../setting.h"
#include "doctor.h"

#define SECOND  UINT64_C(1000000000)
#define TIMEOUT (2 * SECOND)
/* until the last question for the own name has been answered, on a busy machine */
#define CLAIMS_LAST (2 * SECOND)
#define CLAIMS_LOOK (SECOND / 50)
#define STATS_MAX   256
#define LINK_LAST   (5 * SECOND)
#define LINK_LOOK   (SECOND / 10)

static uint64_t stat_value(ptl_handle_ni_t ni, const char *name)
{
	static struct postern_stat stats[STATS_MAX];
	unsigned count = postern_stats(ni, stats, STATS_MAX);

	for (unsigned i = 0; i < count && i < STATS_MAX; i++)
		if (strcmp(stats[i].name, name) == 0)
			return stats[i].value;
	return 0;
}

/* The same if no process says where it is. */
static void absence_find(struct doctor *doctor, const struct doctor_interface *interface,
	ptl_process_id_t self, ptl_process_id_t target, const char *peer, bool refused)
{
	if (interface->kind == KIND_UDP && refused)
		doctor_find(doctor, LEVEL_FAILURE,
			"the host of %s answers, but no process with that id does: it does not "
			"run, it is stopped, it has another PTL_UDP_PORTS, or a firewall rejects "
			"UDP ports %s",
			peer, setting_value("PTL_UDP_PORTS"));
	else if (interface->kind == KIND_UDP)
		doctor_find(doctor, LEVEL_FAILURE,
			"nothing comes back from %s: its host is down, a firewall drops UDP ports "
			"%s on one of the hosts or between them, or the address of a host is "
			"translated on the way (NAT)",
			peer, setting_value("PTL_UDP_PORTS"));
	else if (interface->kind == KIND_NODE && target.nid != self.nid) {
		doctor_find(doctor, LEVEL_FAILURE,
			"the node id of %s is not that of this process, %u, so shared memory does "
			"not connect them",
			peer, self.nid);
		doctor_fix(doctor,
			"export PTL_NID=%u # if %s is a process of this user on this machine",
			target.nid, peer);
		doctor_fix(doctor, "export PTL_IFACE_NAME=udp # otherwise, for both processes");
	} else if (interface->kind == KIND_NODE) {
		doctor_find(doctor, LEVEL_FAILURE,
			"no process of this user on this machine has the id %s: it does not run, "
			"it has another PTL_IFACE_NAME, or it is on another machine or of another "
			"user",
			peer);
		doctor_fix(doctor, "export PTL_IFACE_NAME=udp # for both processes, if they are on "
				   "two machines or of two users");
	} else
		doctor_find(doctor, LEVEL_FAILURE,
			"no process with the id %s is on this network: it does not run, it has "
			"another PTL_IFACE_NAME, PTL_VLAN or PTL_ENCAP, a switch or firewall drops "
			"frames of type 0x88b5 (with PTL_ENCAP: UDP), or it is beyond a router, "
			"which forwards no Ethernet frames (PTL_IFACE_NAME=udp crosses routers)",
			peer);
}

/* The likely reason why a process does not answer. refused: its host says that nobody has a UDP
 * port of it. */
static void silence_find(struct doctor *doctor, const struct doctor_interface *interface,
	ptl_process_id_t self, ptl_process_id_t target, const struct postern_ping *ping,
	bool refused)
{
	const uint8_t *at = ping->address;
	char peer[32];

	snprintf(peer, sizeof(peer), "%s", process_text(target).text);
	if (interface->kind == KIND_LOOP || doctor->alone) {
		doctor_find(doctor, LEVEL_FAILURE,
			"%s cannot be reached by this interface, which connects to no other "
			"process",
			peer);
		doctor_fix(doctor, "export PTL_IFACE_NAME=eth1 # or another of postern-info's");
		return;
	}
	switch (ping->status) {
	case POSTERN_PING_NO_ADDRESS:
		absence_find(doctor, interface, self, target, peer, refused);
		break;
	case POSTERN_PING_NO_NODE:
		if (!interface->gateway && interface->mask != 0 &&
			((self.nid ^ target.nid) & interface->mask) != 0) {
			doctor_find(doctor, LEVEL_FAILURE,
				"%s is in another subnet than PTL_IP of %s, and no router is named",
				peer, process_text(self).text);
			doctor_fix(doctor, "export PTL_GATEWAY=ADDRESS # of the router in the "
					   "subnet of PTL_IP");
			return;
		}
		doctor_find(doctor, LEVEL_FAILURE,
			"neither the node of %s nor the gateway to it answers ARP", peer);
		break;
	case POSTERN_PING_NOT_SENT:
		doctor_find(doctor, LEVEL_FAILURE, "no frame could be sent to %s: the link is down",
			peer);
		break;
	default:
		doctor_find(doctor, LEVEL_FAILURE,
			"%s is at %02x:%02x:%02x:%02x:%02x:%02x, but does not answer: it is "
			"stopped",
			peer, at[0], at[1], at[2], at[3], at[4], at[5]);
		break;
	}
	doctor_fix(doctor, "postern-ping %s", peer);
}

static void path_look(struct doctor *doctor, const struct doctor_interface *interface,
	ptl_handle_ni_t ni, ptl_process_id_t target, const char *peer, uint64_t latency)
{
	struct path path;

	if (path_find(ni, target, latency, &path) != PTL_OK || !path.answered) {
		doctor_find(doctor, LEVEL_FAILURE, "%s stopped answering", peer);
		doctor_fix(doctor, "postern-ping %s", peer);
		return;
	}
	if (path.there == 0)
		doctor_find(doctor, LEVEL_FAILURE,
			"after frames of up to %" PRIu32 " bytes, %s answers no frame of any size",
			path.own, peer);
	else if (path.there < path.own)
		doctor_find(doctor, LEVEL_FAILURE,
			"frames of %" PRIu32 " bytes go out, but %" PRIu32 " reach %s%s", path.own,
			path.there, peer,
			path.target <= path.there ? ", whose own are no larger" : "");
	else if (path.target > path.own || path.back < path.target)
		doctor_find(doctor, LEVEL_FAILURE,
			"frames of %s have up to %" PRIu32 " bytes, but %" PRIu32
			" come back here, where they have %" PRIu32,
			peer, path.target, path.back, path.own);
	else if (path.target < path.own)
		doctor_find(doctor, LEVEL_WARNING,
			"frames of %s have up to %" PRIu32 " bytes, and those here %" PRIu32, peer,
			path.target, path.own);
	else {
		doctor_find(doctor, LEVEL_OK, "frames of %" PRIu32 " bytes reach %s and come back",
			path.own, peer);
		return;
	}
	if (path_mtu(&path) == 0 && (interface->kind == KIND_KERNEL || interface->kind == KIND_XDP))
		doctor_fix(doctor,
			"sudo ip link set %s mtu %" PRIu32 " # and so for each link between them",
			interface->device, path.own);
	else if (path_mtu(&path) == 0)
		doctor_fix(
			doctor, "# let each link between them carry %" PRIu32 " bytes", path.own);
	else
		doctor_fix(
			doctor, "export PTL_MTU=%" PRIu32 " # for both processes", path_mtu(&path));
}

static void peer_look(struct doctor *doctor, const struct doctor_interface *interface,
	ptl_handle_ni_t ni, ptl_process_id_t self, ptl_process_id_t target)
{
	struct postern_ping ping;
	uint64_t refusals = stat_value(ni, "refusals_received");
	char peer[32];
	int code;

	snprintf(peer, sizeof(peer), "%s", process_text(target).text);
	doctor->check = "peer";
	code = postern_ping(ni, target, 0, 0, TIMEOUT, &ping);
	if (code != PTL_OK) {
		doctor_find(doctor, LEVEL_FAILURE, "%s cannot be asked: %s", peer,
			postern_error_text(code));
		return;
	}
	if (ping.status != POSTERN_PING_ANSWERED) {
		silence_find(doctor, interface, self, target, &ping,
			stat_value(ni, "refusals_received") > refusals);
		return;
	}
	doctor_find(
		doctor, LEVEL_OK, "%s answers after %.1f us", peer, (double)ping.round_trip / 1e3);
	doctor->check = "mtu";
	path_look(doctor, interface, ni, target, peer, ping.round_trip);
}

/* The library asks for its own name when it opens a port to others, a few times within half a
 * second. That nobody answers is seen only by waiting. */
static void namesake_look(struct doctor *doctor, ptl_handle_ni_t ni, ptl_process_id_t self)
{
	const struct timespec time = {.tv_nsec = CLAIMS_LOOK};

	doctor->check = "name";
	for (uint64_t n = 0;
		n < CLAIMS_LAST / CLAIMS_LOOK && stat_value(ni, "duplicates_seen") == 0; n++)
		nanosleep(&time, NULL);
	if (stat_value(ni, "duplicates_seen") == 0) {
		doctor_find(doctor, LEVEL_OK, "no other process has the id %s",
			process_text(self).text);
		return;
	}
	doctor_find(doctor, LEVEL_FAILURE,
		"another process has the id %s, too; the line above says where",
		process_text(self).text);
	doctor_fix(doctor, "export PTL_NID=%u # or another that is free (with udp: PTL_IP)",
		self.nid + 1);
}

/* With udp the node id is an address, which the kernel would answer for as well if it had it. */
static void address_look(struct doctor *doctor, ptl_nid_t nid)
{
	struct ifaddrs *all, *one;
	struct sockaddr_in address;

	if (getifaddrs(&all) != 0)
		return;
	for (one = all; one; one = one->ifa_next) {
		if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET)
			continue;
		memcpy(&address, one->ifa_addr, sizeof(address));
		if (ntohl(address.sin_addr.s_addr) != nid)
			continue;
		doctor_find(doctor, LEVEL_WARNING,
			"the kernel also has the address %s, on %s, and answers for it",
			inet_ntoa(address.sin_addr), one->ifa_name);
		doctor_fix(doctor, "export PTL_IP=ADDRESS/BITS # an address that no host has");
	}
	freeifaddrs(all);
}

/* A card's link comes up some time after the card was opened. */
static void card_link_look(
	struct doctor *doctor, const struct doctor_interface *interface, ptl_handle_ni_t ni)
{
	const struct timespec time = {.tv_nsec = LINK_LOOK};
	json_t *port;
	bool up = false;

	for (uint64_t n = 0; n <= LINK_LAST / LINK_LOOK && !up; n++) {
		if (n > 0)
			nanosleep(&time, NULL);
		port = port_read(ni);
		up = json_is_true(json_object_get(port, "link"));
		json_decref(port);
	}
	doctor->check = "link";
	if (up) {
		doctor_find(doctor, LEVEL_OK, "%s has a link", interface->device);
		return;
	}
	doctor_find(doctor, LEVEL_FAILURE,
		"%s has no link: nothing is plugged in, or the other side is down",
		interface->device);
	doctor_fix(doctor, "# plug in the cable, and bring the other side up");
}

/* What the kernel, or a container's profile, does not grant to a UDP socket. */
static void socket_look(struct doctor *doctor, ptl_handle_ni_t ni)
{
	json_t *port = port_read(ni), *refused = json_object_get(port, "refused"), *one;
	size_t n;

	doctor->check = "socket";
	json_array_foreach(refused, n, one)
	{
		doctor_find(doctor, LEVEL_WARNING, "the system refuses %s: %s",
			json_string_value(json_object_get(one, "what")),
			json_string_value(json_object_get(one, "effect")));
		doctor_fix(doctor,
			"# allow it in the container's seccomp profile, or use Linux 5.0 or later");
	}
	if (port && json_array_size(refused) == 0)
		doctor_find(doctor, LEVEL_OK, "the system permits all that UDP sockets use");
	json_decref(port);
}

/* --- nodes --- */

static char node_why[FINDING_TEXT];

static void node_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void node_tell(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(node_why, sizeof(node_why), format, arguments);
	va_end(arguments);
}

/* A path as a word of a shell command; to be freed. Aborts without memory, because the beginning of
 * a path would name another directory. */
static char *path_quoted(const char *path, int length)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		abort();
	fputc('\'', stream);
	for (int i = 0; i < length; i++) {
		if (path[i] == '\'')
			fputs("'\\'", stream);
		fputc(path[i], stream);
	}
	fputc('\'', stream);
	if (fclose(stream) != 0)
		abort();
	return text;
}

/* Other nodes without a process: their directories lie beside that one's. */
static void node_idle(struct doctor *doctor, const struct directory_survey *survey)
{
	char *base = path_quoted(survey->path, (int)(strrchr(survey->path, '/') - survey->path));

	doctor_find(doctor, LEVEL_OK, "%u other node%s of this user %s no process", survey->idle,
		survey->idle == 1 ? "" : "s", survey->idle == 1 ? "has" : "have");
	doctor_fix(doctor, "(cd %s && rm -r -- %s)", base, survey->idle_names);
	free(base);
}

/* Files and names that killed processes, or others, have left. */
static void node_leftovers(struct doctor *doctor, struct directory_survey *survey)
{
	if (survey->dead > 0) {
		doctor_find(doctor, LEVEL_OK,
			"%u sockets of processes that have died are in %s; the next process "
			"removes them",
			survey->dead, survey->path);
	}
	if (survey->strange > 0) {
		char *path = path_quoted(survey->path, (int)strlen(survey->path));

		doctor_find(doctor, LEVEL_WARNING, "%u files in %s are not Postern's",
			survey->strange, survey->path);
		doctor_fix(doctor, "ls -la %s", path);
		free(path);
	}
	if (survey->idle_names)
		node_idle(doctor, survey);
}

static void node_look(struct doctor *doctor, const struct doctor_interface *interface)
{
	struct directory_survey survey;

	if (doctor->udp && !doctor->named) {
		doctor->alone = true;
		doctor_find(doctor, LEVEL_WARNING,
			"PTL_ENCAP=udp is set without PTL_IFACE_NAME, so a process reaches itself "
			"only");
		doctor_fix(doctor, "export PTL_IFACE_NAME=eth1 # or another of postern-info's");
		return;
	}
	if (directory_survey(interface->device, &survey, node_tell)) {
		doctor_find(doctor, survey.displaced ? LEVEL_WARNING : LEVEL_OK,
			"%s belongs to user %u, and %u processes are in it%s", survey.path,
			(unsigned)survey.uid, survey.living,
			survey.displaced ? "; XDG_RUNTIME_DIR is no directory of this user" : "");
		if (survey.displaced)
			doctor_fix(doctor, "unset XDG_RUNTIME_DIR # for all processes");
		node_leftovers(doctor, &survey);
		free(survey.idle_names);
		return;
	}
	doctor->alone = !doctor->named;
	doctor_find(doctor, doctor->named ? LEVEL_FAILURE : LEVEL_WARNING, "%s%s", node_why,
		doctor->named ? "" : "; until then a process reaches itself only");
	doctor_fix(doctor,
		"export XDG_RUNTIME_DIR=$(mktemp -d) # the same directory for all processes");
}

void check_node(struct doctor *doctor)
{
	unsigned before = doctor->finding_count;

	for (unsigned i = 0; i < doctor->interface_count; i++)
		if (doctor->interfaces[i].kind == KIND_NODE)
			node_look(doctor, &doctor->interfaces[i]);
	if (doctor->finding_count == before)
		doctor_find(doctor, LEVEL_OK, "no interface is a node");
}

/* Frames of its own go through the kernel one by one. */
static void bulk_look(struct doctor *doctor, const struct doctor_interface *interface)
{
	doctor->check = "bulk";
	doctor_find(doctor, LEVEL_OK,
		"the kernel processes the frames of %s one by one, and those of UDP/IPv4 64 KiB at "
		"once: large messages have about four times the bandwidth over UDP, but small ones "
		"take longer",
		interface->device);
	doctor_fix(doctor,
		"export PTL_IFACE_NAME=udp:%s # for all processes; or export PTL_ENCAP=udp "
		"PTL_IP=ADDRESS/BITS",
		interface->device);
}

static void interface_look(struct doctor *doctor, unsigned number)
{
	const struct doctor_interface *interface = &doctor->interfaces[number];
	ptl_process_id_t self;
	ptl_handle_ni_t ni;

	doctor->check = "interface";
	if (PtlNIInit(number, doctor->pid, NULL, NULL, &ni) != PTL_OK ||
		PtlGetId(ni, &self) != PTL_OK) {
		doctor_find(doctor, LEVEL_FAILURE, "%s", postern_last_error());
		doctor_fix(doctor, "postern-info");
		return;
	}
	doctor_find(doctor, LEVEL_OK, "%u (%s) can be opened: this process is %s there", number,
		interface->name[0] != '\0' ? interface->name : "the process itself",
		process_text(self).text);
	if (interface->kind == KIND_PCI)
		card_link_look(doctor, interface, ni);
	if (interface->kind == KIND_UDP)
		socket_look(doctor, ni);
	if (doctor->udp)
		address_look(doctor, self.nid);
	else if (interface->kind == KIND_KERNEL)
		bulk_look(doctor, interface);
	if (interface->kind != KIND_LOOP)
		namesake_look(doctor, ni, self);
	for (unsigned i = 0; i < doctor->peer_count; i++)
		peer_look(doctor, interface, ni, self, doctor->peers[i]);
	PtlNIFini(ni);
}

void check_interfaces(struct doctor *doctor)
{
	if (doctor->started != PTL_OK)
		return; /* that is said already */
	for (unsigned i = 0; i < doctor->interface_count; i++)
		interface_look(doctor, i);
}
