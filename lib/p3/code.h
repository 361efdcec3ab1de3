/* SPDX-License-Identifier: BSD-3-Clause */
/* code.h - the engine's answers as Portals' return codes. */
#ifndef P3_CODE_H
#define P3_CODE_H

#include <portals.h>

#include <engine/answer.h>

/* gone: the code when the command's object does not exist. */
static inline int code_of(enum answer answer, int gone)
{
	switch (answer) {
	case ANSWER_OK:
		return PTL_OK;
	case ANSWER_GONE:
	case ANSWER_TAKEN:
		return gone;
	case ANSWER_PENDING:
		return PTL_MD_INUSE;
	case ANSWER_NO_QUEUE:
		return PTL_INV_EQ;
	case ANSWER_NOT_EMPTY:
		return PTL_NOUPDATE;
	case ANSWER_NO_MEMORY:
		return PTL_NOSPACE;
	case ANSWER_CLOSED:
		return PTL_INV_NI;
	case ANSWER_FAILED:
	case ANSWER_UNKNOWN:
		break;
	}
	return PTL_FAIL;
}

#endif
