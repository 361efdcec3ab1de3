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

#ifdef GASNET_DEBUG
#define GASNET_POSTERN_DEBUG_STR "debug"
#else
#define GASNET_POSTERN_DEBUG_STR "nodebug"
#endif
#define GASNET_CONFIG_STRING                                                                       \
	"RELEASE=0.1.0,SPEC=1.8,CONDUIT=POSTERN(POSTERN-0.1/"                                      \
	"POSTERN-0.1),THREADMODEL=" GASNET_POSTERN_MODE_STR ",SEGMENT=" GASNET_POSTERN_SEGMENT_STR \
	",PTR=64bit,noalign,nopshm," GASNET_POSTERN_DEBUG_STR                                      \
	",notrace,nostats,nodebugmalloc,nosrclines"

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
	gasnet_node_t supernode; /* the rank: no program can follow pointers into another rank */
} gasnet_nodeinfo_t;

/* --- The job
 * Each rank calls gasnet_init() once, before every other function, then gasnet_attach() once. */

/* Starts GASNet. Afterwards the process is a rank of its job.
 *   argc, argv  of main; both may be NULL, and they are left as they are
 * macro int gasnet_init(int *argc, char ***argv);
 * Returns
 *   GASNET_ERR_NOT_INIT  It was called before.
 *   GASNET_ERR_RESOURCE  The job or Portals cannot be opened; a line on standard error says why. */
#define gasnet_init(argc, argv)                                                                    \
	GASNET_POSTERN_INIT(argc, argv, GASNET_POSTERN_SEGMENT, GASNET_CONFIG_STRING)
/* The symbol contains the mode, so that a program does not link with a library of another mode. */
#define GASNET_POSTERN_PASTE2(a, b) a##b
#define GASNET_POSTERN_PASTE(a, b)  GASNET_POSTERN_PASTE2(a, b)
#define GASNET_POSTERN_NAME(mode)   GASNET_POSTERN_PASTE(gasnet_postern_init_0_, mode)
#define GASNET_POSTERN_INIT         GASNET_POSTERN_NAME(GASNET_POSTERN_MODE)
GASNET_FUNCTION int GASNET_POSTERN_INIT(
	int *argc, char ***argv, int segment, const char *configuration);

/* Registers the handlers and allocates the segment: the memory that long messages, puts and gets of
 * other ranks may access. All ranks call it, and it is a barrier.
 *   table          the handlers, with indices from 128 to 255; for an entry with index 0 the
 *                  library chooses a free index, and writes it into the table
 *   numentries     of the table: 0 to 128
 *   segsize        bytes of this rank's segment, a multiple of GASNET_PAGESIZE; 0: it has none
 *   minheapoffset  bytes that the heap must be able to grow before it reaches the segment
 * Returns
 *   GASNET_ERR_NOT_INIT  gasnet_init() was not called, or this function was.
 *   GASNET_ERR_BAD_ARG   segsize is not a multiple of GASNET_PAGESIZE, or is larger than
 *                        gasnet_getMaxLocalSegmentSize().
 *   GASNET_ERR_RESOURCE  The table has an index twice, or one below 128, numentries is not 0 to
 *                        128, table is NULL although numentries is not 0, the segment cannot be so
 *                        far from the heap, or the ranks cannot exchange their addresses; a line on
 *                        standard error says which. */
GASNET_FUNCTION int gasnet_attach(
	gasnet_handlerentry_t *table, int numentries, uintptr_t segsize, uintptr_t minheapoffset);

/* Ends all ranks. Any rank may call it at any time, also in a handler; the end of main has the same
 * effect. Each other rank gets SIGQUIT once, in its current or next call; the program may catch it
 * and call gasnet_exit() itself. The launcher ends ranks that make no calls.
 *   exitcode  the exit code of the job; if several ranks call at once, that of one of them */
GASNET_FUNCTION void gasnet_exit(int exitcode) __attribute__((noreturn));

/* Gets the number of this rank, from 0.
 * Returns the number. */
GASNET_FUNCTION gasnet_node_t gasnet_mynode(void);

/* Gets the number of ranks in the job.
 * Returns the number. */
