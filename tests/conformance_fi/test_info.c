/* SPDX-License-Identifier: BSD-3-Clause */
/* test_info.c - what fi_getinfo() offers, and what it does not: each row both ways.
 * Covers: lib/fi/info.c, lib/fi/provider.c. */
#include "fixture.h"

#include <unistd.h>

static struct fi_info *hints;

static int hints_open(void **state)
{
	(void)state;
	hints = hints_make(&(struct wish){0});
	return 0;
}

static int hints_close(void **state)
{
	(void)state;
	fi_freeinfo(hints);
	return 0;
}

static void offered(void)
{
	struct fi_info *offer = offer_of(hints);

	assert_non_null(offer);
	fi_freeinfo(offer);
}

/* The hints are met, and so much is required of memory regions. */
static void mode_is_offered(int mode)
{
	struct fi_info *offer = offer_of(hints);

	assert_non_null(offer);
	assert_int_equal(offer->domain_attr->mr_mode, mode);
	fi_freeinfo(offer);
}

/* One field has a value that is offered, and one that is not. */
#define BOTH_WAYS(field, good, bad)                                                                \
	do {                                                                                       \
		hints->field = good;                                                               \
		offered();                                                                         \
		hints->field = bad;                                                                \
		assert_null(offer_of(hints));                                                      \
		hints->field = 0;                                                                  \
	} while (0)

static void capabilities(void **state)
{
	static const uint64_t good[] = {FI_MSG, FI_TAGGED, FI_MSG | FI_TAGGED, FI_TAGGED | FI_SEND,
		FI_MSG | FI_RECV, FI_TAGGED | FI_DIRECTED_RECV, FI_MSG | FI_SOURCE,
		FI_MSG | FI_SOURCE | FI_SOURCE_ERR, FI_LOCAL_COMM | FI_REMOTE_COMM, FI_AV_USER_ID,
		FI_MSG | FI_RMA, FI_MSG | FI_FENCE, FI_MSG | FI_ATOMIC, FI_MSG | FI_MULTI_RECV,
		FI_TAGGED | FI_RMA | FI_READ | FI_WRITE,
		FI_MSG | FI_RMA | FI_REMOTE_READ | FI_REMOTE_WRITE};
	static const uint64_t bad[] = {FI_MULTICAST, FI_COLLECTIVE, FI_READ, FI_WRITE,
		FI_REMOTE_READ, FI_REMOTE_WRITE, FI_RMA | FI_SEND, FI_TAGGED | FI_MULTI_RECV,
		FI_TRIGGER, FI_HMEM, FI_VARIABLE_MSG, FI_RMA_PMEM, FI_RMA_EVENT, FI_NAMED_RX_CTX,
		FI_SHARED_AV};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct fi_info *offer;

		hints->caps = good[i];
		offer = offer_of(hints);
		assert_non_null(offer);
		assert_int_equal(offer->caps & good[i], good[i]);
		assert_true(offer->caps & (FI_MSG | FI_TAGGED));
		assert_true(offer->caps & (FI_SEND | FI_RECV));
		assert_int_equal(offer->mode, 0);
		assert_int_equal(offer->tx_attr->caps & ~offer->caps, 0);
		assert_int_equal(offer->rx_attr->caps & ~offer->caps, 0);
		fi_freeinfo(offer);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		hints->caps = bad[i];
		assert_null(offer_of(hints));
		hints->caps = bad[i] | FI_TAGGED;
		assert_true(bad[i] == (FI_RMA | FI_SEND) || !offer_of(hints));
	}
}

static void endpoints(void **state)
{
	(void)state;
	BOTH_WAYS(ep_attr->type, FI_EP_RDM, FI_EP_MSG);
	BOTH_WAYS(ep_attr->type, FI_EP_UNSPEC, FI_EP_DGRAM);
	BOTH_WAYS(ep_attr->protocol, FI_PROTO_UNSPEC, FI_PROTO_UDP);
	BOTH_WAYS(ep_attr->max_msg_size, (size_t)1 << 40, SIZE_MAX);
	BOTH_WAYS(ep_attr->tx_ctx_cnt, 1, 2);
	BOTH_WAYS(ep_attr->rx_ctx_cnt, 1, FI_SHARED_CONTEXT);
	BOTH_WAYS(ep_attr->msg_prefix_size, 0, 8);
	hints->ep_attr->mem_tag_format = 0xf0;
	offered();
}

