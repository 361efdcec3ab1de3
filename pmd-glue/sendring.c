/* sendring.c - see sendring.h. The ring's layout is packet_mmap's, version 2, as DPDK's driver asks for it. */
#include <errno.h>
#include <linux/if_packet.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <pmd-glue/sendring.h>

/* The kernel skips frames that it finds wrong only if the driver has told it to. */
static bool skips_wrong_frames(int socket)
{
	int skips = 0;
	socklen_t size = sizeof(skips);
	return getsockopt(socket, SOL_PACKET, PACKET_LOSS, &skips, &size) == 0 && skips != 0;
}

bool sendring_open(struct sendring *ring, int socket, uint32_t block, uint32_t slot, uint32_t frames)
{
	if (socket < 0 || !skips_wrong_frames(socket))
		return false;
	*ring = (struct sendring){.socket = socket, .slot = slot, .frames = frames,
		.size = (size_t)block * (frames / (block / slot))}; /* whole blocks */
	return true;
}

bool sendring_map(struct sendring *ring)
{
	void *memory;
	if (ring->memory)
		return true;
	/* The kernel maps a socket's rings together or not at all, the one for receiving first. */
	memory = mmap(NULL, 2 * ring->size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->socket, 0);
	if (memory == MAP_FAILED)
		return false;
	ring->memory = memory;
	ring->slots = (uint8_t *)memory + ring->size;
	return true;
}

void sendring_close(struct sendring *ring)
{
	if (ring->memory)
		munmap(ring->memory, 2 * ring->size);
	ring->memory = NULL;
}

int sendring_kick(const struct sendring *ring)
{
	ssize_t sent = sendto(ring->socket, NULL, 0, MSG_DONTWAIT, NULL, 0);
	if (sent < 0)
		return -errno;
	return sent > 0;
}

/* The frame in a slot; NULL: none that waits. */
static struct tpacket2_hdr *frame_waiting(const struct sendring *ring, uint32_t n)
{
	struct tpacket2_hdr *frame = (struct tpacket2_hdr *)(void *)(ring->slots + (size_t)n * ring->slot);
	return __atomic_load_n(&frame->tp_status, __ATOMIC_ACQUIRE) == TP_STATUS_SEND_REQUEST ? frame : NULL;
}

uint32_t sendring_waiting(const struct sendring *ring)
{
	uint32_t count = 0;
	for (uint32_t n = 0; n < ring->frames; n++)
		count += frame_waiting(ring, n) != NULL;
	return count;
}

uint32_t sendring_discard(const struct sendring *ring, uint32_t *length)
{
	uint32_t count = 0;
	*length = 0;
	for (uint32_t n = 0; n < ring->frames; n++) {
		const struct tpacket2_hdr *frame = frame_waiting(ring, n);
		if (frame && frame->tp_len > *length)
			*length = frame->tp_len;
	}
	for (uint32_t n = 0; *length > 0 && n < ring->frames; n++) {
		struct tpacket2_hdr *frame = frame_waiting(ring, n);
		if (!frame || frame->tp_len != *length)
			continue;
		frame->tp_len = 0; /* without an Ethernet header it is wrong */
		count++;
	}
	return count;
}
