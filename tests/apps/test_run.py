#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""postern-run as a user runs it, jobs of postern_job_..., and both with other ends: a launcher that talks nonsense, and Hydra."""
import fcntl
import os
import pty
import re
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
import unittest

import programs

RING = programs.program("examples/ring_allreduce")
NOBODY = 65534
# A rank in Python: it says its rank and process id, and what PMI answers to the lines that it is told to say.
TALKER = """
import os, signal, socket, sys, time
rank = int(os.environ["PMI_RANK"])
pmi = socket.socket(fileno=int(os.environ["PMI_FD"])).makefile("rw", newline="\\n")
def ask(line):
    pmi.write(line + "\\n")
    pmi.flush()
    return pmi.readline().strip()
"""


def is_alive(process):
    try:
        with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


class Run(programs.Case):
    def job(self, number, *words, options=(), user=None, stdin=subprocess.DEVNULL, **settings):
        return subprocess.run([programs.program("postern-run"), "-n", str(number), *options, *words], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=programs.TIMEOUT, check=False, stdin=stdin, user=user,
                              env=programs.environment(XDG_RUNTIME_DIR=self.directory, **settings))

    def talk(self, number, script, options=()):
        """A job of Python programs that have ask(), which speaks PMI."""
        return self.job(number, sys.executable, "-c", TALKER + script, options=options)

    def expect_end(self, done, code, *parts):
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def expect_gone(self, processes):
        """Whatever was killed is gone in a moment."""
        end = time.monotonic() + programs.TIMEOUT
        while any(map(is_alive, processes)):
            self.assertLess(time.monotonic(), end, f"some of {processes} live on")
            time.sleep(0.01)

    # --- jobs of the library

    def test_the_ring_has_the_sum_whatever_the_number_of_ranks(self):
        for number, words, settings in ((1, (), {}), (2, (), {"PTL_PROGRESS": "inline"}), (5, ("3",), {}), (5, ("0",), {}),
                                        (16, (), {}), (16, ("1000",), {"PTL_PROGRESS": "inline"})):
            done = self.expect_success(self.job(number, RING, *words, **settings))
            self.assertEqual(done.stdout, f"{number} ranks have the sum of their vectors of {(words or ('100000',))[0]} numbers\n")
            self.assertEqual(done.stderr, "")

    def test_an_ordinary_user_has_all_that_a_job_needs(self):
        if os.geteuid() != 0:
            raise unittest.SkipTest("the tests run as an ordinary user already")
        os.chown(self.directory, NOBODY, NOBODY)
        done = self.expect_success(self.job(4, RING, user=NOBODY))
        self.assertIn("4 ranks", done.stdout)

    def test_without_a_launcher_it_is_a_job_of_one(self):
        self.assertIn("1 ranks", self.expect_success(programs.run("examples/ring_allreduce")).stdout)

    def test_a_launcher_that_cannot_be_used_leaves_no_rank_alone(self):
        for settings, part in (({"SLURM_STEP_NUM_TASKS": "4"}, "srun has started 4 tasks without a PMI"),
                               ({"OMPI_COMM_WORLD_SIZE": "4"}, "mpirun has started 4 processes"),
                               ({"PMI_FD": "999", "PMI_RANK": "0", "PMI_SIZE": "4"}, "PMI_FD=999 is no open socket"),
                               ({"PTL_JOB": "x"}, 'PTL_JOB is "x"')):
            done = programs.run("examples/ring_allreduce", **settings)
            self.expect_end(done, 1, part, "PTL_JOB=alone" if "PTL_JOB" not in settings else "set it to alone")
            self.assertEqual(done.stdout, "")
            done = programs.run("examples/ring_allreduce", **{**settings, "PTL_JOB": "alone"})
            self.assertIn("1 ranks", self.expect_success(done).stdout)
            self.assertEqual(done.stderr, "")

    def test_a_port_that_reaches_nobody_is_refused(self):
        self.expect_end(self.job(2, RING, PTL_IFACE_NAME="loop:a"), 1, "loop:a, which reaches no other process", "set PTL_IFACE_NAME to node",
                        "postern_job_join: the call failed, and a line on standard error says why")

    # --- what ranks are told

    def test_each_rank_has_a_place_of_its_own_on_a_node_of_their_own(self):
        for settings in ({}, {"PTL_IFACE_NAME": ""}, {"PTL_IFACE_NAME": " "}):
            done = self.expect_success(self.job(7, "sh", "-c", "echo $PMI_RANK $PMI_SIZE $PTL_IFACE_NAME", **settings))
            lines = sorted(done.stdout.split("\n")[:-1])
            node = lines[0].split()[-1]
            self.assertRegex(node, r"^node:job-\d+$")
            self.assertEqual(lines, [f"{rank} 7 {node}" for rank in range(7)])
        done = self.expect_success(self.job(1, "sh", "-c", "echo $PTL_IFACE_NAME", PTL_IFACE_NAME="eth1"))
        self.assertEqual(done.stdout, "eth1\n")

    def test_addresses_are_distinct_and_known_to_all(self):
        done = self.expect_success(self.talk(4, """
answers = [ask("cmd=init pmi_version=1 pmi_subversion=1"), ask("cmd=get_my_kvsname"), ask("cmd=get_maxes"), ask("cmd=get_appnum"),
           ask("cmd=get_universe_size"), ask(f"cmd=put kvsname=job key=k{rank} value={rank * rank}"), ask("cmd=barrier_in")]
answers += [ask(f"cmd=get kvsname=job key=k{n}") for n in range(4)] + [ask("cmd=get kvsname=job key=none"), ask("cmd=finalize")]
print("|".join(answers) + "\\n", end="", flush=True) # in one write, so that no other rank's comes between
"""))
        lines = set(done.stdout.strip().split("\n"))
        self.assertEqual(lines, {"|".join((
            "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0 get_all=1", "cmd=my_kvsname kvsname=job",
            "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024", "cmd=appnum appnum=0", "cmd=universe_size size=4",
            "cmd=put_result rc=0 msg=success", "cmd=barrier_out", *(f"cmd=get_result rc=0 msg=success value={n * n}" for n in range(4)),
            "cmd=get_result rc=-1 msg=key_none_not_found", "cmd=finalize_ack"))})

    def test_a_job_leaves_nothing_behind(self):
        self.expect_success(self.job(3, RING, "10"))
        self.assertEqual(os.listdir(os.path.join(self.directory, "postern")), [])

    # --- input and output

    def test_rank_0_has_the_input_and_the_others_none(self):
        path = os.path.join(self.directory, "input")
        with open(path, "w", encoding="ascii") as file:
            file.write("a line\n")
        with open(path, encoding="ascii") as file:
            done = self.expect_success(self.job(3, "cat", options=["-l"], stdin=file))
        self.assertEqual(done.stdout, "[0] a line\n")

    def test_labels_are_written_before_each_line(self):
        done = self.expect_success(self.job(3, "sh", "-c", "echo one; echo two >&2; printf 'no end'", options=["--label"]))
        self.assertEqual(sorted(done.stdout.split("\n")), ["", *sorted(f"[{n}] {line}" for n in range(3) for line in ("one", "no end"))])
        self.assertEqual(sorted(done.stderr.split("\n")), ["", *(f"[{n}] two" for n in range(3))])

    def test_a_line_without_an_end_is_written_though_an_orphan_holds_the_output(self):
        done = self.job(1, "sh", "-c", "sleep 1000 & printf '%s' $!", options=["-l"])
        os.kill(int(done.stdout.partition("] ")[2]), signal.SIGKILL)
        self.assertRegex(self.expect_success(done).stdout, r"^\[0\] \d+\n$")

    def test_a_long_line_arrives_in_pieces_and_whole(self):
        done = self.expect_success(self.job(1, sys.executable, "-c", "print('x' * 100000)", options=["-l"]))
        self.assertEqual(re.sub(r"\n?\[0\] ", "", done.stdout), "x" * 100000 + "\n")

    def test_a_rank_whose_output_nobody_reads_ends(self):
        job = self.start("postern-run", "-n", "2", "-l", "yes", XDG_RUNTIME_DIR=self.directory)
        job.stdout.readline()
        job.stdout.close()
        job.stdout = None
        self.assertEqual(job.wait(programs.TIMEOUT), 128 + signal.SIGPIPE)

    def test_a_reader_that_does_not_read_keeps_no_job_from_its_end(self):
        job = self.start("postern-run", "-n", "2", "-l", "yes", XDG_RUNTIME_DIR=self.directory)
        room = fcntl.fcntl(job.stdout, fcntl.F_GETPIPE_SZ)
        end = time.monotonic() + programs.TIMEOUT
        while struct.unpack("i", fcntl.ioctl(job.stdout, termios.FIONREAD, bytes(4)))[0] <= room - 2 * select.PIPE_BUF:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        job.terminate()
        self.assertEqual(job.wait(programs.TIMEOUT), 128 + signal.SIGTERM)

    def test_lines_that_cannot_be_written_are_told_once(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([programs.program("postern-run"), "-n", "2", "-l", "echo", "a line"], stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=programs.TIMEOUT, check=False, env=programs.environment(XDG_RUNTIME_DIR=self.directory))
        self.assertEqual((done.returncode, done.stderr),
                         (1, "postern-run: output of ranks cannot be written: No space left on device; send it elsewhere\n"))

    def test_options_of_the_program_are_its_own(self):
        done = self.expect_success(self.job(1, "echo", "-l", "--help", "-n"))
        self.assertEqual(done.stdout, "-l --help -n\n")

    def test_a_rank_with_one_cpu_is_told_that_a_poll_thread_is_in_its_way(self):
        cpu = str(min(os.sched_getaffinity(0)))
        for progress, told in (("core", True), ("both", False), ("inline", False)):
            done = self.expect_success(programs.run("postern-run", "-n", "2", "taskset", "-c", cpu, RING, "10", XDG_RUNTIME_DIR=self.directory,
                                                    PTL_PROGRESS=progress))
            self.assertEqual("this process may use only one CPU" in done.stderr, told, done.stderr)

    # --- failures

    def test_a_rank_that_fails_ends_all_with_its_code(self):
        self.expect_end(self.job(4, "sh", "-c", "[ $PMI_RANK = 2 ] && exit 7; exec sleep 1000"), 7, "rank 2 ended with exit code 7")
        self.expect_end(self.job(4, "sh", "-c", "[ $PMI_RANK = 3 ] && kill -9 $$; exec sleep 1000"), 128 + 9,
                        "rank 3 was ended by signal 9")

    def test_a_rank_that_does_not_mind_is_killed_and_so_are_its_children(self):
        path = os.path.join(self.directory, "ids")
        self.expect_end(self.job(3, "sh", "-c", f"trap '' TERM; sleep 1000 & echo $! $$ >>{path}; [ $PMI_RANK = 2 ] || wait; "
                                                f"until [ $(wc -l <{path}) = 3 ]; do :; done; exit 3"), 3)
        with open(path, encoding="ascii") as file:
            processes = [int(word) for word in file.read().split()]
        self.assertEqual(len(processes), 6)
        self.assertFalse(any(map(is_alive, processes)))

    def test_a_program_that_cannot_be_started_is_told_once(self):
        done = self.job(3, "nonesuch")
        self.expect_end(done, 127, "nonesuch cannot be started: No such file or directory: check its path")
        self.assertEqual(done.stderr.count("\n"), 1)
        for path in ("/etc/passwd", "/etc"):
            self.expect_end(self.job(3, path), 126, f"{path} cannot be started: Permission denied: give the path of a program, not of a directory,",
                            "make it executable")

    def test_too_few_processes_are_told(self):
        if os.getuid() != 0:
            self.skipTest("only root may become a user who has no processes")
        os.chown(self.directory, programs.OTHER_USER, -1)
        try:
            done = subprocess.run([programs.program("postern-run"), "-n", "3", "sleep", "1000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  timeout=programs.TIMEOUT, check=False, user=programs.OTHER_USER, env=programs.environment(XDG_RUNTIME_DIR=self.directory),
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (2, 2)))
        except PermissionError:
            self.skipTest("the build is where only root may look")
        self.expect_end(done, 126, "sleep cannot be started: Resource temporarily unavailable: end some processes", "ulimit -u")

    def test_files_are_enough_for_all_ranks_and_each_has_the_limit_of_before(self):
        """With -l this process has three descriptors for each rank."""
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if hard < 128:
            self.skipTest("a process may have fewer than 128 files open")
        command = [programs.program("postern-run"), "-l", "-n", "30", "sh", "-c", "ulimit -Sn"]
        for limit in ((64, hard), (64, 64)):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=programs.TIMEOUT, check=False,
                                  preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_NOFILE, limit),
                                  env=programs.environment(XDG_RUNTIME_DIR=self.directory))
            if limit[1] == hard:
                self.expect_success(done)
                self.assertEqual([line.split()[-1] for line in done.stdout.splitlines()], ["64"] * 30)
            else:
                self.expect_end(done, 126, "Too many open files", "may have 64 files open", "ulimit -n")

    def test_a_rank_that_joins_and_does_not_leave_has_failed(self):
        self.expect_end(self.talk(2, "ask('cmd=init'); rank == 0 and sys.exit(); time.sleep(1000)"), 1,
                        "rank 0 ended without postern_job_leave()")

    def test_nobody_waits_for_a_rank_that_does_not_come(self):
        self.expect_end(self.talk(3, "rank == 1 and sys.exit(); ask('cmd=init'); ask('cmd=barrier_in')"), 1,
                        "waits for rank 1, which has ended; the job is ended")
        self.expect_end(self.talk(2, """
ask('cmd=init')
if rank == 1:
    ask('cmd=barrier_in')
ask('cmd=finalize')
signal.pause()
"""), 1, "rank 1 waits for rank 0, which has left the job")

    def test_nonsense_and_aborts_end_the_job(self):
        for line, code, part in (("cmd=abort exitcode=9", 9, "rank 1 has ended the job with exit code 9"),
                                 ("cmd=abort exitcode=0", 0, "rank 1 has ended the job with exit code 0"),
                                 ("cmd=abort exitcode=99999", 1, "exit code 1"),
                                 ("cmd=nonsense", 1, 'rank 1 asked by PMI "cmd=nonsense", which has no answer here'),
                                 ("cmd=\x1b[31mred\a", 1, 'rank 1 asked by PMI "cmd=?[31mred?", which has no answer here'),
                                 ("", 1, "which has no answer here"), ("cmd=put key=a", 1, "cmd=put key=a"),
                                 ("cmd=get kvsname=job", 1, "cmd=get"), (f"cmd=put key={'k' * 64} value=1", 1, "cmd=put"),
                                 (f"cmd=put key=k value={'v' * 1024}", 1, "cmd=put")):
            self.expect_end(self.talk(2, f"rank == 1 and ask({line!r}); time.sleep(1000)"), code, part)

    def test_a_program_ends_its_job(self):
        ends = os.path.join(os.environ["POSTERN_BUILD"], "tests/apps/ends")
        for code, seen in ((7, 7), (0, 0), (256, 1), (263, 7)):
            done = self.job(3, ends, str(code))
            self.expect_end(done, seen, f"rank 1 has ended the job with exit code {seen}")
            self.assertEqual(done.stdout, "before the end")

    def test_a_rank_that_waits_sleeps(self):
        """What others send it is its helper's business: with naps of 200 us it would sleep ten thousand times."""
        done = self.job(2, os.path.join(os.environ["POSTERN_BUILD"], "tests/apps/ends"), "late", PTL_PROGRESS="both")
        self.expect_end(done, 0)
        self.assertLess(int(re.search(r"slept (\d+) times", done.stdout)[1]), 2000)  # 400 while other programs use the CPUs

    def test_a_rank_that_never_reads_or_never_ends_a_line_hurts_itself_alone(self):
        done = self.talk(2, """
if rank == 1:
    line = b"cmd=get kvsname=job key=none\\n" * 1000
    sock = socket.socket(fileno=os.dup(int(os.environ["PMI_FD"])))
    try:
        while True:
            sock.sendall(line)
    except OSError:
        pass
time.sleep(1000)
""")
        self.expect_end(done, 1, "rank 1 asked by PMI")
        done = self.talk(2, """
if rank == 1:
    sock = socket.socket(fileno=os.dup(int(os.environ["PMI_FD"])))
    try:
        sock.sendall(b"x" * 10000000)
    except OSError:
        sys.exit(5)
time.sleep(1000)
""")
        self.expect_end(done, 5, "rank 1 ended with exit code 5")

    def test_all_keys_and_values_come_at_once(self):
        done = self.talk(3, """
answer = ask('cmd=init pmi_version=1 pmi_subversion=1')
ask(f'cmd=put kvsname=job key=k{rank} value={rank * rank}')
ask('cmd=barrier_in')
head = ask('cmd=get_all')
lines = [pmi.readline().strip() for _ in range(int(head.rpartition('=')[2]))]
ask('cmd=barrier_in')
ask('cmd=put kvsname=job key=k1 value=new')
ask('cmd=barrier_in')
again = ask('cmd=get_all')
more = [pmi.readline().strip() for _ in range(int(again.rpartition('=')[2]))]
ask('cmd=finalize')
if rank == 2:
    print(answer, head, *lines, *more, sep="|")
""")
        self.expect_success(done)
        self.assertEqual(done.stdout.strip(), "|".join((
            "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0 get_all=1", "cmd=all rc=0 count=3", "cmd=pair key=k0 value=0",
            "cmd=pair key=k1 value=1", "cmd=pair key=k2 value=4", "cmd=pair key=k0 value=0", "cmd=pair key=k1 value=new", "cmd=pair key=k2 value=4")))

    def test_who_wants_all_and_reads_nothing_keeps_nobody_waiting(self):
        done = self.talk(2, """
if rank == 1:
    for n in range(2000):
        ask(f'cmd=put kvsname=job key=k{n} value=' + 'v' * 1000)
    sock = socket.socket(fileno=os.dup(int(os.environ["PMI_FD"])))
    sock.sendall(b"cmd=get_all\\n" * 1000)
    ask('cmd=get kvsname=job key=k7')
    sock.sendall(b"cmd=put kvsname=job key=last value=1\\n")
    signal.pause()
while 'rc=0' not in ask('cmd=get kvsname=job key=k1999'):
    time.sleep(0.01)
for n in range(2000):
    ask(f'cmd=get kvsname=job key=k{n}')
print('last' in ask('cmd=get kvsname=job key=last'))
ask('cmd=abort exitcode=3')
""")
        self.expect_end(done, 3, "rank 0 has ended the job with exit code 3")
        self.expect_end(self.talk(2, """
if rank == 1:
    pmi.write('cmd=barrier_in\\n')
    ask('cmd=get_all')
time.sleep(1000)
"""), 1, 'rank 1 asked by PMI "cmd=get_all"')

    # --- signals

    def sleepers(self, number):
        """A job that sleeps, and the process ids of its ranks."""
        job = self.start("postern-run", "-n", str(number), "sh", "-c", "echo $$; exec sleep 1000", XDG_RUNTIME_DIR=self.directory)
        return job, [int(job.stdout.readline()) for _ in range(number)]

    def test_a_signal_reaches_all_and_is_the_exit_code(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            job, processes = self.sleepers(3)
            job.send_signal(number)
            self.assertEqual(job.wait(programs.TIMEOUT), 128 + number)
            self.assertFalse(any(map(is_alive, processes)))

    def test_the_keys_of_a_terminal_reach_each_rank(self):
        process, terminal = pty.fork()
        if process == 0:
            os.execve(programs.program("postern-run"), ["postern-run", "-n", "3", "sh", "-c", "trap 'echo got $PMI_RANK; exit 0' INT; "
                      "echo up; while :; do sleep 0.05; done"], programs.environment(XDG_RUNTIME_DIR=self.directory))
        said = b""
        while said.count(b"up") < 3:
            said += os.read(terminal, 4096)
        os.write(terminal, b"\x03")
        try:
            while True:
                said += os.read(terminal, 4096)
        except OSError:  # nobody has the terminal open any more
            os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), 128 + signal.SIGINT)
        self.assertEqual(sorted(line for line in said.decode().split() if line.isdigit()), ["0", "1", "2"])

    def test_ranks_die_with_a_launcher_that_is_killed(self):
        job, processes = self.sleepers(3)
        self.assertTrue(all(map(is_alive, processes)))
        job.kill()
        job.wait(programs.TIMEOUT)
        self.expect_gone(processes)

    def test_the_node_of_a_launcher_that_was_killed_goes_with_the_next_job(self):
        nodes = os.path.join(self.directory, "postern")
        job = self.start("postern-run", "-n", "2", "sh", "-c", f"{RING} 10 && echo done && exec sleep 1000", XDG_RUNTIME_DIR=self.directory)
        for _ in range(2):  # no rank is on the node any more
            self.await_line(job, "done")
        job.kill()
        job.wait(programs.TIMEOUT)
        self.assertEqual(os.listdir(nodes), [f"job-{job.pid}"])
        self.expect_success(self.job(1, "true"))
        self.assertEqual(os.listdir(nodes), [])

    # --- usage

    def test_wrong_words_are_told(self):
        for words, part in ((("true",), "Give -n N"), (("-n", "0", "true"), 'not "0"'), (("-n", "1025", "true"), 'not "1025"'),
                            (("-n", "x", "true"), "1 to 1024"), (("-n", "2"), "which program"), (("--nonesuch",), "nonesuch")):
            self.expect_usage_error(programs.run("postern-run", *words), part)
        for hosts in ("", ",", "a,", ",a", "a,,b", "a:0", "a:x", "a:1:2", "a:1025", "-x", "a,-oProxyCommand=x", ":2"):
            self.expect_usage_error(programs.run("postern-run", "-n", "2", "-H", hosts, "true"), f'a list such as a,b or a:4,b:4, not "{hosts}"')
        for node in ("node:x", "node", " node:x", "\tnode "):
            done = programs.run("postern-run", "-n", "2", "-H", "a", "true", PTL_IFACE_NAME=node)
            self.expect_usage_error(done, f"PTL_IFACE_NAME is {node.lstrip()}, but processes on several hosts")
        self.assertRegex(programs.run("postern-run", "--version").stdout, r"^postern-run \d+\.\d+\.\d+\n$")

    def test_a_line_is_one_write(self):
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with here, there:
            subprocess.run([programs.program("postern-run"), "-n", "1", "false"], stderr=there, timeout=programs.TIMEOUT, check=False,
                           env=programs.environment(XDG_RUNTIME_DIR=self.directory))
            there.close()
            writes = list(iter(lambda: here.recv(4096), b""))
        self.assertEqual(writes, [b"postern-run: rank 0 ended with exit code 1\n"])

    def test_without_hydra_several_hosts_are_not_possible(self):
        done = programs.run("postern-run", "-n", "2", "-H", "a", "true", PTL_IFACE_NAME="eth1", PATH=self.directory)
        self.expect_end(done, 127, "mpiexec.hydra cannot be started", "install Debian's package mpich")


