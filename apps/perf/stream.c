/* SPDX-License-Identifier: BSD-3-Clause */
/* stream.c - see stream.h. */
#include "complain.h"
#include "shape.h"
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
	bool deep = stream->shape.depth > 0;

	if (stream->line) {
		stream->module->send(stream->line);
		return;
	}
	complain_unless_ok(
		PtlPut(stream->load, PTL_NOACK_REQ, stream->peer, deep ? PORTAL_SHAPE : PORTAL_DATA,
			0, deep ? shape_target(&stream->shape, &stream->random) : MATCH_PUT, 0,
			stream->session),
		"PtlPut");
}

void stream_get(struct stream *stream)
{
	bool deep = stream->shape.depth > 0;

	if (stream->line) {
		stream->module->send(stream->line);
		return;
	}
	complain_unless_ok(
		PtlGet(stream->load, stream->peer, deep ? PORTAL_SHAPE : PORTAL_DATA, 0,
			deep ? shape_target(&stream->shape, &stream->random) : MATCH_GET, 0),
		"PtlGet");
}

void stream_fill(struct stream *stream)
{
	for (; stream->sent - stream->credited < STREAM_WINDOWS; stream->sent++)
		for (uint32_t i = 0; i < stream->window; i++)
			stream_put(stream);
}

void stream_received(struct stream *stream)
{
	if (++stream->arrived < stream->window)
		return;
	stream->arrived = 0;
	if (stream->line)
		stream->module->credit(stream->line);
	else
		stream_say(stream, CONTROL_CREDIT, 0, 0);
}

bool stream_line_open(struct stream *stream, enum library library, struct line_request *request,
	struct line_address *own, char *why, size_t room)
{
	request->interface = stream->endpoint->line_interface;
	request->complain = complain;
	stream->module = library_module(library, why, room);
	if (stream->module)
		stream->line = stream->module->open(request, own, why, room);
	return stream->line;
}

void stream_numbers(struct stream *stream, const struct line_address *address)
{
	for (uint32_t i = 1; i < LINE_NUMBERS; i++)
		stream_say(stream, CONTROL_NUMBER, i, address->numbers[i]);
}

void stream_line_close(struct stream *stream)
{
	if (stream->line)
		stream->module->close(stream->line);
	stream->line = NULL;
}
