/* SPDX-License-Identifier: BSD-3-Clause */
/* recording.c - starting and stopping a capture of an open interface.
 *
 * The file is opened and finished while the interface is being driven; only the moment in which the
 * port begins or ceases to be captured is one in which nobody drives it.
 */
#include <postern.h>

#include <base/log.h>
#include <host/interface.h>
#include <host/library.h>
#include <pmd-glue/glue.h>

/* The library's lock is held. */
static void capture_end(struct interface *interface)
{
	struct capture *capture = capture_find(interface->port);

	if (!capture)
		return;
	interface_pause(interface);
	capture_detach(capture);
	interface_resume(interface);
	library_glue_lock();
	capture_finish(capture);
	library_glue_unlock();
}

/* The library's lock is held. */
static int capture_open(struct interface *interface, const char *file, unsigned snaplen)
{
	struct capture *capture = capture_find(interface->port);

	if (capture && capture_ended(capture))
		capture_end(interface);
	library_glue_lock();
	capture = capture_start(interface->port, (unsigned)(interface - interfaces), file, snaplen);
	library_glue_unlock();
	if (!capture)
		return PTL_FAIL;
	interface_pause(interface);
	capture_attach(capture);
	interface_resume(interface);
	return PTL_OK;
}

int postern_capture_start(ptl_handle_ni_t handle, const char *file, unsigned snaplen)
{
	struct interface *interface;
	int code = PTL_INV_NI;

	if (!library_is_open())
		return PTL_NOINIT;
	if (address_is_bad(file, 1, 1))
		return PTL_SEGV;
	log_clear_error();
	library_lock();
	interface = interface_of(handle);
	if (interface)
		code = capture_open(interface, file, snaplen);
	library_unlock();
	return code;
}

int postern_capture_stop(ptl_handle_ni_t handle)
{
	struct interface *interface;

	if (!library_is_open())
		return PTL_NOINIT;
	library_lock();
	interface = interface_of(handle);
	if (interface)
		capture_end(interface);
	library_unlock();
	return interface ? PTL_OK : PTL_INV_NI;
}
