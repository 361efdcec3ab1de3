/* SPDX-License-Identifier: BSD-3-Clause */
/* test_provider.c - an endpoint of libfabric and processes that answer its greetings wrongly, or
 * have its process ids.
 * Covers: lib/fi/peer.c, lib/fi/endpoint.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <base/clock.h>
#include <fi/state.h>

#define ANSWER  (UINT64_C(0x47) << 56)
#define STRANGE (UINT64_C(1) << 32) /* code of an answer: the life that is wanted is over */
#define LIFE    77u
#define NAME    5u
#define TIMEOUT (300 * MILLISECOND)

struct fi_provider *fi_prov_ini(void);

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep;
static struct fi_info *info;

/* The greetings that the endpoint sends are not sent: this is their result at once. */
static enum greeting_result result;
static unsigned greetings;
static uint64_t token; /* of the last one */

bool __wrap_messages_greet(struct messages *messages, struct greeting *greeting);
bool __wrap_messages_greet(struct messages *messages, struct greeting *greeting)
{
	(void)messages;
	greetings++;
	token = greeting->words[2];
	peer_answered(endpoint_of(ep), greeting, result);
	return true;
}

/* How often it was asked whether it is time to review peers. */
static unsigned reviews;

bool __wrap_messages_review(struct messages *messages, bool always);
bool __real_messages_review(struct messages *messages, bool always);
bool __wrap_messages_review(struct messages *messages, bool always)
{
	reviews++;
	return __real_messages_review(messages, always);
}

/* So many process ids are others', from the first one that is asked for. */
static uint32_t taken, first;

enum answer wrapped_open(const struct front *front, unsigned device, uint32_t pid, bool tries,
	const struct segment_limits *limits,
	uint64_t *handle) __asm__("__wrap_postern_core_interface_open_beside");
enum answer real_open(const struct front *front, unsigned device, uint32_t pid, bool tries,
	const struct segment_limits *limits,
	uint64_t *handle) __asm__("__real_postern_core_interface_open_beside");
enum answer wrapped_open(const struct front *front, unsigned device, uint32_t pid, bool tries,
	const struct segment_limits *limits, uint64_t *handle)
{
	if (first == 0)
		first = pid;
	return pid - first < taken ? ANSWER_TAKEN
				   : real_open(front, device, pid, tries, limits, handle);
}

