#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two processes of MX on two hosts of a network find each other's host by its name, without a file of names and without DNS.

    mx_names.py PROGRAM DEVICE

PROGRAM is mx_names. DEVICE is one of exchange.py's whose ends have node ids of their own: veth:MTU, vlan:MTU, xdp:MTU.

Exit code 0: passed; 77: skipped, after a line that says why; anything else: failed. With CI=true nothing is skipped.
"""
import os
import subprocess
import sys

import exchange
from exchange import Failure

HOSTS = ("alpha", "beta")
ENDPOINTS = ("0", "23")
TIMEOUT = 60  # s, until a process has said a word; generous, the cores may be busy


class Host:
    def __init__(self, program, device, side):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PTL_") or name == "PTL_FAULT"}
        environment |= device.settings(side) | {"PTL_IFACE_NAME": device.interface(side), "PTL_MX_HOSTNAME": HOSTS[side]}
        self.process = subprocess.Popen(
            device.prefix(side) + [program, ENDPOINTS[side], HOSTS[1 - side]], env=environment, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, preexec_fn=exchange.die_with_parent)

    def hear(self, word):
        heard = self.process.stdout.readline().strip()
        if heard != word:
            raise Failure(f"a process said \"{heard}\", \"{word}\" was expected; it ended with code {self.process.wait(TIMEOUT)}")

    def say(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def end(self):
        if self.process.wait(TIMEOUT) != 0:
            raise Failure(f"a process ended with code {self.process.returncode}")


def play(program, device):
    hosts = []
    try:
        for side in (0, 1):
            hosts.append(Host(program, device, side))
        for word in ("ready", "found"):
            for host in hosts:
                host.hear(word)
            for host in hosts:
                host.say()
        for host in hosts:
            host.end()
    finally:
        for host in hosts:
            host.process.kill()


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    return exchange.exit_code(sys.argv[2], lambda device: play(sys.argv[1], device))


if __name__ == "__main__":
    sys.exit(main())
