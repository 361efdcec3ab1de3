#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a running process answers to dpdk-telemetry.py, and what postern-top makes of it.

Covers: lib/host/telemetry.c, pmd-glue/telemetry.c.
"""
import fcntl
import glob
import json
import os
import pty
import pwd
import re
import select
import shutil
import socket
import struct
import subprocess
import tempfile
import termios
import threading
import time

import programs

TOPICS = ["ac", "config", "drops", "eq", "md", "me", "ni", "node", "peers", "poll", "port", "portals", "queues", "stats"]
NOBODY = pwd.getpwnam("nobody")


def runtime_directory():
    """Where DPDK keeps the sockets of this user."""
    return "/var/run/dpdk" if os.getuid() == 0 else os.environ.get("XDG_RUNTIME_DIR", "/tmp") + "/dpdk"


class Client:
    """Speaks with a socket as dpdk-telemetry.py does."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(programs.TIMEOUT)
        try:
            self.socket.connect(path)
            self.greeting = json.loads(self.socket.recv(20000))
        except (OSError, ValueError):
            self.socket.close()
            raise

    def ask(self, command):
        self.socket.send(command.encode())
        return json.loads(self.socket.recv(20000))[command.split(",")[0]]

    def close(self):
        self.socket.close()


def find(process, directory):
    """The client of a process, by its id; None while it does not answer."""
    for path in glob.glob(os.path.join(directory, "*", "dpdk_telemetry.v2*")):
        try:
            client = Client(path)
        except (OSError, ValueError):
            continue  # of a process that has died, or dies now: other tests have theirs here, too
        if client.greeting["pid"] == process.pid:
            client.prefix, client.name = path.split("/")[-2:]
            return client
        client.close()
    return None


class Case(programs.Case):
    def client_of(self, process, directory=None):
        client = find(process, directory or runtime_directory())
        self.assertIsNotNone(client, "no socket answers for the process")
        self.addCleanup(client.close)
        return client

    def traffic(self, **settings):
        """A pair that exchanges messages until the test ends; the client's traffic has begun."""
        server = self.server(PTL_PROGRESS="core")
        peer = self.start("postern-perf", "--peer", "1:1", "--time", "600", "rate", **self.node(**settings))
        client = self.client_of(server)
        while client.ask("/postern/stats")["messages_received"] < 1000:
            self.assertIsNone(peer.poll())
        return server, client, peer


    def hanging(self):
        """A process of Portals 4 that hangs, and the handles of its two counters."""
        program = os.path.join(os.environ["POSTERN_BUILD"], "tests/apps/waits4")
        process = self.start(program, PTL_IFACE_NAME="loop:a", PTL_NID="1")
        return process, *re.findall(r"0x[0-9a-f]+", self.await_line(process, "Waiting"))


