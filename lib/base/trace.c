/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.c - see trace.h. */
#include <base/timespec.h>
#include <base/trace.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <base/epoch.h>
#include <base/report.h>

/* how long a record is drawn at most: it is a moment, but must be seen and pointed at */
#define MARK_US 0.1

/* The TSC and the time at one moment. */
struct moment {
	uint64_t ticks;
	uint64_t time; /* ns */
};

struct trace {
	uint8_t *memory; /* of all tracks; NULL: there has been no trace */
	size_t track_bytes;
	uint32_t tracks;
	_Atomic uint32_t taken;
	struct moment begin;
	struct moment end;
};

/* A record with where it was made. */
struct mark {
	struct trace_record record;
	uint32_t track;
};

_Atomic bool trace_on;
_Thread_local struct trace_track *trace_self __attribute__((tls_model("initial-exec")));
uint64_t trace_mask;

static struct trace all;

static const struct {
	const char *name;
	const char *number; /* what the length is */
} points[TRACE_POINTS] = {
	[TRACE_CALL] = {"call", "bytes"},
	[TRACE_COMMAND] = {"command", "bytes"},
	[TRACE_MATCH] = {"match", "bytes"},
	[TRACE_PLACE] = {"place", "bytes"},
	[TRACE_EVENT] = {"event", "bytes"},
	[TRACE_ACKNOWLEDGED] = {"acknowledged", "bytes"},
	[TRACE_ACK] = {"ack", "bytes"},
	[TRACE_TAKEN] = {"taken", "bytes"},
	[TRACE_ARRIVED] = {"arrived", "bytes"},
	[TRACE_DONE] = {"done", "bytes"},
	[TRACE_ATOMIC] = {"atomic", "bytes"},
	[TRACE_TRIGGER] = {"trigger", "threshold"},
	[TRACE_COUNT] = {"count", "sum"},
	[TRACE_WAKE] = {"wake", "sum"},
	[TRACE_SEARCH] = {"search", "found"},
};

static struct moment moment_now(void)
{
	const uint64_t time = time_monotonic();

	return (struct moment){trace_now(), time};
}

