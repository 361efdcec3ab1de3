#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A program that has more rights than its user: the user's environment gets it to do nothing with them.

    privileged.py PROGRAM INTRUDER LAUNCHER

PROGRAM is privileged.c's, INTRUDER a shared object of intruder.c, LAUNCHER postern-run. An ordinary user starts copies of PROGRAM, one
with a capability of the file's and one that is set-uid root.

Exit code 0: passed; 77: skipped, after a line that says why; anything else: failed. With CI=true nothing is skipped.
"""
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import exchange
from exchange import Failure, Skip

USER = 60001
RUNTIME = pathlib.Path(f"/run/user/{USER}")
TIMEOUT = 60  # s
CAPABLE = struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0)  # capability.h: version 2, effective; CAP_NET_RAW
REFUSED = "more rights than its user"
SECRET = "a secret line of root"


class Place:
    """Copies of the program, files of the user and of root, and the user's runtime directory."""

    def __init__(self, program, intruder):
        self.directory = None
        self.runtime_made = False
        if os.geteuid() != 0:
            raise Skip("only root can give a program more rights")
        # EAL loads nothing from below a directory that all may write to, such as /tmp
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="postern-test-", dir="/var/lib"))
        self.directory.chmod(0o755)
        self.user = self.directory / "user"
        self.user.mkdir()
        self.plain, self.capable, self.rooted = (self.copy(program, name) for name in ("plain", "capable", "rooted"))
        self.intruder = self.copy(intruder, "intruder.so")
        try:
            os.setxattr(self.capable, "security.capability", CAPABLE)
        except OSError as why:
            raise Skip(f"no capabilities of files: {why}") from why
        self.rooted.chmod(0o4755)
        self.evil = self.user / "runtime"
        self.evil.mkdir(mode=0o700)
        self.hosts = self.file("hosts", "alpha 7\n", USER, 0o644)
        self.nodes = self.file("nodes", "7 ::1\n", USER, 0o644)
        self.open_nodes = self.file("open-nodes", "7 ::1\n", USER, 0o666)
        self.open_hosts = self.file("open-hosts", "alpha 7\n", USER, 0o666)
        self.secret = self.file("secret", SECRET + "\n", 0, 0o600)
        for path in (self.user, self.evil):
            os.chown(path, USER, USER)
        if not RUNTIME.exists():
            RUNTIME.parent.mkdir(mode=0o755, exist_ok=True)
            RUNTIME.mkdir(mode=0o700)
            os.chown(RUNTIME, USER, USER)
            self.runtime_made = True

    def copy(self, program, name):
        path = self.directory / name
        shutil.copy(program, path)
        path.chmod(0o755)
        return path

    def file(self, name, text, owner, mode):
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        os.chown(path, owner, owner)
        path.chmod(mode)
        return path

    def run(self, program, *words, fds=(), **settings):
        """Exit code, standard output, standard error."""
        environment = {"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(self.evil)} | settings
        done = subprocess.run([program, *words], env=environment, text=True, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=TIMEOUT, user=USER, group=USER, extra_groups=[], cwd=self.user, pass_fds=fds)
        return done.returncode, done.stdout, done.stderr

    def close(self):
        if self.directory:
            shutil.rmtree(self.directory, ignore_errors=True)
        if self.runtime_made:
            shutil.rmtree(RUNTIME, ignore_errors=True)
        for path in pathlib.Path("/tmp").glob(f"postern-{USER}"):
            shutil.rmtree(path, ignore_errors=True)


def expect(what, done, code, said, complaint=""):
    if (done[0] == 0) != (code == 0) or done[1] != said or complaint not in done[2]:
        raise Failure(f"{what}: ended with code {done[0]} and said \"{done[1]}\" and \"{done[2]}\"")


def refuse(place, program, name, value, *words):
    done = place.run(program, *(words or ("open",)), **{name: value})
    expect(f"{program.name}, {name}={value}", done, 1, "", REFUSED)
    if name not in done[2]:
        raise Failure(f"{program.name}: the line does not name {name}: {done[2]}")


def settings_are_refused(place, program):
    """What lets the user run code, write files or read the devices of others."""
    captured = place.user / "captured"
    refuse(place, program, "PTL_EAL_ARGS", f"-d {place.intruder}")
    refuse(place, program, "PTL_CAPTURE", str(captured))
    refuse(place, program, "PTL_SHARE", "on")
    refuse(place, program, "PTL_FAULT", "drop=0.1")
    refuse(place, program, "PTL_UDP_PORTS", "1-64")
    for interface in ("net_null0", f"net_pcap0,rx_pcap={place.secret},tx_pcap={captured}", "0000:00:00.0", "node;net_ring0", "lo0/../x"):
        refuse(place, program, "PTL_IFACE_NAME", interface)
    if captured.exists():
        raise Failure(f"{program.name} has made the user's file")


def interfaces_are_taken(place, program):
    for interface in ("node", "node:own", "udp:127.0.0.1"):
        expect(f"{program.name} on {interface}", place.run(program, "open", PTL_IFACE_NAME=interface), 0, "open\n")
    done = place.run(program, "open", PTL_IFACE_NAME="node;lo")
    if REFUSED in done[2]:
        raise Failure(f"{program.name} refuses an interface of the kernel: {done[2]}")
    if any(place.evil.iterdir()):
        raise Failure(f"{program.name} has written to the directory that its user names")
    if not any(RUNTIME.iterdir()):
        raise Failure(f"{program.name} has no directory in {RUNTIME}")


def files_are_the_users(place, program):
    expect(f"{program.name}, the user's hosts", place.run(program, "find", "alpha", PTL_MX_HOSTS=str(place.hosts)), 0, "7\n")
    for path, why in ((place.secret, "Permission denied"), (place.open_hosts, "other users can write"), (place.user, "not a regular file")):
        done = place.run(program, "find", "alpha", PTL_MX_HOSTS=str(path))
        expect(f"{program.name}, {path}", done, 1, "", why)
        if SECRET in done[2]:
            raise Failure(f"{program.name} shows the user a file of root")
    ip6 = {"PTL_IFACE_NAME": "udp:::1"}
    expect(f"{program.name}, the user's nodes", place.run(program, "open", PTL_HOSTS=str(place.nodes), **ip6), 0, "open\n")
    for path, why in ((place.secret, "Permission denied"), (place.open_nodes, "other users can write"), (place.user, "not a regular file")):
        done = place.run(program, "open", PTL_HOSTS=str(path), **ip6)
        expect(f"{program.name}, {path}", done, 1, "", why)
        if SECRET in done[2]:
            raise Failure(f"{program.name} shows the user a file of root")


def sockets_are_the_users(place, program, launcher):
    """A job's launcher is the user's own process; another descriptor is none."""
    with open(place.user / "written", "w+", encoding="utf-8") as file:
        done = place.run(program, "join", fds=(file.fileno(),), PMI_FD=str(file.fileno()), PMI_RANK="0", PMI_SIZE="1")
        expect(f"{program.name}, a file as the launcher", done, 1, "", REFUSED)
        if file.read():
            raise Failure(f"{program.name} writes to a file that its user names")
    done = place.run(launcher, "-n", "2", str(program), "join", XDG_RUNTIME_DIR=str(RUNTIME))
    expect(f"{program.name} in a job", (done[0], "".join(sorted(done[1].splitlines(True))), done[2]), 0, "joined\n" * 2)


def play(place, launcher):
    done = place.run(place.plain, "open", PTL_EAL_ARGS=f"-d {place.intruder}", XDG_RUNTIME_DIR=str(RUNTIME))
    shutil.rmtree(RUNTIME / "postern", ignore_errors=True)
    if "the intruder runs" not in done[1]:
        raise Failure(f"the intruder does not run where the user has all rights: {done}")
    for program in (place.capable, place.rooted):
        settings_are_refused(place, program)
        interfaces_are_taken(place, program)
        files_are_the_users(place, program)
        sockets_are_the_users(place, program, launcher)


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    exchange.PLAIN["privileged"] = lambda: Place(*sys.argv[1:3])
    return exchange.exit_code("privileged", lambda place: play(place, os.path.abspath(sys.argv[3])))


if __name__ == "__main__":
    sys.exit(main())
