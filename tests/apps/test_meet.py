#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""postern-run --meet: a job whose ranks are started one by one, as ssh, Kubernetes' indexed jobs and torchrun do."""
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import time
import unittest

import programs

RING = programs.program("examples/ring_allreduce")


def free_port():
    """None that the kernel gives to whoever asks for any: another test might get it before it is used."""
    while True:
        port = random.randrange(20000, 32768)
        try:
            socket.create_server(("127.0.0.1", port)).close()
            return port
        except OSError:
            continue


class Meet(programs.Case):
    def setUp(self):
        super().setUp()
        self.place = f"127.0.0.1:{free_port()}"

    def rank(self, number, size, *words, **settings):
        options = ("-n", str(size)) if size else ()
        options += ("--rank", str(number)) if number is not None else ()
        return self.start("postern-run", "--meet", self.place, *options, *words,
                          XDG_RUNTIME_DIR=self.directory, **{"PTL_IFACE_NAME": "node:meet", **settings})

    def ends(self, ranks):
        """Exit code, output and complaints of each."""
        done = [rank.communicate(timeout=programs.TIMEOUT) for rank in ranks]
        return [rank.returncode for rank in ranks], [out for out, _ in done], [error for _, error in done]

    def reached(self):
        """A connection to rank 0, once it listens."""
        host, port = self.place.split(":")
        end = time.monotonic() + programs.TIMEOUT
        while True:
            try:
                return socket.create_connection((host, int(port)))
            except ConnectionRefusedError:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.02)

    def test_the_ring_has_the_sum_whoever_comes_first(self):
        for order in ((0, 1, 2), (2, 1, 0)):
            ranks = []
            for number in order:
                ranks.append(self.rank(number, 3, RING, "1000"))
                time.sleep(0.3)
            codes, outputs, errors = self.ends(ranks)
            self.assertEqual((codes, "".join(errors)), ([0, 0, 0], ""))
            self.assertEqual("".join(outputs), "3 ranks have the sum of their vectors of 1000 numbers\n")

    def test_the_environment_says_rank_and_size(self):
        for rank, size in (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"), ("JOB_COMPLETION_INDEX", "WORLD_SIZE")):
            ranks = [self.rank(None, None, RING, "10", **{rank: str(n), size: "2"}) for n in range(2)]
            codes, outputs, errors = self.ends(ranks)
            self.assertEqual((codes, "".join(errors)), ([0, 0], ""))
            self.assertIn("2 ranks", "".join(outputs))

    def test_if_nothing_is_set_they_use_udp(self):
        done = programs.run("postern-run", "--meet", self.place, "-n", "1", "-r", "0", "sh", "-c", "echo $PTL_IFACE_NAME $PMI_RANK $PMI_SIZE")
        self.assertEqual((done.returncode, done.stdout), (0, "udp 0 1\n"), done.stderr)

    def ranks_of_a_host(self, hostname, name):
        """Two ranks that meet at the name, which /etc/hosts maps to 127.0.1.1; rank 1 connects to 127.0.0.1."""
        port, hosts = self.place.split(":")[1], os.path.join(self.directory, "hosts")
        with open(hosts, "w", encoding="ascii") as file:
            file.write(f"127.0.0.1 localhost\n127.0.1.1 {name}\n")
        first = subprocess.Popen(["unshare", "--mount", "--uts", "sh", "-c", f'hostname {hostname} && mount --bind {hosts} /etc/hosts && exec "$@"', "-",
                                  programs.program("postern-run"), "--meet", f"{name}:{port}", "-n", "2", "--rank", "0", RING, "10"],
                                 env=programs.environment(XDG_RUNTIME_DIR=self.directory, PTL_IFACE_NAME="node:meet"),
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, first)
        return [first, self.rank(1, 2, RING, "10")]

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "only root can give a process a name and an /etc/hosts of its own")
    def test_a_host_whose_own_name_is_on_the_loopback_is_reached(self):
        """As in Debian's /etc/hosts, 127.0.1.1 is what the name of this host stands for: other hosts would not reach rank 0 there."""
        for hostname, name in (("head", "head"), ("Head", "head.example"), ("local", "local")):
            with self.subTest(name):
                codes, outputs, errors = self.ends(self.ranks_of_a_host(hostname, name))
                self.assertEqual((codes, "".join(errors)), ([0, 0], ""))
                self.assertIn("2 ranks", "".join(outputs))

    def test_a_rank_is_taken_once_and_has_the_size_of_the_others(self):
        first = self.rank(0, 3, "sleep", "1000")
        self.reached().close()
        both = [self.rank(1, 3, "sleep", "1000") for _ in range(2)]
        end = time.monotonic() + programs.TIMEOUT
        while both[0].poll() is None and both[1].poll() is None:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        second, third = sorted(both, key=lambda rank: rank.poll() is not None)
        for rank, why in ((third, "the_rank_is_taken"), (self.rank(2, 4, "true"), "the_size_is_not_that_of_rank_0")):
            codes, _, errors = self.ends([rank])
            self.assertEqual(codes, [1])
            self.assertIn(why, errors[0])
        self.assertIsNone(first.poll())
        self.assertIsNone(second.poll())

    def test_strangers_disturb_no_job(self):
        first = self.rank(0, 2, RING, "10")
        strangers = [self.reached() for _ in range(70)]  # more than GUESTS_MAX
        for stranger, words in zip(strangers[-5:], (b"GET / HTTP/1.1\n\n", b"x" * 5000, b"cmd=meet\n", b"cmd=meet rank=0 size=2\n",
                                                    b"cmd=meet rank=7 size=2\n")):
            try:
                stranger.sendall(words)
                stranger.settimeout(programs.TIMEOUT)
                self.assertNotIn(b"cmd=met\n", stranger.recv(1000))
            except ConnectionResetError:
                pass
        codes, outputs, errors = self.ends([first, self.rank(1, 2, RING, "10")])
        self.assertEqual((codes, errors), ([0, 0], ["", ""]))
        self.assertIn("2 ranks", outputs[0])
        for stranger in strangers:
            stranger.close()

    def test_a_rank_that_is_pushed_out_tries_again(self):
        host, port = self.place.split(":")
        with socket.create_server((host, int(port))) as server:
            server.settimeout(programs.TIMEOUT)
            rank = self.rank(1, 2, "sh", "-c", "read line <&$PMI_FD; echo $line")
            server.accept()[0].close()
            connection, _ = server.accept()
            with connection:
                connection.settimeout(programs.TIMEOUT)
                self.assertEqual(connection.makefile().readline(), "cmd=meet rank=1 size=2\n")
                connection.sendall(b"cmd=met\n")
                time.sleep(0.3)  # the program's socket blocks
                connection.sendall(b"for the program\n")
                self.assertEqual(rank.stdout.readline(), "for the program\n")

    def test_a_thousand_ranks_have_all_cards(self):
        """Not by a million questions: that took two minutes. The job has more sockets than a process may open at first."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < 3000:
            raise unittest.SkipTest("a process may open 3,000 files here at least")
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
        try:
            join = self.rank(0, 1024, os.path.join(os.environ["POSTERN_BUILD"], "tests/apps/join"), self.place, "1024")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        codes, outputs, errors = self.ends([join])
        self.assertEqual((codes, errors), ([0], [""]))
        self.assertIn("1024 ranks have all cards", outputs[0])
        print(outputs[0], end="")

    def test_too_few_files_for_all_ranks_are_told_at_once(self):
        done = subprocess.run(["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", programs.program("postern-run"), "--meet", self.place, "-n", "100",
                               "--rank", "0", "sleep", "1000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=programs.TIMEOUT, check=False, env=programs.environment(XDG_RUNTIME_DIR=self.directory))
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))
        self.assertIn("not enough files for the sockets of 99 ranks: this process may have 64 files open", done.stderr)

    def test_a_rank_that_fails_ends_all(self):
        ranks = [self.rank(0, 3, "sleep", "1000"), self.rank(1, 3, "sleep", "1000"), self.rank(2, 3, "sh", "-c", "sleep 1; exit 7")]
        codes, _, errors = self.ends(ranks)
        self.assertEqual(codes, [7, 1, 7])
        self.assertIn("rank 2 has ended the job with exit code 7", errors[0])
        self.assertIn("rank 0 has ended the job, or its host is lost", errors[1])
        self.assertIn("rank 2 ended with exit code 7", errors[2])

    def test_each_end_of_a_rank_ends_all(self):
        ends = os.path.join(os.environ["POSTERN_BUILD"], "tests/apps/ends")
        for how, code in (("7", 7), ("0", 0), ("exit", 9), ("kill", 137), ("leave", 1)):
            codes, _, errors = self.ends([self.rank(n, 3, ends, how) for n in range(3)])
            self.assertEqual(codes[0], code, errors)
            self.assertNotEqual(codes[2], 0, errors)

    def test_ranks_that_do_not_reach_each_other_are_told_which_setting_to_change(self):
        for interfaces, why in ((("node:a", "node:b"), "is on another machine, or on another node of this one: set PTL_IFACE_NAME to udp"),
                                (("node:a", "udp"), "is on udp, this process on a node: set PTL_IFACE_NAME and PTL_ENCAP alike")):
            codes, _, errors = self.ends([self.rank(n, 2, RING, "10", PTL_IFACE_NAME=name) for n, name in enumerate(interfaces)])
            self.assertNotEqual(codes[0], 0)
            self.assertRegex("".join(errors), why + "|" + why.replace("is on udp, this process on a node", "is on a node, this process on udp"))
        codes, _, errors = self.ends([self.rank(n, 2, RING, "10", PTL_IFACE_NAME="udp:127.0.0.1", PTL_UDP_PORTS=ports)
                                      for n, ports in enumerate(("20480-21503", "21504-22527"))])
        self.assertNotEqual(codes[0], 0)
        self.assertRegex("".join(errors), "rank [01] uses the UDP ports 2[0-9]{4}-2[0-9]{4}, this process 2[0-9]{4}-2[0-9]{4}: set PTL_UDP_PORTS alike")

    def test_ranks_of_portals4_that_do_not_reach_each_other_warn(self):
        """The launcher's library does not know whether they will send messages."""
        program = os.path.join(os.environ["POSTERN_BUILD"], "tests/apps/ends4")
        codes, _, errors = self.ends([self.rank(n, 2, program, "late", PTL_IFACE_NAME=f"node:{n}") for n in range(2)])
        self.assertEqual(codes, [0, 0], errors)
        for n in range(2):
            self.assertEqual(errors[n].count(f"rank {n}: rank {1 - n} is on another machine, or on another node of this one: set PTL_IFACE_NAME"), 1, errors)

    def given(self, *ranks):
        """Processes whose exchange are files: by rank, with their PTL_IFACE_NAME."""
        words = os.path.join(os.environ["POSTERN_BUILD"], "tests/apps/given")
        return self.ends([self.start(words, str(n), str(len(ranks)), self.directory, XDG_RUNTIME_DIR=self.directory, PTL_IFACE_NAME=name)
                          for n, name in enumerate(ranks)])

    def test_cards_make_a_job_by_another_exchange(self):
        codes, outputs, errors = self.given("node", "node", "node")
        self.assertEqual((codes, outputs), ([0, 0, 0], [f"rank {n} of 3 has reached the next\n" for n in range(3)]), errors)
        self.assertIn("use the program's own exchange", errors[0])

    def test_cards_by_udp(self):
        codes, outputs, errors = self.given("udp", "udp")
        self.assertEqual(codes, [0, 0], errors)

    def test_cards_of_another_network_are_refused(self):
        codes, _, errors = self.given("node:a", "node:b")
        self.assertEqual(codes, [1, 1])
        self.assertIn("rank 1 is on another machine, or on another node", errors[0])

    def test_cards_that_are_none_are_refused(self):
        with open(os.path.join(self.directory, "card-1"), "wb") as file:
            file.write(bytes(40))
        process = self.start(os.path.join(os.environ["POSTERN_BUILD"], "tests/apps/given"), "0", "2", self.directory,
                             XDG_RUNTIME_DIR=self.directory, PTL_IFACE_NAME="node")
        codes, _, errors = self.ends([process])
        self.assertEqual(codes, [1])
        self.assertIn("the card of rank 1 is none of postern_job_card()", errors[0])

    def test_a_launcher_that_is_killed_ends_all(self):
        for victim, codes in ((0, [-9, 1]), (1, [1, -9])):
            ranks = [self.rank(n, 2, "sh", "-c", "echo cmd=init >&$PMI_FD; echo up; exec sleep 1000") for n in range(2)]
            for rank in ranks:
                rank.stdout.readline()
            time.sleep(0.3)
            ranks[victim].send_signal(signal.SIGKILL)
            self.assertEqual(self.ends(ranks)[0], codes)

    def test_a_port_that_somebody_has_and_wrong_options_are_told(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.place = f"127.0.0.1:{server.getsockname()[1]}"
            codes, _, errors = self.ends([self.rank(0, 2, "true")])
            self.assertEqual(codes, [1])
            self.assertIn("Address already in use", errors[0])
        for words, part in ((("--meet", "a:1", "-n", "2", "true"), "which rank is to be started"),
                            (("--meet", "a:1", "-n", "2", "-r", "2", "true"), "--rank takes a number from 0 to 1"),
                            (("--rank", "1", "-n", "2", "true"), "--rank goes with --meet"),
                            (("--meet", "a:1", "--hosts", "a", "-n", "2", "-r", "1", "true"), "exclude each other")):
            done = programs.run("postern-run", *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(part, done.stderr)
        for place in ("nowhere", "a:", "a:0", "a:65536", "[::1]:70000", "a:-1", "a:http", ""):
            done = programs.run("postern-run", "--meet", place, "-n", "2", "-r", "0", "true")
            self.assertEqual(done.returncode, 2)
            self.assertIn(f'a port from 1 to 65535, not "{place}"', done.stderr)
        done = programs.run("postern-run", "--meet", "nowhere:1", "-n", "2", "-r", "0", "true", PTL_IFACE_NAME="node")
        self.assertEqual(done.returncode, 1)
        self.assertIn('"nowhere:1" names no host', done.stderr)


if __name__ == "__main__":
    unittest.main()
