/* SPDX-License-Identifier: BSD-3-Clause */
/* mute.c - the provider of libfabric with one operation that returns 0 and does nothing: the one
 * that POSTERN_MUTE names, such as tagged.send. scripts/mute runs the tests with each of them.
 *
 * It loads the provider that POSTERN_MUTED names, and writes into its tables: an object's are
 * reached when the object has been opened, so the operations that open objects are wrapped. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_prov.h>

/* Where an operation's pointer is: in which table of an object, and where in the table. */
struct operation {
	const char *name;
	size_t table, member;
};
#define ROW(name, object, table, type, member)                                                     \
	{                                                                                          \
		name "." #member, offsetof(struct object, table), offsetof(struct type, member)    \
	}
#define FID(name, object, member) ROW(name, object, fid.ops, fi_ops, member)

static const struct operation of_fabric[] = {FID("fabric", fid_fabric, close),
	ROW("fabric", fid_fabric, ops, fi_ops_fabric, domain),
	ROW("fabric", fid_fabric, ops, fi_ops_fabric, eq_open),
	ROW("fabric", fid_fabric, ops, fi_ops_fabric, trywait), {0}};

static const struct operation of_domain[] = {FID("domain", fid_domain, close),
	FID("domain", fid_domain, bind), FID("domain", fid_domain, control),
	ROW("domain", fid_domain, ops, fi_ops_domain, av_open),
	ROW("domain", fid_domain, ops, fi_ops_domain, cq_open),
	ROW("domain", fid_domain, ops, fi_ops_domain, endpoint),
	ROW("domain", fid_domain, ops, fi_ops_domain, cntr_open),
	ROW("domain", fid_domain, ops, fi_ops_domain, poll_open),
	ROW("domain", fid_domain, ops, fi_ops_domain, query_atomic),
	ROW("mr", fid_domain, mr, fi_ops_mr, reg), ROW("mr", fid_domain, mr, fi_ops_mr, regv),
	ROW("mr", fid_domain, mr, fi_ops_mr, regattr), {0}};

#define MESSAGE(member) ROW("msg", fid_ep, msg, fi_ops_msg, member)
#define TAGGED(member)  ROW("tagged", fid_ep, tagged, fi_ops_tagged, member)
#define RMA(member)     ROW("rma", fid_ep, rma, fi_ops_rma, member)
#define ATOMIC(member)  ROW("atomic", fid_ep, atomic, fi_ops_atomic, member)
static const struct operation of_endpoint[] = {FID("ep", fid_ep, close), FID("ep", fid_ep, bind),
	FID("ep", fid_ep, control), ROW("ep", fid_ep, ops, fi_ops_ep, cancel),
	ROW("ep", fid_ep, ops, fi_ops_ep, getopt), ROW("ep", fid_ep, ops, fi_ops_ep, setopt),
	ROW("cm", fid_ep, cm, fi_ops_cm, getname), MESSAGE(recv), MESSAGE(recvv), MESSAGE(recvmsg),
	MESSAGE(send), MESSAGE(sendv), MESSAGE(sendmsg), MESSAGE(inject), MESSAGE(senddata),
	MESSAGE(injectdata), TAGGED(recv), TAGGED(recvv), TAGGED(recvmsg), TAGGED(send),
	TAGGED(sendv), TAGGED(sendmsg), TAGGED(inject), TAGGED(senddata), TAGGED(injectdata),
	RMA(read), RMA(readv), RMA(readmsg), RMA(write), RMA(writev), RMA(writemsg), RMA(inject),
	RMA(writedata), RMA(injectdata), ATOMIC(write), ATOMIC(writev), ATOMIC(writemsg),
	ATOMIC(inject), ATOMIC(readwrite), ATOMIC(readwritev), ATOMIC(readwritemsg),
	ATOMIC(compwrite), ATOMIC(compwritev), ATOMIC(compwritemsg), ATOMIC(writevalid),
	ATOMIC(readwritevalid), ATOMIC(compwritevalid), {0}};

#define AV(member) ROW("av", fid_av, ops, fi_ops_av, member)
static const struct operation of_av[] = {FID("av", fid_av, close), FID("av", fid_av, bind),
	AV(insert), AV(insertsym), AV(remove), AV(lookup), AV(straddr), {0}};

#define CQ(member) ROW("cq", fid_cq, ops, fi_ops_cq, member)
static const struct operation of_cq[] = {FID("cq", fid_cq, close), FID("cq", fid_cq, control),
	CQ(read), CQ(readfrom), CQ(readerr), CQ(sread), CQ(sreadfrom), CQ(signal), CQ(strerror),
	{0}};

#define COUNTER(member) ROW("cntr", fid_cntr, ops, fi_ops_cntr, member)
static const struct operation of_counter[] = {FID("cntr", fid_cntr, close),
	FID("cntr", fid_cntr, control), COUNTER(read), COUNTER(readerr), COUNTER(add),
	COUNTER(adderr), COUNTER(set), COUNTER(seterr), COUNTER(wait), {0}};

#define EQ(member) ROW("eq", fid_eq, ops, fi_ops_eq, member)
static const struct operation of_eq[] = {FID("eq", fid_eq, close), FID("eq", fid_eq, control),
	EQ(read), EQ(readerr), EQ(write), EQ(sread), EQ(strerror), {0}};

#define POLL(member) ROW("poll", fid_poll, ops, fi_ops_poll, member)
static const struct operation of_poll[] = {
	FID("poll", fid_poll, close), POLL(poll), POLL(poll_add), POLL(poll_del), {0}};

