/* SPDX-License-Identifier: BSD-3-Clause */
/* info.c - fi_getinfo(): what is offered, from hints, PTL_IFACE_NAME, PTL_ENCAP and what a launcher
 * says in the environment. What is not offered is -FI_ENODATA. Nothing is opened or asked;
 * fi_fabric() tells what is wrong with a setting. */
#include <fi/state.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/environment.h>
#include <base/log.h>
#include <base/settings.h>
#include <host/interface.h>
#include <job/launchers.h>

#define PROTOCOL       (FI_PROV_SPECIFIC | 0x504653u)
#define TAG_ALL        UINT64_C(0xaaaaaaaaaaaaaaaa) /* every bit */
#define NAME_MAX_BYTES 128
#define OBJECTS_MAX    1024 /* queues, and counters: each may have three descriptors */
/* A process has ENGINES_MAX interfaces, one of them without an endpoint, and as many spaces. */
#define ENDPOINTS        (ENGINES_MAX - 1)
#define ENDPOINTS_REMOTE ((HANDLE_INTERFACES - ENGINES_MAX) / 2) /* with two spaces each */
#define NETWORK          "postern:"
#define NETWORK_BYTES    (sizeof(NETWORK) + NAME_MAX_BYTES)

/* --- devices */

/* Item n of PTL_IFACE_NAME. Returns false if there are fewer. */
static bool item_get(unsigned n, char name[NAME_MAX_BYTES])
{
	return setting_environment(SETTING_IFACE_NAME, n, name, NAME_MAX_BYTES);
}

static bool is_kind(const char *name, const char *kind)
{
	size_t length = strlen(kind);

	return strncmp(name, kind, length) == 0 && (name[length] == ':' || name[length] == '\0');
}

static uint8_t item_kind(const char *name)
{
	char encapsulation[NAME_MAX_BYTES];

	if (*name == '\0' || is_kind(name, "loop"))
		return ADDRESS_LOOP;
	if (is_kind(name, "node"))
		return ADDRESS_NODE;
	if (is_kind(name, "udp"))
		return ADDRESS_UDP;
	return setting_environment(SETTING_ENCAP, 0, encapsulation, sizeof(encapsulation)) &&
			       strcmp(encapsulation, "udp") == 0
		       ? ADDRESS_ETHERNET_UDP
		       : ADDRESS_ETHERNET;
}

bool info_device(const char *wanted, unsigned *device, uint8_t *kind)
{
	char name[NAME_MAX_BYTES];

	for (*device = 0; item_get(*device, name); ++*device)
		if (!wanted || strcmp(wanted, name) == 0) {
			*kind = item_kind(name);
			return true;
		}
	return false;
}

/* Nodes and loopbacks of different names are networks of their own. */
static void fabric_name(const char *item, char name[NETWORK_BYTES])
{
	const uint8_t kind = item_kind(item);
	const char *network = kind == ADDRESS_UDP            ? "udp"
			      : kind == ADDRESS_ETHERNET     ? "ethernet"
			      : kind == ADDRESS_ETHERNET_UDP ? "ethernet-udp"
							     : item;

	(void)snprintf(name, NETWORK_BYTES, NETWORK "%s", network);
}

/* --- hints */

/* The directions that hold for these capabilities. */
static uint64_t caps_complete(uint64_t caps)
{
	/* An unknown source is an error only for callers that ask for it. */
	if (caps == 0)
		return CAPS & ~FI_SOURCE_ERR;
	if (!(caps & (CAPS_MESSAGES | CAPS_REMOTE)))
		caps |= CAPS_MESSAGES;
	if (caps & CAPS_MESSAGES && !(caps & CAPS_WAYS))
		caps |= CAPS_WAYS;
	if (caps & CAPS_REMOTE && !(caps & (CAPS_MOVES | CAPS_MOVED)))
		caps |= CAPS_MOVES | CAPS_MOVED;
	if (!(caps & CAPS_COMM))
		caps |= CAPS_COMM;
	return caps;
}

/* Each refusal has a line in the log (FI_LOG_LEVEL=info) with the first field that it is for. */
#define REFUSED(...) FI_INFO(&fi_postern, FI_LOG_CORE, "not offered: " __VA_ARGS__)

