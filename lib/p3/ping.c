/* SPDX-License-Identifier: BSD-3-Clause */
/* ping.c - postern_ping(): an echo of another process. */
#include <postern.h>

#include <string.h>

#include <p3/code.h>
#include <p3/interface.h>

static_assert((int)POSTERN_PING_ANSWERED == (int)PING_ANSWERED &&
		      (int)POSTERN_PING_NO_ANSWER == (int)PING_NO_ANSWER &&
		      (int)POSTERN_PING_NO_ADDRESS == (int)PING_NO_ADDRESS &&
		      (int)POSTERN_PING_NO_NODE == (int)PING_NO_NODE &&
		      (int)POSTERN_PING_NOT_SENT == (int)PING_NOT_SENT &&
		      (int)POSTERN_PING_BAD_SIZE == (int)PING_BAD_SIZE,
	"the transport's outcomes are the interface's");

static void ping_tell(const struct ping_report *report, struct postern_ping *ping)
{
	*ping = (struct postern_ping){
		.status = (int)report->outcome,
		.least = report->least,
		.mtu = report->most,
		.exact = report->exact,
		.answer_size = report->answered,
		.target_mtu = report->capacity,
		.incarnation = report->incarnation,
		.round_trip = report->round_trip,
		.residence = report->residence,
		.network = report->network,
	};
	memcpy(ping->address, report->address, sizeof(ping->address));
}

int postern_ping(ptl_handle_ni_t handle, ptl_process_id_t target, uint32_t size,
	uint32_t answer_size, uint64_t timeout, struct postern_ping *ping)
{
	struct command command = {
		.kind = COMMAND_PING,
		.ping = {.nid = target.nid,
			.pid = target.pid,
			.size = size,
			.answer = answer_size,
			.timeout = timeout},
	};
	struct ping_report report;
	struct visit visit;
	int code = visit_enter(&visit, handle, HANDLE_INTERFACE, PTL_INV_NI);

	if (code != PTL_OK)
		return code;
	if (!process_is_valid(target))
		code = PTL_INV_PROC;
	else if (ADDRESS_IS_BAD(ping))
		code = PTL_SEGV;
	else
		code = code_of(submission_ping(&visit.interface->submission, &command,
				       interface_drive, &report),
			PTL_INV_NI);
	visit_leave(&visit);
	if (code == PTL_OK)
		ping_tell(&report, ping);
	return code;
}
