#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong is told in one sentence with its remedy: limits of the process, settings that mean nothing, full disks.

Covers: apps/node/main.c, pmd-glue/driver.c.
"""
import glob
import os
import resource
import socket
import struct
import subprocess

import programs

DEVICE = "net_null0"  # for which DPDK must start


def candidates(pid):
    """The UDP ports that a process may have: doc/wire.md, section 2."""
    for number in range(8 * pid + 1, 8 * pid + 9):
        number = number * 0x9e3779b97f4a7c15 % 2 ** 64
        number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9 % 2 ** 64
        number = (number ^ number >> 27) * 0x94d049bb133111eb % 2 ** 64
        yield 20480 + ((number >> 32) * 1024 >> 32)


class Complaints(programs.Case):
    def info(self, limit=None, value=0, user=None, **settings):
        def apply():
            if limit is not None:
                resource.setrlimit(limit, (value, value))
        return subprocess.run([programs.program("postern-info")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              preexec_fn=apply, timeout=programs.TIMEOUT, check=False, user=user,
                              env=programs.environment(**settings))

    def expect(self, done, code, *parts):
        self.assertEqual(done.returncode, code, f"{done.args} {done.stderr}")
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_limits_that_stop_dpdk_are_named(self):
        self.expect(self.info(resource.RLIMIT_FSIZE, 0, PTL_IFACE_NAME=DEVICE), 1, "ulimit -f unlimited")
        self.expect(self.info(resource.RLIMIT_NOFILE, 8, PTL_IFACE_NAME=DEVICE), 1, "cannot start DPDK", "ulimit -n")

    def test_dpdk_is_not_asked_for_help(self):
        for word in ("--help", "-h", "--hel"):
            self.expect(self.info(PTL_EAL_ARGS=word), 1, word, "remove it")

    def test_a_process_of_another_version_is_named_once_a_minute(self):
        address = self.all_users()
        nid, = struct.unpack("!I", socket.inet_aton(address))
        server = self.start("postern-perf", "--server", "--pid", "7", PTL_IFACE_NAME=f"udp:{address}")
        self.await_line(server, f"Serving at {address}:7")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as older:
            older.bind((address, next(candidates(9))))
            for _ in range(3):
                for port in candidates(7):
                    older.sendto(struct.pack("<BBHI4I", 4 << 4 | 3, 0, 64, 0, nid, 7, nid, 9) + bytes(40), (address, port))
        said = server.stderr.readline()
        self.assertIn(f"{nid}:9 has version 4 of the wire protocol, and this process 5: install the same release of Postern on both", said)
        server.terminate()
        self.assertNotIn("version", self.finish(server)[2])

    def test_settings_without_effect_are_warned_about(self):
        self.expect(self.info(PTL_IP="10.0.0.1/24"), 0, "PTL_IP has no effect without PTL_ENCAP=udp")
        self.expect(self.info(PTL_PROGRESS="inline", PTL_POLL="busy"), 0, "PTL_POLL has no effect")
        self.expect(self.info(PTL_VLAN="1;2"), 0, "PTL_VLAN has 2 items", "1 interface:")
        self.expect(self.info(PTL_NID="1;2"), 1, "PTL_NID is \"1;2\"", "names 1 interface;")
        self.assertEqual(self.info(PTL_NID="1;2", PTL_IFACE_NAME=";").stderr, "")

    def test_names_and_subnets_that_cannot_be_meant_are_refused(self):
        self.expect(self.info(PTL_IFACE_NAME="loop:"), 1, "loop:NAME")
        self.expect(self.info(PTL_ENCAP="udp", PTL_IP="10.0.0.1/0"), 1, "/24")

    def test_an_interface_that_is_no_ethernet_is_told_to_every_user(self):
        try:
            done = self.info(user=programs.OTHER_USER if os.getuid() == 0 else None, PTL_IFACE_NAME="lo")
        except PermissionError:
            self.skipTest("the build is where only root may look")
        self.expect(done, 1, "lo: the interface is not an Ethernet")

    def test_debug_messages_are_shown_by_module(self):
        self.expect(self.info(PTL_DEBUG="transprt"), 1, "transprt", "transport")
        done = self.info(PTL_DEBUG="interface, port")
        self.expect(done, 0, "interface 0 is ", "buffers")
        self.assertNotIn("EAL", done.stderr)
        self.assertNotIn("EAL", self.info(PTL_DEBUG="all").stderr)  # which a node does without
        self.expect(self.info(PTL_DEBUG="all", PTL_IFACE_NAME=DEVICE), 0, "EAL argument 0", "interface 0 is ")

    def test_a_driver_that_is_not_installed_is_named_with_its_package(self):
        places = glob.glob("/usr/lib/*/dpdk/pmds-*")
        if os.getuid() != 0 or len(places) != 1:
            self.skipTest("only root can hide drivers, and only where Debian has them")
        script = f"cp -a {places[0]}/. $0 && rm $0/librte_net_$2.* && mount --bind $0 {places[0]} && " \
            "ip link add ptn-a type veth peer name ptn-b && ip link set ptn-a up && exec $1"
        for device, driver in (("net_null0", "null"), ("net_tap0,iface=ptn-tap", "tap"), ("xdp:ptn-a", "af_xdp")):
            place = os.path.join(self.directory, driver)
            os.mkdir(place)
            done = subprocess.run(["unshare", "-mn", "sh", "-c", script, place, programs.program("postern-info"), driver],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=programs.TIMEOUT,
                                  check=False, env=programs.environment(PTL_IFACE_NAME=device))
            self.expect(done, 1, "is not installed: on Debian apt install librte-net-" + driver.replace("_", "-"))

    def test_posternd_says_which_option_is_wrong(self):
        for words, part in (("--per-user 0", "from 1 to 256, not \"0\""), ("--per-user 257", "not \"257\""), ("--mtu 1", "not \"1\""),
                            ("--group nobodys", "there is no group \"nobodys\""), ("--group 4294967295", "there is no group"),
                            ("eth1", "\"eth1\" is not an option: to name a device, give --iface NAME"), ("--mtu 1500", "Give --iface NAME")):
            done = subprocess.run([programs.program("posternd")] + words.split(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  timeout=programs.TIMEOUT, check=False, env=programs.environment())
            self.expect(done, 2, part, "posternd --help")
        done = subprocess.run([programs.program("posternd"), "--iface", "eth9"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=programs.TIMEOUT, check=False, env=programs.environment(PTL_ENCAP="udp", PTL_IP="10.0.0.1/24"))
        self.expect(done, 1, "PTL_ENCAP=udp does not go through posternd")

    def test_posternd_says_why_it_has_no_directory(self):
        if os.getuid() != 0:
            self.skipTest("only root can mount a file system")
        script = "mount -t tmpfs -o $1 tmpfs /run && ip link add ptn-a type veth peer name ptn-b && ip link set ptn-a up && exec $0 --iface ptn-a"
        for options, part in (("ro", "Read-only file system: let root write"), ("nr_inodes=1", "No space left on device: remove files from that file system")):
            done = subprocess.run(["unshare", "-mn", "sh", "-c", script, programs.program("posternd"), options], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, timeout=programs.TIMEOUT, check=False, env=programs.environment())
            self.expect(done, 1, f"/run/postern/ptn-a cannot be made, or is another user's: {part}")

    def test_too_few_files_are_told(self):
        for limit in range(8, 40, 2):
            for device, remedy in ((DEVICE, "ulimit -n 64"), ("node:few", "ulimit -n")):
                done = self.info(resource.RLIMIT_NOFILE, limit, PTL_IFACE_NAME=device)
                if done.returncode != 0:
                    self.expect(done, 1, "Too many open files", remedy)

    def test_too_few_threads_are_told(self):
        if os.getuid() != 0:
            self.skipTest("only root may become a user who has no processes")
        os.chown(self.directory, programs.OTHER_USER, -1)
        for limit in range(1, 4):
            try:
                done = self.info(resource.RLIMIT_NPROC, limit, user=programs.OTHER_USER, XDG_RUNTIME_DIR=self.directory, PTL_IFACE_NAME=DEVICE)
            except PermissionError:
                self.skipTest("the build is where only root may look")
            self.expect(done, 1, "cannot start DPDK", f"may have {limit} processes and threads", "ulimit -u")
        done = self.info(resource.RLIMIT_NPROC, 1, user=programs.OTHER_USER, XDG_RUNTIME_DIR=self.directory, PTL_IFACE_NAME="loop:a")
        self.expect(done, 1, "cannot start the thread", "may have 1 processes and threads", "ulimit -u")

    def shell(self, line):
        return subprocess.run(["sh", "-c", line], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, env=programs.environment(PTL_NID="1"), timeout=programs.TIMEOUT, check=False)

    def test_results_that_cannot_be_written_are_told(self):
        for name, words, code in (("info", "--json", 1), ("info", "doctor --root /nowhere", 1), ("info", "--version", 1),
                                  ("perf", "--json --iterations 10 --sizes 8 latency", 1), ("perf", "--help", 1),
                                  ("ping", "--count 1 --pid 7 1:7", 2), ("ping", "--interval 10ms --pid 7 1:7", 2), ("console", "--help", 1),
                                  ("top", "--once --interval 0.1", 1)):
            program = programs.program(f"postern-{name}")
            self.expect(self.shell(f"{program} {words} > /dev/full"), code, f"postern-{name}: standard output")
            self.expect(self.shell(f"{program} {words} >&-"), code, f"postern-{name}: standard output")

    def test_a_server_says_at_once_that_its_line_is_lost(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            server = subprocess.Popen([programs.program("postern-perf"), "--server"], stdout=full, stderr=subprocess.PIPE, text=True,
                                      env=programs.environment(**self.node()))
        self.addCleanup(self.end, server)
        self.assertIn("standard output cannot be written to: No space left on device", server.stderr.readline())

    def test_a_script_ends_when_its_output_cannot_be_written(self):
        done = self.shell(f"echo 'show ni\nwatch stats 10s 1000' | {programs.program('postern-console')} > /dev/full")
        self.expect(done, 1, "postern-console: standard output cannot be written to: No space left on device")

    def test_a_closed_output_is_no_other_file(self):
        plot = os.path.join(self.directory, "plot.svg")
        self.shell(f"{programs.program('postern-perf')} --plot {plot} --iterations 10 --sizes 8 latency >&-")
        with open(plot, encoding="utf-8") as file:
            self.assertTrue(file.read().startswith("<?xml"))

    def test_a_trace_without_a_place_is_refused(self):
        done = programs.run("postern-perf", "--trace", "/nowhere/x.json")
        self.expect(done, 1, "/nowhere/x.json", "give --trace another path")


if __name__ == "__main__":
    programs.main()