static bool most(uint64_t asked, uint64_t offered, const char *field)
{
	if (asked > offered)
		REFUSED("%s is %" PRIu64 " in the hints, and the most is %" PRIu64
			": see fi_postern(7)\n",
			field, asked, offered);
	return asked <= offered;
}

static bool sub(uint64_t asked, uint64_t offered, const char *field)
{
	if (asked & ~offered)
		REFUSED("%s has the bits %#" PRIx64 " in the hints: see fi_postern(7)\n", field,
			asked & ~offered);
	return (asked & ~offered) == 0;
}

static bool right(bool is_right, const char *hint)
{
	if (!is_right)
		REFUSED("%s: see fi_postern(7)\n", hint);
	return is_right;
}

#define MOST(field, offered) most(field, offered, #field)
#define SUB(field, offered)  sub(field, offered, #field)

/* Do directions have what they are of? */
static bool caps_are_offered(uint64_t caps)
{
	return SUB(caps, CAPS) &&
	       right((caps & FI_MSG || !(caps & FI_MULTI_RECV)) &&
			       (caps & CAPS_MESSAGES || !(caps & CAPS_WAYS)) &&
			       (caps & CAPS_REMOTE || !(caps & (CAPS_MOVES | CAPS_MOVED))) &&
			       (caps & CAPS_MOVED || !(caps & FI_RMA_EVENT)),
		       "caps in the hints, of which one needs another one");
}

static bool tx_is_offered(const struct fi_tx_attr *tx, uint64_t caps)
{
	return !tx ||
	       (SUB(tx->caps, caps) && SUB(tx->op_flags, OP_FLAGS) &&
		       SUB(tx->msg_order, FI_ORDER_SAS | ORDERS) && MOST(tx->comp_order, 0) &&
		       MOST(tx->inject_size, INJECT_MAX) && MOST(tx->size, SIZE_LIMIT) &&
		       MOST(tx->iov_limit, IOV_MAX_PARTS) && MOST(tx->rma_iov_limit, 1));
}

static bool rx_is_offered(const struct fi_rx_attr *rx, uint64_t caps)
{
	const uint64_t flags = caps & FI_MULTI_RECV ? RX_OP_FLAGS : RX_OP_FLAGS & ~FI_MULTI_RECV;

	return !rx ||
	       (SUB(rx->caps, caps) && SUB(rx->op_flags, flags) &&
		       SUB(rx->msg_order, FI_ORDER_SAS | ORDERS) && MOST(rx->comp_order, 0) &&
		       MOST(rx->size, SIZE_LIMIT) && MOST(rx->iov_limit, IOV_MAX_PARTS));
}

static bool ep_is_offered(const struct fi_ep_attr *ep, const struct fi_tx_attr *tx)
{
	const size_t ordered = tx && tx->msg_order & ORDERS ? ORDERED_MAX : 0;

	return !ep || (right(ep->type == FI_EP_UNSPEC || ep->type == FI_EP_RDM,
			       "the value of ep->type in the hints") &&
			      right(ep->protocol == FI_PROTO_UNSPEC || ep->protocol == PROTOCOL,
				      "the value of ep->protocol in the hints") &&
			      MOST(ep->max_msg_size, MESSAGE_MAX) && MOST(ep->msg_prefix_size, 0) &&
			      MOST(ep->max_order_raw_size, ordered) &&
			      MOST(ep->max_order_war_size, ordered) &&
			      MOST(ep->max_order_waw_size, ordered) && MOST(ep->tx_ctx_cnt, 1) &&
			      MOST(ep->rx_ctx_cnt, 1) && MOST(ep->auth_key_size, 0));
}

static bool domain_is_offered(const struct fi_domain_attr *domain)
{
	return !domain ||
	       (MOST(domain->threading, FI_THREAD_ENDPOINT) &&
		       MOST(domain->control_progress, FI_PROGRESS_MANUAL) &&
		       MOST(domain->data_progress, FI_PROGRESS_MANUAL) &&
		       MOST(domain->av_type, FI_AV_TABLE) && MOST(domain->cq_data_size, 8) &&
		       MOST(domain->mr_key_size, 8) && MOST(domain->auth_key_size, 0) &&
		       MOST(domain->max_ep_tx_ctx, 1) && MOST(domain->max_ep_rx_ctx, 1) &&
		       MOST(domain->max_ep_stx_ctx, 0) && MOST(domain->max_ep_srx_ctx, 0) &&
		       MOST(domain->cntr_cnt, OBJECTS_MAX) && MOST(domain->mr_cnt, REGIONS_MAX) &&
		       MOST(domain->mr_iov_limit, IOV_MAX_PARTS) && SUB(domain->caps, CAPS_COMM));
}

