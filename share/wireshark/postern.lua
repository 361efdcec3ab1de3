-- SPDX-License-Identifier: BSD-3-Clause
-- postern.lua - a Wireshark dissector for what Postern processes say to each other: doc/wire.md, every byte of it.
--
-- Wireshark and tshark load it from their directory of plugins (Help, About, Folders), or with
--
--     tshark -X lua_script:postern.lua -r FILE
--
-- PTL_CAPTURE=FILE makes such a file. Frames are taken by EtherType 0x88b5, with or without VLAN tags, and by UDP port
-- 34997, which is a preference. What is known of other frames (acknowledged in, request in, response in, retransmission)
-- is found in the order of the file, once, and kept; "acknowledged in" and "response in" need the second look that Wireshark
-- always takes, and tshark with -2.
--
-- D1. Every byte is looked for before it is read: a frame that is too short for what it says is shown as malformed, one that
--     the capture has cut as cut; neither is a Lua error.
-- D2. What is remembered of a capture is made on the first visit of a frame only, and forgotten with it: forget().

local postern = Proto("postern", "Postern")

local ETHERTYPE = 0x88b5
local MARKED = 0xffff -- in captures of UDP sockets: a frame that met congestion (ECN)
local UDP_PORT = 34997
local VERSION = 5
local HEADER = 64
local NAME = 88
local SACK = 32
local WINDOW = 256 -- frames in flight at most
local RECORD, RECORD_WHOLE = 16, 8
local MESSAGE, MESSAGE_LEAST = 64, 24
local PSNS = 2 ^ 32
local REMEMBERED = 1024 -- psns behind the acknowledged ones that a late copy is recognised by
local QUICK = 256 -- bytes that a checksum is quickly computed of
local REASSEMBLED_MAX = 256 * 2 ^ 20 -- bytes of all messages that are kept in pieces

local TYPES = {[1] = "Data", [2] = "Ack", [3] = "Ask", [4] = "Tell", [5] = "Reset", [6] = "Bye", [7] = "Ping", [8] = "Pong",
	[9] = "Find", [10] = "Found"}
local DATA, ACK, ASK, TELL, RESET, BYE, PING, PONG, FIND, FOUND = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
local RECORDS = {[1] = "Start", [2] = "More", [3] = "Stop", [4] = "Whole", [5] = "Void", [6] = "Ring"}
local START, MORE, STOP, WHOLE, VOID, RING = 1, 2, 3, 4, 5, 6
local KINDS = {[1] = "Put", [2] = "Acknowledgement", [3] = "Get", [4] = "Reply", [5] = "Refusal", [6] = "Probe",
	[7] = "Store", [8] = "Load", [9] = "Stored", [10] = "Loaded", [11] = "Ask", [12] = "Atomic", [13] = "Fetch"}
local PUT, PUT_ACK, GET, REPLY, REFUSAL, PROBE = 1, 2, 3, 4, 5, 6
local STORE, LOAD, STORED, LOADED, ASK_AFTER, ATOMIC, FETCH = 7, 8, 9, 10, 11, 12, 13
-- Whose data are the request's
local BRINGS = {[PUT] = true, [STORE] = true, [ATOMIC] = true, [FETCH] = true}
local OPERATIONS = {[0] = "Minimum", [1] = "Maximum", [2] = "Sum", [3] = "Product", [4] = "Logical or", [5] = "Logical and", [6] = "Or", [7] = "And",
	[8] = "Logical exclusive or", [9] = "Exclusive or", [10] = "Swap", [11] = "Swap if equal", [12] = "Swap if not equal", [13] = "Swap if at most",
	[14] = "Swap if less", [15] = "Swap if at least", [16] = "Swap if greater", [17] = "Masked swap"}
local ELEMENTS = {[0] = "int8", [1] = "uint8", [2] = "int16", [3] = "uint16", [4] = "int32", [5] = "uint32", [6] = "float", [7] = "int64",
	[8] = "uint64", [9] = "double", [10] = "float complex", [11] = "double complex", [12] = "long double", [13] = "long double complex"}
local VERDICTS = {[0] = "Done", [1] = "Undeliverable", [2] = "Dropped", [3] = "Portal disabled", [4] = "Not for this user",
	[5] = "Not for this operation", [7] = "No such memory", [15] = "Done, nothing to tell"}
local SPACES = {[0] = "Portals 3.2", [1] = "Two-sided messages", [2] = "libfabric, messages", [3] = "libfabric, remote memory",
	[4] = "Portals 4", [5] = "Portals 4, matching", [6] = "Portals 4, ranks",
	[7] = "Portals 4, matching, ranks"}
local ASKED = {[0] = "A store or an atomic", [1] = "A load or a fetch"}
local STATUS = {[0] = "Bad", [1] = "Good", [2] = "Unverified"}

local preferences = postern.prefs
preferences.udp_port = Pref.uint("UDP port", UDP_PORT, "The UDP port of all processes, PTL_UDP_PORT; 0 for none")
preferences.checksums = Pref.enum("Validate checksums", 1, "Those that cover a whole frame of some kilobytes take a while", {
	{1, "Never", 0}, {2, "Of up to " .. QUICK .. " bytes", 1}, {3, "Always", 2}}, false)
preferences.reassemble = Pref.uint("Reassemble messages of at most", 1048576, "Bytes; 0 reassembles none")

-- --- fields ---

local f = {}
local function field(name, kind, title, ...)
	local made = ProtoField[kind]("postern." .. name, title, ...)
	f[name] = made
	return made
end

