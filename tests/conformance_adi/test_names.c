/* SPDX-License-Identifier: BSD-3-Clause */
/* test_names.c - every name of the device, in each spelling, in places where macros break:
 * compiling it is the test. */
#include <stdio.h>

#include "D.h"

#ifndef A_PACK_IN_ADVANCE
#error "the device wants packed data"
#endif
#ifndef A_RETURN_PACKED
#error "and gives packed data"
#endif

int main(int argc, char **argv)
{
	char name[A_MAX_MACHINE_NAME_LEN];
	int n, found, complete;
	Request s = {.handle_type = MPIR_SEND}, r = {.handle_type = MPIR_RECV};
	Status status;

	if (argc < 2)
		return 0;
	if (argc == 2)
		A_INIT(&argc, &argv);
	else
		A_END();
	if (argc == 3)
		A_ABORT(2);
	if (argc == 4)
		A_mysize(&n);
	else
		A_myrank(&n);
	A_NODE_NAME(name, (int)sizeof(name));
	A_machine_name(name, (int)sizeof(name));
	printf("%g %g %d\n", A_WTIME(), A_WTICK(), A_PACKET_SIZE);
	A_tag_range(&n);
	if (argc == 5)
		A_check_device(0);
	else
		A_check_device(1);
	if (argc == 6)
		A_alloc_send_handle(&s);
	else
		A_alloc_send(&s);
	if (argc == 7)
		A_set_send_is_nonblocking(&s, 1);
	else
		A_set_send_contig_buffer(&s, name, 1);
	A_post_send(&s);
	if (A_test_send(&s))
		A_complete_send(&s, &status);
	else
		A_free_send_handle(&s);
	if (argc == 8)
		A_alloc_recv_handle(&r);
	else
		A_set_recv_is_nonblocking(&r, 0);
	A_set_recv_contig_buffer(&r, name, 1);
	A_set_rcv_is_nonblocking(&r, 0);
	A_set_rcv_contig_buffer(&r, name, 1);
	A_alloc_rcv_handle(&r);
	A_alloc_recv(&r);
	if (argc == 9)
		A_post_recv(&r, &complete);
	else
		A_post_rcv(&r, &complete);
	if (A_test_recv(&r))
		A_complete_recv(&r, &status);
	else
		A_complete_rcv(&r, &status);
	if (A_cancel(&r))
		A_free_recv_handle(&r);
	else
		A_free_rcv_handle(&r);
	if (argc == 10)
		A_execute_send_recv(&r, &s, &status);
	else
		A_execute_send_rcv(&r, &s, &status);
	if (argc == 11)
		A_iprobe(1, 2, 3, &found, &status);
	else
		A_probe(1, 2, 3, &status);
	A_free_handle(s.dev_shandle);
	A_free_handle(r.dev_rhandle);
	return 0;
}
