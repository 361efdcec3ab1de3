#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Stops, kills and attacks some of the processes of a node, and sees to it that the others are none the worse.

    crowd.py PROGRAM SCENARIO [AMOUNT [SEED]]

PROGRAM is crowd.c's, whose processes all put to each other and get what they have put. An operation of a process may fail only if the
other one was down since the last operation with it that ended well began; what was put may be lost only if the other one was
down since. SCENARIO:

    kills       eight processes, of which one is killed by SIGKILL at any moment, AMOUNT times (default 12): while it starts, works
                or sleeps. No process has more open files or memory at the end than at first, and nothing is left in the rendezvous
    kills-socket  the same over UDP sockets of one address, by processes that have no directory in common
    stopped     three processes, of which each in turn is stopped for AMOUNT seconds (default 3) while the others send it more than
                it has room for: nothing fails, and it goes on. How quick the other two are meanwhile, beside a time in which it
                sleeps, is printed
    stopped-socket  the same over UDP sockets of one address, by processes that have no directory in common
    hostile     three processes beside hostile.c's (next to PROGRAM), which attacks them for AMOUNT seconds (default 2) in each of its
                ways: nothing fails, each kind of attack is counted, and how quick they are meanwhile is printed, beside a process
                that only computes
    hostile-posternd  the same with processes that reach each other through posternd only, and hostile.c's as another user, which attacks
                posternd, too. In each attack a process is killed and comes again
    bound       sixteen processes that nobody but this script has started, bound to two CPUs in turns: each knows the CPUs of the others,
                so that who waits for one of them does not keep it from its CPU. What they do in a second is printed, with their switches
    containers  two processes in user, mount and process namespaces of their own, with one directory mounted in both: they talk
                for AMOUNT seconds (default 1)
    containers-posternd  three processes in mount and process namespaces of their own, which have posternd's directory in common and no
                other: they talk for AMOUNT seconds (default 1), and so they do after posternd was killed and started again

Exit code 0: passed; 77: skipped, after a line that says why; anything else: failed. With CI=true nothing is skipped.
"""
import glob
import ipaddress
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

import exchange
import posternd
from exchange import Failure, Node, Process, Skip, die_with_parent

KILLED = 8           # processes in "kills"
LONGEST_WORK = 0.2   # s until one is killed
LONGEST_START = 0.3  # s until one that is starting is
FILES_SLACK = 16     # open files: those of connections come and go
MEMORY_SLACK = 1024  # kilobytes that malloc() gives out
WINDOW = 1.0         # s in which a rate is measured
MTU = "33024"        # of all processes; hostile.c must have the same
INTRUDER = 65533      # user
# Ways of hostile.c's, and the counters that must count them.
WAYS = {"visit": ("silent", "not_postern"), "unsealed": ("bad_memory",), "scribble": ("broke_rules",), "flood": ("frames_received",),
        "wake": ("wakes_received",)}
POSTERND_WAYS = {"visit": ("refused_silent", "refused_not_postern"), "unsealed": ("refused_bad_memory",), "scribble": ("refused_broke_rules",),
                 "flood": ("frames_between_processes", "frames_to_port"),
                 "claim": tuple("dropped_" + what for what in ("not_postern", "malformed", "other_address", "other_nid", "other_pid",
                                                               "other_uid"))}


def cpu_time(pid):
    """Seconds that the threads of a process have run."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        try:
            with open(path, encoding="ascii") as file:
                total += int(file.read().split()[0])
        except OSError:
            continue  # it has ended
    return total / 1e9


class Rate:
    """Operations a second, and for each second that somebody ran for them, which says more on a busy machine."""

    def __init__(self, operations, seconds, cpu):
        self.by_time, self.by_cpu = operations / seconds, operations / max(cpu, 1e-9)

    def beside(self, other):
        return f"{self.by_time / max(other.by_time, 1e-9):.2f} ({self.by_cpu / max(other.by_cpu, 1e-9):.2f} of the CPU's time)"