field("version", "uint8", "Version", base.DEC, nil, 0xf0)
field("type", "uint8", "Type", base.DEC, TYPES, 0x0f)
field("flags", "uint8", "Flags", base.HEX)
field("flags.sack", "bool", "Bitmap follows", 8, nil, 0x01)
field("flags.first", "bool", "First: nothing of this stream has been acknowledged", 8, nil, 0x02)
field("flags.start", "bool", "Start: a message starts here", 8, nil, 0x04)
field("flags.ack_now", "bool", "Acknowledge now", 8, nil, 0x08)
field("flags.full_sum", "bool", "Checksum covers all", 8, nil, 0x10)
field("flags.ack_valid", "bool", "Acknowledgement valid", 8, nil, 0x20)
field("flags.will", "bool", "The will of a process that has ended", 8, nil, 0x40)
field("flags.sealed", "bool", "Sealed", 8, nil, 0x80)
field("length", "uint16", "Length")
field("checksum", "uint32", "Checksum", base.HEX)
field("checksum.status", "uint8", "Checksum status", base.DEC, STATUS)
field("dst", "string", "Destination")
field("dst.nid", "uint32", "Destination node")
field("dst.pid", "uint32", "Destination process")
field("src", "string", "Source")
field("src.nid", "uint32", "Source node")
field("src.pid", "uint32", "Source process")
field("src.incarnation", "uint32", "Source incarnation", base.HEX)
field("dst.incarnation", "uint32", "Destination incarnation", base.HEX)
field("seq", "uint32", "Sequence number (psn)")
field("ack", "uint32", "Acknowledgement number")
field("stream", "uint16", "Stream")
field("ack_stream", "uint16", "Acknowledged stream")
field("timestamp", "uint32", "Timestamp", base.DEC)
field("echo", "uint32", "Echoed timestamp", base.DEC)
field("delay", "uint32", "Delay until echoed (ns)", base.DEC)
field("credit", "uint16", "Credit")
field("records", "uint8", "Records")
field("marks", "uint8", "Frames that met congestion, modulo 256")
field("first", "uint32", "First sequence number of the stream")
field("told", "uint32", "First sequence number of streams to the sender")
field("generation", "uint16", "Generation of that number, lower half")
field("key", "uint32", "Key id", base.HEX)
field("sealed", "bytes", "Sealed")
field("question", "uint64", "Number of the question", base.HEX)
field("ping.seq", "uint32", "Number of the question")
field("ping.wanted", "uint32", "Length wanted of the answer")
field("ping.arrived", "uint32", "Length of the question as it arrived")
field("ping.largest", "uint32", "Largest length of the answerer's own frames")
field("ping.padding", "bytes", "Padding of the echo")
field("name.host", "stringz", "Name of the host")
field("name.board", "uint32", "NIC of the host")
field("sack", "bytes", "Bitmap")
field("sack.le", "uint32", "Arrived from")
field("sack.re", "uint32", "Arrived up to and including")
field("sack.count", "uint16", "Frames that have arrived out of order")
field("record", "none", "Record")
field("record.kind", "uint8", "Kind", base.DEC, RECORDS)
field("record.header_length", "uint8", "Message header length")
field("record.data_length", "uint16", "Data length")
field("record.message", "uint32", "Message number")
field("record.length", "uint64", "Message length")
field("record.offset", "uint64", "Offset in the message")
field("record.stream", "uint64", "Stream of the message")
field("record.padding", "bytes", "Padding")
field("data", "bytes", "Data")
field("msg", "none", "Message header")
field("msg.kind", "uint8", "Kind", base.DEC, KINDS)
field("msg.space", "uint8", "Space", base.DEC, SPACES)
field("msg.detail", "uint16", "Detail", base.HEX)
field("msg.ask", "uint16", "Asked about", base.DEC, ASKED)
field("msg.amo", "uint16", "Atomic operation", base.DEC, OPERATIONS, 0x00ff)
field("msg.type", "uint16", "Type of elements", base.DEC, ELEMENTS, 0xff00)
field("msg.verdict", "uint16", "What became of the request", base.DEC, VERDICTS, 0x0f)
field("msg.list", "uint16", "List of the Portal that took it", base.DEC, nil, 0x10)
field("msg.uid", "uint32", "User id")
field("msg.portal", "uint32", "Portal")
field("msg.cookie", "uint32", "Cookie")
field("msg.match_bits", "uint64", "Match bits", base.HEX)
field("msg.offset", "uint64", "Offset")
field("msg.handle", "uint64", "Memory descriptor handle", base.HEX)
field("msg.requested", "uint64", "Requested length")
field("msg.value", "uint64", "Value", base.HEX)
field("msg.hdr_data", "uint64", "Header data", base.HEX)
field("msg.manipulated", "uint64", "Manipulated length")
field("msg.operation", "uint64", "Operation")
field("msg.extra", "bytes", "Unknown header")
field("trailer", "bytes", "Padding of the Ethernet frame")
field("acked_in", "framenum", "Acknowledged in", base.NONE, frametype.ACK)
field("ack_time", "relative_time", "Time until acknowledged")
field("acks", "framenum", "Acknowledges frame", base.NONE, frametype.ACK)
field("echo_frame", "framenum", "Echoes the timestamp of", base.NONE, frametype.NONE)
field("rtt", "relative_time", "Round trip since that frame")
field("network_rtt", "relative_time", "Round trip without the delay")
field("request_in", "framenum", "Request in", base.NONE, frametype.REQUEST)
field("response_in", "framenum", "Response in", base.NONE, frametype.RESPONSE)
field("response_time", "relative_time", "Time from request to response")
field("retransmission_of", "framenum", "Retransmission of", base.NONE, frametype.RETRANS_PREV)
field("retransmission_time", "relative_time", "Time since it was sent last")
field("same_frame", "framenum", "The same frame on another interface", base.NONE, frametype.NONE)
field("reassembled_in", "framenum", "Message complete in", base.NONE, frametype.NONE)
field("fragment", "framenum", "Part of the message in", base.NONE, frametype.NONE)
field("reassembled.length", "uint32", "Reassembled message length")
field("reassembled.data", "bytes", "Reassembled message")
for _, made in pairs(f) do
	table.insert(postern.fields, made)
end

