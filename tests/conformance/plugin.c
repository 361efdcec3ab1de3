/* SPDX-License-Identifier: BSD-3-Clause */
/* plugin.c - a program that loads the library as a plugin, uses it, and unloads it again, while a
 * thread that has been in it lives on and ends afterwards.
 *
 *     plugin LIBRARY
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <portals.h>

#define ROUNDS 3

static void *library;
static ptl_handle_ni_t interface;
static pthread_barrier_t inside, unloaded;

static void *function(const char *name)
{
	void *address = dlsym(library, name);

	if (!address) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return address;
}

static void check(int code, const char *call)
{
	if (code == PTL_OK)
		return;
	fprintf(stderr, "%s returns %d\n", call, code);
	exit(1);
}

static void *visit(void *unused)
{
	int (*eq_alloc)(ptl_handle_ni_t, ptl_size_t, ptl_handle_eq_t *);
	ptl_handle_eq_t queue;

	(void)unused;
	*(void **)&eq_alloc = function("PtlEQAlloc");
	check(eq_alloc(interface, 8, &queue), "PtlEQAlloc");
	pthread_barrier_wait(&inside);
	pthread_barrier_wait(&unloaded);
	return NULL;
}

static void load_use_unload(const char *path)
{
	int (*init)(int *);
	int (*ni_init)(ptl_interface_t, ptl_pid_t, ptl_ni_limits_t *, ptl_ni_limits_t *,
		ptl_handle_ni_t *);
	void (*fini)(void);
	pthread_t thread;
	int interfaces;

	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	*(void **)&init = function("PtlInit");
	*(void **)&ni_init = function("PtlNIInit");
	*(void **)&fini = function("PtlFini");
	check(init(&interfaces), "PtlInit");
	check(ni_init(PTL_IFACE_DEFAULT, 1, NULL, NULL, &interface), "PtlNIInit");
	check(pthread_create(&thread, NULL, visit, NULL), "pthread_create");
	pthread_barrier_wait(&inside);
	fini();
	check(dlclose(library), "dlclose");
	pthread_barrier_wait(&unloaded);
	pthread_join(thread, NULL);
}

int main(int count, char **words)
{
	if (count != 2) {
		fprintf(stderr, "usage: plugin LIBRARY\n");
		return 2;
	}
	pthread_barrier_init(&inside, NULL, 2);
	pthread_barrier_init(&unloaded, NULL, 2);
	for (int round = 0; round < ROUNDS; round++)
		load_use_unload(words[1]);
	return 0;
}
