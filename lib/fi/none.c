/* SPDX-License-Identifier: BSD-3-Clause */
/* none.c - operations that are not supported: each is there for a program to call, and says so.
 * Tables that have others as well are here, too: they are whole before anybody reads them. */
#include <fi/remote.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define NONE(type, name, ...)                                                                      \
	static type name(__VA_ARGS__)                                                              \
	{                                                                                          \
		return -FI_ENOSYS;                                                                 \
	}

int none_bind(struct fid *fid, struct fid *bound, uint64_t flags)
{
	return -FI_ENOSYS;
}

int none_control(struct fid *fid, int command, void *argument)
{
	return -FI_ENOSYS;
}

int none_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	return -FI_ENOSYS;
}

int none_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context)
{
	return -FI_ENOSYS;
}

/* --- remote memory */

NONE(ssize_t, none_read, struct fid_ep *ep, void *buffer, size_t length, void *desc, fi_addr_t from,
	uint64_t at, uint64_t key, void *context)
NONE(ssize_t, none_readv, struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
	fi_addr_t from, uint64_t at, uint64_t key, void *context)
NONE(ssize_t, none_rmamsg, struct fid_ep *ep, const struct fi_msg_rma *message, uint64_t flags)
NONE(ssize_t, none_write, struct fid_ep *ep, const void *buffer, size_t length, void *desc,
	fi_addr_t to, uint64_t at, uint64_t key, void *context)
NONE(ssize_t, none_inject_write, struct fid_ep *ep, const void *buffer, size_t length, fi_addr_t to,
	uint64_t at, uint64_t key)
NONE(ssize_t, none_writedata, struct fid_ep *ep, const void *buffer, size_t length, void *desc,
	uint64_t data, fi_addr_t to, uint64_t at, uint64_t key, void *context)
NONE(ssize_t, none_inject_writedata, struct fid_ep *ep, const void *buffer, size_t length,
	uint64_t data, fi_addr_t to, uint64_t at, uint64_t key)

struct fi_ops_rma none_rma = {
	.size = sizeof(struct fi_ops_rma),
	.read = none_read,
	.readv = none_readv,
	.readmsg = none_rmamsg,
	.write = none_write,
	.writev = none_readv,
	.writemsg = none_rmamsg,
	.inject = none_inject_write,
	.writedata = none_writedata,
	.injectdata = none_inject_writedata,
};

NONE(int, none_reg, struct fid *fid, const void *buffer, size_t length, uint64_t access,
	uint64_t offset, uint64_t key, uint64_t flags, struct fid_mr **mr, void *context)
NONE(int, none_regv, struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
	uint64_t offset, uint64_t key, uint64_t flags, struct fid_mr **mr, void *context)
NONE(int, none_regattr, struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
	struct fid_mr **mr)

struct fi_ops_mr none_mr = {
	.size = sizeof(struct fi_ops_mr),
	.reg = none_reg,
	.regv = none_regv,
	.regattr = none_regattr,
};

/* --- atomics */

NONE(ssize_t, none_atomic_write, struct fid_ep *ep, const void *buffer, size_t count, void *desc,
	fi_addr_t to, uint64_t at, uint64_t key, enum fi_datatype type, enum fi_op op,
	void *context)
NONE(ssize_t, none_atomic_writev, struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
	size_t count, fi_addr_t to, uint64_t at, uint64_t key, enum fi_datatype type, enum fi_op op,
	void *context)
NONE(ssize_t, none_atomic_writemsg, struct fid_ep *ep, const struct fi_msg_atomic *message,
	uint64_t flags)
NONE(ssize_t, none_atomic_inject, struct fid_ep *ep, const void *buffer, size_t count, fi_addr_t to,
	uint64_t at, uint64_t key, enum fi_datatype type, enum fi_op op)
NONE(ssize_t, none_fetch, struct fid_ep *ep, const void *buffer, size_t count, void *desc,
	void *result, void *result_desc, fi_addr_t to, uint64_t at, uint64_t key,
	enum fi_datatype type, enum fi_op op, void *context)