GASNET_FUNCTION gasnet_node_t gasnet_nodes(void);

/* Gets the largest possible size of this rank's segment. gasnet_attach() may get less from the
 * system; gasnet_getSegmentInfo() returns the real size. Call it after gasnet_init().
 * Returns a number of bytes, a multiple of GASNET_PAGESIZE. */
GASNET_FUNCTION uintptr_t gasnet_getMaxLocalSegmentSize(void);

/* Gets the largest size that every rank's segment can have: the least of what
 * gasnet_getMaxLocalSegmentSize() returns in the ranks. Call it after gasnet_init().
 * Returns a number of bytes, the same in all ranks. */
GASNET_FUNCTION uintptr_t gasnet_getMaxGlobalSegmentSize(void);

/* Gets the addresses of all ranks' segments. Call it after gasnet_attach().
 *   table       out: one entry for each rank; at most numentries are written
 *   numentries  1 or more
 * Returns
 *   GASNET_ERR_NOT_INIT  gasnet_attach() was not called.
 *   GASNET_ERR_BAD_ARG   table is NULL, or numentries less than 1. */
GASNET_FUNCTION int gasnet_getSegmentInfo(gasnet_seginfo_t *table, int numentries);

/* Gets the machine of each rank.
 *   table       out: one entry for each rank; at most numentries are written
 *   numentries  1 or more
 * Returns
 *   GASNET_ERR_NOT_INIT  gasnet_init() was not called.
 *   GASNET_ERR_BAD_ARG   table is NULL, or numentries less than 1. */
GASNET_FUNCTION int gasnet_getNodeInfo(gasnet_nodeinfo_t *table, int numentries);

/* Gets the value of an environment variable.
 * Returns the value, which must not be changed, or NULL: the variable is not set, or the program
 * runs with more privileges than its user has. */
GASNET_FUNCTION char *gasnet_getenv(const char *name);

/* Gets the name of an error. May be called at any time.
 * Returns a name such as "GASNET_ERR_BAD_ARG"; never NULL. */
GASNET_FUNCTION const char *gasnet_ErrorName(int code);

/* Gets the meaning of an error. May be called at any time.
 * Returns a few words; never NULL. */
GASNET_FUNCTION const char *gasnet_ErrorDesc(int code);

/* --- Active messages
 * Handlers run inside calls of GASNet, never concurrently with the program's thread. A handler may
 * call gasnet_mynode(), gasnet_nodes(), gasnet_AMGetMsgSource(), gasnet_exit() and the lock
 * functions; the handler of a request may reply once. A message for an index that its target has
 * not registered, or for memory outside of the segment, ends the job with an error line. */

/* Gets the largest number of arguments of a message.
 * Returns 16. */
GASNET_FUNCTION size_t gasnet_AMMaxArgs(void);

/* Gets the largest size of a medium message, in bytes.
 * Returns 2048. */
GASNET_FUNCTION size_t gasnet_AMMaxMedium(void);

/* Gets the largest size of a long message, in bytes.
 * Returns 1073741824. */
GASNET_FUNCTION size_t gasnet_AMMaxLongRequest(void);
GASNET_FUNCTION size_t gasnet_AMMaxLongReply(void);

/* Gets the rank that has sent a handler's message.
 *   token   the token that the handler got
 *   source  out: the rank
 * Returns
 *   GASNET_ERR_BAD_ARG  A pointer is NULL. */
GASNET_FUNCTION int gasnet_AMGetMsgSource(gasnet_token_t token, gasnet_node_t *source);

/* Receives the messages that have arrived, and runs their handlers.
 * Returns
 *   GASNET_ERR_NOT_INIT  gasnet_attach() was not called. */
GASNET_FUNCTION int gasnet_AMPoll(void);

/* Sets how this rank's threads wait.
 *   mode  GASNET_WAIT_SPIN: a thread spins without limit; GASNET_WAIT_BLOCK: it sleeps at once
 *         until a message arrives; GASNET_WAIT_SPINBLOCK, the default: it spins for some 20 us
 *         first
 * Returns
 *   GASNET_ERR_BAD_ARG  mode is not valid. */
GASNET_FUNCTION int gasnet_set_waitmode(int mode);

