#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What scripts/cards reads stands there: commands in doc/cards.md, and the fix in doctor's report. The script itself runs too seldom to notice
that a text moved.
"""
import importlib.machinery
import importlib.util
import os
import re
import unittest

import programs

CARD = "0000:03:00.0"
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


class Doctor(programs.Case):
    """doctor on a machine of files, which has a card and neither an IOMMU nor hugepages."""

    def told(self, driver):
        device = os.path.join(self.directory, "sys/bus/pci/devices", CARD)
        os.makedirs(device)
        os.symlink(f"/drivers/{driver}", os.path.join(device, "driver"))
        with open(os.path.join(device, "class"), "w", encoding="utf-8") as file:
            file.write("0x020000\n")
        done = programs.run("postern-info", "doctor", "--root", self.directory, PTL_IFACE_NAME=CARD)
        self.assertEqual(done.returncode, 1, done.stderr)
        return done.stdout

    def test_how_to_bind_a_card_is_found_in_its_report(self):
        script, told = cards(), self.told("e1000e")
        self.assertTrue(script.doctor_binds(told, "uio_pci_generic", CARD), told)
        self.assertFalse(script.doctor_binds(told, "uio_pci_generic", "0000:04:00.0"))
        self.assertFalse(script.doctor_binds(told, "vfio-pci", CARD))

    def test_how_to_get_hugepages_is_found_in_its_report(self):
        script, told = cards(), self.told("uio_pci_generic")
        command = script.documented("sudo sysctl vm.nr_hugepages=128", CARD)
        self.assertTrue(script.doctor_reserves(command, told), told)
        self.assertFalse(script.doctor_reserves(command, told.replace("=128", "")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
