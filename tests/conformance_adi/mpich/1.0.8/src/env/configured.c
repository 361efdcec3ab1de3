/* SPDX-License-Identifier: BSD-3-Clause */
/* configured.c - how the tree was configured: a string that the compiler's words give. */
#include "mpiimpl.h"

const char *MPIR_configured(void);

const char *MPIR_configured(void)
{
	return CONFIGURE_ARGS_CLEAN;
}
