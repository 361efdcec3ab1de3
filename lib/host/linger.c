/* SPDX-License-Identifier: BSD-3-Clause */
/* linger.c - see linger.h. */
#include <host/linger.h>

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <base/clock.h>
#include <base/log.h>
#include <base/backoff.h>
#include <base/settings.h>
#include <pmd-glue/glue.h>
#include <transport/transport.h>

/* at most, for acknowledgements and answers that peers wait for and no message here does */
#define COURTESY (200 * MILLISECOND)
/* at most, for processes that have never answered */
#define UNKNOWN (1 * SECOND)

/* --- signals */

static const int heeded[] = {SIGTERM, SIGINT};
#define HEEDED (sizeof(heeded) / sizeof(heeded[0]))

static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;
static struct sigaction before[HEEDED];
static bool noted[HEEDED];            /* `before` is what was there */
static volatile sig_atomic_t stopped; /* the signal, 0: none */

static void signal_note(int signal)
{
	stopped = signal;
}

void linger_begin(void)
{
	struct sigaction note = {.sa_handler = signal_note, .sa_flags = SA_RESTART};

	pthread_mutex_lock(&users_lock);
	if (users++ == 0) {
		stopped = 0;
		sigemptyset(&note.sa_mask);
		for (unsigned i = 0; i < HEEDED; i++)
			noted[i] = sigaction(heeded[i], NULL, &before[i]) == 0 &&
				   before[i].sa_handler != SIG_IGN &&
				   sigaction(heeded[i], &note, NULL) == 0;
	}
	pthread_mutex_unlock(&users_lock);
}

bool linger_is_stopped(void)
{
	return stopped != 0;
}

void linger_end(void)
{
	int signal = 0;

	pthread_mutex_lock(&users_lock);
	if (--users == 0) {
		for (unsigned i = 0; i < HEEDED; i++) {
			struct sigaction now;

			/* Another thread may have installed a handler of its own. */
			if (noted[i] && sigaction(heeded[i], NULL, &now) == 0 &&
				now.sa_handler == signal_note)
				sigaction(heeded[i], &before[i], NULL);
		}
		signal = stopped;
		stopped = 0;
	}
	pthread_mutex_unlock(&users_lock);
	if (signal != 0)
		kill(getpid(), signal);
}

/* --- the wait */

/* Is it worth to wait on? *until: the time until which it is, without a look at all peers. */
static bool engine_is_awaited(const struct engine *engine, uint64_t start, uint64_t *until)
{
	const struct transport *transport = engine_transport(engine);
	struct transport_awaited awaited;
	uint64_t now = glue_now(NULL);

	if (engine_settled(engine) || linger_is_stopped())
		return false;
	if (now - start < COURTESY)
		return true;
	if (!transport_awaits(transport))
		return false;
	if (now < *until)
		return true;
	transport_awaited(transport, &awaited);
	*until = start + UNKNOWN;
	if (awaited.known)
		*until = setting_number(SETTING_PEER_TIMEOUT) +
			 (awaited.progress > start ? awaited.progress : start);
	return now < *until;
}

static const char *settle_end(const struct transport_awaited *awaited)
{
	if (linger_is_stopped())
		return "a signal ended the wait";
	if (awaited->left == 0)
		return "the other process has ended, or sent no acknowledgement for "
		       "PTL_PEER_TIMEOUT";
	if (!awaited->known)
		return "no process has answered yet; does it run?";
	return "no acknowledgement came for PTL_PEER_TIMEOUT; is the other process there, and "
	       "does it run?";
}

void linger_settle(struct engine *engine, unsigned number, unsigned (*others)(void))
{
	uint64_t start = glue_now(NULL), until = start;
	struct transport_awaited awaited;
	unsigned looks = 0;

	while (engine_is_awaited(engine, start, &until)) {
		unsigned work = engine_poll(engine);

		if (work + others() == 0)
			backoff(&looks);
	}
	transport_awaited(engine_transport(engine), &awaited);
	if (awaited.left + awaited.lost != 0)
		log_warning("interface %u closes, and %" PRIu64 " message%s that it sent may not "
			    "have arrived: %s",
			number, awaited.left + awaited.lost,
			awaited.left + awaited.lost == 1 ? "" : "s", settle_end(&awaited));
}
