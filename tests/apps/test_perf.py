#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""postern-perf as a user runs it.

Covers: lib/host/instruments.c.
"""
import contextlib
import csv
import glob
import os
import pty
import re
import shutil
import signal
import subprocess
import time
import unittest
import xml.etree.ElementTree

import programs
import test_telemetry

SVG = "{http://www.w3.org/2000/svg}"
# More than a window. Few, because two processes that poll on one CPU wait for the scheduler at each message.
COUNT, WINDOW = 9, 8
QUICK = ("--iterations", str(COUNT), "--window", str(WINDOW))
PERCENTILES = ["min", "p50", "p90", "p99", "p99.9", "p99.99", "max"]


class Local(programs.Case):
    """Both ends in one process."""

    def test_every_measure_prints_a_line_for_each_size(self):
        done = self.expect_success(programs.run("postern-perf", "--sizes", "0,8,3K", "--iterations", "65", "all"))
        rows = [line.split() for line in done.stdout.splitlines() if line and line[0] == " "
                and "#" not in line]
        self.assertEqual([row[0] for row in rows], ["0", "8", "3072"] * 7)
        self.assertEqual(done.stderr, "")
        for title in ("Latency of put", "Rate of puts", "Bandwidth of put", "both ways",
                      "Latency of get", "Rate of gets", "Bandwidth of get"):
            self.assertIn(title, done.stdout)

    def test_the_header_describes_the_machine(self):
        done = self.expect_success(programs.run("postern-perf", "--sizes", "8", *QUICK, "latency"))
        facts = dict(line[2:].split(maxsplit=1) for line in done.stdout.splitlines()[1:]
                     if line.startswith("# ") and len(line.split()) > 2)
        for name, words in (("cpu", ""), ("kernel", "Linux"), ("interface", "loop:perf;loop:perf"),
                            ("mtu", ""), ("hugepages", ""), ("progress", "core, polling adaptive"),
                            ("cores", "application not pinned"), ("measured", "one thread"),
                            ("clock", "ns a look"), ("build", "")):
            self.assertIn(words, facts[name])
        self.assertGreater(int(facts["mtu"]), 1000)

    def test_the_header_says_that_udp_carries_the_frames_of_sockets(self):
        machine = self.expect_json(programs.run("postern-perf", "--json", "--sizes", "8", *QUICK, "latency", PTL_MTU="1400",
                                                PTL_IFACE_NAME="udp:127.0.0.1;udp:127.0.0.2"))["machine"]
        self.assertEqual((machine["encapsulation"], machine["mtu"]), ("udp", "1400"))

    def test_json_has_machine_and_results(self):
        report = self.expect_json(
            programs.run("postern-perf", "--json", "--sizes", "8,64K", *QUICK, "all"))
        self.assertEqual(len(report["results"]), 14)
        self.assertEqual(report["machine"]["progress"], "core, polling adaptive")
        for result in report["results"]:
            self.assertGreaterEqual(result["messages"], COUNT)
            self.assertGreater(result["seconds"], 0)
            if "latency" in result["measure"]:
                times = [result["latency_ns"][name] for name in PERCENTILES]
                self.assertEqual(times, sorted(times))
                self.assertGreater(times[0], 0)
            else:
                self.assertGreater(result["bytes_per_second"], 0)
                self.assertGreater(result["messages_per_second"], 0)

    def expect_bare(self, result):
        bare = result["bare"]
        self.assertGreater(bare["messages"], 0)
        self.assertGreater(result["ratio"], 0)
        if "latency_ns" in result:
            times = [bare["latency_ns"][name] for name in PERCENTILES]
            self.assertEqual(times, sorted(times))
        else:
            self.assertGreater(bare["messages_per_second"], 0)

    def test_a_blank_name_of_an_interface_is_none(self):
        self.expect_json(programs.run("postern-perf", "--json", "--sizes", "8", "--iterations", "5", "latency", PTL_IFACE_NAME=""))

    def test_iterations_are_exact_for_latency(self):
        report = self.expect_json(programs.run(
            "postern-perf", "--json", "--sizes", "8", "--iterations", "345", "latency"))
        self.assertEqual(report["results"][0]["messages"], 345)

    def test_a_range_of_sizes_is_every_power_of_two(self):
        report = self.expect_json(programs.run(
            "postern-perf", "--json", "--sizes", "0..4,10..33,1K", "--iterations", "5", "latency"))
        self.assertEqual([result["size"] for result in report["results"]],
                         [0, 1, 2, 4, 10, 16, 32, 33, 1024])

    def test_the_default_is_a_sweep_to_4_MiB(self):
        report = self.expect_json(
            programs.run("postern-perf", "--json", "--iterations", "8", "latency", "rate"))
        sizes = [result["size"] for result in report["results"]]
        self.assertEqual(sizes, [1 << n for n in range(23)] + [8])

    def test_stats_print_counters_that_have_changed(self):
        done = self.expect_success(
            programs.run("postern-perf", "--stats", "--sizes", "8", *QUICK, "latency"))
        self.assertIn("# Counters of 1:1", done.stdout)
        self.assertIn("frames_received", done.stdout)
        report = self.expect_json(
            programs.run("postern-perf", "--json", "-S", "--sizes", "8", *QUICK, "latency"))
        self.assertGreater(report["counters"]["1:1"]["frames_received"], 0)

    def test_it_runs_without_a_poll_thread(self):
        report = self.expect_json(programs.run(
            "postern-perf", "--json", "--sizes", "8,64K", *QUICK, "all", PTL_PROGRESS="inline"))
        self.assertEqual(report["machine"]["progress"], "inline, polling adaptive")

    def test_it_can_poll_for_events(self):
        self.expect_json(
            programs.run("postern-perf", "--json", "--poll", "--sizes", "8", *QUICK, "all"))

    def test_a_window_of_one_and_a_large_one_work(self):
        for window in ("1", "4096"):
            self.expect_json(programs.run("postern-perf", "--json", *QUICK, "--window", window, "--sizes",
                                          "8", "bandwidth", "bidirectional",
                                          "get-bandwidth"))

    def test_bare_frames_are_measured_beside_messages(self):
        for progress in ("core", "inline"):
            report = self.expect_json(programs.run(
                "postern-perf", "--json", "--raw", "--sizes", "0,8,64K", *QUICK, "all",
                PTL_PROGRESS=progress))
            self.assertEqual(len(report["results"]), 21)
            for result in report["results"]:
                self.expect_bare(result)

    def test_the_ratio_stands_beside_each_figure(self):
        done = self.expect_success(programs.run(
            "postern-perf", "--raw", "--sizes", "8", *QUICK, "latency", "rate"))
        lines = done.stdout.splitlines()
        for word in ("bare", "above", "ratio"):
            rows = [line.split() for line in lines if re.match(rf"# {{2,}}{word} ", line)]
            self.assertEqual(len(rows), 1)
            # What lies beyond the 90th percentile is chance, and two chances have no difference.
            tail = rows[0][-8:]
            self.assertEqual([figure == "-" for figure in tail],
                             [word != "bare" and n not in (0, 2, 3) for n in range(8)], rows)
        self.assertEqual([line.split()[-3:] for line in lines if "Window" in line],
                         [["MB/s", "Bare/s", "Ratio"]])

    def test_match_lists_of_any_depth_position_and_kind(self):
        report = self.expect_json(programs.run(
            "postern-perf", "--json", "--depth", "1,300", "--position",
            "first,middle,last,random", "--wildcards", "0,16,all", *QUICK, "latency",
            "get-latency", "rate"))
        found = [(result["measure"], result["depth"], result["wildcards"], result["position"])
                 for result in report["results"]]
        self.assertEqual(len(set(found)), len(found) - 3 * 4)  # of one entry, 16 and all are one
        self.assertEqual(len(found), 3 * 3 * 4 * 2)
        self.assertIn(("latency", 300, 16, "random"), found)
        self.assertIn(("rate", 300, 300, "middle"), found)

    def test_a_match_list_can_have_65536_entries(self):
        done = self.expect_success(programs.run(
            "postern-perf", "--depth", "64K", "--sizes", "8", *QUICK, "latency"))
        self.assertRegex(done.stdout, rf"\n +8 +65536 +0 +last +{COUNT} ")

    def test_a_match_list_that_is_too_long_says_so(self):
        done = programs.run("postern-perf", "--depth", "1000", *QUICK, "latency",
                            PTL_LIST_MAX="100")
        self.assertEqual(done.returncode, 1)
        self.assertIn("match list of 1000 entries", done.stderr)

    def test_messages_go_to_many_peers(self):
        report = self.expect_json(programs.run(
            "postern-perf", "--json", "--stats", "--peers", "1,5", "--iterations", "640", "all",
            PTL_MTU="1500"))
        self.assertEqual([result.get("peers", 1) for result in report["results"]], [1, 5] * 7)
        self.assertEqual(len(report["counters"]), 6)
        for counters in report["counters"].values():
            self.assertGreater(counters["messages_received"], 640 / 5)

    def test_pairs_measure_at_once(self):
        for progress in ("core", "inline"):
            report = self.expect_json(programs.run(
                "postern-perf", "--json", "--stats", "--pairs", "1,3", "--sizes", "8", "--iterations", "640",
                "latency", "rate", "get-rate", PTL_PROGRESS=progress))
            self.assertEqual([result.get("pairs", 1) for result in report["results"]], [1, 3] * 3)
            self.assertEqual([result["messages"] >= 640 * result.get("pairs", 1) for result in report["results"]], [True] * 6)
            self.assertEqual(len(report["counters"]), 6)
            for counters in report["counters"].values():
                self.assertGreater(counters["messages_received"], 640)

    def test_a_trial_is_repeated_and_its_spread_is_told(self):
        words = ("--repeat", "4", "--warm-up", "0", "--sizes", "8", "--iterations", "400", "latency", "rate")
        report = self.expect_json(programs.run("postern-perf", "--json", *words))
        latency, rate = report["results"]
        self.assertEqual(latency["messages"], 400)
        self.assertEqual([len(latency["runs"]), len(rate["runs"])], [4, 4])
        self.assertEqual(min(run["min"] for run in latency["runs"]), latency["latency_ns"]["min"])
        self.assertIn(rate["messages_per_second"], rate["runs"])
        done = self.expect_success(programs.run("postern-perf", *words))
        for word in ("lowest", "highest"):
            self.assertEqual(sum(line.split()[:2] == ["#", word] for line in done.stdout.splitlines()), 1)
        self.assertIn("Lowest/s    Highest/s", done.stdout)
        done = self.expect_success(programs.run("postern-perf", "--csv", *words))
        rows = list(csv.DictReader(line for line in done.stdout.splitlines() if line[0] != "#"))
        self.assertEqual([row["runs"] for row in rows], ["4", "4"])
        self.assertLessEqual(float(rows[1]["lowest_messages_per_second"]), float(rows[1]["highest_messages_per_second"]))

    def test_faults_are_gone_through(self):
        report = self.expect_json(programs.run(
            "postern-perf", "--json", "--stats", "--faults", "none;drop=0.02,seed=1", "--raw",
            "--sizes", "8", "--iterations", "2000", "latency", "rate"))
        self.assertEqual([result["faults"] for result in report["results"]],
                         ["none", "none", "drop=0.02,seed=1", "drop=0.02,seed=1"])
        self.assertGreater(sum(counters.get("retransmits", 0)
                               for counters in report["counters"].values()), 0)

    def test_csv_has_a_line_for_each_trial(self):
        done = self.expect_success(programs.run(
            "postern-perf", "--csv", "--raw", "--faults", "none;dup=0.01,seed=2", "--sizes", "8,1K",
            *QUICK, "latency", "bandwidth"))
        rows = list(csv.DictReader(line for line in done.stdout.splitlines() if line[0] != "#"))
        self.assertEqual(len(rows), 8)
        for row in rows:
            self.assertEqual(None not in row and None not in row.values(), True)
            self.assertGreater(float(row["ratio"]), 0)
            name = "p50_ns" if row["measure"] == "latency" else "messages_per_second"
            self.assertGreater(float(row[name]), 0)
            self.assertGreater(float(row["bare_" + name]), 0)
        self.assertEqual(rows[-1]["faults"], "dup=0.01,seed=2")

    def need_gnuplot(self):
        if shutil.which("gnuplot") is None and os.environ.get("CI") != "true":
            self.skipTest("gnuplot is missing; scripts/install test installs it")

    def plot(self, *words):
        """The texts of the drawing, and how many lines it has."""
        self.need_gnuplot()
        path = os.path.join(self.directory, "plot.svg")
        self.expect_success(programs.run("postern-perf", "--plot", path, *words))
        root = xml.etree.ElementTree.parse(path).getroot()
        lines = [group for group in root.iter(SVG + "g") if re.match(r"gnuplot_plot_\d+", group.get("id", ""))]
        self.assertTrue(all(group.find(".//" + SVG + "path") is not None for group in lines))
        return ["".join(text.itertext()).strip() for text in root.iter(SVG + "text")], len(lines)

    def test_a_size_sweep_is_drawn(self):
        texts, lines = self.plot("--raw", "--sizes", "1..4K", "--iterations", "200", "latency", "rate", "bandwidth")
        for words in ("Median latency", "Rate", "Bandwidth", "MB/s", "million messages a second", "99%", "1ki",
                      "latency, bare frames", "message size, bytes",
                      "How latencies are distributed (5 results are left out)", "latency, 1 bytes", "latency, 4096 bytes"):
            self.assertIn(words, texts)
        self.assertEqual(lines, 2 * 8 + 2 + 2 + 2)

    def test_depths_peers_and_faults_are_drawn(self):
        texts, _ = self.plot("--depth", "1..64", "--wildcards", "0,all", *QUICK, "latency", "rate")
        self.assertIn("entries of the match list", texts)
        self.assertIn("rate, all wild", texts)
        texts, _ = self.plot("--peers", "1,2", *QUICK, "rate")
        self.assertIn("peers that the messages go to, in turns", texts)
        texts, _ = self.plot("--faults", "none;drop=0.01", "--sizes", "0,8", *QUICK, "latency")
        self.assertIn("latency, drop=0.01", texts)

    def test_a_plot_in_the_terminal(self):
        self.plot("--sizes", "8", *QUICK, "rate")
        done = self.expect_success(programs.run("postern-perf", "--plot", "-", "--sizes", "8,64", *QUICK, "latency"))
        self.assertIn("Median latency", done.stdout)
        self.assertIn("message size, bytes", done.stdout)

    def test_without_gnuplot_a_plot_says_so_at_once(self):
        done = programs.run("postern-perf", "--plot", "plot.svg", "--time", "600", PATH=self.directory)
        self.assertEqual(done.returncode, 1)
        self.assertIn("gnuplot", done.stderr)

    def test_a_plot_that_cannot_be_written_says_so_at_once(self):
        done = programs.run("postern-perf", "--plot", "/nonesuch/plot.svg", "--time", "600")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nonesuch/plot.svg", done.stderr)

    def test_a_plot_that_a_disk_has_no_room_for_says_so(self):
        self.need_gnuplot()
        for kind in ("svg", "png", "pdf"):
            path = os.path.join(self.directory, f"plot.{kind}")
            os.symlink("/dev/full", path)
            done = programs.run("postern-perf", "--plot", path, "--sizes", "8", *QUICK, "latency")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f"the plot cannot be written to {path}: No space left on device; give --plot another path", done.stderr)

    def test_threads_are_kept_on_cores(self):
        core = str(min(os.sched_getaffinity(0)))
        report = self.expect_json(programs.run(
            "postern-perf", "--json", "--cores", f"{core},{core}", "--sizes", "8", *QUICK,
            "latency"))
        self.assertEqual(report["machine"]["cores"],
                         f"application on CPU {core}, poll threads: {core}")

    def test_a_terminal_sees_progress(self):
        ours, theirs = pty.openpty()
        try:
            done = subprocess.run(
                [programs.program("postern-perf"), "--sizes", "8", *QUICK, "latency"],
                stdout=subprocess.PIPE, stderr=theirs, timeout=programs.TIMEOUT,
                env=programs.environment(), check=False)
            self.assertEqual(done.returncode, 0)
            self.assertIn(b"latency of 8 bytes", os.read(ours, 4096))
        finally:
            os.close(ours)
            os.close(theirs)

    def test_one_interface_is_told_to_be_too_few(self):
        self.expect_usage_error(
            programs.run("postern-perf", PTL_IFACE_NAME="loop:alone"), "two interfaces")


class Portals4(programs.Case):
    """Messages of Portals 4, beside a control session of Portals 3.2."""
    MEASURES = ["latency", "rate", "bandwidth", "bidirectional", "get-latency", "get-rate", "get-bandwidth", "fetch-latency",
                "triggered-latency", "counted-rate", "put-latency", "put-bandwidth"]

    def expect_all(self, report, sizes):
        """A result for each size of each measure; fetching additions have one size."""
        found = [(result["measure"], result["size"]) for result in report["results"]]
        self.assertEqual(found, [(measure, size) for measure in self.MEASURES
                                 for size in ([8] if measure == "fetch-latency" else sizes)])
        self.assertEqual(report["machine"]["library"], "Portals 4")
        for result in report["results"]:
            self.assertGreaterEqual(result["messages"], COUNT)
            self.assertEqual("latency_ns" in result, "latency" in result["measure"])

    def test_every_measure_in_one_process(self):
        for progress in ("core", "inline"):
            self.expect_all(self.expect_json(programs.run(
                "postern-perf", "--library", "portals4", "--json", "--sizes", "0,8,64K", *QUICK, "all",
                PTL_PROGRESS=progress)), [0, 8, 65536])

    def test_every_measure_between_processes(self):
        for settings in ({}, {"PTL_PROGRESS": "inline"}):
            server = self.server("--once", "--library", "portals4", **settings)
            report = self.expect_json(programs.run(
                "postern-perf", "--library", "portals4", "--peer", "1:1", "--json", "--sizes", "0,8,64K", *QUICK, "all",
                **self.node(**settings)))
            self.expect_all(report, [0, 8, 65536])
            code, _, err = self.finish(server)
            self.assertEqual(code, 0, err)

    def test_match_lists_of_any_depth_position_and_kind(self):
        for progress in ("core", "inline"):
            report = self.expect_json(programs.run(
                "postern-perf", "--library", "portals4", "--json", "--depth", "1,300", "--position", "first,random",
                "--wildcards", "0,16,all", *QUICK, "all", PTL_PROGRESS=progress))
            found = [(result["measure"], result["depth"], result["wildcards"], result["position"])
                     for result in report["results"]]
            self.assertEqual(len(found), len(self.MEASURES) * 2 * 3 * 2)
            self.assertIn(("counted-rate", 300, 16, "random"), found)
            self.assertIn(("bidirectional", 300, 300, "first"), found)

    def test_a_match_list_can_have_65536_entries(self):
        done = self.expect_success(programs.run(
            "postern-perf", "--library", "portals4", "--depth", "64K", "--sizes", "8", *QUICK, "latency"))
        self.assertRegex(done.stdout, rf"\n +8 +65536 +0 +last +{COUNT} ")

    def test_messages_go_to_many_peers(self):
        servers = [self.server_at(pid, "--once", "--library", "portals4") for pid in (1, 2, 3)]
        report = self.expect_json(programs.run(
            "postern-perf", "--library", "portals4", "--json", "--peers", "1,3", "--window", str(WINDOW), "--iterations", "80",
            *(word for pid in (1, 2, 3) for word in ("--peer", f"1:{pid}")), "all", **self.node()))
        self.assertEqual([result.get("peers", 1) for result in report["results"]], [1, 3] * len(self.MEASURES))
        self.assertGreaterEqual(min(result["messages"] for result in report["results"]), 80)
        for server in servers:
            code, _, err = self.finish(server)
            self.assertEqual(code, 0, err)

    def test_pairs_measure_at_once(self):
        servers = [self.server_at(pid, "--once", "--library", "portals4") for pid in (1, 2)]
        node = self.node()
        node["PTL_IFACE_NAME"] = ";".join([node["PTL_IFACE_NAME"]] * 2)
        report = self.expect_json(programs.run(
            "postern-perf", "--library", "portals4", "--json", "--pairs", "1,2", "--sizes", "8", "--iterations", "640", "--peer",
            "1:1", "--peer", "1:2", "latency", "rate", "bidirectional", **node))
        self.assertEqual([result.get("pairs", 1) for result in report["results"]], [1, 2] * 3)
        self.assertEqual([result["messages"] >= 640 * result.get("pairs", 1) for result in report["results"]], [True] * 6)
        for server in servers:
            code, _, err = self.finish(server)
            self.assertEqual(code, 0, err)

    def test_its_messages_meet_faults_and_bare_frames(self):
        report = self.expect_json(programs.run(
            "postern-perf", "--library", "portals4", "--json", "--raw", "--faults", "none;drop=0.02,seed=1", "--sizes", "8",
            "--iterations", "2000", "latency", "fetch-latency", "counted-rate", "put-latency"))
        self.assertEqual([result["faults"] for result in report["results"]], ["none"] * 4 + ["drop=0.02,seed=1"] * 4)
        for calm, lossy in zip(report["results"][:2], report["results"][4:]):
            self.assertGreater(calm["ratio"], 0)
            self.assertGreater(lossy["latency_ns"]["max"], 0)

    def test_a_server_takes_portals_3_as_well(self):
        self.server("--library", "portals4")
        self.expect_json(programs.run("postern-perf", "--peer", "1:1", "--json", "--sizes", "8", *QUICK, "all", **self.node()))

    def test_a_server_without_it_refuses_it(self):
        server = self.server()
        done = programs.run("postern-perf", "--library", "portals4", "--peer", "1:1", **self.node())
        self.assertEqual(done.returncode, 1)
        self.assertIn("with --library portals4 as well", done.stderr)
        self.expect_success(programs.run("postern-perf", "--peer", "1:1", "--sizes", "8", *QUICK, "latency", **self.node()))
        server.terminate()
        self.assertIn("was not started with this --library", self.finish(server)[2])

    def test_one_that_dies_ends_the_client_but_not_the_server(self):
        for measure in ("get-latency", "bandwidth", "triggered-latency"):
            words = ("postern-perf", "--library", "portals4", "--peer", "1:1", "--sizes", "8", "--time", "600", measure)
            with self.subTest(measure=measure):
                server = self.server("--library", "portals4", PTL_PEER_TIMEOUT="100s")
                client = self.start(*words, **self.node())
                self.await_line(server, "Serving 1:")
                self.await_line(client, "# Size")
                client.kill()
                client.wait()
                self.await_line(server, "is gone")
                client = self.start(*words, **self.node(PTL_PEER_TIMEOUT="100s"))
                self.await_line(client, "# Size")
                server.kill()
                server.wait()
                code, _, err = self.finish(client)
                self.assertEqual(code, 1)
                self.assertIn("the server at 1:1 is gone", err)

    def test_a_module_that_is_missing_is_told(self):
        program = shutil.copy(programs.program("postern-perf"), self.directory)
        done = subprocess.run([program, "--library", "portals4", *QUICK], capture_output=True, text=True, timeout=programs.TIMEOUT,
                              env=programs.environment(LD_LIBRARY_PATH=os.path.join(programs.PROGRAMS, "../lib/p3")), check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("its module cannot be loaded", done.stderr)
        self.assertIn("package postern-utils", done.stderr)


class Mx(programs.Case):
    """The same with messages of MX."""

    TIMED = {"latency", "any-latency", "kept-latency"}
    RATES = {"rate", "bandwidth", "unexpected-rate"}
    OVERLAPS = {"overlap-send", "overlap-receive"}

    def expect_all(self, report, sizes):
        self.assertEqual(report["machine"]["library"], "MX")
        self.assertEqual([result["size"] for result in report["results"]], sizes * 8)
        self.assertEqual({result["measure"] for result in report["results"]}, self.TIMED | self.RATES | self.OVERLAPS)
        for result in report["results"]:
            with self.subTest(measure=result["measure"], size=result["size"]):
                self.assertGreaterEqual(result["messages"], COUNT)
                if result["measure"] in self.TIMED:
                    times = [result["latency_ns"][name] for name in PERCENTILES]
                    self.assertEqual(times, sorted(times))
                    self.assertGreater(times[-1], 0)
                elif result["measure"] in self.RATES:
                    self.assertGreater(result["messages_per_second"], 0)
                else:
                    self.assertGreaterEqual(result["overlap"], 0)
                    self.assertLessEqual(result["overlap"], 1)

    def test_every_measure_in_one_process(self):
        for progress in ("core", "inline"):
            self.expect_all(self.expect_json(programs.run(
                "postern-perf", "--library", "mx", "--json", "--sizes", "0,1,64K", *QUICK, "all", PTL_PROGRESS=progress)),
                [0, 1, 65536])

    def test_every_measure_between_processes(self):
        for settings in ({}, {"PTL_PROGRESS": "inline"}):
            server = self.server("--once", "--library", "mx", **settings)
            report = self.expect_json(programs.run(
                "postern-perf", "--library", "mx", "--peer", "1:1", "--json", "--sizes", "0,8,64K", *QUICK, "all",
                **self.node(**settings)))
            self.expect_all(report, [0, 8, 65536])
            code, _, err = self.finish(server)
            self.assertEqual(code, 0, err)

    def test_a_search_is_among_as_many_as_its_depth(self):
        report = self.expect_json(programs.run(
            "postern-perf", "--library", "mx", "--json", "--depth", "1,500", *QUICK, "any-latency", "kept-latency",
            PTL_PROGRESS="inline"))
        self.assertEqual([result["depth"] for result in report["results"]], [1, 500] * 2)
        done = programs.run("postern-perf", "--library", "mx", "--depth", "8000", *QUICK, "kept-latency", PTL_PROGRESS="inline")
        self.assertEqual(done.returncode, 1)
        self.assertIn("8000 messages cannot be kept", done.stderr)

    def test_the_overlap_of_several_runs_is_their_median(self):
        report = self.expect_json(programs.run(
            "postern-perf", "--library", "mx", "--json", "--repeat", "3", "--sizes", "4M", "overlap-send", "overlap-receive"))
        for result in report["results"]:
            self.assertEqual(len(result["runs"]), 3)
            self.assertEqual(result["overlap"], sorted(result["runs"])[1])

    def test_results_as_a_table_csv_and_a_plot(self):
        words = ("postern-perf", "--library", "mx", "--repeat", "2", "--sizes", "1,64K", *QUICK, "all")
        done = self.expect_success(programs.run(*words))
        for title in ("Latency of a message", "Rate of messages", "Bandwidth of messages", "no receive was posted for",
                      "its sender computes", "its receiver computes", "Finding a request", "Receiving a message"):
            self.assertIn(title, done.stdout)
        done = self.expect_success(programs.run(*words, "--csv", "--plot", os.path.join(self.directory, "plot.svg")))
        rows = list(csv.DictReader(line for line in done.stdout.splitlines() if not line.startswith("#")))
        self.assertEqual(len(rows), 16)
        for row in rows:
            if row["measure"] in self.OVERLAPS:
                self.assertEqual(row["messages_per_second"], "")
                self.assertLessEqual(float(row["overlap"]), 1)
            else:
                self.assertEqual(row["overlap"], "")
        xml.etree.ElementTree.parse(os.path.join(self.directory, "plot.svg"))

    def test_one_that_dies_ends_the_client_but_not_the_server(self):
        for measure in ("latency", "bandwidth", "unexpected-rate", "overlap-receive"):
            words = ("postern-perf", "--library", "mx", "--peer", "1:1", "--sizes", "64K", "--time", "600", measure)
            with self.subTest(measure=measure):
                server = self.server("--library", "mx", PTL_PEER_TIMEOUT="100s")
                client = self.start(*words, **self.node())
                self.await_line(server, "Serving 1:")
                self.await_line(client, "# Size")
                client.kill()
                client.wait()
                self.await_line(server, "is gone")
                client = self.start(*words, **self.node(PTL_PEER_TIMEOUT="100s"))
                self.await_line(client, "# Size")
                server.kill()
                server.wait()
                code, _, err = self.finish(client)
                self.assertEqual(code, 1)
                self.assertIn("the server at 1:1 is gone", err)

    def test_its_messages_meet_faults_and_bare_frames(self):
        report = self.expect_json(programs.run(
            "postern-perf", "--library", "mx", "--json", "--raw", "--faults", "none;drop=0.02,seed=1", "--sizes", "8",
            "--iterations", "2000", "latency", "rate", "unexpected-rate"))
        self.assertEqual([result["faults"] for result in report["results"]], ["none"] * 3 + ["drop=0.02,seed=1"] * 3)
        for result in report["results"]:
            self.assertGreater(result["ratio"], 0)


@unittest.skipUnless(os.environ.get("POSTERN_FI") == "yes", "libfabric is missing; scripts/install test installs it")
class Fi(programs.Case):
    """The same with libfabric, which loads the provider that was built."""

    MEASURES = ("latency", "rate", "bandwidth", "get-latency", "get-rate", "get-bandwidth", "fetch-latency", "put-latency", "put-bandwidth")

    WORDS = ("postern-perf", "--library", "fi", "--json", "--sizes", "0,8,5000,1M", *QUICK, "all")
    PROVIDER = {"FI_PROVIDER_PATH": os.path.join(programs.PROGRAMS, "../lib/fi")}

    def expect_all(self, report):
        self.assertEqual(report["machine"]["library"], "libfabric")
        self.assertEqual([(result["measure"], result["size"]) for result in report["results"]],
                         [(measure, size) for measure in self.MEASURES for size in ((8,) if measure == "fetch-latency" else (0, 8, 5000, 1 << 20))])
        for result in report["results"]:
            self.assertGreaterEqual(result["messages"], COUNT)
            if result["measure"].endswith("latency"):
                self.assertGreater(result["latency_ns"]["min"], 0)
            else:
                self.assertGreater(result["messages_per_second"], 0)

    def test_every_measure_in_one_process(self):
        for progress in ("core", "inline", "both"):
            self.expect_all(self.expect_json(programs.run(*self.WORDS, PTL_PROGRESS=progress, **self.PROVIDER)))

    def test_every_measure_between_processes(self):
        for settings in (self.PROVIDER, self.PROVIDER | {"PTL_PROGRESS": "inline"}):
            server = self.server("--once", "--library", "fi", **settings)
            self.expect_all(self.expect_json(programs.run(*self.WORDS, "--peer", "1:1", **self.node(**settings))))
            code, _, err = self.finish(server)
            self.assertEqual(code, 0, err)

    def test_windows_are_as_large_as_any(self):
        self.expect_json(programs.run("postern-perf", "--library", "fi", "--json", *QUICK, "--window", "16384", "rate", **self.PROVIDER))

    def test_its_messages_meet_faults_and_bare_frames(self):
        self.server("--library", "fi", **self.PROVIDER)
        report = self.expect_json(programs.run("postern-perf", "--library", "fi", "--peer", "1:1", "--json", "--stats", "--raw", "--faults", "none;drop=0.02,seed=1",
                                               "--sizes", "8", "--iterations", "300", "latency", "rate", **self.node(**self.PROVIDER)))
        self.assertEqual([result["faults"] for result in report["results"]], ["none"] * 2 + ["drop=0.02,seed=1"] * 2)
        for result in report["results"]:
            self.assertGreater(result["ratio"], 0)

    def test_one_that_dies_ends_the_client_but_not_the_server(self):
        for measure in ("latency", "bandwidth", "get-bandwidth"):
            words = ("postern-perf", "--library", "fi", "--peer", "1:1", "--sizes", "64K", "--time", "600", measure)
            server = self.server("--library", "fi", PTL_PEER_TIMEOUT="100s", **self.PROVIDER)
            client = self.start(*words, **self.node(**self.PROVIDER))
            self.await_line(server, "Serving 1:")
            self.await_line(client, "# Size")
            client.kill()
            client.wait()
            self.await_line(server, "is gone")
            client = self.start(*words, **self.node(PTL_PEER_TIMEOUT="100s", **self.PROVIDER))
            self.await_line(client, "# Size")
            server.kill()
            server.wait()
            code, _, err = self.finish(client)
            self.assertEqual(code, 1)
            self.assertIn("the server at 1:1 is gone", err)

    def test_a_provider_that_is_not_found_is_told(self):
        done = programs.run("postern-perf", "--library", "fi", *QUICK, FI_PROVIDER_PATH=self.directory)
        self.assertEqual(done.returncode, 1)
        self.assertIn("libfabric does not find the provider", done.stderr)


class Gasnet(programs.Case):
    """The two ranks of a job."""

    MEASURES = ["latency", "rate", "bandwidth", "get-latency", "get-bandwidth", "put-latency", "put-bandwidth"]
    WORDS = ("--library", "gasnet", "--json", "--sizes", "0,8,2K,64K", *QUICK, "all")

    def job(self, *words, ranks=2, **settings):
        return programs.run("postern-run", "-n", str(ranks), programs.program("postern-perf"), *words, **settings)

    def test_every_measure(self):
        for progress in ("both", "inline", "core"):
            report = self.expect_json(self.job(*self.WORDS, PTL_PROGRESS=progress))
            self.assertEqual(report["machine"]["library"], "GASNet")
            self.assertEqual([(result["measure"], result["size"]) for result in report["results"]],
                             [(measure, size) for measure in self.MEASURES for size in (0, 8, 2048, 65536)])
            for result in report["results"]:
                self.assertGreaterEqual(result["messages"], COUNT)

    def test_frames_may_be_lost(self):
        report = self.expect_json(self.job(*self.WORDS, PTL_FAULT="drop=0.01,seed=1", PTL_PROGRESS="inline", GASNET_SUPERNODE_MAXSIZE="1"))
        self.assertEqual(len(report["results"]), len(self.MEASURES) * 4)

    def test_more_messages_than_a_rank_has_room_for(self):
        self.expect_json(self.job("--library", "gasnet", "--json", *QUICK, "--window", "1000", "rate"))

    def test_bare_frames_counters_and_a_trace(self):
        path = os.path.join(self.directory, "trace.json")
        done = self.expect_success(self.job("--library", "gasnet", "--raw", "--stats", "--trace", path, "--sizes", "8", *QUICK, "latency"))
        self.assertIn("Latency of a message", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^# +ratio ")
        self.assertEqual(done.stdout.count("# Counters of"), 1)
        self.assertTrue(os.path.getsize(path) > 0)

    def test_another_number_of_ranks_is_told(self):
        alone = programs.run("postern-perf", "--library", "gasnet")
        self.assertEqual(alone.returncode, 1)
        self.assertIn("this one has 1: postern-run -n 2 postern-perf --library gasnet", alone.stderr)
        self.assertIn("start postern-perf without postern-run", self.job("--sizes", "8", *QUICK, "latency").stderr)
        three = self.job("--library", "gasnet", ranks=3)
        self.assertEqual(three.returncode, 1)
        self.assertIn("this one has 3", three.stderr)


class Options(programs.Case):
    def test_a_library_beside_portals_3_needs_one_interface(self):
        self.expect_usage_error(programs.run("postern-perf", "--library", "portals4", "--server", PTL_IFACE_NAME="node;node:b"),
                                "needs an interface for each pair, here 1")

    def test_help_and_version_say_what_they_should(self):
        done = self.expect_success(programs.run("postern-perf", "--help"))
        for word in ("--server", "--peer", "--sizes", "--window", "--json", "bidirectional"):
            self.assertIn(word, done.stdout)
        done = self.expect_success(programs.run("postern-perf", "--version"))
        self.assertRegex(done.stdout, r"^postern-perf \d+\.\d+\.\d+$")

    def test_wrong_options_get_a_sentence_and_code_2(self):
        for words, part in (
                (["--nonsense"], "--nonsense is not an option"),
                (["--plot", "plot"], "ends in .svg, .png or .pdf"),
                (["--plot", "-", "--json"], "give --plot a file"),
                (["--sizes"], "--sizes needs a value"),
                (["--sizes", "8,x"], "--sizes takes sizes"),
                (["--sizes", "8.."], "--sizes takes sizes"),
                (["--sizes", "16..8"], "--sizes takes sizes"),
                (["--sizes", "99999999999999999999"], "--sizes takes sizes"),
                (["--sizes", "5G"], "--sizes takes sizes"),
                (["--window", "0"], "--window takes a number"),
                (["--window", "-1"], "--window takes a number"),
                (["--iterations", "many"], "--iterations takes a number"),
                (["--time", "0"], "--time takes seconds"),
                (["--time", "nan"], "--time takes seconds"),
                (["--peer", "1"], "--peer takes a node id and a process id"),
                (["--peer", "1:2:3"], "--peer takes a node id and a process id"),
                (["--peer", "10.0.0:1"], "--peer takes a node id and a process id"),
                (["--peer", "10.0.0.256:1"], "--peer takes a node id and a process id"),
                (["--peer", "4294967295:1"], "--peer takes a node id and a process id"),
                (["--server", "--peer", "1:1"], "--server, --peer and --card exclude each other"),
                (["--once"], "--once has a meaning only with --server"),
                (["--server", "latency"], "give them to the client"),
                (["jitter"], "is not a measure"),
                (["--server", "--raw"], "give them to the client"),
                (["--json", "--csv"], "--json and --csv exclude each other"),
                (["--depth", "0"], "--depth takes numbers"),
                (["--depth", "128K"], "--depth takes numbers"),
                (["--position", "first"], "--depth"),
                (["--depth", "16", "--peers", "2"], "leave --peers out"),
                (["--depth", "8", "--position", "second"], "--position takes first"),
                (["--depth", "8", "--wildcards", "some"], "--wildcards takes numbers"),
                (["--peers", "64"], "--peers takes numbers"),
                (["--peers", "2", "--peer", "1:1"], "given 1 times"),
                (["--peers", "2", "--raw"], "one peer"),
                (["--pairs", "2", "--raw"], "leave --pairs out"),
                (["--pairs", "2", "--peers", "2"], "leave --pairs out"),
                (["--pairs", "2", "--peer", "1:1"], "given 1 times"),
                (["--pairs", "33"], "--pairs takes numbers"),
                (["--repeat", "0"], "--repeat takes a number"),
                (["--library", "portals5"], "takes portals3, portals4, mx, fi or gasnet"),
                (["--library", "mx", "get-rate"], "not a measure of MX"),
                (["--library", "mx", "--depth", "8", "latency"], "not with latency"),
                (["--library", "fi", "--depth", "8", "latency"], "not with latency"),
                (["--library", "fi", "--peers", "2"], "leave them out"),
                (["--library", "fi", "--faults", "drop=0.1"], "in another process"),
                (["--library", "gasnet", "--server"], "postern-run -n 2 postern-perf --library gasnet"),
                (["--library", "gasnet", "--faults", "drop=0.1"], "set PTL_FAULT"),
                (["--library", "fi", "bidirectional"], "not a measure of libfabric"),
                (["--library", "mx", "--raw", "overlap-send"], "nothing to compare overlap-send with"),
                (["--library", "mx", "--sizes", "4G"], "less than 4G bytes"),
                (["--library", "mx", "--depth", "8", "--wildcards", "1", "any-latency"], "leave them out"),
                (["--depth", "128K"], "--depth takes numbers from 1 to 64K"),
                (["fetch-latency"], "not a measure of Portals 3.2"),
                (["fetch-latency"], "not a measure of Portals 3.2"),
                (["--library", "portals4", "--peers", "2"], "in processes of their own"),
                (["--library", "portals4", "--pairs", "2"], "needs servers in processes of their own"),
                (["--library", "portals4", "--pairs", "3", "--peer", "1:1", "--peer", "1:2", "--peer", "1:3"], "at most 2 --pairs"),
                (["--warm-up", "soon"], "--warm-up takes seconds"),
                (["--cores", "100000"], "--cores takes numbers of CPUs"),
                (["--cores", "1023"], "may not use"),
        ):
            with self.subTest(words=words):
                self.expect_usage_error(programs.run("postern-perf", *words), part)

    def test_an_interface_that_does_not_exist_fails_with_code_1(self):
        done = programs.run("postern-perf", "--server", PTL_IFACE_NAME="nonesuch0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nonesuch0", done.stderr)


class Sockets(programs.Case):
    def test_help_says_what_a_mode_is(self):
        done = self.expect_success(programs.run("postern-perf-sockets", "--help"))
        for word in ("poll-more", "poll-gather", "block", "unix", "Exit codes"):
            self.assertIn(word, done.stdout)

    def test_wrong_words_are_named(self):
        exchange = ["tcp", "poll", "latency", "8", "1", "0.01"]
        for words, code, part in (
                ([], 2, "8 arguments are needed, 0 are given"),
                (["--server"], 2, "--server takes an ADDRESS and a PORT"),
                (["--nonsense"], 2, 'there is no option "--nonsense"'),
                (["127.0.0.1", "1", "tcp", "poll", "rate", "8", "1", "1"], 2, '"rate" is neither latency nor stream'),
                (["127.0.0.1", "1", "tcp", "poll", "latency", "8x", "1", "1"], 1, "8x is no number"),
                (["127.0.0.1", "1", *exchange], 1, "nobody serves at 127.0.0.1 port 1"),
        ):
            done = programs.run("postern-perf-sockets", *words)
            self.assertEqual((done.returncode, done.stdout), (code, ""), words)
            self.assertIn(part, done.stderr)

    def test_a_mode_that_does_not_exist_is_named(self):
        server = self.start("postern-perf-sockets", "--server", "127.0.0.1", "0")
        port = self.await_line(server, "Serving at port ").split()[-1]
        done = programs.run("postern-perf-sockets", "127.0.0.1", port, "tcp", "pol", "latency", "8", "1", "0.01")
        self.assertEqual(done.returncode, 1)
        self.assertIn("pol is no MODE: give poll, block, poll-more or poll-gather", done.stderr)
        self.expect_success(programs.run("postern-perf-sockets", "127.0.0.1", port, "tcp", "poll", "latency", "8", "1", "0.01"))


class Remote(programs.Case):
    """Two processes on a node."""

    def test_a_server_serves_one_client_and_ends(self):
        server = self.server("--once", "--stats")
        report = self.expect_json(programs.run(
            "postern-perf", "--peer", "1:1", "--json", "--sizes", "0,8,64K,1M", *QUICK, "all",
            **self.node()))
        self.assertEqual(len(report["results"]), 28)
        self.assertEqual(report["peer"], "1:1")
        code, out, err = self.finish(server)
        self.assertEqual(code, 0, err)
        self.assertIn("is done", out)

    def test_a_server_serves_one_client_after_another(self):
        server = self.server()
        for _ in range(3):
            self.expect_success(programs.run(
                "postern-perf", "--peer", "1:1", "--sizes", "8", *QUICK, "latency",
                **self.node()))
            self.await_line(server, "is done")

    def test_bare_frames_are_measured_between_processes(self):
        server = self.server("--once")
        report = self.expect_json(programs.run(
            "postern-perf", "--peer", "1:1", "--json", "--raw", "--sizes", "8,64K", *QUICK, "all",
            **self.node(PTL_PROGRESS="inline")))
        self.assertEqual(len(report["results"]), 14)
        for result in report["results"]:
            self.assertGreater(result["ratio"], 0)
            self.assertGreater(result["bare"]["messages"], 0)
        code, _, err = self.finish(server)
        self.assertEqual(code, 0, err)

    def test_lists_and_faults_work_between_processes(self):
        server = self.server("--once")
        report = self.expect_json(programs.run(
            "postern-perf", "--peer", "1:1", "--json", "--depth", "1,300", "--faults",
            "none;drop=0.01,on=both,seed=3", *QUICK, "latency", **self.node()))
        self.assertEqual([(result["faults"][:4], result["depth"]) for result in report["results"]],
                         [("none", 1), ("none", 300), ("drop", 1), ("drop", 300)])
        code, _, err = self.finish(server)
        self.assertEqual(code, 0, err)

    def test_the_client_may_come_first(self):
        client = self.start("postern-perf", "--peer", "1:1", "--sizes", "8", *QUICK, "latency",
                            **self.node())
        self.server("--once")
        code, _, err = self.finish(client)
        self.assertEqual(code, 0, err)

    def test_who_is_interrupted_or_fails_takes_its_socket_along(self):
        rendezvous = os.path.join(programs.DIRECTORIES, "postern", os.path.basename(self.directory))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            server = self.server()
            self.assertIn("1", os.listdir(rendezvous))
            server.send_signal(number)
            server.send_signal(signal.SIGTERM)
            self.assertEqual(self.finish(server), (-number, "", ""))
            self.assertEqual(os.listdir(rendezvous), ["lock"])
        done = programs.run("postern-perf", "--peer", "1:1", **self.node(PTL_PEER_TIMEOUT="100ms"))
        self.assertEqual(done.returncode, 1)
        self.assertEqual(os.listdir(rendezvous), ["lock"])

    def test_a_server_may_come_late_but_must_come(self):
        late = self.start("postern-perf", "--peer", "1:1", "--sizes", "8", *QUICK, "latency",
                          **self.node(PTL_PEER_TIMEOUT="60s"))
        nowhere = dict(self.node(), PTL_IFACE_NAME="node:nowhere")
        for timeout in ("1s", "11s"):  # the second is longer than a process that is no server is given
            done = programs.run("postern-perf", "--peer", "1:1", **nowhere, PTL_PEER_TIMEOUT=timeout)
            self.assertEqual(done.returncode, 1)
            self.assertIn("no process answers at 1:1; start postern-perf --server there, with the same PTL_IFACE_NAME", done.stderr)
        self.server("--once")
        code, _, err = self.finish(late)
        self.assertEqual(code, 0, err)

    def test_who_has_no_reader_for_the_last_words_ends_all_the_same(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        os.set_blocking(writer, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, bytes(4096))
        os.set_blocking(writer, True)
        process = subprocess.Popen([programs.program("postern-perf"), "--peer", "1:1"], stderr=writer,
                                   env=programs.environment(**self.node(PTL_PEER_TIMEOUT="100ms")))
        os.close(writer)
        self.addCleanup(self.end, process)
        self.assertEqual(process.wait(timeout=programs.TIMEOUT), 1)

    def test_a_server_that_dies_ends_the_client(self):
        for words in (["latency"], ["bandwidth"], ["get-bandwidth"], ["--raw", "latency"]):
            with self.subTest(words=words):
                server = self.server()
                client = self.start("postern-perf", "--peer", "1:1", "--sizes", "8", "--time",
                                    "600", *words, **self.node(PTL_PEER_TIMEOUT="100s"))
                self.await_line(server, "Serving 1:")
                self.await_line(client, "# ")  # the server's answer has come
                server.kill()
                server.wait()
                code, _, err = self.finish(client)
                self.assertEqual(code, 1)
                self.assertIn("the server at 1:1 is gone", err)

    def test_a_server_that_dies_under_bare_frames_ends_the_client(self):
        server = self.server()
        client = self.start("postern-perf", "--peer", "1:1", "--sizes", "8", "--time", "600", "--raw", "latency",
                            **self.node(PTL_PEER_TIMEOUT="100s"))
        self.await_line(client, "# Latency of put")
        time.sleep(1)  # bare frames come first, and no message goes meanwhile
        server.kill()
        server.wait()
        code, _, err = self.finish(client)
        self.assertEqual(code, 1)
        self.assertIn("the server at 1:1 is gone", err)

    def await_messages(self, process, count):
        """Until it has received so many, as it tells by itself."""
        end = time.monotonic() + programs.TIMEOUT
        client = None
        while client is None or client.ask("/postern/stats")["messages_received"] < count:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)
            client = client or test_telemetry.find(process, test_telemetry.runtime_directory())
        client.close()

    def test_only_a_process_that_goes_on_acknowledging_is_no_server(self):
        # They take HELLOs and answer none.
        processes = [self.start("postern-perf", "--pid", pid, "--peer", "1:9", **self.node(PTL_PEER_TIMEOUT="60s"))
                     for pid in ("1", "2")]
        clients = [self.start("postern-perf", "--peer", f"1:{pid}", **self.node(PTL_PEER_TIMEOUT="8s")) for pid in ("1", "2")]
        self.await_messages(processes[1], 3)
        processes[1].kill()  # long before a process is said to be no server, 10 s after it has acknowledged the first HELLO
        for client, words in zip(clients, ("a process is at 1:1, but no postern-perf --server", "the server at 1:2 is gone")):
            code, _, err = self.finish(client)
            self.assertEqual(code, 1)
            self.assertIn(words, err)

    @unittest.skipUnless(os.getuid() == 0, "another user's program is started by root")
    def test_two_users_measure(self):
        server = self.start("postern-perf", "--server", "--pid", "1", PTL_IFACE_NAME=f"udp:{self.all_users()}")
        self.await_line(server, "Serving at")
        self.expect_success(self.other_user("postern-perf", "--peer", f"{self.all_users()}:1", "--sizes", "8", *QUICK, "latency"))

    def test_a_client_that_dies_does_not_end_the_server(self):
        server = self.server(PTL_PEER_TIMEOUT="100s")
        for words in (["latency"], ["bidirectional"], ["--raw", "latency"]):
            client = self.start("postern-perf", "--peer", "1:1", "--sizes", "8", "--time", "600",
                                *words, **self.node())
            self.await_line(server, "Serving 1:")
            client.kill()
            client.wait()
            self.await_line(server, "is gone")
        self.expect_success(programs.run(
            "postern-perf", "--peer", "1:1", "--sizes", "8", *QUICK, "latency", **self.node()))

    def test_a_larger_window_than_the_server_allows_is_refused(self):
        self.server()
        done = programs.run("postern-perf", "--peer", "1:1", "--window", "1000", **self.node())
        self.assertEqual(done.returncode, 1)
        self.assertIn("--window 1000", done.stderr)

    def test_a_peer_that_is_the_process_itself_is_refused(self):
        for peer in ("1:9", "0.0.0.1:9"):
            self.expect_usage_error(programs.run("postern-perf", "--peer", peer, "--pid", "9",
                                                 **self.node()), "this process itself")


class Card(programs.Case):
    """The five ratios that README names, on any machine."""

    def test_it_has_five_ratios_and_what_they_depend_on(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("two CPUs are needed")
        done = self.expect_success(programs.run("postern-perf", "--card", "--time", "0.02", "--repeat", "2", PTL_MTU="nonsense",
                                                XDG_RUNTIME_DIR=self.directory))
        self.assertEqual(glob.glob(os.path.join(self.directory, "postern", "*")), [])  # the node that it used is gone
        rows = re.findall(r"^  \S.* ([\d.e+-]+) +(?:us|million|GB/s) +([\d.e+-]+) +(?:TCP, \w+|bare frames) +([\d.e+-]+)", done.stdout, re.MULTILINE)
        self.assertEqual(len(rows), 5, done.stdout)
        for row in rows:
            for figure in row:
                self.assertGreater(float(figure), 0)
        for fact in ("cpu", "kernel", "commit ", "load", "date"):
            self.assertIn(fact, done.stdout)

    def test_it_has_measures_of_its_own(self):
        self.expect_usage_error(programs.run("postern-perf", "--card", "latency"), "measures of its own")
        self.expect_usage_error(programs.run("postern-perf", "--card", "--sizes", "8"), "measures of its own")
        self.expect_usage_error(programs.run("postern-perf", "--card", "--server"), "--card")
        self.expect_usage_error(programs.run("postern-perf", "--card", "--cores", "0"), "two CPUs")


if __name__ == "__main__":
    programs.main()
