#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The library has the probes that lib/base/probe.h promises, and the scripts in share/bpftrace use no others and show what happens."""
import glob
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

import programs

SOURCE = os.environ.get("POSTERN_SOURCE", ".")
BUILD = os.environ.get("POSTERN_BUILD", ".")
ARGUMENTS = {"put": 6, "acknowledge": 6, "match": 6, "place": 4, "retransmit": 4, "drop": 3,
             "count": 3, "trigger": 3, "disable": 3}


def probes():
    """Each probe's name and numbers of arguments in the notes of the library."""
    libraries = glob.glob(os.path.join(BUILD, "lib/host/libpostern-core.so.*.*.*"))
    notes = subprocess.run(["readelf", "-n", "--wide", libraries[0]], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = {}
    for name, arguments in re.findall(r"Provider: postern\n\s+Name: (\w+)\n.*\n\s+Arguments: (.*)", notes):
        found.setdefault(name, set()).add(len(arguments.split()))
    return found


@unittest.skipIf(os.environ.get("POSTERN_PROBES") == "no", "built without sys/sdt.h (package systemtap-sdt-dev)")
class Probes(unittest.TestCase):
    def test_the_library_has_all(self):
        self.assertEqual(probes(), {name: {count} for name, count in ARGUMENTS.items()})

    def test_the_header_documents_them(self):
        with open(os.path.join(SOURCE, "lib/base/probe.h"), encoding="utf-8") as file:
            text = file.read()
        for name in ARGUMENTS:
            self.assertRegex(text, rf"\n \*     {name} ")


class Scripts(unittest.TestCase):
    def test_they_use_what_there_is(self):
        scripts = glob.glob(os.path.join(SOURCE, "share/bpftrace/*.bt"))
        self.assertGreaterEqual(len(scripts), 3)
        used = set()
        for script in scripts:
            with open(script, encoding="utf-8") as file:
                blocks = re.split(r"(?m)^usdt:\*:postern:", file.read())[1:]
            for block in blocks:
                name = re.match(r"\w+", block).group()
                used.add(name)
                body = block[:block.index("\n}")]
                most = max(int(number) for number in re.findall(r"\barg(\d)", body))
                self.assertLess(most, ARGUMENTS[name], f"{script}: {name}")
        self.assertEqual(used, set(ARGUMENTS))

    def test_bpftrace_understands_them(self):
        bpftrace = shutil.which("bpftrace")
        if not bpftrace:
            self.skipTest("bpftrace is not here")
        library = glob.glob(os.path.join(BUILD, "lib/host/libpostern-core.so.*.*.*"))[0]
        for script in glob.glob(os.path.join(SOURCE, "share/bpftrace/*.bt")):
            with open(script, encoding="utf-8") as file:
                text = file.read().replace("usdt:*:", f"usdt:{library}:")
            done = subprocess.run([bpftrace, "-d", "-e", text], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, timeout=600, check=False)
            if done.returncode != 0 and ("privilege" in done.stdout or "root" in done.stdout):
                self.skipTest("bpftrace wants root")
            self.assertEqual(done.returncode, 0, script + done.stdout[-2000:])


@unittest.skipUnless(os.environ.get("POSTERN_ATTACH"), "it takes minutes of both CPUs; set POSTERN_ATTACH=1")
class Attached(programs.Case):
    """Each script looks on while a server of postern-perf serves messages of Portals 4. By hand: probes slow down all that the machine does."""

    def setUp(self):
        super().setUp()
        if not shutil.which("bpftrace"):
            self.skipTest("bpftrace is not here")
        if os.environ.get("POSTERN_PROBES") == "no":
            self.skipTest("built without sys/sdt.h (package systemtap-sdt-dev)")
        self.serving = self.server("--library", "portals4")
        done = subprocess.run(["bpftrace", "-p", str(self.serving.pid), "-e", "usdt:*:postern:match { exit(); } interval:ms:1 { exit(); }"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=programs.TIMEOUT, check=False)
        if done.returncode != 0:
            self.skipTest(f"bpftrace cannot attach here: {done.stdout}")
        self.client = self.start("postern-perf", "--library", "portals4", "--peer", "1:1", "--sizes", "8", "--time", "600", "--faults",
                                 "dup=0.1,on=both", "triggered-latency", **self.node())
        self.await_line(self.client, "# Size")

    @staticmethod
    def interrupt(process):
        """Again and again: while bpftrace attaches, it does not hear."""
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=1)
            except subprocess.TimeoutExpired:
                pass

    def look(self, script, *parts):
        """What a script prints once it has seen all parts. It takes a while to attach."""
        seconds, told = 1, ""
        while seconds < programs.TIMEOUT / 2:
            with open(os.path.join(self.directory, "told"), "w+", encoding="utf-8") as file:
                looking = subprocess.Popen(["bpftrace", "-p", str(self.serving.pid), os.path.join(SOURCE, "share/bpftrace", script)],
                                           stdout=file, stderr=subprocess.STDOUT)
                self.addCleanup(looking.wait)
                self.addCleanup(looking.kill)
                time.sleep(seconds)
                self.interrupt(looking)
                file.seek(0)
                told = file.read()
            if all(part in told for part in parts):
                return told
            seconds *= 2
        raise AssertionError(f"{script} does not print {parts}: {told[-2000:]}")

    def test_counters(self):
        told = self.look("counters.bt", "@changes[0]")
        counts = [int(count) for count in re.findall(r"counter 0 is (\d+), failures 0", told)]
        self.assertGreater(len(counts), 2)
        self.assertEqual(counts, list(range(counts[0], counts[0] + len(counts))))
        # A put that waits for a count is run when it has come.
        for sum_, threshold in re.findall(r"is (\d+) and triggers what waited for (\d+)", told):
            self.assertEqual(sum_, threshold)

    def test_traffic(self):
        told = self.look("traffic.bt", "@matched[1, ", "@placed[1, ")
        self.assertNotIn("@unmatched", told)
        self.assertRegex(told, r"\[8, 16\) +\d+")

    def test_latency(self):
        self.assertNotIn("@failed", self.look("latency.bt", "@ns[1, "))

    def test_drops(self):
        self.look("drops.bt", "@drops[dropped_duplicate, 1, ")


if __name__ == "__main__":
    unittest.main(verbosity=2)
