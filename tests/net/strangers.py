#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two processes go on talking while 2,000 others ask one of them for data and never acknowledge it.

    strangers.py PROGRAM DEVICE [PROCESSES]

PROGRAM is exchange.c's, DEVICE veth:MTU or socket:MTU of exchange.py's. The others are forged by this script at the far end: each asks
where the process is, and when it is told, gets 300 KB ten times, again and again. When each of them has been sent data, the two talk;
nothing of that may fail or wait for the silence of the others to count as death. Over UDP sockets each has a process id of the far
host, and a UDP port that this process may have, which it shares with others.

Exit code 0: passed; 77: skipped, after a line that says why; anything else: failed. With CI=true nothing is skipped.
"""
import ctypes
import os
import re
import select
import socket
import struct
import sys
import threading
import time

import exchange
from exchange import Failure, Stage
from refusals import CANDIDATES, candidate

PROCESSES = 2000
GETS = 10
BYTES = 300000
PORTAL = 3      # exchange.c's PORTAL_OTHERS
PERIOD = 5      # s until a process asks again
BATCH = 50      # processes that ask at a time
ETHERTYPE = 0x88b5
FIRST_NID = 1 << 20  # of those on veth, whose process id is 1
FIRST_PID = 1000     # of those on UDP sockets
DATA, ASK, TELL = 1, 3, 4
FLAG_FIRST, FLAG_START = 2, 4
GET, RECORD_WHOLE = 3, 4
BROADCAST = b"\xff" * 6
OWN = bytes((2, 0x5e, 0, 0, 0, 1))
HEADER = struct.Struct("<BBHIIIIIIIIIHHIIIHBBI")
with open(os.path.join(os.path.dirname(__file__), "../../lib/wire/frame.h"), encoding="utf-8") as header:
    VERSION = int(re.search(r"#define FRAME_VERSION +(\d+)", header.read()).group(1))
CLONE_NEWNET = 0x40000000
SO_RCVBUFFORCE = 33


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82f63b78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = crc_table()


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xffffffff


class Within:
    """What is done inside is done in another network namespace."""

    def __init__(self, namespace):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.namespace = namespace
        self.here = None

    def __enter__(self):
        self.here = open("/proc/self/ns/net", "rb")
        with open(f"/run/netns/{self.namespace}", "rb") as there:
            if self.libc.setns(there.fileno(), CLONE_NEWNET) != 0:
                self.here.close()
                raise exchange.Skip("a network namespace cannot be entered")

    def __exit__(self, *_):
        self.libc.setns(self.here.fileno(), CLONE_NEWNET)
        self.here.close()


def socket_in(namespace, interface):
    """A socket for raw frames in another network namespace."""
    with Within(namespace):
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
        made.bind((interface, ETHERTYPE))
    made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
    return made


class Frames:
    """Raw frames: each stranger is a node of its own."""

    uid = os.getuid()

    def __init__(self, device, _count):
        self.socket = socket_in(device.names[1], device.interface(1))

    def name(self, number):
        return FIRST_NID + number, 1

    def number(self, nid, _pid):
        return nid - FIRST_NID

    def send(self, _number, to, data):
        self.socket.send((to or BROADCAST) + OWN + struct.pack(">H", ETHERTYPE) + data)

    def receive(self, timeout):
        """What has come, and where it is from."""
        if not select.select([self.socket], [], [], timeout)[0]:
            return []
        frame = self.socket.recv(65536)
        return [(frame[14:], frame[6:12])]

    def close(self):
        self.socket.close()


class Datagrams:
    """UDP sockets of the far host: a port for many strangers, as each may have one of eight."""

    uid = 65534  # that of the processes, see exchange.without_rights()

    def __init__(self, device, count):
        self.nid = device.node(1)
        self.target = (str(device.address(0)), candidate(device.pid(0), 0))
        taken = {candidate(device.pid(1), k) for k in range(CANDIDATES)}
        self.sockets, self.of = {}, []
        self.poll = select.epoll()
        with Within(device.names[1]):
            for number in range(count):
                ports = [candidate(FIRST_PID + number, k) for k in range(CANDIDATES)]
                port = next((one for one in ports if one in self.sockets), None) or next(one for one in ports if one not in taken)
                if port not in self.sockets:
                    self.sockets[port] = self.open((str(device.address(1)), port))
                self.of.append(self.sockets[port])
        self.by_number = {one.fileno(): one for one in self.sockets.values()}

    def open(self, name):
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        made.bind(name)
        made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 4 << 20)
        self.poll.register(made, select.EPOLLIN)
        return made

    def name(self, number):
        return self.nid, FIRST_PID + number

    def number(self, _nid, pid):
        return pid - FIRST_PID

    def send(self, number, to, data):
        self.of[number].sendto(data, to or self.target)

    def receive(self, timeout):
        heard = []
        for number, _ in self.poll.poll(timeout):
            try:
                heard.append(self.by_number[number].recvfrom(65536))
            except OSError:  # a refusal
                pass
        return heard

    def close(self):
        self.poll.close()
        for one in self.sockets.values():
            one.close()


class Strangers(threading.Thread):
    """The forged processes; `heard` are those that data was sent to. They speak the version of the wire that the tree has."""

    def __init__(self, wire, nid, count):
        super().__init__(daemon=True)
        self.wire = wire
        self.nid = nid
        self.count = count
        self.streams = [0] * count
        self.heard = set()
        self.over = threading.Event()
        self.records = self.gets()

    def gets(self):
        records = b""
        for number in range(GETS):
            header = struct.pack("<BBHIIIQQQQQ", GET, 0, 0, self.wire.uid, PORTAL, 0, 0, 0, BYTES, number + 1, 1)
            records += struct.pack("<BBHI", RECORD_WHOLE, len(header), 0, number) + header
        return records

    def send(self, to, kind, flags, number, life, psn, records=b"", count=0):
        now = time.monotonic_ns() & 0xffffffff

        def header(crc):
            return HEADER.pack(VERSION << 4 | kind, flags, HEADER.size + len(records), crc, self.nid, exchange.PID,
                               *self.wire.name(number), 1, life, psn, 0, self.streams[number], 0,
                               now, 0, 0, 0, count, 0, psn)
        try:
            self.wire.send(number, to, header(crc32c(header(0))) + records)
        except OSError:  # no room: it asks again
            pass

    def take(self, frame, origin):
        if len(frame) < HEADER.size:
            return
        fields = HEADER.unpack_from(frame, 0)
        kind, number, life, first = fields[0] & 15, self.wire.number(fields[4], fields[5]), fields[8], fields[20]
        if not 0 <= number < self.count:
            return
        if kind == TELL:
            self.send(origin, DATA, FLAG_FIRST | FLAG_START, number, life, first, self.records, GETS)
        elif kind == DATA:
            self.heard.add(number)

    def ask(self, number):
        self.streams[number] = (self.streams[number] + 1) & 0xffff
        self.send(None, ASK, 0, number, 0, 0)

    def run(self):
        due, turn = 0.0, 0
        while not self.over.is_set():
            for frame, origin in self.wire.receive(0.01):
                self.take(frame, origin)
            if time.monotonic() < due:
                continue
            due = time.monotonic() + PERIOD * BATCH / self.count
            for _ in range(BATCH):
                self.ask(turn % self.count)
                turn += 1

    def await_all(self):
        deadline = time.monotonic() + exchange.TIMEOUT
        while len(self.heard) < self.count:
            if time.monotonic() >= deadline:
                raise Failure(f"data was sent to {len(self.heard)} of {self.count} processes")
            time.sleep(0.01)


def strangers(stage, count):
    passive = stage.begin(0, "passive")
    wire = (Datagrams if isinstance(stage.device, exchange.Unprivileged) else Frames)(stage.device, count)
    others = Strangers(wire, stage.device.node(0), count)
    others.start()
    try:
        active = stage.begin(1, "active")
        exchange.talk(active)
        others.await_all()
        for _ in range(3):
            exchange.talk(active)
    finally:
        others.over.set()
        others.join()
        wire.close()
    exchange.finish(active, passive)


def main():
    if len(sys.argv) not in (3, 4):
        print(__doc__, file=sys.stderr)
        return 2
    count = int(sys.argv[3]) if len(sys.argv) == 4 else PROCESSES

    def play(device):
        stage = Stage(sys.argv[1], device)
        try:
            strangers(stage, count)
        finally:
            stage.close()

    return exchange.exit_code(sys.argv[2], play)


if __name__ == "__main__":
    sys.exit(main())