/* Is this an address of the provider? */
static bool is_address(const struct address *address, size_t length)
{
	return length == sizeof(*address) &&
	       memcmp(address->magic, ADDRESS_MAGIC, sizeof(address->magic)) == 0;
}

static bool address_is_offered(const struct fi_info *hints, uint64_t flags)
{
	const struct address *to = hints->dest_addr, *from = hints->src_addr;

	return right(hints->addr_format == FI_FORMAT_UNSPEC ||
			       hints->addr_format == FI_PROV_SPECIFIC,
		       "the value of addr_format in the hints") &&
	       right(!from || flags & FI_SOURCE ||
			       (is_address(from, hints->src_addrlen) && from->pid == 0),
		       "src_addr in the hints, as a program cannot choose its process id") &&
	       right(!to || is_address(to, hints->dest_addrlen),
		       "dest_addr in the hints, which is no address of this provider");
}

static bool hints_are_offered(const struct fi_info *hints, uint64_t flags)
{
	const uint64_t caps = caps_complete(hints->caps);
	const struct fi_fabric_attr *fabric = hints->fabric_attr;

	return (!fabric || !fabric->prov_name ||
		       strcasecmp(fabric->prov_name, fi_postern.name) == 0) &&
	       caps_are_offered(caps) && address_is_offered(hints, flags) &&
	       tx_is_offered(hints->tx_attr, caps) && rx_is_offered(hints->rx_attr, caps) &&
	       ep_is_offered(hints->ep_attr, hints->tx_attr) &&
	       domain_is_offered(hints->domain_attr);
}

/* --- what is offered */

static void tx_fill(struct fi_tx_attr *tx, const struct fi_tx_attr *hint, uint64_t caps)
{
	tx->caps = caps & (CAPS_MESSAGES | CAPS_REMOTE | CAPS_MOVES | FI_SEND);
	tx->op_flags = hint ? hint->op_flags : 0;
	tx->msg_order = FI_ORDER_SAS | (hint ? hint->msg_order : 0);
	tx->inject_size = INJECT_MAX;
	tx->size = hint && hint->size > TX_SIZE ? hint->size : TX_SIZE;
	tx->iov_limit = IOV_MAX_PARTS;
	tx->rma_iov_limit = caps & CAPS_REMOTE ? 1 : 0;
}

static void rx_fill(struct fi_rx_attr *rx, const struct fi_rx_attr *hint, uint64_t caps)
{
	rx->caps = caps & (CAPS_MESSAGES | CAPS_REMOTE | CAPS_MOVED | FI_RECV | FI_MULTI_RECV |
				  FI_DIRECTED_RECV | FI_SOURCE | FI_SOURCE_ERR | FI_RMA_EVENT);
	rx->op_flags = hint ? hint->op_flags : 0;
	rx->msg_order = FI_ORDER_SAS | (hint ? hint->msg_order : 0);
	/* What finds no memory waits at its sender, so no size is too large. */
	rx->total_buffered_recv = hint ? hint->total_buffered_recv : 0;
	rx->size = hint && hint->size > RX_SIZE ? hint->size : RX_SIZE;
	rx->iov_limit = IOV_MAX_PARTS;
}

static void ep_fill(struct fi_ep_attr *ep, const struct fi_ep_attr *hint, uint64_t orders)
{
	const size_t ordered = orders & ORDERS ? ORDERED_MAX : 0;

	ep->type = FI_EP_RDM;
	ep->protocol = PROTOCOL;
	ep->protocol_version = ADDRESS_VERSION;
	ep->max_msg_size = MESSAGE_MAX;
	ep->max_order_raw_size = ep->max_order_war_size = ep->max_order_waw_size = ordered;
	ep->mem_tag_format = hint && hint->mem_tag_format ? hint->mem_tag_format : TAG_ALL;
	ep->tx_ctx_cnt = ep->rx_ctx_cnt = 1;
}

