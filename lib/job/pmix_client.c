/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_client.c - see pmix_client.h. */
#include <job/pmix_client.h>

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <pmix.h>

#include <base/environment.h>
#include <base/futex.h>
#include <job/watch.h>

#define LIBRARY "libpmix.so.2"

/* What is used of libpmix; NULL before it is open. */
static struct {
	pmix_status_t (*init)(pmix_proc_t *, pmix_info_t[], size_t);
	pmix_status_t (*finalize)(const pmix_info_t[], size_t);
	pmix_status_t (*abort)(int, const char[], pmix_proc_t[], size_t);
	pmix_status_t (*put)(pmix_scope_t, const char[], pmix_value_t *);
	pmix_status_t (*commit)(void);
	pmix_status_t (*fence)(
		const pmix_proc_t[], size_t, const pmix_info_t[], size_t, pmix_op_cbfunc_t, void *);
	pmix_status_t (*get)(
		const pmix_proc_t *, const char[], const pmix_info_t[], size_t, pmix_value_t **);
	const char *(*error)(pmix_status_t);
} library;

static pmix_proc_t self;

/* The last fence that has ended, and how. Static, because a callback may come when nobody waits
 * any more. */
static uint32_t fence_last;
static _Atomic uint32_t fence_ended;
static pmix_status_t fence_status;

/* --- the library */

static bool library_open(struct job *job)
{
	static const struct {
		const char *name;
		void *place;
	} functions[] = {
		{"PMIx_Init", &library.init},
		{"PMIx_Finalize", &library.finalize},
		{"PMIx_Abort", &library.abort},
		{"PMIx_Put", &library.put},
		{"PMIx_Commit", &library.commit},
		{"PMIx_Fence_nb", &library.fence},
		{"PMIx_Get", &library.get},
		{"PMIx_Error_string", &library.error},
	};
	void *handle;

	/* libpmix has plugins, which the environment names. */
	if (environment_is_privileged())
		return job_wrong(job, "this rank was started by PMIx, but this program has more "
				      "rights than its user (setuid, setgid or setcap): start the "
				      "job by postern-run or mpiexec.hydra, or the program without "
				      "these rights");
	handle = dlopen(LIBRARY, RTLD_NOW | RTLD_NODELETE);
	if (!handle)
		return job_wrong(job,
			"this rank was started by PMIx, and %s cannot be opened (%s): install "
			"Debian's package libpmix2, or start the job by srun --mpi=pmi2, "
			"mpiexec.hydra or postern-run",
			LIBRARY, dlerror());
	for (unsigned i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *function = dlsym(handle, functions[i].name);

		if (!function)
			return job_wrong(job,
				"%s has no %s: install a version of libpmix from 3.1 on", LIBRARY,
				functions[i].name);
		memcpy(functions[i].place, &function, sizeof(function));
	}
	return true;
}

/* Returns false after an error. */
static bool succeeds(struct job *job, const char *function, pmix_status_t status)
{
	if (status == PMIX_SUCCESS)
		return true;
	return job_wrong(job,
		"%s failed: %s (%d): the launcher of this job has ended, or ends it; start the "
		"job again",
		function, library.error(status), (int)status);
}

/* --- P4 */

/* The process that has this rank already; 0: none of this user. */
static pid_t holder_find(const struct sockaddr_un *name, socklen_t bytes)
{
	int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct ucred holder = {0};
	socklen_t size = sizeof(holder);

	if (probe < 0)
		return 0;
	if (connect(probe, (const struct sockaddr *)name, bytes) != 0 ||
		getsockopt(probe, SOL_SOCKET, SO_PEERCRED, &holder, &size) != 0 ||
		holder.uid != geteuid())
		holder.pid = 0;
	close(probe);
	return holder.pid;
}

/* The socket that holds the rank lives as long as this process. */
static bool rank_hold(struct job *job, const char *name_space)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	static pid_t held; /* by this process, which may be a child that has no rank */
	socklen_t bytes;
	pid_t holder;
	int length, hold;

	if (held == getpid())
		return true;
	length = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "postern-rank/%u/%.80s",
		job->rank, name_space);
	bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	hold = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (hold >= 0 && bind(hold, (struct sockaddr *)&name, bytes) == 0 && listen(hold, 1) == 0) {
		held = getpid();
		return true;
	}
	close(hold);
	holder = holder_find(&name, bytes);
	return holder == 0 ||
	       job_wrong(job,
		       "process %d is rank %u of this job already, and a rank is one process: "
		       "start this program by a launcher of its own, or set PTL_JOB=alone",
		       (int)holder, job->rank);
}

/* --- the job */

