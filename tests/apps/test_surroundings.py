#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The machine around a program: limits, calls that are forbidden, interfaces that change. Each is told in words that name it.

Covers: lib/base/remedy.c.
"""
import ctypes
import errno
import os
import resource
import shutil
import struct
import subprocess
import time

import programs

CALLS = {"memfd_create": 319, "eventfd2": 290, "timerfd_create": 283, "epoll_create1": 291, "madvise": 28}  # of x86-64
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2  # of prctl(2)


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def forbid(name, error):
    """What a container's seccomp filter does to one system call."""
    steps = [(0x20, 0, 0, 0), (0x15, 0, 1, CALLS[name]), (0x06, 0, 0, 0x00050000 | error), (0x06, 0, 0, 0x7fff0000)]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    memory = ctypes.create_string_buffer(code, len(code))
    program = Program(len(steps), ctypes.cast(memory, ctypes.c_void_p))
    prctl = ctypes.CDLL(None).prctl

    def apply():
        assert memory and prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0 and prctl(SECCOMP, FILTER, ctypes.byref(program), 0, 0) == 0
    return apply


class Surroundings(programs.Case):
    def ring(self, apply):
        """A job of two processes."""
        return subprocess.run([programs.program("postern-run"), "-n", "2", programs.program("examples/ring_allreduce")],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=apply, timeout=programs.TIMEOUT,
                              check=False, env=programs.environment())

    def test_forbidden_calls_are_named(self):
        if os.uname().machine != "x86_64":
            self.skipTest("the numbers of system calls are those of x86-64")
        for name in ("memfd_create", "eventfd2", "timerfd_create", "epoll_create1"):
            for error in (errno.EPERM, errno.ENOSYS):
                done = self.ring(forbid(name, error))
                self.assertEqual(done.returncode, 1, f"{name}: {done.stderr}")
                self.assertIn("seccomp", done.stderr, name)
                self.assertIn(name, done.stderr)
                self.assertNotIn("ulimit", done.stderr, name)

    def test_advice_on_memory_is_not_needed(self):
        if os.uname().machine != "x86_64":
            self.skipTest("the numbers of system calls are those of x86-64")
        for error in (errno.EPERM, errno.ENOSYS):
            self.expect_success(self.ring(forbid("madvise", error)))

    def test_a_small_limit_of_memory_is_named(self):
        for kind, limit, name, cure in ((resource.RLIMIT_AS, 100, "address space", "ulimit -v unlimited"),
                                        (resource.RLIMIT_AS, 250, "address space", "ulimit -v unlimited"),
                                        (resource.RLIMIT_DATA, 20, "data", "ulimit -d unlimited")):
            done = self.ring(lambda kind=kind, size=limit << 20: resource.setrlimit(kind, (size, size)))
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f"may have {limit} MB of {name}", done.stderr)
            self.assertIn(cure, done.stderr)

    def test_each_interface_names_a_small_address_space(self):
        """None crashes, whatever does not get its memory. What the program itself lacks is its own to tell, so one limit has to be named."""
        job = ["postern-run", "-n", "1"]
        provider = ["postern-perf", "--library", "fi", "--iterations", "10", "--sizes", "8", "latency"]
        for words in ([*job, programs.program("examples/pingpong4")], [*job, programs.program("examples/am_ring")],
                      [*job, programs.program("examples/adi_ring")], ["examples/pingpong_mx", "self"],
                      *([provider] if os.environ.get("POSTERN_FI") == "yes" else [])):
            told = 0
            for limit in range(100, 700, 100):
                done = subprocess.run([programs.program(words[0]), *words[1:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      check=False, timeout=programs.TIMEOUT, env=programs.environment(
                                          XDG_RUNTIME_DIR=self.directory, FI_PROVIDER_PATH=os.path.join(programs.PROGRAMS, "..", "lib", "fi")),
                                      preexec_fn=lambda size=limit << 20: resource.setrlimit(resource.RLIMIT_AS, (size, size)))
                self.assertIn(done.returncode, (0, 1, 255), (words, limit, done.stderr))
                self.assertTrue(done.returncode == 0 or done.stderr, (words, limit))
                if "there is no memory for messages" in done.stderr:
                    self.assertIn("raise the limit by ulimit -v unlimited", done.stderr, (words, limit))
                told += "raise the limit by ulimit -v unlimited" in done.stderr
            self.assertGreater(told, 0, words)

    def test_a_process_takes_all_descriptors_that_it_may_have(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        process = subprocess.Popen([programs.program("examples/hello"), "receive"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard)),
                                   env=programs.environment(**self.node()))
        self.addCleanup(self.end, process)
        process.stdout.readline()
        self.assertEqual(resource.prlimit(process.pid, resource.RLIMIT_NOFILE), (hard, hard))


class Namespaces(programs.Case):
    def test_a_user_who_is_root_in_a_namespace_has_a_directory_of_his_own(self):
        """And not that of root."""
        words = ["unshare", "-Ur", "sh", "-c", 'test $(id -u) = 0 && exec "$@"', "sh"]
        if os.getuid() != 0 or subprocess.run([*words, "true"], user=programs.OTHER_USER, stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("only root can become another user, and not every system lets that one make a namespace")
        own = f"/tmp/postern-0-{programs.OTHER_USER}"
        self.addCleanup(shutil.rmtree, own, ignore_errors=True)
        self.expect_success(programs.run("examples/hello", XDG_RUNTIME_DIR=""))  # root's
        done = subprocess.run([*words, programs.program("postern-run"), "-n", "2", programs.program("examples/ring_allreduce")], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=programs.TIMEOUT,
                              env=programs.environment(XDG_RUNTIME_DIR=""), user=programs.OTHER_USER)
        self.expect_success(done)
        self.assertEqual(os.stat(own).st_uid, programs.OTHER_USER)
        self.assertEqual(os.stat("/tmp/postern-0").st_uid, 0)


class Interfaces(programs.Case):
    """In a network namespace, with one end of a veth pair."""

    def setUp(self):
        super().setUp()
        if os.getuid() != 0:
            self.skipTest("only root can make interfaces")
        self.name = f"ptn-{os.getpid()}"
        self.ip("netns", "add", self.name)
        self.addCleanup(subprocess.run, ["ip", "netns", "del", self.name], check=False)
        self.inside("link", "add", "ptn0", "type", "veth", "peer", "name", "ptn1")
        self.inside("link", "set", "ptn0", "up")

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True, stdout=subprocess.DEVNULL)

    def inside(self, *words):
        self.ip("-n", self.name, *words)

    def receiver(self, interface, other_up=True):
        if other_up:
            self.inside("link", "set", "ptn1", "up")
        process = subprocess.Popen(["ip", "netns", "exec", self.name, programs.program("examples/hello"), "receive"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True,
                                   env=programs.environment(PTL_IFACE_NAME=interface, PTL_NID="1", PTL_LOG_LEVEL="info",
                                                            XDG_RUNTIME_DIR=self.directory))
        self.addCleanup(self.end, process)
        process.stdout.readline()
        return process

    def expect_line(self, process, *parts):
        for line in process.stderr:
            if parts[0] in line:
                for part in parts:
                    self.assertIn(part, line)
                return
        raise AssertionError(f"nothing says \"{parts[0]}\"")

    def test_an_address_that_changes_is_told(self):
        process = self.receiver("ptn0")
        time.sleep(0.5)
        self.inside("link", "set", "ptn0", "address", "02:00:00:00:00:77")
        self.expect_line(process, "has been given another address", "ip link set ptn0 address ")

    def test_an_mtu_that_shrinks_is_told(self):
        process = self.receiver("ptn0")
        time.sleep(0.5)
        for end in ("ptn0", "ptn1"):
            self.inside("link", "set", end, "mtu", "1000")
        self.expect_line(process, "MTU is 1000 now", "ip link set ptn0 mtu 1500")

    def test_an_interface_without_carrier_is_told(self):
        self.expect_line(self.receiver("ptn0", other_up=False), "ptn0: the interface has no carrier")

    def test_an_alternative_name_is_the_interface(self):
        for name in ("short-alias", "a-name-of-more-than-fifteen-letters"):
            self.inside("link", "property", "add", "dev", "ptn0", "altname", name)
            process = self.receiver(name)
            self.expect_line(process, f"{name} is an alternative name of ptn0")
            for port in (name, f"udp:{name}"):
                done = subprocess.run(["ip", "netns", "exec", self.name, programs.program("postern-info"), "doctor"], check=False, text=True,
                                      stdout=subprocess.PIPE, env=programs.environment(PTL_IFACE_NAME=port, XDG_RUNTIME_DIR=self.directory))
                self.assertIn("link: ptn0 is up", done.stdout)
            self.end(process)


if __name__ == "__main__":
    programs.main()