class Hydra(programs.Case):
    """The same programs, and hosts, by Hydra."""

    def setUp(self):
        super().setUp()
        if shutil.which("mpiexec.hydra") is None:
            if os.environ.get("CI") == "true":
                self.fail("mpiexec.hydra is missing; scripts/install test installs it")
            raise unittest.SkipTest("mpiexec.hydra is missing; scripts/install test installs it")

    def hydra(self, *words, **settings):
        return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=programs.TIMEOUT, check=False,
                              env=programs.environment(XDG_RUNTIME_DIR=self.directory, **settings), stdin=subprocess.DEVNULL)

    def test_a_ring_runs_under_hydra(self):
        for progress in ("core", "inline"):
            done = self.expect_success(self.hydra("mpiexec.hydra", "-n", "5", RING, PTL_IFACE_NAME="node:hydra", PTL_PROGRESS=progress))
            self.assertEqual(done.stdout, "5 ranks have the sum of their vectors of 100000 numbers\n")

    def test_hosts_are_hydras(self):
        done = self.expect_success(self.hydra(programs.program("postern-run"), "-n", "2", "-l", "-H", "localhost", "sh", "-c",
                                              "echo of $PMI_SIZE", PTL_IFACE_NAME="eth1"))
        self.assertEqual(sorted(done.stdout.split("\n")), ["", "[0] of 2", "[1] of 2"])

    def test_a_host_that_ssh_does_not_reach_ends_the_job(self):
        """Hydra itself would wait for ever."""
        with open(os.path.join(self.directory, "ssh"), "w", encoding="ascii") as ssh:
            ssh.write("#!/bin/sh\n[ $2 = 203.0.113.7 ] && exec sleep 600\nexit 255\n")
        os.chmod(ssh.name, 0o755)
        for hosts, part in (("localhost,203.0.113.7,nonesuch.invalid:2", 'host "nonesuch.invalid" of --hosts cannot be found: '),
                            ("127.0.0.9:2,203.0.113.7", 'on 127.0.0.9:2,203.0.113.7, has failed, and says why above: see that "ssh HOST true" works')):
            done = self.hydra(programs.program("postern-run"), "-n", "4", "-H", hosts, "sleep", "600",
                              PATH=f"{self.directory}:{os.environ['PATH']}")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f"postern-run: {part}" if part[0] == "h" else part, done.stderr)
            self.assertEqual(done.stderr.count("postern-run: "), 1, done.stderr)

    def test_ranks_that_wait_for_one_that_has_not_joined_report_it(self):
        """Hydra lets them wait. They do not end the job: the last rank may be late."""
        for program, word in ((RING, "10"), (os.path.join(os.environ["POSTERN_BUILD"], "tests/apps/ends4"), "late")):
            job = subprocess.Popen(["mpiexec.hydra", "-n", "3", "sh", "-c", f"[ $PMI_RANK != 2 ] || exit 3; exec {program} {word}"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                                   env=programs.environment(**self.node(PTL_PEER_TIMEOUT="1s")))
            self.addCleanup(self.end, job)
            for _ in range(2):
                self.assertRegex(job.stderr.readline(), r"rank [01] has waited 1 s \(PTL_PEER_TIMEOUT\) for all ranks to join: one of them has ended")
            self.assertIsNone(job.poll())
            job.terminate()
            job.wait(programs.TIMEOUT)

    def test_the_exit_code_of_hydra_is_passed_on(self):
        self.assertEqual(self.hydra(programs.program("postern-run"), "-n", "1", "-H", "localhost", "sh", "-c", "exit 7").returncode, 7)

    def test_a_signal_ends_a_job_of_hosts_and_is_the_exit_code(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            job = self.start("postern-run", "-n", "2", "-H", "localhost", "sh", "-c", "echo up; exec sleep 1000", PTL_IFACE_NAME="eth1")
            self.assertEqual([job.stdout.readline() for _ in range(2)], ["up\n"] * 2)
            job.send_signal(number)
            self.assertEqual(job.wait(programs.TIMEOUT), 128 + number)

    def test_ranks_of_hosts_have_time_for_what_they_do_after_a_signal(self):
        job = self.start("postern-run", "-n", "2", "-H", "localhost", "sh", "-c",
                         "trap 'sleep 0.3; echo done; exit' TERM; echo up; while :; do sleep 0.05; done", PTL_IFACE_NAME="eth1")
        self.assertEqual([job.stdout.readline() for _ in range(2)], ["up\n"] * 2)
        job.terminate()
        self.assertEqual(job.communicate(timeout=programs.TIMEOUT)[0], "done\n" * 2)

    def test_a_signal_that_is_ignored_ends_no_job_of_hosts(self):
        end = os.path.join(self.directory, "end")
        os.mkfifo(end)
        job = subprocess.Popen(["nohup", programs.program("postern-run"), "-n", "1", "-H", "localhost", "sh", "-c", "echo up; read end < $END; echo went on"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, stdin=subprocess.DEVNULL,
                               env=programs.environment(PTL_IFACE_NAME="eth1", END=end))
        self.addCleanup(self.end, job)
        self.assertEqual(job.stdout.readline(), "up\n")
        job.send_signal(signal.SIGHUP)
        with open(end, "w", encoding="ascii") as pipe:
            pipe.write("now\n")
        self.assertEqual(self.finish(job)[:2], (0, "went on\n"))

    def test_processes_of_several_hosts_use_udp_if_nothing_is_set(self):
        for settings, port in (({}, "udp"), ({"PTL_IFACE_NAME": " "}, "udp"), ({"PTL_IFACE_NAME": "eth1"}, "eth1")):
            done = self.expect_success(self.hydra(programs.program("postern-run"), "-n", "2", "-H", "localhost", "sh", "-c",
                                                  "echo by $PTL_IFACE_NAME", **settings))
            self.assertEqual(done.stdout.split("\n"), [f"by {port}"] * 2 + [""])


class Launcher(programs.Case):
    """A rank whose launcher is this test."""

    def rank(self, *answers):
        """Runs rank 0 of 2; the launcher gives it these answers, and then goes."""
        ours, its = socket.socketpair()
        with ours, its:
            job = subprocess.Popen([RING], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, pass_fds=[its.fileno()],
                                   env=programs.environment(PMI_FD=str(its.fileno()), PMI_RANK="0", PMI_SIZE="2",
                                                            XDG_RUNTIME_DIR=self.directory, PTL_IFACE_NAME="node:test"))
            self.addCleanup(self.end, job)
            its.close()
            asked = ours.makefile("rb")
            for answer in answers:
                asked.readline()
                ours.sendall(answer)
            asked.close()
        return self.finish(job)

    def test_a_launcher_that_goes_or_talks_nonsense_is_told(self):
        init = b"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
        name = b"cmd=my_kvsname kvsname=x\n"
        put = b"cmd=put_result rc=0\n"
        for answers, part in (((), "has ended"), ((b"nonsense\n",), 'answered "nonsense"'), ((b"cmd=response_to_init rc=-1\n",), "rc=-1"),
                              ((init, b"cmd=my_kvsname\n"), "names no key-value space"),
                              ((init, b"cmd=my_kvsname kvsname=" + b"x" * 300 + b"\n"), "names no key-value space"),
                              ((init, b"x" * 5000), "has ended"), ((init, name, b"cmd=put_result rc=1\n"), "cmd=put_result was expected"),
                              ((init, name, put), "has ended"),
                              *(((init, name, put, b"cmd=barrier_out\n", b"cmd=get_result rc=0 value=" + value + b"\n"), "no card of rank 1")
                                for value in (b"", b"1:1000", b"50" * 40, b"5001" + b"ff" * 38, b"5001" + b"0" * 74, b"5001" + b"0" * 100)),
                              ((init, name, put, b"cmd=barrier_out\n", b"cmd=get_result rc=-1 msg=no\n"), "cmd=get_result was expected")):
            code, out, err = self.rank(*answers)
            self.assertEqual((code, out), (1, ""), err)
            self.assertIn(part, err, answers)
            self.assertIn("start the job", err)


if __name__ == "__main__":
    programs.main()
