/* SPDX-License-Identifier: BSD-3-Clause */
/* hold.c - see hold.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/log.h>
#include <base/remedy.h>
#include <pmd-glue/device.h>
#include <pmd-glue/eal.h>
#include <pmd-glue/hold.h>

struct hold {
	struct hold *next;
	char address[PCI_ADDRESS];
	pid_t process;
};

static struct hold *holds;

static bool hold_has(const char *address)
{
	for (const struct hold *hold = holds; hold; hold = hold->next)
		if (hold->process == getpid() && strcmp(hold->address, address) == 0)
			return true;
	return false;
}

/* Opens the card's file. Returns -1 if there can be none. */
static int hold_open(const char *address)
{
	char directory[PATH_MAX], path[PATH_MAX + NAME_MAX];
	eal_runtime_directory(directory, sizeof(directory));
	if (!eal_directory_make(directory)) /* I2 */
		return -1;
	snprintf(path, sizeof(path), "%s/postern-%s.lock", directory, address);
	return open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static void hold_complain(const char *address, int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	if (fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK && lock.l_pid > 0)
		log_error("%s: process %d has this card: end that process, or use another card",
			address, (int)lock.l_pid);
	else
		log_error("%s: a process outside this container has this card: end that process, "
			  "or use another card",
			address);
}

int hold_take(const char *given)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct hold *hold;
	char address[PCI_ADDRESS];
	int fd;
	device_address(given, address);
	if (hold_has(address))
		return 0;
	hold = malloc(sizeof(*hold));
	if (!hold) {
		log_error("%s: out of memory: %s", address, remedy_for_memory());
		return -1;
	}
	fd = hold_open(address);
	if (fd < 0)
		log_info("%s: cannot make sure that no other process has this card, because DPDK's "
			 "runtime directory cannot be used (%s)",
			address, strerror(errno));
	if (fd >= 0 && fcntl(fd, F_SETLK, &lock) != 0) {
		hold_complain(address, fd);
		close(fd);
		free(hold);
		return -1;
	}
	*hold = (struct hold){.next = holds, .process = getpid()};
	snprintf(hold->address, sizeof(hold->address), "%s", address);
	holds = hold;
	return 0;
}
