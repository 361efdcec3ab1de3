/* SPDX-License-Identifier: BSD-3-Clause */
/* guard.c - see guard.h. */
#include <base/guard.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>
#include <sys/uio.h>
#include <ucontext.h>

#include <base/futex.h>

#define PAGE   4096 /* the smallest that there are */
#define BOUNCE 4096 /* bytes that the kernel copies at once where memory overlaps */

void guard_block_signals(sigset_t *before)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
	sigset_t all;

	sigfillset(&all);
	for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&all, faults[i]);
	pthread_sigmask(SIG_SETMASK, &all, before);
}

/* --- copying by the kernel --- */

static bool kernel_copy(void *to, const void *from, uint64_t bytes)
{
	while (bytes > 0) {
		const struct iovec local = {to, bytes};
		const struct iovec remote = {(void *)(uintptr_t)from, bytes};
		ssize_t copied = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);

		if (copied <= 0)
			return false;
		to = (char *)to + copied;
		from = (const char *)from + copied;
		bytes -= (uint64_t)copied;
	}
	return true;
}

/* The kernel reads and writes by different addresses, so it does not see that memory overlaps, and
 * may then read ahead of what it writes, in either direction: what overlaps goes through a buffer,
 * from the end whose bytes would be overwritten before they are read. */
bool guard_copy_by_kernel(void *to, const void *from, uint64_t bytes)
{
	char bounce[BOUNCE];
	bool from_end = (uintptr_t)to - (uintptr_t)from < bytes;

	if (!from_end && (uintptr_t)from - (uintptr_t)to >= bytes)
		return kernel_copy(to, from, bytes);
	for (uint64_t done = 0, part; done < bytes; done += part) {
		uint64_t at;

		part = bytes - done < BOUNCE ? bytes - done : BOUNCE;
		at = from_end ? bytes - done - part : done;
		if (!kernel_copy(bounce, (const char *)from + at, part) ||
			!kernel_copy((char *)to + at, bounce, part))
			return false;
	}
	return true;
}

#ifdef __x86_64__

/* --- copying by instructions that the handler knows --- */

/* Six functions, in one range: guard_move(), as memmove(); guard_stream(), as memcpy() past the
 * caches, by the stores that each x86-64 has; guard_look(), which reads a byte;
 * guard_touch(), which writes one as it is; guard_read(), which loads a word; and guard_swap(),
 * which exchanges one if it is *was, else writes it to *was and returns 2. They return 1; the
 * handler makes them return 0 by letting them go on at guard_fault. Nothing is on their stack, so
 * they may be left anywhere. */
bool guard_move(void *to, const void *from, uint64_t bytes) __attribute__((visibility("hidden")));
bool guard_stream(void *to, const void *from, uint64_t bytes) __attribute__((visibility("hidden")));
bool guard_look(const void *at) __attribute__((visibility("hidden")));
bool guard_touch(void *at) __attribute__((visibility("hidden")));
bool guard_read(const void *at, uint64_t *word, unsigned size)
	__attribute__((visibility("hidden")));
int guard_swap(void *at, uint64_t *was, uint64_t becomes, unsigned size)
	__attribute__((visibility("hidden")));
extern const char guard_begin[] __attribute__((visibility("hidden")));
extern const char guard_end[] __attribute__((visibility("hidden")));
extern const char guard_fault[] __attribute__((visibility("hidden")));

/* clang-format off */
#define BEGIN(name)                                                                                \
	"	.p2align 4\n"                                                                      \
	"	.hidden " #name "\n"                                                               \
	"	.globl " #name "\n"                                                                \
	"	.type " #name ", @function\n"                                                      \
	#name ":\n"                                                                                \
	"	.cfi_startproc\n"                                                                  \
	"	endbr64\n"
#define END(name)                                                                                  \
	"	.cfi_endproc\n"                                                                    \
	"	.size " #name ", . - " #name "\n"