local e = {
	malformed = ProtoExpert.new("postern.malformed", "Malformed frame", expert.group.MALFORMED, expert.severity.ERROR),
	cut = ProtoExpert.new("postern.cut", "The capture has only a part of this frame", expert.group.UNDECODED,
		expert.severity.CHAT),
	checksum = ProtoExpert.new("postern.checksum.bad", "Bad checksum", expert.group.CHECKSUM, expert.severity.ERROR),
	retransmission = ProtoExpert.new("postern.retransmission", "Retransmission", expert.group.SEQUENCE, expert.severity.NOTE),
	spurious = ProtoExpert.new("postern.spurious_retransmission", "Retransmission of what had been acknowledged",
		expert.group.SEQUENCE, expert.severity.NOTE),
	duplicate = ProtoExpert.new("postern.duplicate", "The network has repeated this frame", expert.group.SEQUENCE,
		expert.severity.NOTE),
	disorder = ProtoExpert.new("postern.out_of_order", "Out of order", expert.group.SEQUENCE, expert.severity.NOTE),
	gap = ProtoExpert.new("postern.lost", "A frame before this one is not in the capture", expert.group.SEQUENCE,
		expert.severity.NOTE),
	reset = ProtoExpert.new("postern.reset", "What the receiver sent is refused", expert.group.SEQUENCE, expert.severity.WARN),
	bye = ProtoExpert.new("postern.bye", "The process has ended", expert.group.SEQUENCE, expert.severity.CHAT),
	refusal = ProtoExpert.new("postern.refused", "The target has discarded the get, or does not know it",
		expert.group.RESPONSE_CODE, expert.severity.NOTE),
	congestion = ProtoExpert.new("postern.congestion", "Frames met congestion on their way", expert.group.SEQUENCE,
		expert.severity.NOTE),
}
for _, made in pairs(e) do
	table.insert(postern.experts, made)
end

local interface_field = Field.new("frame.interface_id")

-- --- what is remembered of the capture: D2 ---

local found -- by frame number: what is known of it
local flows -- by sender's life, receiver and stream
local stamps -- by sender's life and timestamp: the frame with it
local pending -- requests without an answer, by what their answer will say
local kept -- bytes of unfinished messages

local function forget()
	found, flows, stamps, pending, kept = {}, {}, {}, {}, 0
end

local function flow_of(from, incarnation, to, stream)
	local key = from .. "/" .. incarnation .. ">" .. to .. "/" .. stream
	local flow = flows[key]
	if not flow then
		flow = {psns = {}, messages = {}}
		flows[key] = flow
	end
	return flow
end

-- The difference of two numbers that wrap round.
local function after(a, b)
	local difference = (a - b) % PSNS
	return difference < PSNS / 2 and difference or difference - PSNS
end

-- Frames with data: new, sent again, seen twice?
local function remember_data(note, flow, header)
	local sent = flow.psns[header.psn]
	local seen = sent and sent.seen[header.timestamp]
	note.flow = flow
	if not sent then
		-- seen: each time that it was sent, by its timestamp: what was sent first may arrive when it has been sent again.
		sent = {frame = note.number, time = note.time, seen = {}}
		sent.seen[header.timestamp] = {frame = note.number, interface = note.interface}
		flow.psns[header.psn] = sent
		local ahead = flow.newest and after(header.psn, flow.newest)
		if ahead and ahead > 1 then
			note.gap = ahead - 1
		elseif ahead and ahead < 0 then
			-- Was it written after frames that come later? Then it had been sent before.
			note.late = after(header.timestamp, flow.newest_stamp) > 0
			note.disorder = not note.late
		end
		if not ahead or ahead > 0 then
			flow.newest, flow.newest_stamp = header.psn, header.timestamp
		end
		flow.una = flow.una or header.psn
	elseif seen then
		if note.interface ~= seen.interface then
			note.same = seen.frame
		else
			note.duplicate = seen.frame
		end
		note.sent = sent
		return
	else
		note.again = {frame = sent.frame, time = sent.time, acked = sent.acked}
		sent.frame, sent.time = note.number, note.time
		sent.seen[header.timestamp] = {frame = note.number, interface = note.interface}
	end
	note.sent = sent
	note.sent_time = note.time
end

local function acknowledge(note, flow, psn)
	local sent = flow.psns[psn]
	if sent and not sent.acked then
		sent.acked, sent.acked_time = note.number, note.time
		table.insert(note.acks, sent.frame)
	end
end

local function remember_ack(note, flow, header, bits)
	note.acks = {}
	local marks = (header.marks - (flow.marks or 0)) % 256
	if marks > 0 and marks < 128 then
		note.marked, flow.marks = true, header.marks
	end
	if not flow.una then
		return
	end
	local steps = after(header.ack, flow.una)
	if steps > REMEMBERED then -- frames that the capture has not
		flow.psns, flow.una = {}, header.ack
	end
	for _ = 1, steps > REMEMBERED and 0 or steps do
		acknowledge(note, flow, flow.una)
		flow.psns[(flow.una - REMEMBERED) % PSNS] = nil
		flow.una = (flow.una + 1) % PSNS
	end
	for bit in pairs(bits) do
		acknowledge(note, flow, (header.ack + 1 + bit) % PSNS)
	end
end

-- Requests wait for answers under what the answer will repeat. Of equal ones the oldest is answered first.
local function ask(key, request)
	pending[key] = pending[key] or {}
	table.insert(pending[key], request)
end

local function answer(key, note, keep)
	local list = pending[key]
	local request = list and list[1]
	if not request then
		return nil
	end
	if not keep then
		table.remove(list, 1)
		if #list == 0 then
			pending[key] = nil
		end
		request.response, request.response_time = note.number, note.time
	end
	return request
end

local function message_key(header, record, request)
	local from, to, incarnation = header.source, header.destination, header.source_incarnation
	if not request then
		from, to, incarnation = to, from, header.destination_incarnation
	end
	local get = record.kind == GET or record.kind == REPLY or record.kind == REFUSAL or record.kind == PROBE
	if record.kind >= STORE then
		return "call" .. from .. "/" .. incarnation .. ">" .. to .. "/" .. record.operation
	end
	return (get and "get" or "put") .. from .. "/" .. incarnation .. ">" .. to .. "/" .. record.handle .. "/" .. record.operation