/* Sends a request that has only arguments: the handler is void handler(gasnet_token_t token, ...).
 * The call may wait for room at the target, and runs handlers meanwhile. The handler's arguments
 * come last: as many as the number in the function's name (0 to 16), or numargs if the name has
 * none.
 *   dest     the rank, which may be this one
 *   handler  index of the handler at rank dest
 *   numargs  number of arguments, 0 to 16, which are gasnet_handlerarg_t
 * Returns
 *   GASNET_ERR_NOT_INIT  gasnet_attach() was not called.
 *   GASNET_ERR_BAD_ARG   There is no rank dest, or numargs is not 0 to 16. */
GASNET_FUNCTION int gasnet_AMRequestShort(
	gasnet_node_t dest, gasnet_handler_t handler, int numargs, ...);

/* Sends a request with data. The handler gets a buffer with the data, which is valid until the
 * handler returns: void handler(gasnet_token_t token, void *bytes, size_t nbytes, ...). The buffer
 * is aligned to 16 bytes. The call may wait for room at the target, and runs handlers meanwhile.
 * The handler's arguments come last: as many as the number in the function's name (0 to 16), or
 * numargs if the name has none.
 *   dest            the rank, which may be this one
 *   handler         index of the handler at rank dest
 *   source, nbytes  the bytes, 0 to gasnet_AMMaxMedium(); they may be changed after the call
 *   numargs         number of arguments, 0 to 16, which are gasnet_handlerarg_t
 * Returns
 *   GASNET_ERR_NOT_INIT  gasnet_attach() was not called.
 *   GASNET_ERR_BAD_ARG   There is no rank dest, nbytes is too large, or numargs is not 0 to 16. */
GASNET_FUNCTION int gasnet_AMRequestMedium(gasnet_node_t dest, gasnet_handler_t handler,
	void *source, size_t nbytes, int numargs, ...);

/* Sends a request with data, which is written into the segment of the target before the handler
 * runs: void handler(gasnet_token_t token, void *bytes, size_t nbytes, ...). The call may wait for
 * room at the target, and runs handlers meanwhile. The handler's arguments come last: as many as
 * the number in the function's name (0 to 16), or numargs if the name has none.
 *   dest            the rank, which may be this one
 *   handler         index of the handler at rank dest
 *   source, nbytes  the bytes, 0 to gasnet_AMMaxLongRequest(); they may be changed after the call
 *   dest_addr       the address in the segment of rank dest
 *   numargs         number of arguments, 0 to 16, which are gasnet_handlerarg_t
 * Returns
 *   GASNET_ERR_NOT_INIT  gasnet_attach() was not called.
 *   GASNET_ERR_BAD_ARG   There is no rank dest, nbytes is too large, or numargs is not 0 to 16. */
GASNET_FUNCTION int gasnet_AMRequestLong(gasnet_node_t dest, gasnet_handler_t handler, void *source,
	size_t nbytes, void *dest_addr, int numargs, ...);

/* Sends a long request, and may return while the source is still in use. The request's handler must
 * reply, and the program must not change the source until the reply's handler runs. The call may
 * wait for room at the target, and runs handlers meanwhile. The handler's arguments come last: as
 * many as the number in the function's name (0 to 16), or numargs if the name has none.
 *   dest            the rank, which may be this one
 *   handler         index of the handler at rank dest
 *   source, nbytes  the bytes, which must not change until the reply's handler runs
 *   dest_addr       the address in the segment of rank dest
 *   numargs         number of arguments, 0 to 16, which are gasnet_handlerarg_t
 * Returns
 *   GASNET_ERR_NOT_INIT  gasnet_attach() was not called.
 *   GASNET_ERR_BAD_ARG   There is no rank dest, nbytes is too large, or numargs is not 0 to 16. */
GASNET_FUNCTION int gasnet_AMRequestLongAsync(gasnet_node_t dest, gasnet_handler_t handler,
	void *source, size_t nbytes, void *dest_addr, int numargs, ...);

