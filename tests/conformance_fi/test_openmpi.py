#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_openmpi.py PROVIDER - Debian's own Open MPI, which is not rebuilt, over the provider: programs of tests/clients on two ranks of a node, and
a rank that is killed. Open MPI is allowed nothing else that could carry them. Then a job that seems to have two hosts, which a node does not
join: it goes on without the provider."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(SOURCE / "tests/apps"))
import programs  # pylint: disable=wrong-import-position

LIMIT = 300  # s, of a job; generous, the cores may be busy
# One-sided calls as reads, writes and atomic operations of libfabric. Open MPI's osc rdma (4.1.4) ends with a signal in MPI_Compare_and_swap over
# btl ofi, also over libfabric's own provider sockets.
MESSAGES = "--mca pml cm --mca btl self"
WINDOWS = "--mca pml cm --mca osc rdma --mca osc_rdma_btls ofi --mca btl self,ofi --mca btl_ofi_provider_include postern"
JOBS = [(MESSAGES, "point", "quick"), (MESSAGES, "collective", ""), (MESSAGES, "several", "quick"), (MESSAGES, "onesided", "quick"),
        (WINDOWS, "onesided", "noswap")]
ASIDE = "this job has processes on several hosts, and PTL_IFACE_NAME=node:"
ENDLESS = r"""#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char **words)
{
	int rank, sent = 0, got;
	FILE *file;

	MPI_Init(&count, &words);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (;; sent++) {
		MPI_Sendrecv(&sent, 1, MPI_INT, 1 - rank, 0, &got, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (sent == 1000 && rank == 1) {
			file = fopen("running", "w");
			fprintf(file, "%d\n", getpid());
			fclose(file);
		}
	}
}
"""


def job_run(directory, environment, how, words, meanwhile=lambda job: None):
    """The job's exit code, and what it has printed. timeout -k: mpirun may hang beyond SIGTERM."""
    command = ["timeout", "-k", "2", str(2 * LIMIT), "mpirun.openmpi", "--oversubscribe", "--tune", "postern", *how.split(), "-n", "2", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=directory, env=environment) as job:
        meanwhile(job)
        output, _, hung = programs.communicate(job, LIMIT)
    if hung:
        sys.exit(f"{words} {how}: {output}\n{hung}")
    return job.returncode, output


def run(directory, environment, how, words):
    """What the job printed."""
    code, output = job_run(directory, environment, how, words)
    if code != 0:
        sys.exit(f"{words} {how}: exit code {code}\n{output}")
    print(f"{words} {how}: passed")
    return output


def step_aside(directory, environment):
    """As mpirun says it to a rank of two hosts. One rank tells which setting to change."""
    output = run(directory, environment, "", ["sh", "-c", "OMPI_COMM_WORLD_LOCAL_SIZE=1 exec ./point quick"])
    if output.count(ASIDE) != 1:
        sys.exit(f"a job of two hosts over a node: {output}")


def kill_a_rank(directory, environment):
    """The job ends, and says so."""
    def kill(job):
        end = time.monotonic() + LIMIT
        while not (rank := programs.read(f"{directory}/running")) and time.monotonic() < end and job.poll() is None:
            time.sleep(0.05)
        if rank:
            os.kill(int(rank), signal.SIGKILL)

    code, output = job_run(directory, environment, MESSAGES, ["./endless"], kill)
    if code == 0 or not os.path.exists(f"{directory}/running"):
        sys.exit(f"a job with a killed rank ends with exit code {code}: {output}")
    print("a rank is killed: the job ended")


def main():
    missing = [name for name in ("mpirun.openmpi", "mpicc.openmpi") if not shutil.which(name)]
    if missing:
        print(f"skipped, because there is no {' and no '.join(missing)}: install openmpi-bin and libopenmpi-dev")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="ptn-") as directory:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PTL_", "OMPI_", "FI_"))}
        environment |= {"FI_PROVIDER_PATH": sys.argv[1], "PTL_IFACE_NAME": "node:" + os.path.basename(directory),
                        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TMPDIR": directory}
        shutil.copy(SOURCE / "share/openmpi/postern", directory)
        pathlib.Path(directory, "endless.c").write_text(ENDLESS, encoding="utf-8")
        for source in [SOURCE / f"tests/clients/{name}.c" for name in sorted({name for _, name, _ in JOBS})] + [pathlib.Path(directory, "endless.c")]:
            subprocess.run(["mpicc.openmpi", "-O2", "-o", f"{directory}/{source.stem}", source], check=True, timeout=LIMIT)
        for how, program, words in JOBS:
            run(directory, environment, how, [f"./{program}", *words.split()])
        step_aside(directory, environment)
        kill_a_rank(directory, environment)


if __name__ == "__main__":
    main()