static const struct operation of_mr[] = {FID("region", fid_mr, close), FID("region", fid_mr, bind),
	FID("region", fid_mr, control), {0}};

static const struct operation *const all[] = {
	of_fabric, of_domain, of_endpoint, of_av, of_cq, of_counter, of_eq, of_poll, of_mr};

static uint64_t nothing(void)
{
	return 0;
}

/* An operation of the object's tables, as memory. */
static void *place_of(void *object, const struct operation *operation)
{
	char *table;

	memcpy(&table, (char *)object + operation->table, sizeof(table));
	return table + operation->member;
}

static void mute(void *object, const struct operation *operations)
{
	const char *wanted = getenv("POSTERN_MUTE");
	uint64_t (*const none)(void) = nothing;

	for (; wanted && operations->name; operations++)
		if (strcmp(operations->name, wanted) == 0)
			memcpy(place_of(object, operations), &none, sizeof(none));
}

/* --- operations that open objects */

/* Puts a function of this file in the place of the provider's, which real_NAME then is. */
#define WRAP(ops, name)                                                                            \
	do {                                                                                       \
		if ((ops)->name != mute_##name) {                                                  \
			real_##name = (ops)->name;                                                 \
			(ops)->name = mute_##name;                                                 \
		}                                                                                  \
	} while (0)
/* Such a function: it calls the provider's, and mutes the object. */
#define OPENS(name, object, operations, parameters, ...)                                           \
	static int(*real_##name) parameters;                                                       \
	static int mute_##name parameters                                                          \
	{                                                                                          \
		int result = real_##name(__VA_ARGS__);                                             \
                                                                                                   \
		if (result == 0)                                                                   \
			mute(*(object), operations);                                               \
		return result;                                                                     \
	}

OPENS(av_open, opened, of_av,
	(struct fid_domain * domain, struct fi_av_attr *attr, struct fid_av **opened,
		void *context),
	domain, attr, opened, context)
OPENS(cq_open, opened, of_cq,
	(struct fid_domain * domain, struct fi_cq_attr *attr, struct fid_cq **opened,
		void *context),
	domain, attr, opened, context)
OPENS(cntr_open, opened, of_counter,
	(struct fid_domain * domain, struct fi_cntr_attr *attr, struct fid_cntr **opened,
		void *context),
	domain, attr, opened, context)
OPENS(poll_open, opened, of_poll,
	(struct fid_domain * domain, struct fi_poll_attr *attr, struct fid_poll **opened), domain,
	attr, opened)
OPENS(endpoint, opened, of_endpoint,
	(struct fid_domain * domain, struct fi_info *info, struct fid_ep **opened, void *context),
	domain, info, opened, context)
OPENS(eq_open, opened, of_eq,
	(struct fid_fabric * fabric, struct fi_eq_attr *attr, struct fid_eq **opened,
		void *context),
	fabric, attr, opened, context)
OPENS(regattr, opened, of_mr,
	(struct fid * fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **opened),
	fid, attr, flags, opened)
OPENS(reg, opened, of_mr,
	(struct fid * fid, const void *buffer, size_t length, uint64_t access, uint64_t offset,
		uint64_t key, uint64_t flags, struct fid_mr **opened, void *context),
	fid, buffer, length, access, offset, key, flags, opened, context)
OPENS(regv, opened, of_mr,
	(struct fid * fid, const struct iovec *iov, size_t count, uint64_t access, uint64_t offset,
		uint64_t key, uint64_t flags, struct fid_mr **opened, void *context),
	fid, iov, count, access, offset, key, flags, opened, context)

static int (*real_domain)(
	struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **opened, void *context);
static int mute_domain(
	struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **opened, void *context)
{
	int result = real_domain(fabric, info, opened, context);

	if (result != 0)
		return result;
	WRAP((*opened)->ops, av_open);
	WRAP((*opened)->ops, cq_open);
	WRAP((*opened)->ops, cntr_open);
	WRAP((*opened)->ops, poll_open);
	WRAP((*opened)->ops, endpoint);
	WRAP((*opened)->mr, reg);
	WRAP((*opened)->mr, regv);
	WRAP((*opened)->mr, regattr);
	mute(*opened, of_domain);
	return 0;
}

static int (*real_fabric)(struct fi_fabric_attr *attr, struct fid_fabric **opened, void *context);
static int mute_fabric(struct fi_fabric_attr *attr, struct fid_fabric **opened, void *context)
{
	int result = real_fabric(attr, opened, context);

	if (result != 0)
		return result;
	WRAP((*opened)->ops, domain);
	WRAP((*opened)->ops, eq_open);
	mute(*opened, of_fabric);
	return 0;
}

struct fi_provider *fi_prov_ini(void) __attribute__((visibility("default")));
struct fi_provider *fi_prov_ini(void)
{
	void *library = dlopen(getenv("POSTERN_MUTED"), RTLD_NOW);
	struct fi_provider *(*begin)(void);
	struct fi_provider *provider;
	void *symbol = library ? dlsym(library, "fi_prov_ini") : NULL;

	if (!symbol) {
		fprintf(stderr, "mute: POSTERN_MUTED names no provider: %s\n", dlerror());
		abort();
	}
	memcpy(&begin, &symbol, sizeof(begin));
	provider = begin();
	WRAP(provider, fabric);
	return provider;
}

/* The names of all, one a line. */
void mute_names(void) __attribute__((visibility("default")));
void mute_names(void)
{
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (const struct operation *operation = all[i]; operation->name; operation++)
			puts(operation->name);
	(void)fflush(stdout);
}
