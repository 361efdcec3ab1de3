/* SPDX-License-Identifier: BSD-3-Clause */
/* eal.c - starts DPDK's environment abstraction layer, once, quietly, without leaving a trace in
 * the program, and only when something needs it: a device of DPDK's, PTL_SHARE, PTL_EAL_ARGS. It
 * loads every driver that there is and measures the TSC for 100 ms.
 *
 * Called under the front end's lock. rte_eal_init() runs in a thread of its own: it pins its caller
 * to a CPU and starts threads that inherit the signal mask.
 *
 * I1. EAL is never cleaned up: it cannot be started a second time in a process.
 * I2. A forked child has EAL's memory and none of its threads. It can never start EAL.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_version.h>

#include <base/environment.h>
#include <base/guard.h>
#include <base/log.h>
#include <base/remedy.h>
#include <base/settings.h>
#include <pmd-glue/clock.h>
#include <pmd-glue/descriptors.h>
#include <pmd-glue/eal.h>
#include <pmd-glue/ethdev.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/hold.h>
#include <pmd-glue/hugepages.h>
#include <pmd-glue/kinds.h>
#include <pmd-glue/listener.h>
#include <pmd-glue/pool.h>
#include <pmd-glue/share.h>

#define FILES_ENOUGH 64u /* open ones, for EAL and a port or two */
#define FILES_LEAST  16u /* of them yet to be opened, without which EAL does not run */
#define SPACE_ENOUGH                                                                               \
	(UINT64_C(8) << 30) /* bytes of address space that EAL may reserve; it uses few of them */
#define LOCKED_ENOUGH   (UINT64_C(64) << 20)
#define EAL_PREFIX      "postern"
#define SOCKET_NAME     "/dpdk_telemetry.v2:32767" /* at most: EAL numbers sockets of one prefix */
#define SOCKET_PATH_MAX ((int)sizeof(((struct sockaddr_un *)NULL)->sun_path))
#define ARGUMENTS_MAX   128
#define CALL_TIMEOUT    10 /* s */
#define REASON_MAX      256
/* EAL touches 48 bytes for each page of it; a port needs 1 MiB. */
#define MEMORY_LEAST (UINT64_C(96) << 20)
#define MEMORY_MOST  (UINT64_C(4096) << 20)

struct eal_arguments {
	int count;
	char *words[ARGUMENTS_MAX];
	char storage[ARGUMENTS_MAX][96]; /* of the words made here */
	char *added;                     /* of the words of PTL_EAL_ARGS */
	char hugetlbfs[SHARE_PATH_MAX];  /* with PTL_SHARE: the directory of EAL's memory */
	int result;
	int error;
};

struct eal_guard {
	struct descriptors descriptors; /* those that were open */
	cpu_set_t affinity;
	sigset_t signals;
	struct sigaction bus;
};

static pid_t glue_process; /* the process of glue_start(); 0 before */
static bool glue_rests;    /* glue_rest() was called since */
static pid_t eal_process;  /* the process that EAL runs in; 0 before */
static bool eal_failed;    /* it cannot be tried again */
static pthread_mutex_t reason_lock = PTHREAD_MUTEX_INITIALIZER;
/* DPDK's first complaint of the gravest level: later ones are mostly its consequences */
static char reason[REASON_MAX];
static int reason_level = (int)RTE_LOG_NOTICE; /* its log level: a lower one is graver */

bool glue_started(void)
{
	return glue_process != 0 && glue_process == getpid();
}

bool eal_started(void)
{
	return eal_process != 0 && eal_process == getpid();
}

bool glue_hugepages(void)
{
	return eal_started() && rte_eal_has_hugepages() != 0;
}

void eal_reason_clear(void)
{
	pthread_mutex_lock(&reason_lock);
	reason[0] = 0;
	reason_level = (int)RTE_LOG_NOTICE;
	pthread_mutex_unlock(&reason_lock);
}

const char *eal_reason(char *buffer, size_t size)
{
	pthread_mutex_lock(&reason_lock);
	snprintf(buffer, size, "%s", reason[0] ? reason : "DPDK gave no reason");
	pthread_mutex_unlock(&reason_lock);
	return buffer;
}