end

-- A message's first record, seen for the first time: is it a request, or an answer to one?
local function remember_message(note, header, message)
	local kind = message.kind
	if kind == GET or (kind == PUT and message.handle ~= "0") or kind == LOAD or kind == FETCH or
		((kind == STORE or kind == ATOMIC) and message.operation ~= "0") then
		message.request = {frame = note.number, time = note.time}
		ask(message_key(header, message, true), message.request)
	elseif kind == PUT_ACK or kind == REPLY or kind == REFUSAL or kind == STORED or kind == LOADED then
		message.answered = answer(message_key(header, message, false), note)
	elseif kind == PROBE or kind == ASK_AFTER then
		message.answered = answer(message_key(header, message, true), note, true)
	end
	message.frame, message.time = note.number, note.time
end

-- Data of a message: a piece of what may become whole.
local function remember_piece(note, message, offset, data)
	local limit = preferences.reassemble
	if message.whole or message.pieces == false or data == "" then
		return
	end
	message.pieces = message.pieces or {}
	if message.pieces[offset] then
		return
	end
	if message.length > limit or kept + #data > REASSEMBLED_MAX then
		for _, piece in pairs(message.pieces) do
			kept = kept - #piece
		end
		message.pieces = false
		return
	end
	message.pieces[offset] = data
	message.have = (message.have or 0) + #data
	message.frames = message.frames or {}
	table.insert(message.frames, note.number)
	kept = kept + #data
	if message.have < message.length or #message.frames == 1 then
		return
	end
	local ordered, text, at = {}, {}, 0
	for start in pairs(message.pieces) do
		table.insert(ordered, start)
	end
	table.sort(ordered)
	for _, start in ipairs(ordered) do
		if start ~= at then -- pieces that overlap: nobody sends these
			message.pieces = false
			return
		end
		table.insert(text, message.pieces[start])
		at = at + #message.pieces[start]
	end
	message.whole = table.concat(text)
	message.whole_in = note.number
	message.pieces = nil
	note.completes = note.completes or {}
	table.insert(note.completes, message)
end

-- --- showing ---

local function seconds(difference)
	local whole = math.floor(difference)
	return NSTime.new(whole, math.floor((difference - whole) * 1e9 + 0.5))
end

local function generated(tree, name, value)
	local item = tree:add(f[name], value)
	item:set_generated()
	return item
end

local function node_name(nid)
	if nid < 2 ^ 24 then
		return string.format("%d", nid)
	end
	return string.format("%d.%d.%d.%d", math.floor(nid / 2 ^ 24), math.floor(nid / 2 ^ 16) % 256, math.floor(nid / 256) % 256,
		nid % 256)
end

local function malformed(tree, pinfo, text)
	tree:add_proto_expert_info(e.malformed, "Malformed: " .. text)
	pinfo.cols.info:append(" [Malformed: " .. text .. "]")
end

-- Are there so many bytes from `at` on? Says what is wrong if not: D1.
local function there(buffer, at, length, tree, pinfo, what)
	if at + length <= buffer:len() then
		return true
	end
	if at + length <= buffer:reported_len() then
		tree:add_proto_expert_info(e.cut)
		pinfo.cols.info:append(" [cut by the capture]")
	else
		malformed(tree, pinfo, what .. " ends after " .. math.max(buffer:reported_len() - at, 0) .. " of " .. length .. " bytes")
	end
	return false
end

-- --- checksum ---

local bits = rawget(_G, "bit") or rawget(_G, "bit32")
local crc_table

local function crc_prepare()
	crc_table = {}
	for byte = 0, 255 do
		local value = byte
		for _ = 1, 8 do
			local odd = value % 2 == 1
			value = math.floor(value / 2)
			if odd then
				value = bits.bxor(value, 0x82f63b78) % 2 ^ 32
			end
		end
		crc_table[byte] = value
	end
end

local function crc32c(text)
	local value = 0xffffffff
	if not crc_table then
		crc_prepare()
	end
	for at = 1, #text do
		value = bits.bxor(math.floor(value / 256), crc_table[bits.bxor(value % 256, text:byte(at)) % 256]) % 2 ^ 32
	end
	return 0xffffffff - value
end

-- Of the frame, 2 when it is not looked at.
local function checksum_status(buffer, header)
	local covered = header.full_sum and header.length or HEADER + (header.sack and SACK or 0)
	if not bits or preferences.checksums == 0 or covered > buffer:len() or (preferences.checksums == 1 and covered > QUICK) then
		return 2
	end
	local text = buffer:raw(0, 4) .. "\0\0\0\0" .. buffer:raw(8, covered - 8)
	if covered % 8 ~= 0 then
		text = text .. string.rep("\0", 8 - covered % 8)
	end
	return crc32c(text) == header.checksum and 1 or 0
end

-- --- the parts of a frame ---

local function header_read(buffer)
	local flags = buffer(1, 1):uint()
	local function flag(value)
		return math.floor(flags / value) % 2 == 1
	end
	local header = {
		version = math.floor(buffer(0, 1):uint() / 16), type = buffer(0, 1):uint() % 16,
		sack = flag(1), first = flag(2), start = flag(4), ack_now = flag(8), full_sum = flag(16), ack_valid = flag(32),
		will = flag(64), sealed = flag(128),
		length = buffer(2, 2):le_uint(), checksum = buffer(4, 4):le_uint(),
		source_incarnation = buffer(24, 4):le_uint(), destination_incarnation = buffer(28, 4):le_uint(),
		psn = buffer(32, 4):le_uint(), ack = buffer(36, 4):le_uint(),
		stream = buffer(40, 2):le_uint(), ack_stream = buffer(42, 2):le_uint(),
		timestamp = buffer(44, 4):le_uint(), echo = buffer(48, 4):le_uint(), delay = buffer(52, 4):le_uint(),
		credit = buffer(56, 2):le_uint(), records = buffer(58, 1):uint(), marks = buffer(59, 1):uint(),
		first_psn = buffer(60, 4):le_uint(),
	}
	header.destination = node_name(buffer(8, 4):le_uint()) .. ":" .. buffer(12, 4):le_uint()
	header.source = node_name(buffer(16, 4):le_uint()) .. ":" .. buffer(20, 4):le_uint()
	header.echoing = header.type == PING or header.type == PONG
	header.naming = header.type == FIND or header.type == FOUND
	return header
