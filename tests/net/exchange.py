#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs two exchange processes against each other over a real device.

    exchange.py PROGRAM DEVICE SCENARIO

DEVICE is node, or one of these, all on veth pairs between network namespaces that this script makes and removes:

    veth:MTU    a pair, raw Ethernet
    vlan:MTU    the same with VLAN tags
    udp:MTU     a pair, over UDP/IPv4
    udp-vlan:MTU  the same with VLAN tags
    router:MTU  two subnets with a router between, a third namespace in which the kernel forwards; over UDP/IPv4
    tap:1500    the same with tap devices, which know checksums
    xdp:1500    as veth, by af_xdp
    socket:MTU  a pair, by UDP sockets of users without capabilities; PTL_IFACE_NAME=udp:...
    socket-router:MTU, socket-marks:MTU  the same over a router
    socket6:MTU, socket6-router:MTU, socket6-narrow:MTU  the same over IPv6, with PTL_HOSTS
    socket-narrow:MTU  as socket-router; the far half of the path takes frames of 1400 bytes
                (TEST_WITHIN in the environment: a command with arguments that starts each of these users' programs)
    marks:MTU   as router; the router sets "congestion experienced" in one of 16 packets
SCENARIO is one of exchange.c's, or one of those here that kill and restart a process.

Exit code 0: passed; 77: skipped, after a line that says why; anything else: failed. With CI=true nothing is skipped.
"""
import ctypes
import ipaddress
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

TIMEOUT = float(os.environ.get("EXCHANGE_TIMEOUT", "600"))  # for one word of a process; generous, the cores may be busy
APART = float(os.environ.get("EXCHANGE_APART", "0.05"))  # s between the two being told: neither may rely on the other's pace
STACKS_TIME = 30
TELL_TIME = 2  # s in which a process says what it is at; state.h
PEER_TIMEOUT = "3s"  # where a process is killed, so that nobody waits for long,
NODE_TIMEOUT = "600s"  # and on a node, where nobody waits for it
NODES = (11, 12)
VLAN = 42
PID = 5
LINK_SETTINGS = ("PTL_NID", "PTL_ENCAP", "PTL_VLAN", "PTL_IP", "PTL_GATEWAY", "PTL_UDP_PORT")


class Failure(Exception):
    pass


class Skip(Exception):
    pass


def run(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Skip(f"\"{' '.join(words)}\" says: {done.stdout.strip()}")
    return done.stdout


class Device:
    def arrived(self):
        """Both processes have opened it."""

    def pid(self, _side):
        return PID


class Loop(Device):
    """Within one process."""

    def interface(self, _side):
        return "loop:both"

    def node(self, side):
        return NODES[side]

    def prefix(self, _side):
        return []

    def close(self):
        """There is nothing to remove."""

    def settings(self, _side):
        return {}


class Node(Device):
    """Processes of one node of this script's own, which have process ids of their own."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="ptn-")

    def interface(self, _side):
        return "node:exchange"

    def prefix(self, _side):
        return []

    def node(self, _side):
        return NODES[0]

    def pid(self, side):
        return PID + side

    def settings(self, side):
        return {"PTL_NID": str(self.node(side)), "XDG_RUNTIME_DIR": self.directory}

    def left(self):
        """What processes have left in the rendezvous; one file stays for those to come."""
        return sorted(set(os.listdir(f"{self.directory}/postern/exchange")) - {"lock"})

    def close(self):
        shutil.rmtree(self.directory, ignore_errors=True)


class Veth(Device):
    """Two namespaces with one end of a pair each; their names hold this process's id, so that runs do not meet."""

    def __init__(self, mtu):
        self.names = [f"ptn-{os.getpid()}-{side}" for side in "ab"]
        self.made = []
        self.directory = None
        if os.geteuid() != 0:
            raise Skip("network namespaces need root")
        if shutil.which("ip") is None:
            raise Skip("the program ip is missing; install iproute2")
        self.sweep()
        self.directory = tempfile.mkdtemp(prefix="ptn-")
        try:
            self.make(mtu)
        except BaseException:  # also a signal that ends the script
            self.close()
            raise

    @staticmethod
    def sweep():
        """Removes what a run left that was killed beyond its power to clean up."""
        for name in os.listdir("/run/netns") if os.path.isdir("/run/netns") else []:
            found = re.fullmatch(r"ptn-(\d+)-\w+", name)
            if found and not os.path.exists(f"/proc/{found.group(1)}"):
                subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)

    def make(self, mtu):
        for name in self.names:
            self.made.append(name)
            run("ip", "netns", "add", name)
        run("ip", "link", "add", "ptn0", "mtu", mtu, "netns", self.names[0], "type", "veth",
            "peer", "name", "ptn0", "mtu", mtu, "netns", self.names[1])
        for name in self.names:
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "-n", name, "link", "set", "ptn0", "up")

    def interface(self, _side):
        return "ptn0"

    def prefix(self, side):
        return ["ip", "netns", "exec", self.names[side]]

    def node(self, side):
        return NODES[side]

    def settings(self, side):
        return {"PTL_NID": str(self.node(side)), "XDG_RUNTIME_DIR": self.directory}

    def close(self):
        for name in self.made:  # the pair goes with them
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)
        self.made = []
        if self.directory:
            shutil.rmtree(self.directory, ignore_errors=True)