NONE(ssize_t, none_fetchv, struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
	struct fi_ioc *results, void **result_desc, size_t result_count, fi_addr_t to, uint64_t at,
	uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
NONE(ssize_t, none_fetchmsg, struct fid_ep *ep, const struct fi_msg_atomic *message,
	struct fi_ioc *results, void **result_desc, size_t result_count, uint64_t flags)
NONE(ssize_t, none_compare, struct fid_ep *ep, const void *buffer, size_t count, void *desc,
	const void *compare, void *compare_desc, void *result, void *result_desc, fi_addr_t to,
	uint64_t at, uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
NONE(ssize_t, none_comparev, struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
	const struct fi_ioc *compares, void **compare_desc, size_t compare_count,
	struct fi_ioc *results, void **result_desc, size_t result_count, fi_addr_t to, uint64_t at,
	uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
NONE(ssize_t, none_comparemsg, struct fid_ep *ep, const struct fi_msg_atomic *message,
	const struct fi_ioc *compares, void **compare_desc, size_t compare_count,
	struct fi_ioc *results, void **result_desc, size_t result_count, uint64_t flags)
NONE(int, none_valid, struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count)

struct fi_ops_atomic none_atomic = {
	.size = sizeof(struct fi_ops_atomic),
	.write = none_atomic_write,
	.writev = none_atomic_writev,
	.writemsg = none_atomic_writemsg,
	.inject = none_atomic_inject,
	.readwrite = none_fetch,
	.readwritev = none_fetchv,
	.readwritemsg = none_fetchmsg,
	.compwrite = none_compare,
	.compwritev = none_comparev,
	.compwritemsg = none_comparemsg,
	.writevalid = none_valid,
	.readwritevalid = none_valid,
	.compwritevalid = none_valid,
};

/* --- collectives */

NONE(ssize_t, none_barrier, struct fid_ep *ep, fi_addr_t group, void *context)
NONE(ssize_t, none_broadcast, struct fid_ep *ep, void *buffer, size_t count, void *desc,
	fi_addr_t group, fi_addr_t root, enum fi_datatype type, uint64_t flags, void *context)
NONE(ssize_t, none_alltoall, struct fid_ep *ep, const void *buffer, size_t count, void *desc,
	void *result, void *result_desc, fi_addr_t group, enum fi_datatype type, uint64_t flags,
	void *context)
NONE(ssize_t, none_allreduce, struct fid_ep *ep, const void *buffer, size_t count, void *desc,
	void *result, void *result_desc, fi_addr_t group, enum fi_datatype type, enum fi_op op,
	uint64_t flags, void *context)
NONE(ssize_t, none_reduce, struct fid_ep *ep, const void *buffer, size_t count, void *desc,
	void *result, void *result_desc, fi_addr_t group, fi_addr_t root, enum fi_datatype type,
	enum fi_op op, uint64_t flags, void *context)
NONE(ssize_t, none_scatter, struct fid_ep *ep, const void *buffer, size_t count, void *desc,
	void *result, void *result_desc, fi_addr_t group, fi_addr_t root, enum fi_datatype type,
	uint64_t flags, void *context)
NONE(ssize_t, none_collective_msg, struct fid_ep *ep, const struct fi_msg_collective *message,
	struct fi_ioc *results, void **result_desc, size_t result_count, uint64_t flags)
NONE(ssize_t, none_barrier2, struct fid_ep *ep, fi_addr_t group, uint64_t flags, void *context)

struct fi_ops_collective none_collective = {
	.size = sizeof(struct fi_ops_collective),
	.barrier = none_barrier,
	.broadcast = none_broadcast,
	.alltoall = none_alltoall,
	.allreduce = none_allreduce,
	.allgather = none_alltoall,
	.reduce_scatter = none_allreduce,
	.reduce = none_reduce,
	.scatter = none_scatter,
	.gather = none_scatter,
	.msg = none_collective_msg,
	.barrier2 = none_barrier2,
};

/* --- connections */

NONE(int, none_setname, fid_t fid, void *address, size_t length)
NONE(int, none_getpeer, struct fid_ep *ep, void *address, size_t *length)
NONE(int, none_connect, struct fid_ep *ep, const void *address, const void *parameter,
	size_t length)
NONE(int, none_listen, struct fid_pep *pep)
NONE(int, none_accept, struct fid_ep *ep, const void *parameter, size_t length)
NONE(int, none_reject, struct fid_pep *pep, fid_t handle, const void *parameter, size_t length)
NONE(int, none_shutdown, struct fid_ep *ep, uint64_t flags)
NONE(int, none_join, struct fid_ep *ep, const void *address, uint64_t flags, struct fid_mc **mc,
	void *context)

struct fi_ops_cm cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = none_setname,
	.getname = endpoint_getname,
	.getpeer = none_getpeer,
	.connect = none_connect,
	.listen = none_listen,
	.accept = none_accept,
	.reject = none_reject,
	.shutdown = none_shutdown,
	.join = none_join,
};

/* --- contexts, and what a domain and a fabric do not open */

NONE(int, none_tx_ctx, struct fid_ep *sep, int index, struct fi_tx_attr *attr,
	struct fid_ep **opened, void *context)
NONE(int, none_rx_ctx, struct fid_ep *sep, int index, struct fi_rx_attr *attr,
	struct fid_ep **opened, void *context)
NONE(ssize_t, none_size_left, struct fid_ep *ep)

struct fi_ops_ep ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = message_cancel,
	.getopt = endpoint_getopt,
	.setopt = endpoint_setopt,
	.tx_ctx = none_tx_ctx,
	.rx_ctx = none_rx_ctx,
	.rx_size_left = none_size_left,
	.tx_size_left = none_size_left,
};

NONE(int, none_scalable, struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep,
	void *context)
NONE(int, none_stx, struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
	void *context)
NONE(int, none_srx, struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **srx,
	void *context)
NONE(int, none_query_collective, struct fid_domain *domain, enum fi_collective_op op,
	struct fi_collective_attr *attr, uint64_t flags)
NONE(int, none_endpoint2, struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
	uint64_t flags, void *context)

struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = av_open,
	.cq_open = cq_open,
	.endpoint = endpoint_open,
	.cntr_open = counter_open,
	.poll_open = poll_open,
	.scalable_ep = none_scalable,
	.stx_ctx = none_stx,
	.srx_ctx = none_srx,
	.query_atomic = atomic_query,
	.query_collective = none_query_collective,
	.endpoint2 = none_endpoint2,
};

