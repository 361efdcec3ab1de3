/* SPDX-License-Identifier: BSD-3-Clause */
/* endpoint.c - endpoints: opened without a device, bound, and enabled, which opens an interface. */
#include <fi/remote.h>

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <base/clock.h>
#include <base/log.h>
#include <base/backoff.h>
#include <base/settings.h>
#include <engine/segment.h>
#include <engine/single_frame.h>
#include <host/interface.h>
#include <host/linger.h>
#include <wire/encapsulation.h>

#define MESSAGES_SPACE 2
#define PIDS           (UINT32_C(1) << 24)
#define PID_TRIES      8
#define EAGER          32768
#define LEAST          64 /* FI_OPT_MIN_MULTI_RECV, if the program does not set it */

void endpoint_progress(struct endpoint *endpoint)
{
	(void)messages_progress(endpoint->messages);
	if (endpoint->remote)
		remote_progress(endpoint->remote);
	endpoint->joined = false;
	peers_progress(endpoint);
	if (endpoint->joined) /* sends that have waited for a peer leave at once */
		(void)messages_progress(endpoint->messages);
}

static bool endpoint_owes_none(const struct endpoint *endpoint, struct process to)
{
	return !messages_owe(endpoint, to) &&
	       !(endpoint->remote && remote_owes(endpoint->remote, to));
}

bool endpoint_is_clear(struct endpoint *endpoint, fi_addr_t address)
{
	const struct av_entry *entry = av_at(endpoint->av, address);
	struct process to;

	if (!entry)
		return true; /* the post is refused for that */
	to = (struct process){.nid = entry->address.nid, .pid = entry->address.pid};
	if (endpoint_owes_none(endpoint, to))
		return true;
	endpoint_progress(endpoint);
	return endpoint_owes_none(endpoint, to);
}

/* --- binding */

/* The endpoint's place in a queue for one direction, or for both. */
static int queue_bind(struct endpoint *endpoint, struct cq *cq, uint64_t flags)
{
	const bool selective = (flags & FI_SELECTIVE_COMPLETION) != 0;

	if (cq->notice.domain != endpoint->domain)
		return -FI_EDOMAIN;
	if (!(flags & (FI_TRANSMIT | FI_RECV)) ||
		(flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)) != 0)
		return -FI_EBADFLAGS;
	if ((flags & FI_TRANSMIT && endpoint->tx.cq) || (flags & FI_RECV && endpoint->rx.cq))
		return -FI_EINVAL;
	if (flags & FI_TRANSMIT) {
		endpoint->tx.cq = cq;
		endpoint->tx.selective = selective;
		cq->bound += endpoint->tx_size;
		cq->uses++;
	}
	if (flags & FI_RECV) {
		endpoint->rx.cq = cq;
		endpoint->rx.selective = selective;
		cq->bound += endpoint->rx_size;
		cq->uses++;
	}
	return 0;
}

/* Which operations each of an endpoint's counters counts. */
static const uint64_t counted[COUNTS] = {[COUNT_SEND] = FI_SEND,
	[COUNT_RECV] = FI_RECV,
	[COUNT_READ] = FI_READ,
	[COUNT_WRITE] = FI_WRITE,
	[COUNT_REMOTE_READ] = FI_REMOTE_READ,
	[COUNT_REMOTE_WRITE] = FI_REMOTE_WRITE};

static int counter_bind(struct endpoint *endpoint, struct counter *counter, uint64_t flags)
{
	const unsigned counts = endpoint->caps & FI_RMA_EVENT ? COUNTS : COUNT_REMOTE_READ;
	uint64_t all = 0;

	if (counter->notice.domain != endpoint->domain)
		return -FI_EDOMAIN;
	for (unsigned i = 0; i < counts; i++) {
		all |= counted[i];
		if (flags & counted[i] && endpoint->counts[i].counter)
			return -FI_EINVAL;
	}
	if (flags & ~all & (FI_REMOTE_READ | FI_REMOTE_WRITE))
		WARN(EP_CTRL, "an endpoint without FI_RMA_EVENT counts no operations of peers: ask "
			      "fi_getinfo() for FI_RMA_EVENT, or bind the counter without "
			      "FI_REMOTE_READ and FI_REMOTE_WRITE\n");
	if (flags == 0 || (flags & ~all) != 0)
		return -FI_EBADFLAGS;
	for (unsigned i = 0; i < COUNTS; i++)
		if (flags & counted[i]) {
			endpoint->counts[i].counter = counter;
			counter->uses++;
		}
	return 0;
}

