#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two processes go on talking while 2,000 others ask one of them for data and never acknowledge it.

    strangers.py PROGRAM [PROCESSES]

PROGRAM is exchange.c's. The others are forged by this script on a veth pair: each asks where the process is, and when it is told,
gets 300 KB ten times, again and again. When each of them has been sent data, the two talk; nothing of that may fail or wait for the
silence of the others to count as death.

Exit code 0: passed; 77: skipped, after a line that says why; anything else: failed. With CI=true nothing is skipped.
"""
import ctypes
import os
import select
import socket
import struct
import sys
import threading
import time

import exchange
from exchange import Failure, Stage

PROCESSES = 2000
GETS = 10
BYTES = 300000
PORTAL = 3      # exchange.c's PORTAL_OTHERS
PERIOD = 5      # s until a process asks again
BATCH = 50      # processes that ask at a time
ETHERTYPE = 0x88b5
FIRST_NID = 1 << 20
DATA, ASK, TELL = 1, 3, 4
FLAG_FIRST, FLAG_START = 2, 4
GET, RECORD_WHOLE = 3, 4
BROADCAST = b"\xff" * 6
OWN = bytes((2, 0x5e, 0, 0, 0, 1))
HEADER = struct.Struct("<BBHIIIIIIIIIHHIIIHBBI")
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


def socket_in(namespace, interface):
    """A socket for raw frames in another network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net", "rb") as here, open(f"/run/netns/{namespace}", "rb") as there:
        if libc.setns(there.fileno(), CLONE_NEWNET) != 0:
            raise exchange.Skip("a network namespace cannot be entered")
        try:
            made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
            made.bind((interface, ETHERTYPE))
        finally:
            libc.setns(here.fileno(), CLONE_NEWNET)
    made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
    return made


class Strangers(threading.Thread):
    """The forged processes; `heard` are those that data was sent to. They speak the version of the wire that they hear first."""

    def __init__(self, made, nid, count):
        super().__init__(daemon=True)
        self.socket = made
        self.nid = nid
        self.count = count
        self.version = None
        self.streams = [0] * count
        self.heard = set()
        self.over = threading.Event()
        self.records = self.gets()

    @staticmethod
    def gets():
        records = b""
        for number in range(GETS):
            header = struct.pack("<BBHIIIQQQQQ", GET, 0, 0, os.getuid(), PORTAL, 0, 0, 0, BYTES, number + 1, 1)
            records += struct.pack("<BBHI", RECORD_WHOLE, len(header), 0, number) + header
        return records

    def send(self, to, kind, flags, number, life, psn, records=b"", count=0):
        now = time.monotonic_ns() & 0xffffffff

        def header(crc):
            return HEADER.pack(self.version << 4 | kind, flags, HEADER.size + len(records), crc, self.nid, exchange.PID,
                               FIRST_NID + number, 1, 1, life, psn, 0, self.streams[number], 0,
                               now, 0, 0, 0, count, 0, psn)
        try:
            self.socket.send(to + OWN + struct.pack(">H", ETHERTYPE) + header(crc32c(header(0))) + records)
        except OSError:  # no room: it asks again
            pass

    def take(self, frame):
        if len(frame) < 14 + HEADER.size:
            return
        fields = HEADER.unpack_from(frame, 14)
        kind, number, life, first = fields[0] & 15, fields[4] - FIRST_NID, fields[8], fields[20]
        self.version = fields[0] >> 4
        if not 0 <= number < self.count:
            return
        if kind == TELL:
            self.send(frame[6:12], DATA, FLAG_FIRST | FLAG_START, number, life, first, self.records, GETS)
        elif kind == DATA:
            self.heard.add(number)

    def ask(self, number):
        self.streams[number] = (self.streams[number] + 1) & 0xffff
        self.send(BROADCAST, ASK, 0, number, 0, 0)

    def run(self):
        due, turn = 0.0, 0
        while not self.over.is_set():
            if select.select([self.socket], [], [], 0.01)[0]:
                self.take(self.socket.recv(65536))
            if self.version is None or time.monotonic() < due:
                continue
            due = time.monotonic() + PERIOD * BATCH / self.count
            for _ in range(BATCH):
                self.ask(turn % self.count)
                turn += 1

    def await_all(self):
        patience = time.monotonic() + exchange.TIMEOUT
        while len(self.heard) < self.count:
            if time.monotonic() >= patience:
                raise Failure(f"data was sent to {len(self.heard)} of {self.count} processes")
            time.sleep(0.01)


def strangers(stage, count):
    passive = stage.begin(0, "passive")
    others = Strangers(socket_in(stage.device.names[1], stage.device.interface(1)), stage.device.node(0), count)
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
        others.socket.close()
    exchange.finish(active, passive)


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    count = int(sys.argv[2]) if len(sys.argv) == 3 else PROCESSES

    def play(device):
        stage = Stage(sys.argv[1], device)
        try:
            strangers(stage, count)
        finally:
            stage.close()

    return exchange.exit_code("veth:1500", play)


if __name__ == "__main__":
    sys.exit(main())
