#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each script answers --help, and says which argument it does not understand."""
import os
import subprocess
import tempfile
import unittest

SCRIPTS = os.path.join(os.environ["POSTERN_SOURCE"], "scripts")


def run(name, *words, **settings):
    return subprocess.run([os.path.join(SCRIPTS, name), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600,
                          check=False, env=os.environ | settings)


class Scripts(unittest.TestCase):
    names = sorted(set(os.listdir(SCRIPTS)) - {"__pycache__"})

    def test_help_is_on_standard_output(self):
        for name in self.names:
            with self.subTest(name):
                done = run(name, "--help")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"scripts/{name}", done.stdout)
                self.assertEqual(done.stderr, "")

    def test_an_argument_that_is_not_understood_is_named(self):
        for name in self.names:
            with self.subTest(name):
                done = run(name, "--no-such")
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertIn("--no-such", done.stderr)

    def test_an_argument_too_many_is_named(self):
        for name in self.names:
            with self.subTest(name):
                done = run(name, "no-such-1", "no-such-2", "no-such-3")
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertIn("no-such-", done.stderr)
                self.assertTrue(done.stderr.splitlines()[-1].startswith(f"{name}: "), done.stderr)

    def test_the_number_of_runs_is_a_number(self):
        for number in ("no-number", "0", ""):
            done = run("clients", "/dev/null", number)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertIn(f'not "{number}"', done.stderr)

    def test_only_what_has_the_tests_in_its_build_installs_their_library(self):
        with tempfile.TemporaryDirectory() as directory:
            for name in ("dpkg-query", "apt-get", "sudo"):  # nothing is installed, and all of it is now
                with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
                    file.write("#!/bin/sh\n")
                os.chmod(file.name, 0o755)
            for purpose, wanted in (("build", False), ("clients", False), ("test", True), ("compare", True), ("cards", True)):
                done = run("install", purpose, PATH=f"{directory}:{os.environ['PATH']}")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(" gcc ", done.stdout)
                self.assertEqual(" libcmocka-dev " in done.stdout, wanted, purpose)


if __name__ == "__main__":
    unittest.main(verbosity=2)
