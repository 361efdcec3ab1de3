/* SPDX-License-Identifier: BSD-3-Clause */
/* gasnet.h - GASNet-1, specification 1.8: active messages, puts and gets between the
 * ranks of a job.
 *
 * The program defines GASNET_SEQ, GASNET_PAR or GASNET_PARSYNC before the include, the same in
 * every file, and links with the library of that name: pkg-config gasnet-postern-seq, -par or
 * -parsync. gasnet(7) has the manual.
 */
#ifndef _INCLUDED_GASNET_H
#define _INCLUDED_GASNET_H

#if defined(GASNET_SEQ) + defined(GASNET_PAR) + defined(GASNET_PARSYNC) != 1
#error "define one of GASNET_SEQ, GASNET_PAR and GASNET_PARSYNC before the include of gasnet.h"
#endif
#if defined(GASNET_SEQ)
#undef GASNET_SEQ
#define GASNET_SEQ              1
#define GASNET_POSTERN_MODE     seq
#define GASNET_POSTERN_MODE_STR "SEQ"
#elif defined(GASNET_PAR)
#undef GASNET_PAR
#define GASNET_PAR              1
#define GASNET_POSTERN_MODE     par
#define GASNET_POSTERN_MODE_STR "PAR"
#else
#undef GASNET_PARSYNC
#define GASNET_PARSYNC          1
#define GASNET_POSTERN_MODE     parsync
#define GASNET_POSTERN_MODE_STR "PARSYNC"
#endif

#if defined(GASNET_SEGMENT_LARGE) + defined(GASNET_SEGMENT_EVERYTHING) +                           \
		defined(GASNET_SEGMENT_FAST) >                                                     \
	1
#error "define GASNET_SEGMENT_FAST, GASNET_SEGMENT_LARGE or GASNET_SEGMENT_EVERYTHING, or none"
#endif
#if defined(GASNET_SEGMENT_EVERYTHING)
#undef GASNET_SEGMENT_EVERYTHING
#define GASNET_SEGMENT_EVERYTHING  1
#define GASNET_POSTERN_SEGMENT     2
#define GASNET_POSTERN_SEGMENT_STR "EVERYTHING"
#elif defined(GASNET_SEGMENT_LARGE)
#undef GASNET_SEGMENT_LARGE
#define GASNET_SEGMENT_LARGE       1
#define GASNET_POSTERN_SEGMENT     1
#define GASNET_POSTERN_SEGMENT_STR "LARGE"
#else
#undef GASNET_SEGMENT_FAST
#define GASNET_SEGMENT_FAST        1
#define GASNET_POSTERN_SEGMENT     0
#define GASNET_POSTERN_SEGMENT_STR "FAST"
#endif

#include <stddef.h>
#include <stdint.h>
#ifndef GASNET_SEQ
#include <pthread.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GASNET_FUNCTION __attribute__((visibility("default")))
#else
#define GASNET_FUNCTION
#endif

/* --- Constants and strings */

#define GASNET_SPEC_VERSION_MAJOR 1
#define GASNET_SPEC_VERSION_MINOR 8
#define GASNET_VERSION            1
#ifndef GASNET_RELEASE_VERSION_MAJOR
#define GASNET_RELEASE_VERSION_MAJOR 0
#define GASNET_RELEASE_VERSION_MINOR 1
#define GASNET_RELEASE_VERSION_PATCH 0
#endif

#define GASNET_MAXNODES                0x7fffffff
#define GASNET_ALIGNED_SEGMENTS        0
#define GASNET_PAGESIZE                4096
#define GASNET_PSHM                    0
#define GASNET_NULL_ARGV_OK            1
#define SIZEOF_GASNET_REGISTER_VALUE_T 8
#ifdef GASNET_SEQ
#define GASNETI_MAX_THREADS 1
#else
#define GASNETI_MAX_THREADS 256
#endif

#define GASNET_OK                   0
#define GASNET_ERR_NOT_INIT         10001
#define GASNET_ERR_RESOURCE         10002
#define GASNET_ERR_BAD_ARG          10003
#define GASNET_ERR_NOT_READY        10004
#define GASNET_ERR_BARRIER_MISMATCH 10005

#define GASNET_BARRIERFLAG_ANONYMOUS 1
#define GASNET_BARRIERFLAG_MISMATCH  2
#define GASNET_BARRIERFLAG_IMAGES    4 /* means nothing */
#define GASNET_BARRIERFLAG_UNNAMED   (8 | GASNET_BARRIERFLAG_ANONYMOUS)

