#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_mirror.py - every source of the library has a test, every unit test names what it tests, and arrows between parts point down.

A source lib/PART/NAME.c or pmd-glue/NAME.c is tested by tests/unit/test_NAME.c, or by any test whose head names it:

    Covers: lib/match/chains.c, lib/match/index.c.

A source whose name another part uses as well must be named. A file includes headers of its own part and of those below it alone; lib/host
alone includes those of pmd-glue. A front end calls no function of pmd-glue either. The environment may be that of a user who has fewer rights than
the program, so lib/base/environment.c alone reads it, and settings.c by the table of setting_table.c, which says of each variable how it is taken there.
lib/gasnet is a client of portals4.h like any other, and includes nothing else of the library: its variables.c takes nothing from that user (secure_getenv).
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEAD_LINES = 30
COVERS = re.compile(r"Covers: ((?:[\w./-]+\.c,? )*[\w./-]+\.c)\.")
FRONT_ENDS = ("adi", "fi", "messages", "mx", "p3", "p4")
INCLUDE = re.compile(r"^#include <([\w-]+)/", re.MULTILINE)
HEADER = re.compile(r"^#include <((?:postern|portals|mx|myriexpress)[\w/-]*\.h)>", re.MULTILINE)
GASNET_HEADERS = {"portals4.h", "portals4/pmi.h"}
ENVIRONMENT_CALL = re.compile(r"\b(secure_)?getenv\(")
SECURE_CALL = re.compile(r"\bsecure_getenv\(")
ENVIRONMENT_READERS = ("lib/base/environment.c", "lib/base/settings.c")
SECURE_READERS = ("lib/gasnet/variables.c",)
GLUE_CALL = re.compile(r"\bglue_\w+\(")
CORE = ["host", "engine", "job", "transport", "match", "wire", "base"]  # engine and job are beside each other, and transport and match
BELOW = {part: CORE[at + 1:] for at, part in enumerate(CORE)} | {"pmd-glue": ["base"], "messages": CORE, "p3": CORE, "p4": CORE}
BELOW |= {"job": ["transport", "wire", "base"], "engine": ["transport", "match", "wire", "base"]}
BELOW |= {"transport": ["wire", "base"], "match": ["base"], "host": BELOW["host"] + ["pmd-glue"]}
BELOW |= {"runtime": BELOW["job"] + ["job"], "gasnet": []}
BELOW |= {"mx": CORE + ["messages"], "adi": CORE + ["messages"], "fi": CORE + ["messages"]}


def head_words(path):
    """The first lines of a file, on one line and without comment marks."""
    lines = path.read_text(encoding="utf-8").split("\n")[:HEAD_LINES]
    return re.sub(r"\s+", " ", " ".join(re.sub(r"^\s*(\*/?|/\*|#)", "", line) for line in lines))


def covers_read():
    """Source by source, the tests that name it."""
    covers = collections.defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*")):
        if path.suffix in (".c", ".py") and path != pathlib.Path(__file__).resolve():
            for names in COVERS.findall(head_words(path)):
                for name in re.split(r"[, ]+", names):
                    covers[name].append(str(path.relative_to(ROOT)))
    return covers


def main():
    sources = sorted(str(path.relative_to(ROOT)) for pattern in ("lib/*/*.c", "pmd-glue/*.c") for path in ROOT.glob(pattern))
    parts = collections.Counter(pathlib.Path(source).name for source in sources)
    headers = {path.stem for pattern in ("lib/*/*.h", "pmd-glue/*.h") for path in ROOT.glob(pattern)}
    tests = {path.stem.removeprefix("test_") for path in (ROOT / "tests/unit").glob("test_*.c")}
    covers = covers_read()
    complaints = [f"{test}: covers {name}, which is no source: name the one that it has become"
                  for name in covers if not (ROOT / name).is_file() for test in covers[name]]
    for source in sources:
        name = pathlib.Path(source)
        if source not in covers and not (parts[name.name] == 1 and name.stem in tests):
            complaints.append(f"{source}: has no test: write tests/unit/test_{name.stem}.c, or name the source in the head of "
                              f'the test that covers it ("Covers: {source}.")')
    named = {test for names in covers.values() for test in names}
    for test in sorted(tests):
        path = f"tests/unit/test_{test}.c"
        own = test in headers or (ROOT / f"tests/unit/{test}.c").exists()
        if path not in named and f"{test}.c" not in parts and not own:
            complaints.append(f'{path}: tests no source of its name: name in its head what it tests ("Covers: ...")')
    for source in sources:
        text = (ROOT / source).read_text(encoding="utf-8")
        if source in SECURE_READERS:
            text = SECURE_CALL.sub("", text)
        if source not in ENVIRONMENT_READERS and ENVIRONMENT_CALL.search(text):
            complaints.append(f"{source}: calls getenv(): add the variable to the table of environment.c, and call environment_text()")
    for part, below in BELOW.items():
        for path in sorted((ROOT / (part if part == "pmd-glue" else f"lib/{part}")).glob("*.[ch]")):
            text = path.read_text(encoding="utf-8")
            for other in sorted(set(INCLUDE.findall(text)) & BELOW.keys() - {part, *below}):
                complaints.append(f"{path.relative_to(ROOT)}: includes a header of {other}, which is not below {part}: "
                                  f"let a part above both use it, or move it down")
            for header in sorted(set(HEADER.findall(text)) - GASNET_HEADERS) if part == "gasnet" else ():
                complaints.append(f"{path.relative_to(ROOT)}: includes {header}: lib/gasnet stands on portals4.h and portals4/pmi.h alone")
            if part in FRONT_ENDS and GLUE_CALL.search(text):
                complaints.append(f"{path.relative_to(ROOT)}: calls pmd-glue, of which its library would have a copy with data of its "
                                  "own: let lib/host call it")
    print("\n".join(complaints) or f"{len(sources)} sources have tests")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
