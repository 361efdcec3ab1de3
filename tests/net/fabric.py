#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Processes of a job that speak by libfabric find each other without a question to everybody.

    fabric.py PROGRAM DEVICE

PROGRAM is fabric.c's, DEVICE as for exchange.py, one with a veth pair. PROCESSES of them on each end send to all, once each. The frames
that come to each end are read: a question to everybody must come after TRUSTED to the place that the process's address names, which
is what a process without a CPU brings about, and their number is printed. One process of each end has 10,000 addresses more.

Exit code 0: passed; 77: skipped, after a line that says why; anything else: failed. With CI=true nothing is skipped.
"""
import os
import sys

import exchange
import strangers

PROCESSES = 3
TRUSTED = 3            # questions; ASKS_TRUSTED of lib/transport/address.c
BALLAST = 10000        # addresses,
BALLAST_BYTES = 128    # and what each may cost: the vector doubles when it is full


def questions(frames):
    """Of all frames, who asks for whom, and whether everybody is asked. A process that asks for itself claims its name."""
    for frame in frames:
        if len(frame) < 14 + strangers.HEADER.size:
            continue
        fields = strangers.HEADER.unpack_from(frame, 14)
        wanted, asker = fields[4:6], fields[6:8]
        if fields[0] & 15 == strangers.ASK and wanted != asker:
            yield asker, wanted, frame[:6] == strangers.BROADCAST


def judge(frames, least):
    trusted, everybody, pairs = {}, 0, set()
    for asker, wanted, is_broadcast in questions(frames):
        pairs.add(frozenset((asker, wanted)))
        if not is_broadcast:
            trusted[asker, wanted] = trusted.get((asker, wanted), 0) + 1
            continue
        everybody += 1
        if trusted.get((asker, wanted), 0) < TRUSTED:
            raise exchange.Failure(f"{asker} asks everybody for {wanted}, and has asked {trusted.get((asker, wanted), 0)} times where that "
                                   "is said to be")
    print(f"{len(pairs)} pairs on the link, {sum(trusted.values())} questions to one process, {everybody} to everybody")
    if len(pairs) < least:
        raise exchange.Failure("not all questions have been seen")


def heard(listener):
    listener.setblocking(False)
    frames = []
    try:
        while True:
            frames.append(listener.recv(65536))
    except BlockingIOError:
        return frames


class Fabric(exchange.Process):
    """exchange.Process has words of its own for its program; here it is told how many there are."""

    def __init__(self, program, device, side, ballast):
        super().__init__(program, device, side, str(ballast), None, 2 * PROCESSES, str(ballast))


def play(device, program):
    os.environ.pop("PTL_PID", None)
    seen = not isinstance(device, exchange.Unprivileged)  # on UDP sockets a question to everybody is not a frame that can be seen
    listeners = [strangers.socket_in(device.names[side], device.interface(side)) for side in (0, 1)] if seen else []
    job = [Fabric(program, device, side, BALLAST if n == 0 else 0) for side in (0, 1) for n in range(PROCESSES)]
    try:
        names = [process.hear("name").split()[1] for process in job]
        for process in job:
            process.say("\n".join(names))
        for process in job:
            process.expect("sent")
        for process in job:
            process.say("end")
        for n, process in enumerate(job):
            kilobytes = int(process.hear("memory").split()[1])
            if n % PROCESSES == 0:
                print(f"{BALLAST} addresses take {kilobytes} kilobytes")
                if kilobytes * 1024 > BALLAST * BALLAST_BYTES:
                    raise exchange.Failure("that is too much")
            process.end()
        if seen:
            judge([frame for listener in listeners for frame in heard(listener)], PROCESSES * PROCESSES)
    finally:
        for listener in listeners:
            listener.close()
        for process in job:
            if process.process.poll() is None:
                process.kill()


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    return exchange.exit_code(sys.argv[2], lambda device: play(device, sys.argv[1]))


if __name__ == "__main__":
    sys.exit(main())
