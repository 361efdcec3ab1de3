/* SPDX-License-Identifier: BSD-3-Clause */
/* member.c - see member.h. */
#include <host/member.h>

#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>

#include <base/cancel.h>
#include <base/port.h>
#include <base/settings.h>

/* A number of this machine, until it starts again, and of a node on it. */
static uint32_t node_locality(const char *node)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	char boot[64] = "";
	uint32_t sum = 2166136261;

	if (file && !fgets(boot, sizeof(boot), file))
		boot[0] = '\0';
	if (file)
		(void)fclose(file);
	for (const char *byte = boot; *byte; byte++)
		sum = (sum ^ (uint8_t)*byte) * 16777619;
	for (; *node; node++)
		sum = (sum ^ (uint8_t)*node) * 16777619;
	return sum;
}

uint32_t member_locality(enum card_network network, const char *node)
{
	uint16_t first, last;

	switch (network) {
	case CARD_NODE:
		return node_locality(node);
	case CARD_ETHERNET_UDP:
		return (uint32_t)setting_number(SETTING_UDP_PORT);
	case CARD_UDP:
		setting_range(SETTING_UDP_PORTS, &first, &last);
		return (uint32_t)last << 16 | first;
	case CARD_UDP6: /* for lib/fi, where both are one network: no range of IPv4 */
		setting_range(SETTING_UDP_PORTS, &first, &last);
		return (uint32_t)first << 16 | last;
	default:
		return 0;
	}
}

bool member_card(const struct front *front, uint64_t interface, struct card *card)
{
	const struct interface *member;
	struct ifaddrs *all;
	struct visit visit;
	int cancel;

	if (front_visit(front, &visit, interface, HANDLE_INTERFACE, -1) != 0)
		return false;
	cancel = cancel_hold();
	member = visit.interface;
	*card = (struct card){
		.process = member->self,
		.network = member->port->lone          ? CARD_NODE
			   : member->port->listed      ? CARD_UDP6
			   : member->port->addressed   ? CARD_UDP
			   : member->encapsulation.udp ? CARD_ETHERNET_UDP
						       : CARD_ETHERNET,
	};
	memcpy(card->address, member->port->address, sizeof(card->address));
	/* Subnets of the kernel's interface say nothing of a VLAN on it. */
	if (card->network != CARD_ETHERNET)
		card->locality = member_locality(card->network, member->port->name);
	else if (member->encapsulation.vlan == 0 && getifaddrs(&all) == 0) {
		card->locality = card_subnet(all, card);
		freeifaddrs(all);
	}
	cancel_release(cancel);
	visit_leave(&visit);
	return true;
}

void member_knows(const struct front *front, uint64_t interface, const struct card *card)
{
	struct command command = {
		.kind = COMMAND_HINT,
		.hint = {.nid = card->process.nid, .pid = card->process.pid},
	};
	struct visit visit;

	memcpy(command.hint.address, card->address, sizeof(command.hint.address));
	if (front_visit(front, &visit, interface, HANDLE_INTERFACE, -1) != 0)
		return;
	submission_post(&visit.interface->submission, &command);
	visit_leave(&visit);
}

static bool member_ping(const struct front *front, uint64_t interface, struct process process,
	uint64_t timeout, struct ping_report *report)
{
	struct command command = {
		.kind = COMMAND_PING,
		.ping = {.nid = process.nid, .pid = process.pid, .timeout = timeout},
	};
	struct visit visit;
	enum answer answer;

	if (front_visit(front, &visit, interface, HANDLE_INTERFACE, -1) != 0)
		return false;
	answer = submission_ping(&visit.interface->submission, &command, interface_drive, report);
	visit_leave(&visit);
	return answer == ANSWER_OK;
}

static bool member_answers(
	const struct front *front, uint64_t interface, struct process process, uint64_t timeout)
{
	struct ping_report report;

	return !member_ping(front, interface, process, timeout, &report) ||
	       report.outcome == PING_ANSWERED;
}

static bool member_lives(
	const struct front *front, uint64_t interface, struct process process, uint64_t timeout)
{
	struct ping_report report;

	return !member_ping(front, interface, process, timeout, &report) || !report.absent;
}

void member_watch(const struct front *front, uint64_t interface, struct watch *watch)
{
	struct visit visit;

	watch->front = front;
	watch->interface = interface;
	watch->peer_timeout = setting_number(SETTING_PEER_TIMEOUT);
	watch->silent = false;
	if (front_visit(front, &visit, interface, HANDLE_INTERFACE, -1) == 0) {
		watch->silent = visit.interface->inlined && !interface_is_helped(visit.interface);
		visit_leave(&visit);
	}
	watch->answers = watch->silent ? member_lives : member_answers;
}
