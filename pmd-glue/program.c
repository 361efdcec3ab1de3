/* SPDX-License-Identifier: BSD-3-Clause */
/* program.c - see program.h. */
#include <pmd-glue/program.h>

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <stddef.h>

#include <rte_ip.h>
#include <rte_udp.h>

#include <pmd-glue/kinds.h>

/* Jumps to the end, wherever it will be. */
#define JUMP_DROP   254u
#define JUMP_ACCEPT 253u

static void program_add(
	struct program *program, uint16_t code, uint32_t operand, unsigned yes, unsigned no)
{
	program->code[program->count++] =
		(struct sock_filter){code, (uint8_t)yes, (uint8_t)no, operand};
}

static void program_load(struct program *program, uint16_t size_and_mode, uint32_t at)
{
	program_add(program, BPF_LD | size_and_mode, at, 0, 0);
}

static void program_jump(struct program *program, uint32_t value, unsigned yes, unsigned no)
{
	program_add(program, BPF_JMP | BPF_JEQ | BPF_K, value, yes, no);
}

static void program_require(struct program *program, uint32_t value)
{
	program_jump(program, value, 0, JUMP_DROP);
}

/* Frames that others on this interface send, as they leave: those for this host are for us as
 * well. */
static void program_outgoing(struct program *program, const uint8_t *own)
{
	program_load(program, BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE));
	program_jump(program, PACKET_OTHERHOST, JUMP_DROP, 0);
	program_jump(program, PACKET_OUTGOING, 0, 6);
	program_load(program, BPF_B | BPF_ABS, 0);
	program_add(program, BPF_JMP | BPF_JSET | BPF_K, 1, 4, 0);
	program_load(program, BPF_H | BPF_ABS, 0);
	program_require(program, (uint32_t)own[0] << 8 | own[1]);
	program_load(program, BPF_W | BPF_ABS, 2);
	program_require(program,
		(uint32_t)own[2] << 24 | (uint32_t)own[3] << 16 | (uint32_t)own[4] << 8 | own[5]);
}

/* The EtherType; X is then the bytes of a tag that stands before it. */
static void program_type(struct program *program)
{
	program_add(program, BPF_LDX | BPF_W | BPF_IMM, 0, 0, 0);
	program_load(program, BPF_H | BPF_ABS, TAG_AT);
	program_jump(program, ETH_P_8021Q, 0, 2);
	program_add(program, BPF_LDX | BPF_W | BPF_IMM, TAG, 0, 0);
	program_load(program, BPF_H | BPF_ABS, TAG_AT + TAG);
}

static void program_finish(struct program *program)
{
	unsigned accept = program->count, drop = accept + 1;
	program_add(program, BPF_RET | BPF_K, UINT32_MAX, 0, 0);
	program_add(program, BPF_RET | BPF_K, 0, 0, 0);
	for (unsigned n = 0; n < accept; n++) {
		struct sock_filter *code = &program->code[n];
		if (code->jt >= JUMP_ACCEPT)
			code->jt = (uint8_t)((code->jt == JUMP_DROP ? drop : accept) - n - 1);
		if (code->jf >= JUMP_ACCEPT)
			code->jf = (uint8_t)((code->jf == JUMP_DROP ? drop : accept) - n - 1);
	}
}

static uint32_t key_word(const uint8_t *key)
{
	return (uint32_t)key[0] << 24 | (uint32_t)key[1] << 16 | (uint32_t)key[2] << 8 | key[3];
}

void program_select(
	struct program *program, const uint8_t *own, const struct port_selection *wanted)
{
	const uint8_t *key = wanted->key;

	program->count = 0;
	program_outgoing(program, own);
	program_type(program);
	if (wanted->udp_port != 0)
		program_jump(program, ETH_P_ARP, JUMP_ACCEPT, 0);
	program_require(program, wanted->ethertype);
	if (wanted->udp_port != 0) {
		program_load(program, BPF_B | BPF_IND,
			FRAME_HEADER + (uint32_t)offsetof(struct rte_ipv4_hdr, next_proto_id));
		program_require(program, IPPROTO_UDP);
		program_load(program, BPF_H | BPF_IND,
			FRAME_HEADER + (uint32_t)(sizeof(struct rte_ipv4_hdr) +
						  offsetof(struct rte_udp_hdr, dst_port)));
		program_require(program, wanted->udp_port);
	}
	program_load(program, BPF_W | BPF_IND, wanted->at);
	program_jump(program, key_word(key), 1, 0);
	program_require(program, PORT_ANY_NODE);
	if (!wanted->any_process) {
		program_load(program, BPF_W | BPF_IND, wanted->at + 4);
		program_require(program, key_word(key + 4));
	}
	program_finish(program);
}