end

local function flags_show(buffer, tree)
	local flags = tree:add(f["flags"], buffer(1, 1))
	for _, name in ipairs({"sack", "first", "start", "ack_now", "full_sum", "ack_valid", "will", "sealed"}) do
		flags:add(f["flags." .. name], buffer(1, 1))
	end
end

local function numbers_show(buffer, tree, header)
	if header.echoing then
		tree:add_le(f["ping.seq"], buffer(32, 4))
		tree:add_le(f[header.type == PING and "ping.wanted" or "ping.arrived"], buffer(36, 4))
		return
	end
	if header.type == ASK or header.type == TELL or header.naming then
		tree:add_le(f["question"], buffer(32, 8))
		if header.type == TELL then
			tree:add_le(f["generation"], buffer(40, 2))
		end
		return
	end
	if header.type == DATA or header.type == BYE then
		tree:add_le(f["seq"], buffer(32, 4))
	end
	if header.ack_valid or header.type == RESET then
		tree:add_le(f["ack"], buffer(36, 4))
	elseif header.type == DATA and header.first then
		tree:add_le(f["told"], buffer(36, 4))
	end
	if header.type == DATA or header.type == RESET or header.type == BYE then
		tree:add_le(f["stream"], buffer(40, 2))
	end
	if header.ack_valid or header.type == RESET then
		tree:add_le(f["ack_stream"], buffer(42, 2))
	elseif header.type == DATA and header.first then
		tree:add_le(f["generation"], buffer(42, 2))
	end
end

local function header_show(buffer, tree, header)
	tree:add(f["version"], buffer(0, 1))
	tree:add(f["type"], buffer(0, 1))
	flags_show(buffer, tree)
	tree:add_le(f["length"], buffer(2, 2))
	if header.sealed or header.will then -- its checksum is a seal's
		tree:add_le(f["key"], buffer(4, 4))
		generated(tree, "dst", header.destination)
		generated(tree, "src", header.source)
		tree:add(f["sealed"], buffer(32, buffer:len() - 32))
		return 2
	end
	local checksum = tree:add_le(f["checksum"], buffer(4, 4))
	local status = checksum_status(buffer, header)
	generated(tree, "checksum.status", status)
	if status == 0 then
		checksum:add_proto_expert_info(e.checksum)
	end
	generated(tree, "dst", header.destination)
	tree:add_le(f["dst.nid"], buffer(8, 4))
	tree:add_le(f["dst.pid"], buffer(12, 4))
	generated(tree, "src", header.source)
	tree:add_le(f["src.nid"], buffer(16, 4))
	tree:add_le(f["src.pid"], buffer(20, 4))
	tree:add_le(f["src.incarnation"], buffer(24, 4))
	tree:add_le(f["dst.incarnation"], buffer(28, 4))
	numbers_show(buffer, tree, header)
	tree:add_le(f["timestamp"], buffer(44, 4))
	if header.ack_valid or header.type == TELL or header.type == PONG then
		tree:add_le(f["echo"], buffer(48, 4))
	end
	if header.ack_valid or header.type == PONG then
		tree:add_le(f["delay"], buffer(52, 4))
	end
	if header.ack_valid then
		tree:add_le(f["credit"], buffer(56, 2))
	end
	tree:add(f["records"], buffer(58, 1))
	if header.ack_valid then
		tree:add(f["marks"], buffer(59, 1))
	end
	if header.first and header.type ~= RESET or header.type == PONG then
		tree:add_le(f[header.type == PONG and "ping.largest" or "first"], buffer(60, 4))
	elseif header.type == TELL then
		tree:add_le(f["told"], buffer(60, 4))
	end
	return status
end

-- The bitmap; returns the set of its bits.
local function sack_show(buffer, tree, header)
	local set, count, begun = {}, 0, nil
	local item = tree:add(f["sack"], buffer(HEADER, SACK))
	for bit = 0, WINDOW do
		local arrived = bit < WINDOW and math.floor(buffer(HEADER + math.floor(bit / 8), 1):uint() / 2 ^ (bit % 8)) % 2 == 1
		if arrived then
			set[bit], count = true, count + 1
			begun = begun or bit
		elseif begun then
			item:add(f["sack.le"], buffer(HEADER + math.floor(begun / 8), 1), (header.ack + 1 + begun) % PSNS)
			item:add(f["sack.re"], buffer(HEADER + math.floor((bit - 1) / 8), 1), (header.ack + bit) % PSNS)
			begun = nil
		end
	end
	generated(item, "sack.count", count)
	return set, count
end