/* progress: if the hint says nothing of it. */
static void domain_fill(struct fi_domain_attr *domain, const struct fi_domain_attr *hint,
	enum fi_progress progress, uint64_t caps, uint32_t version)
{
	domain->threading = hint && hint->threading ? hint->threading : FI_THREAD_SAFE;
	domain->control_progress =
		hint && hint->control_progress ? hint->control_progress : progress;
	domain->data_progress = hint && hint->data_progress ? hint->data_progress : progress;
	domain->resource_mgmt = FI_RM_ENABLED;
	domain->av_type = hint && hint->av_type ? hint->av_type : FI_AV_TABLE;
	/* Nothing is required of programs. The two old modes stand for themselves, and old programs
	 * know no others. */
	if (hint && (hint->mr_mode == FI_MR_BASIC || hint->mr_mode == FI_MR_SCALABLE))
		domain->mr_mode = hint->mr_mode;
	else if (version < FI_VERSION(1, 5))
		domain->mr_mode = FI_MR_SCALABLE;
	domain->mr_key_size = 8;
	domain->mr_cnt = REGIONS_MAX;
	domain->mr_iov_limit = IOV_MAX_PARTS;
	domain->cq_data_size = 8;
	domain->cq_cnt = domain->cntr_cnt = OBJECTS_MAX;
	domain->ep_cnt = caps & CAPS_REMOTE ? ENDPOINTS_REMOTE : ENDPOINTS;
	domain->tx_ctx_cnt = domain->rx_ctx_cnt = domain->ep_cnt;
	domain->max_ep_tx_ctx = domain->max_ep_rx_ctx = 1;
	domain->caps = CAPS_COMM;
	domain->max_err_data = sizeof(struct address);
}

/* The objects that hints name; NULL: none. */
static const void *domain_wanted(const struct fi_info *hints)
{
	return hints && hints->domain_attr ? hints->domain_attr->domain : NULL;
}

static const void *fabric_wanted(const struct fi_info *hints)
{
	return hints && hints->fabric_attr ? hints->fabric_attr->fabric : NULL;
}

static void *address_copy(const void *address)
{
	void *copy = malloc(sizeof(struct address));

	if (copy)
		memcpy(copy, address, sizeof(struct address));
	return copy;
}

/* Without hints an offer shows all that there is. Hints that say nothing of progress get what costs
 * no thread. */
static struct fi_info *info_make(uint32_t version, const struct fi_info *hints, const char *item)
{
	const uint64_t caps = caps_complete(hints ? hints->caps : 0);
	/* The rest is known when an endpoint is enabled. */
	const struct address source = {
		.magic = ADDRESS_MAGIC, .version = ADDRESS_VERSION, .kind = item_kind(item)};
	struct fi_info *info = fi_allocinfo();
	char fabric[NETWORK_BYTES];

	if (!info)
		return NULL;
	info->caps = caps;
	info->addr_format = FI_PROV_SPECIFIC;
	tx_fill(info->tx_attr, hints ? hints->tx_attr : NULL, caps);
	rx_fill(info->rx_attr, hints ? hints->rx_attr : NULL, caps);
	ep_fill(info->ep_attr, hints ? hints->ep_attr : NULL, info->tx_attr->msg_order);
	domain_fill(info->domain_attr, hints ? hints->domain_attr : NULL,
		hints ? FI_PROGRESS_MANUAL : FI_PROGRESS_AUTO, caps, version);
	fabric_name(item, fabric);
	info->domain_attr->domain = opened_find(FI_CLASS_DOMAIN, item, domain_wanted(hints));
	info->fabric_attr->fabric = opened_find(FI_CLASS_FABRIC, fabric, fabric_wanted(hints));
	info->domain_attr->name = strdup(item);
	info->fabric_attr->name = strdup(fabric);
	/* libfabric writes the provider's name. */
	info->fabric_attr->prov_version = fi_postern.version;
	info->fabric_attr->api_version = version;
	info->src_addr = address_copy(&source);
	info->src_addrlen = sizeof(source);
	if (hints && hints->dest_addr) {
		info->dest_addr = address_copy(hints->dest_addr);
		info->dest_addrlen = sizeof(source);
	}
	if (!info->domain_attr->name || !info->fabric_attr->name || !info->src_addr ||
		(info->dest_addrlen != 0 && !info->dest_addr)) {
		fi_freeinfo(info);
		return NULL;
	}
	return info;
}

