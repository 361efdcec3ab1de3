#!/usr/bin/env python3
"""What goes wrong is told in one sentence with its remedy: limits of the process, settings that mean nothing, full disks."""
import resource
import subprocess

import programs


class Complaints(programs.Case):
    def info(self, limit=None, value=0, **settings):
        def apply():
            if limit is not None:
                resource.setrlimit(limit, (value, value))
        return subprocess.run([programs.program("postern-info")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              preexec_fn=apply, timeout=programs.TIMEOUT, check=False,
                              env=programs.environment(**settings))

    def expect(self, done, code, *parts):
        self.assertEqual(done.returncode, code, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_limits_that_stop_dpdk_are_named(self):
        self.expect(self.info(resource.RLIMIT_FSIZE, 0), 1, "ulimit -f unlimited")
        self.expect(self.info(resource.RLIMIT_NOFILE, 8), 1, "cannot start DPDK", "ulimit -n")

    def test_dpdk_is_not_asked_for_help(self):
        for word in ("--help", "-h", "--hel"):
            self.expect(self.info(PTL_EAL_ARGS=word), 1, word, "leave it out")

    def test_settings_without_effect_are_warned_about(self):
        self.expect(self.info(PTL_IP="10.0.0.1/24"), 0, "PTL_IP has no effect without PTL_ENCAP=udp")
        self.expect(self.info(PTL_PROGRESS="inline", PTL_POLL="busy"), 0, "PTL_POLL has no effect")
        self.expect(self.info(PTL_NID="1;2"), 0, "PTL_NID has 2 items", "1 interface:")
        self.assertEqual(self.info(PTL_NID="1;2", PTL_IFACE_NAME=";").stderr, "")

    def test_names_and_subnets_that_cannot_be_meant_are_refused(self):
        self.expect(self.info(PTL_IFACE_NAME="loop:"), 1, "loop:NAME")
        self.expect(self.info(PTL_ENCAP="udp", PTL_IP="10.0.0.1/0"), 1, "/24")

    def test_debug_messages_are_shown_by_module(self):
        self.expect(self.info(PTL_DEBUG="transprt"), 1, "transprt", "transport")
        done = self.info(PTL_DEBUG="interface, port")
        self.expect(done, 0, "interface 0 is 1:", "buffers")
        self.assertNotIn("EAL", done.stderr)
        self.expect(self.info(PTL_DEBUG="all"), 0, "EAL argument 0", "interface 0 is 1:")

    def test_a_full_disk_is_told(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([programs.program("postern-info")], stdout=full, stderr=subprocess.PIPE, text=True,
                                  env=programs.environment(), timeout=programs.TIMEOUT, check=False)
        self.expect(done, 1, "No space left")


if __name__ == "__main__":
    programs.main()
