#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kills one of three MX processes that send to each other at any moment, again and again.

    mx_kills.py PROGRAM DEVICE [ROUNDS [SEED]]

PROGRAM is mx_kills.c's. DEVICE is one of exchange.py's: node, veth:MTU and others; one process is on its first end, two are on the
second. In each of ROUNDS (default 4) rounds one of the first two is killed with SIGKILL in the middle of its messages, and started again with the
same endpoint id, at once or after the others have missed it. Each request of the others must end once, and those between the others with
success; the new life receives nothing that was meant for the earlier one; the others find its address context again. What is drawn
comes from SEED; the moments are as the machine has them.

Exit code 0: passed; 77: skipped, after a line that says why; anything else: failed. With CI=true nothing is skipped.
"""
import os
import random
import sys
import time

import exchange
from exchange import Failure, Process

PEER_TIMEOUT = os.environ.get("PTL_PEER_TIMEOUT", "2s")  # as short as a machine with much else to do allows
LONGEST_TRAFFIC = 0.25  # s until a process is killed
SIDES = {3: 0, 4: 1, 5: 1}  # of endpoint ids
VICTIMS = (3, 4)  # 5 lives through all rounds, so that it shows what the others' lives leave behind
NOBODY = 9  # an endpoint id that is nobody's
FILES_MOST = 48       # open files, of which those of a connection come and go
# Kilobytes from malloc() beyond those of a life's first exchange. It may not have had the slots for both its peers, 2 MB each, and all
# blocks for unexpected messages, 1 MB each. The slots for a life that was killed go when all that names it has ended.
MEMORY_SLACK = 8 << 10
SETTLED = 60          # s until they have


class Job:
    """All processes, by endpoint id."""

    def __init__(self, program, device, draw):
        self.program = program
        self.device = device
        self.draw = draw
        self.life = 0
        self.lives = {}
        self.processes = {}
        self.sizes = {}  # open files, and kilobytes
        self.first = {}  # kilobytes after the first exchange of a life

    def others(self, endpoint):
        return [one for one in SIDES if one != endpoint]

    def start(self, endpoint):
        self.life += 1
        self.lives[endpoint] = self.life
        self.first.pop(endpoint, None)
        process = Process(self.program, self.device, SIDES[endpoint], str(self.life), PEER_TIMEOUT, endpoint, "-")
        process.name = f"{endpoint}, life {self.life}"
        self.processes[endpoint] = process
        process.expect("ready")
        process.say("go")

    def tell(self, endpoints, said, heard):
        for endpoint in endpoints:
            self.processes[endpoint].say(said)
        for endpoint in endpoints:
            self.processes[endpoint].expect(heard)

    def connect(self, one, other):
        self.tell([one], f"connect {self.device.node(SIDES[other])} {other} {self.lives[other]}", "connected")

    def exchange(self):
        """Messages go between all. What a process has open must be within its bounds, at once or when the past is over."""
        deadline = time.monotonic() + SETTLED
        while True:
            for process in self.processes.values():
                process.say("exchange")
            for endpoint, process in self.processes.items():
                self.sizes[endpoint] = [int(number) for number in process.hear("exchanged").split()[1:]]
                self.first.setdefault(endpoint, self.sizes[endpoint][1])
            large = [endpoint for endpoint, (files, memory) in self.sizes.items()
                     if files > FILES_MOST or memory > self.first[endpoint] + MEMORY_SLACK]
            if not large:
                return
            if time.monotonic() > deadline:
                raise Failure(f"endpoints {large} have too much of open files and KB: {self.sizes}, and at first {self.first} KB")

    def close(self):
        for process in self.processes.values():
            if process.process.poll() is None:
                process.kill()


def play(job):
    """One round. Returns whether the others missed the one that was killed before it came again."""
    victim = job.draw.choice(VICTIMS)
    others = job.others(victim)
    job.tell(others, f"mortal {victim} 1", "mortal")
    time.sleep(job.draw.uniform(0, LONGEST_TRAFFIC))
    job.processes[victim].kill()
    missed = job.draw.choice((False, True))
    if missed:
        job.tell(others, f"mourn {victim}", "mourned")
    job.start(victim)
    for other in others:
        job.connect(victim, other)
        job.connect(other, victim)
    job.exchange()
    job.tell(others, f"mortal {victim} 0", "mortal")
    return missed


def play_all(job, rounds):
    counts = [0, 0]
    for endpoint in SIDES:
        job.start(endpoint)
    for endpoint in SIDES:
        for other in job.others(endpoint):
            job.connect(endpoint, other)
    job.exchange()
    for number in range(rounds):
        try:
            counts[play(job)] += 1
        except Failure as why:
            raise Failure(f"round {number + 1} of {rounds}: {why}") from None
    for endpoint in SIDES:
        job.tell([endpoint], f"nobody {job.device.node(SIDES[endpoint])} {NOBODY}", "nobody")
    job.tell(list(SIDES), "stop", "stopped")
    for process in job.processes.values():
        process.say("quit")
    for process in job.processes.values():
        process.end()
    print(f"{rounds} kills: {counts[True]} missed by silence, {counts[False]} by the new life; "
          + ", ".join(f"endpoint {endpoint} at last {files} open files, {memory} KB" for endpoint, (files, memory) in job.sizes.items()))


def main():
    if not 3 <= len(sys.argv) <= 5:
        print(__doc__, file=sys.stderr)
        return 2
    program, kind = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 4
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1

    def play_device(device):
        job = Job(program, device, random.Random(seed))
        try:
            play_all(job, rounds)
        finally:
            job.close()

    return exchange.exit_code(kind, play_device)


if __name__ == "__main__":
    sys.exit(main())
