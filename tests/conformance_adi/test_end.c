/* SPDX-License-Identifier: BSD-3-Clause */
/* test_end.c - the last barrier of a job by a list of addresses, when peers leave or die in it.
 * Covers: lib/adi/adi.c.
 *
 * Each case is a process that is one of three ranks. Its messages are this file's, so what it hears
 * in the barrier, and in which order, is exact.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <messages/messages.h>
#include <postern-adi.h>

/* As lib/adi/adi.c writes them. */
#define WORD_AT 48
enum { WORD_HERE = 1, WORD_GO };

struct messages {
	struct messages_options options;
};

static struct messages messages;
/* What is heard, a letter in each wait. g: rank 0 opens a barrier; h, H: rank 1, rank 2 has come to
 * it; f: the peer is gone that g and h are of. */
static const char *script;
static unsigned opened, here[3];

enum answer __wrap_messages_open(const struct messages_options *options, struct messages **made);
void __wrap_messages_close(struct messages *closed);
void __wrap_messages_tell(struct messages *to, uint32_t peer, uint64_t word);
void __wrap_messages_ask(struct messages *from, uint32_t peer);
uint64_t __wrap_messages_pending(const struct messages *from);
bool __wrap_messages_wait(
	struct messages *from, bool (*look)(void *context), void *context, uint64_t timeout);

enum answer __wrap_messages_open(const struct messages_options *options, struct messages **made)
{
	messages.options = *options;
	*made = &messages;
	return ANSWER_OK;
}

void __wrap_messages_close(struct messages *closed)
{
	(void)closed;
}

void __wrap_messages_tell(struct messages *to, uint32_t peer, uint64_t word)
{
	(void)to;
	(void)peer;
	(void)word;
}

void __wrap_messages_ask(struct messages *from, uint32_t peer)
{
	(void)from;
	(void)peer;
}

/* Behind the last barrier, what is left of the script. */
uint64_t __wrap_messages_pending(const struct messages *from)
{
	(void)from;
	return opened == 2 || (here[1] == 2 && here[2] == 2) ? strlen(script) : 0;
}

static void hear(char letter)
{
	const uint32_t peer = letter == 'H' ? 2 : messages.options.self == 0;

	if (letter == 'f') {
		messages.options.failed(messages.options.owner, peer, "is gone");
		return;
	}
	messages.options.told(messages.options.owner, peer,
		letter == 'g' ? (uint64_t)WORD_GO << WORD_AT | ++opened
			      : (uint64_t)WORD_HERE << WORD_AT | ++here[peer]);
}

bool __wrap_messages_wait(
	struct messages *from, bool (*look)(void *context), void *context, uint64_t timeout)
{
	(void)from;
	(void)timeout;
	if (look(context))
		return true;
	if (*script == '\0')
		_exit(9);
	hear(*script++);
	return look(context);
}

static void done(void *owner, const struct adi_result *result)
{
	(void)owner;
	(void)result;
}

/* The exit code of a rank that hears this, from its start on. */
static int end_of(const char *rank, const char *heard)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		setenv("PTL_ADI_HOSTS", "7:1000,7:1001,7:1002", 1);
		setenv("PTL_NID", "7", 1);
		setenv("PTL_ADI_RANK", rank, 1);
		script = heard;
		if (adi_start(done) != 0)
			_exit(8);
		adi_end();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void peers__may_leave_when_the_last_barrier_is_open(void **state)
{
	(void)state;
	assert_int_equal(end_of("1", "ggf"), 0);
	assert_int_equal(end_of("0", "hHhHf"), 0);
}

static void a_peer__that_has_come_to_the_last_barrier_may_be_gone(void **state)
{
	(void)state;
	assert_int_equal(end_of("0", "hHhfH"), 0);
}

static void a_peer__that_has_not_come_to_it_ends_the_job(void **state)
{
	(void)state;
	assert_int_equal(end_of("1", "gf"), 1);
	assert_int_equal(end_of("0", "hHf"), 1);
	assert_int_equal(end_of("0", "hHHf"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peers__may_leave_when_the_last_barrier_is_open),
		cmocka_unit_test(a_peer__that_has_come_to_the_last_barrier_may_be_gone),
		cmocka_unit_test(a_peer__that_has_not_come_to_it_ends_the_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