NONE(int, none_passive, struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
	void *context)
NONE(int, none_wait, struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **wait)
NONE(int, none_domain2, struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
	uint64_t flags, void *context)

struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = domain_open,
	.eq_open = eq_open,
	.trywait = wait_try,
	.passive_ep = none_passive,
	.wait_open = none_wait,
	.domain2 = none_domain2,
};

/* --- messages of a kind that the endpoint was not opened for */

NONE(ssize_t, none_recv, struct fid_ep *ep, void *buffer, size_t length, void *desc, fi_addr_t from,
	void *context)
NONE(ssize_t, none_recvv, struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
	fi_addr_t from, void *context)
NONE(ssize_t, none_msg_flags, struct fid_ep *ep, const struct fi_msg *message, uint64_t flags)
NONE(ssize_t, none_send, struct fid_ep *ep, const void *buffer, size_t length, void *desc,
	fi_addr_t to, void *context)
NONE(ssize_t, none_inject, struct fid_ep *ep, const void *buffer, size_t length, fi_addr_t to)
NONE(ssize_t, none_senddata, struct fid_ep *ep, const void *buffer, size_t length, void *desc,
	uint64_t data, fi_addr_t to, void *context)
NONE(ssize_t, none_injectdata, struct fid_ep *ep, const void *buffer, size_t length, uint64_t data,
	fi_addr_t to)

struct fi_ops_msg none_msg = {
	.size = sizeof(struct fi_ops_msg),
	.recv = none_recv,
	.recvv = none_recvv,
	.recvmsg = none_msg_flags,
	.send = none_send,
	.sendv = none_recvv,
	.sendmsg = none_msg_flags,
	.inject = none_inject,
	.senddata = none_senddata,
	.injectdata = none_injectdata,
};

NONE(ssize_t, none_trecv, struct fid_ep *ep, void *buffer, size_t length, void *desc,
	fi_addr_t from, uint64_t tag, uint64_t ignore, void *context)
NONE(ssize_t, none_trecvv, struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
	fi_addr_t from, uint64_t tag, uint64_t ignore, void *context)
NONE(ssize_t, none_tmsg, struct fid_ep *ep, const struct fi_msg_tagged *message, uint64_t flags)
NONE(ssize_t, none_tsend, struct fid_ep *ep, const void *buffer, size_t length, void *desc,
	fi_addr_t to, uint64_t tag, void *context)
NONE(ssize_t, none_tsendv, struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
	fi_addr_t to, uint64_t tag, void *context)
NONE(ssize_t, none_tinject, struct fid_ep *ep, const void *buffer, size_t length, fi_addr_t to,
	uint64_t tag)
NONE(ssize_t, none_tsenddata, struct fid_ep *ep, const void *buffer, size_t length, void *desc,
	uint64_t data, fi_addr_t to, uint64_t tag, void *context)
NONE(ssize_t, none_tinjectdata, struct fid_ep *ep, const void *buffer, size_t length, uint64_t data,
	fi_addr_t to, uint64_t tag)

struct fi_ops_tagged none_tagged = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = none_trecv,
	.recvv = none_trecvv,
	.recvmsg = none_tmsg,
	.send = none_tsend,
	.sendv = none_tsendv,
	.sendmsg = none_tmsg,
	.inject = none_tinject,
	.senddata = none_tsenddata,
	.injectdata = none_tinjectdata,
};
