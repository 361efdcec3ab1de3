#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every measure of postern-perf between two processes on kernel interfaces, whose line and control session share an interface.

    perf.py PROGRAMS DEVICE LIBRARY

DEVICE is as for exchange.py. Figures are not looked at: only that each measure has carried its messages.

Exit code 0: passed; 77: skipped, after a line that says why; anything else: failed. With CI=true nothing is skipped.
"""
import json
import os
import subprocess
import sys

import exchange

SIZES = "0,8,64K"
MESSAGES = 200
TIMEOUT = 300


def start(programs, device, side, *words):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PTL_")}
    return subprocess.Popen(device.prefix(side) + [os.path.join(programs, "postern-perf"), *words], stdout=subprocess.PIPE, text=True,
                            env=clean | {"PTL_IFACE_NAME": device.interface(side)} | device.settings(side),
                            preexec_fn=exchange.die_with_parent)


def measure(programs, device, library):
    server = start(programs, device, 1, "--server", "--once", "--library", library)
    for line in server.stdout:
        if "Serving at" in line:
            break
    client = start(programs, device, 0, "--library", library, "--peer", f"{device.node(1)}:1", "--sizes", SIZES, "--iterations",
                   str(MESSAGES), "--json", "all")
    told, _ = client.communicate(timeout=TIMEOUT)
    server.communicate(timeout=TIMEOUT)
    if client.returncode != 0 or server.returncode != 0:
        raise exchange.Failure(f"the client ends with {client.returncode}, the server with {server.returncode}")
    results = json.loads(told)["results"]
    if not results or any(result["messages"] < MESSAGES for result in results):
        raise exchange.Failure(f"{results} are too few")


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    programs, kind, library = sys.argv[1:]
    return exchange.exit_code(kind, lambda device: measure(programs, device, library))


if __name__ == "__main__":
    sys.exit(main())