static int object_bind(struct endpoint *endpoint, struct fid *bound, uint64_t flags)
{
	if (endpoint->enabled)
		return -FI_EOPBADSTATE;
	switch (bound->fclass) {
	case FI_CLASS_CQ:
		return queue_bind(endpoint, object_of(bound, struct cq), flags);
	case FI_CLASS_AV:
		if (endpoint->av || object_of(bound, struct av)->domain != endpoint->domain)
			return -FI_EINVAL;
		endpoint->av = object_of(bound, struct av);
		endpoint->av->uses++;
		return 0;
	case FI_CLASS_EQ:
		if (endpoint->eq)
			return -FI_EINVAL;
		endpoint->eq = object_of(bound, struct eq);
		atomic_fetch_add(&endpoint->eq->uses, 1);
		return 0;
	case FI_CLASS_CNTR:
		return counter_bind(endpoint, object_of(bound, struct counter), flags);
	default:
		return -FI_EINVAL;
	}
}

static int endpoint_bind(struct fid *fid, struct fid *bound, uint64_t flags)
{
	struct endpoint *endpoint = endpoint_of(fid);
	int result;

	if (!bound)
		return -FI_EINVAL;
	domain_enter(endpoint->domain);
	result = object_bind(endpoint, bound, flags);
	domain_leave(endpoint->domain);
	return result;
}

/* --- enabling */

/* A process id to try. Nobody foresees those after the first, so another user of a node cannot take
 * all of them; nor are they the same in containers whose processes have the same numbers. */
static uint32_t pid_choose(bool again)
{
	static _Atomic uint32_t last;
	uint32_t number = (uint32_t)getpid() + atomic_fetch_add(&last, 1);

	if (again)
		(void)!getrandom(&number, sizeof(number), GRND_NONBLOCK);
	return FI_PROCESS | (number & (PIDS - 1));
}

/* An interface under a process id that nobody has on this node. */
static enum answer interface_make(struct endpoint *endpoint)
{
	const struct segment_limits none = {0};
	enum answer answer = ANSWER_TAKEN;

	for (unsigned i = 0; i < PID_TRIES && answer == ANSWER_TAKEN; i++) {
		library_lock();
		answer = interface_open_beside(&fi_front, endpoint->domain->device,
			pid_choose(i != 0), true, &none, &endpoint->interface);
		if (answer == ANSWER_OK) {
			const struct interface *interface =
				&interfaces[handle_interface(endpoint->interface)];

			endpoint->self = (struct address){.magic = ADDRESS_MAGIC,
				.version = ADDRESS_VERSION,
				.kind = endpoint->domain->kind,
				.nid = interface->self.nid,
				.pid = interface->self.pid,
				.life = interface->incarnation,
				.locality = endpoint->domain->locality};
			endpoint->atomic_max = single_frame_bytes(
				interface->port->frame_size - ENCAPSULATION_BYTES_MAX);
			if (endpoint->self.kind < ADDRESS_NODE)
				memcpy(endpoint->self.port, interface->port->address,
					sizeof(endpoint->self.port));
		}
		library_unlock();
	}
	return answer;
}

static enum answer messages_make(struct endpoint *endpoint)
{
	struct messages_options options = {
		.front = &fi_front,
		.interface = endpoint->interface,
		.space = MESSAGES_SPACE,
		.classes = CLASSES,
		.count = endpoint->peers_max,
		.eager = EAGER,
		.memory = MESSAGES_MEMORY,
		.owner = endpoint,
		.done = message_done,
		.part = message_part,
		.failed = peer_failed,
		.greeted = peer_greeted,
		.answered = peer_answered,
	};

	messages_divide(&options);
	return messages_open(&options, &endpoint->messages);
}

static int enable_failure(enum answer answer)
{
	switch (answer) {
	case ANSWER_TAKEN:
		return -FI_EADDRINUSE;
	case ANSWER_NO_MEMORY:
		return -FI_ENOMEM;
	default:
		return -FI_ENODEV;
	}
}

