/* SPDX-License-Identifier: BSD-3-Clause */
/* dmpi.c - the layer's side of the device's interface. The device's header comes first. */
#include "mpid.h"
#include "mpiimpl.h"

MPIR_QUEUE MPIR_posted_recvs;
static MPIR_QUEUED first;

void MPIR_queues_init(void)
{
	first = (MPI_Request)0;
	MPIR_posted_recvs.length = first ? MPIR_MSG_CANCELLED : 0;
	MPID_THREAD_DS_LOCK_INIT(&MPIR_posted_recvs)
	MPID_THREAD_DS_LOCK(&MPIR_posted_recvs)
	MPID_THREAD_DS_UNLOCK(&MPIR_posted_recvs)
}
