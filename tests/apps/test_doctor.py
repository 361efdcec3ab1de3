#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""postern-info doctor as a user runs it: on machines made of files, and on this one.

Covers: pmd-glue/device.c, pmd-glue/hugepages.c.
"""
import json
import os
import re
import subprocess
import shlex

import programs

CARD = "0000:03:00.0"
SUDO = "" if os.getuid() == 0 else "sudo "
CPU = "sys/devices/system/cpu"
STATUS = "Name:\tx\nCapEff:\t{caps}\nCpus_allowed_list:\t{cpus}\n"
LIMITS = ("Limit                     Soft Limit           Hard Limit           Units     \n"
          "Max open files            {files}                 1048576              files     \n"
          "Max locked memory         {locked}              {locked}              bytes     \n")

COMMANDS = {"(cd", "#", "dpdk-devbind.py", "echo", "export", "ip", "ls", "modprobe", "posternd", "postern-info", "postern-ping", "rm", "sed", "setcap",
            "sysctl", "ulimit", "unset", "chown"}


class Case(programs.Case):
    def expect_commands(self, findings):
        """Each line of a cure can be pasted into a shell as it is."""
        for line in [line for finding in findings for line in finding["fix"].splitlines()]:
            words = shlex.split(line, comments=True)
            self.assertFalse(os.getuid() == 0 and "sudo" in words, line)  # root may have none
            words = words[1:] if words[:1] == ["sudo"] else words
            self.assertIn(words[0] if words else "#", COMMANDS, line)
            self.assertEqual(subprocess.run(["sh", "-n", "-c", line], check=False).returncode, 0, line)
            self.assertFalse([word for word in words if word.endswith((",", ";"))], line)


class Doctor(Case):
    """A machine of files, good for everything; a test spoils one thing."""

    def setUp(self):
        super().setUp()
        for file, text in {
                f"{CPU}/online": "0-3", f"{CPU}/isolated": "2-3", f"{CPU}/nohz_full": "2-3",
                f"{CPU}/cpu2/topology/thread_siblings_list": "2",
                f"{CPU}/cpu2/cpufreq/scaling_governor": "performance",
                "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "512",
                "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": "500",
                "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
                "sys/devices/system/node/node0/cpulist": "0-1",
                "sys/devices/system/node/node1/cpulist": "2-3",
                "proc/sys/kernel/numa_balancing": "0",
                "proc/sys/net/core/netdev_max_backlog": "1000",
                "proc/sys/net/core/optmem_max": "20480",
                f"sys/bus/pci/devices/{CARD}/numa_node": "1",
                "sys/kernel/iommu_groups/7/type": "DMA",
                "dev/vfio/7": "",
                "sys/class/net/eth9/flags": "0x1003", "sys/class/net/eth9/carrier": "1",
                "sys/class/net/eth9/mtu": "9000", "sys/class/net/eth9/device/numa_node": "1",
                "proc/self/status": STATUS.format(caps="000001ffffffffff", cpus="0-3"),
                "proc/self/limits": LIMITS.format(files=1024, locked="unlimited"),
        }.items():
            self.write(file, text)
        self.link(f"sys/bus/pci/devices/{CARD}/driver", "/drivers/vfio-pci")
        self.link(f"sys/bus/pci/devices/{CARD}/iommu_group", "/groups/7")

    def path(self, file):
        return os.path.join(self.directory, file)

    def write(self, file, text):
        os.makedirs(os.path.dirname(self.path(file)), exist_ok=True)
        with open(self.path(file), "w", encoding="utf-8") as stream:
            stream.write(text + "\n" if text and not text.endswith("\n") else text)

    def remove(self, file):
        os.remove(self.path(file))

    def link(self, file, target):
        if os.path.lexists(self.path(file)):
            self.remove(file)
        os.makedirs(os.path.dirname(self.path(file)), exist_ok=True)
        os.symlink(target, self.path(file))

    def doctor(self, interface=CARD, **settings):
        settings = {"PTL_IFACE_NAME": interface, "PTL_POLL_CORE": "2", **settings}
        return programs.run("postern-info", "doctor", "--json", "--root", self.directory, **settings)

    def expect(self, check, level, part, fix, interface=CARD, **settings):
        """The check has one finding of this level, with these words."""
        done = self.doctor(interface, **settings)
        report = json.loads(done.stdout)
        found = [f for f in report["findings"] if f["check"] == check and f["level"] == level]
        self.assertEqual(len(found), 1, report)
        self.assertIn(part, found[0]["text"])
        self.assertIn(fix, found[0]["fix"])
        self.expect_commands(found)
        self.assertEqual(bool(found[0]["fix"]), level != "ok")
        self.assertEqual(done.returncode, 1 if report["failures"] else 0)
        self.assertEqual(report["failures"] > 0, level == "failure")

    def test_a_good_machine_is_found_good(self):
        for interface in (CARD, "eth9", f"{CARD};eth9;loop:a;node:a", f" {CARD} ; eth9; loop:a ;\tnode:a", " eth9 ", ""):
            with self.subTest(interface=interface):
                done = self.doctor(interface)
                report = self.expect_json(done)
                self.assertEqual((report["warnings"], report["failures"]), (0, 0), report)
                self.assertTrue(all(f["level"] == "ok" for f in report["findings"]))

    def test_cores(self):
        self.expect("cores", "ok", "may use 4 CPUs", "")
        self.write("proc/self/status", STATUS.format(caps="000001ffffffffff", cpus="2"))
        self.expect("cores", "warning", "only CPU", "PTL_PROGRESS=inline")
        self.expect("cores", "ok", "may use 1 CPUs", "", PTL_PROGRESS="inline")

    def test_poll_core(self):
        self.expect("poll core", "ok", "CPU 2", "")
        for number in (" 2 ", "0x2", "002"):
            self.expect("poll core", "ok", "CPU 2", "", PTL_POLL_CORE=number)
        self.write(f"{CPU}/online", "0-1,3")
        self.expect("poll core", "failure", "CPU 2", "PTL_POLL_CORE=3")
        self.expect("poll core", "failure", "CPU 2", "PTL_POLL_CORE=3", f"{CARD};loop:a", PTL_POLL_CORE="3;2")
        self.expect("poll core", "warning", "PTL_POLL=busy", "PTL_POLL_CORE=3", PTL_POLL_CORE="",
                    PTL_POLL="busy")
        self.expect("poll core", "ok", "sleeps when no messages come", "", PTL_POLL_CORE="")
        self.expect("poll core", "ok", "no polling thread", "", PTL_PROGRESS="inline")

    def test_isolation(self):
        self.expect("isolation", "ok", "CPU 2", "")
        self.write(f"{CPU}/nohz_full", "(null)")
        self.expect("isolation", "warning", "ticks", "nohz_full=2")
        self.write(f"{CPU}/isolated", "")
        self.expect("isolation", "warning", "other threads and ticks", "isolcpus=2")
        self.expect("isolation", "ok", "no CPU is reserved", "", PTL_POLL_CORE="")

    def test_siblings(self):
        self.expect("siblings", "ok", "CPU 2", "")
        self.write(f"{CPU}/cpu2/topology/thread_siblings_list", "2-3")
        self.expect("siblings", "warning", "CPU 3", "cpu3/online")

    def test_governor(self):
        self.expect("governor", "ok", "all CPUs", "")
        self.write(f"{CPU}/cpu2/cpufreq/scaling_governor", "powersave")
        self.expect("governor", "warning", "powersave", "scaling_governor")
        self.remove(f"{CPU}/cpu2/cpufreq/scaling_governor")
        self.expect("governor", "ok", "does not control", "")

    def test_hugepages(self):
        self.expect("hugepages", "ok", "1024 MiB, 1000 of them free", "")
        self.write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "0")
        self.expect("hugepages", "warning", "0 of 1024 MiB are free", "vm.nr_hugepages=640")
        self.write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "31")
        self.expect("hugepages", "warning", "62 of 1024 MiB are free, and Postern uses them if 64 are", "vm.nr_hugepages=609")
        self.write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "32")
        self.expect("hugepages", "ok", "1024 MiB, 64 of them free", "")
        self.write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "0")
        self.write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0")
        self.expect("hugepages", "warning", "none", "vm.nr_hugepages=128")  # vfio needs none
        self.expect("hugepages", "warning", "none", "vm.nr_hugepages=128", "eth9")
        self.link(f"sys/bus/pci/devices/{CARD}/driver", "/drivers/uio_pci_generic")
        self.expect("hugepages", "failure", "need them", "vm.nr_hugepages=128")

    def test_numa(self):
        self.expect("numa", "ok", "node 1", "")
        self.expect("numa", "ok", "node 1", "", "eth9")
        self.write(f"sys/bus/pci/devices/{CARD}/numa_node", "0")
        self.expect("numa", "warning", "another NUMA node", "PTL_POLL_CORE=0")
        self.write(f"sys/bus/pci/devices/{CARD}/numa_node", "-1")
        self.expect("numa", "ok", "far from its card", "")
        self.write("proc/sys/kernel/numa_balancing", "1")
        self.expect("numa", "warning", "moves memory", "numa_balancing=0")

    def test_driver(self):
        self.expect("driver", "ok", "vfio-pci", "")
        self.link(f"sys/bus/pci/devices/{CARD}/driver", "/drivers/ixgbe")
        self.expect("driver", "failure", "ixgbe", f"dpdk-devbind.py -b vfio-pci {CARD}")
        self.remove(f"sys/bus/pci/devices/{CARD}/driver")
        self.expect("driver", "failure", "no driver", f"vfio-pci {CARD}", "03:00.0")
        self.expect("driver", "failure", "no PCI device", "dpdk-devbind.py", "0000:04:00.0")
        self.write(f"sys/bus/pci/devices/{CARD}/class", "0x010802")
        self.expect("driver", "failure", "no Ethernet card", "postern-info")
        self.write(f"sys/bus/pci/devices/{CARD}/class", "0x020000")
        self.remove(f"sys/bus/pci/devices/{CARD}/iommu_group")
        self.expect("driver", "failure", "no driver",
                    f"modprobe uio_pci_generic && {SUDO}dpdk-devbind.py -b uio_pci_generic {CARD}")
        self.link(f"sys/bus/pci/devices/{CARD}/driver", "/drivers/uio_pci_generic")
        self.expect("driver", "ok", "uio_pci_generic", "")
        self.link(f"sys/bus/pci/devices/{CARD}/driver", "/drivers/mlx5_core")
        self.expect("driver", "ok", "mlx5_core", "")

    def test_iommu(self):
        self.expect("iommu", "ok", CARD, "")
        self.remove("sys/kernel/iommu_groups/7/type")
        os.rmdir(self.path("sys/kernel/iommu_groups/7"))
        self.expect("iommu", "failure", "none", f"dpdk-devbind.py -b uio_pci_generic {CARD}")
        self.write("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y")
        self.expect("iommu", "warning", "all memory", "intel_iommu=on")
        self.link(f"sys/bus/pci/devices/{CARD}/driver", "/drivers/uio_pci_generic")
        self.expect("iommu", "ok", "without one", "")

    def test_permissions(self):
        self.expect("permissions", "ok", "/dev/vfio/7", "")
        self.remove("dev/vfio/7")
        self.expect("permissions", "failure", "/dev/vfio/7", "chown $USER /dev/vfio/7")
        self.expect("permissions", "ok", "eth9", "", "eth9")
        self.link(f"sys/bus/pci/devices/{CARD}/driver", "/drivers/uio_pci_generic")
        self.expect("permissions", "ok", CARD, "")
        self.write("proc/self/status", STATUS.format(caps="0000000000000000", cpus="0-3"))
        for caps in (0, 1 << 12):  # none, CAP_NET_ADMIN
            self.write("proc/self/status", STATUS.format(caps=f"{caps:016x}", cpus="0-3"))
            self.expect("permissions", "failure", "eth9 needs CAP_NET_RAW", "setcap cap_net_raw+ep", "eth9")
            self.expect("permissions", "failure", "eth9 needs CAP_NET_RAW", "PTL_IFACE_NAME=udp:eth9", "eth9")
            self.expect("permissions", "ok", "no interface needs a privilege", "", "udp:eth9")
        self.write("run/postern/eth9/posternd", "")
        self.expect("permissions", "ok", "posternd serves eth9", "", "eth9")
        self.remove("run/postern/eth9/posternd")
        self.expect("permissions", "failure", "eth9 needs CAP_NET_RAW", "posternd --iface eth9", "eth9")
        self.write("proc/self/status", STATUS.format(caps=f"{1 << 13:016x}", cpus="0-3"))  # CAP_NET_RAW
        self.expect("permissions", "ok", "eth9", "", "eth9")
        self.expect("permissions", "failure", "af_xdp", "sudo", "xdp:eth9")
        self.expect("permissions", "failure", "for root alone", "sudo")

    def test_limits(self):
        self.expect("limits", "ok", "enough files may be open", "")
        self.write("proc/self/limits", LIMITS.format(files=100, locked=67108864))
        self.expect("limits", "warning", "only 100 files", "ulimit -n 1024" if os.getuid() == 0 else "nofile 1024", "eth9")
        self.write("proc/self/limits", LIMITS.format(files=1024, locked=67108864))
        self.expect("limits", "ok", "enough files may be open", "")
        self.write("proc/self/status", STATUS.format(caps="000001ffffffbfff", cpus="0-3"))  # all but CAP_IPC_LOCK
        self.expect("limits", "failure", "65536 KiB", "memlock unlimited")
        self.expect("limits", "ok", "enough files may be open", "", "eth9")

    def test_kernel(self):
        self.expect("kernel", "ok", "no setting", "")
        self.write("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never")
        self.expect("kernel", "warning", "always", "transparent_hugepage/enabled")
        self.write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]")
        self.write("proc/sys/kernel/osrelease", "6.18.44-1-amd64")
        self.write("proc/sys/kernel/sched_autogroup_enabled", "0")
        self.expect("kernel", "ok", "no setting", "")
        self.write("proc/sys/kernel/sched_autogroup_enabled", "1")
        self.expect("kernel", "warning", "Linux 6.18.44-1-amd64", "sched_autogroup_enabled=0")
        self.write("proc/sys/kernel/osrelease", "6.18.45-1-amd64")
        self.expect("kernel", "ok", "no setting", "")
        self.write("proc/sys/kernel/osrelease", "6.1.0-18-amd64")
        self.expect("kernel", "ok", "no setting", "")
        self.write("proc/sys/net/core/netdev_max_backlog", "300")
        self.expect("kernel", "ok", "no setting", "")
        self.expect("kernel", "warning", "300", "netdev_max_backlog=", "eth9")
        self.expect("kernel", "warning", "300", "netdev_max_backlog=", "udp")
        self.write("proc/sys/net/core/netdev_max_backlog", "1000")
        self.write("proc/sys/net/core/rmem_max", "212992")
        self.expect("kernel", "ok", "no setting", "", "eth9")
        for port in ("udp", "udp:eth9", "udp:10.0.0.5"):
            self.expect("kernel", "warning", "a UDP socket can hold only 208 KiB", "net.core.rmem_max=", port)
        self.write("proc/sys/net/core/rmem_max", "4194304")
        self.expect("kernel", "ok", "no setting", "", "udp")
        self.write("proc/sys/net/core/optmem_max", "4096")
        self.expect("kernel", "ok", "no setting", "", "udp")
        self.expect("kernel", "warning", "4096", "optmem_max=", "xdp:eth9")

    def test_link(self):
        self.expect("link", "ok", "eth9 is up, MTU 9000", "", "eth9")
        self.expect("link", "ok", "eth9 is up, MTU 9000", "", "udp:eth9")
        self.expect("link", "failure", "no network interface eth8", "ip -brief link", "udp:eth8")
        for port in ("udp", "udp:10.0.0.5"):
            self.expect("link", "ok", "no interface is a kernel interface", "", port)
        for mtu in ("9001", "0x2329"):
            self.expect("link", "failure", "PTL_MTU is 9001", "mtu 9001", "eth9", PTL_MTU=mtu)
        self.expect("link", "failure", "PTL_MTU is 9001", "mtu 9001", "loop:a;loop:b;eth9", PTL_MTU="1500;9001")  # the last serves the rest
        self.write("sys/class/net/eth9/carrier", "0")
        self.expect("link", "failure", "carrier", "ip -d link show eth9", "eth9")
        self.write("sys/class/net/eth9/flags", "0x1002")
        self.expect("link", "failure", "down", "ip link set eth9 up", "eth9")
        self.expect("link", "failure", "no network interface eth8", "ip -brief link", "eth8")

    def test_settings(self):
        done = self.doctor(PTL_PROGRESS="sometimes")
        self.assertEqual(done.returncode, 1)
        self.assertIn("sometimes", [f for f in json.loads(done.stdout)["findings"]
                                    if f["check"] == "settings"][0]["text"])


class Live(Case):
    """This machine."""

    def findings(self, *words, **settings):
        done = programs.run("postern-info", "doctor", "--json", *words, **settings)
        report = json.loads(done.stdout)
        self.expect_commands(report["findings"])
        return done.returncode, {f["check"]: f for f in report["findings"]}, done

    def test_text_says_what_to_do(self):
        done = programs.run("postern-info", "doctor", PTL_IFACE_NAME="nonesuch0")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"(?m)^failure  link: there is no network interface nonesuch0$")
        self.assertRegex(done.stdout, r"(?m)^ +fix:\n +ip -brief link$")
        self.assertRegex(done.stdout, r"(?m)^failure  interface: ")

    def test_a_peer_is_asked(self):
        self.server()
        _, found, done = self.findings("1:1", **self.node())
        self.assertEqual(found["interface"]["level"], "ok")
        self.assertEqual(found["name"]["level"], "ok", done.stdout)
        self.assertEqual(found["peer"]["level"], "ok")
        self.assertEqual(found["mtu"]["level"], "ok")

    def test_another_size_of_frames_on_the_node_is_told(self):
        server = self.server(PTL_MTU="1500")
        _, found, done = self.findings("1:1", **self.node())
        self.assertEqual(found["peer"]["level"], "failure", done.stdout)
        self.assertIn("give both the same PTL_MTU", server.stderr.readline())

    def test_a_process_of_the_same_name_is_found(self):
        self.server()
        code, found, done = self.findings("--pid", "1", **self.node())
        self.assertEqual(code, 1)
        self.assertEqual(found["interface"]["level"], "failure", done.stdout)
        self.assertIn("process id 1 is in use", found["interface"]["text"])

    def test_what_lies_in_the_node_is_told(self):
        server = self.server()
        server.kill()
        server.wait()
        rendezvous = os.path.join(programs.DIRECTORIES, "postern", os.path.basename(self.directory))
        with open(os.path.join(rendezvous, "letter"), "w", encoding="ascii"):
            pass
        done = programs.run("postern-info", "doctor", **self.node())
        self.assertIn(f"node: {rendezvous} belongs to user {os.getuid()}, and 0 processes are in it", done.stdout)
        self.assertIn(f"node: 1 sockets of processes that have died are in {rendezvous}", done.stdout)
        self.assertRegex(done.stdout, rf"(?m)^warning  node: 1 files in {rendezvous} are not Postern's\n +fix:\n +ls -la '{rendezvous}'$")
        os.remove(os.path.join(rendezvous, "letter"))
        self.assertNotIn("sockets of processes", programs.run("postern-info", "doctor", **self.node()).stdout)
        os.chmod(rendezvous, 0o755)
        code, found, _ = self.findings(**self.node())
        self.assertEqual((code, found["node"]["level"]), (1, "failure"))
        self.assertIn(f"chmod 700 {rendezvous}", found["node"]["text"])
        os.chmod(rendezvous, 0o700)

    def test_one_cure_removes_all_nodes_that_nobody_is_in(self):
        base = os.path.join(self.directory, "it's a home")
        nodes = os.path.join(base, "postern")
        os.mkdir(base)
        node = {"PTL_IFACE_NAME": "node:own", "XDG_RUNTIME_DIR": base}
        programs.run("postern-info", "doctor", **node)
        for number in range(50):
            os.mkdir(os.path.join(nodes, f"idle-{number}"), 0o700)
            with open(os.path.join(nodes, f"idle-{number}", "lock"), "w", encoding="ascii"):
                pass
        os.mkdir(os.path.join(nodes, "not a node"))
        done = programs.run("postern-info", "doctor", **node)
        self.assertIn("50 other nodes of this user have no process", done.stdout)
        cures = re.findall(r"^ +(.*rm -r .*)$", done.stdout, re.MULTILINE)
        self.assertEqual(len(cures), 1)
        self.assertEqual(subprocess.run(cures[0], shell=True, check=False).returncode, 0, cures)
        self.assertEqual(sorted(os.listdir(nodes)), ["not a node", "own"])
        self.assertNotIn("other node", programs.run("postern-info", "doctor", **node).stdout)

    def test_a_peer_that_is_not_there_is_told(self):
        self.server()
        code, found, _ = self.findings("1:9", **self.node())
        self.assertEqual(code, 1)
        self.assertIn("no process of this user on this machine has the id 1:9", found["peer"]["text"])
        self.assertIn("export PTL_IFACE_NAME=udp", found["peer"]["fix"])
        code, found, _ = self.findings("1:1", **(self.node() | {"PTL_NID": "2"}))
        self.assertEqual(code, 1)
        self.assertIn("the node id of 1:1 is not that of this process, 2", found["peer"]["text"])
        self.assertIn("export PTL_NID=1 # if 1:1 is a process of this user", found["peer"]["fix"])

    def test_without_a_port_to_others_that_is_what_is_told(self):
        code, found, _ = self.findings("1:1", PTL_IFACE_NAME="loop:a", PTL_NID="2")
        self.assertEqual(code, 1)
        self.assertIn("connects to no other process", found["peer"]["text"])
        self.assertIn("PTL_IFACE_NAME", found["peer"]["fix"])

    def test_a_process_that_would_be_alone_is_told(self):
        with open(f"{self.directory}/postern", "w", encoding="ascii"):
            pass
        for settings in ({}, {"PTL_IFACE_NAME": ""}, {"PTL_IFACE_NAME": " \t"}):  # blank is not set
            code, found, _ = self.findings("9:9", XDG_RUNTIME_DIR=self.directory, **settings)
            self.assertEqual((code, found["node"]["level"]), (1, "warning"))
            self.assertIn("until then a process reaches itself only", found["node"]["text"])
            self.assertIn("connects to no other process", found["peer"]["text"])
        code, found, _ = self.findings(PTL_ENCAP="udp", PTL_IP="198.18.7.1/24")
        self.assertEqual((code, found["node"]["level"]), (0, "warning"))
        self.assertIn("a process reaches itself only", found["node"]["text"])
        done = programs.run("postern-info", "doctor", XDG_RUNTIME_DIR="/proc/nowhere")
        self.assertRegex(done.stdout, r"(?m)^warning  node: .*; XDG_RUNTIME_DIR is no directory of this user\n +fix:\n +unset XDG_RUNTIME_DIR #")

    def test_another_subnet_without_a_router_is_told(self):
        settings = {**self.memif(1), "PTL_NID": "", "PTL_ENCAP": "udp", "PTL_IP": "198.18.7.1/24"}
        code, found, done = self.findings("198.18.8.1:1", **settings)
        self.assertEqual(code, 1)
        self.assertIn("another subnet", found["peer"]["text"], done.stdout)
        self.assertIn("export PTL_GATEWAY=", found["peer"]["fix"])
        code, found, done = self.findings("198.18.8.1:1", PTL_GATEWAY="198.18.7.2", **settings)
        self.assertEqual(code, 1)
        self.assertNotIn("another subnet", found["peer"]["text"], done.stdout)

    def test_an_address_of_the_kernel_s_is_found(self):
        settings = {**self.memif(1), "PTL_NID": "", "PTL_ENCAP": "udp"}
        _, found, done = self.findings(PTL_IP="127.0.0.1/8", **settings)
        self.assertEqual(found["interface"]["level"], "warning", done.stdout)
        self.assertIn("the kernel also has the address 127.0.0.1, on lo", found["interface"]["text"])
        self.assertIn('PTL_IP of interface 0 is "127.0.0.1/8", which is also the kernel\'s address on lo', done.stderr)
        _, found, done = self.findings(PTL_IP="198.18.7.1/24", **settings)
        self.assertEqual(found["interface"]["level"], "ok", done.stdout)
        self.assertNotIn("the kernel's address", done.stderr)

    def test_what_the_system_refuses_to_a_socket_is_told(self):
        settings = {"PTL_IFACE_NAME": f"udp:{self.all_users()}", "PTL_NID": ""}
        _, found, done = self.findings(**settings)
        self.assertEqual(found["socket"]["level"], "ok", done.stdout)
        refuse = os.path.join(programs.PROGRAMS, "..", "tests", "net", "refuse")
        names = {"segment": "UDP_SEGMENT", "gro": "UDP_GRO", "errors": "IP_RECVERR", "buffers": "SO_RCVBUF", "recvmmsg": "recvmmsg"}
        words = [refuse, "92", ",".join(names), programs.program("postern-info"), "doctor", "--json"]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=programs.TIMEOUT,
                              env=programs.environment(PTL_LOG_LEVEL="info", **settings), check=False)
        sockets = [one for one in json.loads(done.stdout)["findings"] if one["check"] == "socket"]
        self.assertTrue(all(one["fix"].startswith("# ") for one in sockets), sockets)
        for name in names.values():
            told = [one for one in sockets if f"the system refuses {name}: " in one["text"]]
            self.assertEqual([one["level"] for one in told], ["warning"], done.stdout)
            self.assertEqual(done.stderr.count(f"the system refuses {name}: "), 1, done.stderr)

    def test_wrong_words_get_code_2(self):
        for words, part in ((["--nonsense"], "--help"), (["7"], "no process"), (["--pid", "x"], "process id")):
            done = programs.run("postern-info", "doctor", *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(part, done.stderr)
        self.assertIn("--root", self.expect_success(programs.run("postern-info", "doctor", "--help")).stdout)


if __name__ == "__main__":
    programs.main()
