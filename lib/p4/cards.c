/* SPDX-License-Identifier: BSD-3-Clause */
/* cards.c - see cards.h. The runtime's functions are there if the process has it. */
#include <p4/cards.h>

#include <base/settings.h>
#include <base/cancel.h>
#include <host/member.h>
#include <p4/interface.h>

/* lib/runtime */
void postern_runtime_show(const uint8_t card[CARD_BYTES]) __attribute__((weak));
void postern_runtime_wait(bool (*drive)(void),
	bool (*answers)(struct process process, uint64_t timeout), uint64_t peer_timeout)
	__attribute__((weak));
bool postern_runtime_card(uint32_t rank, uint8_t card[CARD_BYTES]) __attribute__((weak));

static uint64_t shown; /* the interface */

static bool drive(void)
{
	return interface_drive() != 0;
}

static bool process_answers(struct process process, uint64_t timeout)
{
	return member_answers(&portals4, shown, process, timeout);
}

static bool process_lives(struct process process, uint64_t timeout)
{
	return member_lives(&portals4, shown, process, timeout);
}

/* Does somebody answer for this process while the program computes? */
static bool is_served(uint64_t interface)
{
	struct visit visit;
	bool served;

	if (front_visit(&portals4, &visit, interface, HANDLE_INTERFACE, -1) != 0)
		return true;
	served = !visit.interface->inlined || interface_is_helped(visit.interface);
	visit_leave(&visit);
	return served;
}

/* What the runtime does while this process waits for the others. */
static void wait_show(uint64_t interface)
{
	const uint64_t peer_timeout = setting_number(SETTING_PEER_TIMEOUT);

	if (!postern_runtime_wait)
		return;
	shown = interface;
	if (is_served(interface))
		postern_runtime_wait(NULL, process_answers, peer_timeout);
	else
		postern_runtime_wait(drive, process_lives, peer_timeout);
}

void card_show(uint64_t interface)
{
	uint8_t bytes[CARD_BYTES];
	struct card card;

	if (!postern_runtime_show || !member_card(&portals4, interface, &card))
		return;
	card_encode(&card, bytes);
	wait_show(interface);
	postern_runtime_show(bytes);
}

void cards_take(uint64_t interface, uint64_t count)
{
	uint8_t bytes[CARD_BYTES];
	struct card card;
	int cancel;

	if (!postern_runtime_card)
		return;
	cancel = cancel_hold();
	for (uint32_t rank = 0; rank < count && postern_runtime_card(rank, bytes); rank++)
		if (card_decode(&card, bytes))
			member_knows(&portals4, interface, &card);
	cancel_release(cancel);
}