/* Reads of its queues and counters no longer drive the endpoint. */
static void endpoint_part(struct endpoint *endpoint)
{
	notice_part(&endpoint->tx);
	notice_part(&endpoint->rx);
	for (unsigned i = 0; i < COUNTS; i++)
		notice_part(&endpoint->counts[i]);
	counters_part(endpoint);
}

static bool endpoint_join(struct endpoint *endpoint)
{
	bool joined = (!endpoint->tx.cq || notice_join(&endpoint->tx.cq->notice, &endpoint->tx)) &&
		      (!endpoint->rx.cq || notice_join(&endpoint->rx.cq->notice, &endpoint->rx));

	for (unsigned i = 0; i < COUNTS && joined; i++) {
		struct binding *binding = &endpoint->counts[i];

		joined = !binding->counter || notice_join(&binding->counter->notice, binding);
	}
	return joined && counters_join(endpoint);
}

static int endpoint_start(struct endpoint *endpoint)
{
	enum answer answer = interface_make(endpoint);

	endpoint->peers_max = peers_wanted();
	if (answer != ANSWER_OK)
		return enable_failure(answer);
	answer = messages_make(endpoint);
	if (answer == ANSWER_OK && endpoint->caps & CAPS_REMOTE)
		answer = remote_open(endpoint);
	if (answer == ANSWER_OK && peers_open(endpoint) && endpoint_join(endpoint)) {
		endpoint->enabled = true;
		list_append(&endpoint->domain->endpoints, &endpoint->link);
		return 0;
	}
	endpoint_part(endpoint);
	if (answer == ANSWER_OK) {
		answer = ANSWER_NO_MEMORY;
		peers_close(endpoint);
	}
	(void)interface_close(&fi_front, endpoint->interface);
	remote_close(endpoint);
	if (endpoint->messages)
		messages_close(endpoint->messages);
	endpoint->messages = NULL;
	return enable_failure(answer);
}

static int endpoint_enable(struct endpoint *endpoint)
{
	int result;

	domain_enter(endpoint->domain);
	if (endpoint->enabled)
		result = 0;
	else if (!endpoint->av)
		result = -FI_ENOAV;
	else if ((endpoint->caps & (FI_SEND | CAPS_MOVES) && !endpoint->tx.cq) ||
		 (endpoint->caps & FI_RECV && !endpoint->rx.cq))
		result = -FI_ENOCQ;
	else
		result = endpoint_start(endpoint);
	domain_leave(endpoint->domain);
	return result;
}

static int flags_get(const struct face *face, uint64_t *flags)
{
	const uint64_t which = *flags & (FI_TRANSMIT | FI_RECV);

	if (which != FI_TRANSMIT && which != FI_RECV)
		return -FI_EINVAL;
	*flags = which == FI_TRANSMIT ? face->tx_flags : face->rx_flags;
	return 0;
}

static int flags_set(struct face *face, uint64_t flags)
{
	const uint64_t which = flags & (FI_TRANSMIT | FI_RECV);
	const uint64_t offered = which != FI_RECV ? OP_FLAGS
				 : face->endpoint->caps & FI_MULTI_RECV
					 ? RX_OP_FLAGS
					 : RX_OP_FLAGS & ~FI_MULTI_RECV;

	flags &= ~which;
	if ((which != FI_TRANSMIT && which != FI_RECV) || (flags & ~offered) != 0)
		return -FI_EINVAL;
	*(which == FI_TRANSMIT ? &face->tx_flags : &face->rx_flags) = flags;
	return 0;
}

static int alias_open(const struct face *face, const struct fi_alias *asked);

/* Of an endpoint, or of an alias. */
static int face_control(struct fid *fid, int command, void *argument)
{
	struct face *face = face_of(fid);

	switch (command) {
	case FI_ENABLE:
		return endpoint_enable(face->endpoint);
	case FI_GETOPSFLAG:
		return flags_get(face, argument);
	case FI_SETOPSFLAG:
		return flags_set(face, *(const uint64_t *)argument);
	case FI_ALIAS:
		return alias_open(face, argument);
	default:
		return -FI_ENOSYS;
	}
}

static int alias_close(struct fid *fid)
{
	struct endpoint *endpoint = endpoint_of(fid);

	domain_enter(endpoint->domain);
	endpoint->aliases--;
	domain_leave(endpoint->domain);
	free(face_of(fid));
	return 0;
}

