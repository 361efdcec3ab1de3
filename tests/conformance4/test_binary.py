#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_binary.py - that programs that were linked elsewhere start with libportals.so.4, and work: its SONAME, and no names but those of
its header.

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

INCLUDE = "-I" + os.path.join(SOURCE, "include")

# Puts eight bytes to itself.
PROGRAM = """
#include <stdio.h>
#include <portals4.h>

int main(void)
{
	static char from[8] = "portals", to[8];
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	ptl_handle_me_t me;
	ptl_pt_index_t portal;
	ptl_process_t self;
	ptl_event_t event;
	ptl_md_t source = {.start = from, .length = sizeof(from), .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
	ptl_me_t entry = {.start = to, .length = sizeof(to), .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE, .match_bits = 5};

	if (PtlInit() != PTL_OK || PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &ni) != PTL_OK ||
		PtlGetPhysId(ni, &self) != PTL_OK || PtlEQAlloc(ni, 8, &eq) != PTL_OK ||
		PtlPTAlloc(ni, 0, eq, PTL_PT_ANY, &portal) != PTL_OK || PtlMDBind(ni, &source, &md) != PTL_OK)
		return 1;
	entry.match_id = self;
	if (PtlMEAppend(ni, portal, &entry, PTL_PRIORITY_LIST, NULL, &me) != PTL_OK ||
		PtlPut(md, 0, sizeof(from), PTL_NO_ACK_REQ, self, portal, 5, 0, NULL, 0) != PTL_OK ||
		PtlEQWait(eq, &event) != PTL_OK)
		return 2;
	printf("%d %lu %s\\n", event.type, (unsigned long)event.mlength, to);
	PtlNIFini(ni);
	PtlFini();
	return 0;
}
"""


def declared():
    with open(os.path.join(SOURCE, "include", "portals4.h"), encoding="utf-8") as file:
        return set(re.findall(r"^PTL_API [^;(]*?\b(Ptl\w+)\(", file.read(), re.MULTILINE))


class Binary(binary.Case):
    def test_the_soname_is_the_reference_s(self):
        self.assertEqual(re.findall(r"soname: \[(.*)\]", run("readelf", "-d", LIBRARY)), ["libportals.so.4"])

    def test_the_names_are_those_of_the_header(self):
        found = binary.symbols(LIBRARY)
        self.assertEqual(len(declared()), 57)
        self.assertEqual(set(found), declared())
        self.assertEqual(set(found.values()), {"@PORTALS_4"})

    def test_a_program_that_was_linked_with_the_reference_works(self):
        """The reference's library has no symbol versions; nothing in this stub of it works."""
        stub = "".join(f"int {name}() {{ return 99; }}\n" for name in sorted(declared()))
        run("cc", "-w", "-shared", "-fPIC", "-Wl,-soname,libportals.so.4", self.write("stub.c", stub), "-o",
            os.path.join(self.scratch, "libportals.so"))
        program = os.path.join(self.scratch, "program")
        run("cc", INCLUDE, self.write("program.c", PROGRAM), "-o", program, "-L" + self.scratch, "-lportals")
        self.assertNotIn("PORTALS_4", run("readelf", "-V", program))
        said = run(program, LD_LIBRARY_PATH=os.path.dirname(LIBRARY), LD_BIND_NOW="1", PTL_IFACE_NAME="loop:a", PTL_PROGRESS="both")
        self.assertRegex(said, r"^\d+ 8 portals\n$")


if __name__ == "__main__":
    unittest.main()
