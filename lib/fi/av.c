/* SPDX-License-Identifier: BSD-3-Clause */
/* av.c - address vectors: an array of addresses, and chains by which one is found. An insert sends
 * nothing. An address of either type of vector is an index. */
#include <fi/state.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/log.h>

#define COUNT_FIRST 64
#define COUNT_HINT  (UINT32_C(1) << 16) /* no more from the start, whatever the program says */
#define COUNT_MAX   (UINT32_C(1) << 24)

static uint32_t chain_of(const struct av *av, uint32_t nid, uint32_t pid, uint32_t life)
{
	uint64_t sum = ((uint64_t)nid << 32 | pid) ^ (uint64_t)life << 13;

	return (uint32_t)(sum * UINT64_C(0x9e3779b97f4a7c15) >> 40) & (av->count - 1);
}

static void entry_link(struct av *av, uint32_t index)
{
	const struct address *address = &av->entries[index].address;
	uint32_t *chain = &av->chains[chain_of(av, address->nid, address->pid, address->life)];

	av->entries[index].next = *chain;
	*chain = index;
}

/* Makes room for twice as many. */
static bool av_grow(struct av *av, uint32_t count)
{
	struct av_entry *entries;
	uint32_t *chains;

	if (count > COUNT_MAX || !(entries = realloc(av->entries, count * sizeof(*entries))))
		return false;
	av->entries = entries;
	memset(entries + av->count, 0, (count - av->count) * sizeof(*entries));
	chains = realloc(av->chains, count * sizeof(*chains));
	if (!chains)
		return false;
	av->chains = chains;
	memset(chains, 0xff, count * sizeof(*chains));
	av->count = count;
	for (uint32_t i = 0; i < count; i++)
		if (entries[i].used)
			entry_link(av, i);
	return true;
}

static bool entry_is(const struct av *av, uint32_t index, struct process process, uint32_t life)
{
	const struct av_entry *entry = av_at(av, index);

	return entry && entry->address.nid == process.nid && entry->address.pid == process.pid &&
	       entry->address.life == life;
}

uint32_t av_find(const struct av *av, struct process process, uint32_t life, uint32_t index)
{
	if (entry_is(av, index, process, life))
		return index;
	index = av->chains[chain_of(av, process.nid, process.pid, life)];
	while (index != AV_NONE && !entry_is(av, index, process, life))
		index = av->entries[index].next;
	return index;
}

static const char *mismatch(const struct domain *domain, const struct address *address)
{
	if (address->kind != domain->kind)
		return "is on another kind of network: set PTL_IFACE_NAME and PTL_ENCAP alike on "
		       "all hosts";
	if (address->locality == domain->locality)
		return NULL;
	switch (address->kind) {
	case ADDRESS_NODE:
		return "is on another machine, and a node has one: set PTL_IFACE_NAME to an "
		       "interface, or to udp";
	case ADDRESS_ETHERNET_UDP:
		return "uses another UDP port: set PTL_UDP_PORT alike on all hosts";
	case ADDRESS_UDP:
		return "uses another range of UDP ports, or the other one of IPv4 and IPv6: set "
		       "PTL_UDP_PORTS and PTL_HOSTS alike on all hosts, and PTL_IFACE_NAME to udp "
		       "or to addresses of one kind";
	default:
		return NULL;
	}
}

/* 0, or why this domain's endpoints reach no such address. The first one is said on standard error
 * as well: what the program does then, such as to end, says nothing of it. */
static int address_check(const struct av *av, const struct address *address)
{
	static _Atomic bool told;
	const char *why;

	if (memcmp(address->magic, ADDRESS_MAGIC, sizeof(address->magic)) != 0 ||
		address->version != ADDRESS_VERSION) {
		WARN(AV, "an address is not one of this provider's fi_getname(), or of another "
			 "release\n");
		return FI_EINVAL;
	}
	why = mismatch(av->domain, address);
	if (!why)
		return 0;
	WARN(AV, "process %u:%u %s\n", address->nid, address->pid, why);
	if (!atomic_exchange(&told, true))
		log_warning("libfabric's peer %u:%u %s", address->nid, address->pid, why);
	return FI_EHOSTUNREACH;
}

