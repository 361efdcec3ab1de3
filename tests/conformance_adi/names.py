#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""names.py HEADER TEST... - each name of a device that a header defines for the API is used by one of the tests, which are compiled."""
import re
import sys

header, tests = sys.argv[1], sys.argv[2:]
with open(header, encoding="utf-8") as file:
    names = set(re.findall(r"^#define ((?:A|MPID)_\w+)", file.read(), re.MULTILINE))
used = set()
for test in tests:
    with open(test, encoding="utf-8") as file:
        used |= set(re.findall(r"\w+", file.read()))
# What an API may define, and what tells the device or the API something.
names = {name for name in names if not re.match(r"A_(FIELD|SET|SEND_REQUEST|RECV_REQUEST|IS_COMPLETE|NO_DATA_CALLS|H$)", name)}
missing = sorted(names - used)
if len(names) < 30 or missing:
    sys.exit(f"{header}: of {len(names)} names no test uses: {' '.join(missing)}")
