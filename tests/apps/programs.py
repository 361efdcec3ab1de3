# SPDX-License-Identifier: BSD-3-Clause
"""programs.py - what the tests of the programs share: where they are, and ways to run them as a user would."""
import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "net"))
from exchange import stacks  # pylint: disable=wrong-import-position

PROGRAMS = os.environ.get("POSTERN_PROGRAMS", ".")  # the directory apps/ of the build
DIRECTORIES = tempfile.mkdtemp(prefix="ptn-")  # where processes of these tests meet those that are on a node
atexit.register(shutil.rmtree, DIRECTORIES, ignore_errors=True)
TIMEOUT = 600  # s, of anything: it ends what hangs, and ten programs may share a CPU

# Signals that this process was told to ignore, as under nohup, its programs would ignore as well.
for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, signal.SIG_DFL)


def program(name):
    return os.path.join(PROGRAMS, name)


def environment(**settings):
    """The environment without settings of the person who tests, and with these."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PTL_")}
    clean["XDG_RUNTIME_DIR"] = DIRECTORIES
    clean.update(settings)
    return clean


def run(name, *words, **settings):
    return subprocess.run([program(name), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=TIMEOUT, env=environment(**settings), check=False)


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def processes(pid):
    """What a process and all that it has started are at, as text: of each thread the state, where it waits in the kernel and the system call,
    then the functions that the threads are in."""
    lines, children = [], []
    for thread in sorted(map(int, os.listdir(f"/proc/{pid}/task"))) if os.path.exists(f"/proc/{pid}/task") else ():
        name, state, at, call = (read(f"/proc/{pid}/task/{thread}/{file}") for file in ("comm", "stat", "wchan", "syscall"))
        lines.append(f"process {pid}, {name} {thread}: state {state.rpartition(')')[2][:2].strip()}, at {at}, system call {call}")
        children += read(f"/proc/{pid}/task/{thread}/children").split()
    return "\n    ".join(lines + (stacks(pid) if lines and pid != os.getpid() else [])) + "\n" + "".join(map(processes, children))


def communicate(process, limit=TIMEOUT):
    """What a process has written until its end, and "". If it has not ended after so many seconds, it is told to, and the last text is what
    it and all that it has started were at."""
    try:
        return *process.communicate(timeout=limit), ""
    except subprocess.TimeoutExpired:
        hung = f"hangs after {limit} s:\n{processes(process.pid)}"
        process.terminate()
        return *process.communicate(), hung


OTHER_USER = 64999  # nobody's


class Case(unittest.TestCase):
    """A test with a directory of its own, whose processes end with it."""

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="ptn-")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        # a test that hangs fails with a stack trace
        signal.signal(signal.SIGALRM, self.hangs)
        signal.alarm(2 * TIMEOUT)
        self.addCleanup(signal.alarm, 0)

    def hangs(self, *_):
        raise AssertionError("the test hangs\n" + processes(os.getpid()))

    def node(self, **settings):
        """On a node of the test's own, where all processes have the node id 1."""
        return dict(PTL_IFACE_NAME=f"node:{os.path.basename(self.directory)}", PTL_NID="1", **settings)

    def memif(self, node, **settings):
        """On an ethernet device of DPDK's, between node 1 and another."""
        return dict(PTL_IFACE_NAME=f"net_memif0,role={'server' if node == 1 else 'client'},socket={self.directory}/memif",
                    PTL_NID=str(node), **settings)

    def start(self, name, *words, **settings):
        process = subprocess.Popen([program(name), *words], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=environment(**settings))
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    @staticmethod
    def all_users():
        """Where processes of all users meet: an address of this test's own."""
        pid = os.getpid()
        return f"127.{pid >> 16 & 255}.{pid >> 8 & 255}.{pid & 255}"

    def other_user(self, name, *words, **settings):
        """Run by another user, at the same address."""
        return subprocess.run([program(name), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT,
                              env=environment(PTL_IFACE_NAME=f"udp:{self.all_users()}", XDG_RUNTIME_DIR="", **settings), check=False, user=OTHER_USER)

    def await_line(self, process, part):
        for line in process.stdout:
            if part in line:
                return line
        raise AssertionError(f"the process ended without \"{part}\": {process.stderr.read()}")

    def server(self, *words, **settings):
        """A postern-perf that serves at 1:1."""
        process = self.start("postern-perf", "--server", *words, **self.node(**settings))
        self.assertIn("--peer 1:1", self.await_line(process, "Serving at 1:1"))
        return process

    def server_at(self, pid, *words, **settings):
        """One of several, at 1:PID."""
        process = self.start("postern-perf", "--server", "--pid", str(pid), *words, **self.node(**settings))
        self.await_line(process, f"Serving at 1:{pid};")
        return process

    def finish(self, process):
        """Its exit code and what it has said since."""
        out, err = process.communicate(timeout=TIMEOUT)
        return process.returncode, out, err

    def expect_success(self, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def expect_json(self, done):
        return json.loads(self.expect_success(done).stdout)

    def expect_usage_error(self, done, part):
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn(part, done.stderr)
        self.assertIn("--help", done.stderr)
        self.assertEqual(done.stdout, "")


def main():
    unittest.main(argv=sys.argv[:1], verbosity=2)
