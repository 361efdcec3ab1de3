/* SPDX-License-Identifier: BSD-3-Clause */
/* dmpi.c - the layer's side of the device's interface. */
#include "mpiimpl.h"

MPIR_QUEUE MPIR_posted_recvs;

void MPIR_queues_init(void)
{
	MPIR_posted_recvs.length = 0;
	MPID_THREAD_DS_LOCK_INIT(&MPIR_posted_recvs)
	MPID_THREAD_DS_LOCK(&MPIR_posted_recvs)
	MPID_THREAD_DS_UNLOCK(&MPIR_posted_recvs)
}