static struct fi_ops alias_fid_ops = FID_OPS(alias_close, endpoint_bind, face_control);

/* It is the endpoint, with flags of its own for calls that have none. */
static int alias_open(const struct face *face, const struct fi_alias *asked)
{
	struct endpoint *endpoint = face->endpoint;
	struct face *alias = malloc(sizeof(*alias));
	int result;

	if (!alias)
		return -FI_ENOMEM;
	*alias = *face;
	alias->fid.fid.ops = &alias_fid_ops;
	result = flags_set(alias, asked->flags);
	if (result != 0) {
		free(alias);
		return result;
	}
	domain_enter(endpoint->domain);
	endpoint->aliases++;
	domain_leave(endpoint->domain);
	*asked->fid = &alias->fid.fid;
	return 0;
}

/* An option's value, of an endpoint. NULL: there is no such option. */
static size_t *option_of(struct fid *fid, int level, int name)
{
	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return NULL;
	return &endpoint_of(fid)->least;
}

int endpoint_getopt(struct fid *fid, int level, int name, void *value, size_t *length)
{
	const size_t *option = option_of(fid, level, name);

	if (!option)
		return -FI_ENOPROTOOPT;
	if (*length < sizeof(*option))
		return -FI_ETOOSMALL;
	*length = sizeof(*option);
	memcpy(value, option, sizeof(*option));
	return 0;
}

int endpoint_setopt(struct fid *fid, int level, int name, const void *value, size_t length)
{
	size_t *option = option_of(fid, level, name);

	if (!option)
		return -FI_ENOPROTOOPT;
	if (length < sizeof(*option))
		return -FI_EINVAL;
	memcpy(option, value, sizeof(*option));
	return 0;
}

int endpoint_getname(fid_t fid, void *address, size_t *length)
{
	const struct endpoint *endpoint = endpoint_of(fid);
	const size_t room = *length;

	if (!endpoint->enabled)
		return -FI_EOPBADSTATE;
	address_give(&endpoint->self, address, length);
	return room < sizeof(endpoint->self) ? -FI_ETOOSMALL : 0;
}

/* --- closing */

/* Messages whose peers have not got them, peers that do not know this endpoint yet, for which
 * messages wait, and reads and writes under way. */
static uint64_t endpoint_owes(const struct endpoint *endpoint)
{
	return messages_flying(endpoint->messages) + endpoint->asking +
	       (endpoint->remote ? remote_pending(endpoint->remote) : 0);
}

/* Sends whose data was taken over leave, as long as peers take some of them (linger.h). Other
 * endpoints of the domain, which may be those peers, go on, also if no other thread drives them. */
static void endpoint_linger(struct endpoint *endpoint)
{
	const uint64_t peer_timeout = setting_number(SETTING_PEER_TIMEOUT);
	uint64_t flying = endpoint_owes(endpoint), since = library_now();
	unsigned looks = 0;

	while (flying != 0 && library_now() - since < peer_timeout && !linger_is_stopped()) {
		list_each (struct endpoint, other, &endpoint->domain->endpoints, link)
			endpoint_progress(other);
		domain_leave(endpoint->domain);
		backoff(&looks);
		domain_enter(endpoint->domain);
		if (endpoint_owes(endpoint) == flying)
			continue;
		flying = endpoint_owes(endpoint);
		since = library_now();
	}
	if (flying != 0)
		log_warning("an endpoint of libfabric closes, and %llu sends may not have arrived: "
			    "%s",
			(unsigned long long)flying,
			linger_is_stopped() ? "a signal ended the wait"
					    : "their peers received none for PTL_PEER_TIMEOUT; "
					      "post their receives before this endpoint closes");
}

/* The domain's lock is held. */
static void endpoint_stop(struct endpoint *endpoint)
{
	unsigned looks = 0;

	endpoint->closing = true;
	while (endpoint->sleepers != 0) {
		endpoint->roused = endpoint->domain->roused = true;
		domain_leave(endpoint->domain);
		backoff(&looks);
		domain_enter(endpoint->domain);
	}
	if (!library_is_forked()) {
		linger_begin();
		endpoint_linger(endpoint);
		(void)interface_close(&fi_front, endpoint->interface);
		linger_end();
	}
	link_remove(&endpoint->link);
	endpoint_part(endpoint);
	remote_close(endpoint);
	if (!library_is_forked())
		messages_close(endpoint->messages);
	operations_close(endpoint);
	peers_close(endpoint);
}