/* FI_SOURCE: a node is the name of an item, or the part of the name behind the colon, such as the
 * address in udp:10.0.0.5. */
static bool item_is_at(const char *item, const char *node)
{
	const char *place = strchr(item, ':');

	return strcmp(node, item) == 0 || (place && strcmp(node, place + 1) == 0);
}

static bool item_has(const char *item, const struct address *address)
{
	return !address || address->kind == item_kind(item);
}

static bool item_is_wanted(
	const char *item, const char *node, uint64_t flags, const struct fi_info *hints)
{
	char fabric[NETWORK_BYTES];
	const char *wanted;

	if (node && !item_is_at(item, node))
		return false;
	if (!hints)
		return true;
	wanted = hints->domain_attr ? hints->domain_attr->name : NULL;
	if (wanted && strcasecmp(wanted, item) != 0)
		return false;
	if (domain_wanted(hints) && !opened_find(FI_CLASS_DOMAIN, item, domain_wanted(hints)))
		return false;
	fabric_name(item, fabric);
	wanted = hints->fabric_attr ? hints->fabric_attr->name : NULL;
	if (wanted && strcasecmp(wanted, fabric) != 0)
		return false;
	if (fabric_wanted(hints) && !opened_find(FI_CLASS_FABRIC, fabric, fabric_wanted(hints)))
		return false;
	return item_has(item, hints->dest_addr) &&
	       (flags & FI_SOURCE || item_has(item, hints->src_addr));
}

/* --- jobs of several hosts */

/* Was this provider chosen for the program? FI_PROVIDER, or mpirun --tune and --mca. */
static bool is_chosen(void)
{
	static const char *const names[] = {"FI_PROVIDER", "OMPI_MCA_mca_base_envar_file_prefix",
		"OMPI_MCA_mtl_ofi_provider_include"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = environment_text(names[i]);

		if (value && strstr(value, fi_postern.name))
			return true;
	}
	return false;
}

#define CONFINED                                                                                   \
	"this job has processes on several hosts, and PTL_IFACE_NAME=%s reaches those of one, so " \
	"libfabric's provider postern is not offered: set PTL_IFACE_NAME to udp, or to a network " \
	"interface such as eth1, for all (mpirun: -x PTL_IFACE_NAME=udp)"

/* All processes of the job find this, so each does without the provider, as libraries that choose
 * before their processes know of each other have to. One of them says so. */
static bool item_is_confined(const char *item)
{
	static _Atomic bool told;
	const struct launcher *launcher = launcher_find(false);

	if (item_kind(item) < ADDRESS_NODE || !launcher->spread)
		return false;
	WARN(CORE, CONFINED "\n", item);
	if (launcher->rank == 0 && is_chosen() && !atomic_exchange(&told, true))
		log_warning(CONFINED, item);
	return true;
}

int info_get(uint32_t version, const char *node, const char *service, uint64_t flags,
	const struct fi_info *hints, struct fi_info **info)
{
	struct fi_info **next = info;
	char item[NAME_MAX_BYTES];

	*info = NULL;
	if (hints && !hints_are_offered(hints, flags))
		return -FI_ENODATA;
	if ((node || service) && !(flags & FI_SOURCE)) {
		REFUSED("no host and no service has an address (%s, %s): give fi_getinfo() "
			"neither, and exchange the addresses of fi_getname(): see fi_postern(7)\n",
			node ? node : "no node", service ? service : "no service");
		return -FI_ENODATA;
	}
	for (unsigned n = 0; item_get(n, item); n++) {
		if (!item_is_wanted(item, node, flags, hints) || item_is_confined(item))
			continue;
		*next = info_make(version, hints, item);
		if (!*next) {
			fi_freeinfo(*info);
			*info = NULL;
			return -FI_ENOMEM;
		}
		next = &(*next)->next;
	}
	if (!*info)
		REFUSED("no item of PTL_IFACE_NAME is the domain or the fabric that hints name, or "
			"at the given source\n");
	return *info ? 0 : -FI_ENODATA;
}
