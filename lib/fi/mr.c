/* SPDX-License-Identifier: BSD-3-Clause */
/* mr.c - memory regions: registered in a domain, they are entries in the spaces of its endpoints.
 * Nothing is pinned: memory that is not there when a request comes ends the request alone. */
#include <fi/remote.h>

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <base/guard.h>
#include <base/backoff.h>
#include <engine/queue.h>

#define TALLY_COUNTERS 3 /* of an access: of the endpoint, and the region's two */
#define ACCESS                                                                                     \
	(FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_COLLECTIVE)

/* --- keys */

static struct link *chain_of(struct domain *domain, uint64_t key)
{
	return &domain->regions[(key * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - REGION_CHAINS_BITS)];
}

static struct mr *mr_find(struct domain *domain, uint64_t key)
{
	list_each (struct mr, mr, chain_of(domain, key), link)
		if (mr->fid.key == key)
			return mr;
	return NULL;
}

/* FI_MR_BASIC: a key that nobody foresees. */
static uint64_t key_choose(struct domain *domain)
{
	uint64_t key = FI_KEY_NOTAVAIL;

	while (key == FI_KEY_NOTAVAIL || mr_find(domain, key)) {
		uint64_t more = 0;

		(void)!getrandom(&more, sizeof(more), GRND_NONBLOCK);
		key = more != 0 ? more : key + 1;
	}
	return key;
}

/* --- entries */

#define TALLIED                                                                                    \
	(TIER_BIT(TIER_PUT) | TIER_BIT(TIER_GET) | TIER_BIT(TIER_ATOMIC) | TIER_BIT(TIER_FETCH))

/* Where, and for what, an entry is in a space. */
struct wish {
	uint32_t portal, log;
	uint8_t tier, options;
	uint64_t bits, ignore;
	uint64_t start, length, base;
	const struct map_vector *vector;
	struct tally *tally; /* NULL: none */
};

static bool entry_append(struct remote *remote, const struct wish *wish, struct handle *handle)
{
	struct segment *segment = remote->visit.segment;
	struct command command = {.kind = COMMAND_APPEND};
	uint32_t index = segment_take(segment, segment->free_entries);
	struct attachment *attachment;
	struct region *region;

	if (index == INDEX_NONE)
		return false;
	handle->index = index;
	handle->generation = segment_generation(segment);
	atomic_fetch_add_explicit(&segment_portal(segment, wish->portal)->length[wish->tier], 1,
		memory_order_acquire);
	region = segment_region(segment, index);
	region->start = wish->start;
	region->length = wish->length;
	region->vector = wish->vector;
	region->user = (uintptr_t)wish->tally;
	region->options = wish->options | REGION_REMOTE_OFFSET;
	region->log = wish->log;
	region->threshold = GATE_THRESHOLD_INFINITE;
	region->entry = INDEX_NONE;
	attachment = segment_attachment(segment, index);
	*attachment = (struct attachment){.tier = wish->tier,
		.uid = remote->visit.interface->uid,
		.base = wish->base,
		.counts = wish->tally ? TALLIED : 0,
		.flags = wish->tally ? ATTACHMENT_TALLY : 0};
	*segment_match(segment, index) = (struct match_entry){
		.bits = wish->bits, .ignore = wish->ignore, .nid = UINT32_MAX, .pid = UINT32_MAX};
	command.object.index = index;
	command.object.generation = handle->generation;
	command.object.portal = wish->portal;
	atomic_store_explicit(&segment_entry(segment, index)->gate,
		gate_make(handle->generation, 0), memory_order_release);
	submission_post(&remote->visit.interface->submission, &command);
	return true;
}

/* No request gets the entry's memory any more. Returns false while one has it. */
static bool entry_withdraw(struct remote *remote, const struct handle *handle)
{
	struct command command = {.kind = COMMAND_WITHDRAW};

	command.object.index = handle->index;
	command.object.generation = handle->generation;
	command.object.other = 1;
	return visit_call(&remote->visit, &command, NULL, NULL) != ANSWER_PENDING;
}

static struct wish wish_of(
	struct registration *registration, uint32_t portal, uint8_t options, uint32_t log)
{
	const struct mr *mr = registration->mr;

	return (struct wish){.portal = portal,
		.log = log,
		.options = options,
		.bits = mr->fid.key,
		.start = mr->vector ? 0 : mr->start,
		.length = mr->length,
		.base = mr->domain->basic ? mr->start : 0,
		.vector = mr->vector ? mr->vector : MAP_MEMORY,
		.tally = endpoint_tallies(registration->remote->endpoint) ? &registration->tally
									  : NULL};
}

