#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts how often processes that wait for a message wake, with PTL_POLL=interrupt, or PTL_PROGRESS=both or inline: hardly ever, whatever their
device is at.

    idle.py PROGRAM DEVICE

PROGRAM is the example hello; on a node it is kills.c's, of which two talk first, so that there is a pair between them. DEVICE is one of exchange.py's: loop, node, or veth:MTU for a kernel interface.

Exit code 0: passed; 77: skipped, after a line that says why; anything else: failed. With CI=true nothing is skipped.
"""
import os
import signal
import subprocess
import sys
import time

import exchange
from exchange import Failure, Node, Veth, die_with_parent

WINDOW = 1.0  # s
MOST = 20     # wakes of all threads in that time; a thread that looks for frames wakes 2,000 times
TIMEOUT = 30 # s until one window must have been quiet: what has just begun or ended is settled by then


class Waiter:
    """A process that waits for a greeting."""

    def __init__(self, program, device, side):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PTL_IFACE")}
        environment.update(device.settings(side))
        environment.update(PTL_IFACE_NAME=device.interface(side), PTL_TELEMETRY="off")
        if environment.get("PTL_PROGRESS") not in ("both", "inline"):
            environment["PTL_POLL"] = "interrupt"
        self.process = subprocess.Popen(device.prefix(side) + [program, "receive"], env=environment, text=True,
                                        stdout=subprocess.PIPE, preexec_fn=die_with_parent)
        if not self.process.stdout.readline().startswith("waiting"):
            raise Failure(f"{program} ended with code {self.process.wait()}")

    def wakes(self):
        count = 0
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{thread}/status", encoding="ascii") as file:
                count += sum(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches"))
        return count

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()


class Talker(Waiter):
    """One of two processes that talk to each other when they are told to, and wait until then."""
    life = 0

    def __init__(self, program, device, side):
        Talker.life += 1
        os.environ.update(PTL_POLL="interrupt", PTL_TELEMETRY="off")
        self.words = exchange.Process(program, device, side, str(Talker.life))
        self.process = self.words.process
        self.words.expect("ready")
        self.words.say("go")

    def talk(self):
        self.words.say("talk")
        self.words.expect("talked")

    def kill(self):
        self.words.kill()


def quiet(what, waiter):
    """One window without more wakes than that is waited for."""
    deadline = time.monotonic() + TIMEOUT
    least = None
    while least is None or (least > MOST and time.monotonic() < deadline):
        before = waiter.wakes()
        time.sleep(WINDOW)
        count = waiter.wakes() - before
        least = count if least is None else min(least, count)
    print(f"{what}: {least} wakes in {WINDOW:.0f} s", flush=True)
    if least > MOST:
        raise Failure(f"{what}: {least} wakes are more than {MOST}")


def both(one, other, names):
    """Each alone, both, and either with the other stopped."""
    for waiter, name in ((one, names[0]), (other, names[1])):
        quiet(f"{name} with its peer", waiter)
    for stopped, waiter, name in ((one, other, names[1]), (other, one, names[0])):
        stopped.signal(signal.SIGSTOP)
        quiet(f"{name} with its peer stopped", waiter)
        stopped.signal(signal.SIGCONT)


def play_node(start):
    one = start(0)
    quiet("a process alone on its node", one)
    other = start(1)
    one.talk()
    other.talk()
    both(one, other, ("one process", "the other"))
    other.kill()
    quiet("a process after its peer", one)
    other = start(1)
    other.talk()
    quiet("a process with the next life of its peer", one)
    one.kill()
    quiet("the next life after its peer", other)


def play_veth(start, device):
    waiters = [start(side) for side in (0, 1)]
    both(*waiters, ("one end", "the other end"))
    exchange.run("ip", "-n", device.names[0], "link", "set", "ptn0", "down")
    quiet("a port whose interface is down", waiters[0])
    quiet("a port whose link is down", waiters[1])


def play(program, device):
    waiters = []

    def start(side):
        waiters.append((Talker if isinstance(device, Node) else Waiter)(program, device, side))
        return waiters[-1]

    try:
        if isinstance(device, Node):
            play_node(start)
        elif isinstance(device, Veth):
            play_veth(start, device)
        else:
            quiet("a process with itself", start(0))
    finally:
        for waiter in waiters:
            waiter.kill()


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    return exchange.exit_code(sys.argv[2], lambda device: play(sys.argv[1], device))


if __name__ == "__main__":
    sys.exit(main())
