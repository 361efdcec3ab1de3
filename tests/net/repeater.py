#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What two processes have said is repeated on the link between them, and nothing is delivered twice.

    repeater.py PROGRAM [SECONDS...]     how long the two are silent before it is repeated: 63 67

PROGRAM is exchange.c's. A third host on the link, this script, hears what the active process sends on a veth pair, and sends all of it
again from where that is: after each silence, after the sender has been started anew, and after the receiver has been. The receiver's
count of messages must not change by it, and the two go on talking in between.

Exit code 0: passed; 77: skipped, after a line that says why; anything else: failed. With CI=true nothing is skipped.
"""
import select
import sys
import threading
import time

import exchange
from exchange import Failure, Stage
from strangers import HEADER, socket_in

SILENCES = ["63", "67"]  # a stream is given up after 60 s, a process forgotten after 120 s
SETTLE = 0.5


class Repeater(threading.Thread):
    """Keeps the frames of one node."""

    def __init__(self, device, side):
        super().__init__(daemon=True)
        self.ear = socket_in(device.names[1 - side], device.interface(1 - side))
        self.mouth = socket_in(device.names[side], device.interface(side))
        self.nid = device.node(side)
        self.kept = []
        self.over = threading.Event()

    def run(self):
        while not self.over.is_set():
            if not select.select([self.ear], [], [], 0.01)[0]:
                continue
            frame = self.ear.recv(65536)
            if len(frame) >= 14 + HEADER.size and HEADER.unpack_from(frame, 14)[6] == self.nid:
                self.kept.append(frame)

    def repeat(self):
        frames = list(self.kept)
        for frame in frames:
            self.mouth.send(frame)
        time.sleep(SETTLE)
        del self.kept[len(frames):]
        return len(frames)

    def close(self):
        self.over.set()
        self.join()
        self.ear.close()
        self.mouth.close()


def counted(process):
    process.say("count")
    return int(process.hear("counted").split()[1])


def repeated_in_vain(repeater, passive, when):
    before = counted(passive)
    frames = repeater.repeat()
    after = counted(passive)
    if after != before:
        raise Failure(f"{when}, {after - before} messages of {frames} frames were delivered again")
    print(f"{when}: {frames} frames repeated, none delivered", flush=True)


def repeater(stage, silences):
    passive = stage.begin(0, "passive")
    heard = Repeater(stage.device, 1)
    heard.start()
    try:
        active = stage.begin(1, "active")
        exchange.talk(active)
        if counted(passive) == 0 or not heard.kept:
            raise Failure("nothing was said, or nothing was heard of it")
        repeated_in_vain(heard, passive, "at once")
        for silence in silences:
            time.sleep(float(silence))
            repeated_in_vain(heard, passive, f"{silence} s later")
        exchange.talk(active)
        active.kill()
        active = stage.begin(1, "active")
        repeated_in_vain(heard, passive, "after a new start of the sender")
        exchange.talk(active)
        repeated_in_vain(heard, passive, "after its first words")
        passive.kill()
        passive = stage.begin(0, "passive")
        repeated_in_vain(heard, passive, "after a new start of the receiver")
    finally:
        heard.close()
    active.kill()
    passive.kill()


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    silences = sys.argv[2:] or SILENCES

    def play(device):
        stage = Stage(sys.argv[1], device)
        try:
            repeater(stage, silences)
        finally:
            stage.close()

    return exchange.exit_code("veth:1500", play)


if __name__ == "__main__":
    sys.exit(main())