/* Puts an address at the first free index that is not below *index. */
static int address_insert(struct av *av, const void *raw, uint32_t *index, bool user, fi_addr_t id)
{
	struct address address;
	int err;

	while (av_at(av, *index))
		++*index;
	memcpy(&address, raw, sizeof(address));
	err = address_check(av, &address);
	if (err != 0)
		return err;
	while (*index >= av->count)
		if (!av_grow(av, av->count * 2))
			return FI_ENOMEM;
	av->entries[*index] =
		(struct av_entry){.address = address, .user = user ? id : *index, .used = true};
	entry_link(av, *index);
	return 0;
}

struct insertion {
	const char *raw;
	size_t count;
	fi_addr_t *indices;
	uint64_t flags;
	void *context;
};

/* Returns how many addresses were inserted. */
static size_t addresses_insert(struct av *av, const struct insertion *insertion)
{
	const bool user = (insertion->flags & FI_AV_USER_ID) != 0;
	int *errors = insertion->flags & FI_SYNC_ERR ? insertion->context : NULL;
	fi_addr_t *indices = insertion->indices;
	uint32_t index = av->lowest;
	size_t inserted = 0;

	for (size_t i = 0; i < insertion->count; i++) {
		int err = address_insert(av, insertion->raw + i * sizeof(struct address), &index,
			user, user ? indices[i] : 0);

		if (indices)
			indices[i] = err == 0 ? index : FI_ADDR_NOTAVAIL;
		if (errors)
			errors[i] = err;
		if (err != 0 && av->events) {
			const struct fi_eq_entry entry = {&av->fid.fid, insertion->context, i};

			(void)eq_post(av->eq, 0, &entry, sizeof(entry), err);
		}
		inserted += err == 0;
		/* The index of an address that failed stays free, so that in a table the others
		 * have the indices that the program reckons with. */
		index++;
	}
	while (av_at(av, av->lowest))
		av->lowest++;
	return inserted;
}

static int av_insert(struct fid_av *fid, const void *addresses, size_t count, fi_addr_t *indices,
	uint64_t flags, void *context)
{
	const struct insertion insertion = {addresses, count, indices, flags, context};
	struct av *av = object_of(fid, struct av);
	size_t inserted;

	if (av->events && !av->eq)
		return -FI_ENOEQ;
	if ((flags & ~(FI_MORE | FI_SYNC_ERR | FI_AV_USER_ID)) != 0 ||
		(flags & FI_AV_USER_ID && !indices && count > 0) ||
		(flags & FI_SYNC_ERR && (av->events || (!context && count > 0))))
		return -FI_EINVAL;
	domain_enter(av->domain);
	inserted = addresses_insert(av, &insertion);
	domain_leave(av->domain);
	if (av->events) {
		const struct fi_eq_entry entry = {&av->fid.fid, context, inserted};

		return eq_post(av->eq, FI_AV_COMPLETE, &entry, sizeof(entry), 0);
	}
	return (int)inserted;
}

static int av_insertsvc(struct fid_av *fid, const char *node, const char *service, fi_addr_t *index,
	uint64_t flags, void *context)
{
	(void)fid;
	(void)node;
	(void)service;
	(void)index;
	(void)flags;
	(void)context;
	return -FI_ENOSYS;
}

static int av_insertsym(struct fid_av *fid, const char *node, size_t nodes, const char *service,
	size_t services, fi_addr_t *indices, uint64_t flags, void *context)
{
	(void)nodes;
	(void)services;
	return av_insertsvc(fid, node, service, indices, flags, context);
}

static void entry_remove(struct av *av, uint32_t index)
{
	struct av_entry *entry = &av->entries[index];
	uint32_t *link = &av->chains[chain_of(
		av, entry->address.nid, entry->address.pid, entry->address.life)];

	while (*link != index)
		link = &av->entries[*link].next;
	*link = entry->next;
	entry->used = false;
	if (index < av->lowest)
		av->lowest = index;
}

