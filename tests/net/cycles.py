#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Opens and closes interfaces in one process, again and again, and sees to it that nothing is kept.

    cycles.py PROGRAM DEVICE [COUNT [SEED]]

PROGRAM is cycles.c's. DEVICE is one of exchange.py's that a process can have both ends of: loop, node, or pair:MTU for a kernel interface.
With SEED two processes of a node have one end each, come at the same moment, and send to each other at the same moment.

Exit code 0: passed; 77: skipped, after a line that says why; anything else: failed. With CI=true nothing is skipped.
"""
import os
import subprocess
import sys

import exchange
from exchange import Failure, die_with_parent

COUNT = "150"


def cycle(program, device, count, *seed):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PTL_IFACE")}
    environment.update(device.settings(0))
    if seed:
        environment["PTL_IFACE_NAME"] = device.interface(0)
    else:
        environment["PTL_IFACE_NAME"] = f"{device.interface(0)};{device.interface(1)}"
        environment["PTL_NID"] = f"{device.node(0)};{device.node(1)}"
    code = subprocess.run(device.prefix(0) + [program, count, *seed], env=environment, preexec_fn=die_with_parent, check=False).returncode
    if code != 0:
        raise Failure(f"cycles ended with code {code}")


def main():
    if not 3 <= len(sys.argv) <= 5:
        print(__doc__, file=sys.stderr)
        return 2
    program, kind, *numbers = sys.argv[1:]
    return exchange.exit_code(kind, lambda device: cycle(program, device, *(numbers or [COUNT])))


if __name__ == "__main__":
    sys.exit(main())
