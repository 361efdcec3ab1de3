#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_binary.py - that programs that were linked elsewhere start with libmyriexpress.so: its SONAME, its symbol versions, and no names
but those of its headers.

    test_binary.py LIBRARY SOURCE
"""
import os
import re
import sys
import unittest

LIBRARY, SOURCE = sys.argv.pop(1), sys.argv.pop(1)
sys.path.insert(0, os.path.join(SOURCE, "tests"))

import binary
from binary import run

VERSIONS = {"mx_open_endpoint": "MX_0.9", "mx_decompose_endpoint_addr": "MX_0.9", "mx_get_info": "MX_0.91", "mx_test": "MX_0.91",
            "mx_wait": "MX_0.91", "mx_iprobe": "MX_0.91", "mx__init_api": "MX_0.92"}
NODES = [("MX_0.0", ""), ("MX_0.9", ""), ("MX_0.91", "MX_0.9"), ("MX_0.92", "MX_0.91")]
OBJECTS = {"MX_ERRORS_ARE_FATAL", "MX_ERRORS_RETURN"}

# Asks for a symbol of each version node that the library has, for an object, and for a function without a version.
PROGRAM = """
#include <stdio.h>
#include <myriexpress.h>

int main(void)
{
	uint32_t boards = 0;

	mx_set_error_handler(MX_ERRORS_RETURN);
	if (mx_init() != MX_SUCCESS || mx_get_info(NULL, MX_NIC_COUNT, NULL, 0, &boards, sizeof(boards)) != MX_SUCCESS)
		return 1;
	printf("%u boards, %s\\n", boards, mx_strerror(MX_SUCCESS));
	return mx_finalize();
}
"""
# As Myricom's: nothing in it works.
STUB = """
#include <myriexpress.h>
#undef mx_init
static mx_return_t stub(char *text, mx_return_t code) { return 99; }
const mx_error_handler_t MX_ERRORS_RETURN = stub;
mx_error_handler_t mx_set_error_handler(mx_error_handler_t handler) { return 0; }
mx_return_t mx__init_api(int api) { return 99; }
mx_return_t mx_finalize(void) { return 99; }
const char *mx_strerror(mx_return_t code) { return "stub"; }
mx_return_t mx_get_info(mx_endpoint_t endpoint, mx_get_info_key_t key, void *in, uint32_t in_length, void *out, uint32_t length)
{
	return 99;
}
"""


def declared():
    text = ""
    for name in ("myriexpress.h", "mx_extensions.h", "mx_io.h"):
        with open(os.path.join(SOURCE, "include", name), encoding="utf-8") as file:
            text += file.read()
    return set(re.findall(r"^MX_FUNCTION [^;(]*?\b(mx_\w+)\(", text, re.MULTILINE))


class Binary(binary.Case):
    def start(self, *stub_flags):
        """Links a program with a stub of these flags, and starts it with the library."""
        include = "-I" + os.path.join(SOURCE, "include")
        os.mkdir(os.path.join(self.scratch, "stub"))
        run("cc", "-w", "-shared", "-fPIC", include, "-Wl,-soname,libmyriexpress.so", *stub_flags, self.write("stub.c", STUB),
            "-o", os.path.join(self.scratch, "stub", "libmyriexpress.so"))
        program = os.path.join(self.scratch, "program")
        run("cc", include, self.write("program.c", PROGRAM), "-o", program, "-L" + os.path.join(self.scratch, "stub"), "-lmyriexpress")
        versions = re.findall(r"Name: (MX_\S+)", run("readelf", "-V", program))
        self.assertEqual(run(program, LD_LIBRARY_PATH=os.path.dirname(LIBRARY), LD_BIND_NOW="1", PTL_IFACE_NAME="loop:a").strip(),
                         "1 boards, success")
        return versions

    def test_the_soname_has_no_number(self):
        self.assertEqual(re.findall(r"soname: \[(.*)\]", run("readelf", "-d", LIBRARY)), ["libmyriexpress.so"])

    def test_the_version_nodes(self):
        text = run("readelf", "-V", LIBRARY).split("Version needs")[0].split("Version definition")[1]
        found = re.findall(r"Name: (MX_\S+)\n(?:.*Parent 1: (\S+)\n)?", text)
        self.assertEqual(found, NODES)

    def test_each_symbol_has_its_version(self):
        for name, version in binary.symbols(LIBRARY).items():
            self.assertEqual(version, "@" + VERSIONS[name] if name in VERSIONS else "", name)

    def test_only_names_of_the_headers_are_exported(self):
        self.assertEqual(set(binary.symbols(LIBRARY)) - declared() - OBJECTS - {"mx_init"}, set())
        self.assertEqual(OBJECTS - set(binary.symbols(LIBRARY)), set())

    def test_a_program_that_was_linked_on_myrinet_starts(self):
        found = self.start("-Wl,--version-script=" + os.path.join(SOURCE, "lib", "mx", "mx.map"))
        self.assertEqual(sorted(found), ["MX_0.91", "MX_0.92"])

    def test_a_program_that_was_linked_without_versions_starts(self):
        self.assertEqual(self.start(), [])


if __name__ == "__main__":
    unittest.main()
