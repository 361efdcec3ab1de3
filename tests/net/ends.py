#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Four ranks of a job on two hosts, which answer in their own calls only, wait for one that is dead, or late.

    ends.py PROGRAM DEVICE SCENARIO

PROGRAM is tests/apps/ends or another one that takes its words. DEVICE is one of exchange.py's with two namespaces. This script is the launcher
of the job, by PMI, and one that tells nobody that a rank is dead. Ranks 1 and 2 are on the second host. SCENARIO:

    kill   rank 1 is killed while the others wait at a barrier: one of them ends the job
    host   so are all processes of its host
    lost   the other host does not answer any more
    ask    rank 1 sends to rank 0, which waits at the barrier, before it comes there (ends4)
    late   rank 1 comes to the barrier long after PTL_PEER_TIMEOUT, without a call before: the job goes on

Exit code 0: passed; 77: skipped, after a line that says why; anything else: failed. With CI=true nothing is skipped.
"""
import os
import queue
import socket
import subprocess
import sys
import threading
import time

import exchange
from exchange import Failure, run

SIDES = (0, 1, 1, 0)  # of the ranks
HANG = 120            # s


class Launcher:
    """Of ranks that it does not look after."""

    def __init__(self, program, device, word, timeout, keeps):
        self.values = {}
        self.keeps = keeps  # all ranks at the barrier at which they do not join
        self.passed = 0
        self.waiting = []
        self.lock = threading.Lock()
        self.news = queue.Queue()
        self.ranks = []
        settings = [device.settings(side) for side in (0, 1)]
        for rank, side in enumerate(SIDES):
            here, there = socket.socketpair()
            environment = {name: value for name, value in os.environ.items()
                           if not name.startswith("PTL_IFACE") and name not in exchange.LINK_SETTINGS}
            environment |= settings[side] | {
                "PTL_IFACE_NAME": device.interface(side), "PTL_PROGRESS": "inline", "PTL_PEER_TIMEOUT": timeout,
                "PMI_FD": str(there.fileno()), "PMI_RANK": str(rank), "PMI_SIZE": str(len(SIDES))}
            self.ranks.append(subprocess.Popen(device.prefix(side) + [program, word], env=environment, pass_fds=[there.fileno()],
                                               preexec_fn=exchange.die_with_parent))
            there.close()
            threading.Thread(target=self.serve, args=(rank, here), daemon=True).start()

    def serve(self, rank, stream):
        for line in stream.makefile("r"):
            words = dict(word.split("=", 1) for word in line.split())
            with self.lock:
                answer = self.answer(rank, words, stream)
            if answer:
                stream.sendall(answer.encode() + b"\n")
        self.news.put(("gone", rank))

    def answer(self, rank, words, stream):
        command = words["cmd"]
        if command == "put":
            self.values[words["key"]] = words["value"]
        elif command == "barrier_in":
            self.waiting.append(stream)
            if len(self.waiting) == len(SIDES) and self.keeps and self.passed:
                self.news.put(("waiting", rank))
            elif len(self.waiting) == len(SIDES):
                waiting, self.waiting = self.waiting, []
                self.passed += 1
                for one in waiting:
                    one.sendall(b"cmd=barrier_out\n")
            return None
        elif command == "abort":
            self.news.put(("abort", rank))
            return None
        return {"init": "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1", "get_my_kvsname": "cmd=my_kvsname kvsname=job",
                "put": "cmd=put_result rc=0", "finalize": "cmd=finalize_ack",
                "get": f"cmd=get_result rc=0 value={self.values.get(words.get('key'))}"}[command]

    def hear(self, what):
        try:
            while (news := self.news.get(timeout=HANG))[0] != what:
                pass
        except queue.Empty:
            raise Failure(f"no rank has said \"{what}\" after {HANG} s") from None
        return news[1]

    def close(self):
        for rank in self.ranks:
            rank.kill()
            rank.wait()


def addresses_settle(device):
    """A new interface may have its IPv6 address only when no other one has answered for that."""
    for side in (0, 1):
        until = time.monotonic() + HANG
        while subprocess.run(device.prefix(side) + ["ip", "-6", "address", "show", "tentative"], check=True, capture_output=True).stdout:
            if time.monotonic() > until:
                raise Failure("an address is tentative for ever")
            time.sleep(0.1)


def end(launcher, device, scenario):
    """Waits until a rank ends the job for the one that is not there any more."""
    if scenario == "lost":
        launcher.hear("waiting")
        run("ip", "-n", device.names[1], "link", "set", "ptn0", "down")
    elif launcher.hear("gone") != 1:
        raise Failure("another rank than 1 has ended first")
    begun = time.monotonic()
    if scenario == "host":
        launcher.ranks[2].kill()
    rank = launcher.hear("abort")
    print(f"rank {rank} has ended the job after {time.monotonic() - begun:.1f} s")


def all_end_well(launcher):
    for rank, process in enumerate(launcher.ranks):
        if (code := process.wait(HANG)) != 0:
            raise Failure(f"rank {rank} ended with {code}")


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    program, kind, scenario = sys.argv[1:]

    def play(device):
        late = scenario in ("late", "ask")
        addresses_settle(device)
        lost = scenario == "lost"
        launcher = Launcher(program, device, scenario if late else "late" if lost else "kill", "500ms" if scenario == "late" else "2s", lost)
        try:
            if late:
                all_end_well(launcher)
            else:
                end(launcher, device, scenario)
        finally:
            launcher.close()

    return exchange.exit_code(kind, play)


if __name__ == "__main__":
    sys.exit(main())