static void contexts(void **state)
{
	struct fi_info *offer;

	(void)state;
	BOTH_WAYS(tx_attr->op_flags, FI_COMPLETION | FI_INJECT | FI_DELIVERY_COMPLETE,
		FI_COMMIT_COMPLETE);
	BOTH_WAYS(tx_attr->op_flags, FI_MATCH_COMPLETE | FI_TRANSMIT_COMPLETE, FI_FENCE);
	BOTH_WAYS(tx_attr->inject_size, 4096, 4097);
	BOTH_WAYS(tx_attr->iov_limit, 4, 5);
	BOTH_WAYS(tx_attr->rma_iov_limit, 1, 2);
	BOTH_WAYS(tx_attr->size, 65536, 65537);
	BOTH_WAYS(tx_attr->msg_order, FI_ORDER_SAS | FI_ORDER_RAW, FI_ORDER_RAS);
	BOTH_WAYS(tx_attr->comp_order, 0, FI_ORDER_STRICT);
	BOTH_WAYS(rx_attr->op_flags, FI_COMPLETION | FI_MULTI_RECV, FI_INJECT);
	BOTH_WAYS(rx_attr->iov_limit, 4, 5);
	BOTH_WAYS(rx_attr->size, 65536, 65537);
	BOTH_WAYS(rx_attr->msg_order, FI_ORDER_SAS | FI_ORDER_RMA_WAW, FI_ORDER_WAS);
	/* A hint of what to buffer is none that a provider may refuse. */
	hints->rx_attr->total_buffered_recv = SIZE_MAX;
	offer = offer_of(hints);
	assert_non_null(offer);
	assert_true(offer->rx_attr->total_buffered_recv == SIZE_MAX);
	fi_freeinfo(offer);
}

static void domains(void **state)
{
	(void)state;
	BOTH_WAYS(domain_attr->cq_data_size, 8, 9);
	BOTH_WAYS(domain_attr->mr_key_size, 8, 9);
	BOTH_WAYS(domain_attr->max_ep_tx_ctx, 1, 2);
	BOTH_WAYS(domain_attr->cntr_cnt, 1024, 1025);
	BOTH_WAYS(domain_attr->caps, FI_LOCAL_COMM, FI_SHARED_AV);
	hints->domain_attr->auth_key = calloc(1, 8);
	BOTH_WAYS(domain_attr->auth_key_size, 0, 8);
	for (unsigned i = FI_THREAD_UNSPEC; i <= FI_THREAD_ENDPOINT; i++) {
		struct fi_info *offer;

		hints->domain_attr->threading = i;
		offer = offer_of(hints);
		assert_non_null(offer);
		assert_int_equal(
			offer->domain_attr->threading, i == FI_THREAD_UNSPEC ? FI_THREAD_SAFE : i);
		fi_freeinfo(offer);
	}
	for (unsigned i = FI_AV_UNSPEC; i <= FI_AV_TABLE; i++) {
		struct fi_info *offer;

		hints->domain_attr->av_type = i;
		offer = offer_of(hints);
		assert_non_null(offer);
		assert_int_equal(offer->domain_attr->av_type, i == FI_AV_MAP ? i : FI_AV_TABLE);
		fi_freeinfo(offer);
	}
	for (unsigned i = FI_PROGRESS_UNSPEC; i <= FI_PROGRESS_MANUAL; i++) {
		struct fi_info *offer;

		hints->domain_attr->data_progress = hints->domain_attr->control_progress = i;
		offer = offer_of(hints);
		assert_non_null(offer);
		assert_int_equal(offer->domain_attr->data_progress,
			i == FI_PROGRESS_AUTO ? i : FI_PROGRESS_MANUAL);
		assert_int_equal(
			offer->domain_attr->control_progress, offer->domain_attr->data_progress);
		fi_freeinfo(offer);
	}
	for (unsigned i = FI_RM_UNSPEC; i <= FI_RM_ENABLED; i++) {
		hints->domain_attr->resource_mgmt = i;
		offered();
	}
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
	mode_is_offered(0);
	hints->domain_attr->mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED | FI_MR_RMA_EVENT;
	mode_is_offered(0);
	for (unsigned bit = 2; bit <= 11; bit++) {
		hints->domain_attr->mr_mode = 1 << bit;
		mode_is_offered(0);
	}
	hints->domain_attr->mr_mode = FI_MR_BASIC;
	mode_is_offered(FI_MR_BASIC);
	hints->domain_attr->mr_mode = FI_MR_SCALABLE;
	mode_is_offered(FI_MR_SCALABLE);
	hints->domain_attr->mr_mode = 0;
	mode_is_offered(0);
	BOTH_WAYS(domain_attr->mr_cnt, 16384, 16385);
	BOTH_WAYS(domain_attr->mr_iov_limit, 4, 5);
}