/* Every line that DPDK logs comes here: one write for each, as rte_vlog() flushes its stream. */
static ssize_t eal_hear(void *context, const char *text, size_t length)
{
	size_t end = length;
	(void)context;
	while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == '.' || text[end - 1] == ' '))
		end--;
	if (end == 0)
		return (ssize_t)length;
	pthread_mutex_lock(&reason_lock);
	if (rte_log_cur_msg_loglevel() < reason_level) {
		reason_level = rte_log_cur_msg_loglevel();
		snprintf(reason, sizeof(reason), "%.*s", (int)end, text);
		for (char *byte = reason; *byte; byte++)
			if ((unsigned char)*byte < ' ')
				*byte = ' ';
	}
	pthread_mutex_unlock(&reason_lock);
	log_debug(LOG_DPDK, "%.*s", (int)end, text);
	return (ssize_t)length;
}

static void eal_listen(void)
{
	FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = eal_hear});
	if (stream && rte_openlog_stream(stream) != 0)
		fclose(stream);
}

struct eal_guard *eal_enter(void)
{
	struct eal_guard *guard = calloc(1, sizeof(*guard));
	if (!guard)
		return NULL;
	guard_block_signals(&guard->signals);
	pthread_getaffinity_np(pthread_self(), sizeof(guard->affinity), &guard->affinity);
	sigaction(SIGBUS, NULL, &guard->bus);
	descriptors_read(&guard->descriptors);
	return guard;
}

void eal_leave(struct eal_guard *guard)
{
	if (!guard)
		return;
	descriptors_claim(&guard->descriptors);
	sigaction(SIGBUS, &guard->bus, NULL);
	pthread_setaffinity_np(pthread_self(), sizeof(guard->affinity), &guard->affinity);
	pthread_sigmask(SIG_SETMASK, &guard->signals, NULL);
	free(guard);
}