/* The entries of a region in a space, as far as both let peers in. */
static unsigned wishes_make(struct registration *registration, struct wish wishes[PORTALS])
{
	const struct endpoint *endpoint = registration->remote->endpoint;
	const uint64_t admitted = endpoint->caps & registration->mr->access;
	const uint8_t put = admitted & FI_REMOTE_WRITE ? REGION_PUT : 0;
	const uint8_t get = admitted & FI_REMOTE_READ ? REGION_GET : 0;
	unsigned count = 0;

	if (put || get)
		wishes[count++] = wish_of(registration, PORTAL_PLAIN, put | get, 0);
	if (put)
		wishes[count++] = wish_of(
			registration, PORTAL_TELLS, put, endpoint->rx.cq ? TIER_BIT(TIER_PUT) : 0);
	return count;
}

/* --- accesses that are counted (M4) */

/* The counters of an access, each once. */
static unsigned counters_of(const struct registration *registration, enum tally_access access,
	struct counter *counters[TALLY_COUNTERS])
{
	const struct binding *own = registration->remote->endpoint->counts;
	const struct mr *mr = registration->mr;
	const bool reads = access != TALLY_WRITES, writes = access != TALLY_READS;
	struct counter *all[TALLY_COUNTERS] = {
		own[reads ? COUNT_REMOTE_READ : COUNT_REMOTE_WRITE].counter,
		reads ? mr->reads : NULL, writes ? mr->writes : NULL};
	unsigned count = 0;

	for (unsigned i = 0; i < TALLY_COUNTERS; i++) {
		bool known = !all[i];

		for (unsigned j = 0; j < count; j++)
			known |= counters[j] == all[i];
		if (!known)
			counters[count++] = all[i];
	}
	return count;
}

static void registration_want(struct registration *registration)
{
	struct counter *counters[TALLY_COUNTERS];
	uint32_t wanted = 0;

	for (unsigned access = 0; access < TALLY_ACCESSES; access++)
		if (counters_of(registration, access, counters) != 0)
			wanted |= 1u << access;
	atomic_store_explicit(&registration->tally.wanted, wanted, memory_order_relaxed);
}

/* What has come since is counted. */
static void registration_count(struct registration *registration)
{
	struct counter *counters[TALLY_COUNTERS];

	for (unsigned access = 0; access < TALLY_ACCESSES; access++) {
		const uint64_t values = counter_read(&registration->tally.successes[access]);
		const uint64_t errors = counter_read(&registration->tally.failures[access]);
		const unsigned count = values != registration->successes[access] ||
						       errors != registration->failures[access]
					       ? counters_of(registration, access, counters)
					       : 0;

		for (unsigned i = 0; i < count; i++)
			counter_grow(counters[i], values - registration->successes[access],
				errors - registration->failures[access]);
		registration->successes[access] = values;
		registration->failures[access] = errors;
	}
}

void tallies_run(struct remote *remote)
{
	struct outcome *next, *outcome = outcomes_take(remote->queues[QUEUE_TOLD].queue);

	for (; outcome; outcome = next) {
		struct registration *registration = object_of(outcome, struct registration);

		next = outcome->next;
		tally_taken(&registration->tally);
		registration_count(registration);
	}
}

/* --- registrations */

static void registration_free(struct registration *registration)
{
	link_remove(&registration->of_mr);
	link_remove(&registration->of_remote);
	free(registration);
}

/* A space loses a region. Returns false while a request has its memory. */
static bool registration_end(struct registration *registration)
{
	struct remote *remote = registration->remote;

	if (remote_enter(remote)) { /* else in a child made by fork(), which has no entries */
		bool ended = true;

		for (unsigned i = 0; i < registration->count; i++)
			ended &= entry_withdraw(remote, &registration->entries[i]);
		if (ended)
			tallies_run(remote);
		visit_leave(&remote->visit);
		if (!ended)
			return false;
	}
	registration_free(registration);
	return true;
}

/* What fails leaves a registration that mr_deregister() ends. */
static bool registration_make(struct remote *remote, struct mr *mr)
{
	struct wish wishes[PORTALS];
	struct registration *registration = calloc(1, sizeof(*registration));
	unsigned count;

	if (!registration)
		return false;
	registration->remote = remote;
	registration->mr = mr;
	registration_want(registration);
	count = wishes_make(registration, wishes);
	list_append(&mr->registrations, &registration->of_mr);
	list_append(&remote->registrations, &registration->of_remote);
	while (registration->count < count && entry_append(remote, &wishes[registration->count],
						      &registration->entries[registration->count]))
		registration->count++;
	return registration->count == count;
}