/* Replies with only arguments, in the handler of a request. The handler's arguments come last: as
 * many as the number in the function's name (0 to 16), or numargs if the name has none.
 *   token    the token that the handler got
 *   handler  index of the handler at the requester
 *   numargs  number of arguments, 0 to 16, which are gasnet_handlerarg_t
 * Returns
 *   GASNET_ERR_NOT_INIT  gasnet_attach() was not called.
 *   GASNET_ERR_BAD_ARG   The token is not that of a request, or a reply has been sent already, or
 *                        numargs is not 0 to 16. */
GASNET_FUNCTION int gasnet_AMReplyShort(
	gasnet_token_t token, gasnet_handler_t handler, int numargs, ...);

/* Replies with data, in the handler of a request. The reply's handler gets the data in a buffer
 * that is valid until it returns. The handler's arguments come last: as many as the number in the
 * function's name (0 to 16), or numargs if the name has none.
 *   token           the token that the handler got
 *   handler         index of the handler at the requester
 *   source, nbytes  the bytes, 0 to gasnet_AMMaxMedium(); they may be changed after the call
 *   numargs         number of arguments, 0 to 16, which are gasnet_handlerarg_t
 * Returns
 *   GASNET_ERR_NOT_INIT  gasnet_attach() was not called.
 *   GASNET_ERR_BAD_ARG   The token is not that of a request, or a reply has been sent already, or
 *                        nbytes is too large, or numargs is not 0 to 16. */
GASNET_FUNCTION int gasnet_AMReplyMedium(gasnet_token_t token, gasnet_handler_t handler,
	void *source, size_t nbytes, int numargs, ...);

/* Replies with data, in the handler of a request. The data is written into the segment of the
 * requester before the reply's handler runs. The handler's arguments come last: as many as the
 * number in the function's name (0 to 16), or numargs if the name has none.
 *   token           the token that the handler got
 *   handler         index of the handler at the requester
 *   source, nbytes  the bytes, 0 to gasnet_AMMaxLongReply(); they may be changed after the call
 *   dest_addr       the address in the segment of the requester
 *   numargs         number of arguments, 0 to 16, which are gasnet_handlerarg_t
 * Returns
 *   GASNET_ERR_NOT_INIT  gasnet_attach() was not called.
 *   GASNET_ERR_BAD_ARG   The token is not that of a request, or a reply has been sent already, or
 *                        nbytes is too large, or numargs is not 0 to 16. */
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

/* Runs handlers until a condition is true.
 *   condition  an expression that handlers change; it is evaluated repeatedly
 * macro void GASNET_BLOCKUNTIL(condition); */
GASNET_FUNCTION void gasnet_postern_wait(unsigned *tries);
#define GASNET_BLOCKUNTIL(condition)                                                               \
	do {                                                                                       \
		unsigned gasnet_postern_tries = 0;                                                 \
		while (!(condition))                                                               \
			gasnet_postern_wait(&gasnet_postern_tries);                                \
		__atomic_thread_fence(__ATOMIC_ACQUIRE);                                           \
	} while (0)

/* --- Locks
 * Handlers may take locks of GASNet (gasnet_hsl_t). A thread that holds a lock must not make a call
 * that sends or polls. With GASNET_SEQ the functions of locks do nothing. */

/* Begins and ends a section in which no handler interrupts the thread. Handlers never interrupt a
 * thread here, so these do nothing.
 * macro void gasnet_hold_interrupts(void);
 * macro void gasnet_resume_interrupts(void); */
#define gasnet_hold_interrupts()   ((void)0)
#define gasnet_resume_interrupts() ((void)0)

#ifndef GASNET_SEQ
typedef struct {
	pthread_mutex_t mutex;
} gasnet_hsl_t;
#define GASNET_HSL_INITIALIZER                                                                     \
	{                                                                                          \
		PTHREAD_MUTEX_INITIALIZER                                                          \
	}

/* Makes a lock, as the initialiser GASNET_HSL_INITIALIZER does. */
GASNET_FUNCTION void gasnet_hsl_init(gasnet_hsl_t *hsl);

/* Destroys a lock that no thread holds. */
GASNET_FUNCTION void gasnet_hsl_destroy(gasnet_hsl_t *hsl);

/* Takes a lock. If another thread holds it, waits until it is released. */
GASNET_FUNCTION void gasnet_hsl_lock(gasnet_hsl_t *hsl);

