#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The commands that scripts/cards takes from doc/cards.md stand there: the script itself runs too seldom to notice that a text moved."""
import importlib.machinery
import importlib.util
import os
import re
import unittest

PATH = os.path.join(os.environ["POSTERN_SOURCE"], "scripts", "cards")


def cards():
    loader = importlib.machinery.SourceFileLoader("cards", PATH)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("cards", loader))
    loader.exec_module(module)
    return module


class Documented(unittest.TestCase):
    def test_every_command_stands_in_the_document(self):
        script = cards()
        with open(PATH, encoding="utf-8") as file:
            templates = re.findall(r'documented\(f?"([^"]*)"', file.read())
        self.assertGreaterEqual(len(templates), 6)
        for template in templates:
            for binder in ("vfio-pci", "uio_pci_generic"):
                for number, role in enumerate(("--server", "--peer 1:1"), 1):
                    script.documented(template.format(binder=binder, number=number, role=role), "0000:03:00.0")

    def test_a_command_that_is_gone_is_reported(self):
        script = cards()
        with self.assertRaises(script.Failure):
            script.documented("sudo make me a sandwich", "0000:03:00.0")


if __name__ == "__main__":
    unittest.main(verbosity=2)
