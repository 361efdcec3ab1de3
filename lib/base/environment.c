/* SPDX-License-Identifier: BSD-3-Clause */
/* environment.c - see environment.h. */
#include <base/environment.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

#include <base/log.h>

#define LENGTH(table) (sizeof(table) / sizeof((table)[0]))

/* The variables that front ends read, and those of other implementations of Portals, for which
 * users may have set them; begins: all whose names begin so. */
static const struct outer {
	const char *name;
	bool begins;
	enum trust trust;
} outers[] = {
	{"PTL_LIM_", true, TRUST_HARMLESS},
	{"PTL_ADI_HOSTS", false, TRUST_HARMLESS},
	{"PTL_ADI_RANK", false, TRUST_HARMLESS},
	{"PTL_ADI_EAGER", false, TRUST_HARMLESS},
	{"PTL_ADI_MEMORY", false, TRUST_HARMLESS},
	{"PTL_MX_HOSTNAME", false, TRUST_HARMLESS},
	{"PTL_MX_HOSTS", false, TRUST_FILE},
	{"MX_ERRORS_ARE_FATAL", false, TRUST_HARMLESS},
	{"MX_MAX_RETRIES", false, TRUST_HARMLESS},
	{"MX_ZOMBIE_SEND", false, TRUST_HARMLESS},
	{"PMI_RANK", false, TRUST_HARMLESS},
	{"PMI_SIZE", false, TRUST_HARMLESS},
	{"PMI_FD", false, TRUST_SOCKET},
	{"PMI_PORT", false, TRUST_HARMLESS},
	{"PMIX_NAMESPACE", false, TRUST_HARMLESS},
	{"PMIX_RANK", false, TRUST_HARMLESS},
	{"PTL_JOB", false, TRUST_HARMLESS},
	{"SLURM_STEP_NUM_TASKS", false, TRUST_HARMLESS},
	{"SLURM_STEP_NUM_NODES", false, TRUST_HARMLESS},
	{"OMPI_COMM_WORLD_SIZE", false, TRUST_HARMLESS},
	{"OMPI_COMM_WORLD_LOCAL_SIZE", false, TRUST_HARMLESS},
	{"OMPI_MCA_mca_base_envar_file_prefix", false, TRUST_HARMLESS},
	{"OMPI_MCA_mtl_ofi_provider_include", false, TRUST_HARMLESS},
	{"MPI_LOCALNRANKS", false, TRUST_HARMLESS},
	{"FI_PROVIDER", false, TRUST_HARMLESS},
	{"RANK", false, TRUST_HARMLESS},
	{"WORLD_SIZE", false, TRUST_HARMLESS},
	{"MASTER_ADDR", false, TRUST_HARMLESS},
	{"MASTER_PORT", false, TRUST_HARMLESS},
	{"PTL_ENABLE_MEM", false, TRUST_NONE},
	{"PTL_DISABLE_MEM_REG_CACHE", false, TRUST_NONE},
};

/* The row of a name of so many bytes; NULL: there is none. */
static const struct outer *outer_find(const char *name, size_t length)
{
	for (size_t i = 0; i < LENGTH(outers); i++) {
		size_t known = strlen(outers[i].name);

		if ((outers[i].begins ? length >= known : length == known) &&
			memcmp(name, outers[i].name, known) == 0)
			return &outers[i];
	}
	return NULL;
}

bool environment_is_privileged(void)
{
	return getauxval(AT_SECURE) != 0;
}

static bool names_kind(const char *name, const char *kind)
{
	size_t length = strlen(kind);

	return strncmp(name, kind, length) == 0 && (name[length] == ':' || name[length] == '\0');
}

static bool interface_is_harmless(const char *name)
{
	return names_kind(name, "node") || names_kind(name, "udp") ||
	       (strlen(name) < IF_NAMESIZE && if_nametoindex(name) != 0);
}

/* "FIRST-LAST"; the ports below are for root's services. */
static bool ports_are_everybodys(const char *range)
{
	return strtoul(range, NULL, 10) >= IPPORT_RESERVED;
}

/* What is written to a descriptor of the program's own would go into its files. */
static bool socket_is_the_users(const char *number)
{
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);
	char *end;
	long fd = strtol(number, &end, 10);

	return *number && !*end && fd >= 0 && fd <= INT32_MAX &&
	       getsockopt((int)fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       peer.uid == getuid() && peer.pid != getpid();
}

