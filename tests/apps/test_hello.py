#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The guide's example between two processes."""
import os
import re
import unittest

import programs

MEMORY_MOST = 14 << 20  # bytes of memory that a program with one interface has when it has done nothing, the program's among it


def memory_of(process):
    """Bytes in memory, those of files among them."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        return 1024 * int(re.search(r"^VmRSS:\s+(\d+)", status.read(), re.MULTILINE)[1])


def drivers_of(process):
    """Drivers of DPDK that it has loaded."""
    with open(f"/proc/{process.pid}/maps", encoding="utf-8") as maps:
        return set(re.findall(r"librte_(?:net|mempool|bus)_\w+", maps.read()))


class Hello(programs.Case):
    def test_a_greeting_arrives_in_the_other_process(self):
        receiver = self.start("examples/hello", "receive", **self.node())
        self.await_line(receiver, "waiting at 1:1")
        sender = self.expect_success(programs.run("examples/hello", "send", "1:1", **self.node()))
        self.assertEqual(sender.stdout, "1:1 has taken the greeting\n")
        code, out, err = self.finish(receiver)
        self.assertEqual(code, 0, err)
        self.assertIn("says: Hello from the other side.", out)

    def test_a_greeting_arrives_on_a_node_without_an_address(self):
        node = dict(XDG_RUNTIME_DIR=self.directory)
        receiver = self.start("examples/hello", "receive", **node)
        self.await_line(receiver, "waiting at ")
        self.expect_success(programs.run("examples/hello", "send", **node))
        code, out, err = self.finish(receiver)
        self.assertEqual(code, 0, err)
        self.assertIn("says: Hello from the other side.", out)

    def test_an_address_that_is_none_is_named(self):
        for word in ("1:2:3", "1:2x", "1", "1.2.3:4", "1.2.3.256:4"):
            done = programs.run("examples/hello", "send", word, **self.node())
            self.assertEqual(done.returncode, 2)
            self.assertIn(f'"{word}" is no NID:PID', done.stderr)

    def test_a_rank_without_a_partner_says_how_to_have_one(self):
        done = programs.run("postern-run", "-n", "1", programs.program("examples/pingpong4"))
        self.expect_success(done)
        self.assertIn("postern-run -n 2 pingpong4", done.stderr)

    def test_a_node_over_udp_is_written_as_its_address(self):
        here = self.all_users()
        receiver = self.start("examples/hello", "receive", PTL_IFACE_NAME=f"udp:{here}")
        self.await_line(receiver, f"waiting at {here}:1")
        sender = self.expect_success(programs.run("examples/hello", "send", f"{here}:1", PTL_IFACE_NAME=f"udp:{here}"))
        self.assertEqual(sender.stdout, f"{here}:1 has taken the greeting\n")
        self.assertIn(f"{here}:", self.finish(receiver)[1])

    @unittest.skipUnless(os.getuid() == 0, "another user's program is started by root")
    def test_a_greeting_arrives_in_another_user_s_process(self):
        receiver = self.start("examples/hello", "receive", PTL_IFACE_NAME=f"udp:{self.all_users()}")
        self.await_line(receiver, "waiting at ")
        self.expect_success(self.other_user("examples/hello", "send"))
        code, out, err = self.finish(receiver)
        self.assertEqual(code, 0, err)
        self.assertIn("says: Hello from the other side.", out)

    @unittest.skipUnless(os.getuid() == 0, "another user's program is started by root")
    def test_an_endpoint_of_mx_says_that_it_is_another_user_s(self):
        waits = self.start("examples/pingpong_mx", PTL_IFACE_NAME=f"udp:{self.all_users()}", PTL_LOG_LEVEL="info", PTL_MX_HOSTNAME="here")
        self.await_line(waits, "here:0")
        done = self.other_user("examples/pingpong_mx", "here:0", PTL_MX_HOSTNAME="here")
        self.assertEqual(done.returncode, 255)
        self.assertIn("the endpoint is another user's; run both programs as one user", done.stderr)
        waits.kill()
        self.assertRegex(self.finish(waits)[2], f"of user {programs.OTHER_USER} .*run both programs as one user, as two-sided messages")

    def test_an_endpoint_of_mx_that_is_open_says_what_to_set(self):
        node = self.node(PTL_MX_HOSTNAME="here")
        self.await_line(self.start("examples/pingpong_mx", **node), "here:0")
        done = programs.run("examples/pingpong_mx", **node)
        self.assertEqual(done.returncode, 255)
        self.assertIn("an endpoint of this id is open on this board", done.stderr)
        self.assertNotIn("PTL_PID_ANY", done.stderr)
        hosts = re.findall(r"(PTL_\w+)=(\S+) (PTL_\w+)=(\S+?)[,\s]", done.stderr.replace("127.0.0.", self.all_users().rsplit(".", 1)[0] + "."))
        self.assertEqual(len(hosts), 2)
        for port, interface, hostname, host in hosts:
            self.await_line(self.start("examples/pingpong_mx", **{port: interface, hostname: host}), f"{host}:0")
        self.expect_success(programs.run("examples/pingpong_mx", f"{hosts[1][3]}:0", PTL_IFACE_NAME=f"udp:{self.all_users()}"))

    def test_a_greeting_that_nobody_takes_is_told(self):
        self.server()
        done = programs.run("examples/hello", "send", "1:1", **self.node())
        self.assertEqual(done.returncode, 1)
        self.assertIn("1:1 is there, but takes no greeting", done.stderr)

    def test_nobody_there_is_told(self):
        done = programs.run("examples/hello", "send", "1:1", **self.node(PTL_PEER_TIMEOUT="1s"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("PTL_EVENT_SEND_FAIL", done.stderr)
        self.assertIn("Start hello receive first, with the same PTL_IFACE_NAME: udp for another machine", done.stderr)
        done = programs.run("examples/hello", "send", "1:2", PTL_PEER_TIMEOUT="1s", PTL_NID="1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("PTL_EVENT_SEND_FAIL", done.stderr)

    def test_a_second_receiver_says_what_to_do(self):
        self.await_line(self.start("examples/hello", "receive", **self.node()), "waiting at 1:1")
        done = programs.run("examples/hello", "receive", **self.node())
        self.assertEqual(done.returncode, 1)
        self.assertIn("process id 1 is in use", done.stderr)
        self.assertIn("end the process that has it", done.stderr)
        self.assertIn("or the process id cannot be used", done.stderr)

    def test_without_a_place_to_meet_a_process_is_alone(self):
        with open(f"{self.directory}/postern", "w", encoding="ascii"):
            pass
        done = programs.run("examples/hello", XDG_RUNTIME_DIR=self.directory)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"no node can be used, so this process reaches itself only: node: {self.directory}/postern is no directory", done.stderr)
        self.assertIn("remove it, or set XDG_RUNTIME_DIR", done.stderr)
        self.assertNotIn("cannot be reached", done.stderr)
        self.assertEqual(programs.run("examples/hello", XDG_RUNTIME_DIR=self.directory, PTL_IFACE_NAME=";").stderr, "")
        done = programs.run("examples/hello", XDG_RUNTIME_DIR=self.directory, PTL_IFACE_NAME="node")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no directory", done.stderr)

    def test_a_process_that_is_alone_and_names_another_is_told(self):
        with open(f"{self.directory}/postern", "w", encoding="ascii"):
            pass
        for settings in ({"XDG_RUNTIME_DIR": self.directory}, {"PTL_ENCAP": "udp", "PTL_IP": "198.18.7.1/24"}, {"PTL_IFACE_NAME": ";"}):
            done = programs.run("examples/hello", "send", "7:1", PTL_PEER_TIMEOUT="1s", **settings)
            self.assertEqual(done.returncode, 1, settings)
            self.assertIn("process 7:1 cannot be reached, because this interface leads to no other process", done.stderr, settings)
            if "PTL_IFACE_NAME" not in settings:
                self.assertIn("this process reaches itself only", done.stderr, settings)

    def test_a_runtime_directory_that_cannot_be_used_is_told(self):
        for runtime in ("/proc/nowhere", "relative", "/dev/null"):
            done = programs.run("examples/hello", XDG_RUNTIME_DIR=runtime)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"XDG_RUNTIME_DIR={runtime} is not a directory of user {os.getuid()}", done.stderr)
            self.assertIn("unset it in all", done.stderr)
        self.assertEqual(programs.run("examples/hello", XDG_RUNTIME_DIR="").stderr, "")
        # A launcher copies this one to hosts where the user is not logged in.
        self.assertEqual(programs.run("examples/hello", XDG_RUNTIME_DIR=f"/run/user/{os.getuid()}").stderr, "")

    def test_a_process_has_little_memory_before_it_sends_and_no_driver(self):
        for settings in ({"PTL_IFACE_NAME": "loop:a"}, self.node()):
            receiver = self.start("examples/hello", "receive", **settings)
            self.await_line(receiver, "waiting at ")
            self.assertLess(memory_of(receiver), MEMORY_MOST, settings)
            self.assertEqual(drivers_of(receiver), set(), settings)

    def test_a_cpu_that_is_not_here_is_not_called_a_lack_of_memory(self):
        done = programs.run("examples/hello", PTL_POLL_CORE="4095")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("postern: "), 1, done.stderr)
        self.assertIn("PTL_POLL_CORE=4095: there is no such CPU here", done.stderr)

    def test_an_example_of_one_process_with_several_interfaces_names_the_setting(self):
        for name, number in (("mpi_messages", "two"), ("file_servers", "five")):
            done = programs.run(f"examples/{name}", **self.node())
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"{name} is one process with {number} interfaces, but PTL_IFACE_NAME names 1: unset it", done.stderr)

    def test_wrong_words_are_told(self):
        for words in (("send", "nonsense"), ("receive", "1:1"), ("--help",)):
            self.assertEqual(programs.run("examples/hello", *words).returncode, 2, words)


class Traffic(programs.Case):
    def test_an_interface_that_closes_tells_which_way_messages_went(self):
        receiver = self.start("examples/hello", "receive", **self.node(PTL_LOG_LEVEL="info"))
        self.await_line(receiver, "waiting at 1:1")
        sender = self.expect_success(programs.run("examples/hello", "send", **self.node(PTL_LOG_LEVEL="info")))
        self.assertRegex(sender.stderr, r"interface 0, 1:\d+ on node.*: \d+ peers, 1 messages sent \(26 bytes\), \d+ received \(\d+ bytes\), \d+ retrans")
        self.assertRegex(self.finish(receiver)[2], r"interface 0, 1:1 on node.*: \d+ peers, .* received \(26 bytes\)")


if __name__ == "__main__":
    programs.main()
