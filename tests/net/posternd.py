#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs exchange processes of an ordinary user between two network namespaces, in each of which posternd has the interface.

    posternd.py PROGRAM POSTERND SCENARIO [DRIVER | KILLS]

PROGRAM and POSTERND are the paths of exchange and of posternd. DRIVER is one of DPDK's that opens the interface in the place of a card's,
or xdp.
SCENARIO:

    share      three processes on one end, two on the other: two pairs across, one pair on the same interface
    between    a pair in a VLAN, on the same interface without a directory in common, as in two containers: posternd forwards for them
    restarted  as share, again and again; one posternd after the other is killed and started again meanwhile, KILLS times (default 2) or
               a few more, and no operation fails
    stopped    as share; each posternd is stopped by SIGSTOP for STOP_TIME seconds (2) in the middle of it, and no operation fails
    killed     as share, with more processes on the first end, of whom two are killed while they put: posternd tells the others
    refused    a process id in use, too many processes of a user, a node id that is not posternd's, a user who is not in the group, no
               posternd: what processes are told
    libraries  postern-perf between the two ends, by Portals 4, MX and libfabric: messages, answers and remote memory

Exit code 0: passed; 77: skipped, after a line that says why; anything else: failed. With CI=true nothing is skipped.

Covers: apps/node/main.c.
"""
import functools
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import exchange
import many

USER = 65534  # nobody
UP_TIMES, DOWN_TIME = (0.1, 0.5), 0.05  # s: retransmission waits as long again as the network was away
DOUBLED = 50  # kills while the same messages are on their way, after which the times between two kills are twice as long
KILLS_LEAST, KILLS_MOST = 4, 300  # in all, and while the same messages are on their way
STOPS_MOST = 20  # times that all messages are sent, until each posternd was stopped in the midst of them
START_TIME = 60  # s
STOP_TIME = float(os.environ.get("STOP_TIME", "2"))  # s


class Daemons(exchange.Veth):
    """The interfaces have names of their own, because all namespaces share /run/postern."""
    posternd = None
    driver = None
    options = []
    tagged = {}  # PTL_VLAN

    def __init__(self, mtu):
        self.daemons = [None, None]
        self.apart = False
        self.homes = []
        if shutil.which("setpriv") is None:
            raise exchange.Skip("the program setpriv is missing; install util-linux")
        super().__init__(mtu)

    def make(self, mtu):
        for name in self.names:
            self.made.append(name)
            exchange.run("ip", "netns", "add", name)
        exchange.run("ip", "link", "add", self.link(0), "mtu", mtu, "netns", self.names[0], "type", "veth",
                     "peer", "name", self.link(1), "mtu", mtu, "netns", self.names[1])
        for side, name in enumerate(self.names):
            exchange.run("ip", "-n", name, "link", "set", "lo", "up")
            exchange.run("ip", "-n", name, "link", "set", self.link(side), "up")
        for side in (0, 1):
            self.start(side)

    def link(self, side):
        return f"pd{os.getpid()}{'ab'[side]}"

    def interface(self, side):
        if self.driver == "xdp":
            return f"xdp:{self.link(side)}"
        return f"{self.driver}{side},iface={self.link(side)}" if self.driver else self.link(side)

    def start(self, side):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PTL_")}
        self.daemons[side] = subprocess.Popen(
            super().prefix(side) + [self.posternd, "--iface", self.interface(side)] + self.options, stdout=subprocess.PIPE, text=True,
            env=environment | self.tagged | {"PTL_NID": str(self.node(side))}, preexec_fn=self.before)
        if "posternd has" not in self.daemons[side].stdout.readline():
            raise exchange.Failure("posternd does not start")
        soft, hard = resource.prlimit(self.daemons[side].pid, resource.RLIMIT_NOFILE)
        if soft < hard:
            raise exchange.Failure(f"posternd takes {soft} descriptors of {hard}")

    @staticmethod
    def before():
        exchange.die_with_parent()
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

    def kill(self, side):
        self.daemons[side].kill()
        self.daemons[side].wait()

    def prefix(self, side):
        return super().prefix(side) + ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]

    def home(self):
        """A directory for rendezvous, of the user."""
        self.homes.append(tempfile.mkdtemp(prefix="ptn-"))
        os.chown(self.homes[-1], USER, USER)
        return self.homes[-1]

    def settings(self, side):
        home = self.home() if self.apart or not self.homes else self.homes[0]
        return {"XDG_RUNTIME_DIR": home} | self.tagged

    def close(self):
        for daemon in self.daemons:
            if daemon and daemon.poll() is None:
                daemon.terminate()
                daemon.wait()
        super().close()
        for side in (0, 1):
            shutil.rmtree(f"/run/postern/{self.interface(side)}", ignore_errors=True)
        for home in self.homes:
            shutil.rmtree(home, ignore_errors=True)


def share(program, device):
    many.share(program, device)


def between(program, device):
    device.apart = True
    processes = [many.begin(program, device, *pair, "both") for pair in (many.LOCAL, many.LOCAL[::-1])]
    many.all_say(processes, "ready", "go")
    many.all_say(processes, "done", "leave")
    for process in processes:
        process.end()


def restarted(program, device, wanted):
    count = 0

    def kills():
        nonlocal count
        before = count
        while any(process.words.empty() for process in exchange.Process.started):
            time.sleep(random.uniform(*UP_TIMES) * 2 ** ((count - before) // DOUBLED))
            device.kill(count % 2)
            time.sleep(DOWN_TIME)
            device.start(count % 2)
            count += 1
            if count - before > KILLS_MOST:
                raise exchange.Failure("nothing gets on")

    os.environ["PTL_PEER_TIMEOUT"] = "60s"  # posternd's start takes what a busy machine needs
    begun = time.monotonic()
    while count < wanted:
        exchange.Process.started.clear()
        many.share(program, device, kills, "brief")
    print(f"posternd was killed {count} times in {time.monotonic() - begun:.0f} s, and no operation failed")


def stopped(program, device):
    left = list(device.daemons)

    def stop():
        time.sleep(random.uniform(*UP_TIMES))
        if any(process.words.empty() for process in exchange.Process.started):
            daemon = left.pop()
            daemon.send_signal(signal.SIGSTOP)
            time.sleep(STOP_TIME)
            daemon.send_signal(signal.SIGCONT)

    os.environ["PTL_PEER_TIMEOUT"] = f"{60 + 2 * STOP_TIME:.0f}s"
    for _ in range(STOPS_MOST):
        exchange.Process.started.clear()
        many.share(program, device, stop)
        if not left:
            print(f"each posternd was stopped for {STOP_TIME:g} s")
            return
    raise exchange.Failure(f"all was done {STOPS_MOST} times before posternd was stopped: nothing was shown")


def killed(program, device):
    exchange.PEER_TIMEOUT = "600s"  # nobody waits for as long
    many.killed(program, device)


def says(program, device, pid, part, **settings):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PTL_")}
    done = subprocess.run(device.prefix(0) + [program, str(pid), f"{device.node(1)}:5", "both"], text=True,
                          env=environment | {"PTL_IFACE_NAME": device.interface(0)} | device.settings(0) | settings,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=START_TIME, check=False)
    if done.returncode == 0 or part not in done.stderr:
        raise exchange.Failure(f"\"{part}\" is missing in: {done.stderr}")


def refused(program, device):
    device.apart = True
    first = exchange.Process(program, device, 0, "both", None, 5, f"{device.node(1)}:5")
    first.expect("ready")
    says(program, device, 5, "process id 5 is in use at posternd")
    says(program, device, 6, "posternd has reached its limit of processes of one user")
    first.kill()
    says(program, device, 5, "leave PTL_NID out", PTL_NID="77")
    says(program, device, 5, "give both the same", PTL_VLAN="7")
    says(program, device, 5, "PTL_ENCAP=udp does not go through posternd", PTL_ENCAP="udp", PTL_IP="10.0.0.1/24")
    device.kill(0)
    says(program, device, 5, f"start `posternd --iface {device.interface(0)}` as root")
    Daemons.options = ["--group", "1"]
    device.start(0)
    if os.stat(f"/run/postern/{device.interface(0)}/posternd").st_gid != 1:
        raise exchange.Failure("posternd's socket is another group's")
    says(program, device, 5, "posternd does not admit this user")
    device.daemons[0].terminate()
    if device.daemons[0].wait(START_TIME) != 0:
        raise exchange.Failure(f"posternd ends with {device.daemons[0].returncode} after SIGTERM")
    if os.path.exists(f"/run/postern/{device.interface(0)}/posternd"):
        raise exchange.Failure("posternd leaves its socket")


def libraries(_, device):
    """Answers are frames that name no user, and each library has its own."""
    apps = os.path.dirname(Daemons.posternd)
    words = [os.path.join(apps, "postern-perf"), "--library"]
    fi = os.path.exists(os.path.join(apps, "postern-perf-fi.so"))
    every = ["latency", "put-latency", "get-latency", "fetch-latency"]
    for library, measures in [("portals4", every), ("mx", every[:1])] + [("fi", every)] * fi:
        environments = [{name: value for name, value in os.environ.items() if not name.startswith("PTL_")} | device.settings(side) |
                        {"PTL_IFACE_NAME": device.interface(side), "FI_PROVIDER_PATH": os.path.join(apps, "../lib/fi")}
                        for side in (0, 1)]
        server = subprocess.Popen(device.prefix(1) + words + [library, "--server", "--once"], env=environments[1], text=True,
                                  stdout=subprocess.PIPE, preexec_fn=exchange.die_with_parent)
        try:
            peer = re.search(r"Serving at (\S+:\d+)", server.stdout.readline())
            if not peer:
                raise exchange.Failure(f"the server for {library} does not start")
            done = subprocess.run(device.prefix(0) + words + [library, "--peer", peer[1], "--sizes", "8,64K", "--iterations", "20"] +
                                  measures, env=environments[0], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=10 * START_TIME, check=False)
            if done.returncode != 0 or "Latency" not in done.stdout:
                raise exchange.Failure(f"by {library}: {done.stdout}")
            if server.wait(START_TIME) != 0:
                raise exchange.Failure(f"the server for {library} ends with {server.returncode}")
        finally:
            server.kill()
            server.wait()


def main():
    if len(sys.argv) not in (4, 5):
        print(__doc__, file=sys.stderr)
        return 2
    program, Daemons.posternd, scenario = sys.argv[1:4]
    last = sys.argv[4] if len(sys.argv) == 5 else None
    Daemons.options = ["--per-user", "1"] if scenario == "refused" else []
    Daemons.tagged = {"PTL_VLAN": "7"} if scenario == "between" else {}
    kills = int(last) if last and last.isdigit() else KILLS_LEAST
    Daemons.driver = None if last and last.isdigit() else last
    exchange.KINDS["posternd"] = Daemons

    def play(device):
        try:
            {"share": share, "between": between, "restarted": functools.partial(restarted, wanted=kills), "stopped": stopped,
             "killed": killed, "refused": refused, "libraries": libraries}[scenario](program, device)
        finally:
            for process in exchange.Process.started:
                if process.process.poll() is None:
                    process.kill()

    return exchange.exit_code("posternd:1500", play)


if __name__ == "__main__":
    sys.exit(main())