static const char *privileged_fault(enum trust trust, const char *item)
{
	switch (trust) {
	case TRUST_HARMLESS:
	case TRUST_FILE:
		return NULL;
	case TRUST_INTERFACE:
		return interface_is_harmless(item)
			       ? NULL
			       : "but this program has more rights than its user (setuid, setgid "
				 "or setcap), and then may use only node, node:NAME, udp, udp:NAME "
				 "and interfaces of the kernel: name one of those, or start the "
				 "program without these rights";
	case TRUST_PORTS:
		return ports_are_everybodys(item)
			       ? NULL
			       : "but this program has more rights than its user (setuid, setgid "
				 "or setcap), and then may use only ports from 1024 on: set it to "
				 "such, or start the program without these rights";
	case TRUST_SOCKET:
		return socket_is_the_users(item)
			       ? NULL
			       : "but this program has more rights than its user (setuid, setgid "
				 "or setcap), and that is no socket of another process of the "
				 "user: start the job by postern-run or mpiexec.hydra";
	case TRUST_NONE:
		break;
	}
	return "but this program has more rights than its user (setuid, setgid or setcap), and "
	       "then the variable is refused: unset it, or start the program without these rights";
}

const char *environment_fault(enum trust trust, const char *item)
{
	return environment_is_privileged() ? privileged_fault(trust, item) : NULL;
}

const char *environment_text(const char *name)
{
	const struct outer *outer = outer_find(name, strlen(name));
	const char *text = getenv(name);
	const char *fault;

	assert(outer);
	fault = text ? environment_fault(outer->trust, text) : NULL;
	if (!fault)
		return text;
	log_error("%s is \"%.64s\", %s", name, text, fault);
	return NULL;
}

bool environment_is_foreign(const char *name, size_t length)
{
	return outer_find(name, length) != NULL;
}

/* --- files --- */

/* This thread's rights before it took the real user's. */
struct rights {
	struct __user_cap_data_struct capabilities[_LINUX_CAPABILITY_U32S_3];
	uid_t uid;
	gid_t gid;
};

static struct __user_cap_header_struct own_thread(void)
{
	return (struct __user_cap_header_struct){.version = _LINUX_CAPABILITY_VERSION_3};
}

/* Of this thread only, which is what the kernel's calls do, unlike seteuid(). Returns false, and
 * has changed nothing, if the kernel refuses. */
static bool rights_lower(struct rights *rights)
{
	struct __user_cap_header_struct header = own_thread();
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, rights->capabilities) != 0)
		return false;
	/* Groups before users: the right to change them goes with the user. */
	rights->gid = (gid_t)setfsgid(getgid());
	rights->uid = (uid_t)setfsuid(getuid());
	memcpy(none, rights->capabilities, sizeof(none));
	for (size_t i = 0; i < LENGTH(none); i++)
		none[i].effective = 0;
	header = own_thread();
	if (syscall(SYS_capset, &header, none) == 0)
		return true;
	setfsuid(rights->uid);
	setfsgid(rights->gid);
	return false;
}

static void rights_restore(const struct rights *rights)
{
	struct __user_cap_header_struct header = own_thread();

	syscall(SYS_capset, &header, rights->capabilities);
	setfsuid(rights->uid);
	setfsgid(rights->gid);
}

/* Why an open file cannot be used; NULL: it can. */
static const char *file_fault(int fd)
{
	struct stat status;

	if (fstat(fd, &status) != 0)
		return strerror(errno);
	if (!S_ISREG(status.st_mode))
		return "it is not a regular file";
	if (environment_is_privileged() && status.st_uid != getuid() && status.st_uid != 0)
		return "it belongs to another user";
	if (environment_is_privileged() && (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return "other users can write to it";
	return NULL;
}

FILE *environment_open(const char *path, const char **reason)
{
	bool privileged = environment_is_privileged();
	struct rights rights;
	FILE *file = NULL;
	int fd = -1;

	if (!privileged || rights_lower(&rights)) {
		/* Without O_NONBLOCK a FIFO that nobody writes to blocks the program. */
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		*reason = fd < 0 ? strerror(errno) : file_fault(fd);
		if (privileged)
			rights_restore(&rights);
	} else {
		*reason = strerror(errno);
	}
	if (!*reason) {
		file = fdopen(fd, "r");
		*reason = file ? NULL : strerror(errno);
	}
	if (fd >= 0 && !file)
		close(fd);
	return file;
}

bool environment_runtime(char *path, size_t size)
{
	const char *given = getenv("XDG_RUNTIME_DIR");
	struct stat status;

	if (!environment_is_privileged())
		return (size_t)snprintf(path, size, "%s", given ? given : "") < size &&
		       path[0] == '/';
	if ((size_t)snprintf(path, size, "/run/user/%u", getuid()) < size &&
		lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == getuid())
		return true;
	path[0] = '\0';
	return false;
}