class Telemetry(Case):
    def test_counters_and_what_waits_for_them(self):
        process, arrived, done = self.hanging()
        client = self.client_of(process)
        number = next(i for i in client.ask("/postern/process")["interfaces"] if client.ask(f"/postern/ct,{i}").get("total"))
        counters = {counter["handle"]: counter for counter in client.ask(f"/postern/ct,{number}")["items"].values()}
        self.assertEqual([counters[arrived][name] for name in ("success", "failure", "triggered", "threshold")], [5, 0, 2, 6])
        first, second = client.ask(f"/postern/triggered,{number}")["items"].values()
        self.assertEqual([first[name] for name in ("counter", "success", "threshold", "number", "operation")],
                         [arrived, 5, 6, 1, "put"])
        self.assertEqual([first[name] for name in ("nid", "pid", "portal", "match_bits", "bytes")], [7, 8, 4, "0x2a", 8])
        self.assertEqual([second[name] for name in ("counter", "threshold", "number", "operation", "target", "by_success")],
                         [arrived, 9, 0, "ct_inc", done, 1])

    def test_every_topic_answers(self):
        server, client, peer = self.traffic()
        commands = client.ask("/")
        for topic in TOPICS:
            self.assertIn("/postern/" + topic, commands)
            self.assertIn("/postern/" + topic, client.ask("/help,/postern/" + topic))
            self.assertNotIn("error", client.ask(f"/postern/{topic},0"))
        node = client.ask("/postern/node")
        self.assertEqual((node["nid"], node["pid"], node["uid"], node["pairs"]), (1, 1, os.getuid(), 1))
        self.assertIn(programs.DIRECTORIES, node["directory"])
        self.assertFalse(any(node["refused"].values()), node["refused"])
        pair, = node["items"].values()
        self.assertEqual((pair["pid"], pair["uid"], pair["process"]), (peer.pid, os.getuid(), peer.pid))
        self.assertTrue(pair["pair"])
        for name in ("frames_sent", "frames_received", "bytes_sent", "bytes_received", "memory"):
            self.assertGreater(pair[name], 0, name)
        process = client.ask("/postern/process")
        self.assertEqual((process["pid"], process["program"], process["interfaces"]),
                         (server.pid, "postern-perf", [0]))
        ni = client.ask("/postern/ni")
        self.assertEqual((ni["nid"], ni["pid"], ni["peers"]), (1, 1, 2))
        self.assertEqual(client.ask("/postern/port")["driver"], "node")
        self.assertGreater(client.ask("/postern/poll")["busy_ns"], 0)
        self.assertEqual(client.ask("/postern/queues")["commands_max"], 4096)
        self.assertEqual(client.ask("/postern/config")["PTL_NID"], "1")

    def test_peers_and_drops_are_told(self):
        _, client, _ = self.traffic(PTL_FAULT="dup=0.2,seed=1")
        peers = client.ask("/postern/peers,0")
        peer = next(item for item in peers["items"].values() if item["pid"] != 1)
        self.assertEqual(peer["state"], "known")
        for name in ("rtt_ns", "window", "credit"):
            self.assertGreater(peer[name], 0)
        while client.ask("/postern/drops")["duplicate"] == 0:
            pass
        drops = client.ask("/postern/drops")
        self.assertGreaterEqual(drops["total"], drops["duplicate"])

    def test_lists_come_in_pages(self):
        _, client, peer = self.traffic()
        first, items = 0, []
        while first is not None:
            page = client.ask(f"/postern/peers,0,{first},1")
            self.assertLessEqual(len(page["items"]), 1)
            items += page["items"].values() if page["items"] else []
            first = page.get("next")
        self.assertEqual(len(items), page["total"])
        self.assertEqual({item["pid"] for item in items}, {1, peer.pid})

    def test_what_is_wrong_is_said(self):
        client = self.client_of(self.server())
        for parameters in ("x", "0,", "0,1,2,3", "-1", "99999999999999999999", ",", "0x0", " 0"):
            self.assertIn("INTERFACE", client.ask("/postern/peers," + parameters).get("error", ""), parameters)
        for number in (1, 63, 64, 4294967295):
            self.assertIn("not open", client.ask(f"/postern/peers,{number}")["error"])
        self.assertIsNone(client.ask("/postern/weather"))

    def test_texts_that_are_not_ascii_spoil_no_answer(self):
        server = self.start("postern-perf", "--server", PTL_NID="1", PTL_IFACE_NAME="loop:caf\u00e9\u2192")
        self.await_line(server, "Serving at 1:1")
        client = self.client_of(server)
        for answer, name in (("/postern/ni", "name"), ("/postern/port", "name"), ("/postern/config", "PTL_IFACE_NAME")):
            self.assertEqual(client.ask(answer)[name], "loop:caf??")

    def test_it_can_be_switched_off(self):
        self.assertIsNone(find(self.server(PTL_TELEMETRY="off"), runtime_directory()))

    def test_dpdks_own_script_is_answered(self):
        script = shutil.which("dpdk-telemetry.py")
        if not script:
            self.skipTest("dpdk-telemetry.py (package dpdk-dev) is not here")
        client = self.client_of(self.server())
        words = ["-f", client.prefix]
        if ":" in client.name:
            words += ["-i", client.name.split(":")[1]]
        done = subprocess.run([script, *words], input="/postern/ni\n", stdout=subprocess.PIPE, text=True,
                              timeout=programs.TIMEOUT, check=True)
        self.assertEqual(json.loads(done.stdout.strip().split("\n")[-1])["/postern/ni"]["nid"], 1)

    def test_a_user_without_privilege_has_it_too_and_none_without_a_directory(self):
        if os.getuid() != 0:
            self.skipTest("other tests run without privilege already")
        os.chmod(self.directory, 0o755)
        own = os.path.join(self.directory, "own")
        os.mkdir(own, 0o700)
        os.chown(own, NOBODY.pw_uid, NOBODY.pw_gid)

        def start(directory, node):
            return subprocess.Popen([programs.program("postern-perf"), "--server"], user="nobody", group="nogroup",
                                    extra_groups=[], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                    env=programs.environment(XDG_RUNTIME_DIR=directory, PTL_NID=str(node),
                                                             PTL_IFACE_NAME="loop:a"))
        try:
            server = start(own, 1)
        except PermissionError:
            self.skipTest("the build is where only root may look")
        self.addCleanup(self.end, server)
        self.await_line(server, "Serving at 1:1")
        self.assertEqual(self.client_of(server, own + "/dpdk").ask("/postern/ni")["uid"], NOBODY.pw_uid)
        bare = start(self.directory + "/nothing", 2)
        self.addCleanup(self.end, bare)
        self.await_line(bare, "Serving at 2:1")
        self.assertIsNone(find(bare, own + "/dpdk"))
        bare.kill()
        self.assertEqual(bare.communicate()[1], "")


