/* SPDX-License-Identifier: BSD-3-Clause */
/* owners.c - whose requests the entries of the library take: G7 of lib/gasnet/state.h. Its own
 * PtlMEAppend() is called instead of Postern's.
 *
 *     postern-run -n 2 owners
 */
#include "ranks.h"

#include <dlfcn.h>

#include <portals4.h>

uint8_t *segments[RANKS_MAX];
unsigned rank, ranks;
static unsigned appended;

int PtlMEAppend(ptl_handle_ni_t ni, ptl_pt_index_t portal, const ptl_me_t *me, ptl_list_t list,
	void *user, ptl_handle_me_t *entry)
{
	static int (*append)(ptl_handle_ni_t, ptl_pt_index_t, const ptl_me_t *, ptl_list_t, void *,
		ptl_handle_me_t *);
	ptl_uid_t uid;

	if (!append)
		*(void **)&append = dlsym(RTLD_NEXT, "PtlMEAppend");
	CHECK(append);
	CHECK(PtlGetUid(ni, &uid) == PTL_OK);
	CHECK(me->uid == uid && uid != PTL_UID_ANY);
	appended++;
	return append(ni, portal, me, list, user, entry);
}

int main(int argc, char **argv)
{
	CHECK(gasnet_init(&argc, &argv) == GASNET_OK);
	CHECK(gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0) == GASNET_OK);
	CHECK(appended > 6);
	gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
	CHECK(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS) == GASNET_OK);
	gasnet_exit(0);
}