/* Releases a lock. */
GASNET_FUNCTION void gasnet_hsl_unlock(gasnet_hsl_t *hsl);

/* Takes a lock if no thread holds it.
 * Returns
 *   GASNET_ERR_NOT_READY  A thread holds it. */
GASNET_FUNCTION int gasnet_hsl_trylock(gasnet_hsl_t *hsl);
#else
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
#endif

/* --- Puts and gets
 * The remote address is in the segment of rank node, which may be this rank; the local address may
 * be anywhere. Addresses need no alignment. A put or get outside of the segment, or one that fails,
 * ends the job with an error line. */

/* Puts bytes into the segment of a rank, and returns when they are there.
 *   dest         the remote address
 *   src, nbytes  the bytes
 * macro void gasnet_put_bulk(gasnet_node_t node, void *dest, void *src, size_t nbytes); */
GASNET_FUNCTION void gasnet_put(gasnet_node_t node, void *dest, void *src, size_t nbytes);
#define gasnet_put_bulk gasnet_put

/* Gets bytes from the segment of a rank, and returns when they are here.
 *   src           the remote address
 *   dest, nbytes  where they go
 * macro void gasnet_get_bulk(void *dest, gasnet_node_t node, void *src, size_t nbytes); */
GASNET_FUNCTION void gasnet_get(void *dest, gasnet_node_t node, void *src, size_t nbytes);
#define gasnet_get_bulk gasnet_get

/* Sets bytes in the segment of a rank, and returns when they are set.
 *   val  the value of each byte */
GASNET_FUNCTION void gasnet_memset(gasnet_node_t node, void *dest, int val, size_t nbytes);

/* Puts a value into the segment of a rank, and returns when it is there.
 *   nbytes  1 to 8: the number of low bytes of the value */
GASNET_FUNCTION void gasnet_put_val(
	gasnet_node_t node, void *dest, gasnet_register_value_t value, size_t nbytes);

/* Gets a value from the segment of a rank.
 *   nbytes  the size of the value in bytes, 1 to 8
 * Returns the value, with zeros in the high bytes that it does not use. */
GASNET_FUNCTION gasnet_register_value_t gasnet_get_val(
	gasnet_node_t node, void *src, size_t nbytes);

/* Begins a put. It is complete when its handle is synchronised. The source may be changed after
 * the call.
 * Returns a handle, which this thread synchronises once, or GASNET_INVALID_HANDLE if the operation
 * is complete. */
GASNET_FUNCTION gasnet_handle_t gasnet_put_nb(
	gasnet_node_t node, void *dest, void *src, size_t nbytes);

/* Begins a put whose source must not change until its handle is synchronised.
 * Returns a handle, which this thread synchronises once, or GASNET_INVALID_HANDLE if the operation
 * is complete. */
GASNET_FUNCTION gasnet_handle_t gasnet_put_nb_bulk(
	gasnet_node_t node, void *dest, void *src, size_t nbytes);

/* Begins a get. It is complete when its handle is synchronised.
 * macro gasnet_handle_t gasnet_get_nb_bulk(void *dest, gasnet_node_t node, void *src, size_t n);
 * Returns a handle, which this thread synchronises once, or GASNET_INVALID_HANDLE if the operation
 * is complete. */
GASNET_FUNCTION gasnet_handle_t gasnet_get_nb(
	void *dest, gasnet_node_t node, void *src, size_t nbytes);
#define gasnet_get_nb_bulk gasnet_get_nb

/* Begins to set bytes. The operation is complete when its handle is synchronised.
 *   val  the value of each byte
 * Returns a handle, which this thread synchronises once, or GASNET_INVALID_HANDLE if the operation
 * is complete. */
GASNET_FUNCTION gasnet_handle_t gasnet_memset_nb(
	gasnet_node_t node, void *dest, int val, size_t nbytes);

/* Begins to put a value. The operation is complete when its handle is synchronised.
 *   nbytes  1 to 8: the number of low bytes of the value
 * Returns a handle, which this thread synchronises once, or GASNET_INVALID_HANDLE if the operation
 * is complete. */
