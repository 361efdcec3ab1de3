#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""postern-info as a user runs it."""
import os
import re

import programs

SETTINGS = ["PTL_IFACE_NAME", "PTL_NID", "PTL_PROGRESS", "PTL_MTU", "PTL_PEER_TIMEOUT", "PTL_LOG_LEVEL"]


class Info(programs.Case):
    def test_text_has_every_part(self):
        done = self.expect_success(programs.run("postern-info"))
        for word in ["Postern ", "Portals 3.2", "loopback", "node", "match entries"] + SETTINGS:
            self.assertIn(word, done.stdout)
        self.assertEqual(done.stderr, "")

    def test_json_has_every_part(self):
        info = self.expect_json(programs.run("postern-info", "--json", PTL_NID="17"))
        self.assertEqual(info["interfaces"][0]["nid"], 17)
        self.assertGreater(info["interfaces"][0]["limits"]["max_match_entries"], 0)
        self.assertTrue(any(device["name"] == "node" for device in info["devices"]))
        settings = {setting["name"]: setting for setting in info["settings"]}
        for name in SETTINGS:
            self.assertTrue(settings[name]["help"])
        self.assertEqual(settings["PTL_NID"]["value"], "17")
        self.assertEqual(settings["PTL_PROGRESS"]["default"], "auto")

    def test_every_interface_is_looked_at(self):
        info = self.expect_json(programs.run("postern-info", "-j", PTL_IFACE_NAME="loop:a;loop:a;"))
        self.assertEqual(len(info["interfaces"]), 3)
        self.assertTrue(all(interface["usable"] for interface in info["interfaces"]))

    def test_an_interface_is_told_as_a_board_of_mx(self):
        setting = {"PTL_NID": "17", "PTL_MX_HOSTNAME": "alpha.example.org", "PTL_IFACE_NAME": "loop:a;loop:b"}
        done = self.expect_success(programs.run("postern-info", **setting))
        self.assertRegex(done.stdout, r"(?m)^ +board for MX +alpha\.example\.org:1, NIC id 0250[0-9a-f]{8}$")
        boards = self.expect_json(programs.run("postern-info", "--json", **setting))["interfaces"]
        self.assertEqual([board["board"] for board in boards], ["alpha.example.org:0", "alpha.example.org:1"])
        self.assertTrue(all(int(board["nic_id"], 16) == 0x0250 << 32 | board["nid"] for board in boards))

    def libfabric(self, **settings):
        done = programs.run("postern-info", PTL_IFACE_NAME="loop:a", **settings)
        line = re.search(r"(?m)^libfabric:\n  ([+-]) (.*)$", done.stdout)
        told = self.expect_json(programs.run("postern-info", "--json", PTL_IFACE_NAME="loop:a", **settings))["libfabric"]
        self.assertEqual((told["found"], told["note"]), (line.group(1) == "+", line.group(2)))
        return told

    def test_whether_libfabric_finds_the_provider_is_told(self):
        if self.libfabric()["note"].startswith("is not installed"):
            self.skipTest("there is no libfabric here")
        empty = os.path.join(self.directory, "empty")
        os.mkdir(empty)
        told = self.libfabric(FI_PROVIDER_PATH=empty)
        self.assertFalse(told["found"])
        self.assertIn(f"is not in FI_PROVIDER_PATH={empty}", told["note"])
        with open(os.path.join(self.directory, "libpostern-fi.so"), "w", encoding="ascii"):
            pass
        both = f"{empty}:{self.directory}"
        for providers in ("", "postern", "tcp,postern", "postern;ofi_rxm", "^tcp", "^posternish"):
            told = self.libfabric(FI_PROVIDER_PATH=both, FI_PROVIDER=providers)
            self.assertTrue(told["found"], told)
            self.assertEqual(told["note"], f"finds libpostern-fi.so in {self.directory}")
        for providers in ("tcp", "^postern", "^tcp,postern", "posternish"):
            told = self.libfabric(FI_PROVIDER_PATH=both, FI_PROVIDER=providers)
            self.assertFalse(told["found"])
            self.assertIn("leaves the provider out", told["note"])

    def test_an_interface_that_cannot_be_opened_is_told(self):
        done = programs.run("postern-info", PTL_IFACE_NAME="nonesuch0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot be opened", done.stdout)
        self.assertIn("nonesuch0", done.stdout)

    def test_a_node_is_told_with_those_who_are_there(self):
        self.server()
        done = self.expect_success(programs.run("postern-info", **self.node()))
        self.assertRegex(done.stdout, rf"(?m)^ +directory of the node +{programs.DIRECTORIES}/postern/{os.path.basename(self.directory)}$")
        self.assertRegex(done.stdout, rf"(?m)^ +this process +1:\d+, of user {os.getuid()}$")
        self.assertRegex(done.stdout, rf"(?m)^ +other processes +1:1, of user {os.getuid()}$")
        node = self.expect_json(programs.run("postern-info", "--json", **self.node()))["interfaces"][0]["node"]
        self.assertEqual([process["pid"] for process in node["items"]], [1])
        loop = self.expect_json(programs.run("postern-info", "--json", PTL_IFACE_NAME="loop:a"))
        self.assertIsNone(loop["interfaces"][0]["node"])

    def test_a_wrong_setting_is_told(self):
        done = programs.run("postern-info", PTL_PROGRESS="sometimes")
        self.assertEqual(done.returncode, 1)
        self.assertIn("sometimes", done.stdout)

    def test_wrong_options_get_code_2(self):
        for word in ("--nonsense", "word"):
            self.assertEqual(programs.run("postern-info", word).returncode, 2)

    def test_help_and_version_work(self):
        self.assertIn("--json", self.expect_success(programs.run("postern-info", "--help")).stdout)
        self.assertRegex(self.expect_success(programs.run("postern-info", "-V")).stdout,
                         r"^postern-info \d+\.\d+\.\d+$")


if __name__ == "__main__":
    programs.main()
