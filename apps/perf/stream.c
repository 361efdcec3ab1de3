/* stream.c - see stream.h. */
#include "complain.h"
#include "stream.h"

void stream_say(struct stream *stream, enum control_kind kind, uint32_t argument, uint64_t number)
{
	const struct control control = {
		.kind = kind,
		.measure = stream->measure,
		.session = stream->session,
		.argument = argument,
		.number = number,
	};

	endpoint_say(stream->endpoint, stream->peer, &control);
}

void stream_put(struct stream *stream)
{
	complain_unless_ok(
		PtlPut(stream->load, PTL_NOACK_REQ, stream->peer, PORTAL_DATA, 0, MATCH_PUT, 0, 0),
		"PtlPut");
}

void stream_fill(struct stream *stream)
{
	for (; stream->sent - stream->credited < STREAM_WINDOWS; stream->sent++)
		for (uint32_t i = 0; i < stream->window; i++)
			stream_put(stream);
}

void stream_received(struct stream *stream)
{
	if (++stream->received % stream->window == 0)
		stream_say(stream, CONTROL_CREDIT, 0, 0);
}