GASNET_FUNCTION gasnet_handle_t gasnet_put_nb_val(
	gasnet_node_t node, void *dest, gasnet_register_value_t value, size_t nbytes);

/* Begins to get a value. gasnet_wait_syncnb_valget() waits for it.
 *   nbytes  1 to 8
 * Returns a gasnet_valget_handle_t, which this thread synchronises once. */
GASNET_FUNCTION gasnet_valget_handle_t gasnet_get_nb_val(
	gasnet_node_t node, void *src, size_t nbytes);

/* Begins a put that belongs to the thread's implicit operations. The source may be changed after
 * the call. */
GASNET_FUNCTION void gasnet_put_nbi(gasnet_node_t node, void *dest, void *src, size_t nbytes);

/* Begins an implicit put whose source must not change until it is synchronised. */
GASNET_FUNCTION void gasnet_put_nbi_bulk(gasnet_node_t node, void *dest, void *src, size_t nbytes);

/* Begins a get that belongs to the thread's implicit operations.
 * macro void gasnet_get_nbi_bulk(void *dest, gasnet_node_t node, void *src, size_t nbytes); */
GASNET_FUNCTION void gasnet_get_nbi(void *dest, gasnet_node_t node, void *src, size_t nbytes);
#define gasnet_get_nbi_bulk gasnet_get_nbi

/* Begins to set bytes. It is an implicit put of this thread.
 *   val  the value of each byte */
GASNET_FUNCTION void gasnet_memset_nbi(gasnet_node_t node, void *dest, int val, size_t nbytes);

/* Begins to put a value. It is an implicit put of this thread.
 *   nbytes  1 to 8: the number of low bytes of the value */
GASNET_FUNCTION void gasnet_put_nbi_val(
	gasnet_node_t node, void *dest, gasnet_register_value_t value, size_t nbytes);

/* --- Synchronisation
 * The thread that began an operation synchronises it. These calls run handlers. */

/* Waits until an operation is done.
 *   handle  may be GASNET_INVALID_HANDLE */
GASNET_FUNCTION void gasnet_wait_syncnb(gasnet_handle_t handle);

/* Synchronises an operation if it is done.
 *   handle  may be GASNET_INVALID_HANDLE
 * Returns
 *   GASNET_OK             It is complete; the handle is no longer valid.
 *   GASNET_ERR_NOT_READY  It is not done. */
GASNET_FUNCTION int gasnet_try_syncnb(gasnet_handle_t handle);

/* Waits until all operations are done.
 *   handles, count  the operations; all handles become GASNET_INVALID_HANDLE */
GASNET_FUNCTION void gasnet_wait_syncnb_all(gasnet_handle_t *handles, size_t count);

/* Synchronises those operations that are done.
 *   handles, count  the operations; handles that are done become GASNET_INVALID_HANDLE, which
 *                   counts as done
 * Returns
 *   GASNET_OK             All are done.
 *   GASNET_ERR_NOT_READY  At least one is not done. */
GASNET_FUNCTION int gasnet_try_syncnb_all(gasnet_handle_t *handles, size_t count);

/* Waits until at least one operation is done, or returns at once if no handle is valid.
 *   handles, count  the operations; handles that are done become GASNET_INVALID_HANDLE */
GASNET_FUNCTION void gasnet_wait_syncnb_some(gasnet_handle_t *handles, size_t count);

/* Synchronises those operations that are done. One is enough for success.
 *   handles, count  the operations; handles that are done become GASNET_INVALID_HANDLE
 * Returns
 *   GASNET_OK             At least one is done, or no handle is valid.
 *   GASNET_ERR_NOT_READY  None is done. */
GASNET_FUNCTION int gasnet_try_syncnb_some(gasnet_handle_t *handles, size_t count);

/* Waits for a value that gasnet_get_nb_val() gets.
 * Returns the value; the bytes above it are 0. */
GASNET_FUNCTION gasnet_register_value_t gasnet_wait_syncnb_valget(gasnet_valget_handle_t handle);

/* Waits until the implicit operations of this thread are done: puts, gets or both. */
GASNET_FUNCTION void gasnet_wait_syncnbi_puts(void);
GASNET_FUNCTION void gasnet_wait_syncnbi_gets(void);
GASNET_FUNCTION void gasnet_wait_syncnbi_all(void);