#define GASNET_WAIT_SPIN      0
#define GASNET_WAIT_BLOCK     1
#define GASNET_WAIT_SPINBLOCK 2 /* the default */

#define GASNET_CONDUIT_POSTERN      1
#define GASNET_CONDUIT_NAME         POSTERN
#define GASNET_CONDUIT_NAME_STR     "POSTERN"
#define GASNET_CORE_NAME            POSTERN
#define GASNET_CORE_NAME_STR        "POSTERN"
#define GASNET_CORE_VERSION         0.1
#define GASNET_EXTENDED_NAME        POSTERN
#define GASNET_EXTENDED_NAME_STR    "POSTERN"
#define GASNET_EXTENDED_VERSION     0.1
#define GASNET_EXTENDED_VERSION_STR "0.1"
#define GASNET_CORE_VERSION_STR     "0.1"

#define GASNET_CONFIG_STRING                                                                       \
	"RELEASE=0.1.0,SPEC=1.8,CONDUIT=POSTERN(POSTERN-0.1/"                                      \
	"POSTERN-0.1),THREADMODEL=" GASNET_POSTERN_MODE_STR ",SEGMENT=" GASNET_POSTERN_SEGMENT_STR \
	",PTR=64bit,noalign,nopshm,nodebug,notrace,nostats,nodebugmalloc,nosrclines"

/* --- Types */

typedef uint32_t gasnet_node_t;
typedef uint8_t gasnet_handler_t;
typedef int32_t gasnet_handlerarg_t;
typedef void *gasnet_token_t;
typedef void *gasnet_threadinfo_t;
typedef uintptr_t gasnet_register_value_t;
typedef struct gasnet_postern_handle *gasnet_handle_t;
typedef struct gasnet_postern_valget *gasnet_valget_handle_t;
#define GASNET_INVALID_HANDLE ((gasnet_handle_t)0)

/* fnptr has no prototype, because each handler has its own. */
#if defined(__GNUC__) && !defined(__cplusplus)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#endif
typedef struct {
	gasnet_handler_t index; /* 128 to 255; 0: the library chooses */
#if defined(GASNET_USE_STRICT_PROTOTYPES)
	void *fnptr;
#else
	void (*fnptr)();
#endif
} gasnet_handlerentry_t;
#if defined(__GNUC__) && !defined(__cplusplus)
#pragma GCC diagnostic pop
#endif

typedef struct {
	void *addr;
	uintptr_t size;
} gasnet_seginfo_t;

typedef struct {
	gasnet_node_t host;      /* equal for ranks of one machine */
	gasnet_node_t supernode; /* equal for ranks that share memory: none do */
} gasnet_nodeinfo_t;

/* --- The job */

/* The first call. The name of the function has the mode, so that a program and a library of two
 * modes do not link. */
#define GASNET_POSTERN_PASTE2(a, b) a##b
#define GASNET_POSTERN_PASTE(a, b)  GASNET_POSTERN_PASTE2(a, b)
#define GASNET_POSTERN_NAME(mode)   GASNET_POSTERN_PASTE(gasnet_postern_init_0_, mode)
#define GASNET_POSTERN_INIT         GASNET_POSTERN_NAME(GASNET_POSTERN_MODE)
GASNET_FUNCTION int GASNET_POSTERN_INIT(
	int *argc, char ***argv, int segment, const char *configuration);
#define gasnet_init(argc, argv)                                                                    \
	GASNET_POSTERN_INIT(argc, argv, GASNET_POSTERN_SEGMENT, GASNET_CONFIG_STRING)

GASNET_FUNCTION int gasnet_attach(
	gasnet_handlerentry_t *table, int numentries, uintptr_t segsize, uintptr_t minheapoffset);
GASNET_FUNCTION void gasnet_exit(int exitcode) __attribute__((noreturn));
GASNET_FUNCTION gasnet_node_t gasnet_mynode(void);
GASNET_FUNCTION gasnet_node_t gasnet_nodes(void);
GASNET_FUNCTION uintptr_t gasnet_getMaxLocalSegmentSize(void);
GASNET_FUNCTION uintptr_t gasnet_getMaxGlobalSegmentSize(void);
GASNET_FUNCTION int gasnet_getSegmentInfo(gasnet_seginfo_t *table, int numentries);
GASNET_FUNCTION int gasnet_getNodeInfo(gasnet_nodeinfo_t *table, int numentries);
GASNET_FUNCTION char *gasnet_getenv(const char *name);
GASNET_FUNCTION const char *gasnet_ErrorName(int code);
GASNET_FUNCTION const char *gasnet_ErrorDesc(int code);

