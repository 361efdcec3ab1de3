#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""postern-perf --trace: the file is what Perfetto and chrome://tracing read, and tells the life of each message."""
import collections
import json
import os
import unittest

import programs

LIFE = ["command", "match", "place", "event", "acknowledged"]


class Trace(programs.Case):
    def trace(self, *words, **settings):
        path = os.path.join(self.directory, "trace.json")
        done = self.expect_success(programs.run("postern-perf", "--trace", path, "--sizes", "8", *words, **settings))
        self.assertIn("records; ui.perfetto.dev", done.stderr)
        with open(path, encoding="utf-8") as file:
            return json.load(file)["traceEvents"]

    def lives(self, events):
        """What happened to each message, in the order of time."""
        lives = collections.defaultdict(list)
        for event in events:
            if event["ph"] == "X" and event["name"] not in ("call", "taken"):
                lives[event["args"]["message"]].append((event["ts"], event["name"]))
        return [[name for _, name in sorted(life)] for life in lives.values()]

    def test_each_put_has_its_whole_life(self):
        for progress in ("core", "inline"):
            with self.subTest(progress=progress):
                events = self.trace("--iterations", "200", "latency", PTL_PROGRESS=progress)
                lives = self.lives(events)
                self.assertGreaterEqual(len(lives), 400)  # there and back
                self.assertGreaterEqual(sum(life == LIFE for life in lives), 400)

    def has_fetches(self, events, *life):
        """A request, an arrival, and two ends that write at once: either may be first. An acknowledgement may have a record."""
        lives = [[step for step in steps if step != "acknowledged"] for steps in self.lives(events)]
        whole = [steps for steps in lives if tuple(steps[:2]) == life[:2] and sorted(steps[2:]) == sorted(life[2:])]
        self.assertGreaterEqual(len(whole), 100, life)

    def test_each_get_has_its_life(self):
        self.has_fetches(self.trace("--iterations", "100", "get-latency"), "command", "match", "place", "event")

    def test_portals_4_has_lives_atomics_and_triggers(self):
        def trace(measure, **settings):
            return self.trace("--library", "portals4", "--iterations", "100", measure, **settings)

        for progress in ("core", "inline"):
            events = trace("get-latency", PTL_PROGRESS=progress)
            self.has_fetches(events, "command", "arrived", "done", "event")
            events = trace("fetch-latency", PTL_PROGRESS=progress)
            self.has_fetches(events, "command", "arrived", "atomic", "event")
        events = trace("triggered-latency")
        thresholds = [event["args"]["threshold"] for event in events if event["name"] == "trigger" and event["ph"] == "X"]
        self.assertEqual(thresholds[:100], list(range(1, 101)))

    @unittest.skipUnless(os.environ.get("POSTERN_FI") == "yes", "libfabric is missing; scripts/install test installs it")
    def test_remote_memory_of_libfabric_has_lives(self):
        def trace(measure, **settings):
            return self.trace("--library", "fi", "--iterations", "100", measure, FI_PROVIDER_PATH=os.path.join(programs.PROGRAMS, "../lib/fi"), **settings)

        for progress in ("core", "inline", "both"):
            self.has_fetches(trace("get-latency", PTL_PROGRESS=progress), "command", "arrived", "done", "event")
            self.has_fetches(trace("fetch-latency", PTL_PROGRESS=progress), "command", "arrived", "atomic", "event")

    def test_rows_bars_and_arrows_go_together(self):
        events = self.trace("--iterations", "100", "latency")
        kinds = collections.Counter(event["ph"] for event in events)
        self.assertEqual(kinds["b"], kinds["e"])
        self.assertEqual(kinds["s"], kinds["f"])
        self.assertEqual(kinds["b"], kinds["s"])
        rows = {event["tid"] for event in events if event["ph"] == "X"}
        names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        self.assertLessEqual(rows, names.keys())
        self.assertTrue(any(name.startswith("postern ") for name in names.values()), names)

    def test_a_file_that_cannot_be_written_is_told(self):
        done = programs.run("postern-perf", "--trace", "/dev/full", "--sizes", "8", "--iterations", "10", "latency")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot be written to /dev/full", done.stderr)
        done = programs.run("postern-perf", "--trace", self.directory, "latency")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot be written", done.stderr)

    def test_a_server_must_have_an_end(self):
        self.expect_usage_error(programs.run("postern-perf", "--server", "--trace", "x.json"), "--once")


if __name__ == "__main__":
    programs.main()
