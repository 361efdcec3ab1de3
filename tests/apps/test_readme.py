#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What README and doc/guide.md tell a newcomer is true: settings and files exist. test_install.py compiles the guide's program."""
import os
import re
import subprocess

import programs

SOURCE = os.environ.get("POSTERN_SOURCE", ".")


DOCUMENTS = ["README.md", "CONTRIBUTING.md"] + ["doc/" + name for name in os.listdir(os.path.join(SOURCE, "doc"))
                                                if name.endswith(".md")]
OF_LIBRARIES = {"__tls_get_addr", "rte_memcpy"}  # functions of others that no source here calls by name


def text(name):
    with open(os.path.join(SOURCE, name), encoding="utf-8") as file:
        return file.read()


class Readme(programs.Case):
    def test_its_settings_are_settings_of_the_library(self):
        info = self.expect_json(programs.run("postern-info", "--json"))
        told = set(re.findall(r"PTL_(?:[A-Z]+_)*[A-Z]+(?=[`= ;])", "".join(re.findall(r"`PTL_[^`]*`", text("doc/guide.md")))))
        self.assertGreater(len(told), 5)
        read = set()  # by a front end or a launcher, without being settings
        for folder, _, files in os.walk(os.path.join(SOURCE, "lib")):
            for name in files:
                read |= set(re.findall(r'"(PTL_[A-Z_]+)"', text(os.path.join(folder, name))))
        self.assertLessEqual(told, {setting["name"] for setting in info["settings"]} | read)

    def test_what_documents_link_to_is_there(self):
        for name in DOCUMENTS:
            for target in re.findall(r"\]\(([^):#]+)[^):]*\)", text(name)):
                self.assertTrue(os.path.exists(os.path.join(SOURCE, os.path.dirname(name), target)), f"{name}: {target}")

    def test_functions_that_documents_name_are_there(self):
        sources = ""
        for room in ("apps", "include", "lib", "pmd-glue", "share", "tests"):
            for folder, _, files in os.walk(os.path.join(SOURCE, room)):
                sources += "".join(text(os.path.join(folder, name)) for name in files if name.endswith((".c", ".h")))
        there = set(re.findall(r"\w+(?=\()", sources)) | OF_LIBRARIES
        for name in DOCUMENTS:
            self.assertEqual(set(re.findall(r"`(\w+)\(\)`", text(name))) - there, set(), name)

    def test_the_build_of_a_package_runs_no_test(self):
        """It builds none but the examples, and runs in places without a second CPU or a network."""
        self.assertRegex(text("debian/rules"), r"(?m)^override_dh_auto_test:\n(?!\t)")

    def test_the_drawing_is_that_of_its_text(self):
        done = subprocess.run([os.path.join(SOURCE, "scripts", "drawing"), "--check"], stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        drawn = set(re.findall(r">([^<]+)</text>", text("doc/overview.svg")))
        for port in ("node", "udp", "eth1", "0000:03:00.0", "posternd"):
            self.assertIn(port, drawn)

    def test_what_the_first_screen_names_is_built(self):
        for program in re.findall(r"build/apps/(\S+)", text("README.md")):
            self.assertTrue(os.path.exists(programs.program(program)), program)


if __name__ == "__main__":
    programs.main()