/* --- Active messages */

GASNET_FUNCTION size_t gasnet_AMMaxArgs(void);
GASNET_FUNCTION size_t gasnet_AMMaxMedium(void);
GASNET_FUNCTION size_t gasnet_AMMaxLongRequest(void);
GASNET_FUNCTION size_t gasnet_AMMaxLongReply(void);
GASNET_FUNCTION int gasnet_AMGetMsgSource(gasnet_token_t token, gasnet_node_t *source);
GASNET_FUNCTION int gasnet_AMPoll(void);
GASNET_FUNCTION int gasnet_set_waitmode(int mode);

/* With the number of arguments as an argument. */
GASNET_FUNCTION int gasnet_AMRequestShort(
	gasnet_node_t dest, gasnet_handler_t handler, int numargs, ...);
GASNET_FUNCTION int gasnet_AMRequestMedium(gasnet_node_t dest, gasnet_handler_t handler,
	void *source, size_t nbytes, int numargs, ...);
GASNET_FUNCTION int gasnet_AMRequestLong(gasnet_node_t dest, gasnet_handler_t handler, void *source,
	size_t nbytes, void *dest_addr, int numargs, ...);
GASNET_FUNCTION int gasnet_AMRequestLongAsync(gasnet_node_t dest, gasnet_handler_t handler,
	void *source, size_t nbytes, void *dest_addr, int numargs, ...);
GASNET_FUNCTION int gasnet_AMReplyShort(
	gasnet_token_t token, gasnet_handler_t handler, int numargs, ...);
GASNET_FUNCTION int gasnet_AMReplyMedium(gasnet_token_t token, gasnet_handler_t handler,
	void *source, size_t nbytes, int numargs, ...);
GASNET_FUNCTION int gasnet_AMReplyLong(gasnet_token_t token, gasnet_handler_t handler, void *source,
	size_t nbytes, void *dest_addr, int numargs, ...);

/* What the 119 functions with the number in their name call. kind: 0 short, 1 medium, 2 long, 3
 * long without waiting. */
GASNET_FUNCTION int gasnet_postern_request(gasnet_node_t dest, int kind, gasnet_handler_t handler,
	const void *source, size_t nbytes, void *dest_addr, unsigned count,
	const gasnet_handlerarg_t *arguments);
GASNET_FUNCTION int gasnet_postern_reply(gasnet_token_t token, int kind, gasnet_handler_t handler,
	const void *source, size_t nbytes, void *dest_addr, unsigned count,
	const gasnet_handlerarg_t *arguments);

