#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""UDP sockets over IPv6: the file PTL_HOSTS says who speaks from an address, and nobody else is heard.

    hosts6.py PROGRAM PING

PROGRAM is exchange.c's, PING postern-ping. Two processes talk, while the far host sends datagrams in the name of one of them from other
addresses that it has: a second one of the same network, one of the link alone, and one of IPv4. Then a process whose own file puts its
node at such an address asks for another one: nobody answers; with the right file it is answered.

Exit code 0: passed; 77: skipped, after a line that says why; anything else: failed. With CI=true nothing is skipped.
"""
import ctypes
import os
import socket
import struct
import subprocess
import sys
import threading
import time

import exchange
import refusals
from exchange import Failure, Stage

OTHER = "fd00:77::66"
OTHER_IP4 = ("10.77.0.11", "10.77.0.12")
LINK = ("fe80::11", "fe80::12")
RATE = 10000  # a second
TIMEOUT = 60  # s


class Hosts(exchange.Socket6):
    """The far host has more addresses, and its file may be another."""

    lies = False

    def make(self, mtu):
        super().make(mtu)
        for side, name in enumerate(self.names):
            exchange.run("ip", "-n", name, "address", "add", f"{OTHER_IP4[side]}/24", "dev", "ptn0")
            exchange.run("ip", "-n", name, "address", "add", f"{LINK[side]}/64", "dev", "ptn0", "nodad")
        exchange.run("ip", "-n", self.names[1], "address", "add", f"{OTHER}/64", "dev", "ptn0", "nodad")

    def hosts(self):
        return super().hosts().replace(str(self.address(1)), OTHER) if self.lies else super().hosts()


def sockets_make(device):
    """Each has a UDP port of the process in whose name it speaks. For a thread of its own, which enters the far host."""
    with open(f"/run/netns/{device.names[1]}", "rb") as space:
        if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), refusals.CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
    scope = socket.if_nametoindex("ptn0")
    port = refusals.candidate(device.pid(1), 1)
    to = refusals.candidate(device.pid(0), 0)
    made = []
    for family, own, far in ((socket.AF_INET6, (OTHER, port), (str(device.address(0)), to)),
                             (socket.AF_INET6, (LINK[1], port, 0, scope), (str(device.address(0)), to)),
                             (socket.AF_INET6, (LINK[1], port, 0, scope), (LINK[0], to, 0, scope)),
                             (socket.AF_INET, (OTHER_IP4[1], port), (OTHER_IP4[0], to))):
        one = socket.socket(family, socket.SOCK_DGRAM)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(own)
        made.append((one, far))
    return made


def forge(device, end, sent):
    made = sockets_make(device)
    names = [(device.node(side), device.pid(side)) for side in (0, 1)]
    begun = time.monotonic()
    while not end.is_set():
        while not end.is_set() and sent[0] < int((time.monotonic() - begun) * RATE):
            header = bytearray(os.urandom(64))
            header[0] = 0x10 | sent[0] & 7
            struct.pack_into("<IIII", header, 8, *names[0], *names[1])
            one, far = made[sent[0] % len(made)]
            try:
                one.sendto(header, far)
            except OSError:  # the refusal of an earlier one
                pass
            sent[0] += 1
        time.sleep(0.001)
    for one, _ in made:
        one.close()


def ping(device, program):
    """Does a process of the far host find the one of this host?"""
    environment = {"PATH": os.environ["PATH"], "PTL_IFACE_NAME": "udp:ptn0"} | device.settings(1)
    done = subprocess.run(device.prefix(1) + [program, "-c", "3", f"{device.node(0)}:{device.pid(0)}"], env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT)
    print(done.stdout, end="", flush=True)
    if done.returncode not in (0, 1):
        raise Failure(f"{program} ended with code {done.returncode}")
    return done.returncode == 0


def play(stage, program):
    device = stage.device
    end, sent = threading.Event(), [0]
    passive = stage.begin(0, "passive")
    active = stage.begin(1, "active")
    thread = threading.Thread(target=forge, args=(device, end, sent), daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + TIMEOUT
        while sent[0] < RATE and time.monotonic() < deadline:
            exchange.talk(active)
    finally:
        end.set()
        thread.join()
    if sent[0] < RATE:
        raise Failure(f"only {sent[0]} datagrams were forged")
    print(f"{sent[0]} forged datagrams changed nothing", flush=True)
    if not ping(device, program):
        raise Failure("with the right file the process is not found")
    device.lies = True
    if ping(device, program):
        raise Failure("a host that is not in the file is heard")
    device.lies = False
    exchange.finish(active, passive)


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2

    def with_stage(device):
        stage = Stage(sys.argv[1], device)
        try:
            play(stage, os.path.abspath(sys.argv[2]))
        finally:
            stage.close()

    exchange.KINDS["hosts6"] = Hosts
    return exchange.exit_code("hosts6:1500", with_stage)


if __name__ == "__main__":
    sys.exit(main())