static bool size_learn(struct job *job)
{
	pmix_proc_t all = self;
	pmix_value_t *value = NULL;
	bool is_size;

	all.rank = PMIX_RANK_WILDCARD;
	if (!succeeds(job, "PMIx_Get", library.get(&all, PMIX_JOB_SIZE, NULL, 0, &value)))
		return false;
	is_size = value->type == PMIX_UINT32 && value->data.uint32 > job->rank &&
		  value->data.uint32 <= JOB_SIZE_MAX;
	job->size = is_size ? value->data.uint32 : 0;
	free(value);
	return is_size || job_wrong(job, "PMIx says no size of this job: start the job by srun "
					 "--mpi=pmi2, mpiexec.hydra or postern-run");
}

bool pmix_begin(struct job *job, const char *name_space)
{
	pmix_status_t status;

	if (!library_open(job) || !rank_hold(job, name_space))
		return false;
	status = library.init(&self, NULL, 0);
	if (status != PMIX_SUCCESS)
		return job_wrong(job,
			"the PMIx server of job %.64s does not answer (%s): start the job again, "
			"or set PTL_JOB=alone if this process is in no job",
			name_space, library.error(status));
	if (strcmp(self.nspace, name_space) != 0 || self.rank != job->rank) {
		library.finalize(NULL, 0);
		return job_wrong(job,
			"PMIx says that this process is rank %u of %.64s, but PMIX_RANK and "
			"PMIX_NAMESPACE say rank %u of %.64s: start the job again, or set "
			"PTL_JOB=alone if this process is in no job",
			self.rank, self.nspace, job->rank, name_space);
	}
	if (size_learn(job))
		return true;
	library.finalize(NULL, 0);
	return false;
}

bool pmix_put(struct job *job, const char *key, const char *value)
{
	pmix_value_t data = {.type = PMIX_STRING, .data.string = strdup(value)};
	bool done = data.data.string &&
		    succeeds(job, "PMIx_Put", library.put(PMIX_GLOBAL, key, &data)) &&
		    succeeds(job, "PMIx_Commit", library.commit());

	if (!data.data.string)
		(void)job_wrong(job, "there is no memory for a value of PMIx");
	free(data.data.string);
	return done;
}

/* Called by libpmix's thread. */
static void fence_end(pmix_status_t status, void *which)
{
	if ((uint32_t)(uintptr_t)which != fence_last)
		return;
	fence_status = status;
	/* Release: pairs with the acquire of the thread that waits, which reads the status. */
	atomic_store_explicit(&fence_ended, (uint32_t)(uintptr_t)which, memory_order_release);
	futex_wake(&fence_ended, 1);
}

/* P1. */
static void fence_await(struct job *job, uint32_t before)
{
	while (atomic_load_explicit(&fence_ended, memory_order_acquire) == before) {
		uint64_t sleep = job_sleep(job);

		if (sleep != 0)
			futex_wait(&fence_ended, before, sleep);
	}
}

bool pmix_fence(struct job *job)
{
	uint32_t before = atomic_load_explicit(&fence_ended, memory_order_relaxed);
	pmix_info_t collect = {.key = PMIX_COLLECT_DATA, /* P2 */
		.value = {.type = PMIX_BOOL, .data.flag = true}};
	pmix_proc_t all = self;
	pmix_status_t status;

	all.rank = PMIX_RANK_WILDCARD;
	fence_last = before + 1;
	status = library.fence(&all, 1, &collect, 1, fence_end, (void *)(uintptr_t)fence_last);
	if (status == PMIX_OPERATION_SUCCEEDED)
		return true;
	if (!succeeds(job, "PMIx_Fence_nb", status))
		return false;
	fence_await(job, before);
	if (fence_status == PMIX_ERR_PARTIAL_SUCCESS)
		return job_wrong(job, "a rank of this job has ended, or has left it, and did not "
				      "come to this barrier");
	return succeeds(job, "PMIx_Fence_nb", fence_status);
}

bool pmix_get(struct job *job, uint32_t rank, const char *key, char *value, size_t size)
{
	pmix_proc_t owner = self;
	pmix_value_t *data = NULL;
	bool fits;

	owner.rank = rank;
	if (!succeeds(job, "PMIx_Get", library.get(&owner, key, NULL, 0, &data)))
		return false;
	fits = data->type == PMIX_STRING && data->data.string && strlen(data->data.string) < size;
	if (fits)
		snprintf(value, size, "%s", data->data.string);
	if (data->type == PMIX_STRING)
		free(data->data.string);
	free(data);
	return fits || job_wrong(job, "rank %u has told PMIx no %s that makes sense", rank, key);
}

bool pmix_end(struct job *job)
{
	return succeeds(job, "PMIx_Finalize", library.finalize(NULL, 0));
}

void pmix_abort(int code)
{
	(void)library.abort(code, "", NULL, 0);
}