/* Lists of parameters and of their names, each from the one before. */
/* clang-format off */
#define GASNET_POSTERN_P0
#define GASNET_POSTERN_P1  GASNET_POSTERN_P0, gasnet_handlerarg_t a0
#define GASNET_POSTERN_P2  GASNET_POSTERN_P1, gasnet_handlerarg_t a1
#define GASNET_POSTERN_P3  GASNET_POSTERN_P2, gasnet_handlerarg_t a2
#define GASNET_POSTERN_P4  GASNET_POSTERN_P3, gasnet_handlerarg_t a3
#define GASNET_POSTERN_P5  GASNET_POSTERN_P4, gasnet_handlerarg_t a4
#define GASNET_POSTERN_P6  GASNET_POSTERN_P5, gasnet_handlerarg_t a5
#define GASNET_POSTERN_P7  GASNET_POSTERN_P6, gasnet_handlerarg_t a6
#define GASNET_POSTERN_P8  GASNET_POSTERN_P7, gasnet_handlerarg_t a7
#define GASNET_POSTERN_P9  GASNET_POSTERN_P8, gasnet_handlerarg_t a8
#define GASNET_POSTERN_P10 GASNET_POSTERN_P9, gasnet_handlerarg_t a9
#define GASNET_POSTERN_P11 GASNET_POSTERN_P10, gasnet_handlerarg_t a10
#define GASNET_POSTERN_P12 GASNET_POSTERN_P11, gasnet_handlerarg_t a11
#define GASNET_POSTERN_P13 GASNET_POSTERN_P12, gasnet_handlerarg_t a12
#define GASNET_POSTERN_P14 GASNET_POSTERN_P13, gasnet_handlerarg_t a13
#define GASNET_POSTERN_P15 GASNET_POSTERN_P14, gasnet_handlerarg_t a14
#define GASNET_POSTERN_P16 GASNET_POSTERN_P15, gasnet_handlerarg_t a15
#define GASNET_POSTERN_L0
#define GASNET_POSTERN_L1  GASNET_POSTERN_L0 a0,
#define GASNET_POSTERN_L2  GASNET_POSTERN_L1 a1,
#define GASNET_POSTERN_L3  GASNET_POSTERN_L2 a2,
#define GASNET_POSTERN_L4  GASNET_POSTERN_L3 a3,
#define GASNET_POSTERN_L5  GASNET_POSTERN_L4 a4,
#define GASNET_POSTERN_L6  GASNET_POSTERN_L5 a5,
#define GASNET_POSTERN_L7  GASNET_POSTERN_L6 a6,
#define GASNET_POSTERN_L8  GASNET_POSTERN_L7 a7,
#define GASNET_POSTERN_L9  GASNET_POSTERN_L8 a8,
#define GASNET_POSTERN_L10 GASNET_POSTERN_L9 a9,
#define GASNET_POSTERN_L11 GASNET_POSTERN_L10 a10,
#define GASNET_POSTERN_L12 GASNET_POSTERN_L11 a11,
#define GASNET_POSTERN_L13 GASNET_POSTERN_L12 a12,
#define GASNET_POSTERN_L14 GASNET_POSTERN_L13 a13,
#define GASNET_POSTERN_L15 GASNET_POSTERN_L14 a14,
#define GASNET_POSTERN_L16 GASNET_POSTERN_L15 a15,
/* clang-format on */

#define GASNET_POSTERN_LIST(m) const gasnet_handlerarg_t list[m + 1] = {GASNET_POSTERN_L##m 0}
#define GASNET_POSTERN_AM(m)                                                                       \
	static __inline__ int gasnet_AMRequestShort##m(                                            \
		gasnet_node_t dest, gasnet_handler_t handler GASNET_POSTERN_P##m)                  \
	{                                                                                          \
		GASNET_POSTERN_LIST(m);                                                            \
		return gasnet_postern_request(dest, 0, handler, NULL, 0, NULL, m, list);           \
	}                                                                                          \
	static __inline__ int gasnet_AMRequestMedium##m(gasnet_node_t dest,                        \
		gasnet_handler_t handler, void *source, size_t nbytes GASNET_POSTERN_P##m)         \
	{                                                                                          \
		GASNET_POSTERN_LIST(m);                                                            \
		return gasnet_postern_request(dest, 1, handler, source, nbytes, NULL, m, list);    \
	}                                                                                          \
	static __inline__ int gasnet_AMRequestLong##m(gasnet_node_t dest,                          \
		gasnet_handler_t handler, void *source, size_t nbytes,                             \
		void *dest_addr GASNET_POSTERN_P##m)                                               \
	{                                                                                          \
		GASNET_POSTERN_LIST(m);                                                            \
		return gasnet_postern_request(                                                     \
			dest, 2, handler, source, nbytes, dest_addr, m, list);                     \
	}                                                                                          \
	static __inline__ int gasnet_AMRequestLongAsync##m(gasnet_node_t dest,                     \
		gasnet_handler_t handler, void *source, size_t nbytes,                             \
		void *dest_addr GASNET_POSTERN_P##m)                                               \
	{                                                                                          \
		GASNET_POSTERN_LIST(m);                                                            \
		return gasnet_postern_request(                                                     \
			dest, 3, handler, source, nbytes, dest_addr, m, list);                     \
	}                                                                                          \
	static __inline__ int gasnet_AMReplyShort##m(                                              \
		gasnet_token_t token, gasnet_handler_t handler GASNET_POSTERN_P##m)                \
	{                                                                                          \
		GASNET_POSTERN_LIST(m);                                                            \
		return gasnet_postern_reply(token, 0, handler, NULL, 0, NULL, m, list);            \
	}                                                                                          \
	static __inline__ int gasnet_AMReplyMedium##m(gasnet_token_t token,                        \
		gasnet_handler_t handler, void *source, size_t nbytes GASNET_POSTERN_P##m)         \
	{                                                                                          \
		GASNET_POSTERN_LIST(m);                                                            \
		return gasnet_postern_reply(token, 1, handler, source, nbytes, NULL, m, list);     \
	}                                                                                          \
	static __inline__ int gasnet_AMReplyLong##m(gasnet_token_t token,                          \
		gasnet_handler_t handler, void *source, size_t nbytes,                             \
		void *dest_addr GASNET_POSTERN_P##m)                                               \
	{                                                                                          \
		GASNET_POSTERN_LIST(m);                                                            \
		return gasnet_postern_reply(                                                       \
			token, 2, handler, source, nbytes, dest_addr, m, list);                    \
	}
