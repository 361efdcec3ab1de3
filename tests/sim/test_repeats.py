#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""An adversary repeats frames of streams that are over. Nothing is delivered twice, which postern-sim checks itself; and there is enough
that would be: more than 100 such frames begin a stream with a psn that is still good, and are refused only for the stream's number."""
import json
import subprocess
import sys
import unittest

SIMULATOR = sys.argv.pop(1)
REPEATS_LEAST = 100
COMMAND = [SIMULATOR, "--json", "--seeds", "40", "--haste", "50", "--adversary", "stall"]


class Repeats(unittest.TestCase):
    def test_many_repeated_frames_would_begin_a_stream_again(self):
        result = subprocess.run(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertGreater(json.loads(result.stdout)["transport"]["dropped_again"], REPEATS_LEAST)


if __name__ == "__main__":
    unittest.main()
