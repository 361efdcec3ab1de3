#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What `meson install` lays out serves a stranger: doc/guide.md's program is compiled against it, in C and in C++, with pkg-config or CMake
alone, and runs with the shared and with the static library."""
import fnmatch
import glob
import os
import re
import shlex
import shutil
import subprocess
import tempfile

import programs

SOURCE = os.environ.get("POSTERN_SOURCE", ".")
BUILD = os.environ.get("POSTERN_BUILD", ".")
SAYS = r"^\d+:\d+ says: Hello, Portals\.$"
CMAKE = """cmake_minimum_required(VERSION 3.13)
project(hello C CXX)
find_package(postern 0.1 REQUIRED)
add_executable(shared hello.c)
target_link_libraries(shared postern::postern)
add_executable(static hello.cpp)
target_link_libraries(static postern::static)
"""

# A message of Portals 4 to the process itself, while the library of Portals 3 is open as well, unless ALONE is defined.
BOTH = r"""#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <portals4.h>

int main(void)
{
	char inbox[8] = "", greeting[8] = "4 and 3";
	ptl_handle_ni_t ni;
	ptl_handle_ct_t count;
	ptl_handle_md_t md;
	ptl_handle_le_t entry;
	ptl_pt_index_t portal;
	ptl_process_t self;
	ptl_ct_event_t seen;

#ifndef ALONE
	void *other = dlopen("libpostern.so.0", RTLD_NOW | RTLD_LOCAL);
	uint64_t interface[4];
	int (*init)(int *), (*open)(ptl_interface_t, ptl_pid_t, void *, void *, void *), interfaces;

	*(void **)&init = other ? dlsym(other, "PtlInit") : NULL;
	*(void **)&open = other ? dlsym(other, "PtlNIInit") : NULL;
	if (!init || !open || init(&interfaces) != 0 || open(0, 7, NULL, NULL, interface) != 0)
		return 1;
#endif
	if (PtlInit() != PTL_OK || PtlNIInit(1, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL,
		PTL_PID_ANY, NULL, NULL, &ni) != PTL_OK || PtlGetPhysId(ni, &self) != PTL_OK ||
		PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &portal) != PTL_OK ||
		PtlCTAlloc(ni, &count) != PTL_OK)
		return 2;
	ptl_le_t le = {.start = inbox, .length = sizeof(inbox), .ct_handle = count, .uid = PTL_UID_ANY,
		.options = PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM};
	ptl_md_t from = {.start = greeting, .length = sizeof(greeting), .eq_handle = PTL_EQ_NONE,
		.ct_handle = PTL_CT_NONE};
	if (PtlLEAppend(ni, portal, &le, PTL_PRIORITY_LIST, NULL, &entry) != PTL_OK ||
		PtlMDBind(ni, &from, &md) != PTL_OK ||
		PtlPut(md, 0, sizeof(greeting), PTL_NO_ACK_REQ, self, portal, 0, 0, NULL, 0) != PTL_OK ||
		PtlCTWait(count, 1, &seen) != PTL_OK)
		return 3;
	puts(inbox);
	PtlNIFini(ni);
	PtlFini();
	return 0;
}
"""


class Install(programs.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(os.path.join(SOURCE, "doc", "guide.md"), encoding="utf-8") as file:
            guide = file.read()
        cls.hello = re.search(r"```c\n(.*?)```", guide, re.DOTALL).group(1)
        cls.names_archives = re.search(r"sed -E '([^']+)'", guide).group(1)
        cls.installed = tempfile.mkdtemp(prefix="ptn-")
        cls.addClassCleanup(shutil.rmtree, cls.installed, ignore_errors=True)
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", cls.installed], check=True,
                       timeout=programs.TIMEOUT, env=programs.environment())
        options = subprocess.run(["meson", "introspect", "--buildoptions", BUILD], stdout=subprocess.PIPE, text=True, check=True,
                                 timeout=programs.TIMEOUT)
        cls.options = {option["name"]: option["value"] for option in programs.json.loads(options.stdout)}

    def setUp(self):
        super().setUp()
        # The files are the same ones: a test may remove one, but does not write into it.
        self.root = os.path.join(self.directory, "root")
        shutil.copytree(self.installed, self.root, symlinks=True, copy_function=os.link)
        self.prefix = self.root + self.options["prefix"]
        self.lib_name = self.options["libdir"] + "/"
        self.lib = os.path.join(self.prefix, self.lib_name)
        for name in ("hello.c", "hello.cpp"):
            self.write(name, self.hello)

    def write(self, name, text):
        with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
            file.write(text)

    def shell(self, *words, **settings):
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.directory,
                              timeout=programs.TIMEOUT, check=False, env=programs.environment(**settings))
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def flags(self, *words, package="postern"):
        """From pkg-config alone, as if the root were where it was installed."""
        return shlex.split(self.shell("pkg-config", f"--define-variable=prefix={self.prefix}", *words, package,
                                      PKG_CONFIG_LIBDIR=os.path.join(self.lib, "pkgconfig")))

    def expect_hello(self, *command):
        self.assertRegex(self.shell(*command, LD_LIBRARY_PATH=self.lib), SAYS)

    def needed(self, program):
        return re.findall(r"\(NEEDED\).*\[(.*)\]", self.shell("readelf", "-d", program))

    def test_what_is_installed(self):
        for path in ("include/portals.h", "include/portals4.h", "include/portals4/pmi.h", "include/gasnet-postern/gasnet.h", "include/postern.h", "bin/postern-info", "bin/postern-perf", "bin/postern-sim", "share/man/man1/postern-perf.1",
                     "share/man/man3/PtlPut.3", "share/man/man7/postern.7"):
            self.assertTrue(glob.glob(os.path.join(self.prefix, path) + "*"), path)
        for path in ("libpostern.a", "libpostern.so", "libpostern.so.0", "libpostern-core.so.0.1.0", "pkgconfig/postern.pc", "libportals.so",
                     "libportals.so.4", "pkgconfig/portals4.pc", "libportals_runtime.so.1", "libgasnet-postern-par.so", "pkgconfig/gasnet-postern-par.pc", "libmyriexpress.a", "libmyriexpress.so", "libmx.so", "pkgconfig/myriexpress.pc",
                     "cmake/postern/postern-config.cmake", "postern/postern-perf-mx.so", "postern/postern-perf-portals4.so", "wireshark/plugins/postern.lua"):
            self.assertTrue(os.path.exists(os.path.join(self.lib, path)), path)

    def test_the_packages_hold_all_that_is_installed(self):
        patterns = []
        for path in glob.glob(os.path.join(SOURCE, "debian", "*.install")):
            with open(path, encoding="utf-8") as file:
                patterns += [re.sub(r"^usr/(lib/\*/)?", lambda found: self.lib_name if found.group(1) else "", line)
                             for line in file.read().split()]
        for folder, _, files in os.walk(self.prefix):
            for name in files:
                path = os.path.relpath(os.path.join(folder, name), self.prefix)
                self.assertTrue(any(fnmatch.fnmatch(path, pattern) or path.startswith(pattern + "/") for pattern in patterns),
                                f"no package holds {path}")
        examples = []
        for path in glob.glob(os.path.join(SOURCE, "debian", "*.examples")):
            with open(path, encoding="utf-8") as file:
                examples += file.read().split()
        for example in glob.glob(os.path.join(SOURCE, "apps", "examples", "*.[ch]")):
            self.assertEqual(len([pattern for pattern in examples if fnmatch.fnmatch(os.path.relpath(example, SOURCE), pattern)]), 1,
                             f"not in one package: {example}")

    def test_the_packages_know_every_function(self):
        for source, package in (("lib/p3/postern.map", "libpostern0"), ("lib/p4/portals4.map", "libportals4")):
            with open(os.path.join(SOURCE, source), encoding="utf-8") as file:
                versions = re.findall(r"^(\w+) \{(.*?)^\}", file.read(), re.MULTILINE | re.DOTALL)
            with open(os.path.join(SOURCE, "debian", package + ".symbols"), encoding="utf-8") as file:
                known = file.read()
            self.assertTrue(versions, source)
            for version, stanza in versions:
                functions = re.findall(r"^\t(\w+);", stanza, re.MULTILINE)
                self.assertEqual(re.findall(rf"^ (\w+)@{version} ", known, re.MULTILINE), [version, *sorted(functions)])

    def test_portals_4_has_every_function_of_its_header(self):
        with open(os.path.join(self.prefix, "include/portals4.h"), encoding="utf-8") as file:
            declared = set(re.findall(r"^PTL_API [^;(]*?(Ptl\w+)\(", file.read(), re.MULTILINE))
        self.assertEqual(len(declared), 57)
        names = self.shell("nm", "-D", "--defined-only", os.path.join(self.lib, "libportals.so.4"))
        self.assertEqual(set(re.findall(r" T (\w+)", names)), declared)

    def test_programs_use_the_library_that_is_installed(self):
        for name in ("postern-console", "postern-info", "postern-perf", "postern-ping"):
            self.assertIn("libpostern.so.0", self.needed(os.path.join(self.prefix, "bin", name)), name)

    def test_postern_perf_finds_its_modules(self):
        for library in ("mx", "portals4", *(["fi"] if os.environ.get("POSTERN_FI") == "yes" else [])):
            self.shell(os.path.join(self.prefix, "bin", "postern-perf"), "--library", library, "--iterations", "50", "--sizes", "8",
                       "latency", LD_LIBRARY_PATH=self.lib, FI_PROVIDER_PATH=os.path.join(self.lib, "libfabric"))
        self.shell(os.path.join(self.prefix, "bin", "postern-run"), "-n", "2", os.path.join(self.prefix, "bin", "postern-perf"), "--library",
                   "gasnet", "--iterations", "50", "--sizes", "8", "latency", LD_LIBRARY_PATH=self.lib)

    def test_the_core_is_private(self):
        version = self.shell("pkg-config", "--modversion", "postern", PKG_CONFIG_LIBDIR=os.path.join(self.lib, "pkgconfig")).strip()
        core = f"libpostern-core.so.{version}"
        self.assertEqual([name for name in self.needed(os.path.join(self.lib, "libpostern.so.0")) if "postern" in name], [core])
        # It would bring a dozen libraries along, such as libpcap, and programs would start in half as long again.
        self.assertEqual([name for name in self.needed(os.path.join(self.lib, core)) if "pdump" in name], [])
        names = re.findall(r" [A-Z] (\S+)", self.shell("nm", "-D", "--defined-only", os.path.join(self.lib, core)))
        self.assertEqual([name for name in names if not re.match(r"postern_core_\w+@@POSTERN_CORE_PRIVATE$|POSTERN_CORE_PRIVATE", name)], [])

    def test_pkg_config_in_c_and_in_cpp_with_the_shared_library(self):
        flags = self.flags("--cflags", "--libs")
        self.assertEqual([flag for flag in flags if "rte" in flag or flag.startswith(("-include", "-march", "-D"))], [])
        self.shell("cc", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "hello.c", "-o", "hello", *flags)
        self.expect_hello("./hello")
        self.assertIn("libpostern.so.0", self.needed("hello"))
        if shutil.which("c++"):
            self.shell("c++", "-std=c++20", "-Wall", "-Werror", "hello.cpp", "-o", "hello-cpp", *flags)
            self.expect_hello("./hello-cpp")

    def test_mx_has_every_function_of_its_headers_and_programs_run(self):
        declared = set()
        for name in ("myriexpress.h", "mx_extensions.h", "mx_io.h", "mx_internals/mx__fops.h", "mx_internals/mx__driver_interface.h"):
            with open(os.path.join(self.prefix, "include", name), encoding="utf-8") as file:
                declared |= set(re.findall(r"^MX_FUNCTION [^;(]*?(mx_\w+)\(", file.read(), re.MULTILINE))
        self.assertGreater(len(declared), 43)
        names = self.shell("nm", "-D", "--defined-only", os.path.join(self.lib, "libmyriexpress.so"))
        self.assertEqual(declared - set(re.findall(r" T (\w+)", names)), set())
        example = os.path.join(SOURCE, "apps/examples/pingpong_mx.c")
        self.shell("cc", "-Wall", "-Wextra", "-Werror", example, "-o", "pingpong", *self.flags("--cflags", "--libs", package="myriexpress"))
        self.assertIn("libmyriexpress.so", self.needed("pingpong"))
        self.assertIn("1048576 bytes: ", self.shell("./pingpong", "self", LD_LIBRARY_PATH=self.lib, PTL_IFACE_NAME="node:install"))
        self.shell("cc", example, f"-I{self.prefix}/include", "-o", "other", f"-L{self.lib}", "-lmx", "-lpthread")
        self.assertIn("libmyriexpress.so", self.needed("other"))

    def test_each_library_links_statically(self):
        examples, adi = os.path.join(SOURCE, "apps/examples"), os.path.join(self.prefix, "share/postern/adi")
        programs_of = {
            "postern": (["hello.c"], [], SAYS),
            "portals4": (["both.c", "-DALONE"], [], "^4 and 3$"),
            "portals_runtime": ([os.path.join(SOURCE, "tests/apps/keys.c")], [], "1 ranks know all keys"),
            "myriexpress": ([f"{examples}/pingpong_mx.c"], ["self"], "1048576 bytes: "),
            "postern-adi": ([f"{adi}/example/adi_ring.c", f"{adi}/device.c", f"-I{adi}/example"], [], "a token has passed 1 ranks"),
            **{f"gasnet-postern-{mode}": ([f"{examples}/am_ring.c"], [], "passed 1 ranks 1000 times: 0, as expected")
               for mode in ("seq", "par", "parsync")},
        }
        self.write("both.c", BOTH)
        self.assertEqual(len(programs_of), len(glob.glob(os.path.join(self.lib, "pkgconfig", "*.pc"))))
        for package, (sources, arguments, output) in programs_of.items():
            with self.subTest(package=package):
                flags = self.flags("--cflags", "--libs", "--static", package=package)
                self.write("flags", "\n".join(flags))
                self.shell("cc", *sources, "-o", package, *self.shell("sed", "-E", self.names_archives, "flags").split())
                own = [name for name in self.needed(package) if re.search("postern|portals|myriexpress", name)]
                self.assertEqual(own, [])
                self.assertRegex(self.shell(f"./{package}", *arguments, PTL_IFACE_NAME="loop:a;loop:b"), output)

    def test_a_static_library_defines_what_the_shared_one_exports(self):
        """All its other names are the program's to use."""
        for archive in glob.glob(os.path.join(self.lib, "*.a")):
            names = [set(re.findall(r" [B-TV-Z] ([^@\s]+)", self.shell("nm", "--defined-only", option, library)))
                     for option, library in (("-g", archive), ("-D", archive[:-1] + "so"))]
            self.assertEqual(names[0], names[1], archive)
            self.assertTrue(names[0], archive)

    def test_portals_4_beside_portals_3_in_one_process(self):
        self.write("both.c", BOTH)
        flags = self.flags("--cflags", "--libs", package="portals4")
        self.shell("cc", "-Wall", "-Wextra", "-Werror", "both.c", "-o", "both", *flags, "-ldl")
        self.assertIn("libportals.so.4", self.needed("both"))
        self.assertEqual(self.shell("./both", LD_LIBRARY_PATH=self.lib, PTL_IFACE_NAME="loop:both;loop:both").strip(), "4 and 3")

    def test_a_program_that_was_linked_elsewhere_runs(self):
        """With a library of Portals 4 whose names have no versions."""
        with open(os.path.join(SOURCE, "lib/p4/portals4.map"), encoding="utf-8") as file:
            names = re.findall(r"^\t(Ptl\w+);", file.read(), re.MULTILINE)
        self.write("other.c", "".join(f"int {name}(void) {{ return 99; }}\n" for name in names))
        self.write("both.c", BOTH)
        os.mkdir(os.path.join(self.directory, "other"))
        self.shell("cc", "-w", "-shared", "-fPIC", "-fno-builtin", "-Wl,-soname,libportals.so.4", "other.c", "-o", "other/libportals.so")
        self.shell("cc", f"-I{self.prefix}/include", "both.c", "-o", "both", "-Lother", "-lportals", "-ldl")
        self.assertNotIn("PORTALS_4", self.shell("readelf", "-V", "both"))
        self.assertEqual(self.shell("./both", LD_LIBRARY_PATH=self.lib, PTL_IFACE_NAME="loop:both;loop:both").strip(), "4 and 3")

    def test_the_abstract_device_is_compiled_with_an_api(self):
        path = os.path.join(self.prefix, "share/postern/adi")
        flags = self.flags("--cflags", "--libs", package="postern-adi")
        self.shell("cc", "-Wall", "-Wextra", "-Werror", f"{path}/example/adi_ring.c", f"{path}/device.c", f"-I{path}/example", "-o", "ring", *flags)
        self.assertIn("a token has passed 1 ranks", self.shell("./ring", LD_LIBRARY_PATH=self.lib, PTL_IFACE_NAME="loop:a"))

    def test_gasnet_compiles_links_and_runs(self):
        example = os.path.join(SOURCE, "apps/examples/am_ring.c")
        for mode in ("seq", "par", "parsync"):
            self.shell("cc", "-Wall", "-Wextra", "-Werror", example, "-o", mode, *self.flags("--cflags", "--libs", package="gasnet-postern-" + mode))
            self.assertIn("passed 1 ranks 1000 times: 0, as expected",
                          self.shell(f"./{mode}", LD_LIBRARY_PATH=self.lib, PTL_IFACE_NAME="loop:a"))
        self.assertIn("passed 2 ranks 100 times: 100, as expected",
                      self.shell(os.path.join(self.prefix, "bin/postern-run"), "-n", "2", "./par", "100", LD_LIBRARY_PATH=self.lib))
        done = subprocess.run(["cc", example, "-o", "mixed", *self.flags("--cflags", package="gasnet-postern-par"),
                               *self.flags("--libs", package="gasnet-postern-seq")], cwd=self.directory, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, timeout=programs.TIMEOUT)
        self.assertIn("gasnet_postern_init_0_par", done.stdout)
        self.assertNotEqual(done.returncode, 0)

    def test_a_makefile_includes_the_fragment_of_gasnet(self):
        with open(os.path.join(self.directory, "Makefile"), "w", encoding="utf-8") as file:
            file.write(f"""include {self.prefix}/include/postern-conduit/postern-$(MODE).mak
halo-$(MODE): {SOURCE}/apps/examples/halo.c
\t$(GASNET_CC) $(GASNET_CPPFLAGS) $(GASNET_CFLAGS) -c -o $@.o $<
\t$(GASNET_LD) $(GASNET_LDFLAGS) -o $@ $@.o $(GASNET_LIBS)
""")
        for mode in ("seq", "par", "parsync"):
            fragment = f"{self.prefix}/include/postern-conduit/postern-{mode}.mak"
            with open(fragment, encoding="utf-8") as file:  # it is not where it will be
                text = file.read()
            os.unlink(fragment)
            with open(fragment, "w", encoding="utf-8") as file:
                file.write(text.replace(self.options["prefix"], self.prefix))
            self.shell("make", f"MODE={mode}", f"halo-{mode}")
            self.assertIn("64 rows after 100 steps on 1 ranks: 0 are wrong",
                          self.shell(f"./halo-{mode}", LD_LIBRARY_PATH=self.lib, PTL_IFACE_NAME="loop:a"))

    def test_pkg_config_looks_where_it_is_installed(self):
        looked_into = self.shell("pkg-config", "--variable=pc_path", "pkg-config").strip().split(":")
        self.assertIn(os.path.join(self.options["prefix"], self.options["libdir"], "pkgconfig"), looked_into)

    def test_a_program_without_any_shared_library(self):
        """On a node, which needs no driver of DPDK's."""
        self.shell("cc", "-static", "hello.c", "-o", "hello", *self.flags("--cflags", "--libs", "--static"))
        self.assertEqual(self.needed("hello"), [])
        self.expect_hello("./hello")

    def test_cmake(self):
        if not shutil.which("cmake") or not shutil.which("c++"):
            self.skipTest("cmake or a C++ compiler is missing; install cmake and g++")
        self.write("CMakeLists.txt", CMAKE)
        self.shell("cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.shell("cmake", "--build", "build")
        self.expect_hello("build/shared")
        self.expect_hello("build/static")
        self.assertEqual([name for name in self.needed("build/static") if "postern" in name], [])

    def test_cmake_refuses_another_version(self):
        if not shutil.which("cmake"):
            self.skipTest("cmake is missing; install cmake")
        for wanted in ("0.0", "0.99", "1.0"):
            self.write("CMakeLists.txt", CMAKE.replace("postern 0.1", f"postern {wanted}"))
            done = subprocess.run(["cmake", "-S", ".", "-B", f"build-{wanted}", f"-DCMAKE_PREFIX_PATH={self.prefix}"],
                                  cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                                  env=programs.environment(), timeout=programs.TIMEOUT)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f'requested version "{wanted}"', done.stdout)


if __name__ == "__main__":
    programs.main()
