#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kills one of two processes at any moment, again and again, and sees to it that the other one is none the worse.

    kills.py PROGRAM DEVICE [ROUNDS [SEED]]

PROGRAM is kills.c's. DEVICE is one of exchange.py's: node, veth:MTU for a kernel interface and others, which this script makes and
removes. In each of ROUNDS (default 6) rounds the two processes put and get, one of them or both; one is killed with
SIGKILL, mostly in the middle of that; it is started again, with the same ids, at once or after the other one has noticed. Each
operation of the survivor must have ended in one event, all its descriptors can be unlinked, no frame buffer stays in use, no
open file and no memory is lost, and checked data goes both ways between it and the new process. In the first half of the
rounds one side survives, in the second half the other. What is drawn comes from SEED; the moments are as the machine has them.

Exit code 0: passed; 77: skipped, after a line that says why; anything else: failed. With CI=true nothing is skipped.
"""
import os
import random
import sys
import time

import exchange
from exchange import Failure, Node, Process

PEER_TIMEOUT = os.environ.get("PTL_PEER_TIMEOUT", "2s")  # as short as a machine with much else to do allows
LONGEST_TRAFFIC = 0.25  # s until a process is killed
LONGEST_START = 0.5     # s until one that is starting is
FILES_SLACK = 16        # open files: those of a connection come and go
MEMORY_SLACK = 1024     # kilobytes that malloc() gives out between one settled state and a later one of the same process
WARM = 5                # settled states until that has found its size
KINDS = (7, 7, 7, 1, 2, 4, 3, 0)  # what a side does: everything; puts; gets; nothing; see kills.c


class Pair:
    """Both processes, by side."""

    def __init__(self, program, device, draw):
        self.program = program
        self.device = device
        self.draw = draw
        self.life = 0
        self.sides = [None, None]
        self.settled = [[], []]
        self.seconds = 0.0

    def start(self, side, ready=True):
        self.life += 1
        self.settled[side] = []
        process = Process(self.program, self.device, side, str(self.life), PEER_TIMEOUT)
        self.sides[side] = process
        if ready:
            process.expect("ready")
            process.say("go")
        return process

    def restart(self, side):
        """Sometimes the new process is killed as well, while it starts."""
        while self.draw.random() < 0.2:
            self.start(side, ready=False)
            time.sleep(self.draw.uniform(0, LONGEST_START))
            self.kill(side)
        return self.start(side)

    def kill(self, side):
        self.sides[side].kill()
        self.sides[side] = None

    def ask(self, side, word):
        self.sides[side].say(word)

    def hear(self, side, word):
        """The numbers in the line that begins with the word."""
        return [int(number) for number in self.sides[side].hear(word).split()[1:]]

    def tell(self, side, word, answer):
        self.ask(side, word)
        return self.hear(side, answer)

    def run(self, side, kinds):
        self.tell(side, f"run {self.draw.getrandbits(32)} {kinds}", "running")

    def settle(self, side):
        begun = time.monotonic()
        files, memory = self.tell(side, "settle", "settled")
        self.seconds = max(self.seconds, time.monotonic() - begun)
        past = self.settled[side]
        past.append((files, memory))
        if files > past[0][0] + FILES_SLACK:
            raise Failure(f"open files of process {self.sides[side].name}: {past[0][0]} at first, {files} now")
        if len(past) > WARM and memory > past[WARM - 1][1] + MEMORY_SLACK:
            raise Failure(f"memory of process {self.sides[side].name}: {past[WARM - 1][1]} KB before, {memory} KB now")

    def talk(self):
        for side in (0, 1):
            self.tell(side, "talk", "talked")

    def look(self):
        """What the processes know, when something has gone wrong."""
        for process in self.sides:
            if process is not None and process.process.poll() is None:
                try:
                    process.say("look")
                except Failure:
                    pass
        time.sleep(1)

    def quit(self):
        for process in self.sides:
            process.say("quit")
        for process in self.sides:
            process.end()

    def close(self):
        for process in self.sides:
            if process is not None and process.process.poll() is None:
                process.kill()


def killed_and_missed(pair, survivor, victim):
    """The survivor finds out by itself; only then the victim comes again, and gets nothing of what was meant for its old life."""
    time.sleep(pair.draw.uniform(0, LONGEST_TRAFFIC))
    last, = pair.tell(survivor, "stop", "stopped")
    pair.settle(survivor)
    pair.restart(victim).say(f"floor {last}")
    pair.tell(survivor, "knock", "knocked")


def killed_and_back(pair, survivor, victim):
    """The survivor goes on as if nothing had happened, and meets the victim's new life."""
    time.sleep(pair.draw.choice((0, 0, pair.draw.uniform(0, LONGEST_TRAFFIC))))
    pair.restart(victim)
    pair.run(victim, pair.draw.choice(KINDS))
    time.sleep(pair.draw.uniform(0, LONGEST_TRAFFIC))
    for side in (survivor, victim):
        pair.ask(side, "stop")
    for side in (survivor, victim):
        pair.hear(side, "stopped")
    for side in (survivor, victim):
        pair.settle(side)


def play(pair, survivor):
    """One round."""
    victim = 1 - survivor
    kinds = pair.draw.choice(KINDS)
    pair.run(survivor, kinds)
    pair.run(victim, pair.draw.choice(KINDS) if kinds else 7)
    time.sleep(pair.draw.uniform(0, LONGEST_TRAFFIC))
    pair.kill(victim)
    what = pair.draw.choice((killed_and_missed, killed_and_back))
    what(pair, survivor, victim)
    pair.talk()
    return what


def play_all(pair, rounds):
    shown = sys.stderr.isatty()
    counts = {killed_and_missed: 0, killed_and_back: 0}
    for side in (0, 1):
        pair.start(side)
    pair.talk()
    for number in range(rounds):
        try:
            counts[play(pair, 0 if number < rounds / 2 else 1)] += 1
        except Failure as why:
            pair.look()
            raise Failure(f"round {number + 1} of {rounds}: {why}") from None
        if shown:
            print(f"\r{number + 1} of {rounds} rounds", end="", file=sys.stderr)
    if shown:
        print(file=sys.stderr)
    memory = [past for past in pair.settled if past]
    pair.quit()
    print(f"{rounds} kills: {counts[killed_and_missed]} noticed by silence, {counts[killed_and_back]} by the new life; "
          f"{pair.life - 2 - rounds} more while starting. The survivors settled within {pair.seconds:.1f} s"
          + "".join(f"; open files {past[0][0]} to {past[-1][0]}, memory {past[0][1]} to {past[-1][1]} KB in {len(past)} rounds"
                    for past in memory) + ".")


def left_behind(device):
    """Of processes that were killed, and then ended, nothing may be left."""
    if isinstance(device, Node) and device.left():
        raise Failure(f"left behind: {' '.join(device.left())}")


def main():
    if not 3 <= len(sys.argv) <= 5:
        print(__doc__, file=sys.stderr)
        return 2
    program, kind = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 6
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1

    def play_device(device):
        pair = Pair(program, device, random.Random(seed))
        try:
            play_all(pair, rounds)
        finally:
            pair.close()
        left_behind(device)

    code = exchange.exit_code(kind, play_device)
    if code == 1:
        print(f"again: {sys.argv[0]} {program} {kind} {rounds} {seed}")
    return code


if __name__ == "__main__":
    sys.exit(main())
