#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_exit.py - every way of leaving a job of GASNet ends all its ranks, with the right code, and leaves no process.

    test_exit.py POSTERN_RUN RANKS_SEQ RANKS_PAR EVERYTHING MISUSE LIAR

Covers: lib/gasnet/exit.c, lib/gasnet/library.c, lib/gasnet/variables.c.
"""
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

RUN, SEQ, PAR, EVERYTHING, MISUSE, LIAR = sys.argv[1:7]
TIMEOUT = 300  # s, of what hangs
GONE = 100  # s until the ranks of a killed launcher have ended
WAIT = "0.5"  # s that an exiting rank waits for ranks that make no calls

# Scenario, exit code, what standard error says.
WAYS = [
    ("leave-unattached", 3, ""), ("leave-together", 7, ""), ("leave-soon", 4, ""),
    ("leave-quietly", 0, ""), ("leave-by-main", 9, ""), ("leave-barrier", 5, ""),
    ("leave-computing", 5, ""), ("leave-polling", 5, ""), ("leave-sending", 5, ""), ("leave-zero-computing", 0, ""),
    ("leave-from-handler", 6, ""), ("leave-from-own-handler", 6, ""), ("leave-by-signal", 130, ""),
    ("leave-by-abort", 134, ""), ("leave-by-fault", 139, ""),
    ("leave-by-index", 134, "is for handler 255, which this rank has not registered"),
    ("leave-put-outside", 134, "a put of 2 bytes"), ("leave-outside-segment", 134, "whose segment has 4194304 bytes"),
]

# What GASNET_DEBUG finds, and its words.
MISUSES = [
    ("polls", "gasnet_AMPoll in a handler"), ("requests", "gasnet_AMRequest in a handler"), ("puts", "a put in a handler"),
    ("waits", "GASNET_BLOCKUNTIL in a handler"), ("bars", "gasnet_barrier_notify in a handler"), ("syncs", "implicit operations in a handler"),
    ("holds", "handler 134 returns with a lock"), ("replies-holding", "gasnet_AMReply by a thread that holds a lock"),
    ("handle-twice", "a handle is synchronised again"), ("handle-other", "a handle is synchronised by another thread"),
    ("lock-request", "gasnet_AMRequest by a thread that holds a lock"), ("lock-try-put", "a put by a thread that holds a lock"),
    ("unlock", "gasnet_hsl_unlock: this thread holds no lock"),
]

# Signals that this process was told to ignore, as under nohup, the ranks would ignore as well.
for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, signal.SIG_DFL)


def stat(pid):
    """A process's state, parent, group and session; the state is Z if there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[:4]
    except OSError:
        return ["Z", "", "", ""]


def state(pid):
    return stat(pid)[0]


def alive(pid):
    """Whether a process runs: a zombie of this container's first process does not."""
    return state(pid) != "Z"


