#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""postern-ping as a user runs it."""
import re
import signal
import time

import programs

QUICK = ("--count", "3", "--interval", "1ms", "--timeout", "60s")
TIME = r"[0-9.]+ (us|ms|s)"
# What is told of the network: exactly, or, when one of the two was away, within bounds.
EXACT = rf"network {TIME}, at the target {TIME}"
BOUNDS = rf"network (at most {TIME}|{TIME} to {TIME})"
APART = rf"({EXACT}|{BOUNDS})"


class Self(programs.Case):
    """A process asks itself."""

    def test_answers_and_a_summary_are_printed(self):
        done = self.expect_success(
            programs.run("postern-ping", *QUICK, "--pid", "5", "1:5", PTL_NID="1"))
        self.assertIn("PING 1:5 from 1:5, 64 bytes", done.stdout)
        for seq in (1, 2, 3):
            self.assertRegex(done.stdout, rf"64 bytes from 1:5: seq={seq} time={TIME} \({APART}\)\n")
        self.assertIn("3 questions, 3 answers, 0% lost", done.stdout)
        self.assertIn("min/avg/max/mdev", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_quiet_and_flood_print_the_summary_alone(self):
        for word in ("--quiet", "--flood"):
            done = self.expect_success(
                programs.run("postern-ping", *QUICK, word, "--pid", "5", "1:5", PTL_NID="1"))
            self.assertNotIn("seq=", done.stdout)
            self.assertIn("3 answers", done.stdout)

    def test_it_runs_without_a_poll_thread(self):
        report = self.expect_json(programs.run("postern-ping", *QUICK, "--json", "--pid", "5", "1:5",
                                               PTL_NID="1", PTL_PROGRESS="inline"))
        self.assertEqual(report["answered"], 3)

    def test_nodes_that_are_addresses_are_written_so(self):
        for udp in ("udp", "\tudp "):
            done = self.expect_success(programs.run("postern-ping", *QUICK, "--pid", "5", "10.0.0.1:5", PTL_ENCAP=udp, PTL_IP="10.0.0.1/24"))
            self.assertIn("PING 10.0.0.1:5 from 10.0.0.1:5, ", done.stdout)

    def test_sizes_are_those_of_frames(self):
        report = self.expect_json(programs.run(
            "postern-ping", *QUICK, "--json", "--mtu", "--size", "full", "--pid", "5", "1:5",
            PTL_NID="1", PTL_MTU="2000"))
        self.assertEqual(report["size"], 2000)
        self.assertEqual(report["path_mtu"], {"there": 2000, "back": 2000, "own": 2000, "target": 2000})
        done = programs.run("postern-ping", "--size", "2001", "1:5", PTL_MTU="2000")
        self.assertEqual(done.returncode, 2)
        self.assertIn("64 to 2000 bytes", done.stderr)

    def test_a_deadline_ends_it(self):
        report = self.expect_json(programs.run("postern-ping", "--json", "--deadline", "50ms", "--interval", "10ms",
                                               "--timeout", "60s", "--pid", "5", "1:5", PTL_NID="1"))
        self.assertGreaterEqual(report["answered"], 1)


class Options(programs.Case):
    def test_help_and_version_say_what_they_should(self):
        done = self.expect_success(programs.run("postern-ping", "--help"))
        for word in ("--count", "--interval", "--timeout", "--mtu", "--flood", "--json", "Exit codes"):
            self.assertIn(word, done.stdout)
        self.assertRegex(self.expect_success(programs.run("postern-ping", "-V")).stdout,
                         r"^postern-ping \d+\.\d+\.\d+$")

    def test_wrong_words_get_a_sentence_and_code_2(self):
        for words, part in (
                ([], "which process"),
                (["1"], "no process"),
                (["1:2:3"], "no process"),
                (["1:2", "1:3"], "one process"),
                (["--count", "0", "1:2"], "--count takes a number"),
                (["--count", "x", "1:2"], "--count takes a number"),
                (["--interval", "0", "1:2"], "--interval takes a time"),
                (["--size", "huge", "1:2"], "--size takes bytes"),
                (["--interface", "64", "1:2"], "--interface takes a number"),
                (["--interface", "1", "1:2"], "there is no interface 1"),
                (["--nonsense", "1:2"], "--help"),
        ):
            with self.subTest(words=words):
                done = programs.run("postern-ping", *words)
                self.assertEqual(done.returncode, 2)
                self.assertIn(part, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_an_interface_that_does_not_exist_gets_code_2(self):
        done = programs.run("postern-ping", "1:2", PTL_IFACE_NAME="nonesuch0")
        self.assertEqual(done.returncode, 2)
        self.assertIn("nonesuch0", done.stderr)


class Remote(programs.Case):
    """Two processes on a node; the other one's application does nothing but wait."""

    def test_a_process_whose_application_sleeps_answers(self):
        self.server()
        report = self.expect_json(programs.run(
            "postern-ping", *QUICK, "--json", "1:1", **self.node()))
        self.assertEqual(report["answered"], 3)
        times = report["round_trip_ns"]
        self.assertLessEqual(times["min"], times["avg"])
        self.assertLessEqual(times["avg"], times["max"])
        self.assertIn(report["exact"], range(4))
        for row in (report["network_ns"], report["residence_ns"]):
            self.assertEqual(row is None, report["exact"] == 0)
            if row is not None:
                self.assertLessEqual(row["max"], times["max"])

    def test_the_network_is_not_told_from_a_target_that_was_away(self):
        server = self.server()
        asker = self.start("postern-ping", "--interval", "20ms", "--timeout", "60s", "1:1", **self.node())
        line = self.await_line(asker, "64 bytes from 1:1")
        # Until it was away when a question came, as that one's time shows.
        while not re.search(r"time=(\d{3}\.\d+ ms|[0-9.]+ s) ", line):
            server.send_signal(signal.SIGSTOP)
            time.sleep(0.5)
            server.send_signal(signal.SIGCONT)
            line = self.await_line(asker, "64 bytes from 1:1")
        self.assertRegex(line, BOUNDS)
        asker.send_signal(signal.SIGINT)
        code, out, err = self.finish(asker)
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"\n\d+ of \d+ answers tell network and target apart: ")
        self.assertRegex(out, rf"\nnetwork +min/avg/max/mdev = (-|{TIME} / {TIME} / {TIME} / {TIME})\n")

    def test_it_needs_nothing_beside_a_process_that_runs(self):
        """Neither here nor there a variable but the directory of all nodes, which is these tests' own."""
        server = self.start("postern-perf", "--server", XDG_RUNTIME_DIR=self.directory)
        address = re.search(r"\d+:\d+", self.await_line(server, "Serving at ")).group(0)
        self.expect_success(programs.run("postern-ping", *QUICK, address, XDG_RUNTIME_DIR=self.directory))

    def test_the_frames_of_both_have_one_size(self):
        server = self.server(PTL_MTU="1500")
        asker = self.start("postern-ping", "--interval", "20ms", "--timeout", "100ms", "1:1", **self.node())
        for process in (asker, server):
            self.assertIn("give both the same PTL_MTU", process.stderr.readline())
        asker.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(asker)[0], 1)
        report = self.expect_json(programs.run(
            "postern-ping", *QUICK, "--json", "--mtu", "1:1", **self.node(PTL_MTU="1500")))
        self.assertEqual(report["path_mtu"]["target"], 1500)

    def test_a_host_without_the_process_is_told_from_silence(self):
        here = self.all_users()
        other = here[:here.rindex(".")] + "." + str(int(here[here.rindex(".") + 1:]) ^ 1)  # a host of its own, for all that udp knows
        done = programs.run("postern-ping", "--count", "1", "--timeout", "100ms", f"{other}:2", PTL_IFACE_NAME=f"udp:{here}")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, rf"seq=1: the host of {re.escape(other)}:2 answers, but no process with that id does: start the process")

    def test_a_process_of_a_node_with_another_node_id_is_no_process_that_does_not_run(self):
        self.server()
        for nid in ("2", ""):
            done = programs.run("postern-ping", "--count", "1", "--timeout", "100ms", "1:1", **(self.node() | {"PTL_NID": nid}))
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stdout, rf"the node id of 1:1 is not that of this process, {nid or '[0-9]+'}, .* give both the same PTL_NID")

    def test_a_process_that_does_not_exist_is_told_from_one_that_does_not_answer(self):
        server = self.server()
        why = "no process of this user on this machine has the id 1:2: start it, "
        for word in ("--count=3", "--quiet"):
            done = programs.run("postern-ping", "--count", "3", "--interval", "1ms", "--timeout", "100ms", word, "1:2", **self.node())
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stdout.count(why), 1, done.stdout)
            self.assertEqual("seq=3: no answer\n" in done.stdout, word != "--quiet")
        asker = self.start("postern-ping", "--interval", "20ms", "--timeout", "200ms", "1:1",
                           **self.node())
        self.await_line(asker, "64 bytes from 1:1")
        server.send_signal(signal.SIGSTOP)
        self.assertRegex(self.await_line(asker, "no answer from "), r"[0-9a-f:]{17}")
        server.send_signal(signal.SIGCONT)
        self.await_line(asker, "64 bytes from 1:1")
        asker.send_signal(signal.SIGINT)
        code, out, err = self.finish(asker)
        self.assertEqual(code, 0, err)
        self.assertIn("ping statistics", out)

    def test_a_restart_is_seen(self):
        server = self.server()
        asker = self.start("postern-ping", "--interval", "20ms", "--timeout", "200ms", "1:1",
                           **self.node())
        self.await_line(asker, "64 bytes from 1:1")
        server.kill()
        server.wait()
        self.server()
        self.await_line(asker, "has restarted")
        asker.send_signal(signal.SIGINT)
        code, out, err = self.finish(asker)
        self.assertEqual(code, 0, err)
        self.assertIn("restarted 1 times", out)


if __name__ == "__main__":
    programs.main()
