/* SPDX-License-Identifier: BSD-3-Clause */
/* test_regions.c - memory regions: fi_mr(3).
 * Covers: lib/fi/mr.c. */
#include "memory.h"

#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_eq.h>

static void a_key_is_the_program_s(void **state)
{
	struct iovec iov[5] = {{target, 8}, {target + 100, 8}, {target + 50, 9}, {target + 200, 1},
		{target + 300, 1}};
	struct fi_mr_attr attr = {
		.mr_iov = iov, .iov_count = 3, .access = BOTH, .requested_key = 5};
	const uint64_t flags[] = {
		FI_MORE, FI_RMA_PMEM, FI_HMEM_DEVICE_ONLY, FI_HMEM_HOST_ALLOC, FI_COLLECTIVE};
	struct fid_mr *mr, *other;
	uint64_t mapped, at;
	size_t size = 1;
	uint8_t raw[8];

	(void)state;
	assert_int_equal(fi_mr_reg(domain, target, 8, BOTH, 0, KEY, 0, &mr, NULL), -FI_ENOKEY);
	assert_int_equal(fi_mr_reg(domain, target, 8, BOTH, 0, FI_KEY_NOTAVAIL, 0, &mr, NULL),
		-FI_EKEYREJECTED);
	assert_int_equal(fi_mr_reg(domain, target, 0, BOTH, 0, 1, 0, &mr, NULL), -FI_EINVAL);
	assert_int_equal(fi_mr_reg(domain, target, 8, BOTH, 1, 1, 0, &mr, NULL), -FI_EINVAL);
	assert_int_equal(fi_mr_reg(domain, target, 8, FI_MSG, 0, 1, 0, &mr, NULL), -FI_EINVAL);
	for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		assert_int_equal(fi_mr_reg(domain, target, 8, BOTH, 0, 1, flags[i], &mr, NULL),
			-FI_EBADFLAGS);
	assert_int_equal(fi_mr_regv(domain, NULL, 1, BOTH, 0, 1, 0, &mr, NULL), -FI_EINVAL);
	assert_int_equal(fi_mr_regv(domain, iov, 0, BOTH, 0, 1, 0, &mr, NULL), -FI_EINVAL);
	assert_int_equal(fi_mr_regv(domain, iov, 5, BOTH, 0, 1, 0, &mr, NULL), -FI_EINVAL);
	assert_ok(fi_mr_regattr(domain, &attr, 0, &mr));
	assert_int_equal(fi_mr_key(mr), 5);
	assert_ok(fi_mr_reg(domain, target, 8, BOTH, 0, UINT64_MAX - 1, 0, &other, NULL));
	/* The pieces are one region. */
	assert_ok(fi_write(sides[0].ep, local, 20, NULL, sides[0].other, 5, 5, &context));
	written_take();
	memcpy(mirror + 5, local, 3);
	memcpy(mirror + 100, local + 3, 8);
	memcpy(mirror + 50, local + 11, 9);
	target_is_as_it_should_be();
	both_fail(6, 20, 5, FI_EKEYREJECTED);
	/* As a program does that knows keys of any length. */
	assert_int_equal(fi_mr_raw_attr(mr, &at, raw, &size, 0), -FI_ETOOSMALL);
	assert_int_equal(size, 8);
	assert_ok(fi_mr_raw_attr(mr, &at, raw, &size, 0));
	assert_int_equal(at, 0);
	assert_ok(fi_mr_map_raw(domain, at, raw, size, &mapped, 0));
	assert_int_equal(mapped, 5);
	assert_ok(fi_mr_unmap_key(domain, mapped));
	assert_int_equal(fi_close(&domain->fid), -FI_EBUSY);
	assert_ok(fi_close(&mr->fid));
	assert_ok(fi_close(&other->fid));
	/* The key is free again. */
	assert_ok(fi_mr_regv(domain, iov, 1, BOTH, 0, 5, 0, &mr, NULL));
	assert_ok(fi_close(&mr->fid));
}