bool eal_is_pci(const char *name)
{
	unsigned domain, bus, device, function;
	int end = 0;
	if (sscanf(name, "%4x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end) == 4 &&
		!name[end])
		return true;
	end = 0;
	return sscanf(name, "%2x:%2x.%1x%n", &bus, &device, &function, &end) == 3 && !name[end];
}

/* One word of a line, into *to; returns what follows it, or NULL when a quote is not closed. */
static const char *eal_word(const char *text, char **to)
{
	char quote = 0;
	for (; *text && (quote || !isspace((unsigned char)*text)); text++) {
		if (quote && *text == quote)
			quote = 0;
		else if (!quote && (*text == '\'' || *text == '"'))
			quote = *text;
		else if (*text == '\\' && quote != '\'' && text[1])
			*(*to)++ = *++text;
		else
			*(*to)++ = *text;
	}
	*(*to)++ = 0;
	return quote ? NULL : text;
}

int eal_split(const char *text, char *storage, char **words, int count)
{
	int found = 0;
	for (;;) {
		while (isspace((unsigned char)*text))
			text++;
		if (!*text)
			return found;
		if (found == count)
			return -1;
		words[found++] = storage;
		text = eal_word(text, &storage);
		if (!text)
			return -1;
	}
}

static void __attribute__((format(printf, 2, 3)))
argument_add(struct eal_arguments *arguments, const char *format, ...)
{
	va_list list;
	char *word = arguments->storage[arguments->count];
	va_start(list, format);
	vsnprintf(word, sizeof(arguments->storage[0]), format, list);
	va_end(list);
	arguments->words[arguments->count++] = word;
}

/* In MiB: for what ports take beside their buffers, and for the buffers of those whose device wants
 * them in EAL's memory. */
static unsigned arguments_memory(void)
{
	unsigned items = setting_items(SETTING_IFACE_NAME);
	uint64_t bytes = MEMORY_LEAST;
	for (unsigned n = 0; n < items; n++) {
		const char *name = setting_item(SETTING_IFACE_NAME, n);
		uint64_t mtu = setting_number_item(SETTING_MTU, n, FRAME_DEFAULT - FRAME_HEADER);
		if (eal_is_pci(name) || strchr(name, ',') || strncmp(name, "net_", 4) == 0)
			bytes += pool_bytes(
				ETHDEV_ROOM((uint32_t)mtu + FRAME_HEADER), 2 * DESCRIPTORS);
		else if (strncmp(name, "xdp:", 4) == 0)
			bytes += pool_bytes(XDP_ROOM, XDP_HELD);
	}
	return (unsigned)((bytes < MEMORY_MOST ? bytes : MEMORY_MOST) >> 20);
}

/* The CPU that EAL takes for its own: any that the program may use. No thread runs there. */
static int arguments_cpu(void)
{
	cpu_set_t set;
	int cpu = sched_getcpu();
	if (sched_getaffinity(0, sizeof(set), &set) != 0 ||
		(cpu >= 0 && CPU_ISSET((size_t)cpu, &set)))
		return cpu < 0 ? 0 : cpu;
	for (cpu = 0; cpu < CPU_SETSIZE - 1; cpu++)
		if (CPU_ISSET((size_t)cpu, &set))
			break;
	return cpu;
}

/* EAL knows CPUs by these files alone. 0, or -1 after an error line. */
static int cpu_check(int cpu)
{
	char path[64];
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/core_id", cpu);
	if (access(path, F_OK) == 0)
		return 0;
	log_error("cannot start DPDK because there is no %s, from which DPDK reads the CPUs: mount "
		  "-t sysfs sysfs /sys, or show /sys to the container",
		path);
	return -1;
}

/* The cards: EAL resets them when it starts, so they must be this process's before. 0, or -1 after
 * an error line. */
static int arguments_devices(struct eal_arguments *arguments)
{
	unsigned items = setting_items(SETTING_IFACE_NAME);
	int before = arguments->count;
	for (unsigned n = 0; n < items && arguments->count < ARGUMENTS_MAX / 2; n++) {
		const char *name = setting_item(SETTING_IFACE_NAME, n);
		if (!eal_is_pci(name))
			continue;
		if (hold_take(name) != 0)
			return -1;
		argument_add(arguments, "-a");
		argument_add(arguments, "%s", name);
	}
	if (arguments->count == before)
		argument_add(arguments, "--no-pci");
	return 0;
}

void eal_runtime_directory(char *path, size_t size)
{
	size_t length;
	if (getuid() == 0)
		snprintf(path, size, "/var/run");
	else if (!environment_runtime(path, size))
		snprintf(path, size, "/tmp");
	length = strlen(path);
	snprintf(path + length, size - length, "/dpdk");
}

bool eal_directory_make(const char *path)
{
	struct stat status;
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return false;
	if (lstat(path, &status) != 0)
		return false;
	if (S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
		(status.st_mode & (S_IWGRP | S_IWOTH)) == 0)
		return true;
	errno = EPERM;
	return false;
}

/* DPDK's own directory for the processes of a prefix. Can files be made there? If they cannot,
 * EAL does not start, and cannot be started again. The directory may belong to another user, who
 * could lead DPDK's files and its socket elsewhere, or to a session that is over. */
static bool prefix_directory(const char *prefix, char *own, size_t size)
{
	char directory[PATH_MAX];
	eal_runtime_directory(directory, sizeof(directory));
	if (snprintf(own, size, "%s/%s", directory, prefix) + (int)sizeof(SOCKET_NAME) >
		SOCKET_PATH_MAX)
		return false;
	return eal_directory_make(directory) && eal_directory_make(own) &&
	       access(own, R_OK | W_OK | X_OK) == 0;
}

/* The directory of telemetry's socket, if there is to be one. The user of a program with more
 * rights than his could exchange the directory meanwhile. */
static bool telemetry_directory(const char *prefix, char *own, size_t size)
{
	return setting_is(SETTING_TELEMETRY, "on") && !environment_is_privileged() &&
	       prefix_directory(prefix, own, size);
}

static void telemetry_missing(void)
{
	if (environment_is_privileged())
		log_info("this process does not answer dpdk-telemetry.py because it has more "
			 "rights than its user");
	else if (setting_is(SETTING_TELEMETRY, "on"))
		log_info("this process does not answer dpdk-telemetry.py because its socket cannot "
			 "be made in DPDK's "
			 "runtime directory: set XDG_RUNTIME_DIR to a directory of your own");
}

/* While EAL does not run. */
static void telemetry_begin(void)
{
	char own[PATH_MAX];
	if (!telemetry_directory(EAL_PREFIX, own, sizeof(own)) || !listener_begin(own))
		telemetry_missing();
}

static void arguments_telemetry(struct eal_arguments *arguments)
{
	/* All processes of a user have the same prefix, so that tools find them under one name.
	 * Without a shared configuration they share nothing else. With PTL_SHARE a process has a
	 * prefix of its own. */
	const char *prefix = share_wanted() ? setting_text(SETTING_SHARE) : EAL_PREFIX;
	char own[PATH_MAX];
	argument_add(arguments, "--file-prefix=%s", prefix);
	if (!telemetry_directory(prefix, own, sizeof(own)))
		telemetry_missing();
	else if (listener_all_accept(own))
		return;
	argument_add(arguments, "--no-telemetry");
}

/* Adds the arguments for EAL's memory. Returns 0, or -1 after an error line. */
static int arguments_pages(struct eal_arguments *arguments)
{
	char own[PATH_MAX] = "";
	if (share_wanted()) {
		if (share_check(arguments->hugetlbfs, sizeof(arguments->hugetlbfs)) != 0)
			return -1;
		argument_add(arguments, "--huge-dir=%s", arguments->hugetlbfs);
		if (!prefix_directory(setting_text(SETTING_SHARE), own, sizeof(own))) {
			log_error("PTL_SHARE=%s needs a directory of this user's for DPDK's files, "
				  "and %s "
				  "cannot be made or may be written to by others: set "
				  "XDG_RUNTIME_DIR to "
				  "a directory of your own",
				setting_text(SETTING_SHARE), own);
			return -1;
		}
	} else if (hugepages_usable(HUGEPAGES_LEAST)) {
		argument_add(arguments, "--in-memory");
		argument_add(arguments, "--single-file-segments");
	} else {
		argument_add(arguments, "--no-huge");
		argument_add(arguments, "--no-shconf");
		argument_add(arguments, "-m");
		argument_add(arguments, "%u", arguments_memory());
	}
	return 0;
}

static int arguments_make(struct eal_arguments *arguments)
{
	const char *added = setting_text(SETTING_EAL_ARGS);
	int words, cpu = arguments_cpu();
	if (cpu_check(cpu) != 0)
		return -1;
	arguments->count = 0;
	argument_add(arguments, "postern");
	argument_add(arguments, "--lcores=0@%d", cpu);
	if (arguments_devices(arguments) != 0 || arguments_pages(arguments) != 0)
		return -1;
	arguments_telemetry(arguments);
	free(arguments->added);
	arguments->added = malloc(strlen(added) + 1);
	if (!arguments->added) {
		log_error("cannot start DPDK: out of memory: %s", remedy_for_memory());
		return -1;
	}
	words = eal_split(added, arguments->added, arguments->words + arguments->count,
		ARGUMENTS_MAX - 1 - arguments->count);
	if (words < 0) {
		log_error("PTL_EAL_ARGS='%s' has an open quote or too many words: write it as in a "
			  "shell",
			added);
		return -1;
	}
	arguments->count += words;
	return 0;
}

static _Thread_local bool eal_thread; /* this thread is EAL's */

/* EAL's thread prints its usage when it refuses an argument: that text is dropped. The output of
 * all other threads goes to its destination. */
static ssize_t output_sift(void *output, const char *text, size_t length)
{
	return eal_thread ? (ssize_t)length : (ssize_t)fwrite(text, 1, length, output);
}

static void *eal_run(void *context)
{
	struct eal_arguments *arguments = context;
	eal_thread = true;
	arguments->result = rte_eal_init(arguments->count, arguments->words);
	arguments->error = rte_errno;
	return NULL;
}

/* Is a limit of the process too low? Then it is written in the units of ulimit. */
static bool limit_below(int resource, uint64_t least, uint64_t unit, uint64_t *limit)
{
	struct rlimit now;
	if (getrlimit((__rlimit_resource_t)resource, &now) != 0 || now.rlim_cur == RLIM_INFINITY ||
		now.rlim_cur >= least)
		return false;
	*limit = now.rlim_cur / unit;
	return true;
}

void eal_thread_remedy(char *remedy, size_t size)
{
	const char *space = remedy_for(ENOMEM, NULL);
	uint64_t limit;
	/* Root's are not counted. */
	if (space)
		snprintf(remedy, size, "%s", space);
	else if (getuid() != 0 && limit_below(RLIMIT_NPROC, RLIM_INFINITY, 1, &limit))
		snprintf(remedy, size,
			"this user may have %" PRIu64
			" processes and threads, a container perhaps fewer: end some, or raise the "
			"limit by ulimit -u",
			limit);
	else
		snprintf(remedy, size,
			"the system or its container allows no more processes and threads: end "
			"some, or raise the container's limit (pids.max)");
}

/* Runs rte_eal_init() in a thread with all signals blocked and puts back the handlers that it
 * changed. */
static int eal_run_apart(struct eal_arguments *arguments)
{
	struct sigaction before[NSIG];
	pthread_t thread;
	struct eal_guard *guard = eal_enter();
	FILE *output = stdout;
	FILE *sieve = NULL; /* never closed: another thread may still be about to print to it */
	char remedy[REASON_MAX];
	int error;
	for (int signal = 1; signal < NSIG; signal++)
		sigaction(signal, NULL, &before[signal]);
	/* EAL refuses none of the arguments that are made here, so the user's are to blame. */
	if (setting_text(SETTING_EAL_ARGS)[0])
		sieve = fopencookie(output, "w", (cookie_io_functions_t){.write = output_sift});
	if (sieve && setvbuf(sieve, NULL, _IONBF, 0) == 0)
		stdout = sieve;
	error = guard ? pthread_create(&thread, NULL, eal_run, arguments) : ENOMEM;
	if (error == 0)
		pthread_join(thread, NULL);
	stdout = output;
	if (error == 0 && arguments->result >= 0)
		descriptors_claim_interrupts(&guard->descriptors);
	for (int signal = 1; signal < NSIG; signal++) {
		struct sigaction after;
		if (sigaction(signal, NULL, &after) == 0 &&
			after.sa_sigaction != before[signal].sa_sigaction)
			sigaction(signal, &before[signal], NULL);
	}
	eal_leave(guard);
	if (error == 0)
		return 0;
	eal_thread_remedy(remedy, sizeof(remedy));
	log_error("cannot start DPDK because no thread can be started (%s): %s", strerror(error),
		remedy);
	return -1;
}

/* Does a device of this program read memory by itself, so that it is locked? */
static bool eal_locks_memory(void)
{
	for (unsigned n = 0; n < setting_items(SETTING_IFACE_NAME); n++)
		if (eal_is_pci(setting_item(SETTING_IFACE_NAME, n)))
			return true;
	return false;
}

/* What to do about a start that failed, as DPDK says why: limits of the process are the usual
 * cause. */
static void eal_remedy(const char *why, char *remedy, size_t size)
{
	uint64_t limit;
	if (strstr(why, "thread"))
		eal_thread_remedy(remedy, size);
	else if (limit_below(RLIMIT_NOFILE, FILES_ENOUGH, 1, &limit))
		snprintf(remedy, size,
			"this process may have %" PRIu64
			" files open: raise the limit by ulimit -n %u",
			limit, FILES_ENOUGH);
	else if (limit_below(RLIMIT_AS, SPACE_ENOUGH, 1024, &limit))
		snprintf(remedy, size,
			"this process may have %" PRIu64
			" KiB of address space: raise the limit by ulimit -v unlimited",
			limit);
	else if (eal_locks_memory() && limit_below(RLIMIT_MEMLOCK, LOCKED_ENOUGH, 1024, &limit))
		snprintf(remedy, size,
			"this process may lock %" PRIu64
			" KiB of memory: raise the limit by ulimit -l unlimited",
			limit);
	else
		snprintf(remedy, size, "set PTL_DEBUG=dpdk to see all that it says");
}

/* Files that are larger than the process may write end it by a signal, and shared memory counts as
 * one. */
static int file_limit_check(void)
{
	uint64_t limit;
	if (!limit_below(RLIMIT_FSIZE, (uint64_t)arguments_memory() << 20, 1024, &limit))
		return 0;
	log_error("cannot start DPDK because this process may write files of %" PRIu64
		  " KiB only, and its memory of %u MiB counts as one: raise the limit by ulimit -f "
		  "unlimited",
		limit, arguments_memory());
	return -1;
}

/* DPDK's interrupt thread opens its list of descriptors time and again, and ends the process when
 * it cannot. */
static int files_check(void)
{
	int files[FILES_LEAST];
	unsigned count = 0;
	int error = 0;
	while (count < FILES_LEAST && (files[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		count++;
	if (count < FILES_LEAST)
		error = errno;
	for (unsigned n = 0; n < count; n++)
		close(files[n]);
	if (error != EMFILE && error != ENFILE)
		return 0;
	log_error(
		"cannot start DPDK (%s): it needs %u more open files: raise the limit by ulimit -n "
		"%u, or close some",
		strerror(error), FILES_LEAST, FILES_ENOUGH);
	return -1;
}

/* EAL ends the program when it is asked for help. */
static int help_check(const struct eal_arguments *arguments)
{
	for (int n = 0; n < arguments->count; n++) {
		const char *word = arguments->words[n];
		size_t length = strlen(word);
		if (strcmp(word, "-h") != 0 &&
			(length < strlen("--he") || strncmp("--help", word, length) != 0))
			continue;
		log_error("PTL_EAL_ARGS contains %s, with which DPDK would end the program: remove "
			  "it; dpdk-testpmd --help lists DPDK's options",
			word);
		return -1;
	}
	return 0;
}

static int eal_start(struct eal_arguments *arguments)
{
	char why[REASON_MAX], remedy[REASON_MAX];
	if (file_limit_check() != 0 || files_check() != 0 || arguments_make(arguments) != 0 ||
		help_check(arguments) != 0)
		return -1;
	eal_listen();
	eal_reason_clear();
	for (int n = 0; n < arguments->count; n++)
		log_debug(LOG_DPDK, "EAL argument %d: %s", n, arguments->words[n]);
	if (eal_run_apart(arguments) != 0)
		return -1;
	if (arguments->result >= 0 && share_wanted())
		return share_begin(arguments->hugetlbfs);
	if (arguments->result >= 0 || arguments->error == EALREADY)
		return 0;
	eal_failed = true;
	eal_reason(why, sizeof(why));
	eal_remedy(why, remedy, sizeof(remedy));
	if (setting_text(SETTING_EAL_ARGS)[0])
		log_error("cannot start DPDK with PTL_EAL_ARGS='%s' (%s): check or unset "
			  "PTL_EAL_ARGS",
			setting_text(SETTING_EAL_ARGS), why);
	else if (share_wanted())
		log_error("cannot start DPDK with PTL_SHARE=%s (%s): choose a name that no other "
			  "process has",
			setting_text(SETTING_SHARE), why);
	else
		log_error("cannot start DPDK (%s): %s", why, remedy);
	return -1;
}

int eal_need(void)
{
	static struct eal_arguments arguments; /* EAL may keep pointers into it */
	if (eal_started())
		return 0;
	if (eal_failed) {
		log_error("DPDK failed to start earlier in this process: correct the cause and "
			  "start the program again");
		return -1;
	}
	/* From here on DPDK answers instead. */
	listener_end();
	/* An EAL that the program has started itself is used as it is. */
	if (rte_lcore_count() == 0 && eal_start(&arguments) != 0) {
		if (glue_started())
			telemetry_begin();
		return -1;
	}
	eal_process = getpid();
	log_debug(LOG_DPDK, "%s runs with %s", rte_version(),
		rte_eal_has_hugepages() ? "hugepages" : "ordinary pages");
	return 0;
}

struct call {
	void (*function)(void *context);
	void *context;
	sem_t done;
};

static void call_run(void *argument)
{
	struct call *call = argument;
	call->function(call->context);
	sem_post(&call->done);
}

void eal_call(void (*function)(void *context), void *context)
{
	struct call call = {.function = function, .context = context};
	struct timespec end;
	int result;
	sem_init(&call.done, 0, 0);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += CALL_TIMEOUT;
	result = rte_eal_alarm_set(1, call_run, &call);
	if (result == 0) {
		do
			result = sem_timedwait(&call.done, &end);
		while (result != 0 && errno == EINTR);
		/* A call that has begun is waited for. */
		if (result != 0 && rte_eal_alarm_cancel(call_run, &call) == 0)
			result = 0;
	}
	if (result != 0)
		function(context);
	sem_destroy(&call.done);
}

/* Does EAL run already, or is it wanted for itself? */
static bool eal_wanted(void)
{
	return rte_lcore_count() != 0 || share_wanted() || setting_text(SETTING_EAL_ARGS)[0];
}

void glue_rest(void)
{
	if (!glue_started() || eal_started())
		return;
	listener_end();
	glue_rests = true;
}

int glue_start(void)
{
	if (glue_process != 0 && glue_process != getpid()) {
		log_error("this process was forked from one that had started Postern: call PtlInit "
			  "only in one of them, "
			  "or exec a program in the child");
		return -1;
	}
	if (glue_process != 0) {
		if (!eal_started() && glue_rests)
			telemetry_begin();
		glue_rests = false;
		return 0;
	}
	/* First: secondary processes have DPDK's operations of pools under the same numbers. */
	if (eal_wanted() && eal_need() != 0)
		return -1;
	clock_begin();
	pool_prepare();
	glue_process = getpid();
	if (!eal_started())
		telemetry_begin();
	return 0;
}
