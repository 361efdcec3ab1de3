#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What another user has laid where everybody may write: a program that writes a capture, a trace or a plot there leaves that user's
choice of files alone, and answers dpdk-telemetry.py in no directory of another; postern-top asks no socket of another. Needs root, to be two
users."""
import os
import select
import shutil
import socket
import stat
import subprocess
import unittest

import programs

USER, OTHER = 65534, 65533
TEXT = "nobody may lose this\n"
QUICK = ("--time", "0.05", "--sizes", "8")


class Planted(programs.Case):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            self.skipTest("needs root and setpriv, to be two users")
        os.chmod(self.directory, 0o1777)
        self.home = self.made("home", 0o755)

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def made(self, name, mode, owner=USER):
        """A directory."""
        path = self.path(name)
        os.mkdir(path)
        os.chown(path, owner, owner)
        os.chmod(path, mode)
        return path

    def file(self, *names, owner=USER, mode=0o644):
        path = self.path(*names)
        with open(path, "w", encoding="utf-8") as file:
            file.write(TEXT)
        os.chown(path, owner, owner)
        os.chmod(path, mode)
        return path

    def planted(self, name):
        """A symbolic link of the other user's to a file of the user's, and that file."""
        target = self.file("home", name)
        os.symlink(target, self.path(name))
        os.chown(self.path(name), OTHER, OTHER, follow_symlinks=False)
        return self.path(name), target

    def run_as_user(self, *words, program="postern-perf", **settings):
        return subprocess.run(["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", programs.program(program), *words],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=programs.TIMEOUT, cwd=self.home,
                              env=programs.environment(**{"XDG_RUNTIME_DIR": self.home} | settings), check=False)

    def assert_kept(self, path, owner=USER):
        with open(path, "rb") as file:
            self.assertEqual(file.read(), TEXT.encode())
        self.assertEqual(os.stat(path).st_uid, owner)

    def assert_refused(self, done, part):
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn(part, done.stderr)

    def test_a_link_to_the_users_own_file(self):
        for words, settings in ((("--trace", "{}"), {}), (("--plot", "{}"), {}), ((), {"PTL_CAPTURE": "{}"})):
            with self.subTest(words=words, **settings):
                if "--plot" in words and shutil.which("gnuplot") is None:
                    continue
                path, target = self.planted("file.svg" if words else "file.pcapng")
                done = self.run_as_user(*(word.format(path) for word in words), *QUICK, "latency",
                                        **{name: value.format(path) for name, value in settings.items()})
                self.assert_kept(target)
                self.assert_refused(done, "symbolic link")
                os.unlink(path)

    def test_a_file_of_the_other_user(self):
        for words, settings in ((("--trace", "{}"), {}), (("--plot", "{}"), {}), ((), {"PTL_CAPTURE": "{}"})):
            with self.subTest(words=words, **settings):
                if "--plot" in words and shutil.which("gnuplot") is None:
                    continue
                path = self.file("home", "shared.svg", owner=OTHER, mode=0o666)
                done = self.run_as_user(*(word.format(path) for word in words), *QUICK, "latency",
                                        **{name: value.format(path) for name, value in settings.items()})
                self.assert_kept(path, OTHER)
                self.assert_refused(done, "belongs to another user")

    def test_a_capture_and_a_trace_of_ones_own(self):
        self.addCleanup(os.umask, os.umask(0o022))
        capture, trace = self.path("own.pcapng"), self.path("own.json")
        for _ in range(2):  # the second time they are there
            self.expect_success(self.run_as_user("--trace", trace, *QUICK, "latency", PTL_CAPTURE=capture))
            for path, mode in ((capture, 0o600), (trace, 0o644)):
                self.assertGreater(os.path.getsize(path), len(TEXT))
                self.assertEqual(os.stat(path).st_uid, USER)
                self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), mode)

    def test_telemetry_in_a_directory_of_the_other_user(self):
        runtime = self.made("runtime", 0o1777, owner=0)
        for owner, mode, answers in ((OTHER, 0o777, False), (USER, 0o777, False), (USER, 0o700, True)):
            with self.subTest(owner=owner, mode=oct(mode)):
                directory = self.made("runtime/dpdk", mode, owner)
                done = self.expect_success(self.run_as_user(*QUICK, "latency", XDG_RUNTIME_DIR=runtime, PTL_LOG_LEVEL="info"))
                self.assertEqual("does not answer dpdk-telemetry.py" not in done.stderr, answers, done.stderr)
                self.assertEqual(os.path.exists(os.path.join(directory, "postern")), answers)
                shutil.rmtree(directory)

    def test_top_names_a_directory_of_the_other_user(self):
        """Without XDG_RUNTIME_DIR, where DPDK has one directory for all users."""
        if subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("no mount can be hidden from others")
        known = os.path.exists("/tmp/dpdk")
        os.makedirs("/tmp/dpdk", exist_ok=True)
        if not known:
            self.addCleanup(os.rmdir, "/tmp/dpdk")
        for owner, told in ((OTHER, True), (USER, False)):
            mount = f"mount -t tmpfs -o mode=700,uid={owner} none /tmp/dpdk && exec setpriv --reuid={USER} --clear-groups \"$@\""
            done = subprocess.run(["unshare", "-m", "sh", "-c", mount, "sh", programs.program("postern-top"), "--once", "-i", "0.1"], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=programs.TIMEOUT, check=False,
                                  env=programs.environment(XDG_RUNTIME_DIR=""))
            self.expect_success(done)
            self.assertEqual("/tmp/dpdk, in which processes" in done.stdout, told, done.stdout)

    def test_top_asks_no_socket_of_the_other_user(self):
        """One that never answers would delay the table by a second, and so would each of a thousand."""
        runtime = self.made("runtime", 0o1777, owner=0)
        self.made("runtime/dpdk", 0o777, OTHER)
        sockets = {}
        for owner in (OTHER, USER):
            path = os.path.join(self.made(f"runtime/dpdk/{owner}", 0o755, owner), "dpdk_telemetry.v2")
            sockets[owner] = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.addCleanup(sockets[owner].close)
            sockets[owner].bind(path)
            sockets[owner].listen()
            os.chmod(path, 0o777)
            os.chown(path, owner, owner)
        os.mkdir(os.path.join(runtime, "dpdk/link"))
        os.symlink(f"../{USER}/dpdk_telemetry.v2", os.path.join(runtime, "dpdk/link/dpdk_telemetry.v2"))
        self.expect_success(self.run_as_user("--once", "-i", "0.1", program="postern-top", XDG_RUNTIME_DIR=runtime))
        self.assertEqual(select.select(list(sockets.values()), [], [], 0)[0], [sockets[USER]])


if __name__ == "__main__":
    programs.main()