static void a_basic_key_is_the_provider_s(void **state)
{
	struct fid_mr *mr[2];
	uint64_t mapped, at;
	size_t size = 8;
	uint8_t raw[8];

	(void)state;
	assert_int_equal(info->domain_attr->mr_mode, FI_MR_BASIC);
	assert_true(key != FI_KEY_NOTAVAIL);
	for (unsigned i = 0; i < 2; i++)
		assert_ok(fi_mr_reg(domain, target + i * 16, 16, BOTH, 0, KEY, 0, &mr[i], NULL));
	assert_true(fi_mr_key(mr[0]) != fi_mr_key(mr[1]));
	assert_ok(fi_write(sides[0].ep, local, 16, NULL, sides[0].other, (uintptr_t)target + 16,
		fi_mr_key(mr[1]), &context));
	written_take();
	memcpy(mirror + 16, local, 16);
	target_is_as_it_should_be();
	both_fail((uintptr_t)target + 15, 8, fi_mr_key(mr[1]), FI_EKEYREJECTED);
	both_fail((uintptr_t)target + 16, 8, fi_mr_key(mr[0]), FI_EKEYREJECTED);
	assert_ok(fi_mr_raw_attr(mr[1], &at, raw, &size, 0));
	assert_true(at == (uintptr_t)target + 16);
	assert_ok(fi_mr_map_raw(domain, at, raw, size, &mapped, 0));
	assert_true(mapped == fi_mr_key(mr[1]));
	assert_ok(fi_mr_unmap_key(domain, mapped));
	for (unsigned i = 0; i < 2; i++)
		assert_ok(fi_close(&mr[i]->fid));
}

/* What only programs of later releases, or with FI_HMEM, write is not looked at. */
static void a_field_that_is_not_used_is_not_looked_at(void **state)
{
	struct iovec iov = {target, 8};
	struct fi_mr_attr attr = {.mr_iov = &iov,
		.iov_count = 1,
		.access = BOTH,
		.requested_key = 5,
		.iface = (enum fi_hmem_iface)77,
		.device.reserved = 77};
	struct fi_fabric_attr older = *info->fabric_attr;
	struct fid_fabric *old_fabric;
	struct fid_domain *old_domain;
	struct fid_mr *mr;

	(void)state;
	assert_ok(fi_mr_regattr(domain, &attr, 0, &mr));
	assert_ok(fi_close(&mr->fid));
	attr.auth_key_size = 4;
	assert_int_equal(fi_mr_regattr(domain, &attr, 0, &mr), -FI_EINVAL);
	assert_int_equal(fi_mr_regattr(domain, NULL, 0, &mr), -FI_EINVAL);
	older.api_version = FI_VERSION(1, 4);
	assert_ok(fi_fabric(&older, &old_fabric, NULL));
	assert_ok(fi_domain(old_fabric, info, &old_domain, NULL));
	assert_ok(fi_mr_regattr(old_domain, &attr, 0, &mr));
	assert_ok(fi_close(&mr->fid));
	assert_ok(fi_close(&old_domain->fid));
	assert_ok(fi_close(&old_fabric->fid));
}

/* A region may be of any addresses, of all of them too. */
static void all_of_memory_is_a_region(void **state)
{
	struct fid_mr *all, *high;

	(void)state;
	assert_ok(fi_mr_reg(domain, NULL, SIZE_MAX, BOTH, 0, 99, 0, &all, NULL));
	assert_ok(fi_write(sides[0].ep, local, 100000, NULL, sides[0].other,
		(uintptr_t)target + EDGE, fi_mr_key(all), &context));
	written_take();
	target_gets(local, 0, 100000);
	target_is_as_it_should_be();
	memset(local, 0, 100000);
	assert_ok(fi_read(sides[0].ep, local, 100000, NULL, sides[0].other,
		(uintptr_t)target + EDGE, fi_mr_key(all), &context));
	done_take(FI_RMA | FI_READ, &context);
	assert_memory_equal(local, mirror + EDGE, 100000);
	assert_ok(
		fi_write(sides[0].ep, local, 8, NULL, sides[0].other, 1, fi_mr_key(all), &context));
	failed_take(FI_EFAULT, FI_RMA | FI_WRITE, &context);
	assert_ok(fi_close(&all->fid));
	/* No range goes beyond the last address. */
	assert_int_equal(
		fi_mr_reg(domain, (void *)(UINTPTR_MAX - 4095), 8192, BOTH, 0, 98, 0, &high, NULL),
		-FI_EINVAL);
	target_is_as_it_should_be();
}