GASNET_POSTERN_AM(0)
GASNET_POSTERN_AM(1)
GASNET_POSTERN_AM(2)
GASNET_POSTERN_AM(3)
GASNET_POSTERN_AM(4)
GASNET_POSTERN_AM(5)
GASNET_POSTERN_AM(6)
GASNET_POSTERN_AM(7)
GASNET_POSTERN_AM(8)
GASNET_POSTERN_AM(9)
GASNET_POSTERN_AM(10)
GASNET_POSTERN_AM(11)
GASNET_POSTERN_AM(12)
GASNET_POSTERN_AM(13)
GASNET_POSTERN_AM(14)
GASNET_POSTERN_AM(15)
GASNET_POSTERN_AM(16)

/* Polls until the condition holds, which only handlers change. */
GASNET_FUNCTION void gasnet_postern_wait(unsigned *tries);
#define GASNET_BLOCKUNTIL(condition)                                                               \
	do {                                                                                       \
		unsigned gasnet_postern_tries = 0;                                                 \
		while (!(condition))                                                               \
			gasnet_postern_wait(&gasnet_postern_tries);                                \
		__atomic_thread_fence(__ATOMIC_ACQUIRE);                                           \
	} while (0)

/* --- Locks that handlers may take, and sections that no handler interrupts: none ever does */

#define gasnet_hold_interrupts()   ((void)0)
#define gasnet_resume_interrupts() ((void)0)

#ifdef GASNET_SEQ
typedef struct {
	char nothing;
} gasnet_hsl_t;
#define GASNET_HSL_INITIALIZER                                                                     \
	{                                                                                          \
		0                                                                                  \
	}
#define gasnet_hsl_init(hsl)    ((void)(hsl))
#define gasnet_hsl_destroy(hsl) ((void)(hsl))
#define gasnet_hsl_lock(hsl)    ((void)(hsl))
#define gasnet_hsl_unlock(hsl)  ((void)(hsl))
static __inline__ int gasnet_hsl_trylock(gasnet_hsl_t *hsl)
{
	(void)hsl;
	return GASNET_OK;
}
#else
typedef struct {
	pthread_mutex_t mutex;
} gasnet_hsl_t;
#define GASNET_HSL_INITIALIZER                                                                     \
	{                                                                                          \
		PTHREAD_MUTEX_INITIALIZER                                                          \
	}
GASNET_FUNCTION void gasnet_hsl_init(gasnet_hsl_t *hsl);
GASNET_FUNCTION void gasnet_hsl_destroy(gasnet_hsl_t *hsl);
GASNET_FUNCTION void gasnet_hsl_lock(gasnet_hsl_t *hsl);
GASNET_FUNCTION void gasnet_hsl_unlock(gasnet_hsl_t *hsl);
GASNET_FUNCTION int gasnet_hsl_trylock(gasnet_hsl_t *hsl);
#endif

/* --- Puts and gets. The remote address is in that rank's segment, the local one anywhere. */

/* Blocking: done when the call returns. */
GASNET_FUNCTION void gasnet_put(gasnet_node_t node, void *dest, void *src, size_t nbytes);
GASNET_FUNCTION void gasnet_get(void *dest, gasnet_node_t node, void *src, size_t nbytes);
GASNET_FUNCTION void gasnet_memset(gasnet_node_t node, void *dest, int val, size_t nbytes);
GASNET_FUNCTION void gasnet_put_val(
	gasnet_node_t node, void *dest, gasnet_register_value_t value, size_t nbytes);
GASNET_FUNCTION gasnet_register_value_t gasnet_get_val(
	gasnet_node_t node, void *src, size_t nbytes);

/* Done when the handle is synchronised. With _bulk the source of a put must stay until then. */
GASNET_FUNCTION gasnet_handle_t gasnet_put_nb(
	gasnet_node_t node, void *dest, void *src, size_t nbytes);
