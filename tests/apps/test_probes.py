#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The library has the probes that lib/base/probe.h promises, and the scripts in share/bpftrace use no others."""
import glob
import os
import re
import shutil
import subprocess
import unittest

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
                                  text=True, timeout=120, check=False)
            if done.returncode != 0 and ("privilege" in done.stdout or "root" in done.stdout):
                self.skipTest("bpftrace wants root")
            self.assertEqual(done.returncode, 0, script + done.stdout[-2000:])


if __name__ == "__main__":
    unittest.main(verbosity=2)
