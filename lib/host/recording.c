/* SPDX-License-Identifier: BSD-3-Clause */
/* recording.c - see recording.h.
 *
 * The file is opened and finished while the interface is being driven; only the moment in which the
 * port begins or ceases to be captured is one in which nobody drives it.
 */
#include <host/recording.h>

#include <base/log.h>
#include <host/interface.h>
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
static enum answer capture_open(struct interface *interface, const char *file, unsigned snaplen)
{
	struct capture *capture = capture_find(interface->port);

	if (capture && capture_ended(capture))
		capture_end(interface);
	library_glue_lock();
	capture = capture_start(interface->port, (unsigned)(interface - interfaces), file, snaplen);
	library_glue_unlock();
	if (!capture)
		return ANSWER_FAILED;
	interface_pause(interface);
	capture_attach(capture);
	interface_resume(interface);
	return ANSWER_OK;
}

enum answer recording_start(
	const struct front *front, uint64_t handle, const char *file, unsigned snaplen)
{
	struct interface *interface;
	enum answer answer = ANSWER_GONE;

	log_clear_error();
	library_lock();
	interface = interface_of(front, handle);
	if (interface)
		answer = capture_open(interface, file, snaplen);
	library_unlock();
	return answer;
}

enum answer recording_stop(const struct front *front, uint64_t handle)
{
	struct interface *interface;

	library_lock();
	interface = interface_of(front, handle);
	if (interface)
		capture_end(interface);
	library_unlock();
	return interface ? ANSWER_OK : ANSWER_GONE;
}
