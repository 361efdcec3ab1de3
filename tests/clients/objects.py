#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""objects.py - Python's objects between the ranks of an MPI job (mpi4py), of a few bytes and of a million, blocking and not, collective and from
any source; each rank starts another program meanwhile. Every object is checked."""
import os
import subprocess
import sys

from mpi4py import MPI

ROUNDS = 20
SIZES = (0, 1, 100, 5000, 1000000)


def thing(rank, number, size):
    return {"rank": rank, "number": number, "bytes": bytes((rank + number + n) & 255 for n in range(size % 251)) * (1 + size // 251)}


def expect(got, wanted, what):
    if got != wanted:
        print(f"{what} is wrong", file=sys.stderr, flush=True)
        MPI.COMM_WORLD.Abort(1)


def main():
    world = MPI.COMM_WORLD
    rank, ranks = world.Get_rank(), world.Get_size()
    for number in range(ROUNDS):
        size = SIZES[number % len(SIZES)]
        own = thing(rank, number, size)
        others = [thing(other, number, size) for other in range(ranks)]
        sent = [world.isend(own, to, number) for to in range(ranks)]
        status = MPI.Status()
        for _ in range(ranks):
            got = world.recv(source=MPI.ANY_SOURCE, tag=number, status=status)
            expect(got, others[status.Get_source()], f"an object from rank {status.Get_source()}")
        MPI.Request.waitall(sent)
        expect(world.allgather(own), others, "allgather")
        expect(world.alltoall([(own, to) for to in range(ranks)]), [(other, rank) for other in others], "alltoall")
        expect(world.bcast(own if rank == number % ranks else None, number % ranks), others[number % ranks], "bcast")
        expect(world.allreduce(rank + number), sum(range(ranks)) + number * ranks, "allreduce")
        done = subprocess.run([sys.executable, "-c", f"print({number})"], capture_output=True, text=True, check=True)
        expect((done.stdout, os.system("true")), (f"{number}\n", 0), "what another program says")
    if rank == 0:
        print(f"{ranks} ranks: {ROUNDS} rounds of objects")


if __name__ == "__main__":
    main()
