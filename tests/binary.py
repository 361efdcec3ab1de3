# SPDX-License-Identifier: BSD-3-Clause
"""binary.py - what tests of shared libraries share: commands that must succeed, exported names, sources in a scratch directory."""
import os
import subprocess
import tempfile
import unittest


def run(*command, **environment):
    """What a command prints; it must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ, LC_ALL="C", **environment))
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def symbols(library):
    """Exported names, each with its version, with an @ before that of a default, "" for none."""
    lines = run("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines()
    names = (line.split()[-1] for line in lines if line.split()[-2] != "A")
    return {name.partition("@")[0]: name.partition("@")[2] for name in names}


class Case(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name

    def write(self, name, text):
        path = os.path.join(self.scratch, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path
