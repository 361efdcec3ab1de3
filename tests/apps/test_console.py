#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""postern-console as a user runs it: from a pipe, from a file, and at a terminal."""
import json
import os
import pty
import re
import select
import subprocess
import time

import programs


class Console(programs.Case):
    def script(self, *lines, words=(), **settings):
        return subprocess.run([programs.program("postern-console"), *words], input="\n".join(lines) + "\n",
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=programs.TIMEOUT, env=programs.environment(**settings))

    def expect_failure(self, done, line, part):
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(f"standard input:{line}: ", done.stderr)
        self.assertIn(part, done.stderr)

    # --- scripts ---

    def test_traffic_to_itself_is_counted(self):
        done = self.expect_success(self.script(
            "start sink", "start flood 1:7 count 2000 size 64", "wait all 100s",
            "check stats.puts_received >= 2000", "start ping 1:7 count 2 interval 1ms size 100", "wait 3 100s",
            "show traffic", "stop 1", words=["-p", "7"], PTL_NID="1"))
        self.assertIn("2: flood ended after", done.stdout)
        self.assertIn("2000 messages, 128000 bytes, 0 failed", done.stdout)
        self.assertRegex(done.stdout, r"3: ping ended .*: 2 answered, 0 not, round trip")
        self.assertRegex(done.stdout, r"1 +sink +0 +- +running +\d+ +\d+")
        self.assertRegex(done.stdout, r"1: sink ended .*: 2000 messages, 128000 bytes, 0 times events were lost")
        self.assertEqual(done.stderr, "")

    def test_traffic_to_nobody_is_stopped_soon(self):
        """Long before PTL_PEER_TIMEOUT, after which its messages fail. Whether it had sent any when it was stopped is chance."""
        done = self.script("start flood 9:9", "sleep 200ms", "stop 1", PTL_PEER_TIMEOUT="600s")
        if done.returncode != 0:
            self.expect_failure(done, 3, "flood 1 still waits for messages")
        self.expect_success(self.script("start flood 9:9", "start stream 9:9", "sleep 200ms", "quit", PTL_PEER_TIMEOUT="600s"))

    def test_scripts_that_are_no_text_are_refused(self):
        self.expect_failure(self.script("show \0ni"), 1, "bytes of 0")
        self.expect_failure(self.script("\x1b[2J"), 1, '"?[2J"')
        done = programs.run("postern-console", "/nowhere")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("postern-console: /nowhere cannot be opened", done.stderr)

    def test_topics_are_shown(self):
        done = self.expect_success(self.script(
            "# a comment, and an empty line", "", "show port", "show ni", "show pt", "show me", "show md", "show eq", "show ac",
            "show peers", "show node", "show stats", "show config", "show poll", "show queues", "show drops", "show traffic",
            PTL_NID="3"))
        for part in ("pool_buffers", "nid  ", "frames_received", "PTL_IFACE_NAME", "busy", "dropped_no_match"):
            self.assertIn(part, done.stdout)

    def test_lists_are_tables(self):
        done = self.expect_success(self.script("start sink", "show me", "show eq"))
        self.assertRegex(done.stdout, r"handle +portal +next +match_bits")
        self.assertRegex(done.stdout, r"0xffffffffffffffff +any +any")

    def test_json_is_json(self):
        done = self.expect_success(self.script("show ni", "show peers", "watch stats 1ms 2", words=["--json"], PTL_NID="5"))
        looks = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(looks[0]["nid"], 5)
        self.assertIsInstance(looks[1]["items"], list)
        self.assertEqual(len(looks), 4)

    def test_watch_shows_rates(self):
        done = self.expect_success(self.script(
            "start sink", "start flood 1:7", "watch stats 200ms 6", "stop all", words=["--pid=7"], PTL_NID="1"))
        self.assertRegex(done.stdout, r"events_logged +\d+ +\d+/s")

    def test_a_script_ends_at_its_first_error(self):
        done = self.script("show ni", "check stats.frames_received > 5", "show config")
        self.expect_failure(done, 2, "stats.frames_received is 0, which is not > 5")
        self.assertIn("limits.portals", done.stdout)
        self.assertNotIn("PTL_IFACE_NAME", done.stdout)

    def test_what_is_unknown_is_told_with_what_is_known(self):
        for line, part in (("shwo ni", "there are help, show, watch,"), ("show nothing", "one of port, ni"),
                           ("start flood 1:1 sise 8", 'flood has no option "sise"; it has size, window'),
                           ("start flood 1:1 size", "write size 64K"), ("start flood here", "NID:PID"),
                           ("stop 7", "show traffic lists"), ("interface 4", "PTL_IFACE_NAME names 1"),
                           ("set poll lazy", "set poll MODE"),
                           ("set fault drop=much", "write a chance"), ("set fault spill=1", "the faults are drop"),
                           ("check stats.nothing > 1", "show stats lists"), ("check nothing.at > 1", "port"),
                           ("sleep well", "500ms"), ("watch ni", "how many times"), ("wait 9", "there is no traffic"),
                           ("start ping 1:1 size 100000 count 1\nwait all", "no frame has"),
                           ("help nonsense", "help lists them")):
            with self.subTest(line=line):
                done = self.script(line)
                self.expect_failure(done, 1 + line.count("\n"), part)

    def test_a_script_may_be_a_file(self):
        path = os.path.join(self.directory, "script")
        with open(path, "w", encoding="utf-8") as file:
            file.write("show ni\nquit\nnonsense\n")
        self.expect_success(programs.run("postern-console", path))
        with open(path, "w", encoding="utf-8") as file:
            file.write("# first\nnonsense\n")
        done = programs.run("postern-console", path)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{path}:2: ", done.stderr)
        self.assertEqual(programs.run("postern-console", path + "-not").returncode, 1)

    def test_faults_come_and_go(self):
        two = {"PTL_IFACE_NAME": "loop:a;loop:a", "PTL_NID": "1;2"}
        done = self.expect_success(self.script(
            "start ping 2:7 count 1", "wait all", "set fault drop=0.5,delay=1us", "check port.pool_buffers > 0", "set fault off",
            "start ping 2:7 count 3 interval 1ms", "wait all", words=["-p7"], **two))
        self.assertIn("3 answered, 0 not", done.stdout)
        done = self.script("start ping 2:7 count 1", "wait all", "set fault drop=1", "start ping 2:7 count 1", "wait all",
                           words=["-p7"], **two)
        self.expect_failure(done, 5, "nobody answered")

    def test_settings_change(self):
        done = self.expect_success(self.script("set poll busy", "set log debug", "set poll interrupt", "set fault dup=0.1",
                                               "show config", words=["-j"], PTL_PROGRESS="core"))
        config = done.stdout.splitlines()[-1]
        for value in ('"debug"', '"interrupt"', '"dup=0.1'):
            self.assertIn(value, config)

    def test_a_program_without_faults_says_how_to_have_them(self):
        done = self.script("set fault drop=0.1", PTL_FAULT=" ")
        self.expect_failure(done, 1, "PTL_FAULT=drop=0")

    def test_captures(self):
        path = os.path.join(self.directory, "frames.pcapng")
        self.expect_success(self.script(
            f"capture start {path}", "start ping 2:7 count 3 interval 1ms", "wait all", "capture stop",
            "check port.pool_buffers > 0", words=["-p7"], PTL_IFACE_NAME="loop:a;loop:a", PTL_NID="1;2"))
        self.assertGreater(os.path.getsize(path), 300)
        self.expect_failure(self.script(f"capture start {self.directory}/no/such/file"), 1, "no/such/file")

    def test_a_full_disk_ends_the_capture_alone(self):
        done = self.expect_success(self.script(
            "capture start /dev/full", "start ping 2:7 count 3 interval 50ms", "wait all", "capture stop",
            words=["-p7"], PTL_IFACE_NAME="loop:a;loop:a", PTL_NID="1;2"))
        self.assertIn("3 answered", done.stdout)
        self.assertIn("/dev/full", done.stderr)

    def test_two_consoles(self):
        sink = subprocess.Popen([programs.program("postern-console"), "-p1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=programs.environment(**self.node()))
        self.addCleanup(self.end, sink)
        sink.stdin.write("start sink\n")
        sink.stdin.flush()
        self.await_line(sink, "1: sink")
        done = self.expect_success(self.script("start stream 1:1 count 20 size 100K", "wait all", "check peers.total >= 1",
                                               **self.node()))
        self.assertIn("20 messages, 2048000 bytes, 0 failed", done.stdout)
        out, err = sink.communicate("check stats.puts_received = 20\nstop all\n", timeout=programs.TIMEOUT)
        self.assertEqual(sink.returncode, 0, out + err)
        self.assertIn("20 messages, 2048000 bytes, 0 times", out)

    def test_a_port_that_cannot_be_opened_ends_it(self):
        done = self.script("show ni", PTL_IFACE_NAME="nonesuch0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nonesuch0", done.stderr)

    def test_wrong_options_get_code_2(self):
        for words in (["--nonsense"], ["a", "b"], ["--pid", "x"]):
            done = programs.run("postern-console", *words)
            self.expect_usage_error(done, "--help")
        self.assertIn("check TOPIC.NAME", self.expect_success(programs.run("postern-console", "--help")).stdout)

    # --- the terminal ---

    def terminal(self, **settings):
        pid, descriptor = pty.fork()
        if pid == 0:
            os.execve(programs.program("postern-console"), ["postern-console", "-p7"], programs.environment(**settings))
        self.addCleanup(os.close, descriptor)
        self.addCleanup(self.reap, pid)
        self.descriptor = descriptor
        self.seen = ""
        return pid

    @staticmethod
    def reap(pid):
        try:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass

    def type(self, keys):
        os.write(self.descriptor, keys.encode())

    def see(self, pattern):
        """Reads on until the pattern has come, and forgets what came before its end."""
        deadline = time.monotonic() + programs.TIMEOUT
        while True:
            found = re.search(pattern, self.seen)
            if found:
                self.seen = self.seen[found.end():]
                return found
            if not select.select([self.descriptor], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"{pattern} did not come: {self.seen!r}")
            try:
                self.seen += os.read(self.descriptor, 4096).decode()
            except OSError:
                raise AssertionError(f"the console ended without {pattern}: {self.seen!r}") from None

    def test_the_terminal_completes_remembers_and_helps(self):
        pid = self.terminal(PTL_NID="1")
        self.see("postern 1:7> ")
        self.type("sho\tqu\t\n")  # tab completes both words
        self.see("commands_max")
        self.see("postern 1:7> ")
        self.type("\x1b[A\n")  # the line before
        self.see("commands_max")
        self.see("postern 1:7> ")
        self.type("set poll \t\t")
        self.see("adaptive")
        self.type("busy\n")
        self.see("postern 1:7> ")
        self.type("nonsense\n")
        self.see("there are help, show")
        self.see("postern 1:7> ")
        self.type("show \t")  # each topic with what it is about, in a line
        told = self.see(r"(?s)port .*traffic +what start has begun").group(0)
        self.assertNotIn("STRING", told)
        self.assertNotIn("one of", told)
        self.assertRegex(told, r"\n +drops +what was dropped, by reason")
        self.type("drops\n")
        self.see("postern 1:7> ")
        self.type("?")  # what commands there are, each once
        told = self.see(r"(?s)help \[COMMAND\].*quit  ends the program").group(0)
        self.assertNotIn("STRING", told)
        self.assertEqual(told.count("start ping|flood|stream"), 1)
        self.type("interface 0\n")
        self.see("postern 1:7> ")
        self.type("watch ni 50ms\n")
        self.see("any key ends this")
        self.see("any key ends this")
        self.type("x")
        self.see("postern 1:7> ")
        self.type("quit\n")
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_the_end_of_the_input_ends_it(self):
        pid = self.terminal(PTL_NID="1")
        self.see("postern 1:7> ")
        self.type("\x04")
        self.assertEqual(os.waitpid(pid, 0)[1], 0)


if __name__ == "__main__":
    programs.main()
