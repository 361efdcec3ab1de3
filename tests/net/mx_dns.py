#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""mx_dns.py - MX finds names of hosts by the system's resolver, which here reads a file of hosts of its own.

    mx_dns.py PROGRAM        PROGRAM is mx_dns
"""
import os
import subprocess
import sys
import tempfile

HOSTS = """127.0.0.1 localhost
10.0.0.7 beta.example.org beta
10.0.0.8 {long}
127.0.1.1 delta
"""

with tempfile.TemporaryDirectory() as directory:
    hosts, resolver = os.path.join(directory, "hosts"), os.path.join(directory, "nsswitch.conf")
    with open(hosts, "w", encoding="utf-8") as file:
        file.write(HOSTS.format(long="l" * 60 + "." + "m" * 60))
    with open(resolver, "w", encoding="utf-8") as file:
        file.write("hosts: files\n")
    sys.exit(subprocess.run(
        ["unshare", "-m", "sh", "-c", 'mount --bind "$1" /etc/hosts && mount --bind "$2" /etc/nsswitch.conf && exec "$3"', "sh",
         hosts, resolver, sys.argv[1]],
        env=dict(os.environ, PTL_IFACE_NAME="loop:a", PTL_ENCAP="udp", PTL_IP="10.0.0.5/24", PTL_MX_HOSTNAME="alpha"), check=False).returncode)
