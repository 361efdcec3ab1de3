#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What postern-ping and postern-info doctor find on real networks between namespaces (exchange.py makes them).

    ping.py PROGRAMS SCENARIO...      several run side by side

    plain    a pair: the other process answers, frames of all sizes pass
    uneven   a pair of which one end has smaller frames than the other: that is found
    narrow   a router whose second link carries less than the first: the path's MTU is found
    unequal  a pair whose first end has a larger MTU than the second takes: what the kernel refuses stops nothing else
    jammed   the same with a device string of DPDK's, which stops for good where the kernel is so: that does not mislead
    names    two hosts with one address are told of each other
    beyond   raw frames do not pass a router: ping, doctor and a job of two ranks say so
    hole     the same over UDP sockets of users without a capability, and ICMP does not pass
    sockets  UDP sockets of users without a capability: firewalls of either host, nobody there, a stopped process, another range of
             ports, no way to the host

Exit code 0: passed; 77: skipped, after a line that says why; anything else: failed. With CI=true nothing is skipped.
"""
import ctypes
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys

import exchange

MTU = 1500
SMALL = 1400
NARROW = 1300
HOLE = 1400  # of exchange.SocketNarrow
LARGE = 9000
TAG = 4  # a veth lets frames in that are larger by a VLAN tag
TIMEOUT = 600


class Narrow(exchange.Router):
    """The router's way to the second host carries less than that host believes."""

    def make(self, mtu):
        super().make(mtu)
        exchange.run("ip", "-n", self.made[-1], "link", "set", "ptn1", "mtu", str(NARROW))


class Unequal(exchange.Veth):
    """The first end sends frames that the second refuses."""

    def make(self, mtu):
        super().make(mtu)
        exchange.run("ip", "-n", self.names[0], "link", "set", "ptn0", "mtu", str(LARGE))


class Jammed(exchange.Veth):
    """The first end is jammed by a frame that the second refuses."""

    def make(self, mtu):
        super().make(mtu)
        exchange.run("ip", "-n", self.names[1], "link", "set", "ptn0", "mtu", str(NARROW))

    def interface(self, side):
        return "net_af_packet0,iface=ptn0" if side == 0 else super().interface(side)


class Twins(exchange.Udp):
    """Both hosts have the first one's address."""

    def address(self, side):
        return super().address(0)


class Beyond(exchange.SocketRouted, exchange.Router):
    """Raw frames on hosts of two subnets, with a router between."""

    def node(self, side):
        return exchange.NODES[side]

    def settings(self, side):
        return exchange.Veth.settings(self, side)


def environment(device, side):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PTL_")}
    return clean | {"PTL_IFACE_NAME": device.interface(side)} | device.settings(side)


def server(programs, device, side, **settings):
    process = subprocess.Popen(device.prefix(side) + [os.path.join(programs, "postern-perf"), "--server"],
                               stdout=subprocess.PIPE, text=True, env=environment(device, side) | settings,
                               preexec_fn=exchange.die_with_parent)
    for line in process.stdout:
        if "Serving at" in line:
            return process
    raise exchange.Failure("the server did not start")