class Top(Case):
    def row_of(self, table, process):
        return next((row for row in table["interfaces"] if row["process"] == process.pid), None)

    def busy_row(self, server):
        """The server's row, of a look at it while it answered and had a CPU."""
        while True:
            row = self.row_of(self.expect_json(programs.run("postern-top", "--once", "--json", "-i", "0.5")), server)
            if row and row["messages_in_per_s"] > 0 and row["frames_out_per_s"] > 0 and row["busy"]:
                return row

    def test_json_has_rates(self):
        server, _, _ = self.traffic()
        row = self.busy_row(server)
        self.assertEqual((row["program"], row["nid"], row["pid"], row["interface"]), ("postern-perf", 1, 1, 0))
        self.assertLessEqual(row["busy"], 1)
        self.assertIn("node:", row["device"])

    def test_nodes_are_shown(self):
        server, _, peer = self.traffic()
        row = None
        while not row or not row["node"] or not row["node"]["processes"][0].get("frames_in_per_s"):
            row = self.row_of(self.expect_json(programs.run("postern-top", "--node", "--once", "--json", "-i", "0.5")), server)
        self.assertIn(programs.DIRECTORIES, row["node"]["directory"])
        self.assertEqual(row["node"]["refused"], 0)
        pair, = row["node"]["processes"]
        self.assertEqual((pair["pid"], pair["uid"], pair["process"], pair["pair"]), (peer.pid, os.getuid(), peer.pid, True))
        self.assertGreater(pair["frames_out"], 0)
        self.assertGreater(pair["memory"], 0)
        out = ""
        while not re.search(rf"(?m)^ *{server.pid} postern-perf +1:1 +{peer.pid} +{peer.pid} +{os.getuid()} +(yes|no) ", out):
            out = self.expect_success(programs.run("postern-top", "-n", "-1", "-i", "0.1")).stdout
        self.assertIn("REFUSED", out)

    def test_counters_that_something_waits_for_are_shown(self):
        process, arrived, done = self.hanging()
        counters = {}
        while not counters or not counters[done]["sleepers"]:  # it spins first
            table = self.expect_json(programs.run("postern-top", "--counters", "--once", "--json", "-i", "0.1"))
            for row in table["interfaces"]:
                if row["process"] == process.pid and row["counters"]:
                    counters = {counter["counter"]: counter for counter in row["counters"]}
        self.assertEqual(counters[arrived], {"counter": arrived, "success": 5, "failure": 0, "waiting": 2, "at": 6, "sleepers": 0,
                                             "test": 0, "next": "put 7:8 pt 4 0x2a"})
        self.assertEqual(counters[done], {"counter": done, "success": 0, "failure": 0, "waiting": 0, "at": 0, "sleepers": 1,
                                          "test": 3, "next": ""})
        out = ""
        while not re.search(rf"(?m)^ *{process.pid} ", out):  # it may be slow to answer
            out = self.expect_success(programs.run("postern-top", "-c", "-1", "-i", "0.1")).stdout
        self.assertRegex(out, rf"{process.pid} waits4 +1:\d+ +{arrived} +5 +0 +2 +6 +put 7:8 pt 4 0x2a")
        self.assertRegex(out, rf"{process.pid} waits4 +1:\d+ +{done} +0 +0 +0 +1 +3")

    def test_dpdks_own_script_finds_a_process_by_what_top_tells(self):
        script = shutil.which("dpdk-telemetry.py")
        if not script:
            self.skipTest("dpdk-telemetry.py (package dpdk-dev) is not here")
        other = self.start("postern-perf", "--server", PTL_NID="3")
        self.await_line(other, "Serving")
        for server in (self.server(), other):
            row = None
            while not row:  # it may be slow to answer
                row = self.row_of(self.expect_json(programs.run("postern-top", "-1", "-j", "-i", "0.1")), server)
            words = ["-f", row["prefix"], "-i", str(row["instance"])]
            done = subprocess.run([script, *words], input="/postern/process\n", stdout=subprocess.PIPE, text=True,
                                  timeout=programs.TIMEOUT, check=True)
            answer = json.loads(done.stdout.strip().split("\n")[-1])["/postern/process"]
            self.assertEqual((answer["pid"], answer["program"]), (server.pid, "postern-perf"))

    def liar(self, answers):
        """Any program may put a socket there, and answer what it likes."""
        os.makedirs(runtime_directory(), exist_ok=True)
        directory = tempfile.mkdtemp(dir=runtime_directory())
        self.addCleanup(shutil.rmtree, directory)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(listener.close)
        listener.bind(f"{directory}/dpdk_telemetry.v2")
        listener.listen()

        def answer(client):
            with client:
                client.send(b'{"version": "DPDK", "pid": 1, "max_output_len": 16384}')
                while command := client.recv(1000).decode().split(",")[0]:
                    client.send(json.dumps({command: answers.get(command, {})}).encode())

        def serve():
            try:
                while True:
                    threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()
            except OSError:
                pass  # closed

        threading.Thread(target=serve, daemon=True).start()

    def test_a_process_cannot_control_the_terminal(self):
        self.liar({"/postern/process": {"pid": 99999999, "program": "\u009b31mp", "interfaces": [0]},
                   "/postern/ni": {"nid": 1, "pid": 1},
                   "/postern/ct": {"items": {"0": {"handle": "\033[31mh", "triggered": 1}, "1": {"handle": "fine", "triggered": 1}}},
                   "/postern/triggered": {"items": {"0": {"counter": "fine", "operation": "\033[31mo", "target": "\033[31mt"}}}})
        done = self.expect_success(programs.run("postern-top", "--counters", "--once", "-i", "100ms"))
        for text in ("??31mp", "?[31mh", "?[31mo ?[31mt"):
            self.assertIn(text, done.stdout)
        for text in ("\033", "\u009b"):
            self.assertNotIn(text, done.stdout)

    def test_text_lists_all_processes_and_skips_dead_sockets(self):
        killed = self.server()
        client = self.client_of(killed)
        path = os.path.join(runtime_directory(), client.prefix, client.name)
        killed.kill()
        killed.wait()
        while not os.path.exists(path):  # it stays, but another process may be taking its name
            pass
        server = self.server()
        name = self.client_of(server).name
        instance = name.split(":")[1] if ":" in name else "0"
        lines = []
        while [str(server.pid), instance, "postern-perf", "1:1"] not in [line[:4] for line in lines]:  # it may be slow to answer
            done = self.expect_success(programs.run("postern-top", "--once", "-i", "100ms"))
            lines = [line.split() for line in done.stdout.split("\n") if line]
            self.assertEqual(lines[0][:5], ["PID", "INST", "PROGRAM", "NID:PID", "DEVICE"])
            self.assertNotIn(str(killed.pid), [line[0] for line in lines])
            self.assertNotIn("\033", done.stdout)

    def test_it_goes_on_until_its_reader_goes(self):
        server = self.server()
        top = self.start("postern-top", "-i", "0.1", "-j")
        while not self.row_of(json.loads(top.stdout.readline()), server):
            pass
        server.kill()
        server.wait()
        while self.row_of(json.loads(top.stdout.readline()), server):
            pass
        top.stdout.close()
        self.assertEqual(top.wait(programs.TIMEOUT), 1)
        self.assertEqual(top.stderr.read(), "")

    def test_on_a_terminal_it_is_drawn_anew_until_q(self):
        server = self.server()
        leader, follower = pty.openpty()
        top = subprocess.Popen([programs.program("postern-top"), "-i", "0.2"], stdin=follower, stdout=follower,
                               stderr=subprocess.STDOUT, env=programs.environment())
        self.addCleanup(lambda: (top.poll() is None and top.kill(), top.wait()))
        os.close(follower)
        self.addCleanup(os.close, leader)
        seen = b""
        while seen.count(b"\033[J") < 3 or str(server.pid).encode() not in seen:
            seen += os.read(leader, 65536)
        os.write(leader, b" +-q")
        while top.poll() is None:
            if select.select([leader], [], [], 0.1)[0]:
                try:
                    os.read(leader, 65536)
                except OSError:  # the other end is closed
                    break
        self.assertEqual(top.wait(programs.TIMEOUT), 0)

    def on_terminal(self, columns):
        """The lines of one table on a terminal of that width, when it shows traffic."""
        leader, follower = pty.openpty()
        self.addCleanup(os.close, leader)
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        while True:
            top = subprocess.Popen([programs.program("postern-top"), "--once", "-i", "0.2"], stdin=subprocess.DEVNULL,
                                   stdout=follower, env=programs.environment())
            self.assertEqual(top.wait(programs.TIMEOUT), 0)
            lines = os.read(leader, 65536).decode().replace("\r", "").splitlines()
            if len(lines) > 1:
                os.close(follower)
                return lines

    def test_a_low_terminal_keeps_the_headings_and_the_busiest(self):
        servers = [self.start("postern-perf", "--server", PTL_NID="1", PTL_IFACE_NAME=f"node:low{n}") for n in range(9)]
        for server in servers:
            self.await_line(server, "Serving")
        for columns in (80, 40):
            leader, follower = pty.openpty()
            fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 10, columns, 0, 0))
            top = subprocess.Popen([programs.program("postern-top"), "-i", "0.2"], stdin=follower, stdout=follower,
                                   stderr=subprocess.STDOUT, env=programs.environment())
            self.addCleanup(lambda process=top: (process.poll() is None and process.kill(), process.wait()))
            os.close(follower)
            seen = b""
            while seen.count(b"\033[H\033[J") < 3:
                seen += os.read(leader, 65536)
            os.close(leader)
            screen = seen.split(b"\033[H\033[J")[2].decode().splitlines()
            self.assertLess(len(screen), 10)
            self.assertIn("postern-top", screen[0])
            self.assertIn("PROG", screen[1])
            self.assertRegex(screen[-1], r"^\d+ more rows$")
            self.assertEqual([line for line in screen if len(line) > columns], [])

    def test_a_narrow_terminal_shows_what_matters(self):
        self.traffic()
        lines = self.on_terminal(80)
        self.assertTrue(all(len(line) <= 80 for line in lines), lines)
        for heading in ("PID", "PROGRAM", "NID:PID", "MSG/S<", "MSG/S>", "B/S<", "B/S>", "BUSY"):
            self.assertIn(heading, lines[0].split())
        if "DROP/S" not in lines[0].split():  # the names of other tests' processes can take its room, after that of these
            for heading in ("INST", "DEVICE", "FRM/S<", "FRM/S>", "PEERS"):
                self.assertNotIn(heading, lines[0].split())
        self.assertEqual({len(line.split()) for line in lines}, {len(lines[0].split())})
        lines = self.on_terminal(200)
        for heading in ("DEVICE", "FRM/S<", "PEERS"):
            self.assertIn(heading, lines[0].split())

    def test_wrong_words_get_code_2(self):
        self.expect_usage_error(programs.run("postern-top", "--interval", "soon"), "soon")
        self.expect_usage_error(programs.run("postern-top", "-i", "0"), "0.1")
        self.expect_usage_error(programs.run("postern-top", "word"), "word")
        self.expect_usage_error(programs.run("postern-top", "--nonsense"), "nonsense")

    def test_a_full_disk_is_told(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([programs.program("postern-top"), "-1", "-i", "0.1"], stdout=full,
                                  stderr=subprocess.PIPE, text=True, env=programs.environment(), check=False)
        self.assertEqual(done.returncode, 1)
        # Beside many processes the text is longer than a buffer, whose earlier failure has no reason any more.
        self.assertRegex(done.stderr, "standard output (cannot be written to: No space left|could not be written to)")

    def test_help_and_version_work(self):
        self.assertIn("--interval", self.expect_success(programs.run("postern-top", "--help")).stdout)
        self.assertRegex(self.expect_success(programs.run("postern-top", "-V")).stdout, r"^postern-top \d+\.\d+\.\d+$")


if __name__ == "__main__":
    programs.main()