class Member(Process):
    """One of the crowd. What it reports at any time is judged as it is heard."""

    def __init__(self, crowd, pid):
        crowd.life += 1
        self.crowd, self.pid = crowd, pid
        super().__init__(crowd.program, crowd.device, 0, str(crowd.life), None, pid, str(crowd.count))
        self.name = str(pid)

    def hear(self, word):
        while True:
            heard = self.listen_for(word)
            if heard is None:
                raise Failure(f"process {self.name} ended with code {self.process.wait()} before it said \"{word}\"")
            first, *rest = heard.split(" ")
            if first in ("failed", "lost"):
                self.crowd.judge(self, first, int(rest[0]), int(rest[1]) / 1e9)
            elif first == word:
                return heard
            else:
                raise Failure(f"process {self.name} said \"{heard}\", \"{word}\" was expected")

    def tell(self, word, answer):
        self.say(word)
        return self.hear(answer).split(" ", 1)[1:]


class Crowd:
    """All of them, by process id."""

    def __init__(self, program, device, count):
        self.program, self.device, self.count = program, device, count
        self.life = 0
        self.leaves_nothing = True
        self.down = {pid: [] for pid in range(1, count + 1)}  # from when to when it was not there
        self.members = {}
        self.failures = 0
        for pid in self.down:
            self.members[pid] = Member(self, pid)
        for member in self.members.values():
            member.hear("ready")

    def judge(self, member, what, pid, since):
        """An operation with pid has failed."""
        self.failures += 1
        if not any(end is None or end >= since for _, end in self.down[pid]):
            raise Failure(f"process {member.name}: an operation with process {pid} {what}, which was there since {since:.6f}; "
                          f"it was down {self.down[pid][-3:]}, and it is {time.monotonic():.6f}")

    def say_all(self, word, answer, *without):
        """What each says to that."""
        chosen = {pid: member for pid, member in self.members.items() if pid not in without}
        for member in chosen.values():
            member.say(word)
        return {pid: member.hear(answer).split(" ", 1)[-1] for pid, member in chosen.items()}

    def go(self):
        self.say_all("go", "going")

    def settle(self, *without):
        """By process id: open files, and kilobytes."""
        self.say_all("rest", "resting", *without)
        return {pid: tuple(int(word) for word in said.split()) for pid, said in self.say_all("settle", "settled", *without).items()}

    def counts(self, *without):
        return {pid: [int(word) for word in said.split()] for pid, said in self.say_all("count", "counted", *without).items()}

    def rate(self, pids, servants=()):
        """How quick these are with each other, while these processes serve them."""
        running = [self.members[pid].process.pid for pid in pids] + list(servants)

        def between():
            counts = self.counts(*(set(self.members) - set(pids)))
            return (sum(counts[pid][other - 1] for pid in pids for other in pids if pid != other), time.monotonic(),
                    sum(cpu_time(pid) for pid in running))
        before = between()
        time.sleep(WINDOW)
        return Rate(*(now - then for now, then in zip(between(), before)))

    def all_get_on(self):
        """Waits until an operation of each with each has ended."""
        before, deadline = self.counts(), time.monotonic() + exchange.TIMEOUT
        while True:
            idle = [(pid, other) for pid, counts in self.counts().items() for other, count in enumerate(counts, 1)
                    if other != pid and count <= before[pid][other - 1]]
            if not idle:
                return
            if time.monotonic() > deadline:
                raise Failure(f"no operation of process {idle[0][0]} with process {idle[0][1]} has ended in {exchange.TIMEOUT} s")
            time.sleep(0.01)

    def kill(self, pid):
        self.down[pid].append((time.monotonic(), None))
        self.members[pid].kill()

    def start(self, pid):
        """False: it is to be killed while it starts."""
        self.members[pid] = Member(self, pid)

    def started(self, pid):
        self.members[pid].hear("ready")
        self.down[pid][-1] = (self.down[pid][-1][0], time.monotonic())

    def node(self, pid):
        return json.loads(self.members[pid].tell("look", "looked")[0])

    def quit(self):
        self.settle()
        for member in self.members.values():
            member.say("quit")
        for member in self.members.values():
            member.end()
        if self.leaves_nothing and self.device.left():
            raise Failure(f"left behind: {' '.join(self.device.left())}")

    def close(self):
        for member in self.members.values():
            if member.process.poll() is None:
                member.kill()


class Sockets(Node):
    """UDP sockets of an address of the loopback interface that only this script uses. Nobody meets anybody in a directory."""

    address = f"127.{os.getpid() >> 14 & 255}.{os.getpid() >> 6 & 255}.{os.getpid() << 2 & 255 | 2}"

    def interface(self, _side):
        return f"udp:{self.address}"

    def node(self, _side):
        return int(ipaddress.IPv4Address(self.address))

    def settings(self, _side):
        return {"XDG_RUNTIME_DIR": tempfile.mkdtemp(dir=self.directory)}

    def left(self):
        return []