static int endpoint_close(struct fid *fid)
{
	struct endpoint *endpoint = endpoint_of(fid);
	struct domain *domain = endpoint->domain;

	domain_enter(domain);
	if (endpoint->aliases != 0) {
		domain_leave(domain);
		return -FI_EBUSY;
	}
	if (endpoint->enabled)
		endpoint_stop(endpoint);
	if (endpoint->tx.cq) {
		endpoint->tx.cq->bound -= endpoint->tx_size;
		endpoint->tx.cq->uses--;
	}
	if (endpoint->rx.cq) {
		endpoint->rx.cq->bound -= endpoint->rx_size;
		endpoint->rx.cq->uses--;
	}
	for (unsigned i = 0; i < COUNTS; i++)
		if (endpoint->counts[i].counter)
			endpoint->counts[i].counter->uses--;
	if (endpoint->av)
		endpoint->av->uses--;
	if (endpoint->eq)
		atomic_fetch_sub(&endpoint->eq->uses, 1);
	domain->uses--;
	domain_leave(domain);
	free(endpoint);
	return 0;
}

/* --- opening */

static struct fi_ops endpoint_fid_ops = FID_OPS(endpoint_close, endpoint_bind, face_control);

void binding_init(struct binding *binding, struct endpoint *endpoint)
{
	binding->endpoint = endpoint;
	for (unsigned i = 0; i < sizeof(binding->watches) / sizeof(binding->watches[0]); i++)
		binding->watches[i] = -1;
}

int endpoint_open(
	struct fid_domain *fid, struct fi_info *info, struct fid_ep **opened, void *context)
{
	struct domain *domain = object_of(fid, struct domain);
	struct endpoint *endpoint;
	size_t tx_size, rx_size;

	if (!info)
		return -FI_EINVAL;
	tx_size = info->tx_attr ? info->tx_attr->size : 0;
	rx_size = info->rx_attr ? info->rx_attr->size : 0;
	if (info->ep_attr && info->ep_attr->type != FI_EP_RDM &&
		info->ep_attr->type != FI_EP_UNSPEC)
		return -FI_EINVAL;
	if (tx_size > SIZE_LIMIT || rx_size > SIZE_LIMIT)
		return -FI_EINVAL;
	endpoint = calloc(1, sizeof(*endpoint));
	if (!endpoint)
		return -FI_ENOMEM;
	endpoint->own.fid.fid = (struct fid){FI_CLASS_EP, context, &endpoint_fid_ops};
	endpoint->own.fid.ops = &ep_ops;
	endpoint->own.fid.cm = &cm_ops;
	endpoint->own.fid.msg = info->caps & FI_MSG ? &message_ops : &none_msg;
	endpoint->own.fid.tagged = info->caps & FI_TAGGED ? &tagged_ops : &none_tagged;
	endpoint->own.fid.rma = info->caps & FI_RMA ? &rma_ops : &none_rma;
	endpoint->own.fid.atomic = info->caps & FI_ATOMIC ? &atomic_ops : &none_atomic;
	endpoint->own.fid.collective = &none_collective;
	endpoint->own.endpoint = endpoint;
	endpoint->domain = domain;
	binding_init(&endpoint->tx, endpoint);
	binding_init(&endpoint->rx, endpoint);
	for (unsigned i = 0; i < COUNTS; i++)
		binding_init(&endpoint->counts[i], endpoint);
	endpoint->caps = info->caps;
	endpoint->ordered = info->tx_attr && info->tx_attr->msg_order & ORDERS;
	endpoint->own.tx_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
	endpoint->own.rx_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
	endpoint->tx_size = tx_size != 0 ? (uint32_t)tx_size : TX_SIZE;
	endpoint->rx_size = rx_size != 0 ? (uint32_t)rx_size : RX_SIZE;
	endpoint->atomic_max = AMO_BYTES_MAX;
	endpoint->least = LEAST;
	list_init(&endpoint->shared);
	list_init(&endpoint->pending);
	greetings_init(&endpoint->greetings);
	domain_enter(domain);
	domain->uses++;
	domain_leave(domain);
	*opened = &endpoint->own.fid;
	return 0;
}