static int open_all(void **state)
{
	struct fi_av_attr table = {.type = FI_AV_TABLE};
	struct fi_cq_attr tagged = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD};

	(void)state;
	setenv("PTL_IFACE_NAME", "loop:provider", 1);
	setenv("PTL_PROGRESS", "inline", 1);
	setenv("PTL_PEER_TIMEOUT", "300ms", 1);
	result = GREETING_TAKEN;
	greetings = 0;
	taken = first = 0;
	assert_int_equal(info_get(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info), 0);
	assert_int_equal(fi_prov_ini()->fabric(info->fabric_attr, &fabric, NULL), 0);
	assert_int_equal(fi_domain(fabric, info, &domain, NULL), 0);
	assert_int_equal(fi_av_open(domain, &table, &av, NULL), 0);
	assert_int_equal(fi_cq_open(domain, &tagged, &cq, NULL), 0);
	assert_int_equal(fi_endpoint(domain, info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&av->fid), 0);
	assert_int_equal(fi_close(&domain->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
	return 0;
}

static fi_addr_t insert(struct process process)
{
	struct address address = endpoint_of(ep)->self;
	fi_addr_t index;

	address.nid = process.nid;
	address.pid = process.pid;
	address.life = LIFE;
	assert_int_equal(fi_av_insert(av, &address, 1, &index, 0, NULL), 1);
	return index;
}

static void progress(void)
{
	(void)fi_cq_read(cq, NULL, 0);
}

static enum peer_state state_of(uint32_t number)
{
	return endpoint_of(ep)->peers[number].state;
}

static void answer(struct process from, uint64_t code, uint32_t life, uint64_t named)
{
	const struct greeting greeting = {
		.words = {ANSWER | code, (uint64_t)life << 32 | NAME, named}};
	struct domain *locked = endpoint_of(ep)->domain;

	domain_enter(locked);
	assert_true(peer_greeted(endpoint_of(ep), from, &greeting));
	domain_leave(locked);
	progress();
}

/* The peers are 1, which is asked, and 2, which is not. */
static void an_answer_is_the_asked_process_s_with_the_token_alone(void **state)
{
	const struct process asked = {.nid = 3, .pid = 30}, other = {.nid = 3, .pid = 31};
	char text[8];

	(void)state;
	assert_int_equal(fi_enable(ep), 0);
	assert_int_equal(fi_tsend(ep, "hello", 6, NULL, insert(asked), 1, NULL), 0);
	assert_int_equal(fi_trecv(ep, text, 8, NULL, insert(other), 1, 0, NULL), 0);
	assert_int_equal(greetings, 1);
	answer(other, 0, LIFE, token);
	answer(other, 0, LIFE, 0); /* as of a peer that was not asked */
	answer(other, STRANGE, LIFE, token);
	answer(other, STRANGE, LIFE, 0);
	answer((struct process){.nid = 4, .pid = 30}, 0, LIFE, token);
	answer((struct process){.nid = 4, .pid = 30}, STRANGE, LIFE, token);
	answer(asked, 0, LIFE, token + 1);
	answer(asked, 0, LIFE, 0);
	answer(asked, STRANGE, LIFE, token + 1);
	answer(asked, 0, LIFE + 1, token);
	assert_int_equal(state_of(1), PEER_ASKING);
	assert_int_equal(state_of(2), PEER_NAMED);
	answer(asked, 0, LIFE, token);
	assert_int_equal(state_of(1), PEER_OPEN);
	assert_int_equal(endpoint_of(ep)->peers[1].name, NAME);
	assert_int_equal(state_of(2), PEER_NAMED);
}

/* It is asked again and again meanwhile. */
static void a_process_that_refuses_greetings_is_given_up_after_the_peer_timeout(void **state)
{
	struct fi_cq_tagged_entry entry;
	uint64_t start, passed;

	(void)state;
	assert_int_equal(fi_enable(ep), 0);
	result = GREETING_REFUSED;
	start = library_now();
	assert_int_equal(
		fi_tsend(ep, "hello", 6, NULL, insert((struct process){3, 30}), 1, NULL), 0);
	while (state_of(1) == PEER_ASKING)
		(void)fi_cq_read(cq, &entry, 1);
	passed = library_now() - start;
	assert_true(passed > TIMEOUT);
	assert_in_range(greetings, 2, passed / (5 * MILLISECOND) + 1);
	assert_int_equal(state_of(1), PEER_LOST);
	assert_int_equal(endpoint_of(ep)->peers[1].err, FI_EHOSTUNREACH);
}

static void an_endpoint_opens_though_others_have_the_next_ids(void **state)
{
	(void)state;
	taken = 1000;
	assert_int_equal(fi_enable(ep), 0);
	assert_true(endpoint_of(ep)->self.pid - first >= taken);
}

/* A thread that sleeps makes few calls, each of which may be the one that finds a peer silent. */
static void each_sleep_is_followed_by_a_look_at_the_clock(void **state)
{
	enum { SLEEPS = 5 };
	struct fi_cq_tagged_entry entry;
	struct fid *fids[] = {&cq->fid};

	(void)state;
	assert_int_equal(fi_enable(ep), 0);
	reviews = 0;
	for (unsigned i = 0; i < SLEEPS; i++)
		assert_int_equal(fi_cq_sread(cq, &entry, 1, NULL, 1), -FI_EAGAIN);
	assert_true(reviews >= SLEEPS);
	reviews = 0;
	for (unsigned i = 0; i <= SLEEPS; i++)
		assert_int_equal(fi_trywait(fabric, fids, 1), 0);
	assert_true(reviews >= SLEEPS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)
	const struct CMUnitTest tests[] = {
		TEST(an_answer_is_the_asked_process_s_with_the_token_alone),
		TEST(a_process_that_refuses_greetings_is_given_up_after_the_peer_timeout),
		TEST(each_sleep_is_followed_by_a_look_at_the_clock),
		TEST(an_endpoint_opens_though_others_have_the_next_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