static void a_domain_has_as_many_regions_as_it_says(void **state)
{
	const size_t most = info->domain_attr->mr_cnt;
	struct fid_mr **mr = calloc(most, sizeof(*mr)), *more;

	(void)state;
	assert_non_null(mr);
	for (size_t i = 1; i < most; i++) /* one is there */
		assert_ok(fi_mr_reg(
			domain, target + EDGE + i, 8, BOTH, 0, 100000 + i, 0, &mr[i], NULL));
	assert_int_equal(fi_mr_reg(domain, target, 8, BOTH, 0, 5, 0, &more, NULL), -FI_ENOMEM);
	for (size_t i = 1; i < most; i += most / 3) {
		assert_ok(fi_write(sides[0].ep, local, 8, NULL, sides[0].other,
			base == 0 ? 0 : (uintptr_t)target + EDGE + i, fi_mr_key(mr[i]), &context));
		written_take();
		target_gets(local, i, 8);
	}
	target_is_as_it_should_be();
	for (size_t i = 1; i < most; i++)
		assert_ok(fi_close(&mr[i]->fid));
	free(mr);
	assert_ok(fi_mr_reg(domain, target, 8, BOTH, 0, 5, 0, &more, NULL));
	assert_ok(fi_close(&more->fid));
}

static void a_program_hears_of_a_registration(void **state)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_NONE};
	struct fi_eq_entry entry = {0};
	struct fid_domain *own;
	struct fid_mr *mr, *other;
	struct fid_eq *eq;
	uint32_t event;

	(void)state;
	assert_ok(fi_eq_open(fabric, &attr, &eq, NULL));
	assert_ok(fi_domain(fabric, info, &own, NULL));
	assert_int_equal(fi_domain_bind(own, &eq->fid, FI_SEND), -FI_EBADFLAGS);
	assert_ok(fi_domain_bind(own, &eq->fid, FI_REG_MR));
	assert_ok(fi_mr_reg(own, target, 8, BOTH, 0, KEY, 0, &mr, &context));
	assert_int_equal(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	assert_int_equal(event, FI_MR_COMPLETE);
	assert_ptr_equal(entry.fid, &mr->fid);
	assert_ptr_equal(entry.context, &context);
	assert_int_equal(fi_mr_reg(own, target, 8, BOTH, 0, KEY, 0, &other, NULL), -FI_ENOKEY);
	assert_int_equal(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	assert_int_equal(fi_close(&eq->fid), -FI_EBUSY);
	assert_ok(fi_close(&mr->fid));
	assert_ok(fi_close(&own->fid));
	assert_ok(fi_close(&eq->fid));
}

static void many_regions_stand_beside_each_other(void **state)
{
	enum { COUNT = 2000 };
	static struct fid_mr *mr[COUNT];
	struct side third = {0};
	uint64_t keys[COUNT];
	fi_addr_t at;

	(void)state;
	for (unsigned i = 0; i < COUNT; i++) {
		assert_ok(fi_mr_reg(
			domain, target + EDGE + 8 * i, 8, BOTH, 0, 100000 + i, 0, &mr[i], NULL));
		keys[i] = fi_mr_key(mr[i]);
	}
	/* An endpoint that comes later has them, too. */
	side_open(&third, &(struct wish){0});
	assert_int_equal(fi_av_insert(sides[0].av, third.name, 1, &at, 0, NULL), 1);
	for (unsigned i = 0; i < COUNT; i++) {
		assert_ok(fi_write(sides[0].ep, local + 8 * i, 8, NULL, i % 2 ? at : sides[0].other,
			base == 0 ? 0 : (uintptr_t)target + EDGE + 8 * i, keys[i], &context));
		written_take();
		target_gets(local + 8 * i, 8 * i, 8);
	}
	target_is_as_it_should_be();
	for (unsigned i = 0; i < COUNT; i++)
		assert_ok(fi_close(&mr[i]->fid));
	side_close(&third);
}

/* As a runtime does at the exit of a child that never calls exec(). */
static void a_child_may_close_what_it_has(void **state)
{
	int status;
	pid_t child;

	(void)state;
	child = fork();
	if (child == 0)
		_exit(fi_close(&region->fid) == 0 && fi_close(&sides[0].ep->fid) == 0 ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_ok(fi_write(sides[0].ep, local, 8, NULL, sides[0].other, base, key, &context));
	written_take();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_key_is_the_program_s),
		TEST_BASIC(a_basic_key_is_the_provider_s),
		TEST(a_field_that_is_not_used_is_not_looked_at),
		TEST(all_of_memory_is_a_region),
		TEST_BASIC(all_of_memory_is_a_region),
		TEST(a_domain_has_as_many_regions_as_it_says),
		TEST_BASIC(a_domain_has_as_many_regions_as_it_says),
		TEST(a_program_hears_of_a_registration),
		TEST(many_regions_stand_beside_each_other),
		TEST_BASIC(many_regions_stand_beside_each_other),
		TEST(a_child_may_close_what_it_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
