#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of postern_job_... and of the abstract device, by each launcher that is installed: Open MPI's mpirun, Hydra, and Slurm's srun, which
needs a Slurm: tests/clients/slurm DIRECTORY COMMAND makes one."""
import os
import shutil
import subprocess
import unittest

import programs

RING = programs.program("examples/ring_allreduce")
ADI_RING = programs.program("examples/adi_ring")
LIMIT = 100
TOO_LONG = 124


def installed(name):
    return unittest.skipUnless(shutil.which(name), f"{name} is not installed")


has_pmix = unittest.skipUnless(os.environ.get("POSTERN_PMIX", "yes") == "yes", "this build knows no PMIx")
has_mpirun = unittest.skipUnless(shutil.which("mpirun.openmpi"), "mpirun.openmpi is not installed")
has_slurm = unittest.skipUnless(shutil.which("srun") and "SLURM_CONF" in os.environ, "no Slurm runs here: tests/clients/slurm makes one")


class Launched(programs.Case):
    def launch(self, *words, limit=LIMIT, **settings):
        """With an exit code of TOO_LONG for a hang, and in stderr what the job's processes were at. timeout -k: mpirun may hang beyond SIGTERM."""
        environment = programs.environment(XDG_RUNTIME_DIR=self.directory, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                                           OMPI_MCA_rmaps_base_oversubscribe="1", **settings)
        with subprocess.Popen(["timeout", "-k", "2", str(programs.TIMEOUT), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=environment) as job:
            out, err, hung = programs.communicate(job, limit)
        return subprocess.CompletedProcess(words, TOO_LONG if hung else job.returncode, out, err + hung)

    def test_a_hang_is_explained(self):
        done = self.launch("sh", "-c", "sleep 1000 & echo begun; wait", limit=2)
        self.assertEqual((done.returncode, done.stdout), (TOO_LONG, "begun\n"))
        for name in ("timeout", "sh", "sleep"):
            self.assertRegex(done.stderr, f"process [0-9]+, {name} [0-9]+: state S, at [^ ]+, system call ")

    def expect_jobs(self, *launcher, sizes=(1, 2, 4)):
        for size in sizes:
            for progress in ("both", "inline", "core") if size == 2 else ("both",):
                start = (*launcher, "-n", str(size))
                # mpirun binds two ranks to a core each, where a poll thread makes Postern warn.
                settings = {"PTL_PROGRESS": progress, **({"OMPI_MCA_hwloc_base_binding_policy": "none"} if progress == "core" else {})}
                done = self.expect_success(self.launch(*start, RING, "1000", **settings))
                self.assertEqual((done.stdout, done.stderr), (f"{size} ranks have the sum of their vectors of 1000 numbers\n", ""))
                if progress == "both":
                    done = self.expect_success(self.launch(*start, os.path.join(os.environ["POSTERN_BUILD"], "tests/apps/keys")))
                    self.assertEqual((done.stdout, done.stderr), (f"{size} ranks know all keys\n", ""))
                done = self.expect_success(self.launch(*start, ADI_RING, **settings))
                self.assertEqual((done.stdout, done.stderr), (f"a token has passed {size} ranks\n", ""))

    @has_pmix
    @has_mpirun
    def test_mpirun(self):
        self.expect_jobs("mpirun.openmpi")

    @has_mpirun
    @unittest.skipIf(os.environ.get("POSTERN_PMIX", "yes") == "yes", "this build knows PMIx")
    def test_mpirun_is_refused_by_a_build_without_pmix(self):
        done = self.launch("mpirun.openmpi", "-n", "2", RING)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("was started by PMIx, which this build of Postern does not know: start the job by srun --mpi=pmi2", done.stderr)

    @installed("mpiexec.hydra")
    def test_hydra(self):
        self.expect_jobs("mpiexec.hydra")

    @installed("mpiexec.hydra")
    def test_hydra_gives_many_cards(self):
        """Of a large job each rank reads all cards, of groups of ranks, the last of which is smaller."""
        join = os.path.join(os.environ["POSTERN_BUILD"], "tests/apps/join")
        if not os.path.exists(join):
            self.skipTest("the program needs the library's own code")
        done = self.expect_success(self.launch("mpiexec.hydra", "-n", "70", join))
        self.assertEqual(done.stdout.count("of 70: has its launcher"), 70)

    def test_postern_run(self):
        self.expect_jobs(programs.program("postern-run"))

    @has_pmix
    @has_slurm
    def test_srun_pmix(self):
        self.expect_jobs("srun", "--quiet", "--overcommit", "--mpi=pmix")

    @has_slurm
    def test_srun_pmi2(self):
        self.expect_jobs("srun", "--quiet", "--overcommit", "--mpi=pmi2")

    @has_slurm
    def test_srun_without_a_pmi(self):
        done = self.launch("srun", "-n", "2", RING)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("srun has started 2 tasks without a PMI: start them by srun --mpi=pmix", done.stderr)
        self.assertEqual(done.stdout, "")
        done = self.expect_success(self.launch("srun", "-n", "2", RING, PTL_JOB="alone", PTL_IFACE_NAME="loop:a"))
        self.assertEqual(done.stdout.count("1 ranks have the sum"), 2)

    @has_slurm
    def test_who_is_alone_on_purpose(self):
        for launcher in (("srun", "-n", "1"), ("salloc", "-n", "2")):
            done = self.expect_success(self.launch(*launcher, RING))
            self.assertIn("1 ranks have the sum", done.stdout)

    def expect_ends(self, *launcher, abort=None, exited=None, **settings):
        """A job ends when a rank of it aborts, exits, is killed, or leaves while others are in a barrier, also if it exits with 0. abort, exited: the exit codes of a
        launcher that passes them on, and does so long before the peers give the rank up."""
        for how in ("7", "exit", "quit", "kill", "leave"):
            done = self.launch(*launcher, "-n", "3", os.path.join(os.environ["POSTERN_BUILD"], "tests/apps/ends"), how,
                               PTL_PEER_TIMEOUT="60s" if how == "7" or how == "exit" and exited else "2s", **settings)
            self.assertNotEqual(done.returncode, TOO_LONG, (how, done.stderr))
            if how != "quit" or launcher[0] != "mpiexec.hydra":  # which kills the others then, and returns 0 now and then
                self.assertNotEqual(done.returncode, 0, (how, done.stderr))
            if how in ("7", "exit") and abort:
                self.assertIn(done.returncode, (abort,) if how == "7" else exited)
            if how == "leave" and done.stderr:  # Hydra may lose what is written just before an abort
                self.assertRegex(done.stderr, "rank [02] waits at a barrier, and rank [01] has not answered for 2 s|rank 0 waits for rank 1, which has left|"
                                              "a rank of this job has ended, or has left it")

    def test_postern_run_ends_a_job(self):
        self.expect_ends(programs.program("postern-run"), abort=7, exited=(9,))

    @has_pmix
    @has_mpirun
    def test_mpirun_ends_a_job(self):
        self.expect_ends("mpirun.openmpi", abort=7, exited=(9, 4))  # 4: of another rank, whose barrier fails

    @installed("mpiexec.hydra")
    def test_hydra_ends_a_job(self):
        self.expect_ends("mpiexec.hydra", abort=7, exited=(9,))

    @installed("mpiexec.hydra")
    def test_hydra_ends_a_job_of_ranks_that_answer_in_their_own_calls_only(self):
        """A node knows that a process is not there. One that makes no calls is there."""
        self.expect_ends("mpiexec.hydra", abort=7, exited=(9,), PTL_PROGRESS="inline")
        self.expect_success(self.launch("mpiexec.hydra", "-n", "3", os.path.join(os.environ["POSTERN_BUILD"], "tests/apps/ends"), "late",
                                        PTL_PROGRESS="inline", PTL_PEER_TIMEOUT="500ms"))

    @has_pmix
    @has_slurm
    def test_srun_pmix_ends_a_job(self):
        self.expect_ends("srun", "--quiet", "--overcommit", "--mpi=pmix")

    @has_slurm
    def test_srun_pmi2_ends_a_job(self):
        self.expect_ends("srun", "--quiet", "--overcommit", "--mpi=pmi2")

    @has_slurm
    def test_srun_pmi2_ends_a_job_of_ranks_that_answer_in_their_own_calls_only(self):
        """Over a node, and over UDP sockets."""
        for iface in ("node:ends", "udp"):
            self.expect_ends("srun", "--quiet", "--overcommit", "--mpi=pmi2", PTL_PROGRESS="inline", PTL_IFACE_NAME=iface)

    def expect_inner(self, outer, inner):
        done = self.expect_success(self.launch(*outer, "-n", "1", *inner, "-n", "2", RING, "10"))
        self.assertEqual(done.stdout, "2 ranks have the sum of their vectors of 10 numbers\n", (outer, inner))

    @has_pmix
    @has_mpirun
    @installed("mpiexec.hydra")
    def test_of_nested_launchers_the_inner_one_counts(self):
        launchers = (programs.program("postern-run"),), ("mpirun.openmpi",), ("mpiexec.hydra",)
        for outer in launchers:
            for inner in launchers:
                if not outer == inner == ("mpirun.openmpi",):  # which refuses that
                    self.expect_inner(outer, inner)

    @has_slurm
    def test_of_launchers_in_a_task_of_srun_the_inner_one_counts(self):
        for mpi in ("none", "pmi2", "pmix"):
            self.expect_inner(("srun", "--quiet", "--overcommit", "--mpi=" + mpi), (programs.program("postern-run"),))

    @has_pmix
    @has_slurm
    def test_of_srun_in_a_rank_the_inner_one_counts(self):
        for outer in ((programs.program("postern-run"),), ("mpirun.openmpi",), ("mpiexec.hydra",)):
            for mpi in ("pmi2", "pmix"):
                self.expect_inner(outer, ("srun", "--quiet", "--overcommit", "--mpi=" + mpi))

    @has_pmix
    @has_mpirun
    @installed("mpicc.openmpi")
    def test_open_mpi_in_the_same_process(self):
        """Leave before MPI_Init is refused by MPI_Init, as the manual says."""
        build, program = os.environ["POSTERN_BUILD"], os.path.join(self.directory, "orders")
        source = os.environ["POSTERN_SOURCE"]
        subprocess.run(["mpicc.openmpi", "-o", program, f"{source}/tests/apps/orders.c", f"-I{source}/include", f"-L{build}/lib/p3", "-lpostern",
                        f"-Wl,-rpath,{build}/lib/p3:{build}/lib/host"], check=True, timeout=LIMIT)
        for order in ("jilf", "jifl", "ijlf", "ijfl", "ifjl"):
            done = self.expect_success(self.launch("mpirun.openmpi", "-n", "3", program, order))
            self.assertEqual(done.stdout, f"{order} went well on 3 ranks\n")
        self.assertNotEqual(self.launch("mpirun.openmpi", "-n", "2", program, "jlif").returncode, 0)


if __name__ == "__main__":
    unittest.main()