static int av_remove(struct fid_av *fid, fi_addr_t *indices, size_t count, uint64_t flags)
{
	struct av *av = object_of(fid, struct av);
	int result = 0;

	if (flags != 0)
		return -FI_EINVAL;
	domain_enter(av->domain);
	for (size_t i = 0; i < count; i++) {
		if (av_at(av, indices[i]))
			entry_remove(av, (uint32_t)indices[i]);
		else
			result = -FI_EINVAL;
	}
	domain_leave(av->domain);
	return result;
}

void address_give(const struct address *address, void *to, size_t *length)
{
	const size_t room = *length;

	*length = sizeof(*address);
	if (room > 0)
		memcpy(to, address, room < sizeof(*address) ? room : sizeof(*address));
}

static int av_lookup(struct fid_av *fid, fi_addr_t index, void *address, size_t *length)
{
	struct av *av = object_of(fid, struct av);
	const struct av_entry *entry;

	domain_enter(av->domain);
	entry = av_at(av, index);
	if (entry)
		address_give(&entry->address, address, length);
	domain_leave(av->domain);
	return entry ? 0 : -FI_EINVAL;
}

static const char *av_straddr(struct fid_av *fid, const void *raw, char *text, size_t *length)
{
	struct address address;
	int size;

	(void)fid;
	memcpy(&address, raw, sizeof(address));
	size = snprintf(text, *length, "fi_postern://%" PRIu32 ":%" PRIu32 "?life=%" PRIu32,
		address.nid, address.pid, address.life);
	*length = (size_t)size + 1;
	return text;
}

static int av_set(
	struct fid_av *fid, struct fi_av_set_attr *attr, struct fid_av_set **set, void *context)
{
	(void)fid;
	(void)attr;
	(void)set;
	(void)context;
	return -FI_ENOSYS;
}

static int av_bind(struct fid *fid, struct fid *bound, uint64_t flags)
{
	struct av *av = object_of(fid, struct av);

	if (bound->fclass != FI_CLASS_EQ || flags != 0 || av->eq)
		return -FI_EINVAL;
	av->eq = object_of(bound, struct eq);
	atomic_fetch_add(&av->eq->uses, 1);
	return 0;
}

static int av_close(struct fid *fid)
{
	struct av *av = object_of(fid, struct av);

	if (av->uses != 0)
		return -FI_EBUSY;
	if (av->eq)
		atomic_fetch_sub(&av->eq->uses, 1);
	domain_enter(av->domain);
	av->domain->uses--;
	domain_leave(av->domain);
	free(av->chains);
	free(av->entries);
	free(av);
	return 0;
}

static struct fi_ops av_fid_ops = FID_OPS(av_close, av_bind, none_control);
static struct fi_ops_av av_ops = {
	.size = sizeof(av_ops),
	.insert = av_insert,
	.insertsvc = av_insertsvc,
	.insertsym = av_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = av_set,
};

int av_open(struct fid_domain *fid, struct fi_av_attr *attr, struct fid_av **opened, void *context)
{
	struct domain *domain = object_of(fid, struct domain);
	uint32_t count = COUNT_FIRST;
	struct av *av;

	if (!attr)
		return -FI_EINVAL;
	/* No address vector is shared by processes, and no context has a number. */
	if (attr->name || attr->rx_ctx_bits > 0 || attr->flags & FI_READ)
		return -FI_ENOSYS;
	if (attr->type > FI_AV_TABLE || (attr->flags & ~(FI_EVENT | FI_SYMMETRIC)) != 0)
		return -FI_EINVAL;
	while (count < attr->count && count < COUNT_HINT)
		count *= 2;
	av = calloc(1, sizeof(*av));
	if (!av || !av_grow(av, count)) {
		if (av)
			free(av->entries);
		free(av);
		return -FI_ENOMEM;
	}
	if (attr->type == FI_AV_UNSPEC)
		attr->type = FI_AV_TABLE;
	av->fid.fid = (struct fid){FI_CLASS_AV, context, &av_fid_ops};
	av->fid.ops = &av_ops;
	av->domain = domain;
	av->events = (attr->flags & FI_EVENT) != 0;
	domain_enter(domain);
	domain->uses++;
	domain_leave(domain);
	*opened = &av->fid;
	return 0;
}