/* Any mode is good, as none is required. */
static void modes(void **state)
{
	(void)state;
	hints->mode = FI_CONTEXT | FI_MSG_PREFIX;
	offered();
	hints->mode = UINT64_MAX;
	offered();
}

static void names(void **state)
{
	struct fi_info *offer;

	(void)state;
	offer = offer_of(hints);
	assert_non_null(offer);
	assert_string_equal(offer->domain_attr->name, getenv("PTL_IFACE_NAME"));
	assert_int_equal(strncmp(offer->fabric_attr->name, "postern:", 8), 0);
	assert_int_equal(offer->addr_format, FI_PROV_SPECIFIC);
	hints->domain_attr->name = strdup(offer->domain_attr->name);
	hints->fabric_attr->name = strdup(offer->fabric_attr->name);
	fi_freeinfo(offer);
	offered();
	hints->domain_attr->name[0]++;
	assert_null(offer_of(hints));
	hints->domain_attr->name[0]--;
	hints->fabric_attr->name[0]++;
	assert_null(offer_of(hints));
}

static void addresses_are_not_looked_up(void **state)
{
	struct fi_info *offer = NULL;

	(void)state;
	assert_int_equal(
		fi_getinfo(FI_VERSION(1, 17), "localhost", NULL, 0, hints, &offer), -FI_ENODATA);
	assert_int_equal(fi_getinfo(FI_VERSION(1, 17), NULL, "1", 0, hints, &offer), -FI_ENODATA);
	hints->addr_format = FI_SOCKADDR_IN;
	assert_null(offer_of(hints));
	hints->addr_format = FI_PROV_SPECIFIC;
	offered();
}

static struct fi_info *source_offer(const char *node, const char *service)
{
	struct fi_info *offer = NULL;
	int result = fi_getinfo(FI_VERSION(1, 17), node, service, FI_SOURCE, hints, &offer);

	assert_int_equal(result, offer ? 0 : -FI_ENODATA);
	return offer;
}

/* An offer has an address of its domain, with which an endpoint is opened; a source selects a
 * domain. */
static void sources(void **state)
{
	const char *const item = getenv("PTL_IFACE_NAME"), *const place = strchr(item, ':') + 1;
	const char *const nodes[] = {NULL, item, place};
	struct fi_info *offer, *again;
	char name[NAME_BYTES] = "no address";

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		offer = source_offer(nodes[i], i == 1 ? NULL : "47592");
		assert_non_null(offer);
		assert_string_equal(offer->domain_attr->name, item);
		assert_int_equal(offer->src_addrlen, NAME_BYTES);
		assert_memory_equal(offer->src_addr, "PSTN", 4);
		assert_int_equal(offer->dest_addrlen, 0);
		again = offer_of(offer);
		assert_non_null(again);
		assert_memory_equal(again->src_addr, offer->src_addr, NAME_BYTES);
		fi_freeinfo(again);
		fi_freeinfo(offer);
	}
	assert_null(source_offer("localhost", NULL));
	/* No program chooses its process. A source that is none is ignored beside FI_SOURCE. */
	hints->src_addr = name;
	hints->src_addrlen = sizeof(name);
	assert_null(offer_of(hints));
	offer = source_offer(NULL, "1");
	assert_non_null(offer);
	memcpy(name, offer->src_addr, sizeof(name));
	fi_freeinfo(offer);
	offered();
	name[5]++; /* another kind of network */
	assert_null(offer_of(hints));
	name[5]--;
	name[12]++; /* the process */
	assert_null(offer_of(hints));
	hints->src_addr = NULL;
}

