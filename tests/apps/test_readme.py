#!/usr/bin/env python3
"""What the README tells a newcomer is true: its program compiles against an installed library, its settings exist."""
import glob
import os
import re
import shlex
import subprocess

import programs

SOURCE = os.environ.get("POSTERN_SOURCE", ".")
BUILD = os.environ.get("POSTERN_BUILD", ".")


def readme():
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        return file.read()


class Readme(programs.Case):
    def shell(self, *words, **environment):
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=programs.TIMEOUT, cwd=self.directory, check=False,
                              env={**programs.environment(), **environment})
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_its_program_compiles_with_pkg_config_and_runs(self):
        root = os.path.join(self.directory, "root")
        self.shell("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", root)
        found = glob.glob(root + "/**/postern.pc", recursive=True)
        self.assertEqual(len(found), 1)
        looked_into = self.shell("pkg-config", "--variable=pc_path", "pkg-config").strip().split(":")
        self.assertIn(os.path.dirname(found[0])[len(root):], looked_into)
        with open(found[0], encoding="utf-8") as file:
            told = file.read()
        with open(found[0], "w", encoding="utf-8") as file:  # as if root were the prefix
            file.write(re.sub("^prefix=", f"prefix={root}", told, flags=re.MULTILINE))
        flags = shlex.split(self.shell("pkg-config", "--cflags", "--libs", "postern",
                                       PKG_CONFIG_PATH=os.path.dirname(found[0])))
        with open(os.path.join(self.directory, "hello.c"), "w", encoding="utf-8") as file:
            file.write(re.search(r"```c\n(.*?)```", readme(), re.DOTALL).group(1))
        self.shell("cc", "-Wall", "-Wextra", "-Werror", "hello.c", "-o", "hello", *flags)
        library = os.path.dirname(glob.glob(root + "/**/libpostern.so.0", recursive=True)[0])
        said = self.shell("./hello", LD_LIBRARY_PATH=library)
        self.assertRegex(said, r"^1:\d+ says: Hello, Portals\.$")

    def test_its_settings_are_those_of_the_library(self):
        info = self.expect_json(programs.run("postern-info", "--json"))
        told = re.findall(r"^\| `(PTL_[A-Z_]+)` \|", readme(), re.MULTILINE)
        self.assertEqual(told, [setting["name"] for setting in info["settings"]])

    def test_what_it_links_to_is_there(self):
        for target in re.findall(r"\]\(([^):]+)\)", readme()):
            self.assertTrue(os.path.exists(os.path.join(SOURCE, target)), target)


if __name__ == "__main__":
    programs.main()
