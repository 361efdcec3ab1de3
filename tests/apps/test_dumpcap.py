#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PTL_SHARE: dpdk-dumpcap captures from a process while it runs.

That takes hugepages, which this test asks the kernel for and gives back; where it gives none it is skipped, also with CI=true:
they are not among what a machine for tests must have.

Covers: pmd-glue/share.c, pmd-glue/driver.c.
"""
import ctypes
import glob
import os
import shutil
import struct
import subprocess
import unittest

import programs

OVERCOMMIT = "/proc/sys/vm/nr_overcommit_hugepages"
PAGES = 128  # of 2 MiB
FRAMES = 20
CLONE_NEWNS = 0x20000


def skip_reason(directory):
    """Makes hugepages that a process finds only if it looks into a directory; returns why it could not, or None."""
    if os.geteuid() != 0:
        return "hugepages need root"
    if shutil.which("dpdk-dumpcap") is None:
        return "dpdk-dumpcap is missing; scripts/install test installs it"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:  # what is mounted here goes with this process
        return f"a mount namespace cannot be had: {os.strerror(ctypes.get_errno())}"
    for command in (["mount", "--make-rprivate", "/"], ["mount", "-t", "hugetlbfs", "none", directory]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            return done.stdout.strip()
    # Pages beyond those that are reserved are made when they are asked for: no other process sees them as free.
    try:
        with open(OVERCOMMIT, "r+", encoding="ascii") as file:
            file.write(str(PAGES))
        probe = os.path.join(directory, "probe")
        fd = os.open(probe, os.O_RDWR | os.O_CREAT)
        try:
            os.posix_fallocate(fd, 0, PAGES << 21)
        finally:
            os.close(fd)
            os.unlink(probe)
    except OSError as error:
        return f"hugepages cannot be had: {error}"
    return None


class Dumpcap(programs.Case):
    def setUp(self):
        super().setUp()
        self.pages = os.path.join(self.directory, "hugepages")
        os.mkdir(self.pages)
        self.name = f"ptn-{os.getpid()}"
        try:
            with open(OVERCOMMIT, encoding="ascii") as file:
                self.addCleanup(self.overcommit, file.read())
            reason = skip_reason(self.pages)
        except OSError as error:
            reason = f"hugepages cannot be had: {error}"
        self.addCleanup(subprocess.run, ["umount", self.pages], stderr=subprocess.DEVNULL, check=False)
        self.addCleanup(shutil.rmtree, f"/var/run/dpdk/{self.name}", ignore_errors=True)
        if reason:
            self.skipTest(reason)

    @staticmethod
    def overcommit(before):
        try:
            with open(OVERCOMMIT, "w", encoding="ascii") as file:
                file.write(before)
        except OSError:
            pass  # it was not changed either

    def dumpcap(self, *words):
        return subprocess.run(["dpdk-dumpcap", f"--file-prefix={self.name}", *words], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=programs.TIMEOUT, check=False).stdout

    def test_it_captures_from_a_process_that_runs(self):
        file = os.path.join(self.directory, "file.pcapng")
        self.await_line(self.start("postern-perf", "--server", **self.memif(1)), "Serving")
        client = self.start("postern-perf", "--peer", "1:1", "--time", "600", "--sizes", "8", "latency",
                            **self.memif(2, PTL_SHARE=self.name, PTL_LOG_LEVEL="info"))
        said = ""
        while "dpdk-dumpcap" not in said:  # from here on it answers
            said = client.stderr.readline()
            self.assertNotEqual(said, "", "the client has ended")
        self.assertIn(f"dpdk-dumpcap --file-prefix={self.name} captures from this process", said)
        while "net_memif0" not in (listed := self.dumpcap("-D")):
            self.assertIsNone(client.poll(), listed + (client.stderr.read() if client.poll() is not None else ""))
        self.dumpcap("-i", "net_memif0", "-c", str(FRAMES), "-w", file)
        with open(file, "rb") as stream:
            content = stream.read()
        self.assertGreaterEqual(self.frames(content), FRAMES)
        self.assertIsNone(client.poll())
        client.terminate()

    @staticmethod
    def frames(content):
        """How many of the frames in a pcapng file are Postern's."""
        at = found = 0
        while at < len(content):
            kind, length = struct.unpack_from("<II", content, at)
            found += kind == 6 and content[at + 28 + 12:at + 28 + 14] == b"\x88\xb5"
            at += length
        return found

    def test_nothing_is_left_and_names_are_one_processs_own(self):
        first = self.start("postern-perf", "--server", "--once", **self.memif(1, PTL_SHARE=self.name))
        while not any(name.startswith(f"{self.name}map_") for name in os.listdir(self.pages)):
            self.assertIsNone(first.poll())
        self.await_line(first, "Serving")
        second = programs.run("postern-perf", "--peer", "1:1", "--iterations", "10", "latency",
                              **self.memif(2, PTL_SHARE=self.name))
        self.assertNotEqual(second.returncode, 0)
        self.assertIn("choose a name that no other process has", second.stderr)
        self.expect_success(programs.run("postern-perf", "--peer", "1:1", "--iterations", "10", "latency", **self.memif(2)))
        self.assertEqual(self.finish(first)[0], 0)
        self.assertEqual(os.listdir(self.pages), [])

    def test_without_the_library_it_names_the_package(self):
        for library in glob.glob("/usr/lib/*/librte_pdump.so.*"):
            self.assertEqual(subprocess.run(["mount", "--bind", "/dev/null", library], check=False).returncode, 0)
            self.addCleanup(subprocess.run, ["umount", library], check=False)
        done = programs.run("postern-perf", "--iterations", "10", "latency", PTL_SHARE=self.name)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr.splitlines()[0], r"^.*PTL_SHARE: DPDK's librte_pdump.so is not installed: on Debian apt install librte-pdump\d")


class Refusals(programs.Case):
    def test_a_name_that_cannot_be(self):
        done = programs.run("postern-perf", "--iterations", "10", "latency", PTL_SHARE="a/b")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("PTL_SHARE=a/b is invalid: use at most", done.stderr)

    def test_without_hugepages_it_says_what_to_do(self):
        done = programs.run("postern-perf", "--iterations", "10", "latency", PTL_SHARE="ptn-refused")
        if done.returncode == 0:
            self.skipTest("this machine has hugepages in a hugetlbfs")
        self.assertRegex(done.stderr.splitlines()[0], "PTL_SHARE=ptn-refused needs .*(mount -t hugetlbfs|sysctl vm.nr_hugepages)")


if __name__ == "__main__":
    programs.main()