class Exit(unittest.TestCase):
    def setUp(self):
        self.runtime = tempfile.mkdtemp(prefix="ptn-")
        self.addCleanup(subprocess.run, ["rm", "-rf", self.runtime], check=False)

    def start(self, program, scenario, ranks=3, **variables):
        # AddressSanitizer would end a rank that faults with a code of its own.
        environment = dict(os.environ, XDG_RUNTIME_DIR=self.runtime, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":handle_segv=0",
                           **{"GASNET_EXITTIMEOUT": WAIT, **variables})
        return subprocess.Popen([*([RUN, "-n", str(ranks)] if ranks else []), program, scenario], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=environment, start_new_session=True)

    def none_left(self, session):
        """All processes of the job are in its session."""
        until = time.monotonic() + GONE
        while True:
            found = [stat(pid) for pid in os.listdir("/proc") if pid.isdigit()]
            if not [one for one in found if one[0] != "Z" and one[3] == str(session)]:
                return
            self.assertLess(time.monotonic(), until, "a process is left")
            time.sleep(0.05)

    def leaves(self, program, scenario, code, words="", ranks=3, **variables):
        with self.start(program, scenario, ranks, **variables) as job:
            output, errors = job.communicate(timeout=TIMEOUT)
            self.assertEqual(job.returncode, code, f"{scenario}: {errors}")
            self.assertIn(words, errors, scenario)
            self.none_left(job.pid)
        return output

    def test_ways_to_leave(self):
        for scenario, code, words in WAYS:
            with self.subTest(scenario):
                self.leaves(SEQ, scenario, code, words)

    def test_ranks_that_make_calls_follow(self):
        for scenario in ("leave-polling", "leave-syncing", "leave-waiting"):
            for progress in ("both", "inline"):
                with self.subTest(f"{scenario} {progress}"):
                    self.leaves(SEQ, scenario, 5, "ended with exit code 5", GASNET_EXITTIMEOUT="100", PTL_PROGRESS=progress)

    def test_ranks_that_make_calls_follow_also_in_a_short_time(self):
        """Other programs on this machine may take that time, but not each time."""
        for _ in range(20):
            with self.start(SEQ, "leave-polling", GASNET_EXITTIMEOUT="0.18") as job:
                _, errors = job.communicate(timeout=TIMEOUT)
                self.assertEqual(job.returncode, 5, errors)
            if "ended with exit code 5" in errors:
                return
        self.fail(errors)

    def test_a_debugged_program_is_told_of_misuse(self):
        for scenario, words in MISUSES:
            with self.subTest(scenario):
                self.leaves(MISUSE, scenario, 134, words, ranks=2, GASNET_SUPERNODE_MAXSIZE="1")
        self.leaves(MISUSE, "right", 0, ranks=2, GASNET_SUPERNODE_MAXSIZE="1")

    def test_a_put_to_no_memory_ends_the_job(self):
        self.leaves(EVERYTHING, "unmapped", 134, "a put, 65536 bytes into the segment of another rank, failed: PTL_NI_SEGV")

    def test_a_long_message_to_no_memory_ends_the_job(self):
        self.leaves(EVERYTHING, "unmapped-long", 134, "a long message of rank 0 has 4096 bytes for 0x10000, where this rank has no memory")

    def test_a_rank_that_lies_ends_the_job(self):
        for lie in ("address", "arguments", "length", "memset", "done", "unknown", "reply"):
            with self.subTest(lie):
                self.assertEqual(self.leaves(LIAR, lie, 134, "a message of rank 1 is invalid", ranks=2), "")

    def test_one_of_several_threads_leaves(self):
        for _ in range(5):
            self.leaves(PAR, "leave-threads", 4)

    def test_a_client_catches_sigquit(self):
        self.assertEqual(self.leaves(SEQ, "leave-caught", 8), "caught\n" * 2)

    def killed(self, which, scenario="wait"):
        """The n-th rank to say its number, or the launcher."""
        with self.start(SEQ, scenario) as job:
            ranks = [int(job.stdout.readline()) for _ in range(3)]
            os.kill(job.pid if which is None else ranks[which], signal.SIGKILL)
            job.communicate(timeout=TIMEOUT)
            self.none_left(job.pid)
            self.assertNotEqual(job.returncode, 0)
            self.assertEqual([pid for pid in ranks if alive(pid)], [])

    def test_a_rank_is_killed(self):
        for which in range(3):
            self.killed(which)

    def test_a_rank_is_killed_whose_segment_others_write(self):
        self.killed(1, "wait-copying")

    def test_a_rank_is_killed_whose_ring_others_write(self):
        for which in (0, 1):
            self.killed(which, "wait-sending")

    def test_a_rank_is_quit(self):
        """The handler calls nothing of Portals, in which the rank may be, and this end is no success."""
        with self.start(SEQ, "wait") as job:
            ranks = [int(job.stdout.readline()) for _ in range(3)]
            os.kill(ranks[1], signal.SIGQUIT)
            _, errors = job.communicate(timeout=TIMEOUT)
            self.assertEqual(job.returncode, 131, errors)
            self.none_left(job.pid)

    def freezes(self, scenario, code, variable):
        """A rank stops, and goes on with SIGCONT."""
        with self.start(SEQ, scenario, ranks=1, **{variable: "1"}) as job:
            self.addCleanup(job.kill)
            for line in job.stderr:
                said = re.search(r"process (\d+) waits for a debugger", line)
                if said:
                    break
            pid = int(said[1])
            until = time.monotonic() + TIMEOUT
            while state(pid) != "T":
                self.assertLess(time.monotonic(), until, "it does not stop")
                time.sleep(0.05)
            os.kill(pid, signal.SIGCONT)
            job.communicate(timeout=TIMEOUT)
            self.assertEqual(job.returncode, code)
            self.none_left(job.pid)

    def test_a_rank_waits_for_a_debugger(self):
        self.freezes("leave-unattached", 3, "GASNET_FREEZE")
        self.freezes("leave-by-index", 134, "GASNET_FREEZE_ON_ERROR")

    def catches(self, **variables):
        """The signals that a rank catches."""
        with self.start(SEQ, "wait", **variables) as job:
            self.addCleanup(job.kill)
            pid = [int(job.stdout.readline()) for _ in range(3)][0]
            with open(f"/proc/{pid}/status", encoding="utf-8") as file:
                mask = int(re.search(r"SigCgt:\s*(\w+)", file.read())[1], 16)
            job.kill()
            job.communicate(timeout=TIMEOUT)
            self.none_left(job.pid)
        return {number for number in (signal.SIGQUIT, signal.SIGTERM, signal.SIGINT, signal.SIGHUP) if mask >> (number - 1) & 1}

    def test_a_line_is_one_write(self):
        """Lines of several ranks do not mix."""
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with here, there:
            subprocess.run([SEQ, "queries"], stderr=there, env=dict(os.environ, PMI_FD="x"), timeout=TIMEOUT, check=False)
            there.close()
            writes = list(iter(lambda: here.recv(4096), b""))
        self.assertIn(b"gasnet: rank 0: PMI_Init failed, for the reason that a line above gives, so the ranks cannot exchange their addresses\n", writes)

    def test_signals_that_are_left_alone(self):
        self.assertEqual(self.catches(), {signal.SIGQUIT, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
        self.assertEqual(self.catches(GASNET_NO_CATCH_SIGNAL="SIGINT, HUP,SIGTERMS"), {signal.SIGQUIT, signal.SIGTERM})
        self.assertEqual(self.catches(GASNET_NO_CATCH_SIGNAL="*"), set())
        self.leaves(SEQ, "leave-polling", 5, GASNET_NO_CATCH_SIGNAL="*")

    def test_an_error_has_a_backtrace(self):
        self.leaves(SEQ, "leave-put-outside", 134, "libgasnet-postern-seq.so", GASNET_BACKTRACE="1")

    def errors_of(self, ranks=0, **variables):
        """Standard error of a job that leaves at once: by default of one rank, which needs no launcher and reads its variables as each of
        several does."""
        with self.start(SEQ, "leave-quietly", ranks, **variables) as job:
            _, errors = job.communicate(timeout=TIMEOUT)
            self.assertEqual(job.returncode, 0, errors)
            self.none_left(job.pid)
        return errors

    def test_variables_that_have_no_effect_are_told(self):
        for name, value in (("STATSFILE", "file"), ("MAX_THREADS", "8"), ("TMPDIR", "/tmp"), ("BARRIER", "AMCENTRAL"), ("BACKTRACE_TYPE", "GDB,GSTACK")):
            with self.subTest(name):
                self.assertEqual(self.errors_of(ranks=3, **{f"GASNET_{name}": value}).count(f"gasnet: rank 0: GASNET_{name} has no effect"), 1)
        self.assertNotIn("has no effect", self.errors_of(GASNET_BARRIER="dissem", GASNET_BACKTRACE_TYPE="GDB, execinfo"))

    def test_yes_and_no(self):
        for word in ("1", "y", "Y", "yes", "YES", "True", "t", "ON"):
            with self.subTest(word):
                errors = self.errors_of(GASNET_FS_SYNC=word, GASNET_VERBOSEENV=word)
                self.assertIn("GASNET_FS_SYNC = YES\n", errors)
                self.assertNotIn("neither", errors)
        for word in ("0", "n", "N", "no", "No", "false", "F", "off", "OFF"):
            with self.subTest(word):
                errors = self.errors_of(GASNET_FS_SYNC=word, GASNET_VERBOSEENV="1")
                self.assertIn("GASNET_FS_SYNC = NO\n", errors)
                self.assertNotIn("neither", errors)
                self.assertNotIn("ENV parameter", self.errors_of(GASNET_VERBOSEENV=word))
        for word in ("2", "yess", "ye", "nope", "01", " yes"):
            with self.subTest(word):
                errors = self.errors_of(GASNET_FS_SYNC=word, GASNET_VERBOSEENV="1")
                self.assertIn(f"GASNET_FS_SYNC={word} is neither yes nor no", errors)
                self.assertIn("GASNET_FS_SYNC = NO\n", errors)

    def test_a_signal_asks_for_a_backtrace(self):
        with self.start(SEQ, "wait", GASNET_BACKTRACE_SIGNAL="usr2", GASNET_BACKTRACE_NODES="7,1-1") as job:
            self.addCleanup(job.kill)
            ranks = [int(job.stdout.readline()) for _ in range(3)]
            for pid in ranks:
                os.kill(pid, signal.SIGUSR2)
            for line in job.stderr:
                if "gasnet_ranks_seq" in line:
                    break
                self.assertNotRegex(line, "rank [02]:")
            self.assertTrue(all(alive(pid) for pid in ranks))
            job.kill()
            job.communicate(timeout=TIMEOUT)
            self.none_left(job.pid)

    def test_a_signal_stops_a_rank(self):
        with self.start(SEQ, "wait", GASNET_FREEZE_SIGNAL="SIGUSR1") as job:
            self.addCleanup(job.kill)
            ranks = [int(job.stdout.readline()) for _ in range(3)]
            os.kill(ranks[0], signal.SIGUSR1)
            self.assertIn(f"process {ranks[0]} waits for a debugger, or SIGCONT", job.stderr.readline())
            until = time.monotonic() + TIMEOUT
            while state(ranks[0]) != "T":
                self.assertLess(time.monotonic(), until, "it does not stop")
                time.sleep(0.05)
            os.kill(ranks[0], signal.SIGCONT)
            while state(ranks[0]) == "T":
                self.assertLess(time.monotonic(), until, "it does not go on")
                time.sleep(0.05)
            self.assertTrue(all(alive(pid) for pid in ranks))
            job.kill()
            job.communicate(timeout=TIMEOUT)
            self.none_left(job.pid)

    def test_signals_and_ranks_that_are_none_are_told(self):
        for name in ("FREEZE", "BACKTRACE"):
            for word in ("SIGSEGV", "KILL", "QUIT", "10", "SIGUSR", "no"):
                with self.subTest(word):
                    self.assertIn(f"GASNET_{name}_SIGNAL={word} is no signal that can be used", self.errors_of(**{f"GASNET_{name}_SIGNAL": word}))
        for word in ("x", "1-", "1,,2", "-1", "1 2"):
            with self.subTest(word):
                self.assertIn(f"GASNET_BACKTRACE_NODES={word} is no list of ranks", self.errors_of(GASNET_BACKTRACE_NODES=word))
        for word in ("*", "0", "0-2,5", "9"):
            with self.subTest(word):
                self.assertEqual("", self.errors_of(GASNET_BACKTRACE_NODES=word))

    def test_a_rank_without_backtraces(self):
        self.leaves(SEQ, "leave-put-outside", 134, "libgasnet-postern-seq.so", GASNET_BACKTRACE="1", GASNET_BACKTRACE_NODES="0")
        with self.start(SEQ, "leave-put-outside", GASNET_BACKTRACE="1", GASNET_BACKTRACE_NODES="1,2") as job:
            _, errors = job.communicate(timeout=TIMEOUT)
            self.assertEqual(job.returncode, 134)
            self.assertNotIn("libgasnet-postern-seq.so", errors)
            self.none_left(job.pid)

    def test_variables_are_shown(self):
        self.leaves(SEQ, "leave-unattached", 3, "GASNET_FS_SYNC = YES", GASNET_FS_SYNC="y", GASNET_VERBOSEENV="1")
        self.leaves(SEQ, "leave-unattached", 3, "GASNET_BACKTRACE = NO", GASNET_BACKTRACE="0", GASNET_VERBOSEENV="1")

    def test_a_size_that_is_none_is_told(self):
        for value in ("64 ", " -5", "-5", "64 M", "99999999999999999999999", "20000000T", "64X", "x"):
            with self.subTest(value):
                self.leaves(SEQ, "leave-quietly", 0, f"GASNET_MAX_SEGSIZE={value} is no number: set it to one such as 64M",
                            ranks=0, GASNET_MAX_SEGSIZE=value)
        for value, read in ("64M", 64 << 20), ("64mb", 64 << 20), ("0x2000k", 8 << 20), (" 8388608", 8 << 20):
            with self.subTest(value):
                self.leaves(SEQ, "leave-quietly", 0, f"GASNET_MAX_SEGSIZE = {read}\n", ranks=0, GASNET_MAX_SEGSIZE=value,
                            GASNET_VERBOSEENV="1")

    def test_the_launcher_is_killed(self):
        self.killed(None)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