local function message_show(buffer, at, length, tree, pinfo, record)
	local item = tree:add(f["msg"], buffer(at, length))
	if length < MESSAGE_LEAST or length > MESSAGE or length % 8 ~= 0 then
		item:add(f["msg.extra"], buffer(at, length))
		malformed(item, pinfo, "a message header of " .. length .. " bytes")
		return nil
	end
	-- Zero words at the end are not sent.
	local function word(offset)
		return offset < length and buffer(at + offset, 8):le_uint64() or UInt64.new(0)
	end
	local function show(name, offset)
		if offset < length then
			item:add_le(f[name], buffer(at + offset, 8))
		else
			generated(item, name, UInt64.new(0))
		end
	end
	local kind = buffer(at, 1):uint()
	local message = {
		kind = kind, name = KINDS[kind] or "Kind " .. kind,
		portal = buffer(at + 8, 4):le_uint(),
		match_bits = buffer(at + 16, 8):le_uint64(),
		handle = tostring(word(48)),
		operation = tostring(word(40)),
		length = record.extent,
	}
	item:add(f["msg.kind"], buffer(at, 1))
	item:add(f["msg.space"], buffer(at + 1, 1))
	item:add_le(f["msg.detail"], buffer(at + 2, 2))
	if kind == STORED or kind == LOADED then
		item:add_le(f["msg.verdict"], buffer(at + 2, 2))
		item:add_le(f["msg.list"], buffer(at + 2, 2))
	end
	if kind == ASK_AFTER then
		item:add_le(f["msg.ask"], buffer(at + 2, 2))
	end
	if kind == ATOMIC or kind == FETCH then
		item:add_le(f["msg.amo"], buffer(at + 2, 2))
		item:add_le(f["msg.type"], buffer(at + 2, 2))
	end
	item:add_le(f["msg.uid"], buffer(at + 4, 4))
	item:add_le(f["msg.portal"], buffer(at + 8, 4))
	item:add_le(f["msg.cookie"], buffer(at + 12, 4))
	item:add_le(f["msg.match_bits"], buffer(at + 16, 8))
	show(BRINGS[kind] and "msg.hdr_data" or (kind == PUT_ACK or kind == REPLY or kind == STORED or kind == LOADED) and "msg.manipulated" or "msg.value", 24)
	if BRINGS[kind] then
		generated(item, "msg.requested", UInt64.new(record.extent))
	else
		show("msg.requested", 32)
	end
	show("msg.operation", 40)
	show("msg.handle", 48)
	show("msg.offset", 56)
	item:append_text(": " .. message.name)
	if not KINDS[kind] then
		malformed(item, pinfo, "a message of kind " .. kind)
	end
	if kind == REFUSAL then
		item:add_proto_expert_info(e.refusal)
	end
	message.info = message.name
	if BRINGS[kind] or kind == GET or kind == LOAD then
		message.info = string.format("%s Portal=%d MatchBits=0x%s", message.name, message.portal,
			message.match_bits:tohex():gsub("^0+(.)", "%1"))
	end
	return message, item
end

local function message_links(tree, note, message)
	if message.request and message.request.response then
		generated(tree, "response_in", message.request.response)
		generated(tree, "response_time", seconds(message.request.response_time - message.request.time))
	end
	if message.answered then
		generated(tree, "request_in", message.answered.frame)
		if message.kind ~= PROBE and message.kind ~= ASK_AFTER then
			generated(tree, "response_time", seconds(message.time - message.answered.time))
		end
	end
	if message.whole_in and message.whole_in ~= note.number then
		generated(tree, "reassembled_in", message.whole_in)
	end
end

-- What a record of a kind that exists may say; nil when it is well.
local function record_fault(record)
	if record.kind == START or record.kind == WHOLE then
		return (record.header_length > 80 or record.header_length % 8 ~= 0) and "a message header of " .. record.header_length .. " bytes"
			or record.extent > 2 ^ 40 and "a message of " .. record.extent .. " bytes"
			or record.data_length > record.extent and "more data than the message has"
			or record.kind == START and record.data_length == record.extent and "a whole message, as one that is not"
			or nil
	end
	return record.header_length ~= 0 and "a message header where there is none"
		or record.kind == MORE and record.data_length == 0 and "no data"
		or record.kind == MORE and record.extent > 2 ^ 40 and "data beyond any message"
		or record.kind ~= MORE and record.data_length ~= 0 and "data where there is none"
		or record.kind == STOP and record.extent >= 2 ^ 16 and "a stream of more than 16 bits"
		or (record.kind == VOID or record.kind == RING) and record.extent ~= 0 and "an extent where there is none"
		or record.kind == RING and record.message ~= 0 and "a message where there is none"
		or nil
end

local function record_read(buffer, at)
	local record = {
		kind = buffer(at, 1):uint(), header_length = buffer(at + 1, 1):uint(), data_length = buffer(at + 2, 2):le_uint(),
		message = buffer(at + 4, 4):le_uint(),
	}
	record.extent = record.kind == WHOLE and record.data_length or buffer(at + 8, 8):le_uint64():tonumber()
	return record
end

local function record_show(buffer, at, tree, record)
	local extents = {[START] = "record.length", [MORE] = "record.offset", [STOP] = "record.stream"}
	tree:add(f["record.kind"], buffer(at, 1))
	tree:add(f["record.header_length"], buffer(at + 1, 1))
	tree:add_le(f["record.data_length"], buffer(at + 2, 2))
	tree:add_le(f["record.message"], buffer(at + 4, 4))
	if record.kind == WHOLE then
		generated(tree, "record.length", UInt64.new(record.data_length))
	elseif record.kind ~= VOID and record.kind ~= RING then
		tree:add_le(f[extents[record.kind] or "record.length"], buffer(at + 8, 8))
	end
end

local function record_info(record, message)
	if record.kind == RING then
		return "Ring"
	elseif record.kind == STOP or record.kind == VOID then
		return RECORDS[record.kind] .. " Msg=" .. record.message
	elseif record.kind == MORE then
		return string.format("More Msg=%d Offset=%.0f Len=%d", record.message, record.extent, record.data_length)
	end
	local info = (message and message.info or "Start") .. " Msg=" .. record.message
	if record.extent > record.data_length then
		return info .. string.format(" Len=%d/%.0f", record.data_length, record.extent)
	end
	return info .. " Len=" .. record.data_length
end

-- What a record of a sound frame tells of messages: remembered once, shown each time.
local function record_link(note, header, record, message, data)
	local messages = note.flow and note.flow.messages
	if not messages or record.kind == STOP or record.kind == VOID or record.kind == RING then
		return nil
	end
	if not note.visited then
		local known = messages[record.message]
		if record.kind ~= MORE and message and not known then
			remember_message(note, header, message)
			messages[record.message] = message
			known = message
		end
		if known and data then
			remember_piece(note, known, record.kind == MORE and record.extent or 0, data)
		end
		note.messages[record.number] = known
	end
	return note.messages[record.number]
end