def kill_one(crowd, draw):
    victim = draw.randrange(1, crowd.count + 1)
    asleep = draw.random() < 0.25
    if asleep:  # all that it waits for are operations of others
        crowd.members[victim].tell("rest", "resting")
    time.sleep(draw.uniform(0, LONGEST_WORK))
    crowd.kill(victim)
    kills = 1
    time.sleep(draw.choice((0, draw.uniform(0, LONGEST_WORK))))
    crowd.start(victim)
    while draw.random() < 0.3:  # in the middle of its start
        time.sleep(draw.uniform(0, LONGEST_START))
        crowd.members[victim].kill()
        kills += 1
        crowd.start(victim)
    crowd.started(victim)
    crowd.members[victim].tell("go", "going")
    return kills


def kills(crowd, amount, draw):
    crowd.go()
    first = crowd.settle()
    crowd.go()
    done, begun = 0, time.monotonic()
    while done < amount:
        done += kill_one(crowd, draw)
        if sys.stderr.isatty():
            print(f"\r{done} of {amount} kills", end="", file=sys.stderr)
    crowd.all_get_on()
    last = crowd.settle()
    for pid in crowd.members:
        files, memory = last[pid]
        if not crowd.down[pid] and (files > first[pid][0] + FILES_SLACK or memory > first[pid][1] + MEMORY_SLACK):
            raise Failure(f"process {pid} had {first[pid]} open files and kilobytes at first, and has {last[pid]} now")
    print(f"{done} kills among {crowd.count} processes in {time.monotonic() - begun:.0f} s: {crowd.failures} operations failed, all with "
          f"processes that were killed; open files {min(f for f, _ in last.values())} to {max(f for f, _ in last.values())}")


def stopped(crowd, amount, _draw):
    crowd.go()
    time.sleep(WINDOW / 4)
    for victim, member in crowd.members.items():
        others = [pid for pid in crowd.members if pid != victim]
        crowd.settle()
        crowd.say_all("go", "going", victim)
        time.sleep(WINDOW / 4)
        alone = crowd.rate(others)
        member.tell("go", "going")
        member.process.send_signal(signal.SIGSTOP)
        until = time.monotonic() + amount
        crowd.say_all(f"pour {victim}", "poured", victim)
        rates = [crowd.rate(others)]
        while time.monotonic() + WINDOW < until:
            rates.append(crowd.rate(others))
        full = max((item["full"] for pid in others for item in crowd.node(pid)["items"] if item["pid"] == victim),
                   default=0)
        member.process.send_signal(signal.SIGCONT)
        crowd.all_get_on()
        worst = min(rates, key=lambda rate: rate.by_time)
        print(f"process {victim} was stopped for {amount} s: the others do {rates[0].beside(alone)} of what they did before in the first "
              f"second, {worst.beside(alone)} in the worst; its memory was found full {full} times", flush=True)
    if crowd.failures:
        raise Failure(f"{crowd.failures} operations failed")


def counted(crowd):
    """All counters of all nodes, by name."""
    sums = {}
    for pid in crowd.members:
        node = crowd.node(pid)
        for counters in (node["refused"], *node["items"]):
            for name, value in counters.items():
                if isinstance(value, int) and (counters is node["refused"] or counters["pid"] > crowd.count):
                    sums[name] = sums.get(name, 0) + value
    return sums


