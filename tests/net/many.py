#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs several exchange processes on one kernel interface, or in one network namespace.

    many.py PROGRAM DEVICE SCENARIO

PROGRAM and DEVICE are as for exchange.py, of which DEVICE is one with a veth pair. SCENARIO:

    share    three processes on one end, two on the other: two pairs across, one pair on the same interface
    bare     the same where processes have no directory to meet in: they hear each other on the interface
    near     a pair on the same interface: next to nothing leaves by it
    killed   the same with more on the first end, of whom two are killed while they put: the others do not notice
    twice    two processes of two users on one end have one process id: each is told of the other; on UDP sockets
    apart    two processes in one namespace, each with an interface of its own, whose numbers are such that the two had one
             fanout group in DPDK's driver

Exit code 0: passed; 77: skipped, after a line that says why; anything else: failed. With CI=true nothing is skipped.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

import exchange

# Who talks to whom: the ends of the veth pair that they are on, and their process ids.
ACROSS = [((0, 5), (1, 5)), ((0, 6), (1, 6))]
LOCAL = ((0, 7), (0, 8))
FLOODED = [((0, 9), (0, 10)), ((1, 11), (0, 12))]
FEW = 200  # frames: claims of names, ARP, what the kernel sends; the messages are many thousands
INDEX = 0x10064  # of an interface; others have less


def begin(program, device, self, other, scenario):
    (side, pid), (far, far_pid) = self, other
    process = exchange.Process(program, device, side, scenario, exchange.PEER_TIMEOUT if scenario == "active" else None,
                               pid, f"{device.node(far)}:{far_pid}")
    process.name = f"{pid} on {'ab'[side]}"
    return process


def all_say(processes, heard, said):
    for process in processes:
        process.expect(heard)
    for process in processes:
        process.say(said)


def share(program, device, meanwhile=lambda: None, scenario="both"):
    """All pairs at once."""
    processes = [begin(program, device, *pair, scenario) for two in ACROSS + [LOCAL] for pair in (two, two[::-1])]
    all_say(processes, "ready", "go")
    meanwhile()
    all_say(processes, "done", "leave")
    for process in processes:
        process.end()


def bare(program, device):
    with open(os.path.join(device.directory, "postern"), "w", encoding="ascii"):
        share(program, device)


def sent(device):
    """Frames that have left by the first end's interface."""
    return int(subprocess.run(device.prefix(0) + ["cat", f"/sys/class/net/{device.interface(0).removeprefix('udp:')}/statistics/tx_packets"],
                              stdout=subprocess.PIPE, text=True, check=True).stdout)


def near(program, device):
    processes = [begin(program, device, *pair, "both") for pair in (LOCAL, LOCAL[::-1])]
    before = sent(device)
    all_say(processes, "ready", "go")
    all_say(processes, "done", "leave")
    for process in processes:
        process.end()
    left = sent(device) - before
    if left > FEW:
        raise exchange.Failure(f"{left} frames have left by the interface")


def killed(program, device):
    actives, passives = [], []

    def flood():
        for active, passive in zip(actives, passives):
            exchange.talk(active)
            active.say("flood")
            active.expect("flooding")
        actives[0].kill()  # one that puts, and one that is put to
        passives[1].kill()
        actives[1].expect("flooded")
        actives[1].say("flood")  # what begins when the other one has gone fails as well
        actives[1].expect("flooded")

    for active, passive in FLOODED:
        passives.append(begin(program, device, passive, active, "passive"))
        actives.append(begin(program, device, active, passive, "active"))
    all_say(actives + passives, "ready", "go")
    share(program, device, flood)


class Twice(exchange.Socket):
    """Both processes on one end, of two users, with their errors in files."""

    def __init__(self, mtu):
        super().__init__(mtu)
        self.errors = tempfile.mkdtemp(prefix="ptn-")
        os.chmod(self.errors, 0o711)
        for side in (0, 1):
            with open(self.said(side), "w", encoding="utf-8"):
                os.chown(self.said(side), 65534 - side, 65534 - side)

    def prefix(self, side):
        words = super().prefix(0)
        if side == 1:
            words = [word.replace("--reuid=65534", "--reuid=65533") for word in words]
        return words + ["sh", "-c", 'exec "$@" 2>"$0"', self.said(side)]

    def said(self, side):
        return f"{self.errors}/{side}"

    def told(self, side):
        with open(self.said(side), encoding="utf-8") as file:
            return "so give one of them another process id" in file.read()

    def close(self):
        super().close()
        shutil.rmtree(getattr(self, "errors", ""), ignore_errors=True)


def twice(program, device):
    pair = [exchange.Process(program, device, side, "passive", pid=5, peer=f"{device.node(1)}:5") for side in (0, 1)]
    all_say(pair, "ready", "go")
    deadline = time.monotonic() + exchange.TIMEOUT
    while not all(device.told(side) for side in (0, 1)):
        if time.monotonic() > deadline:
            raise exchange.Failure(f"who was told of the other: {[device.told(side) for side in (0, 1)]}")
        time.sleep(0.05)


class Apart(exchange.Veth):
    """Both ends in one namespace; the pair is made when both processes have their ids."""

    def make(self, mtu):
        self.names = self.names[:1] * 2
        exchange.run("ip", "netns", "add", self.names[0])
        self.made.append(self.names[0])

    def join(self, one, two):
        other = 0x20000 | ((INDEX ^ one ^ two) & 0xffff)
        exchange.run("ip", "-n", self.names[0], "link", "add", "ptn0", "index", str(INDEX), "type", "veth",
                     "peer", "name", "ptn1", "index", str(other))
        for end in ("ptn0", "ptn1"):
            exchange.run("ip", "-n", self.names[0], "link", "set", end, "up")

    def interface(self, side):
        return f"ptn{side}"

    def prefix(self, side):
        return super().prefix(side) + ["sh", "-c", 'read go; exec "$@"', "sh"]


def apart(program, device):
    pair = [exchange.Process(program, device, side, "operations") for side in (0, 1)]
    device.join(*(process.process.pid for process in pair))
    for process in pair:
        process.say("go")
    all_say(pair, "ready", "go")
    all_say(pair, "done", "leave")
    for process in pair:
        process.end()


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    program, kind, scenario = sys.argv[1:]
    exchange.KINDS["apart"] = Apart
    exchange.KINDS["twice"] = Twice

    def play(device):
        try:
            {"share": share, "bare": bare, "near": near, "killed": killed, "apart": apart, "twice": twice}[scenario](program, device)
        finally:
            for process in exchange.Process.started:
                if process.process.poll() is None:
                    process.kill()

    return exchange.exit_code(kind, play)


if __name__ == "__main__":
    sys.exit(main())