/* The log of one call of fi_getinfo(). */
static void log_has(const char *host, const char *words)
{
	struct fi_info *offer = NULL;
	char text[4096];
	size_t length;
	FILE *log = tmpfile();
	int own = dup(STDERR_FILENO);

	assert_non_null(log);
	assert_int_equal(dup2(fileno(log), STDERR_FILENO), STDERR_FILENO);
	assert_int_equal(fi_getinfo(FI_VERSION(1, 17), host, NULL, 0, hints, &offer), -FI_ENODATA);
	assert_int_equal(dup2(own, STDERR_FILENO), STDERR_FILENO);
	close(own);
	rewind(log);
	length = fread(text, 1, sizeof(text) - 1, log);
	text[length] = '\0';
	fclose(log);
	assert_non_null(strstr(text, words));
}

static void the_log_says_what_is_not_offered(void **state)
{
	(void)state;
	log_has("localhost", "exchange the addresses of fi_getname()");
	hints->tx_attr->inject_size = 65536;
	log_has(NULL, "tx->inject_size is 65536 in the hints, and the most is 4096");
	hints->tx_attr->inject_size = 0;
	hints->caps = FI_TAGGED | FI_COLLECTIVE; /* bit 6 */
	log_has(NULL, "caps has the bits 0x40 in the hints");
	hints->caps = 0;
	hints->ep_attr->type = FI_EP_MSG;
	log_has(NULL, "the value of ep->type");
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->name = strdup("eth9");
	log_has(NULL, "no item of PTL_IFACE_NAME");
}

static void without_hints_there_is_all(void **state)
{
	struct fi_info *all, *offer;
	bool found = false;

	(void)state;
	assert_ok(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &all));
	for (offer = all; offer; offer = offer->next)
		if (strcmp(offer->fabric_attr->prov_name, "postern") == 0) {
			found = true;
			assert_int_equal(offer->caps & (FI_MSG | FI_TAGGED | FI_SEND | FI_RECV),
				FI_MSG | FI_TAGGED | FI_SEND | FI_RECV);
			assert_int_equal(offer->ep_attr->type, FI_EP_RDM);
			/* It makes errors of messages, so it is to be asked for. */
			assert_false(offer->caps & FI_SOURCE_ERR);
			assert_int_equal(offer->domain_attr->data_progress, FI_PROGRESS_AUTO);
			assert_int_equal(offer->domain_attr->control_progress, FI_PROGRESS_AUTO);
		}
	assert_true(found);
	fi_freeinfo(all);
}

/* As Open MPI's mtl asks. */
static void hints_of_clients(void **state)
{
	struct fi_info *offer = NULL;

	(void)state;
	hints->mode = FI_CONTEXT;
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->op_flags = FI_COMPLETION;
	hints->tx_attr->op_flags = FI_COMPLETION;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->av_type = FI_AV_MAP;
	hints->domain_attr->cq_data_size = 4;
	assert_ok(fi_getinfo(FI_VERSION(1, 5), NULL, NULL, 0, hints, &offer));
	assert_string_equal(offer->fabric_attr->prov_name, "postern");
	fi_freeinfo(offer);
}

/* Beside what was asked for, an offer says what else holds: with all of it as hints it is the
 * same. */
static void an_offer_is_offered_again(void **state)
{
	static const uint64_t caps[] = {0, FI_MSG, FI_TAGGED, FI_RMA, FI_ATOMIC | FI_RMA_EVENT,
		FI_MSG | FI_MULTI_RECV | FI_SOURCE | FI_SOURCE_ERR, FI_TAGGED | FI_RMA | FI_FENCE};
	static const int modes[] = {0, FI_MR_BASIC, FI_MR_SCALABLE};
	struct fi_info *offer, *again;

	(void)state;
	for (unsigned i = 0; i < 3 * sizeof(caps) / sizeof(caps[0]); i++) {
		hints->caps = caps[i / 3];
		hints->domain_attr->mr_mode = modes[i % 3];
		hints->tx_attr->msg_order = i % 2 ? FI_ORDER_WAW : 0;
		hints->tx_attr->op_flags = i % 2 ? FI_COMPLETION : FI_INJECT;
		offer = offer_of(hints);
		assert_non_null(offer);
		assert_int_equal(offer->caps & hints->caps, hints->caps);
		again = offer_of(offer);
		assert_non_null(again);
		assert_true(again->caps == offer->caps);
		assert_true(again->tx_attr->caps == offer->tx_attr->caps);
		assert_true(again->rx_attr->caps == offer->rx_attr->caps);
		assert_true(again->tx_attr->msg_order == offer->tx_attr->msg_order);
		assert_true(again->tx_attr->op_flags == offer->tx_attr->op_flags);
		assert_int_equal(again->domain_attr->mr_mode, offer->domain_attr->mr_mode);
		assert_int_equal(
			again->ep_attr->max_order_waw_size, offer->ep_attr->max_order_waw_size);
		assert_string_equal(again->domain_attr->name, offer->domain_attr->name);
		fi_freeinfo(again);
		fi_freeinfo(offer);
	}
}

