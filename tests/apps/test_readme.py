#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the README tells a newcomer is true: its settings and files exist. test_install.py compiles its program."""
import os
import re

import programs

SOURCE = os.environ.get("POSTERN_SOURCE", ".")


DOCUMENTS = ["README.md", "CONTRIBUTING.md"] + ["doc/" + name for name in os.listdir(os.path.join(SOURCE, "doc"))
                                                if name.endswith(".md")]


def text(name):
    with open(os.path.join(SOURCE, name), encoding="utf-8") as file:
        return file.read()


class Readme(programs.Case):
    def test_its_settings_are_settings_of_the_library(self):
        info = self.expect_json(programs.run("postern-info", "--json"))
        told = set(re.findall(r"PTL_(?:[A-Z]+_)*[A-Z]+(?=[`= ;])", "".join(re.findall(r"`PTL_[^`]*`", text("README.md")))))
        self.assertGreater(len(told), 5)
        self.assertLessEqual(told, {setting["name"] for setting in info["settings"]})

    def test_what_documents_link_to_is_there(self):
        for name in DOCUMENTS:
            for target in re.findall(r"\]\(([^):#]+)[^):]*\)", text(name)):
                self.assertTrue(os.path.exists(os.path.join(SOURCE, os.path.dirname(name), target)), f"{name}: {target}")


if __name__ == "__main__":
    programs.main()
