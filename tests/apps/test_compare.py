#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/compare as a user runs it, with what is in every build: Postern on a node, and sockets."""
import os
import subprocess
import unittest

import programs

COMPARE = os.path.join(os.environ.get("POSTERN_SOURCE", "."), "scripts", "compare")
BUILD = os.environ.get("POSTERN_BUILD", ".")
QUICK = ("--no-build", "--seconds", "0.02")


def compare(*words):
    return subprocess.run([COMPARE, *words, BUILD], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=programs.TIMEOUT, env=programs.environment(), check=False)


@unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "two processes need two CPUs")
class Compare(programs.Case):
    def test_every_round_has_a_figure_for_every_exchange(self):
        report = self.expect_json(compare(*QUICK, "--rounds", "1", "--json", "--only", "node inline,TCP loopback,UDP loopback,Unix socket"))
        rows = {row["name"]: row["figures"] for row in report["rows"]}
        for name in ("Postern node inline", "TCP loopback", "TCP loopback blocking", "Unix socket", "Unix socket blocking"):
            self.assertEqual(sorted(rows[name]), ["bw16k", "bw16m", "bw1m", "bw64k", *(["mean"] if name.startswith("Postern") else []), "p50",
                                                  "p99", "rate"])
        for name in ("UDP loopback", "UDP loopback blocking"):
            self.assertEqual(sorted(rows[name]), ["p50", "p99", "rate"])
        for name in ("TCP loopback MSG_MORE", "TCP loopback gathered", "UDP loopback gathered"):
            self.assertEqual(sorted(rows[name]), ["rate"])
        for figures in rows.values():
            for values in figures.values():
                self.assertEqual(len(values), 1)
                self.assertGreater(min(values), 0)
        report = self.expect_json(compare(*QUICK, "--rounds", "2", "--json", "--only", "UDP loopback gathered"))
        for row in report["rows"]:
            for values in row["figures"].values():
                self.assertEqual(len(values), 2)
                self.assertGreater(min(values), 0)

    def test_the_table_has_ratios_and_goals(self):
        out = self.expect_success(compare(*QUICK, "--rounds", "1", "--only", "TCP loopback")).stdout
        self.assertRegex(out, r"Postern node inline +\d.* \d+ to \d+\n")
        self.assertRegex(out, r"TCP loopback +\d+\.\d+ +±\d+% +\d")
        self.assertRegex(out, r"# latency: \d+\.\d+ times better than TCP loopback")

    def test_front_ends_are_held_against_each_other(self):
        out = self.expect_success(compare(*QUICK, "--rounds", "1", "--only", "Portals,MX")).stdout
        for row in ("Portals 3 put", "Portals 3 receive", "MX", *(f"Portals 4 {way}" for way in ("put", "receive", "logged", "counted",
                                                                                                "triggered", "get", "fetch"))):
            self.assertRegex(out, rf"(?m)^{row} +\d+\.\d+ +±")
        self.assertRegex(out, r"(?m)^# Portals 4 put, 8 bytes one way: \d+\.\d\d of Portals 3 put; wanted: at most 1\.1")
        self.assertRegex(out, r"(?m)^# Portals 4 fetch, .*: \d+\.\d\d of Portals 4 get; wanted: at most")
        self.assertRegex(out, r"(?m)^# MX, 8-byte messages a second: \d+\.\d\d of Portals 3 put; wanted: at least 0\.7")

    def test_wrong_options_are_told(self):
        for words, part in ((["--cpus", "0"], "two or four CPUs"), (["--cpus", "0,x"], "two or four CPUs"), (["--rounds", "0"], "more than 0")):
            done = compare(*words)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(part, done.stderr)


    @unittest.skipUnless(os.environ.get("POSTERN_FI") == "yes", "libfabric is missing; scripts/install test installs it")
    def test_the_provider_of_libfabric_is_held_against_puts(self):
        out = self.expect_success(compare(*QUICK, "--rounds", "1", "--only", "Portals 3 put,libfabric postern")).stdout
        self.assertRegex(out, r"(?m)^libfabric postern +\d+\.\d+ +±")
        self.assertRegex(out, r"(?m)^# libfabric postern, 1 MiB messages: \d+\.\d\d of Portals 3 put; wanted: at least 0\.95")


if __name__ == "__main__":
    programs.main()
