/* SPDX-License-Identifier: BSD-3-Clause */
/* libfabric.c - see libfabric.h. libfabric loads each lib*-fi.so of the directories that
 * FI_PROVIDER_PATH names, or else of the directory libfabric beside itself; FI_PROVIDER names the
 * providers that it uses, or with ^ those that it does not. */
#include "libfabric.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROVIDER  "postern"
#define FILE_NAME "libpostern-fi.so"

static void say(struct libfabric *libfabric, bool found, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void say(struct libfabric *libfabric, bool found, const char *format, ...)
{
	va_list arguments;

	libfabric->found = found;
	va_start(arguments, format);
	(void)vsnprintf(libfabric->text, sizeof(libfabric->text), format, arguments);
	va_end(arguments);
}

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] != '\0' ? value : NULL;
}

/* The directory of providers of the library that the loader finds. */
static bool own_directory(char *directory, size_t size)
{
	void *library = dlopen("libfabric.so.1", RTLD_LAZY | RTLD_LOCAL);
	void *symbol = library ? dlsym(library, "fi_getinfo") : NULL;
	const char *end;
	Dl_info found;
	bool known = symbol && dladdr(symbol, &found) != 0 && found.dli_fname &&
		     (end = strrchr(found.dli_fname, '/')) &&
		     (size_t)snprintf(directory, size, "%.*s/libfabric",
			     (int)(end - found.dli_fname), found.dli_fname) < size;

	if (library)
		dlclose(library);
	return known;
}

/* Is the provider in one of these directories, which colons separate? */
static bool path_has_it(const char *path, char *directory, size_t size)
{
	char file[600];

	while (*path != '\0') {
		const size_t length = strcspn(path, ":");

		(void)snprintf(directory, size, "%.*s", (int)length, path);
		(void)snprintf(file, sizeof(file), "%s/" FILE_NAME, directory);
		if (access(file, R_OK) == 0)
			return true;
		path += length + (path[length] == ':');
	}
	return false;
}

/* Does FI_PROVIDER leave the provider out? Names stand between commas, layers behind semicolons. */
static bool is_left_out(const char *providers)
{
	const bool without = providers[0] == '^';
	bool named = false;

	providers += without;
	while (*providers != '\0') {
		const size_t length = strcspn(providers, ",;");

		named |= length == strlen(PROVIDER) && strncmp(providers, PROVIDER, length) == 0;
		providers += length + (providers[length] != '\0');
	}
	return named == without;
}

void libfabric_look(struct libfabric *libfabric)
{
	const char *path = variable("FI_PROVIDER_PATH"), *providers = variable("FI_PROVIDER");
	char own[256], directory[256];

	if (!own_directory(own, sizeof(own)))
		say(libfabric, false,
			"is not installed: apt-get install libfabric1, and install Postern's "
			"package libpostern-fi");
	else if (path && !path_has_it(path, directory, sizeof(directory)))
		say(libfabric, false,
			FILE_NAME " is not in FI_PROVIDER_PATH=%s: leave that out, or set it to "
				  "the directory of the provider",
			path);
	else if (!path && !path_has_it(own, directory, sizeof(directory)))
		say(libfabric, false,
			FILE_NAME " is not in %s: install Postern's package libpostern-fi, or set "
				  "FI_PROVIDER_PATH to the directory of the provider, such as "
				  "/usr/local/lib/libfabric",
			own);
	else if (providers && is_left_out(providers))
		say(libfabric, false,
			"FI_PROVIDER=%s leaves the provider out: set FI_PROVIDER=" PROVIDER,
			providers);
	else
		say(libfabric, true, "finds " FILE_NAME " in %s", directory);
}