/* Checks whether the implicit operations of this thread are done: puts, gets or both.
 * Returns
 *   GASNET_OK             They are done.
 *   GASNET_ERR_NOT_READY  At least one is not done. */
GASNET_FUNCTION int gasnet_try_syncnbi_puts(void);
GASNET_FUNCTION int gasnet_try_syncnbi_gets(void);
GASNET_FUNCTION int gasnet_try_syncnbi_all(void);

/* Begins an access region: until gasnet_end_nbi_accessregion() the implicit operations of this
 * thread belong to the region's handle. Regions do not nest. */
GASNET_FUNCTION void gasnet_begin_nbi_accessregion(void);

/* Ends the access region.
 * Returns a handle for all operations that were begun in the region; GASNET_INVALID_HANDLE: they
 * are done.
 */
GASNET_FUNCTION gasnet_handle_t gasnet_end_nbi_accessregion(void);

/* --- Barriers
 * Only one thread of a rank may be in these calls at a time. A wait or try without a notify, or two
 * notifies in a row, end the job with an error line. A barrier does not complete messages, puts or
 * gets. */

/* Enters a barrier, which progresses while the program computes.
 *   id     its name
 *   flags  0; GASNET_BARRIERFLAG_ANONYMOUS: this rank matches every id;
 *          GASNET_BARRIERFLAG_MISMATCH: no rank's wait matches */
GASNET_FUNCTION void gasnet_barrier_notify(int id, int flags);

/* Waits until all ranks have entered the barrier, and runs handlers meanwhile.
 *   id, flags  the same values as in this rank's gasnet_barrier_notify()
 * Returns
 *   GASNET_ERR_BARRIER_MISMATCH  Two ranks have different ids, a rank has
 *                                GASNET_BARRIERFLAG_MISMATCH, or id or flags differ from those of
 *                                this rank's notify. The rank has passed the barrier
 *                                nevertheless. */
GASNET_FUNCTION int gasnet_barrier_wait(int id, int flags);

/* Passes the barrier if all ranks have entered it.
 *   id, flags  the same values as in this rank's gasnet_barrier_notify()
 * Returns
 *   GASNET_ERR_NOT_READY         A rank has not entered it.
 *   GASNET_ERR_BARRIER_MISMATCH  As gasnet_barrier_wait(). */
GASNET_FUNCTION int gasnet_barrier_try(int id, int flags);

/* Enters a barrier and waits for it.
 *   id, flags  as in gasnet_barrier_notify()
 * Returns
 *   GASNET_ERR_BARRIER_MISMATCH  As gasnet_barrier_wait(). */
GASNET_FUNCTION int gasnet_barrier(int id, int flags);

/* Gets the id of the last barrier, if that returned GASNET_OK.
 *   id  out: the id, if there is one
 * Returns 0 if at least one rank gave an id; 1 if all ranks were anonymous. */
GASNET_FUNCTION int gasnet_barrier_result(int *id);

/* --- Threads
 * Threads need not be registered, and these macros are optional. */

/* Keep data of a thread; here there is none. GASNET_POST_THREADINFO and GASNET_BEGIN_FUNCTION stand
 * at the very beginning of a block, before declarations.
 * macro gasnet_threadinfo_t GASNET_GET_THREADINFO(void);
 * macro void GASNET_POST_THREADINFO(gasnet_threadinfo_t info);
 * macro void GASNET_BEGIN_FUNCTION(void);
 * Returns what GASNET_POST_THREADINFO takes. */
#define GASNET_GET_THREADINFO() ((gasnet_threadinfo_t)0)
#define GASNET_POST_THREADINFO(info)                                                               \
	typedef char GASNET_POSTERN_PASTE(gasnet_postern_line_, __LINE__) __attribute__((unused))
#define GASNET_BEGIN_FUNCTION() GASNET_POST_THREADINFO(GASNET_GET_THREADINFO())

#ifdef __cplusplus
}
#endif

#include "gasnet_coll.h"
#include "gasnet_vis.h"

#endif
