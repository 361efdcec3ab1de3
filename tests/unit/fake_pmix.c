/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_pmix.c - a libpmix.so.2 for test_pmix.c, which does what FAKE_PMIX says, a word. It is rank
 * 1 of 3, in namespace "fake"; each rank has told its address, 100 + rank : 7. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pmix.h>

static bool told(const char *word)
{
	const char *text = getenv("FAKE_PMIX");

	return text && strcmp(text, word) == 0;
}

pmix_status_t PMIx_Init(pmix_proc_t *proc, pmix_info_t info[], size_t count)
{
	(void)info;
	(void)count;
	if (told("unreach"))
		return PMIX_ERR_UNREACH;
	snprintf(proc->nspace, sizeof(proc->nspace), "%s", told("other-job") ? "other" : "fake");
	proc->rank = told("other-rank") ? 0 : 1;
	return PMIX_SUCCESS;
}

pmix_status_t PMIx_Finalize(const pmix_info_t info[], size_t count)
{
	(void)info;
	(void)count;
	return told("finalize") ? PMIX_ERR_UNREACH : PMIX_SUCCESS;
}

pmix_status_t PMIx_Abort(int status, const char message[], pmix_proc_t processes[], size_t count)
{
	(void)message;
	(void)processes;
	(void)count;
	_exit(status);
}

pmix_status_t PMIx_Put(pmix_scope_t scope, const char key[], pmix_value_t *value)
{
	if (scope != PMIX_GLOBAL || strcmp(key, "postern") != 0 || value->type != PMIX_STRING ||
		strncmp(value->data.string, "500100006500000007000000", 24) != 0)
		return PMIX_ERR_BAD_PARAM;
	return PMIX_SUCCESS;
}

pmix_status_t PMIx_Commit(void)
{
	return PMIX_SUCCESS;
}

struct callback {
	pmix_op_cbfunc_t function;
	void *data;
};

static void *call_late(void *context)
{
	struct callback *callback = context;

	usleep(20000);
	callback->function(
		told("fence") ? PMIX_ERR_LOST_CONNECTION_TO_SERVER : PMIX_SUCCESS, callback->data);
	free(callback);
	return NULL;
}

pmix_status_t PMIx_Fence_nb(const pmix_proc_t processes[], size_t count, const pmix_info_t info[],
	size_t infos, pmix_op_cbfunc_t function, void *data)
{
	struct callback *callback = malloc(sizeof(*callback));
	pthread_t thread;

	if (count != 1 || processes[0].rank != PMIX_RANK_WILDCARD || infos != 1 ||
		strcmp(info[0].key, PMIX_COLLECT_DATA) != 0 || !info[0].value.data.flag) {
		free(callback);
		return PMIX_ERR_BAD_PARAM;
	}
	if (told("at-once")) {
		free(callback);
		return PMIX_OPERATION_SUCCEEDED;
	}
	*callback = (struct callback){function, data};
	pthread_create(&thread, NULL, call_late, callback);
	pthread_detach(thread);
	return PMIX_SUCCESS;
}

pmix_status_t PMIx_Get(const pmix_proc_t *process, const char key[], const pmix_info_t info[],
	size_t count, pmix_value_t **value)
{
	char text[128];

	(void)info;
	(void)count;
	if (told("not-found"))
		return PMIX_ERR_NOT_FOUND;
	*value = calloc(1, sizeof(**value));
	if (strcmp(key, PMIX_JOB_SIZE) == 0 && process->rank == PMIX_RANK_WILDCARD) {
		(*value)->type = PMIX_UINT32;
		(*value)->data.uint32 = told("size") ? 1 : 3;
		return PMIX_SUCCESS;
	}
	if (told("nonsense"))
		snprintf(text, sizeof(text), "here");
	else
		snprintf(text, sizeof(text), "5001%02x00%02x00000007000000%056d",
			told("other-network") ? 2 : 0, 100 + process->rank, 0);
	(*value)->type = PMIX_STRING;
	(*value)->data.string = strdup(text);
	return PMIX_SUCCESS;
}

const char *PMIx_Error_string(pmix_status_t status)
{
	return status == PMIX_ERR_UNREACH ? "UNREACHABLE" : "SOMETHING";
}