static void the_version_is_the_caller_s(void **state)
{
	static const uint32_t minors[] = {5, 9, 14, 17};
	struct fi_info *offer, *next;

	(void)state;
	for (unsigned i = 0; i < sizeof(minors) / sizeof(minors[0]); i++) {
		assert_ok(fi_getinfo(FI_VERSION(1, minors[i]), NULL, NULL, 0, hints, &offer));
		assert_int_equal(offer->fabric_attr->api_version, FI_VERSION(1, minors[i]));
		assert_int_not_equal(offer->fabric_attr->prov_version, 0);
		fi_freeinfo(offer);
	}
	/* A list of what there is, and where an own address would come from. */
	assert_ok(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, FI_PROV_ATTR_ONLY, hints, &offer));
	for (next = offer; next && strcmp(next->fabric_attr->prov_name, "postern") != 0;)
		next = next->next;
	assert_non_null(next);
	assert_int_not_equal(next->fabric_attr->prov_version, 0);
	fi_freeinfo(offer);
	assert_ok(fi_getinfo(
		FI_VERSION(1, 17), NULL, NULL, FI_SOURCE | FI_NUMERICHOST, hints, &offer));
	fi_freeinfo(offer);
}

/* Programs before API 1.5 know two modes of memory registration alone. */
static void an_old_program_gets_an_old_mode(void **state)
{
	static const int modes[][2] = {{FI_MR_UNSPEC, FI_MR_SCALABLE}, {FI_MR_BASIC, FI_MR_BASIC},
		{FI_MR_SCALABLE, FI_MR_SCALABLE}};
	struct fi_info *offer;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		hints->domain_attr->mr_mode = modes[i][0];
		assert_ok(fi_getinfo(FI_VERSION(1, 4), NULL, NULL, 0, hints, &offer));
		assert_int_equal(offer->domain_attr->mr_mode, modes[i][1]);
		fi_freeinfo(offer);
	}
}

/* What is open, of these objects alone; NULL: nothing is. */
static void opened_is(struct fid_fabric *fabric_of, struct fid_domain *domain_of)
{
	struct fi_info *offer = offer_of(hints);

	assert_non_null(offer);
	assert_ptr_equal(offer->fabric_attr->fabric, fabric_of);
	assert_ptr_equal(offer->domain_attr->domain, domain_of);
	fi_freeinfo(offer);
}

/* fi_fabric(3), fi_domain(3): the first of a name; or hints choose one. */
static void an_offer_has_what_is_open(void **state)
{
	char *name = strdup(getenv("PTL_IFACE_NAME")), both[200];
	struct fid_fabric *fabrics[2];
	struct fid_domain *domains[2];
	struct fi_info *offer;

	(void)state;
	opened_is(NULL, NULL);
	offer = offer_of(hints);
	for (unsigned i = 0; i < 2; i++) {
		assert_ok(fi_fabric(offer->fabric_attr, &fabrics[i], NULL));
		opened_is(fabrics[0], i == 0 ? NULL : domains[0]);
		assert_ok(fi_domain(fabrics[i], offer, &domains[i], NULL));
		opened_is(fabrics[0], domains[0]);
	}
	fi_freeinfo(offer);
	hints->domain_attr->domain = domains[1];
	opened_is(fabrics[0], domains[1]);
	hints->fabric_attr->fabric = fabrics[1];
	opened_is(fabrics[1], domains[1]);
	/* Another device has another domain, and another fabric. */
	(void)snprintf(both, sizeof(both), "loop:one;%s", name);
	setenv("PTL_IFACE_NAME", both, 1);
	opened_is(fabrics[1], domains[1]);
	hints->domain_attr->domain = NULL;
	opened_is(fabrics[1], domains[0]);
	hints->fabric_attr->fabric = NULL;
	opened_is(NULL, NULL);
	hints->domain_attr->domain = domains[0];
	offer = offer_of(hints);
	assert_string_equal(offer->domain_attr->name, name);
	assert_null(offer->next);
	fi_freeinfo(offer);
	setenv("PTL_IFACE_NAME", name, 1);
	free(name);
	hints->domain_attr->domain = (struct fid_domain *)(void *)fabrics[0];
	assert_null(offer_of(hints));
	hints->domain_attr->domain = NULL;
	for (unsigned i = 0; i < 2; i++) {
		assert_ok(fi_close(&domains[i]->fid));
		opened_is(fabrics[i], i == 0 ? domains[1] : NULL);
		assert_ok(fi_close(&fabrics[i]->fid));
	}
	opened_is(NULL, NULL);
}