bool regions_register(struct remote *remote)
{
	const struct wish last = {.portal = PORTAL_TELLS, /* M3 */
		.tier = 1,
		.options = REGION_TRUNCATE,
		.ignore = UINT64_MAX,
		.vector = MAP_MEMORY};
	struct domain *domain = remote->endpoint->domain;
	struct handle unused;
	bool registered = entry_append(remote, &last, &unused);

	for (unsigned i = 0; i < REGION_CHAINS; i++)
		list_each (struct mr, mr, &domain->regions[i], link)
			registered = registered && registration_make(remote, mr);
	return registered;
}

/* The space has closed. */
void regions_deregister(struct remote *remote)
{
	list_each (struct registration, registration, &remote->registrations, of_remote) {
		registration_count(registration);
		registration_free(registration);
	}
}

/* --- regions */

/* Takes a region out of all spaces. The domain's lock is let go while a peer's request has the
 * region's memory: endpoints, with their registrations, may come and go meanwhile. */
static void mr_deregister(struct mr *mr)
{
	struct domain *domain = mr->domain;
	unsigned looks = 0;

	while (!list_empty(&mr->registrations)) {
		if (registration_end(list_first(&mr->registrations, struct registration, of_mr)))
			continue;
		domain_leave(domain);
		backoff(&looks);
		domain_enter(domain);
	}
}

static bool mr_register(struct mr *mr)
{
	bool registered = true;

	list_each (struct endpoint, endpoint, &mr->domain->endpoints, link) {
		struct remote *remote = endpoint->remote;

		if (!registered || !remote || !remote_enter(remote))
			continue;
		registered = registration_make(remote, mr);
		visit_leave(&remote->visit);
	}
	return registered;
}

static int mr_close(struct fid *fid)
{
	struct mr *mr = object_of(fid, struct mr);
	struct domain *domain = mr->domain;

	domain_enter(domain);
	mr_deregister(mr);
	if (mr->reads)
		mr->reads->uses--;
	if (mr->writes)
		mr->writes->uses--;
	link_remove(&mr->link);
	domain->region_count--;
	domain->uses--;
	domain_leave(domain);
	free(mr->vector);
	free(mr);
	return 0;
}

/* The domain's lock is held. */
static int counter_bind(struct mr *mr, struct counter *counter, uint64_t flags)
{
	if ((flags & FI_REMOTE_READ && mr->reads) || (flags & FI_REMOTE_WRITE && mr->writes))
		return -FI_EINVAL;
	if (!counter_share(counter))
		return -FI_ENOMEM;
	if (flags & FI_REMOTE_READ) {
		mr->reads = counter;
		counter->uses++;
	}
	if (flags & FI_REMOTE_WRITE) {
		mr->writes = counter;
		counter->uses++;
	}
	list_each (struct registration, registration, &mr->registrations, of_mr)
		registration_want(registration);
	return 0;
}

