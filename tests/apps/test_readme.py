#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the README tells a newcomer is true: its settings and files exist. test_install.py compiles its program."""
import os
import re

import programs

SOURCE = os.environ.get("POSTERN_SOURCE", ".")


def readme():
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        return file.read()


class Readme(programs.Case):
    def test_its_settings_are_those_of_the_library(self):
        info = self.expect_json(programs.run("postern-info", "--json"))
        told = re.findall(r"^\| `(PTL_[A-Z_]+)` \|", readme(), re.MULTILINE)
        self.assertEqual(told, [setting["name"] for setting in info["settings"]])

    def test_what_it_links_to_is_there(self):
        for target in re.findall(r"\]\(([^):]+)\)", readme()):
            self.assertTrue(os.path.exists(os.path.join(SOURCE, target)), target)


if __name__ == "__main__":
    programs.main()
