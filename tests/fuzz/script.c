/* SPDX-License-Identifier: BSD-3-Clause */
/* script.c - see script.h. */
#include "script.h"

uint8_t script_byte(struct script *script)
{
	return script->at < script->end ? *script->at++ : 0;
}

uint32_t script_word(struct script *script)
{
	uint32_t low = script_byte(script);

	return low | (uint32_t)script_byte(script) << 8;
}

uint32_t script_error(struct script *script)
{
	uint8_t byte = script_byte(script);

	if (byte < 128)
		return 0;
	if (byte < 192)
		return (uint32_t)(byte - 128) % 8 - 4u;
	return byte < 224 ? 1u << (byte % 32) : UINT32_MAX >> (byte % 32);
}

uint64_t script_instead(struct script *script, uint64_t value)
{
	uint8_t byte = script_byte(script);

	if (byte < 192)
		return value;
	if (byte < 208)
		return value + byte - 200;
	return byte < 232 ? UINT64_C(1) << (byte % 64) : UINT64_MAX >> (byte % 64);
}