static int mr_bind_counter(struct mr *mr, struct counter *counter, uint64_t flags)
{
	int result;

	if (flags == 0 || (flags & ~(FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0)
		return -FI_EBADFLAGS;
	if (counter->notice.domain != mr->domain)
		return -FI_EDOMAIN;
	domain_enter(mr->domain);
	result = counter_bind(mr, counter, flags);
	domain_leave(mr->domain);
	return result;
}

/* A region belongs to all endpoints of its domain. */
static int mr_bind(struct fid *fid, struct fid *bound, uint64_t flags)
{
	struct mr *mr = object_of(fid, struct mr);

	if (bound->fclass == FI_CLASS_CNTR)
		return mr_bind_counter(mr, object_of(bound, struct counter), flags);
	if (bound->fclass != FI_CLASS_EP)
		return -FI_ENOSYS;
	if (flags != 0)
		return -FI_EBADFLAGS;
	return endpoint_of(bound)->domain == mr->domain ? 0 : -FI_EDOMAIN;
}

static int mr_raw(const struct mr *mr, const struct fi_mr_raw_attr *attr)
{
	const size_t room = *attr->key_size;

	*attr->key_size = sizeof(mr->fid.key);
	if (room < sizeof(mr->fid.key))
		return -FI_ETOOSMALL;
	memcpy(attr->raw_key, &mr->fid.key, sizeof(mr->fid.key));
	if (attr->base_addr)
		*attr->base_addr = mr->domain->basic ? mr->start : 0;
	return 0;
}

static int mr_control(struct fid *fid, int command, void *argument)
{
	switch (command) {
	case FI_GET_RAW_MR:
		return mr_raw(object_of(fid, struct mr), argument);
	case FI_REFRESH: /* what is mapped is seen when a request comes */
	case FI_ENABLE:
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

int regions_control(struct fid *fid, int command, void *argument)
{
	struct fi_mr_map_raw *map = argument;

	(void)fid;
	switch (command) {
	case FI_MAP_RAW_MR:
		if (map->key_size != sizeof(*map->key))
			return -FI_EINVAL;
		memcpy(map->key, map->raw_key, sizeof(*map->key));
		return 0;
	case FI_UNMAP_KEY:
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

static struct fi_ops mr_fid_ops = FID_OPS(mr_close, mr_bind, mr_control);

static int attr_check(const struct domain *domain, const struct fi_mr_attr *attr, uint64_t flags)
{
	uint64_t length = 0;

	if ((flags & ~FI_RMA_EVENT) != 0) /* of which the provider need not know */
		return -FI_EBADFLAGS;
	if (!attr || attr->iov_count == 0 || attr->iov_count > IOV_MAX_PARTS || !attr->mr_iov ||
		attr->offset != 0 || (attr->access & ~ACCESS) != 0)
		return -FI_EINVAL;
	/* Programs of older releases have no such field. */
	if (domain->fabric->fid.api_version >= FI_VERSION(1, 5) && attr->auth_key_size != 0)
		return -FI_EINVAL;
	/* An address says nothing of a region that lies in several places. */
	if (domain->basic && attr->iov_count > 1)
		return -FI_EINVAL;
	for (size_t i = 0; i < attr->iov_count; i++) {
		const struct iovec *piece = &attr->mr_iov[i];
		uint64_t end;

		if (piece->iov_len == 0 ||
			__builtin_add_overflow((uintptr_t)piece->iov_base, piece->iov_len, &end) ||
			__builtin_add_overflow(length, piece->iov_len, &length))
			return -FI_EINVAL;
	}
	if (!domain->basic && attr->requested_key == FI_KEY_NOTAVAIL)
		return -FI_EKEYREJECTED;
	return 0;
}

static int mr_make(struct domain *domain, const struct fi_mr_attr *attr, struct mr **made)
{
	struct mr *mr = calloc(1, sizeof(*mr));

	if (!mr)
		return -FI_ENOMEM;
	mr->fid.fid = (struct fid){FI_CLASS_MR, attr->context, &mr_fid_ops};
	mr->fid.mem_desc = mr;
	mr->domain = domain;
	mr->access = attr->access;
	mr->start = (uintptr_t)attr->mr_iov[0].iov_base;
	for (size_t i = 0; i < attr->iov_count; i++)
		mr->length += attr->mr_iov[i].iov_len;
	list_init(&mr->registrations);
	if (attr->iov_count > 1 && !(mr->vector = pieces_copy(attr->mr_iov, attr->iov_count))) {
		free(mr);
		return -FI_ENOMEM;
	}
	*made = mr;
	return 0;
}

/* The domain's lock is held. */
static int mr_join(struct mr *mr, const struct fi_mr_attr *attr)
{
	struct domain *domain = mr->domain;

	if (domain->region_count == REGIONS_MAX)
		return -FI_ENOMEM;
	if (!domain->basic && mr_find(domain, attr->requested_key))
		return -FI_ENOKEY;
	mr->fid.key = domain->basic ? key_choose(domain) : attr->requested_key;
	if (!mr_register(mr)) {
		mr_deregister(mr);
		return -FI_ENOMEM;
	}
	list_append(chain_of(domain, mr->fid.key), &mr->link);
	domain->region_count++;
	domain->uses++;
	return 0;
}

static int mr_regattr(
	struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **opened)
{
	struct domain *domain = object_of(fid, struct domain);
	struct fi_eq_entry entry;
	struct mr *mr;
	int result = attr_check(domain, attr, flags);

	if (result == 0)
		result = mr_make(domain, attr, &mr);
	if (result != 0)
		return result;
	guard_start(); /* the program may have installed handlers */
	domain_enter(domain);
	result = mr_join(mr, attr);
	domain_leave(domain);
	if (result != 0) {
		free(mr->vector);
		free(mr);
		return result;
	}
	*opened = &mr->fid;
	entry = (struct fi_eq_entry){.fid = &mr->fid.fid, .context = attr->context};
	if (domain->eq)
		(void)eq_post(domain->eq, FI_MR_COMPLETE, &entry, sizeof(entry), 0);
	return 0;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
	uint64_t offset, uint64_t key, uint64_t flags, struct fid_mr **mr, void *context)
{
	const struct fi_mr_attr attr = {.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = key,
		.context = context};

	return mr_regattr(fid, &attr, flags, mr);
}

static int mr_reg(struct fid *fid, const void *buffer, size_t length, uint64_t access,
	uint64_t offset, uint64_t key, uint64_t flags, struct fid_mr **mr, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buffer, length};

	return mr_regv(fid, &iov, 1, access, offset, key, flags, mr, context);
}

struct fi_ops_mr mr_ops = {
	.size = sizeof(mr_ops),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};

void regions_init(struct domain *domain)
{
	for (unsigned i = 0; i < REGION_CHAINS; i++)
		list_init(&domain->regions[i]);
}
