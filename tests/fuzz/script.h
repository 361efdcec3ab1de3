/* SPDX-License-Identifier: BSD-3-Clause */
/* script.h - an input that says what is done: each step reads the bytes that it needs. */
#ifndef FUZZ_SCRIPT_H
#define FUZZ_SCRIPT_H

#include <stdint.h>

struct script {
	const uint8_t *at;
	const uint8_t *end;
};

/* The next bytes of a script, which ends in zeros. */
uint8_t script_byte(struct script *script);
uint32_t script_word(struct script *script);
/* Mostly 0; else a small step up or down, or something wild. */
uint32_t script_error(struct script *script);
/* Mostly what it should be. */
uint64_t script_instead(struct script *script, uint64_t value);

#endif