class Pair(Veth):
    """Both ends in one namespace, for a process that has both."""

    def make(self, mtu):
        self.names = self.names[:1] * 2
        self.made.append(self.names[0])
        run("ip", "netns", "add", self.names[0])
        run("ip", "-n", self.names[0], "link", "add", "ptn0", "mtu", mtu, "type", "veth", "peer", "name", "ptn1", "mtu", mtu)
        for side in (0, 1):
            run("ip", "-n", self.names[0], "link", "set", f"ptn{side}", "up")

    def interface(self, side):
        return f"ptn{side}"


class Vlan(Veth):
    """Frames with a tag."""

    def settings(self, side):
        return super().settings(side) | {"PTL_VLAN": str(VLAN)}


class Udp(Veth):
    """UDP/IPv4 on one link. The kernel has no address there: ARP is answered by the process."""

    def address(self, side):
        return ipaddress.IPv4Address("10.77.0.11") + side

    def node(self, side):
        return int(self.address(side))

    def settings(self, side):
        return {"PTL_ENCAP": "udp", "PTL_IP": f"{self.address(side)}/24", "XDG_RUNTIME_DIR": self.directory}


class Xdp(Veth):
    """Each end by af_xdp."""

    def interface(self, _side):
        return "xdp:ptn0"


class UdpVlan(Udp):
    """The same with a tag."""

    def settings(self, side):
        return super().settings(side) | {"PTL_VLAN": str(VLAN)}


class Router(Udp):
    """Two links with a router between, a namespace whose kernel forwards."""

    def make(self, mtu):
        router = f"ptn-{os.getpid()}-r"
        for name in self.names + [router]:
            run("ip", "netns", "add", name)
            self.made.append(name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        for side, name in enumerate(self.names):
            far = f"ptn{side}"
            run("ip", "link", "add", "ptn0", "mtu", mtu, "netns", name, "type", "veth",
                "peer", "name", far, "mtu", mtu, "netns", router)
            run("ip", "-n", name, "link", "set", "ptn0", "up")
            run("ip", "-n", router, "link", "set", far, "up")
            run("ip", "-n", router, "address", "add", f"{self.gateway(side)}/24", "dev", far)
        run("ip", "netns", "exec", router, "sysctl", "-qw", "net.ipv4.ip_forward=1")

    def address(self, side):
        return ipaddress.IPv4Address(f"10.77.{side}.11")

    def gateway(self, side):
        return ipaddress.IPv4Address(f"10.77.{side}.1")

    def settings(self, side):
        return super().settings(side) | {"PTL_GATEWAY": str(self.gateway(side))}


class Marks(Router):
    """The router says that it is congested."""

    def make(self, mtu):
        super().make(mtu)
        if shutil.which("nft") is None:
            raise Skip("the program nft is missing; install nftables")
        run("ip", "netns", "exec", self.made[-1], "nft",
            "add table ip marks; add chain ip marks way { type filter hook forward priority 0; };"
            "add rule ip marks way ip ecn ect0 numgen random mod 16 0 ip ecn set ce")


def without_rights():
    """The start of a command that an ordinary user runs, without any capability."""
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs",
            "--pdeathsig=KILL"]