def hostile_ways(crowd, amount, ways, intruder, counted_by, meanwhile=lambda: None, servants=()):
    """intruder: how the program is started, and where. servants: processes that forward for the others."""
    program = os.path.join(os.path.dirname(crowd.program), "hostile")
    prefix, environment = intruder

    def attack(way, before):
        """The rate meanwhile, and how far those counters have gone that are in `before`."""
        attacker = subprocess.Popen([*prefix, program, way, str(crowd.count)], env=environment, preexec_fn=die_with_parent,
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            if attacker.stdout.readline() != "at it\n":
                raise Failure(f"hostile {way} ended with code {attacker.wait()}")
            rate = crowd.rate(crowd.members, servants)
            time.sleep(max(0, amount - WINDOW))
            if way != "spin":
                meanwhile()
                crowd.all_get_on()
            told, deadline = {}, time.monotonic() + exchange.TIMEOUT
            while before and not all(told.values() or [0]) and time.monotonic() < deadline:
                after = counted_by()
                told = {name: after.get(name, 0) - count for name, count in before.items()}
            if attacker.poll() is not None:
                raise Failure(f"hostile {way} ended with code {attacker.returncode}")
            return rate, told
        finally:
            attacker.kill()
            attacker.wait()

    crowd.go()
    time.sleep(WINDOW / 4)
    alone, _ = attack("spin", {})
    for way, names in ways.items():
        before = counted_by()
        rate, told = attack(way, {name: before.get(name, 0) for name in names})
        print(f"{way}: {rate.beside(alone)} of the rate beside a process that computes; {told}", flush=True)
        if not all(told.values()):
            raise Failure(f"{way}: not all of the counters {', '.join(names)} have counted")
    crowd.leaves_nothing = False  # the attacker was killed, and the next process to come removes its socket


def hostile(crowd, amount, _draw):
    environment = dict(os.environ, **crowd.device.settings(0), PTL_IFACE_NAME=crowd.device.interface(0))
    hostile_ways(crowd, amount, WAYS, ([], environment), lambda: counted(crowd))
    if crowd.failures:
        raise Failure(f"{crowd.failures} operations failed")


class Shared(posternd.Daemons):
    """posternd's interface, for processes that have no directory in common."""

    def __init__(self):
        posternd.Daemons.posternd = os.path.join(os.path.dirname(sys.argv[1]), "../../apps/posternd")
        super().__init__("1500")
        self.apart = True

    def intruder(self):
        """How another user's process is started."""
        home = self.home()
        os.chown(home, INTRUDER, INTRUDER)
        prefix = exchange.Veth.prefix(self, 0) + ["setpriv", f"--reuid={INTRUDER}", f"--regid={INTRUDER}", "--clear-groups"]
        return prefix, dict(os.environ, PTL_IFACE_NAME=self.interface(0), XDG_RUNTIME_DIR=home)

    def counters(self):
        """Those of posternd. Its socket is one of all that processes of this machine have, which come and go."""
        end = time.monotonic() + exchange.TIMEOUT
        while time.monotonic() < end:
            for path in glob.glob("/var/run/dpdk/*/dpdk_telemetry.v2*"):
                with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
                    client.settimeout(exchange.TIMEOUT)
                    try:
                        client.connect(path)
                        if json.loads(client.recv(20000))["pid"] == self.daemons[0].pid:
                            client.send(b"/posternd/counters")
                            return json.loads(client.recv(20000))["/posternd/counters"]
                    except (OSError, ValueError):
                        continue  # of a process that has died
            time.sleep(0.1)
        raise Failure("posternd does not tell what it has counted")


def hostile_posternd(crowd, amount, _draw):
    def again():
        crowd.kill(1)
        crowd.start(1)
        crowd.started(1)
        crowd.members[1].tell("go", "going")

    hostile_ways(crowd, amount, POSTERND_WAYS, crowd.device.intruder(), crowd.device.counters, again,
                 [crowd.device.daemons[0].pid])


class Containers(Node):
    """Each process sees the directory at a place of its own, and nothing else of the other one."""

    def prefix(self, _side):
        inside = os.path.join(self.directory, "inside")
        os.makedirs(inside, exist_ok=True)
        return ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
                f'mount --bind "{self.directory}" /mnt && export XDG_RUNTIME_DIR=/mnt && exec "$0" "$@"']


def containers(crowd, amount, _draw):
    crowd.go()
    time.sleep(amount)
    for pid, counts in crowd.counts().items():
        if sum(counts) == 0:
            raise Failure(f"process {pid} has done nothing")
    node = crowd.node(1)
    print(f"2 processes in namespaces of their own: {crowd.counts()}; process 1 knows {node['items']}")
    if [item["process"] for item in node["items"]] != [0]:
        raise Failure("they see each other's process ids")


class Visited(Shared):
    """Each process is in namespaces of its own, where posternd's directory is mounted at its place, and all else of /run is hidden."""

    def prefix(self, side):
        return exchange.Veth.prefix(self, side) + [
            "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-ec",
            'mount --bind /run/postern /mnt; mount -t tmpfs none /run; mkdir /run/postern; mount --move /mnt /run/postern; exec "$0" "$@"',
            "setpriv", f"--reuid={posternd.USER}", f"--regid={posternd.USER}", "--clear-groups"]

    def left(self):
        """They have no rendezvous that could be looked into from here."""
        return []