int trace_start(uint32_t tracks, uint32_t records)
{
	size_t bytes = (sizeof(struct trace_track) + records * sizeof(struct trace_record) + 63) &
		       ~(size_t)63;
	void *memory;

	if (all.memory)
		return -1;
	/* Now, so that no page is missing when a record is made. */
	memory = mmap(NULL, bytes * tracks, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (memory == MAP_FAILED)
		return -1;
	all.memory = memory;
	all.track_bytes = bytes;
	all.tracks = tracks;
	all.begin = moment_now();
	trace_mask = records - 1;
	atomic_store_explicit(&trace_on, true, memory_order_release);
	epoch_end();
	return 0;
}

void trace_stop(void)
{
	atomic_store_explicit(&trace_on, false, memory_order_relaxed);
	all.end = moment_now();
}

static struct trace_track *track_at(uint32_t index)
{
	return (struct trace_track *)(void *)(all.memory + index * all.track_bytes);
}

static uint32_t tracks_taken(void)
{
	uint32_t taken = atomic_load_explicit(&all.taken, memory_order_acquire);

	return taken < all.tracks ? taken : all.tracks;
}

struct trace_track *trace_track_take(void)
{
	uint32_t index;

	atomic_thread_fence(memory_order_acquire); /* pairs with trace_start()'s release */
	index = atomic_fetch_add_explicit(&all.taken, 1, memory_order_acq_rel);
	if (index >= all.tracks) {
		atomic_store_explicit(&all.taken, all.tracks, memory_order_relaxed);
		return NULL;
	}
	trace_self = track_at(index);
	if (pthread_getname_np(pthread_self(), trace_self->name, sizeof(trace_self->name)) != 0)
		trace_self->name[0] = '\0';
	return trace_self;
}

static uint64_t track_kept(const struct trace_track *track)
{
	return track->count < trace_mask + 1 ? track->count : trace_mask + 1;
}

void trace_count(uint64_t *made, uint64_t *kept)
{
	*made = 0;
	*kept = 0;
	for (uint32_t i = 0; i < tracks_taken(); i++) {
		*made += track_at(i)->count;
		*kept += track_kept(track_at(i));
	}
}

/* --- the file --- */

/* Microseconds since the beginning. */
static double mark_us(const struct mark *mark)
{
	double ticks = (double)(all.end.ticks - all.begin.ticks);

	return (double)(mark->record.time - all.begin.ticks) *
	       ((double)(all.end.time - all.begin.time) / (ticks > 0 ? ticks : 1)) * 1e-3;
}

/* All records, track by track, each in the order of its time; NULL: no memory. */
static struct mark *marks_collect(uint64_t count)
{
	struct mark *marks = malloc((count ? count : 1) * sizeof(*marks));
	uint64_t at = 0;

	for (uint32_t i = 0; marks && i < tracks_taken(); i++) {
		const struct trace_track *track = track_at(i);

		for (uint64_t n = track->count - track_kept(track); n < track->count; n++)
			marks[at++] = (struct mark){track->records[n & trace_mask], i};
	}
	return marks;
}

static int compare_lives(const void *left, const void *right)
{
	const struct trace_record *a = &((const struct mark *)left)->record;
	const struct trace_record *b = &((const struct mark *)right)->record;

	if (a->message != b->message)
		return a->message < b->message ? -1 : 1;
	return a->time < b->time ? -1 : a->time > b->time;
}

/* A program may have given its threads any names. */
static void name_write(FILE *file, uint32_t index)
{
	char text[16 * sizeof(((struct trace_track *)NULL)->name)];
	struct report_json json;

	report_json_init(&json, text, sizeof(text));
	report_object(&json.report, NULL);
	report_text(&json.report, "ph", "M");
	report_text(&json.report, "name", "thread_name");
	report_number(&json.report, "pid", 1);
	report_number(&json.report, "tid", index + 1);
	report_object(&json.report, "args");
	report_format(&json.report, "name", "%s %u", track_at(index)->name, index + 1);
	report_close(&json.report);
	report_close(&json.report);
	report_json_end(&json);
	fprintf(file, "%s,\n", text);
}

/* The rows of the threads. */
static void rows_write(FILE *file, const struct mark *marks, uint64_t count)
{
	for (uint64_t n = 0; n < count; n++) {
		const struct mark *mark = &marks[n];
		double at = mark_us(mark), length = MARK_US;

		if (n + 1 < count && mark[1].track == mark->track &&
			mark_us(mark + 1) - at < length)
			length = mark_us(mark + 1) - at;
		fprintf(file,
			"{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"core\",\"pid\":1,\"tid\":%u,"
			"\"ts\":%.3f,"
			"\"dur\":%.3f,\"args\":{\"interface\":%u,\"message\":\"%016" PRIx64
			"\",\"%s\":%" PRIu64 "}},\n",
			points[mark->record.point].name, mark->track + 1, at, length,
			mark->record.interface, mark->record.message,
			points[mark->record.point].number, mark->record.length);
	}
}

/* One step of a message's bar ("b" begins it, "n" is in it, "e" ends it), and of the arrow from
 * thread to thread (s, t, f). */
static void step_write(FILE *file, const struct mark *mark, char bar, char arrow)
{
	double at = mark_us(mark);

	fprintf(file,
		"{\"ph\":\"%c\",\"name\":\"%s\",\"cat\":\"message\",\"id\":\"%016" PRIx64
		"\",\"pid\":1,\"tid\":%u,\"ts\":%.3f},\n"
		"{\"ph\":\"%c\",\"name\":\"message\",\"cat\":\"way\",\"bp\":\"e\",\"id\":\"%"
		"016" PRIx64 "\",\"pid\":1,\"tid\":%u,\"ts\":%.3f},\n",
		bar, bar == 'n' ? points[mark->record.point].name : "message", mark->record.message,
		mark->track + 1, at, arrow, mark->record.message, mark->track + 1, at);
}

/* marks: by message. Messages of one record have no bar, nor have those without a name. */
static void lives_write(FILE *file, const struct mark *marks, uint64_t count)
{
	for (uint64_t first = 0, next; first < count; first = next) {
		next = first + 1;
		while (next < count && marks[next].record.message == marks[first].record.message)
			next++;
		if (marks[first].record.message == 0 || next - first < 2)
			continue;
		step_write(file, &marks[first], 'b', 's');
		for (uint64_t n = first + 1; n + 1 < next; n++)
			step_write(file, &marks[n], 'n', 't');
		step_write(file, &marks[next - 1], 'e', 'f');
	}
}

bool trace_write(FILE *file)
{
	uint64_t made, kept;
	struct mark *marks;

	trace_count(&made, &kept);
	marks = marks_collect(kept);
	if (!marks) {
		errno = ENOMEM;
		return false;
	}
	fprintf(file, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
	for (uint32_t i = 0; i < tracks_taken(); i++)
		name_write(file, i);
	rows_write(file, marks, kept);
	qsort(marks, kept, sizeof(*marks), compare_lives);
	lives_write(file, marks, kept);
	fprintf(file, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":"
		      "\"Postern\"}}\n]}\n");
	free(marks);
	return fflush(file) == 0 && !ferror(file);
}