__asm__(
	"	.pushsection .text\n"
	"	.hidden guard_begin, guard_end, guard_fault\n"
	"	.globl guard_begin, guard_end, guard_fault\n"
	"	.p2align 4\n"
	"guard_begin:\n"
	BEGIN(guard_move) /* rdi: to, rsi: from, rdx: bytes */
	"	lea -8(%rdx), %rax\n" /* 8 to 16 bytes: two words, read before they are written */
	"	cmp $8, %rax\n"
	"	ja 1f\n"
	"	mov (%rsi), %rax\n"
	"	mov -8(%rsi, %rdx), %rcx\n"
	"	mov %rax, (%rdi)\n"
	"	mov %rcx, -8(%rdi, %rdx)\n"
	"	mov $1, %eax\n"
	"	ret\n"
	"1:	mov %rdx, %rcx\n"
	"	mov %rdi, %rax\n"
	"	sub %rsi, %rax\n"
	"	cmp %rdx, %rax\n"
	"	jb 2f\n" /* from the start it would overwrite bytes that it has not read */
	"	rep movsb\n"
	"	mov $1, %eax\n"
	"	ret\n"
	"2:	lea -1(%rdi, %rdx), %rdi\n"
	"	lea -1(%rsi, %rdx), %rsi\n"
	"	std\n"
	"	rep movsb\n"
	"	cld\n"
	"	mov $1, %eax\n"
	"	ret\n"
	END(guard_move)
	BEGIN(guard_stream) /* rdi: to, rsi: from, rdx: bytes */
	"	mov %rdx, %rcx\n"
	"	shr $6, %rcx\n"
	"	jz 2f\n"
	"	.p2align 4\n"
	"1:	movdqu (%rsi), %xmm0\n"
	"	movdqu 16(%rsi), %xmm1\n"
	"	movdqu 32(%rsi), %xmm2\n"
	"	movdqu 48(%rsi), %xmm3\n"
	"	movntdq %xmm0, (%rdi)\n"
	"	movntdq %xmm1, 16(%rdi)\n"
	"	movntdq %xmm2, 32(%rdi)\n"
	"	movntdq %xmm3, 48(%rdi)\n"
	"	add $64, %rsi\n"
	"	add $64, %rdi\n"
	"	dec %rcx\n"
	"	jnz 1b\n"
	"2:	mov %rdx, %rcx\n"
	"	and $63, %ecx\n"
	"	rep movsb\n"
	"	sfence\n" /* what is stored next is seen later */
	"	mov $1, %eax\n"
	"	ret\n"
	END(guard_stream)
	BEGIN(guard_look) /* rdi: at */
	"	mov (%rdi), %al\n"
	"	mov $1, %eax\n"
	"	ret\n"
	END(guard_look)
	BEGIN(guard_touch) /* rdi: at */
	"	lock orb $0, (%rdi)\n"
	"	mov $1, %eax\n"
	"	ret\n"
	END(guard_touch)
	BEGIN(guard_read) /* rdi: at, rsi: word, edx: size */
	"	cmp $4, %edx\n"
	"	je 4f\n"
	"	ja 8f\n"
	"	cmp $1, %edx\n"
	"	je 1f\n"
	"	movzwl (%rdi), %eax\n"
	"	jmp 9f\n"
	"1:	movzbl (%rdi), %eax\n"
	"	jmp 9f\n"
	"4:	mov (%rdi), %eax\n"
	"	jmp 9f\n"
	"8:	mov (%rdi), %rax\n"
	"9:	mov %rax, (%rsi)\n"
	"	mov $1, %eax\n"
	"	ret\n"
	END(guard_read)
	BEGIN(guard_swap) /* rdi: at, rsi: was, rdx: becomes, ecx: size */
	"	mov (%rsi), %rax\n"
	"	cmp $4, %ecx\n"
	"	je 4f\n"
	"	ja 8f\n"
	"	cmp $1, %ecx\n"
	"	je 1f\n"
	"	lock cmpxchg %dx, (%rdi)\n"
	"	jmp 9f\n"
	"1:	lock cmpxchg %dl, (%rdi)\n"
	"	jmp 9f\n"
	"4:	lock cmpxchg %edx, (%rdi)\n"
	"	jmp 9f\n"
	"8:	lock cmpxchg %rdx, (%rdi)\n"
	"9:	mov %rax, (%rsi)\n"
	"	mov $2, %eax\n"
	"	mov $1, %ecx\n" /* leaves the flags of cmpxchg */
	"	cmove %ecx, %eax\n"
	"	ret\n"
	END(guard_swap)
	"guard_end:\n"
	"	.cfi_startproc\n"
	"guard_fault:\n"
	"	cld\n"
	"	xor %eax, %eax\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.popsection\n");