-- One record; returns where the next one is, or nil when there is none to be found.
local function record_dissect(buffer, at, limit, number, tree, pinfo, note, header)
	if at + RECORD_WHOLE > limit then
		malformed(tree, pinfo, "record " .. number .. " lies beyond the length")
		return nil
	end
	if not there(buffer, at, RECORD_WHOLE, tree, pinfo, "record " .. number) then
		return nil
	end
	local head = buffer(at, 1):uint() == WHOLE and RECORD_WHOLE or RECORD
	if at + head > limit then
		malformed(tree, pinfo, "record " .. number .. " lies beyond the length")
		return nil
	end
	if not there(buffer, at, head, tree, pinfo, "record " .. number) then
		return nil
	end
	local record = record_read(buffer, at)
	record.number = number
	local length = head + record.header_length + record.data_length
	local padded = math.ceil(length / 8) * 8
	local item = tree:add(f["record"], buffer(at, math.min(padded, buffer:len() - at)))
	local message, header_item, data
	item:set_text("Record " .. number .. ": " .. (RECORDS[record.kind] or "unknown"))
	record_show(buffer, at, item, record)
	if not RECORDS[record.kind] then
		malformed(item, pinfo, "a record of kind " .. record.kind)
		return nil
	end
	local fault = record_fault(record)
	if fault then
		malformed(item, pinfo, fault)
		return nil
	end
	if at + padded > limit then
		malformed(item, pinfo, "record " .. number .. " ends beyond the length")
		return nil
	end
	if record.kind == RING and at + padded ~= limit then
		malformed(item, pinfo, "something behind a ring")
		return nil
	end
	if record.header_length > 0 then
		if not there(buffer, at + head, record.header_length, item, pinfo, "a message header") then
			return nil
		end
		message, header_item = message_show(buffer, at + head, record.header_length, item, pinfo, record)
	end
	local data_at = at + head + record.header_length
	local captured = math.max(math.min(record.data_length, buffer:len() - data_at), 0)
	if captured > 0 then
		item:add(f["data"], buffer(data_at, captured))
		if captured == record.data_length then
			data = buffer:raw(data_at, captured)
		end
	end
	local known = record_link(note, header, record, message, data)
	if known then
		message_links(header_item or item, note, known)
	end
	local info = record_info(record, message)
	item:append_text(", " .. info)
	pinfo.cols.info:append(", " .. info)
	if not there(buffer, data_at, record.data_length, item, pinfo, "data") then
		return nil
	end
	if padded > length and there(buffer, at + length, padded - length, item, pinfo, "padding") then
		item:add(f["record.padding"], buffer(at + length, padded - length))
	end
	return at + padded
end

local function records_dissect(buffer, tree, pinfo, note, header)
	local at = HEADER + (header.sack and SACK or 0)
	for number = 1, header.records do
		at = record_dissect(buffer, at, header.length, number, tree, pinfo, note, header)
		if not at then
			return
		end
	end
	if at ~= header.length and not header.echoing and not header.naming then
		malformed(tree, pinfo, "bytes between the last record and the length")
	end
end

