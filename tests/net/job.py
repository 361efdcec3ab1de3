#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a job whose ranks stand in two network namespaces in turns.

    job.py POSTERN_RUN DEVICE PROGRAM [ARGUMENT...]

DEVICE is as for exchange.py, one with a veth pair. On Ethernet and without losses no rank asks everybody where another one is before it
has asked there, because the ranks' cards have gone along with what the library has put into the launcher's space.

Exit code 0: passed; 77: skipped, after a line that says why; anything else: failed. With CI=true nothing is skipped.
"""
import os
import shlex
import subprocess
import sys

import exchange
import fabric
import strangers

RANKS = 4


def command(device, side, program):
    """What a rank on that side becomes."""
    settings = [f"{name}={value}" for name, value in device.settings(side).items()]
    return shlex.join(device.prefix(side) + ["env"] + settings + program)


def run(device, launcher, program):
    sides = [command(device, side, program) for side in (0, 1)]
    environment = {name: value for name, value in os.environ.items() if name not in exchange.LINK_SETTINGS}
    environment["GASNET_SUPERNODE_MAXSIZE"] = "1"  # puts and gets of GASNet use the network, too
    environment["PTL_IFACE_NAME"] = device.interface(0)
    with subprocess.Popen([launcher, "-n", str(RANKS), "sh", "-c", f'[ $((PMI_RANK % 2)) = 0 ] && exec {sides[0]}; exec {sides[1]}'],
                          env=environment, preexec_fn=exchange.die_with_parent) as job:
        try:
            code = job.wait(timeout=exchange.TIMEOUT * RANKS)
        except BaseException:  # also a signal that ends the script; the launcher ends the ranks
            job.terminate()
            job.wait()
            raise
    if code != 0:
        raise exchange.Failure(f"the job ended with code {code}")


def play(device, launcher, program):
    with strangers.socket_in(device.names[0], device.interface(0)) as listener:
        run(device, launcher, program)
        fabric.judge(fabric.heard(listener), 1)


def main():
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    launcher, kind, *program = sys.argv[1:]
    # On other devices a question to everybody is not a frame that can be seen.
    how = play if kind.startswith("veth:") and not os.environ.get("PTL_FAULT") else run
    return exchange.exit_code(kind, lambda device: how(device, launcher, program))


if __name__ == "__main__":
    sys.exit(main())
