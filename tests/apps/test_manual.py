#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The manual is complete and well-formed: as installed, read by mandoc."""
import glob
import os
import re
import shutil
import subprocess
import unittest

import programs

SOURCE = os.environ.get("POSTERN_SOURCE", ".")
BUILD = os.environ.get("POSTERN_BUILD", ".")
PAGES = os.path.join(BUILD, "doc", "man")
COLUMNS = 80


def page(name):
    with open(os.path.join(PAGES, name), encoding="utf-8") as file:
        return file.read()


def name_of(path):
    return os.path.basename(path).partition(".")[0]


def everything():
    return glob.glob(PAGES + "/*.[17]") + functions()


def functions():
    return [path for section in ("3", "3portals4", "3mx", "3gasnet") for path in glob.glob(f"{PAGES}/*.{section}")]


class Manual(programs.Case):
    def test_every_function_of_the_headers_has_a_page_that_names_it(self):
        for section, headers in (("3", ("portals.h", "postern.h")), ("3portals4", ("portals4.h",)),
                                 ("3mx", ("myriexpress.h", "mx_extensions.h", "mx_io.h"))):
            declared = []
            for header in headers:
                with open(os.path.join(SOURCE, "include", header), encoding="utf-8") as file:
                    text = file.read()
                declared += re.findall(r"^(?:PTL_API|MX_FUNCTION) (?!extern)[^;(]*?(\w+)\(", text, re.MULTILINE)
                declared += re.findall(r"^#define (mx_\w+)\(\)", text, re.MULTILINE)
            self.assertGreater(len(declared), 30)
            for name in declared:
                text = page(f"{name}.{section}")
                self.assertRegex(text, rf"(?m)^\.TH {name} {section} ")
                self.assertRegex(text, rf"(?s)\.SH NAME\n[^\n]*\b{name}\b[^\n]* \\- \S")
                self.assertIn(f"{name}(", text.partition(".SH SYNOPSIS")[2])
            self.assertEqual(sorted(name_of(path) for path in glob.glob(f"{PAGES}/*.{section}")), sorted(declared))

    def test_every_function_of_gasnet_has_a_page(self):
        text = ""
        for header in ("gasnet.h", "gasnet_coll.h", "gasnet_vis.h"):
            with open(os.path.join(SOURCE, "include", "gasnet-postern", header), encoding="utf-8") as file:
                text += file.read()
        declared = set(re.findall(r"^(?:GASNET_FUNCTION [^;(]*?|#define )(gasnet_(?!postern)\w+)\(", text, re.MULTILINE))
        declared |= set(re.findall(r"^#define (gasnet_\w+) gasnet_", text, re.MULTILINE))
        declared |= {"GASNET_BLOCKUNTIL", "GASNET_BEGIN_FUNCTION", "GASNET_GET_THREADINFO", "GASNET_POST_THREADINFO"}
        families = {name for name in declared if re.match("gasnet_AM(Request|Reply)", name)}
        self.assertEqual(len(families), 7)
        declared |= {f"{family}{count}" for family in families for count in range(17)}
        self.assertEqual(sorted(name_of(path) for path in glob.glob(f"{PAGES}/*.3gasnet")), sorted(declared))
        for name in declared:
            text = page(f"{name}.3gasnet")
            self.assertRegex(text, rf"(?s)\.SH NAME\n[^\n]*\b{name}\b[^\n]* \\- \S")
            self.assertIn(f"{name}(", text.partition(".SH SYNOPSIS")[2])
        self.assertIn("gasnet_handlerarg_t a15);", page("gasnet_AMReplyLong16.3gasnet"))
        self.assertIn(".B GASNET_ERR_RESOURCE\n", page("gasnet_attach.3gasnet"))
        self.assertIn("gasnet_handlerentry_t;", page("gasnet_attach.3gasnet"))

    def test_arguments_and_codes_are_told(self):
        text = page("PtlPut.3")
        for word in ("ack_req", "hdr_data"):
            self.assertIn(f".TP\n.B {word}\n", text)
        self.assertIn("ptl_process_id_t;", text)
        for name in ("PtlMDAttach.3", "PtlMDBind.3"):
            for option in ("OP_PUT", "OP_GET", "MANAGE_REMOTE", "TRUNCATE", "ACK_DISABLE"):
                self.assertRegex(page(name), rf"PTL_MD_{option} +\w+ [a-z]+ [a-z]+")

    def test_a_page_of_portals_4_says_what_others_say_that_it_refers_to(self):
        text = page("PtlTriggeredSwap.3portals4")
        for words in ("get_md_handle, local_get_offset", "operand", "match_bits", "trig_ct_handle", "threshold"):
            self.assertIn(f".TP\n.B {words}\n", text)
        self.assertNotIn(".B ack_req\n", text)
        self.assertIn("PtlPut: md_handle is bad", text.partition(".SH RETURN VALUE")[2])
        self.assertIn("PTL_PT_FLOWCTRL", page("PtlPTAlloc.3portals4").partition(".SH TYPES")[2])
        self.assertNotIn("PTL_PT_FLOWCTRL", page("PtlCTWait.3portals4"))  # those of the next part of the header
        for option in ("PTL_MD_EVENT_CT_REPLY", "PTL_ACK_REQ", "PTL_RANK_ANY"):
            self.assertIn(option, page("PtlMDBind.3portals4") + page("PtlPut.3portals4").partition(".SH TYPES")[2])

    def test_a_page_of_mx_says_what_its_group_has_in_common(self):
        for name in ("mx_isend.3mx", "mx_issend.3mx"):
            for code in ("MX_SUCCESS", "MX_BAD_ENDPOINT", "MX_BAD_SEG_CNT"):
                self.assertIn(f".TP\n.B {code}\n", page(name))
            self.assertIn(".TP\n.B destination\n", page(name))
        self.assertIn("The same as mx_test(), but blocks until the request is complete.", page("mx_wait.3mx"))
        self.assertIn(".B MX_BAD_REQUEST\n", page("mx_wait.3mx"))
        self.assertNotIn(".B MX_BAD_REQUEST\n", page("mx_peek.3mx"))
        self.assertIn("struct mx_status", page("mx_iprobe.3mx").partition(".SH TYPES")[2])

    def test_every_function_says_what_it_returns_in_sentences(self):
        for path in functions():
            text = page(os.path.basename(path))
            if re.search(r"\n\.B void \w+\(", text) or name_of(path) == "PtlHandleIsEqual":
                continue
            returns = re.search(r"\.SH RETURN VALUE\n(.*?)\n\.SH ", text, re.DOTALL)
            self.assertTrue(returns, path)
            said = re.split(r"(?:^|\n)\.TP\n\.B (?:\\-)?(?:PTL|MX|GASNET)_\w+(?:, MX_\w+)*\n", returns.group(1))
            self.assertTrue(any(said), path)
            for sentence in filter(None, said):
                self.assertRegex(sentence, r"^\*?[A-Za-z_].*[.:]$", path)
            if os.path.basename(path).startswith("Ptl") and not name_of(path).endswith("ToStr"):
                self.assertIn(".B PTL_OK\n", returns.group(0), path)

    def test_every_function_is_shown_at_work_and_leads_to_its_siblings(self):
        for path in functions():
            name = os.path.basename(path)
            text = page(name)
            shown = text.partition(".SH EXAMPLES\n")[2].partition("\n.SH ")[0]
            # Active messages with other numbers of arguments are shown by one of them.
            self.assertRegex(shown, re.sub(r"(gasnet_AM\w+?)\d*\.", r"\1\\d*.", name).partition(".")[0] + r"\(", path)
            self.assertRegex(text.partition(".SH SEE ALSO\n")[2], r"\(3\)|\(3portals4\)|\(3mx\)|\(3gasnet\)", path)

    def test_the_overview_names_every_page(self):
        text = page("postern.7").partition(".SH PAGES\n")[2]
        for path in everything():
            name, section = os.path.basename(path).replace("-", "\\-").split(".")
            if name != "postern":
                self.assertIn(f"{name}({section})", text)

    def test_every_program_has_a_page_with_its_options(self):
        found = [name for name in os.listdir(programs.PROGRAMS)
                 if re.fullmatch(r"posternd|postern-[a-z]+", name) and os.path.isfile(programs.program(name))]
        self.assertIn("postern-ping", found)
        for name in found:
            told = programs.run(name, "--help").stdout
            text = page(name + ".1")
            for option in re.findall(r"^ +(?:-\w, +)?(--[a-z-]+)", told, re.MULTILINE):
                self.assertIn(option.replace("-", "\\-"), text, name)

    def test_every_setting_and_every_counter_is_listed(self):
        text = page("postern-settings.7")
        info = self.expect_json(programs.run("postern-info", "--json"))
        for setting in info["settings"]:
            self.assertIn(f".TP\n.B {setting['name']}\n", text)
        for counter in ("frames_sent", "dropped_no_match", "pings_received", "polls_idle", "port_missed"):
            self.assertIn(f".TP\n.B {counter}\n", text)

    def test_the_protocol_is_told_to_its_end(self):
        with open(os.path.join(SOURCE, "doc", "wire.md"), encoding="utf-8") as file:
            titles = re.findall(r"^##+ (.*)$", file.read(), re.MULTILINE)
        text = page("postern-wire.7").upper()
        for title in titles:
            self.assertIn(title.upper().replace("-", "\\-"), text)

    def test_every_page_that_another_names_is_there(self):
        for path in everything():
            for name, section in re.findall(r"\b((?:postern|portals|Ptl)[\w\\-]*) ?\(([137](?:portals4)?)\)", page(os.path.basename(path))):
                wanted = name.replace("\\-", "-").replace("\\", "") + "." + section
                self.assertTrue(os.path.exists(os.path.join(PAGES, wanted)), f"{path} names {wanted}")

    def test_mandoc_finds_nothing_to_warn_of(self):
        if shutil.which("mandoc") is None:
            if os.environ.get("CI") == "true":
                self.fail("mandoc is missing; scripts/install test installs it")
            raise unittest.SkipTest("mandoc is missing; scripts/install test installs it")
        pages = sorted(everything())
        done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", *pages], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=programs.TIMEOUT, check=False)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.returncode, 0)

    def test_no_line_is_wider_than_a_terminal(self):
        if shutil.which("mandoc") is None:
            raise unittest.SkipTest("mandoc is missing; scripts/install test installs it")
        done = subprocess.run(["mandoc", "-Tutf8", f"-Owidth={COLUMNS}", *sorted(everything())], stdout=subprocess.PIPE, text=True, timeout=programs.TIMEOUT,
                              check=True)
        shown = re.sub(".\x08", "", done.stdout)  # a letter that is printed twice is bold
        self.assertEqual([line for line in shown.split("\n") if len(line) > COLUMNS], [])

    def test_they_are_installed_where_man_looks(self):
        root = os.path.join(self.directory, "root")
        done = subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", root],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=programs.TIMEOUT,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        for name in ("man1/postern-ping.1", "man3/PtlPut.3", "man3/postern_ping.3", "man7/postern.7",
                     "man3/PtlPut.3portals4", "man3/PtlTriggeredSwap.3portals4", "man3/mx_isend.3mx", "man7/mx.7", "man3/gasnet_put.3gasnet", "man7/gasnet.7",
                     "man7/portals4.7", "man7/postern-settings.7", "man7/postern-wire.7"):
            found = glob.glob(f"{root}/**/share/man/{name}", recursive=True) + glob.glob(f"{root}/**/share/man/{name}.gz", recursive=True)
            self.assertEqual(len(found), 1, name)


if __name__ == "__main__":
    programs.main()