def ask(programs, device, side, name, *words):
    done = subprocess.run(device.prefix(side) + [os.path.join(programs, name), *words, "--json"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT,
                          env=environment(device, side), check=False)
    try:
        return done.returncode, json.loads(done.stdout)
    except json.JSONDecodeError:
        raise exchange.Failure(f"{name} says: {done.stdout}{done.stderr}") from None


def expect(what, found, wanted):
    if found != wanted:
        raise exchange.Failure(f"{what} is {found}, not {wanted}")


def ping(programs, device):
    code, report = ask(programs, device, 0, "postern-ping", "--count", "5", "--interval", "1ms", "--timeout",
                       "30s", "--mtu", f"{device.node(1)}:1")
    expect("the exit code", code, 0)
    expect("answers", report["answered"], 5)
    return report["path_mtu"]


def findings(programs, device, *words):
    code, report = ask(programs, device, 0, "postern-info", "doctor", *words)
    return code, {finding["check"]: finding for finding in report["findings"]}


def plain(programs, device):
    server(programs, device, 1)
    expect("the path MTU", ping(programs, device),
           {"there": MTU, "back": MTU, "own": MTU, "target": MTU})


def uneven(programs, device):
    server(programs, device, 1, PTL_MTU=str(SMALL))
    _, found = findings(programs, device, f"{device.node(1)}:1")
    expect("the level", found["mtu"]["level"], "warning")
    expect("the command", found["mtu"]["fix"], f"export PTL_MTU={SMALL} # for both processes")


def narrow(programs, device):
    server(programs, device, 1)
    expect("the path MTU", ping(programs, device),
           {"there": NARROW, "back": NARROW, "own": MTU, "target": MTU})
    code, found = findings(programs, device, f"{device.node(1)}:1")
    expect("the exit code", code, 1)
    expect("the level", found["mtu"]["level"], "failure")
    expect("the command", found["mtu"]["fix"], f"export PTL_MTU={NARROW} # for both processes")


def hole(programs, device):
    """The way takes smaller frames than the hosts, and a firewall keeps ICMP from telling the kernels."""
    if shutil.which("nft") is None:
        raise exchange.Skip("the program nft is missing; install nftables")
    exchange.run("ip", "netns", "exec", device.made[-1], "nft",
                 "add table ip ptn; add chain ip ptn way { type filter hook output priority 0; };"
                 "add rule ip ptn way icmp type destination-unreachable drop")
    process = server(programs, device, 1)
    code, found = findings(programs, device, f"{device.node(1)}:1")
    expect("the exit code", code, 1)
    expect("the level", found["mtu"]["level"], "failure")
    expect("the command", found["mtu"]["fix"], f"export PTL_MTU={HOLE} # for both processes")
    process.kill()
    process.wait()
    server(programs, device, 1, PTL_MTU=str(HOLE))
    os.environ["TEST_WITHIN"] = f"env PTL_MTU={HOLE}"  # what is asked for mends it
    _, found = findings(programs, device, f"{device.node(1)}:1")
    expect("the level", found["mtu"]["level"], "ok")


def unequal(programs, device):
    server(programs, device, 1)
    expect("the path MTU", ping(programs, device),
           {"there": MTU + TAG, "back": MTU, "own": LARGE, "target": MTU})
    code, found = findings(programs, device, f"{device.node(1)}:1")
    expect("the exit code", code, 1)
    expect("the level", found["mtu"]["level"], "failure")
    expect("the command", found["mtu"]["fix"], f"export PTL_MTU={MTU} # for both processes")


def jammed(programs, device):
    server(programs, device, 1)
    code, found = findings(programs, device, f"{device.node(1)}:1")
    expect("the exit code", code, 1)
    expect("the level", found["mtu"]["level"], "failure")
    expect("the command", found["mtu"]["fix"], f"export PTL_MTU={NARROW} # for both processes")


def names(programs, device):
    server(programs, device, 1)
    code, found = findings(programs, device)
    expect("the exit code", code, 1)
    expect("the level", found["name"]["level"], "failure")


def rule(device, side, words):
    """A firewall's, for datagrams of UDP sockets that leave the first host or come to the second; "": none."""
    hook = "input" if side else "output"
    rules = f"add table ip ptn; delete table ip ptn; add table ip ptn; add chain ip ptn way {{ type filter hook {hook} priority 0; }};"
    if words:
        rules += f"add rule ip ptn way udp dport 20480-21503 {words}"
    exchange.run("ip", "netns", "exec", device.names[side], "nft", rules)


def sockets_told(programs, device, part, warned="", **settings):
    """What doctor finds about the peer has these words, and so has what ping says; warned: a warning of the library. Both wait for answers
    for most of their time, and do so side by side."""
    asked = [(name, subprocess.Popen(device.prefix(0) + [os.path.join(programs, name), *words, f"{device.node(1)}:1"],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(device, 0) | settings,
                                     preexec_fn=exchange.die_with_parent))
             for name, words in (("postern-info", ["doctor", "--json"]), ("postern-ping", ["--count", "2", "--timeout", "2s"]))]
    for name, process in asked:
        out, err = process.communicate(timeout=TIMEOUT)
        if part not in out.lower() or (warned and err.count(warned) != 1) or (not warned and err):
            raise exchange.Failure(f"{name} says: {out}{err}, not \"{part}\" and \"{warned}\"")


def sockets(programs, device):
    if shutil.which("nft") is None:
        raise exchange.Skip("the program nft is missing; install nftables")
    exchange.run("ip", "netns", "exec", device.names[1], "sysctl", "-qw", "net.ipv4.icmp_ratelimit=0")
    process = server(programs, device, 1)
    expect("the path MTU", ping(programs, device), {"there": MTU, "back": MTU, "own": MTU, "target": MTU})
    refused, silent = "with that id does", "nothing comes back"
    sockets_told(programs, device, refused, PTL_UDP_PORTS="30000-30100")
    for side, words, part, warned in ((1, "drop", silent, ""), (1, "reject", refused, ""),
                                      (1, "reject with icmp type admin-prohibited", silent, "cannot be reached: No route to host"),
                                      (0, "drop", silent, "a firewall of this host blocks datagrams to")):
        rule(device, side, words)
        sockets_told(programs, device, part, warned)
        rule(device, side, "")
    os.kill(process.pid, signal.SIGSTOP)
    sockets_told(programs, device, refused)
    process.kill()
    process.wait()
    sockets_told(programs, device, refused)
    exchange.run("ip", "-n", device.names[0], "address", "flush", "dev", "ptn0")
    exchange.run("ip", "-n", device.names[0], "address", "add", "10.78.0.1/24", "dev", "ptn0")
    sockets_told(programs, device, silent, "cannot be reached: Network is unreachable")


def beyond(programs, device):
    server(programs, device, 1)
    for name, words in (("postern-info", ["doctor"]), ("postern-ping", ["--count", "1", "--timeout", "1s"])):
        done = subprocess.run(device.prefix(0) + [os.path.join(programs, name), *words, f"{device.node(1)}:1"], stdout=subprocess.PIPE,
                              text=True, timeout=TIMEOUT, env=environment(device, 0), check=False)
        if "a router, which forwards no Ethernet frames" not in " ".join(done.stdout.split()):
            raise exchange.Failure(f"{name} says: {done.stdout}")
    ring = os.path.join(programs, "examples/ring_allreduce")
    ranks = [shlex.join(device.prefix(side) + ["env", f"PTL_NID={device.node(side)}", ring, "10"]) for side in (0, 1)]
    done = subprocess.run([os.path.join(programs, "postern-run"), "-n", "2", "sh", "-c", f"[ $PMI_RANK = 0 ] && exec {ranks[0]}; exec {ranks[1]}"],
                          stderr=subprocess.PIPE, text=True, timeout=TIMEOUT, env=environment(device, 0) | {"PTL_PEER_TIMEOUT": "1s"}, check=False)
    for own, other in ((0, 1), (1, 0)):
        line = f"the interface of rank {other} is in the subnet 10.77.{other}.0, that of this process in 10.77.{own}.0: if a router is between them"
        if done.stderr.count(line) != 1:
            raise exchange.Failure(f"a job says: {done.stderr}")
    if done.returncode == 0 or "no process with that id answered in time: postern-ping says why" not in done.stderr:
        raise exchange.Failure(f"the job ended with {done.returncode}: {done.stderr}")


SCENARIOS = {"sockets": (sockets, exchange.Socket), "plain": (plain, exchange.Veth), "uneven": (uneven, exchange.Veth), "narrow": (narrow, Narrow), "hole": (hole, exchange.SocketNarrow),
             "unequal": (unequal, Unequal), "jammed": (jammed, Jammed), "names": (names, Twins), "beyond": (beyond, Beyond)}


def terminate_with_parent():
    """In the child: it removes what it made."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def side_by_side(programs, scenarios):
    """Those that look for a path's MTU mostly wait for frames that are lost."""
    runs = [subprocess.Popen([sys.executable, __file__, programs, scenario], preexec_fn=terminate_with_parent)
            for scenario in scenarios]
    try:
        codes = {run.wait() for run in runs}
    finally:
        for run in runs:
            if run.poll() is None:
                run.terminate()
                run.wait()
    return max(codes - {0, 77}, default=77 if 77 in codes else 0, key=abs)


def scenario_run(programs, scenario):
    look, make = SCENARIOS[scenario]
    device = None
    try:
        device = make(str(MTU))
        look(programs, device)
    except exchange.Skip as skip:
        print(f"skipped: {skip}")
        return 1 if os.environ.get("CI") == "true" else 77
    except exchange.Failure as failure:
        print(f"failed: {failure}")
        return 1
    finally:
        if device is not None:
            device.close()
    return 0


def main():
    programs, *scenarios = sys.argv[1:]
    exchange.end_in_order()
    if len(scenarios) > 1:
        return side_by_side(programs, scenarios)
    return scenario_run(programs, scenarios[0])


if __name__ == "__main__":
    sys.exit(main())