GASNET_FUNCTION gasnet_handle_t gasnet_put_nb_bulk(
	gasnet_node_t node, void *dest, void *src, size_t nbytes);
GASNET_FUNCTION gasnet_handle_t gasnet_get_nb(
	void *dest, gasnet_node_t node, void *src, size_t nbytes);
GASNET_FUNCTION gasnet_handle_t gasnet_memset_nb(
	gasnet_node_t node, void *dest, int val, size_t nbytes);
GASNET_FUNCTION gasnet_handle_t gasnet_put_nb_val(
	gasnet_node_t node, void *dest, gasnet_register_value_t value, size_t nbytes);
GASNET_FUNCTION gasnet_valget_handle_t gasnet_get_nb_val(
	gasnet_node_t node, void *src, size_t nbytes);

/* Done when this thread's implicit operations are synchronised. */
GASNET_FUNCTION void gasnet_put_nbi(gasnet_node_t node, void *dest, void *src, size_t nbytes);
GASNET_FUNCTION void gasnet_put_nbi_bulk(gasnet_node_t node, void *dest, void *src, size_t nbytes);
GASNET_FUNCTION void gasnet_get_nbi(void *dest, gasnet_node_t node, void *src, size_t nbytes);
GASNET_FUNCTION void gasnet_memset_nbi(gasnet_node_t node, void *dest, int val, size_t nbytes);
GASNET_FUNCTION void gasnet_put_nbi_val(
	gasnet_node_t node, void *dest, gasnet_register_value_t value, size_t nbytes);

/* Any alignment will do in all of them. */
#define gasnet_put_bulk     gasnet_put
#define gasnet_get_bulk     gasnet_get
#define gasnet_get_nb_bulk  gasnet_get_nb
#define gasnet_get_nbi_bulk gasnet_get_nbi

GASNET_FUNCTION void gasnet_wait_syncnb(gasnet_handle_t handle);
GASNET_FUNCTION int gasnet_try_syncnb(gasnet_handle_t handle);
GASNET_FUNCTION void gasnet_wait_syncnb_all(gasnet_handle_t *handles, size_t count);
GASNET_FUNCTION int gasnet_try_syncnb_all(gasnet_handle_t *handles, size_t count);
GASNET_FUNCTION void gasnet_wait_syncnb_some(gasnet_handle_t *handles, size_t count);
GASNET_FUNCTION int gasnet_try_syncnb_some(gasnet_handle_t *handles, size_t count);
GASNET_FUNCTION gasnet_register_value_t gasnet_wait_syncnb_valget(gasnet_valget_handle_t handle);
GASNET_FUNCTION void gasnet_wait_syncnbi_puts(void);
GASNET_FUNCTION void gasnet_wait_syncnbi_gets(void);
GASNET_FUNCTION void gasnet_wait_syncnbi_all(void);
GASNET_FUNCTION int gasnet_try_syncnbi_puts(void);
GASNET_FUNCTION int gasnet_try_syncnbi_gets(void);
GASNET_FUNCTION int gasnet_try_syncnbi_all(void);

/* Implicit operations between these two belong to the handle instead. */
GASNET_FUNCTION void gasnet_begin_nbi_accessregion(void);
GASNET_FUNCTION gasnet_handle_t gasnet_end_nbi_accessregion(void);

/* --- Barriers */

GASNET_FUNCTION void gasnet_barrier_notify(int id, int flags);
GASNET_FUNCTION int gasnet_barrier_wait(int id, int flags);
GASNET_FUNCTION int gasnet_barrier_try(int id, int flags);
/* Both at once. */
GASNET_FUNCTION int gasnet_barrier(int id, int flags);
/* After a barrier that gave GASNET_OK: returns 0 and the id in *id if a rank named one. */
GASNET_FUNCTION int gasnet_barrier_result(int *id);

/* --- Threads. They need not be registered. */

#define GASNET_GET_THREADINFO() ((gasnet_threadinfo_t)0)
#define GASNET_POST_THREADINFO(info)                                                               \
	typedef char GASNET_POSTERN_PASTE(gasnet_postern_line_, __LINE__) __attribute__((unused))
#define GASNET_BEGIN_FUNCTION() GASNET_POST_THREADINFO(GASNET_GET_THREADINFO())

#ifdef __cplusplus
}
#endif

#endif