class Unprivileged:
    """UDP sockets of the kernel, which has the addresses; the processes are an ordinary user's."""

    def interface(self, _side):
        return "udp:ptn0"

    def prefix(self, side):
        return super().prefix(side) + without_rights() + os.environ.get("TEST_WITHIN", "").split()

    def settings(self, _side):
        os.chown(self.directory, 65534, 65534)
        return {"XDG_RUNTIME_DIR": self.directory}


class Socket(Unprivileged, Udp):
    """On one link."""

    def make(self, mtu):
        super().make(mtu)
        for side, name in enumerate(self.names):
            run("ip", "-n", name, "address", "add", f"{self.address(side)}/24", "dev", "ptn0")


class SocketRouted:
    """With a router between, whose routes the kernel has."""

    def make(self, mtu):
        super().make(mtu)
        for side, name in enumerate(self.names):
            run("ip", "-n", name, "address", "add", f"{self.address(side)}/24", "dev", "ptn0")
            run("ip", "-n", name, "route", "add", "default", "via", str(self.gateway(side)))


class SocketRouter(Unprivileged, SocketRouted, Router):
    def interface(self, _side):
        return "udp"


class SocketNarrow(SocketRouter):
    """Hosts with different MTUs."""

    def make(self, mtu):
        super().make(mtu)
        for where, link in ((self.made[-1], "ptn1"), (self.names[1], "ptn0")):
            run("ip", "-n", where, "link", "set", link, "mtu", "1400")


class SocketMarks(Unprivileged, SocketRouted, Marks):
    pass


class Socket6(Unprivileged, Veth):
    """UDP sockets over IPv6 on one link; a file has the nodes."""

    def make(self, mtu):
        super().make(mtu)
        for side, name in enumerate(self.names):
            run("ip", "-n", name, "address", "add", f"{self.address(side)}/64", "dev", "ptn0", "nodad")

    def address(self, side):
        return ipaddress.IPv6Address("fd00:77::11") + side

    def hosts(self):
        return "".join(f"{self.node(side)} {self.address(side)}\n" for side in (0, 1))

    def settings(self, side):
        path = f"{self.directory}/hosts"
        with open(path, "w", encoding="utf-8") as file:
            file.write("# node address\n" + self.hosts())
        return super().settings(side) | {"PTL_HOSTS": path}


