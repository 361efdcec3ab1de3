/* sendring.h - the kernel's ring in which af_packet's driver gives frames to send, looked at from beside the driver.
 *
 * A frame that the interface refuses stays first in the ring: the kernel tries it again at each call, and nothing behind it
 * leaves. That is right for an interface that is busy, and goes on for ever with a frame that it never takes, such as one that is
 * larger than the other end of a veth takes. The driver counts such frames as sent.
 *
 * Owned by the port's poll core, which calls the driver as well: nobody else is at frames that wait. (Slots of frames on their way
 * are freed by the kernel at any time.)
 */
#ifndef PMD_GLUE_SENDRING_H
#define PMD_GLUE_SENDRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sendring {
	int socket;
	void *memory;   /* the driver's rings, mapped once more; NULL: not yet */
	size_t size;    /* of one of its two rings */
	uint8_t *slots; /* of the ring for sending */
	uint32_t slot;  /* bytes */
	uint32_t frames;
};

/* socket: the driver's; slot and frames as it was told, block: bytes of one block. False: this ring cannot be looked at. */
bool sendring_open(struct sendring *ring, int socket, uint32_t block, uint32_t slot, uint32_t frames);
void sendring_close(struct sendring *ring);
/* Before frames in it are looked at: most rings never need it, and a process would seem to have twice their memory. False: not now. */
bool sendring_map(struct sendring *ring);
/* Has the kernel send what waits. 0: nothing does; 1: some has left, and more may wait; -errno: ENOBUFS when the interface has refused
 * the first frame. */
int sendring_kick(const struct sendring *ring);
uint32_t sendring_waiting(const struct sendring *ring); /* frames */
/* Throws away the longest of the frames that wait, all of that length, which leave the ring at the next kick. Interfaces refuse
 * frames for being too long: those go, which would be refused after the first one, and then that one itself. Returns how many;
 * *length: bytes from the Ethernet header on. */
uint32_t sendring_discard(const struct sendring *ring, uint32_t *length);

#endif
