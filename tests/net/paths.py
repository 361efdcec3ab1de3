#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The way between two hosts changes while they talk over UDP sockets: its MTU falls and rises, and it loses packets.

    paths.py PROGRAM DEVICE

PROGRAM is exchange.c's, DEVICE one of exchange.py's with a router. Both halves of the way change, so that the sender's own interface
and a router far from it are the narrow place in turn. Each talk must succeed, with every byte as it was sent.

Exit code 0: passed; 77: skipped, after a line that says why; anything else: failed. With CI=true nothing is skipped.
"""
import shutil
import sys
import time

import exchange
from exchange import Failure, Skip, Stage

MTUS = (1500, 1400, 576, 1500)
MTU_LEAST6 = 1280  # a link with less carries no IPv6
LOSSES = (1, 10)  # percent
UNDERWAY = 0.02   # s, after which a talk is in its middle
TALKS = 5


class Way:
    """The half of the way that ends at a side."""

    def __init__(self, device, side):
        self.router = device.made[-1]
        self.links = [(self.router, f"ptn{side}"), (device.names[side], "ptn0")]

    def narrow(self, mtu):
        for where, link in self.links:
            exchange.run("ip", "-n", where, "link", "set", link, "mtu", str(mtu))

    def lose(self, percent):
        exchange.run("ip", "netns", "exec", self.router, "nft",
                     "add table inet loss; flush table inet loss; add chain inet loss way { type filter hook forward priority 0; };"
                     f"add rule inet loss way numgen random mod 100 < {percent} counter drop")

    def lost(self):
        words = exchange.run("ip", "netns", "exec", self.router, "nft", "list", "table", "inet", "loss").split()
        return int(words[words.index("packets") + 1])


def talk_while(active, change):
    """What changes does so in the middle of a talk, and the talks after it go the new way."""
    active.say("talk")
    time.sleep(UNDERWAY)
    change()
    active.expect("talked")
    for _ in range(TALKS):
        exchange.talk(active)


def paths(stage):
    if shutil.which("nft") is None:
        raise Skip("the program nft is missing; install nftables")
    passive = stage.begin(0, "passive")
    active = stage.begin(1, "active")
    exchange.talk(active)
    least = MTU_LEAST6 if stage.device.address(0).version == 6 else 0
    for side in (0, 1):
        way = Way(stage.device, side)
        for mtu in (max(mtu, least) for mtu in MTUS):
            talk_while(active, lambda way=way, mtu=mtu: way.narrow(mtu))
            print(f"side {side}, MTU {mtu}: all arrived", flush=True)
    for percent in LOSSES:
        talk_while(active, lambda percent=percent: way.lose(percent))
        lost = way.lost()
        if lost == 0:
            raise Failure(f"the router lost nothing of {percent} %")
        print(f"{percent} %: {lost} packets lost, all messages arrived", flush=True)
    exchange.finish(active, passive)


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2

    def play(device):
        stage = Stage(sys.argv[1], device)
        try:
            paths(stage)
        finally:
            stage.close()

    return exchange.exit_code(sys.argv[2], play)


if __name__ == "__main__":
    sys.exit(main())
