#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""postern-sim names the command that repeats a run, however the run fails; and the command repeats it. A run that does not fail reports
nothing."""
import os
import resource
import shlex
import signal
import subprocess
import sys
import unittest

SIMULATOR = sys.argv.pop(1)
TIMEOUT = 300  # of a run; generous, the cores may be busy
MEMORY = 4 << 30  # bytes of address space, which is less than 1,000 nodes take
REPLAY = "replay with: "


def run(*words, **more):
    return subprocess.run([SIMULATOR, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=TIMEOUT, check=False, **more)


def replays(text):
    """The command lines named in it, without the program's name."""
    return [shlex.split(line.split(REPLAY)[1])[1:] for line in text.splitlines() if REPLAY in line]


def failures(text):
    return [line for line in text.splitlines() if line.startswith("seed ")]


class Replay(unittest.TestCase):
    def test_a_failed_run_fails_again_in_the_same_way(self):
        all_seeds = run("--seed", "3", "--seeds", "4", "--corrupt", "0.02", "--unprotected", "--tasks", "200", "loss")
        self.assertEqual(all_seeds.returncode, 1, all_seeds.stderr)
        commands = replays(all_seeds.stderr)
        self.assertEqual(len(commands), len(failures(all_seeds.stderr)))
        self.assertTrue(commands)
        again = [line for command in commands for line in failures(run(*command).stderr)]
        self.assertEqual(again, failures(all_seeds.stderr))

    def test_a_workload_that_is_not_carried_out_is_a_failure(self):
        result = run("--delay", "1000000000", "--tasks", "1000", "latency")  # 4,000 s of simulated time
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("tasks were not issued", result.stderr)
        self.assertEqual(len(replays(result.stderr)), 1)

    def test_a_run_that_is_broken_off(self):
        with subprocess.Popen([SIMULATOR, "--seed", "7", "--trace", "random"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as process:
            self.assertTrue(process.stdout.readline())  # it runs, and is held up by what it writes
            process.send_signal(signal.SIGTERM)
            _, complaint = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, -signal.SIGTERM)
        self.assertEqual(replays(complaint), [["--seed", "7", "--seeds", "1", "random"]])

    @unittest.skipIf(os.environ.get("POSTERN_SANITIZED") == "yes", "sanitizers need address space")
    def test_a_run_without_memory(self):
        result = run("--nodes", "1000", "alltoall",
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(replays(result.stderr), [["--nodes", "1000", "--seed", "1", "--seeds", "1", "alltoall"]])

    def test_faults_that_are_simulated_are_no_warnings(self):
        for level, warns in ((None, False), ("warning", True)):
            environment = {name: value for name, value in os.environ.items() if name != "PTL_LOG_LEVEL"}
            environment.update({"PTL_LOG_LEVEL": level} if level else {})
            result = run("--seed", "1", "--seeds", "20", "random", env=environment)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual("may not have arrived" in result.stderr, warns, result.stderr)


if __name__ == "__main__":
    unittest.main()
