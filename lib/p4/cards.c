/* SPDX-License-Identifier: BSD-3-Clause */
/* cards.c - see cards.h. The runtime's functions are there if the process has it. */
#include <p4/cards.h>

#include <base/cancel.h>
#include <host/member.h>
#include <p4/interface.h>

/* lib/runtime */
void postern_runtime_show(const uint8_t card[CARD_BYTES]) __attribute__((weak));
void postern_runtime_watch(unsigned (*drive)(void), const struct watch *watch)
	__attribute__((weak));
bool postern_runtime_card(uint32_t rank, uint8_t card[CARD_BYTES]) __attribute__((weak));

/* What the runtime does while this process waits for the others. */
static void watch_show(uint64_t interface)
{
	struct watch watch = {0};

	if (!postern_runtime_watch)
		return;
	member_watch(&portals4, interface, &watch);
	postern_runtime_watch(watch.silent ? interface_drive : NULL, &watch);
}

void card_show(uint64_t interface)
{
	uint8_t bytes[CARD_BYTES];
	struct card card;

	if (!postern_runtime_show || !member_card(&portals4, interface, &card))
		return;
	card_encode(&card, bytes);
	watch_show(interface);
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
