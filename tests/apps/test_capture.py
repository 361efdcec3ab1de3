#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PTL_CAPTURE, and share/wireshark/postern.lua on what it has captured, with tshark as a user has it."""
import os
import random
import re
import shutil
import struct
import subprocess
import unittest

import programs

SOURCE = os.environ.get("POSTERN_SOURCE", ".")
DISSECTOR = os.path.join(SOURCE, "share/wireshark/postern.lua")
VERSION = 5
SMALL, LARGE = 8, 65536
WORK = ("--iterations", "20", "--window", "8", "--sizes", f"{SMALL},{LARGE}", "--stats")
DATA, ACK, ASK, TELL, RESET, BYE, PING, PONG, FIND, FOUND = range(1, 11)
START, MORE, STOP = range(1, 4)
PUT, PUT_ACK, GET, REPLY, REFUSE, PROBE, STORE, LOAD, STORED, LOADED, ASK_AFTER, ATOMIC, FETCH = range(1, 14)
OK, DROPPED = 0, 2  # verdicts
OUTBOUND, INBOUND = 2, 1
FUZZED = 3000


def counter(text, name):
    """A counter in what --stats prints."""
    for line in text.splitlines():
        words = line.split()
        if len(words) > 1 and words[1] == name:
            return int(words[0])
    return 0


def content(path):
    with open(path, "rb") as file:
        return file.read()


def captured(name):
    """The frames of a pcapng file."""
    blocks, at = content(name), 0
    while at < len(blocks):
        kind, length = struct.unpack_from("<II", blocks, at)
        if kind == 6:
            size, = struct.unpack_from("<I", blocks, at + 20)
            yield blocks[at + 28:at + 28 + size]
        at += length


def write_pcap(name, frames):
    with open(name, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 262144, 1))
        for number, frame in enumerate(frames):
            file.write(struct.pack("<IIII", number, 0, len(frame), len(frame)) + frame)


def crc32c(data):
    value = 0xffffffff
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82f63b78 if value & 1 else 0)
    return value ^ 0xffffffff


def header(kind, flags, length, target, source, incarnations, numbers, times, first=0, padding=b"", records=0, streams=(0, 0), marks=0):
    """A frame by hand, for what no program here sends at will. numbers: psn, ack; times: timestamp, echo, delay."""
    def made(checksum):
        return struct.pack("<BBHI4I2I2I2H3IHBBI", VERSION << 4 | kind, flags, length, checksum, *target, *source, *incarnations, *numbers,
                           *streams, *times, 0, records, marks, first)
    covered = made(0) + padding
    return bytes(12) + b"\x88\xb5" + made(crc32c(covered + bytes(-len(covered) % 8))) + padding