/* clang-format on */

/* --- the handler --- */

#define KEPT 16 /* handlers that are remembered, of each signal; a power of two */

/* What was installed each time when this handler was, in turn. A program may install its own above
 * this one, and then this one comes above that. The one between may pass a signal on to this one,
 * which has passed it on to that: so the second time it goes to what was there the time before. */
struct earlier {
	struct sigaction actions[KEPT];
	_Atomic unsigned count; /* of installations; grows under a lock */
};

static const int signals[] = {SIGSEGV, SIGBUS};
#define SIGNALS (sizeof(signals) / sizeof(signals[0]))
static struct earlier earlier[SIGNALS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* What this thread is passing on: its context, where this handler's frame is, and how often it was
 * called for it before. A handler that is called again for the same context, further down the
 * stack, is called by one that it has called. */
struct passing {
	const void *context;
	uintptr_t frame;
	unsigned depth;
};
static __attribute__((tls_model("initial-exec"))) _Thread_local struct passing passing;

/* The default action: it is done when this handler has returned, and the instruction faults again
 * or the signal, which was sent, comes again. */
static void default_take(int signal, const siginfo_t *info)
{
	const struct sigaction action = {.sa_handler = SIG_DFL};

	sigaction(signal, &action, NULL);
	if (info->si_code <= 0)
		raise(signal);
}

/* Calls a handler as the kernel would. */
static void handler_call(const struct sigaction *action, int signal, siginfo_t *info, void *context)
{
	const struct sigaction standard = {.sa_handler = SIG_DFL};
	sigset_t mask = action->sa_mask, before;

	if (action->sa_flags & (int)SA_RESETHAND)
		sigaction(signal, &standard, NULL);
	pthread_sigmask(SIG_BLOCK, &mask, &before);
	if (action->sa_flags & (int)SA_NODEFER) {
		sigemptyset(&mask);
		sigaddset(&mask, signal);
		pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
	}
	if (action->sa_flags & SA_SIGINFO)
		action->sa_sigaction(signal, info, context);
	else
		action->sa_handler(signal);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* What was there before the handler was installed for the last time, or so many times before. */
static struct sigaction action_of(const struct earlier *kept, unsigned depth)
{
	unsigned count = atomic_load_explicit(&kept->count, memory_order_acquire);

	if (depth >= count || depth >= KEPT)
		return (struct sigaction){.sa_handler = SIG_DFL};
	return kept->actions[(count - 1 - depth) % KEPT];
}

/* G1. */
static void pass_on(const struct earlier *kept, int signal, siginfo_t *info, void *context)
{
	const struct passing before = passing;
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
	bool again = before.context == context && frame < before.frame;
	unsigned depth = again ? before.depth + 1 : 0;
	const struct sigaction action = action_of(kept, depth);

	if (action.sa_flags & SA_SIGINFO ||
		(action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN)) {
		passing = (struct passing){context, frame, depth};
		handler_call(&action, signal, info, context);
		passing = before;
	} else if (action.sa_handler == SIG_DFL || info->si_code > 0) {
		default_take(signal, info);
	}
}

static void handle(int signal, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	uintptr_t at = (uintptr_t)registers[REG_RIP];

	if (info->si_code > 0 && at >= (uintptr_t)guard_begin && at < (uintptr_t)guard_end)
		registers[REG_RIP] = (greg_t)(uintptr_t)guard_fault;
	else
		pass_on(&earlier[signal == SIGBUS], signal, info, context);
}

static void handler_install(int signal, struct earlier *kept)
{
	const struct sigaction action = {
		.sa_sigaction = handle, .sa_flags = (int)(SA_SIGINFO | SA_ONSTACK)};
	unsigned count = atomic_load_explicit(&kept->count, memory_order_relaxed);
	struct sigaction now;

	if (sigaction(signal, NULL, &now) != 0 ||
		(now.sa_flags & SA_SIGINFO && now.sa_sigaction == handle))
		return;
	kept->actions[count % KEPT] = now;
	atomic_store_explicit(&kept->count, count + 1, memory_order_release);
	sigaction(signal, &action, NULL);
}

void guard_start(void)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < SIGNALS; i++)
		handler_install(signals[i], &earlier[i]);
	pthread_mutex_unlock(&lock);
}

