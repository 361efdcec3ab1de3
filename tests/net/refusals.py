#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What hosts refuse, on UDP sockets: a process that was killed is missed at once, and one that lives is not, whoever says so.

    refusals.py PROGRAM DEVICE

PROGRAM is exchange.c's, DEVICE one of exchange.py's on UDP sockets. A process is killed while another one puts to it: all has to fail
long before PTL_PEER_TIMEOUT. A message whose receiver starts only seconds later waits for it, though the host refuses it until then.
Then two talk, of which one is stopped for a while, and this script forges 10,000 refusals a second of datagrams between them, which
know all but the numbers of the frames.

Exit code 0: passed; 77: skipped, after a line that says why; anything else: failed. With CI=true nothing is skipped.
"""
import ctypes
import os
import signal
import socket
import struct
import sys
import threading
import time

import exchange
from exchange import Failure, Stage

PEER_TIMEOUT = "60s"
NOTICED = 30     # s, half of PEER_TIMEOUT; it is 0.2 to 0.3 on a machine that has nothing else to do
STOPPED = 1      # s
LATE = 5         # s
RATE = 10000     # a second
PORTS = (20480, 1024)
CANDIDATES = 8
MASK = (1 << 64) - 1
CLONE_NEWNET = 0x40000000
UNREACHABLE, PORT_UNREACHABLE = 3, 3


def candidate(pid, k):
    number = (pid * CANDIDATES + k + 1) * 0x9e3779b97f4a7c15 & MASK
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9 & MASK
    number = (number ^ number >> 27) * 0x94d049bb133111eb & MASK
    return PORTS[0] + ((number >> 32) * PORTS[1] >> 32)


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total ^ 0xffff


def refusal(device, victim, number):
    """By the host of the other side, of a datagram of the victim's."""
    ends = [(device.address(side).packed, candidate(device.pid(side), 0)) for side in (victim, 1 - victim)]
    names = [(device.node(side), device.pid(side)) for side in (1 - victim, victim)]
    header = bytearray(64)
    header[0] = 0x41
    struct.pack_into("<IIII", header, 8, *names[0], *names[1])
    header[24:] = os.urandom(40)
    datagram = struct.pack("!HHHH", ends[0][1], ends[1][1], 8 + len(header), 0) + header
    outer = struct.pack("!BBHHHBBH4s4s", 0x45, 2, 20 + len(datagram), number & 0xffff, 0, 64, 17, 0, ends[0][0], ends[1][0])
    message = struct.pack("!BBHI", UNREACHABLE, PORT_UNREACHABLE, 0, 0) + outer + datagram
    return message[:2] + struct.pack("!H", checksum(message)) + message[4:]


def forge(device, victim, end, counts):
    """In the namespace of the other side, which only threads of their own can enter."""
    with open(f"/run/netns/{device.names[1 - victim]}", "rb") as space:
        if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    begun = time.monotonic()
    while not end.is_set():
        due = int((time.monotonic() - begun) * RATE)
        while not end.is_set() and counts[victim] < due:
            raw.sendto(refusal(device, victim, counts[victim]), (str(device.address(victim)), 0))
            counts[victim] += 1
        time.sleep(0.001)


def missed(stage):
    for first in (0, 1):
        passive = stage.begin(first, "passive")
        active = stage.begin(1 - first, "active")
        exchange.talk(active)
        active.say("flood")
        active.expect("flooding")
        passive.kill()
        begun = time.monotonic()
        active.expect("flooded")
        took = time.monotonic() - begun
        print(f"noticed after {took:.2f} s")
        if took > NOTICED:
            raise Failure(f"the process that was killed was missed only after {took:.1f} s")
        passive = stage.begin(first, "passive")
        exchange.talk(active)
        exchange.finish(active, passive)


def late(stage):
    """Nobody has ever had the name: that is no reason to give up."""
    active = stage.begin(1, "active")
    active.say("talk")
    time.sleep(LATE)
    passive = stage.begin(0, "passive")
    begun = time.monotonic()
    active.expect("talked")
    print(f"a receiver that came {LATE} s late was found after {time.monotonic() - begun:.2f} s")
    exchange.finish(active, passive)


def forged(stage):
    end, counts = threading.Event(), [0, 0]
    passive = stage.begin(0, "passive")
    active = stage.begin(1, "active")
    exchange.talk(active)
    threads = [threading.Thread(target=forge, args=(stage.device, side, end, counts), daemon=True) for side in (0, 1)]
    try:
        for thread in threads:
            thread.start()
        limit = time.monotonic() + exchange.TIMEOUT
        rounds = 0
        while rounds < 3 or (min(counts) < RATE and time.monotonic() < limit):
            rounds += 1
            exchange.talk(active)
            passive.process.send_signal(signal.SIGSTOP)
            active.say("talk")
            time.sleep(STOPPED)
            passive.process.send_signal(signal.SIGCONT)
            active.expect("talked")
    finally:
        end.set()
        for thread in threads:
            thread.join()
    if min(counts) < RATE:
        raise Failure(f"only {counts} refusals were forged")
    print(f"{sum(counts)} forged refusals ended nobody")
    exchange.finish(active, passive)


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2

    def play(device):
        stage = Stage(sys.argv[1], device, PEER_TIMEOUT)
        try:
            missed(stage)
            late(stage)
            forged(stage)
        finally:
            stage.close()

    return exchange.exit_code(sys.argv[2], play)


if __name__ == "__main__":
    sys.exit(main())