def containers_posternd(crowd, amount, _draw):
    crowd.go()
    crowd.all_get_on()
    time.sleep(amount)
    crowd.device.kill(0)
    crowd.device.start(0)
    crowd.all_get_on()
    nodes = {pid: crowd.node(pid)["items"] for pid in crowd.members}
    print(f"{len(nodes)} processes in namespaces of their own through posternd: {crowd.counts()}")
    if any(nodes.values()):
        raise Failure(f"they know each other without posternd: {nodes}")
    if crowd.failures:
        raise Failure(f"{crowd.failures} operations failed")


class Bound(Node):
    """Each process on one of two CPUs, in turns."""
    cpus = sorted(os.sched_getaffinity(0))[:2]

    def __init__(self):
        super().__init__()
        self.started = 0

    def cpu(self, pid):
        return self.cpus[(pid - 1) % len(self.cpus)]

    def prefix(self, _side):
        self.started += 1
        return ["taskset", "-c", str(self.cpu(self.started))]


def switches(pid):
    """How often the threads of a process have lost their CPUs: because they slept, and because others wanted these."""
    counts = [0, 0]
    for path in glob.glob(f"/proc/{pid}/task/*/status"):
        with open(path, encoding="ascii") as file:
            found = dict(line.split(":", 1) for line in file)
        counts[0] += int(found["voluntary_ctxt_switches"])
        counts[1] += int(found["nonvoluntary_ctxt_switches"])
    return counts


def bound(crowd, amount, _draw):
    def all_switches():
        return [sum(counts) for counts in zip(*(switches(member.process.pid) for member in crowd.members.values()))]

    crowd.go()
    crowd.all_get_on()
    before = all_switches()
    rate = crowd.rate(crowd.members)
    slept, lost = (now - then for now, then in zip(all_switches(), before))
    print(f"{rate.by_time:.0f} operations a second, {rate.by_cpu:.0f} for each second of a CPU; the processes slept {slept} times, and "
          f"lost their CPUs {lost} times", flush=True)
    deadline = time.monotonic() + exchange.TIMEOUT
    for pid in crowd.members:
        while True:
            said = {item["pid"]: item.get("cpu") for item in crowd.node(pid)["items"]}
            wrong = {other: cpu for other, cpu in said.items() if cpu != crowd.device.cpu(other)}
            if not wrong and len(said) == crowd.count - 1:
                break
            if time.monotonic() > deadline:
                raise Failure(f"process {pid} does not know where others are: {wrong} of {said}")
            time.sleep(0.01 * amount)
    if crowd.failures:
        raise Failure(f"{crowd.failures} operations failed")


SCENARIOS = {"bound": (bound, 16, "1"), "kills": (kills, KILLED, "12"), "kills-socket": (kills, KILLED, "12"),
             "stopped": (stopped, 3, "3"), "stopped-socket": (stopped, 3, "3"), "hostile": (hostile, 3, "1"),
             "hostile-posternd": (hostile_posternd, 3, "1"), "containers": (containers, 2, "1"),
             "containers-posternd": (containers_posternd, 3, "1")}


def may_have_containers(device):
    done = subprocess.run(device.prefix(0) + ["true"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise Skip(f"there are no containers here: {done.stdout.strip()}")


def main():
    if not 3 <= len(sys.argv) <= 5 or sys.argv[2] not in SCENARIOS:
        print(__doc__, file=sys.stderr)
        return 2
    program, scenario = sys.argv[1:3]
    play, count, amount = SCENARIOS[scenario]
    amount = float(sys.argv[3] if len(sys.argv) > 3 else amount)
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    if not scenario.endswith(("-posternd", "-socket")):
        os.environ["PTL_MTU"] = MTU

    def run(device):
        if scenario == "containers":
            may_have_containers(device)
        crowd = Crowd(program, device, count)
        try:
            play(crowd, int(amount) if amount == int(amount) else amount, random.Random(seed))
            crowd.quit()
        finally:
            crowd.close()

    exchange.PLAIN.update({"bound": Bound, "kills-socket": Sockets, "stopped-socket": Sockets, "containers": Containers, "hostile-posternd": Shared, "containers-posternd": Visited})
    code = exchange.exit_code(scenario if scenario in exchange.PLAIN else "node", run)
    if code == 1:
        print(f"again: {sys.argv[0]} {program} {scenario} {amount:g} {seed}")
    return code


if __name__ == "__main__":
    sys.exit(main())