bool guard_copy(void *to, const void *from, uint64_t bytes)
{
	return guard_move(to, from, bytes);
}

bool guard_copy_streamed(void *to, const void *from, uint64_t bytes)
{
	return guard_stream(to, from, bytes);
}

bool guard_load(const void *at, unsigned size, uint64_t *word)
{
	return guard_read(at, word, size);
}

bool guard_exchange(void *at, unsigned size, uint64_t *was, uint64_t becomes, bool *stored)
{
	int outcome = guard_swap(at, was, becomes, size);

	*stored = outcome == 1;
	return outcome != 0;
}

static bool page_probe(void *at, bool write)
{
	return write ? guard_touch(at) : guard_look(at);
}

#else

void guard_start(void)
{
}

bool guard_copy(void *to, const void *from, uint64_t bytes)
{
	return guard_copy_by_kernel(to, from, bytes);
}

bool guard_copy_streamed(void *to, const void *from, uint64_t bytes)
{
	return guard_copy_by_kernel(to, from, bytes);
}

/* No system call changes a word of any size atomically. */
#define WORD(bits)                                                                                 \
	typedef uint##bits##_t __attribute__((may_alias)) word##bits;                              \
                                                                                                   \
	static uint64_t word##bits##_load(const void *at)                                          \
	{                                                                                          \
		return __atomic_load_n((const word##bits *)at, __ATOMIC_ACQUIRE);                  \
	}                                                                                          \
                                                                                                   \
	static bool word##bits##_exchange(void *at, uint64_t *was, uint64_t becomes)               \
	{                                                                                          \
		uint##bits##_t found = (uint##bits##_t) * was;                                     \
		bool stored = __atomic_compare_exchange_n((word##bits *)at, &found,                \
			(uint##bits##_t)becomes, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE);       \
                                                                                                   \
		*was = found;                                                                      \
		return stored;                                                                     \
	}
WORD(8)
WORD(16)
WORD(32)
WORD(64)

bool guard_load(const void *at, unsigned size, uint64_t *word)
{
	*word = size == 1   ? word8_load(at)
		: size == 2 ? word16_load(at)
		: size == 4 ? word32_load(at)
			    : word64_load(at);
	return true;
}

bool guard_exchange(void *at, unsigned size, uint64_t *was, uint64_t becomes, bool *stored)
{
	*stored = size == 1   ? word8_exchange(at, was, becomes)
		  : size == 2 ? word16_exchange(at, was, becomes)
		  : size == 4 ? word32_exchange(at, was, becomes)
			      : word64_exchange(at, was, becomes);
	return true;
}

/* Of the system calls that write, this one can write what is there: the or of a word and 0. */
static bool page_touch(void *at)
{
	_Atomic uint32_t *word = (void *)((uintptr_t)at & -(uintptr_t)sizeof(*word));
	_Atomic uint32_t other = 0;

	return syscall(SYS_futex, &other, FUTEX_WAKE_OP_PRIVATE, 0, 0, word,
		       FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_LT, 0)) >= 0;
}

static bool page_probe(void *at, bool write)
{
	char byte;

	return write ? page_touch(at) : guard_copy_by_kernel(&byte, at, 1);
}

#endif

bool guard_probe(const struct map *map, uint64_t offset, uint64_t bytes, bool write)
{
	uint64_t step;

	for (uint64_t done = 0; done < bytes; done += step) {
		void *at = map_run(map, offset + done, &step);
		uint64_t to_page = PAGE - (uintptr_t)at % PAGE;

		if (!page_probe(at, write))
			return false;
		if (step > to_page)
			step = to_page;
	}
	return true;
}