local function wholes_show(tree, note)
	for _, message in ipairs(note.completes or {}) do
		local whole = ByteArray.new(message.whole, true):tvb("Postern message")
		local item = tree:add(f["reassembled.data"], whole(0, whole:len()))
		item:set_generated()
		item:prepend_text(string.format("[%d frames] ", #message.frames))
		for _, number in ipairs(message.frames) do
			generated(item, "fragment", number)
		end
		generated(item, "reassembled.length", whole:len())
	end
end

-- --- what frames have to do with each other ---

local function remember(note, header, set)
	local source = header.source .. "/" .. header.source_incarnation
	if header.type == DATA then
		remember_data(note, flow_of(header.source, header.source_incarnation, header.destination, header.stream), header)
	end
	if header.ack_valid then
		remember_ack(note, flow_of(header.destination, header.destination_incarnation, header.source, header.ack_stream), header,
			set)
		note.echoed = stamps[header.destination .. "/" .. header.destination_incarnation .. "/" .. header.echo]
	end
	if not note.same and not note.duplicate then
		stamps[source .. "/" .. header.timestamp] = {frame = note.number, time = note.time}
	end
	if header.type == ASK then
		note.request = {frame = note.number, time = note.time}
		pending["ask" .. header.source .. ">" .. header.destination .. "/" .. header.timestamp] = {note.request}
	elseif header.type == TELL then
		note.answered = answer("ask" .. header.destination .. ">" .. header.source .. "/" .. header.echo, note)
	elseif header.type == PING then
		note.request = {frame = note.number, time = note.time}
		pending["ping" .. header.source .. ">" .. header.destination .. "/" .. header.psn .. "/" .. header.timestamp] = {note.request}
	elseif header.type == PONG then
		note.answered = answer("ping" .. header.destination .. ">" .. header.source .. "/" .. header.psn .. "/" .. header.echo, note)
	end
end

local function links_data(tree, pinfo, note)
	if note.again then
		local item = generated(tree, "retransmission_of", note.again.frame)
		generated(tree, "retransmission_time", seconds(note.time - note.again.time))
		item:add_proto_expert_info(note.again.acked and e.spurious or e.retransmission)
		pinfo.cols.info:prepend(note.again.acked and "[Spurious retransmission] " or "[Retransmission] ")
	elseif note.same then
		generated(tree, "same_frame", note.same)
	elseif note.duplicate then
		generated(tree, "retransmission_of", note.duplicate):add_proto_expert_info(e.duplicate)
		pinfo.cols.info:prepend("[Duplicate] ")
	elseif note.late then
		tree:add_proto_expert_info(e.retransmission, "Retransmission of a frame that is not in the capture")
		pinfo.cols.info:prepend("[Retransmission] ")
	elseif note.disorder then
		tree:add_proto_expert_info(e.disorder)
		pinfo.cols.info:prepend("[Out of order] ")
	elseif note.gap then
		tree:add_proto_expert_info(e.gap, string.format("%d frame%s before this one not in the capture, or later in it", note.gap,
			note.gap == 1 and " is" or "s are"))
	end
	if note.sent and note.sent.acked then
		generated(tree, "acked_in", note.sent.acked)
		if note.sent_time and note.sent.acked_time >= note.sent_time then
			generated(tree, "ack_time", seconds(note.sent.acked_time - note.sent_time))
		end
	end
end

local function links(tree, pinfo, note, header)
	links_data(tree, pinfo, note)
	for _, number in ipairs(note.acks or {}) do
		generated(tree, "acks", number)
	end
	if note.echoed then
		local trip = note.time - note.echoed.time
		generated(tree, "echo_frame", note.echoed.frame)
		generated(tree, "rtt", seconds(trip))
		if trip >= header.delay / 1e9 then
			generated(tree, "network_rtt", seconds(trip - header.delay / 1e9))
		end
	end
	if note.request and note.request.response then
		generated(tree, "response_in", note.request.response)
		generated(tree, "response_time", seconds(note.request.response_time - note.request.time))
	end
	if note.answered then
		generated(tree, "request_in", note.answered.frame)
		generated(tree, "response_time", seconds(note.time - note.answered.time))
	end
	if note.marked then
		tree:add_proto_expert_info(e.congestion)
	end
	if header.type == RESET then
		tree:add_proto_expert_info(e.reset)
	elseif header.type == BYE then
		tree:add_proto_expert_info(e.bye)
	end
end

local function info_text(header)
	local text = string.format("%s %s → %s", TYPES[header.type] or "Type " .. header.type, header.source, header.destination)
	if header.sealed or header.will then
		return text .. (header.sealed and " Sealed" or " Will")
	elseif header.type == ASK then
		return string.format("Who is %s? Tell %s", header.destination, header.source)
	elseif header.type == TELL then
		return string.format("%s is here, incarnation 0x%08x, to %s", header.source, header.source_incarnation, header.destination)
	elseif header.echoing then
		return text .. string.format(" Id=%d Len=%d", header.psn, header.length)
	end
	if header.type == DATA then
		text = text .. string.format(" Stream=%d Seq=%d", header.stream, header.psn)
	elseif header.type == RESET then
		return text .. string.format(" Stream=%d Seq=%d refused", header.ack_stream, header.ack)
	end
	if header.ack_valid then
		text = text .. string.format(" Ack=%d/%d Credit=%d", header.ack_stream, header.ack, header.credit)
	end
	return text
end

-- What contradicts itself in the header; nil when nothing does.
local function header_fault(header)
	local least = HEADER + (header.sack and SACK or 0)
	return not TYPES[header.type] and "type " .. header.type
		or header.length < least and "a length of " .. header.length .. " bytes, at least " .. least .. " are needed"
		or header.length % 8 ~= 0 and not header.echoing and "a length that is no multiple of 8"
		or (header.type == DATA) ~= (header.records > 0) and header.records .. " records"
		or header.sack and not header.ack_valid and "a bitmap without an acknowledgement"
		or nil
end

local function note_of(pinfo)
	local note = found[pinfo.number]
	if pinfo.visited and note then
		note.visited = true
		return note
	end
	local interface = interface_field()
	note = {number = pinfo.number, time = pinfo.rel_ts, interface = interface and tostring(interface), messages = {}}
	found[pinfo.number] = note
	return note
end

function postern.dissector(buffer, pinfo, root)
	pinfo.cols.protocol = "Postern"
	pinfo.cols.info = ""
	local tree = root:add(postern, buffer(0, buffer:len()))
	if not there(buffer, 0, HEADER, tree, pinfo, "the header") then
		return buffer:len()
	end
	local header = header_read(buffer)
	if header.version ~= VERSION then
		tree:add(f["version"], buffer(0, 1))
		malformed(tree, pinfo, "version " .. header.version .. " is not known")
		return buffer:len()
	end
	pinfo.cols.info = info_text(header)
	tree:append_text(", " .. info_text(header))
	local status = header_show(buffer, tree, header)
	local fault = header_fault(header)
	local set, count = {}, 0
	if header.sealed or header.will then
		return buffer:len()
	end
	if fault then
		malformed(tree, pinfo, fault)
		return buffer:len()
	end
	if header.length > buffer:reported_len() then
		malformed(tree, pinfo, "a length of " .. header.length .. " bytes where there are " .. buffer:reported_len())
	end
	if header.sack then
		if not there(buffer, HEADER, SACK, tree, pinfo, "the bitmap") then
			return buffer:len()
		end
		set, count = sack_show(buffer, tree, header)
		pinfo.cols.info:append(" Sack=" .. count)
	end
	local note = note_of(pinfo)
	if status == 0 then -- nobody believes it
		pinfo.cols.info:append(" [Bad checksum]")
	elseif not note.visited then
		remember(note, header, set)
	end
	records_dissect(buffer, tree, pinfo, note, header)
	if header.echoing and header.length > HEADER and there(buffer, HEADER, header.length - HEADER, tree, pinfo, "the padding") then
		tree:add(f["ping.padding"], buffer(HEADER, header.length - HEADER))
	elseif header.naming and header.length == HEADER + NAME then
		tree:add(f["name.host"], buffer(HEADER, NAME - 4))
		tree:add_le(f["name.board"], buffer(HEADER + NAME - 4, 4))
	end
	links(tree, pinfo, note, header)
	wholes_show(tree, note)
	if buffer:len() > header.length then
		tree:add(f["trailer"], buffer(header.length, buffer:len() - header.length))
	end
	return buffer:len()
end

-- --- where frames come from ---

local port -- that the dissector is known by now

local function port_change()
	if port == preferences.udp_port then
		return
	end
	if port and port ~= 0 then
		DissectorTable.get("udp.port"):remove(port, postern)
	end
	port = preferences.udp_port
	if port ~= 0 then
		DissectorTable.get("udp.port"):add(port, postern)
	end
end

postern.init = forget
postern.prefs_changed = port_change
forget()
port_change()
DissectorTable.get("ethertype"):add(ETHERTYPE, postern)
DissectorTable.get("ethertype"):add(MARKED, postern)
