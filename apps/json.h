/* SPDX-License-Identifier: BSD-3-Clause */
/* json.h - what the programs share of writing JSON. */
#ifndef APPS_JSON_H
#define APPS_JSON_H

/* Writes a string to standard output. Control characters cannot be in it but from a device's or a
 * machine's name; bytes that are not UTF-8, which JSON is, become question marks. */
void json_text(const char *text);

#endif
