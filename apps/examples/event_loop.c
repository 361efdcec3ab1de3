/* SPDX-License-Identifier: BSD-3-Clause */
/* event_loop.c - messages in a program's own event loop, beside timers, sockets and whatever else
 * has a file descriptor.
 *
 * The loop waits with epoll for a timer and for events. Each tick puts a number to this very
 * process, which adds up what comes; the program ends when each put has arrived and has been
 * acknowledged. It exits with 0 if the sum is right.
 *
 * With PTL_PROGRESS=inline no thread receives messages while the program sleeps in epoll, so no
 * descriptor can announce them. Then the loop waits in postern_eq_poll() for a short time, and
 * looks at its descriptors in between.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <portals.h>
#include <postern.h>

#define PORTAL  4
#define NUMBERS UINT64_C(1) /* match bits */
#define TICKS   20
#define TICK    1000000 /* ns */

static const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};

struct loop {
	ptl_process_id_t self;
	ptl_handle_eq_t queue;
	ptl_handle_md_t source;
	int epoll;
	int timer;
	uint64_t sent; /* puts */
	uint64_t arrived;
	uint64_t acknowledged;
	uint64_t sum;
};

static void check(int code, const char *call)
{
	if (code == PTL_OK)
		return;
	fprintf(stderr, "%s: %s\n", call, postern_error_text(code));
	exit(1);
}

/* What a call of the system returned; negative: it failed. */
static int check_system(int result, const char *call)
{
	if (result >= 0)
		return result;
	perror(call);
	exit(1);
}

/* Takes messages first, so that nothing can come too early; then can send. */
static void loop_open(struct loop *loop, ptl_handle_ni_t ni)
{
	ptl_md_t md = {.threshold = PTL_MD_THRESH_INF, .options = PTL_MD_OP_PUT};
	ptl_handle_me_t entry;

	check(PtlGetId(ni, &loop->self), "PtlGetId");
	check(PtlEQAlloc(ni, 256, &loop->queue), "PtlEQAlloc");
	md.eventq = loop->queue;
	check(PtlMEAttach(ni, PORTAL, anybody, NUMBERS, 0, PTL_RETAIN, PTL_INS_AFTER, &entry),
		"PtlMEAttach");
	check(PtlMDAttach(entry, md, PTL_RETAIN, PTL_RETAIN, NULL), "PtlMDAttach");
	md.options = 0;
	check(PtlMDBind(ni, md, &loop->source), "PtlMDBind");
}

static void loop_watch(const struct loop *loop, int descriptor)
{
	struct epoll_event wanted = {.events = EPOLLIN, .data.fd = descriptor};

	check_system(epoll_ctl(loop->epoll, EPOLL_CTL_ADD, descriptor, &wanted), "epoll_ctl");
}

static void timer_start(struct loop *loop)
{
	const struct itimerspec tick = {.it_value.tv_nsec = TICK, .it_interval.tv_nsec = TICK};

	loop->timer = check_system(
		timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "timerfd_create");
	check_system(timerfd_settime(loop->timer, 0, &tick, NULL), "timerfd_settime");
	loop_watch(loop, loop->timer);
}

static void tick(struct loop *loop)
{
	uint64_t ticks;

	if (read(loop->timer, &ticks, sizeof(ticks)) != sizeof(ticks) || loop->sent == TICKS)
		return;
	loop->sent++;
	check(PtlPut(loop->source, PTL_ACK_REQ, loop->self, PORTAL, 0, NUMBERS, 0, loop->sent),
		"PtlPut");
}

static void event_take(struct loop *loop, const ptl_event_t *event)
{
	if (event->ni_fail_type != PTL_NI_OK) {
		fprintf(stderr, "%s: %s\n", postern_event_name(event->type),
			postern_fail_text(event->ni_fail_type));
		exit(1);
	}
	if (event->type == PTL_EVENT_ACK)
		loop->acknowledged++;
	if (event->type != PTL_EVENT_PUT_END)
		return;
	loop->arrived++;
	loop->sum += event->hdr_data;
}

/* All events that there are; waits for the first one, for so many ns. The call that finds no more
 * makes the descriptor not readable. */
static void events_take(struct loop *loop, uint64_t timeout)
{
	ptl_event_t event;
	int code;

	while ((code = postern_eq_poll(&loop->queue, 1, timeout, &event, NULL)) == PTL_OK) {
		event_take(loop, &event);
		timeout = 0;
	}
	if (code != PTL_EQ_EMPTY)
		check(code, "postern_eq_poll");
}

static void loop_run(struct loop *loop, int events)
{
	struct epoll_event ready;

	while (loop->arrived < TICKS || loop->acknowledged < TICKS) {
		if (epoll_wait(loop->epoll, &ready, 1, events < 0 ? 0 : -1) == 1) {
			if (ready.data.fd == loop->timer)
				tick(loop);
			else
				events_take(loop, 0);
		}
		if (events < 0)
			events_take(loop, TICK);
	}
}

int main(void)
{
	struct loop loop = {0};
	ptl_handle_ni_t ni;
	int interfaces, events;

	check(PtlInit(&interfaces), "PtlInit");
	check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni), "PtlNIInit");
	loop_open(&loop, ni);
	loop.epoll = check_system(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
	timer_start(&loop);
	events = postern_eq_fd(loop.queue);
	if (events >= 0)
		loop_watch(&loop, events);
	else if (events != -PTL_FAIL) /* with PTL_PROGRESS=inline there is none */
		check(-events, "postern_eq_fd");
	loop_run(&loop, events);
	printf("%d numbers make %llu\n", TICKS, (unsigned long long)loop.sum);
	if (events >= 0)
		close(events);
	close(loop.timer);
	close(loop.epoll);
	PtlNIFini(ni);
	PtlFini();
	return loop.sum != TICKS * (TICKS + 1) / 2;
}