class Socket6Router(Socket6):
    """With a router between."""

    def make(self, mtu):
        router = f"ptn-{os.getpid()}-r"
        for name in self.names + [router]:
            run("ip", "netns", "add", name)
            self.made.append(name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "netns", "exec", router, "sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
        for side, name in enumerate(self.names):
            far = f"ptn{side}"
            run("ip", "link", "add", "ptn0", "mtu", mtu, "netns", name, "type", "veth",
                "peer", "name", far, "mtu", mtu, "netns", router)
            for where, link, address in ((name, "ptn0", self.address(side)), (router, far, f"fd00:77:{side}::1")):
                run("ip", "-n", where, "address", "add", f"{address}/64", "dev", link, "nodad")
                run("ip", "-n", where, "link", "set", link, "up")
            run("ip", "-n", name, "route", "add", "default", "via", f"fd00:77:{side}::1")

    def interface(self, _side):
        return "udp"

    def address(self, side):
        return ipaddress.IPv6Address(f"fd00:77:{side}::11")


class Socket6Narrow(Socket6Router):
    """Hosts with different MTUs."""

    def make(self, mtu):
        super().make(mtu)
        for where, link in ((self.made[-1], "ptn1"), (self.names[1], "ptn0")):
            run("ip", "-n", where, "link", "set", link, "mtu", "1400")


class Tap(Udp):
    """Two tap devices in one namespace, whose kernel forwards between them: they fill in and verify checksums."""

    def make(self, mtu):
        if not os.path.exists("/dev/net/tun"):
            raise Skip("/dev/net/tun is missing; modprobe tun")
        self.names = self.names[:1] * 2
        run("ip", "netns", "add", self.names[0])
        self.made.append(self.names[0])
        run("ip", "netns", "exec", self.names[0], "sysctl", "-qw", "net.ipv4.ip_forward=1")

    def arrived(self):
        for side in (0, 1):
            run("ip", "-n", self.names[side], "address", "add", f"10.77.{side}.1/24", "dev", f"ptn{side}")
            run("ip", "-n", self.names[side], "link", "set", f"ptn{side}", "up")

    def interface(self, side):
        return f"net_tap{side},iface=ptn{side}"

    def address(self, side):
        return ipaddress.IPv4Address(f"10.77.{side}.11")

    def settings(self, side):
        return super().settings(side) | {"PTL_GATEWAY": f"10.77.{side}.1"}


def die_with_parent():
    """In the child: a driver that is killed leaves nobody behind."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def stacks(pid):
    """What each thread of a process is in, a line each, the innermost function first."""
    if shutil.which("gdb") is None:
        return ["(install gdb to see what its threads are in)"]
    try:
        told = subprocess.run(["gdb", "-nx", "-batch", "-p", str(pid), "-ex", "thread apply all backtrace 12"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              timeout=STACKS_TIME, preexec_fn=die_with_parent, check=False).stdout
    except subprocess.TimeoutExpired:
        return ["(gdb does not say what its threads are in)"]
    threads = []
    for line in told.splitlines():
        thread = re.match(r'Thread \d+ .*"(.*)"', line)
        function = re.match(r"#\d+ +(?:0x[0-9a-f]+ in )?([^ ]+)", line)
        if thread:
            threads.append(thread.group(1) + ":")
        elif function and threads:
            threads[-1] += " " + function.group(1)
    return threads


class Process:
    """One exchange process."""
    started = []

    def __init__(self, program, device, side, scenario, peer_timeout=None, pid=None, peer=None):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("PTL_IFACE") and name not in LINK_SETTINGS}
        environment["PTL_IFACE_NAME"] = device.interface(side)
        environment.update(device.settings(side))
        if peer_timeout is not None:
            environment["PTL_PEER_TIMEOUT"] = peer_timeout
        self.name = "ab"[side]
        self.killed = False
        self.words = queue.Queue()
        self.process = subprocess.Popen(
            device.prefix(side) + [program, str(pid or device.pid(side)),
                                   peer or f"{device.node(1 - side)}:{device.pid(1 - side)}", scenario],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=environment,
            preexec_fn=die_with_parent)
        threading.Thread(target=self.listen, daemon=True).start()
        Process.started.append(self)

    @staticmethod
    def explain():
        """Somebody does not answer: what is each of them at?"""
        for one in Process.started:
            if one.process.poll() is None:
                print(f"process {one.name}:", *stacks(one.process.pid), sep="\n    ", flush=True)
                one.process.send_signal(signal.SIGUSR1)
                time.sleep(TELL_TIME)

    def listen(self):
        for line in self.process.stdout:
            self.words.put(line.strip())
        self.words.put(None)

    def listen_for(self, word):
        deadline = time.monotonic() + TIMEOUT
        while True:
            try:
                return self.words.get(timeout=1)
            except queue.Empty:
                self.mourn(word)
                if time.monotonic() >= deadline:
                    self.explain()
                    raise Failure(f"process {self.name} did not say \"{word}\" in {TIMEOUT:.0f} s") from None

    def mourn(self, word):
        """Ends the test if a process has failed: waiting for it would be in vain."""
        for one in Process.started:
            code = one.process.poll()
            if one is not self and not one.killed and code not in (None, 0):
                raise Failure(f"process {one.name} ended with code {code} while {self.name} was to say \"{word}\"")

    def say(self, word):
        try:
            self.process.stdin.write(word + "\n")
            self.process.stdin.flush()
        except OSError as error:
            raise Failure(f"process {self.name} does not listen any more") from error

    def hear(self, word):
        """The next line; it should begin with the word."""
        heard = self.listen_for(word)
        if heard is None:
            code = self.process.wait()
            raise Failure(f"process {self.name} ended with code {code} before it said \"{word}\"")
        if heard.partition(" ")[0] != word:
            raise Failure(f"process {self.name} said \"{heard}\", \"{word}\" was expected")
        return heard

    def expect(self, word):
        heard = self.hear(word)
        if heard != word:
            raise Failure(f"process {self.name} said \"{heard}\", \"{word}\" was expected")

    def end(self):
        try:
            code = self.process.wait(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            self.explain()
            raise Failure(f"process {self.name} did not end in {TIMEOUT:.0f} s") from None
        if code != 0:
            raise Failure(f"process {self.name} ended with code {code}")

    def kill(self):
        self.killed = True
        self.process.kill()
        self.process.wait()


class Stage:
    """Both processes, and the device between them."""

    def __init__(self, program, device, peer_timeout=None):
        self.program = program
        self.device = device
        self.peer_timeout = peer_timeout
        self.processes = []

    def start(self, side, scenario):
        process = Process(self.program, self.device, side, scenario, self.peer_timeout)
        self.processes.append(process)
        return process

    def begin(self, side, scenario):
        process = self.start(side, scenario)
        process.expect("ready")
        process.say("go")
        return process

    def close(self):
        for process in self.processes:
            if process.process.poll() is None:
                process.kill()


def alike(stage, scenario):
    """Both sides do the same."""
    pair = [stage.start(0, scenario), stage.start(1, scenario)]
    for word, answer in (("ready", "go"), ("done", "leave")):
        for process in pair:
            process.expect(word)
        if word == "ready":
            stage.device.arrived()
        for process in pair:
            process.say(answer)
            time.sleep(APART)
    for process in pair:
        process.end()


def talk(process):
    process.say("talk")
    process.expect("talked")


def finish(active, passive):
    active.say("quit")
    active.expect("done")
    active.say("leave")
    active.end()
    passive.process.stdin.close()
    passive.end()


def receiver_dies(stage):
    """The one that is put to is killed in the middle; what is in flight fails; it comes again and is talked to."""
    for first in (0, 1):  # whichever started first has the other role on some devices
        passive = stage.begin(first, "passive")
        active = stage.begin(1 - first, "active")
        talk(active)
        for _ in range(3):
            active.say("flood")
            active.expect("flooding")
            passive.kill()
            active.expect("flooded")
            passive = stage.begin(first, "passive")
            talk(active)
        finish(active, passive)


def sender_dies(stage):
    """The one that puts is killed in the middle; it comes again and talks to the same other."""
    for first in (0, 1):
        passive = stage.begin(first, "passive")
        for _ in range(4):
            active = stage.begin(1 - first, "active")
            talk(active)
            active.say("flood")
            active.expect("flooding")
            active.kill()
        active = stage.begin(1 - first, "active")
        talk(active)
        finish(active, passive)


PLAIN = {"loop": Loop, "node": Node}
KINDS = {"veth": Veth, "pair": Pair, "vlan": Vlan, "udp": Udp, "udp-vlan": UdpVlan, "router": Router, "marks": Marks,
         "socket": Socket, "socket-router": SocketRouter, "socket-narrow": SocketNarrow, "socket-marks": SocketMarks,
         "socket6": Socket6, "socket6-router": Socket6Router, "socket6-narrow": Socket6Narrow, "tap": Tap, "xdp": Xdp}


def device_make(kind):
    name, _, mtu = kind.partition(":")
    return PLAIN[kind]() if kind in PLAIN else KINDS[name](mtu)


def end_in_order():
    """Signals end the script, and what it made is removed: a second one, of timeout(1) or of a terminal, does not break that off."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

    def leave(*_):
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        sys.exit(1)

    for number in numbers:
        signal.signal(number, leave)


def exit_code(kind, play):
    """Calls play with a device, which is removed afterwards; what this process should end with."""
    device = None
    end_in_order()
    try:
        device = device_make(kind)
        play(device)
    except Skip as why:
        if os.environ.get("CI") == "true":
            print(f"failed, because CI=true and it cannot run here: {why}")
            return 1
        print(f"skipped: {why}")
        return 77
    except Failure as why:
        print(f"failed: {why}")
        return 1
    finally:
        if device is not None:
            device.close()
    return 0


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    program, kind, scenario = sys.argv[1:]
    restarts = {"receiver-dies": receiver_dies, "sender-dies": sender_dies}

    def play(device):
        timeout = NODE_TIMEOUT if kind == "node" else PEER_TIMEOUT
        stage = Stage(program, device, timeout if scenario in restarts else None)
        try:
            if scenario in restarts:
                restarts[scenario](stage)
            else:
                alike(stage, scenario)
        finally:
            stage.close()

    return exit_code(kind, play)


if __name__ == "__main__":
    sys.exit(main())
