#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""jobs.py POSTERN_RUN PROGRAM - how jobs of the abstract device start and end: by postern-run, by Hydra, by a list of addresses; with
an exit code, or with a rank that was killed."""
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

POSTERN_RUN, PROGRAM = sys.argv.pop(1), sys.argv.pop(1)
TIMEOUT = 300


def run(*words, stdin=None, **settings):
    return subprocess.run(words, stdin=stdin, env={**os.environ, **settings}, capture_output=True, text=True, timeout=TIMEOUT, check=False)


class Jobs(unittest.TestCase):
    def test_abort_ends_all_with_its_code(self):
        for code, seen in ((42, 42), (0, 0), (256, 1)):
            done = run(POSTERN_RUN, "-n", "3", PROGRAM, "abort", str(code))
            self.assertEqual(done.returncode, seen, done.stderr)

    def test_a_killed_rank_ends_the_job(self):
        start = time.monotonic()
        done = run(POSTERN_RUN, "-n", "3", PROGRAM, "die")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("rank 2", done.stderr)
        self.assertLess(time.monotonic() - start, 60)

    def test_what_was_sent_arrives_although_the_sender_ends(self):
        for _ in range(3):
            done = run(POSTERN_RUN, "-n", "4", PROGRAM, "end")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    @unittest.skipUnless(shutil.which("mpiexec.hydra"), "mpiexec.hydra is not installed")
    def test_hydra_starts_a_job(self):
        with tempfile.TemporaryDirectory() as directory:
            done = run("mpiexec.hydra", "-n", "2", PROGRAM, XDG_RUNTIME_DIR=directory)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
            for code in (7, 0):
                self.assertEqual(run("mpiexec.hydra", "-n", "2", PROGRAM, "abort", str(code), XDG_RUNTIME_DIR=directory).returncode, code)

    def listed(self, *words, **settings):
        """A job of two without a launcher."""
        with tempfile.TemporaryDirectory() as directory:
            ranks = [subprocess.Popen([PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={
                **os.environ, "XDG_RUNTIME_DIR": directory, "PTL_IFACE_NAME": "node:listed", "PTL_NID": "7",
                "PTL_ADI_HOSTS": "7:1000,7:1001", "PTL_ADI_RANK": str(rank), **settings}) for rank in range(2)]
            ends = [rank.communicate(timeout=TIMEOUT) for rank in ranks]
            return [rank.returncode for rank in ranks], ends

    def test_a_list_of_addresses_makes_a_job(self):
        codes, ends = self.listed()
        self.assertEqual(codes, [0, 0], ends)
        for code in (9, 0):
            codes, ends = self.listed("abort", str(code))
            self.assertEqual(codes, [code, code], ends)

    def test_a_killed_rank_of_a_list_ends_the_job(self):
        codes, ends = self.listed("die", PTL_PEER_TIMEOUT="8s")
        self.assertEqual(codes, [1, -signal.SIGKILL], ends)
        self.assertEqual(len(ends[0][1].splitlines()), 1, ends)
        self.assertIn("rank 1 of this job", ends[0][1])

    def test_what_nobody_receives_is_lost_at_once_and_without_a_word(self):
        start = time.monotonic()
        done = run(POSTERN_RUN, "-n", "2", PROGRAM, "lose", PTL_PEER_TIMEOUT="40s")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(self.listed("lose", PTL_PEER_TIMEOUT="40s"), ([0, 0], [("", ""), ("", "")]))
        self.assertLess(time.monotonic() - start, 60)

    def test_a_second_start_is_named(self):
        done = run(PROGRAM, "twice", PTL_IFACE_NAME="loop:a")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("A_INIT was called before", done.stderr)

    def test_a_send_before_the_start_is_named(self):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            done = run(PROGRAM, "early", stdin=theirs)
            self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
            self.assertIn("a send before A_INIT, or after A_END: send between", done.stderr)
            ours.setblocking(False)
            # Without a launcher nobody is told.
            self.assertRaises(BlockingIOError, ours.recv, 100)

    def test_a_wrong_list_is_named(self):
        done = run(PROGRAM, PTL_ADI_HOSTS="7:1000;7:1001", PTL_ADI_RANK="0")
        self.assertEqual(done.returncode, 1)
        self.assertIn('PTL_ADI_HOSTS is "7:1000;7:1001"', done.stderr)


if __name__ == "__main__":
    unittest.main()