class Case(programs.Case):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.directory, "file.pcapng")

    def tshark(self, file, *words):
        if shutil.which("tshark") is None:
            if os.environ.get("CI") == "true":
                self.fail("tshark is missing; scripts/install test installs it")
            self.skipTest("tshark is missing; scripts/install test installs it")
        done = subprocess.run(["tshark", "-X", f"lua_script:{DISSECTOR}", "-2", "-r", file, *words], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, errors="replace", timeout=programs.TIMEOUT, check=False,
                              env=programs.environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        for said in (done.stdout, done.stderr):
            self.assertNotIn("Lua Error", said)
            self.assertNotIn("Lua:", said)
        return done.stdout

    def rows(self, file, shown, *fields, columns=()):
        """A dictionary for each frame that the filter shows: of each field the list of its values."""
        names = ["frame.number", *columns, *fields]
        words = [word for name in names for word in ("-e", f"postern.{name}" if name in fields else name)]
        lines = self.tshark(file, "-Y", shown, "-T", "fields", "-E", "aggregator=|", *words).splitlines()
        return [{name: value.split("|") if value else [] for name, value in zip(names, line.split("\t"))} for line in lines]

    def exchange(self, *measures, server=None, **settings):
        """A client whose interface is captured and a server; what the client says."""
        server = server or {}
        self.start("postern-perf", "--server", "--once", **self.node(**server))
        done = self.expect_success(
            programs.run("postern-perf", "--peer", "1:1", "--pid", "2", *WORK, *measures,
                         **self.node(PTL_CAPTURE=self.file, **settings)))
        return done.stdout

    def sound(self, *fields):
        """The same of all frames of the capture, none of which may be malformed."""
        rows = self.rows(self.file, "frame", "type", "malformed", "checksum.bad", *fields, columns=("frame.protocols",))
        self.assertEqual([], [row for row in rows if row["malformed"] or row["checksum.bad"]])
        return rows


class Lossy(Case):
    """One exchange in which frames get lost at the server, both ways: what the client sends again is on its wire twice."""

    FIELDS = ("type", "src.pid", "dst.pid", "stream", "seq", "timestamp", "flags.full_sum", "flags.ack_valid", "ack_stream", "ack",
              "sack.le", "sack.re", "credit", "acked_in", "ack_time", "echo", "echo_frame", "rtt", "retransmission_of",
              "retransmission", "spurious_retransmission", "msg.kind", "msg.handle", "msg.operation", "msg.requested",
              "msg.manipulated", "record.kind", "record.length", "request_in", "response_in", "response_time", "reassembled_in",
              "reassembled.length", "fragment", "reassembled.data", "malformed", "checksum.bad")

    def test_a_capture_is_decoded_and_linked(self):
        said = self.exchange("bandwidth", "get-bandwidth", server={"PTL_FAULT": "drop=0.03,on=both,seed=5"},
                             PTL_CHECKSUM="full")
        rows = self.rows(self.file, "frame", *self.FIELDS, columns=("_ws.col.Protocol", "_ws.col.Info"))
        self.number = {int(row["frame.number"][0]): row for row in rows}
        self.assertEqual([], [row for row in rows if row["malformed"] or row["checksum.bad"]])
        self.frames(said)
        self.acknowledgements()
        self.gets()
        self.puts()
        self.wholes()
        self.columns()

    def of(self, source, kind=None):
        return {number: row for number, row in self.number.items()
                if row["src.pid"] == [source] and (kind is None or row["type"] == [str(kind)])}

    def again(self):
        """The frames that are marked as sent again."""
        return {number for number, row in self.number.items() if row["retransmission"] or row["spurious_retransmission"]}

    def frames(self, said):
        sent = self.of("2", DATA)
        self.assertEqual(len(self.number), len(self.of("1")) + len(self.of("2")))
        self.assertEqual({row["dst.pid"][0] for row in sent.values()}, {"1"})
        self.assertEqual({row["flags.full_sum"][0] for row in sent.values()}, {"1"})
        seen, again = {}, set()
        for number, row in sent.items():
            key = (row["stream"][0], row["seq"][0])
            if key in seen:
                again.add(number)
                self.assertEqual(row["retransmission_of"], [str(seen[key])])
            seen[key] = number
        self.assertEqual(self.again() & set(sent), again)
        self.assertGreater(counter(said, "retransmits"), 0)
        self.assertGreaterEqual(len(again), counter(said, "retransmits"))

    def acknowledgements(self):
        """What the dissector links is what a simple reading of the fields gives."""
        told = {number: row for number, row in self.of("1").items() if row["flags.ack_valid"] == ["1"]}
        self.assertTrue(any(row["sack.le"] for row in told.values()))
        self.assertTrue(all(0 < int(row["credit"][0]) <= 4096 for row in told.values()))
        missing = 0
        for number, row in self.of("2", DATA).items():
            found = next((other for other, ack in told.items() if self.acknowledges(ack, row)), None)
            missing += found is None
            self.assertEqual([str(found)] if found else [], row["acked_in"], f"frame {number}")
            if found and found > number:
                self.assertGreaterEqual(float(row["ack_time"][0]), 0)
        self.assertLess(missing, 8)  # at the end the client leaves
        echoes = [row for row in self.number.values() if row["echo_frame"]]
        self.assertGreater(len(echoes), 0)
        for row in echoes:
            self.assertEqual(self.number[int(row["echo_frame"][0])]["timestamp"], row["echo"])
            self.assertGreaterEqual(float(row["rtt"][0]), 0)

    @staticmethod
    def acknowledges(ack, data):
        seq = int(data["seq"][0])
        beyond = any((seq - int(low)) % 2 ** 32 <= (int(high) - int(low)) % 2 ** 32
                     for low, high in zip(ack["sack.le"], ack["sack.re"]))
        return ack["ack_stream"] == data["stream"] and (0 < (int(ack["ack"][0]) - seq) % 2 ** 32 < 2 ** 31 or beyond)

    def gets(self):
        asked = {number: row for number, row in self.of("2", DATA).items()
                 if set(row["msg.kind"]) == {str(GET)} and number not in self.again()}
        self.assertGreater(len(asked), 0)
        for number, row in asked.items():
            for i in range(len(row["msg.kind"])):
                self.assertIn(int(row["msg.requested"][i]), (SMALL, LARGE))
                answer = self.number[int(row["response_in"][i])]
                self.assertIn(str(REPLY), answer["msg.kind"])
                for name in ("msg.handle", "msg.operation"):
                    self.assertIn(row[name][i], answer[name])
                self.assertIn(row["msg.requested"][i], answer["msg.manipulated"])
                self.assertIn(row["msg.requested"][i], answer["record.length"])
                self.assertIn(str(number), answer["request_in"])
                self.assertGreater(int(row["response_in"][i]), number)
                self.assertGreaterEqual(float(row["response_time"][i]), 0)

    def puts(self):
        """A put says how long it is in its record alone; most say nothing of what they do not need."""
        put = [row for row in self.number.values() if row["msg.kind"] == [str(PUT)] and len(row["record.length"]) == 1]
        self.assertGreater(len(put), 0)
        for row in put:
            self.assertEqual(row["msg.requested"], row["record.length"])
        self.assertIn(["0"], [row["msg.operation"] for row in put])

    def wholes(self):
        whole = {number: row for number, row in self.number.items() if row["reassembled.length"]}
        self.assertGreaterEqual(len(whole), 40)
        for number, row in whole.items():
            self.assertEqual(set(row["reassembled.length"]), {str(LARGE)})
            self.assertIn(str(number), row["fragment"])
            self.assertGreater(len(row["fragment"]), 1)
            self.assertEqual(len(row["reassembled.data"][0]), 2 * LARGE)
        for row in self.number.values():
            self.assertTrue(all(int(number) in whole for number in row["reassembled_in"]))

    def columns(self):
        self.assertEqual({row["_ws.col.Protocol"][0] for row in self.number.values()}, {"Postern"})
        for part in ("Who is 1:1? Tell 1:2", "1:1 is here, incarnation 0x", "[Retransmission] Data 1:2", "Get Portal=",
                     "Reply Msg=", "More Msg=", " Sack=", "Ack 1:1 → 1:2"):
            self.assertTrue(any(part in row["_ws.col.Info"][0] for row in self.number.values()), part)


class Encapsulated(Case):
    def test_over_udp_with_arp(self):
        udp = {"PTL_ENCAP": "udp", "PTL_NID": ""}
        server = self.start("postern-perf", "--server", "--once", **{**self.memif(1), **udp, "PTL_IP": "10.1.0.1/24"})
        self.await_line(server, "Serving at 10.1.0.1:1")
        self.expect_success(
            programs.run("postern-perf", "--peer", "10.1.0.1:1", *WORK, "latency",
                         **{**self.memif(2), **udp, "PTL_IP": "10.1.0.2/24", "PTL_CAPTURE": self.file}))
        rows = self.sound("src.nid", "src")
        self.assertEqual({row["frame.protocols"][0] for row in rows}, {"eth:ethertype:arp", "eth:ethertype:ip:udp:postern"})
        data = [row for row in rows if row["type"] == [str(DATA)]]
        self.assertEqual({int(row["src.nid"][0]) for row in data}, {0x0a010001, 0x0a010002})
        self.assertTrue(all(row["src"][0].startswith("10.1.0.") for row in data))

    def test_with_a_vlan_tag(self):
        """And questions are linked with answers."""
        self.exchange("latency", server={"PTL_VLAN": "42"}, PTL_VLAN="42")
        rows = self.sound("request_in", "response_in", "timestamp", "echo", "response_time")
        self.assertEqual({row["frame.protocols"][0] for row in rows}, {"eth:ethertype:vlan:ethertype:postern"})
        told = [row for row in rows if row["type"] == [str(TELL)] and row["request_in"]]
        self.assertGreater(len(told), 0)
        for row in told:
            asked = rows[int(row["request_in"][0]) - 1]
            self.assertEqual(asked["type"], [str(ASK)])
            self.assertEqual(asked["timestamp"], row["echo"])
            self.assertGreater(float(row["response_time"][0]), 0)
        self.assertTrue(any(row["response_in"] for row in rows if row["type"] == [str(ASK)]))

    def test_acknowledgements_of_puts_are_linked(self):
        receiver = self.start("examples/hello", "receive", **self.node(PTL_CAPTURE=self.file))
        ready = self.await_line(receiver, ":")
        sender = programs.run("examples/hello", "send", re.search(r"\d+:\d+", ready).group(0), **self.node())
        self.expect_success(sender)
        self.assertEqual(self.finish(receiver)[0], 0)
        rows = self.sound("msg.kind", "msg.handle", "request_in", "response_in", "retransmission_of")
        puts = [row for row in rows if row["msg.kind"] == [str(PUT)] and row["response_in"] and not row["retransmission_of"]]
        self.assertGreater(len(puts), 0)
        for row in puts:
            answer = rows[int(row["response_in"][0]) - 1]
            self.assertEqual(answer["msg.kind"], [str(PUT_ACK)])
            self.assertEqual(answer["request_in"], row["frame.number"])
            self.assertEqual(answer["msg.handle"], row["msg.handle"])


class Local(Case):
    """Both ends in one process."""

    def test_two_interfaces_in_one_file(self):
        self.expect_success(programs.run("postern-perf", *WORK, "latency", "get-latency", PTL_CAPTURE=self.file))
        rows = self.rows(self.file, "frame", "type", "same_frame", "retransmission_of", "malformed",
                         columns=("frame.interface_id", "frame.packet_flags_direction", "frame.time_relative"))
        self.assertEqual({(row["frame.interface_id"][0], int(row["frame.packet_flags_direction"][0], 0)) for row in rows},
                         {(side, way) for side in "01" for way in (INBOUND, OUTBOUND)})
        data = [row for row in rows if row["type"] == [str(DATA)] and not row["retransmission_of"]]
        once = {row["frame.number"][0] for row in data if not row["same_frame"]}
        again = [row for row in data if row["same_frame"]]  # out of one interface and into the other: sent once
        self.assertGreater(len(again), 40)
        self.assertLessEqual(once, {row["same_frame"][0] for row in again})  # and what a busy machine sent again
        for row in again:
            self.assertNotEqual(rows[int(row["same_frame"][0]) - 1]["frame.interface_id"], row["frame.interface_id"])
        for side in "01":  # each interface's frames are in order; those of both are merged by other programs
            times = [float(row["frame.time_relative"][0]) for row in rows if row["frame.interface_id"][0] == side]
            self.assertEqual(times, sorted(times))

    def test_each_interface_may_have_a_file(self):
        names = os.path.join(self.directory, "%i.pcapng")
        self.expect_success(programs.run("postern-perf", *WORK, "latency", PTL_CAPTURE=f"{names};"))
        self.assertEqual(os.listdir(self.directory), ["0.pcapng"])
        self.assertGreater(len(list(captured(os.path.join(self.directory, "0.pcapng")))), 40)

    def test_frames_that_are_cut_are_not_malformed(self):
        self.expect_success(
            programs.run("postern-perf", *WORK, "latency", PTL_CAPTURE=self.file, PTL_CAPTURE_SNAPLEN="100"))
        self.assertEqual(max(len(frame) for frame in captured(self.file)), 100)
        self.assertTrue(any(row["cut"] for row in self.sound("cut")))

    def test_standard_output_is_the_capture_s_alone(self):
        done = subprocess.run([programs.program("postern-perf"), *WORK, "latency"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=programs.TIMEOUT, check=True,
                              env=programs.environment(PTL_CAPTURE="-"))
        name = os.path.join(self.directory, "standard.pcapng")
        with open(name, "wb") as file:
            file.write(done.stdout)
        self.assertGreater(len(list(captured(name))), 80)
        self.assertIn(b"Latency of put", done.stderr)

    def test_an_impossible_file_is_an_error_that_says_why(self):
        done = programs.run("postern-perf", *WORK, "latency", PTL_CAPTURE="/nowhere/at/all")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("cannot capture to /nowhere/at/all: No such file or directory: create its directory first", done.stderr)

    def test_a_full_disk_ends_the_capture_and_nothing_else(self):
        done = self.expect_success(programs.run("postern-perf", *WORK, "latency", PTL_CAPTURE="/dev/full"))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("the capture to /dev/full has ended and the program goes on: No space left on device", done.stderr)


class Made(Case):
    """Frames that were made by hand."""

    def test_names_of_hosts(self):
        near, far = (1, 10), (2, 20)
        write_pcap(self.file, [
            header(FIND, 16, 152, (0xffffffff, 20), near, (7, 0), (5, 70), (1000, 0, 0), padding=b"beta".ljust(84, b"\0") + b"\1\0\0\0"),
            header(FOUND, 16, 152, near, far, (9, 7), (5, 70), (50, 0, 0), padding=b"beta.example.org".ljust(84, b"\0") + b"\1\0\0\0"),
        ])
        find, found = self.sound("question", "name.host", "name.board", "checksum.status")
        self.assertEqual((find["name.host"], find["name.board"], find["checksum.status"]), (["beta"], ["1"], ["1"]))
        self.assertEqual((found["name.host"], found["question"]), (["beta.example.org"], find["question"]))

    def test_echoes_resets_and_congestion(self):
        near, far = (1, 10), (2, 20)
        frames = [
            header(PING, 16, 75, far, near, (7, 0), (5, 70), (1000, 0, 0), padding=bytes(range(11))),
            header(PONG, 16, 70, near, far, (9, 7), (5, 75), (50, 1000, 300), first=9000, padding=bytes(range(6))),
            header(RESET, 0, 64, near, far, (9, 7), (0, 1234), (0, 0, 0), streams=(0, 6)),
            header(ACK, 32, 64, near, far, (9, 7), (0, 99), (60, 1000, 10), streams=(0, 3), marks=1),
            header(ACK, 32, 64, near, far, (9, 7), (0, 99), (61, 1000, 10), streams=(0, 3), marks=1),
        ]
        write_pcap(self.file, frames)
        ping, pong, reset, ack, later = self.sound("ping.seq", "ping.wanted", "ping.arrived", "ping.largest", "ping.padding", "request_in",
                                            "response_in", "checksum.status", "delay", "reset", "ack", "ack_stream", "congestion",
                                            "marks")
        self.assertEqual([row["checksum.status"] for row in (ping, pong, reset, ack)], [["1"]] * 4)
        self.assertEqual((ping["ping.seq"], ping["ping.wanted"], ping["response_in"]), (["5"], ["70"], ["2"]))
        self.assertEqual(ping["ping.padding"], ["000102030405060708090a"])
        self.assertEqual((pong["ping.seq"], pong["ping.arrived"], pong["request_in"]), (["5"], ["75"], ["1"]))
        self.assertEqual((pong["ping.largest"], pong["delay"]), (["9000"], ["300"]))
        self.assertEqual((reset["ack"], reset["ack_stream"], bool(reset["reset"])), (["1234"], ["6"], True))
        self.assertEqual((ack["marks"], bool(ack["congestion"])), (["1"], True))
        self.assertEqual((later["marks"], bool(later["congestion"])), (["1"], False))

    def test_psns_that_are_told_come_with_their_generation(self):
        near, far = (1, 10), (2, 20)
        put = struct.pack("<BBHI", 4, 24, 0, 0) + struct.pack("<BBHIIIQ", PUT, 0, 0, 0, 0, 0, 0)
        write_pcap(self.file, [
            header(ASK, 0, 64, far, near, (7, 0), (5, 70), (1000, 0, 0)),
            header(ASK, 2, 64, far, near, (7, 0), (6, 70), (1000, 0, 0), first=11),
            header(TELL, 0, 64, near, far, (9, 7), (6, 70), (50, 1000, 0), first=22, streams=(333, 0)),
            header(DATA, 16 | 2 | 4, 64 + len(put), far, near, (7, 9), (23, 44), (1001, 0, 0), first=22, padding=put, records=1, streams=(8, 555)),
            header(DATA, 16 | 2 | 4 | 32, 64 + len(put), far, near, (7, 9), (23, 44), (1002, 50, 0), first=22, padding=put, records=1, streams=(8, 6)),
            header(RESET, 2, 64, near, far, (9, 7), (0, 23), (51, 0, 0), streams=(9, 8)),
        ])
        fields = ("first", "told", "generation", "stream", "ack", "ack_stream")
        rows = self.sound("question", "response_in", *fields)
        self.assertEqual([[row[name] for name in fields] for row in rows], [
            [[], [], [], [], [], []],
            [["11"], [], [], [], [], []],
            [[], ["22"], ["333"], [], [], []],
            [["22"], ["44"], ["555"], ["8"], [], []],
            [["22"], [], [], ["8"], ["44"], ["6"]],
            [[], [], [], ["9"], ["23"], ["8"]],
        ])
        self.assertEqual([row["response_in"] for row in rows[:2]], [[], ["3"]])
        self.assertEqual(rows[1]["question"], rows[2]["question"])

    def test_what_was_sent_first_may_arrive_when_it_has_been_sent_again(self):
        near, far = (1, 10), (2, 20)
        put = struct.pack("<BBHI", 4, 24, 0, 0) + struct.pack("<BBHIIIQ", PUT, 0, 0, 0, 0, 0, 0)

        def sent(stamp):
            return header(DATA, 16 | 4 | 2, 64 + len(put), near, far, (9, 7), (5, 0), (stamp, 0, 0), first=5, padding=put,
                          records=1, streams=(1, 0))
        write_pcap(self.file, [sent(100), sent(200), sent(100), sent(200)])
        rows = self.sound("retransmission_of", "retransmission")
        self.assertEqual([row["retransmission_of"] for row in rows], [[], ["1"], ["1"], ["2"]])
        self.assertEqual([bool(row["retransmission"]) for row in rows], [False, True, False, False])

    def test_a_message_may_be_void(self):
        near, far = (1, 10), (2, 20)
        records = (struct.pack("<BBHIQ", 1, 24, 0, 0, 5000) + struct.pack("<BBHIIIQ", PUT, 0, 0, 0, 0, 0, 0) +
                   struct.pack("<BBHIQ", 5, 0, 0, 0, 0))
        write_pcap(self.file, [header(DATA, 16 | 4 | 2, 64 + len(records), near, far, (9, 7), (5, 0), (100, 0, 0), first=5, padding=records,
                                      records=2, streams=(1, 0))])
        row, = self.sound("record.kind", "record.message", "record.length")
        self.assertEqual((row["record.kind"], row["record.message"], row["record.length"]), (["1", "5"], ["0", "0"], ["5000"]))


class Portals4(Case):
    """Each kind of message of Portals 4, with what was asked for and what became of it."""

    FIELDS = ("msg.kind", "msg.space", "msg.match_bits", "msg.portal", "msg.requested", "msg.manipulated", "msg.hdr_data", "msg.offset", "msg.amo", "msg.type",
              "msg.verdict", "record.length", "request_in", "response_in", "reassembled.length", "retransmission",
              "spurious_retransmission")
    # match bits, kind, kind of the answer, portal, length, header data, offset, operation and type, answer's verdict and length
    CALLS = ((0x51, STORE, STORED, 4, 40, 0xabc, 16, None, OK, 40),
             (0x52, STORE, STORED, 4, 30000, 0, 0, None, OK, 30000),
             (0x53, STORE, STORED, 5, 8, 0, 0, None, DROPPED, 0),
             (0x54, LOAD, LOADED, 4, 30000, None, 24, None, OK, 30000),
             (0x55, ATOMIC, STORED, 4, 24, 7, 32, (2, 8), OK, 24),
             (0x56, FETCH, LOADED, 4, 12, 8, 8, (1, 4), OK, 12),
             (0x57, FETCH, LOADED, 4, 16, 9, 8, (11, 9), OK, 8))  # the operand is of the request's data

    def test_requests_are_decoded_and_linked_to_their_answers(self):
        self.expect_success(programs.run(os.path.join(os.environ["POSTERN_BUILD"], "tests/apps/requests4"), PTL_IFACE_NAME="loop:a;loop:a",
                                         PTL_CAPTURE=os.path.join(self.directory, "%i.pcapng")))
        self.file = os.path.join(self.directory, "0.pcapng")
        self.number = {int(row["frame.number"][0]): row for row in self.sound(*self.FIELDS)}
        self.first = {number: row for number, row in self.number.items()
                      if not row["retransmission"] and not row["spurious_retransmission"]}
        kinds = [int(kind) for row in self.first.values() for kind in row["msg.kind"]]
        self.assertEqual(sorted(kinds), sorted(kind for call in self.CALLS for kind in call[1:3]))
        for call in self.CALLS:
            with self.subTest(call=hex(call[0])):
                self.call(*call)

    def call(self, bits, kind, answering, portal, length, hdr_data, offset, amo, verdict, moved):
        (number, request), = ((number, row) for number, row in self.first.items() if bits in [int(word, 16) for word in row["msg.match_bits"]])
        self.assertEqual(request["msg.kind"], [str(kind)])
        self.assertEqual(request["msg.space"], ["5"])  # matching, without ranks
        self.assertEqual(request["msg.portal"], [str(portal)])
        self.assertEqual(request["msg.requested"], [str(length)])
        self.assertEqual([int(word, 16) for word in request["msg.hdr_data"]], [] if hdr_data is None else [hdr_data])
        self.assertEqual(request["msg.offset"], [str(offset)])
        self.assertEqual([int(word) for word in request["msg.amo"] + request["msg.type"]], list(amo or ()))
        self.assertEqual(request["msg.verdict"], [])
        if kind != LOAD:
            self.assertEqual(request["record.length"], [str(length)])
        answer = self.number[int(request["response_in"][0])]
        self.assertEqual(answer["request_in"], [str(number)])
        self.assertEqual(answer["msg.kind"], [str(answering)])
        self.assertEqual(answer["msg.verdict"], [str(verdict)])
        self.assertEqual(answer["msg.manipulated"], [str(moved)])
        if answering == LOADED:
            self.assertEqual(answer["record.length"], [str(moved)])
        whole = {frame for frame, row in self.first.items() if row["reassembled.length"] == ["30000"]}
        self.assertEqual(len(whole), 2)  # a store and a load

    def test_questions_and_refusals(self):
        """What is sent after a long silence alone, by hand."""
        near, far = (1, 2), (2, 1)

        def sent(kind, detail, stamp, source, target):
            message = struct.pack("<BBHI", 4, 56, 0, 0) + struct.pack("<BBHIIIQ4Q", kind, 0, detail, 0, 4, 0, 0x61, 0, 0, 77, 5)
            return header(DATA, 16 | 4 | 2, 64 + len(message), target, source, (9, 7), (stamp, 0), (stamp, 0, 0), first=1, padding=message,
                          records=1, streams=(1, 0))
        write_pcap(self.file, [sent(PROBE, 0, 1, near, far), sent(ASK_AFTER, 1, 2, near, far), sent(REFUSE, 0, 1, far, near)])
        rows = self.sound("msg.kind", "msg.detail", "msg.operation", "msg.handle", "msg.ask")
        self.assertEqual([row["msg.kind"] for row in rows], [[str(PROBE)], [str(ASK_AFTER)], [str(REFUSE)]])
        self.assertEqual([int(row["msg.detail"][0], 16) for row in rows], [0, 1, 0])
        self.assertEqual([row["msg.ask"] for row in rows], [[], ["1"], []])
        self.assertEqual({row["msg.operation"][0] for row in rows}, {"77"})
        self.assertEqual({int(row["msg.handle"][0], 16) for row in rows}, {5})


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def named(text, prefix, kind):
    """The constants of an enum, by their values."""
    body = re.sub(r"/\*.*?\*/", "", re.search(rf"enum {kind} {{(.*?)}};", text, re.DOTALL)[1], flags=re.DOTALL)
    values, value = {}, 0
    for item in body.replace("\n", " ").split(","):
        name, _, given = (word.strip() for word in item.partition("="))
        value = int(given) if given else value + 1
        values[value] = name[len(prefix):]
    return values


class Agreement(Case):
    """The headers, doc/wire.md, the dissector and the fuzz corpora are of one version, and know the same."""

    def setUp(self):
        super().setUp()
        self.frame, self.message, self.page, self.lua = (read(path) for path in (
            "lib/wire/frame.h", "lib/wire/message.h", "doc/wire.md", "share/wireshark/postern.lua"))
        self.prose = " ".join(self.page.split())

    def table(self, name):
        return {int(value): word for value, word in re.findall(r'\[(\d+)\] = "(.*?)"', re.search(rf"^local {name} = {{(.*?)}}$", self.lua, re.M | re.S)[1])}

    def test_all_name_one_version(self):
        self.assertEqual(re.search(r"#define FRAME_VERSION +(\d+)", self.frame)[1], str(VERSION))
        self.assertEqual(re.search(r"^local VERSION = (\d+)$", self.lua, re.MULTILINE)[1], str(VERSION))
        self.assertIn(f"the version ({VERSION}) in its high half", self.prose)

    def test_the_spaces_of_libfabric_have_names(self):
        for path, name in (("lib/fi/endpoint.c", "MESSAGES_SPACE"), ("lib/fi/rma.c", "SPACE")):
            number = int(re.search(rf"#define {name} +(\d+)", read(path))[1])
            self.assertIn("libfabric", self.table("SPACES")[number])
            self.assertIn(f"space {number} that of", self.prose)

    def test_all_name_the_same_constants(self):
        types, records = named(self.frame, "FRAME_", "frame_type"), named(self.frame, "RECORD_", "record_kind")
        flags, kinds = named(self.frame, "FRAME_", "frame_flag"), named(self.message, "MESSAGE_", "message_kind")
        self.assertEqual({int(value): name for name, value in re.findall(r"^\| RECORD_(\w+) \| (\d+) \|", self.page, re.MULTILINE)}, records)
        for value, name in [*types.items(), *flags.items()]:
            self.assertRegex(self.page, rf"(?m)^\| FRAME_{name} \| {value} \|")
        self.assertEqual({value: name.upper() for value, name in self.table("TYPES").items()}, types)
        self.assertEqual({value: name.upper() for value, name in self.table("RECORDS").items()}, records)
        self.assertEqual(sorted(self.table("KINDS")), sorted(kinds))
        for value, name in flags.items():
            self.assertRegex(self.lua, rf'field\("flags\.{name.lower()}", "bool", .*0x{value:02x}\)')
        for value, name in kinds.items():
            if value >= 7:
                self.assertRegex(self.page, rf"(?m)^\| {value} {name.lower()} \|")

    def test_the_corpus_has_each_frame_as_the_dissector_shows_it(self):
        directory = os.path.join(SOURCE, "tests/fuzz/corpus/frame")
        frames = [content(os.path.join(directory, name)) for name in sorted(os.listdir(directory))]
        # The dissector takes frames by their EtherType, which the decoder does not look at.
        write_pcap(self.file, [frame[:12] + b"\x88\xb5" + frame[14:] for frame in frames])
        rows = self.rows(self.file, "postern", "version", "type", "malformed", "checksum.bad", "record.kind", "msg.kind", "flags.sealed",
                         "flags.will")
        sound = [row for row in rows if not row["malformed"] and not row["checksum.bad"] and row["version"] == [str(VERSION)]]
        self.assertEqual({value for row in sound for value in row["type"]}, {str(value) for value in range(1, 11)})
        self.assertEqual({value for row in sound for value in row["record.kind"]}, {str(value) for value in range(1, 7)})
        for name in ("flags.sealed", "flags.will"):
            self.assertTrue(any(row[name] in (["True"], ["1"]) for row in rows))

    def test_a_message_of_a_kind_that_nothing_sends_is_malformed(self):
        def sent(kind):
            message = struct.pack("<BBHI", 4, 24, 0, 0) + struct.pack("<BBHIIIQ", kind, 1, 0, 0, 9, 3, 4)
            return header(DATA, 16 | 4 | 2, 64 + len(message), (1, 2), (2, 1), (9, 7), (1 + kind, 0), (1 + kind, 0, 0), first=1, padding=message,
                          records=1, streams=(1, 0))
        write_pcap(self.file, [sent(kind) for kind in range(20)])
        rows = self.rows(self.file, "postern", "malformed", "msg.kind")
        self.assertEqual({int(row["msg.kind"][0]) for row in rows if row["malformed"]}, {0, *range(14, 20)})


class Damaged(Case):
    """Frames of any bytes are shown, as malformed if they are, and never stop the dissector."""

    def test_random_and_spoilt_frames(self):
        self.expect_success(programs.run("postern-perf", *WORK, "latency", "get-latency", PTL_CAPTURE=self.file))
        sound = list(captured(self.file))[:400]
        draw = random.Random(7)
        frames = [self.damage(draw, sound) for _ in range(FUZZED)]
        file = os.path.join(self.directory, "damaged.pcap")
        write_pcap(file, frames)
        shown = self.tshark(file, "-O", "postern")  # which looks for Lua errors
        self.assertGreater(shown.count("Malformed: "), FUZZED / 4)
        self.assertEqual(shown.count("\nFrame ") + shown.startswith("Frame "), FUZZED)

    @staticmethod
    def damage(draw, sound):
        kind = draw.randrange(4)
        if kind == 0:  # any bytes
            return bytes(12) + b"\x88\xb5" + draw.randbytes(draw.randrange(300))
        if kind == 1:  # any bytes that begin like a frame of each type
            body = bytes([VERSION << 4 | draw.randrange(1, 11)]) + draw.randbytes(draw.randrange(400))
            return bytes(12) + b"\x88\xb5" + body
        frame = bytearray(draw.choice(sound))
        if kind == 2:  # a frame that ends too early
            return bytes(frame[:draw.randrange(14, len(frame) + 1)])
        for _ in range(draw.randrange(1, 6)):  # a frame with some bytes changed, mostly in its headers
            frame[draw.randrange(14, min(len(frame), 200))] = draw.randrange(256)
        return bytes(frame)


if __name__ == "__main__":
    unittest.main(verbosity=2)
