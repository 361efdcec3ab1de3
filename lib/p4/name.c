/* SPDX-License-Identifier: BSD-3-Clause */
/* name.c - names of return codes, events and failures, as text. Any thread may call these, at any
 * time: the tables are constant.
 */
#include <portals4.h>

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#define NAME(name) [name] = #name

static const char *const codes[] = {
	NAME(PTL_OK),
	NAME(PTL_ARG_INVALID),
	NAME(PTL_CT_NONE_REACHED),
	NAME(PTL_EQ_DROPPED),
	NAME(PTL_EQ_EMPTY),
	NAME(PTL_FAIL),
	NAME(PTL_IGNORED),
	NAME(PTL_IN_USE),
	NAME(PTL_LIST_TOO_LONG),
	NAME(PTL_NO_INIT),
	NAME(PTL_NO_SPACE),
	NAME(PTL_PID_IN_USE),
	NAME(PTL_PT_FULL),
	NAME(PTL_PT_EQ_NEEDED),
	NAME(PTL_PT_IN_USE),
	NAME(PTL_ABORTED),
	NAME(PTL_INTERRUPTED),
};

static const char *const failures[] = {
	NAME(PTL_NI_OK),
	NAME(PTL_NI_UNDELIVERABLE),
	NAME(PTL_NI_DROPPED),
	NAME(PTL_NI_PT_DISABLED),
	NAME(PTL_NI_PERM_VIOLATION),
	NAME(PTL_NI_OP_VIOLATION),
	NAME(PTL_NI_NO_MATCH),
	NAME(PTL_NI_SEGV),
};

/* Fields that the events of a type fill. */
#define HAS_TARGET  1u /* initiator, uid, portal, match bits, header data, requested length */
#define HAS_DATA    2u /* start and moved length */
#define HAS_OFFSET  4u
#define HAS_PORTAL  8u
#define HAS_LENGTH  16u /* moved length alone */
#define HAS_MESSAGE (HAS_TARGET | HAS_DATA | HAS_OFFSET | HAS_PORTAL)

static const struct event_words {
	const char *name;
	unsigned fields;
} events[] = {
#define EVENT(name, fields) [name] = {#name, fields}
	EVENT(PTL_EVENT_GET, HAS_MESSAGE),
	EVENT(PTL_EVENT_GET_OVERFLOW, HAS_MESSAGE),
	EVENT(PTL_EVENT_PUT, HAS_MESSAGE),
	EVENT(PTL_EVENT_PUT_OVERFLOW, HAS_MESSAGE),
	EVENT(PTL_EVENT_ATOMIC, HAS_MESSAGE),
	EVENT(PTL_EVENT_ATOMIC_OVERFLOW, HAS_MESSAGE),
	EVENT(PTL_EVENT_FETCH_ATOMIC, HAS_MESSAGE),
	EVENT(PTL_EVENT_FETCH_ATOMIC_OVERFLOW, HAS_MESSAGE),
	EVENT(PTL_EVENT_REPLY, HAS_OFFSET | HAS_LENGTH),
	EVENT(PTL_EVENT_SEND, 0),
	EVENT(PTL_EVENT_ACK, HAS_OFFSET | HAS_LENGTH),
	EVENT(PTL_EVENT_PT_DISABLED, HAS_PORTAL),
	EVENT(PTL_EVENT_LINK, HAS_PORTAL),
	EVENT(PTL_EVENT_AUTO_UNLINK, HAS_PORTAL),
	EVENT(PTL_EVENT_AUTO_FREE, HAS_PORTAL),
	EVENT(PTL_EVENT_SEARCH, HAS_MESSAGE),
#undef EVENT
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const char *name_of(const char *const table[], size_t count, int number)
{
	return number >= 0 && (size_t)number < count && table[number] ? table[number] : "Unknown";
}

const char *PtlToStr(int rc, ptl_str_type_t type)
{
	switch (type) {
	case PTL_STR_ERROR:
		return name_of(codes, COUNT(codes), rc);
	case PTL_STR_EVENT:
		return rc >= 0 && (size_t)rc < COUNT(events) ? events[rc].name : "Unknown";
	case PTL_STR_FAIL_TYPE:
		return name_of(failures, COUNT(failures), rc);
	}
	return "Unknown";
}

/* The longest line has 254 characters, so it is never cut (test_name.c). */
int PtlEvToStr(unsigned int ni_options, const ptl_event_t *event, char *msg)
{
	unsigned fields;
	int length = 0;

	if (!event || !msg)
		return 0;
	fields = event->type < COUNT(events) ? events[event->type].fields : 0;
#define WRITE(...) length += snprintf(msg + length, PTL_EV_STR_SIZE - (size_t)length, __VA_ARGS__)
	WRITE("%s %s", PtlToStr(event->type, PTL_STR_EVENT),
		PtlToStr(event->ni_fail_type, PTL_STR_FAIL_TYPE));
	if (fields & HAS_PORTAL)
		WRITE(" pt=%" PRIu32, event->pt_index);
	if (fields & HAS_TARGET && ni_options & PTL_NI_PHYSICAL)
		WRITE(" from=%" PRIu32 ":%" PRIu32, event->initiator.phys.nid,
			event->initiator.phys.pid);
	else if (fields & HAS_TARGET)
		WRITE(" from=%" PRIu32, event->initiator.rank);
	if (fields & HAS_TARGET)
		WRITE(" uid=%" PRIu32 " bits=%" PRIx64 " hdr=%" PRIx64 " rlen=%" PRIu64, event->uid,
			event->match_bits, event->hdr_data, event->rlength);
	if (fields & (HAS_DATA | HAS_LENGTH))
		WRITE(" mlen=%" PRIu64, event->mlength);
	if (fields & HAS_OFFSET)
		WRITE(" off=%" PRIu64, event->remote_offset);
	if (fields & HAS_DATA)
		WRITE(" start=%p", event->start);
#undef WRITE
	return length;
}