/* The limits that an offer tells are those of its calls. */
static void an_offer_tells_its_limits(void **state)
{
	struct fi_info *offer = offer_of(hints);

	(void)state;
	assert_non_null(offer);
	assert_int_equal(offer->tx_attr->inject_size, 4096);
	assert_int_equal(offer->tx_attr->size, 1024);
	assert_int_equal(offer->rx_attr->size, 16384);
	assert_int_equal(offer->tx_attr->iov_limit, 4);
	assert_int_equal(offer->rx_attr->iov_limit, 4);
	assert_int_equal(offer->tx_attr->rma_iov_limit, 1);
	assert_int_equal(offer->ep_attr->max_msg_size, (size_t)1 << 40);
	assert_int_equal(offer->ep_attr->tx_ctx_cnt, 1);
	assert_int_equal(offer->ep_attr->rx_ctx_cnt, 1);
	assert_int_equal(offer->domain_attr->max_ep_stx_ctx, 0);
	assert_int_equal(offer->domain_attr->max_ep_srx_ctx, 0);
	assert_int_equal(offer->domain_attr->cq_data_size, 8);
	assert_int_equal(offer->domain_attr->mr_key_size, 8);
	assert_int_equal(offer->domain_attr->mr_iov_limit, 4);
	assert_int_equal(offer->domain_attr->max_err_data, NAME_BYTES);
	assert_int_equal(offer->domain_attr->resource_mgmt, FI_RM_ENABLED);
	assert_true(offer->ep_attr->mem_tag_format == UINT64_C(0xaaaaaaaaaaaaaaaa));
	assert_int_equal(offer->mode | offer->domain_attr->mode, 0);
	fi_freeinfo(offer);
}

/* Two items of PTL_IFACE_NAME are two domains. */
static void a_domain_for_each_device(void **state)
{
	char *before = strdup(getenv("PTL_IFACE_NAME"));
	struct fi_info *offer;

	(void)state;
	setenv("PTL_IFACE_NAME", "\tnode ;\tloop:one\t", 1);
	offer = offer_of(hints);
	assert_non_null(offer);
	assert_string_equal(offer->domain_attr->name, "node");
	assert_non_null(offer->next);
	assert_string_equal(offer->next->domain_attr->name, "loop:one");
	assert_string_equal(offer->next->fabric_attr->name, "postern:loop:one");
	fi_freeinfo(offer);
	setenv("PTL_IFACE_NAME", "eth9", 1);
	for (unsigned udp = 0; udp <= 1; udp++) {
		offer = offer_of(hints);
		assert_non_null(offer);
		assert_string_equal(offer->fabric_attr->name,
			udp ? "postern:ethernet-udp" : "postern:ethernet");
		fi_freeinfo(offer);
		setenv("PTL_ENCAP", " udp\t", 1);
	}
	unsetenv("PTL_ENCAP");
	unsetenv("PTL_IFACE_NAME");
	offer = offer_of(hints);
	assert_string_equal(offer->domain_attr->name, "node");
	fi_freeinfo(offer);
	setenv("PTL_IFACE_NAME", before, 1);
	free(before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, hints_open, hints_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(capabilities),
		TEST(endpoints),
		TEST(contexts),
		TEST(domains),
		TEST(modes),
		TEST(names),
		TEST(addresses_are_not_looked_up),
		TEST(sources),
		TEST(the_log_says_what_is_not_offered),
		TEST(without_hints_there_is_all),
		TEST(hints_of_clients),
		TEST(an_offer_is_offered_again),
		TEST(the_version_is_the_caller_s),
		TEST(an_old_program_gets_an_old_mode),
		TEST(an_offer_has_what_is_open),
		TEST(an_offer_tells_its_limits),
		TEST(a_domain_for_each_device),
	};

	/* libfabric reads these once. */
	setenv("FI_LOG_LEVEL", "info", 1);
	setenv("FI_LOG_PROV", "postern", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
