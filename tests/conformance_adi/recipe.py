#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""recipe.py SOURCE BUILD - the lines of doc/adi.md for a tree of MPICH are run on trees with the shapes of its releases. Only pkg-config
is replaced: it names the files of the source and of the build."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = sys.argv.pop(1), sys.argv.pop(1)
TREES = os.path.join(SOURCE, "tests/conformance_adi/mpich")
LIBRARIES = [os.path.join(BUILD, "lib", name) for name in ("adi", "host")]
PKG_CONFIG = """#!/bin/sh
case $1 in
--variable=adidir) echo ADI ;;
--libs) echo LIBS ;;
*) exit 1 ;;
esac
"""


def lines():
    with open(os.path.join(SOURCE, "doc/adi.md"), encoding="utf-8") as document:
        section = re.search(r"\n## A tree of MPICH.*?\n\n((?:    [^\n]*\n)+)", document.read(), re.DOTALL)
    return re.sub("(?m)^    ", "", section[1])


class Recipe(unittest.TestCase):
    def run_on(self, release, script):
        with tempfile.TemporaryDirectory() as directory:
            tree = os.path.join(directory, "tree")
            shutil.copytree(os.path.join(TREES, release), tree)
            shutil.copy(os.path.join(TREES, "test_mpich.c"), os.path.join(tree, "program.c"))
            for header in ("mpid.h", "dm.h", "mpid_bind.h"):  # another device's
                with open(os.path.join(tree, "include", header), "w", encoding="ascii") as file:
                    file.write("#error another device's\n")
            adi = os.path.join(directory, "adi")  # as it is installed: with the library's header beside
            shutil.copytree(os.path.join(SOURCE, "share/adi"), adi)
            shutil.copy(os.path.join(SOURCE, "include/postern-adi.h"), adi)
            tools = os.path.join(directory, "tools")
            os.mkdir(tools)
            with open(os.path.join(tools, "pkg-config"), "w", encoding="ascii") as file:
                file.write(PKG_CONFIG.replace("ADI", adi).replace("LIBS", f"-L{LIBRARIES[0]} -Wl,-rpath-link,{LIBRARIES[1]} -lpostern-adi"))
            os.chmod(os.path.join(tools, "pkg-config"), 0o755)
            environment = {name: value for name, value in os.environ.items() if not name.startswith("PTL_")}
            path = os.pathsep.join([tools, os.path.join(BUILD, "apps"), environment["PATH"]])
            done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=tree, capture_output=True, text=True, check=False, timeout=200,
                                  env={**environment, "PATH": path, "LD_LIBRARY_PATH": os.pathsep.join(LIBRARIES)})
            self.assertEqual((done.returncode, done.stderr), (0, ""), script)

    def test_a_tree_in_the_shape_of_1_0_12(self):
        self.run_on("1.0.12", lines())

    def test_a_tree_in_the_shape_of_1_0_8(self):
        script = lines().replace("-DA_MPICH ", "-DA_MPICH -DA_MPICH_NO_ERRVAL ")
        self.assertIn("-DA_MPICH_NO_ERRVAL", script)
        self.run_on("1.0.8", script)


if __name__ == "__main__":
    unittest.main()
