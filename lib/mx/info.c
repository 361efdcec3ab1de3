/* SPDX-License-Identifier: BSD-3-Clause */
/* info.c - mx_get_info(), and what programs ask of a board without an endpoint. */
#include <mx/state.h>

#include <stdio.h>
#include <string.h>

#include <host/interface.h>
#include <host/statistics.h>

#define PIO_SEND_MAX 128

/* A question, and where its answer goes. */
struct question {
	mx_get_info_key_t key;
	mx_error_handler_t handler; /* the endpoint's; NULL: there is none */
	struct board board;         /* of keys that ask for one */
	void *out;
	uint32_t length; /* of out */
	uint64_t needed; /* bytes, after MX_BAD_INFO_LENGTH */
};

/* --- answers */

static mx_return_t answer_bytes(struct question *question, const void *bytes, uint32_t length)
{
	question->needed = length;
	if (length > question->length)
		return MX_BAD_INFO_LENGTH;
	memcpy(question->out, bytes, length);
	return MX_SUCCESS;
}

static mx_return_t answer_number(struct question *question, uint32_t number)
{
	return answer_bytes(question, &number, sizeof(number));
}

static mx_return_t answer_text(struct question *question, const char *text)
{
	question->needed = 1;
	if (question->length == 0)
		return MX_BAD_INFO_LENGTH;
	(void)snprintf(question->out, question->length, "%s", text);
	return MX_SUCCESS;
}

static mx_return_t answer_nic_count(struct question *question)
{
	return answer_number(question, boards_count());
}

static mx_return_t answer_nic_ids(struct question *question)
{
	const uint32_t count = boards_count();
	uint64_t nic_ids[HANDLE_INTERFACES + 1];
	struct board board;

	question->needed = (count + 1) * sizeof(nic_ids[0]);
	if (question->needed > question->length)
		return MX_BAD_INFO_LENGTH;
	for (uint32_t i = 0; i < count; i++) {
		mx_return_t code = board_open(i, &board);

		if (code != MX_SUCCESS)
			return code;
		nic_ids[i] = nic_id_of(board.nid);
	}
	nic_ids[count] = 0;
	return answer_bytes(question, nic_ids, (uint32_t)question->needed);
}

static mx_return_t answer_product_code(struct question *question)
{
	return answer_text(question, "Postern");
}

static mx_return_t answer_part_number(struct question *question)
{
	return answer_text(question, question->board.device);
}

static mx_return_t answer_serial_number(struct question *question)
{
	char text[sizeof("4294967295")];

	if (question->length == sizeof(uint32_t))
		return answer_number(question, question->board.nid);
	(void)snprintf(text, sizeof(text), "%u", question->board.nid);
	return answer_text(question, text);
}

static mx_return_t answer_numa_node(struct question *question)
{
	const int socket = question->board.socket;

	return answer_number(question, socket < 0 ? UINT32_MAX : (uint32_t)socket);
}

/* --- counters: those of the board's interface, their low 32 bits */

struct counters {
	char *labels; /* NULL: not asked for */
	char *values; /* NULL: not asked for; of any alignment */
	uint32_t count, room;
};

static void counter_take(void *context, const char *name, const char *help, uint64_t value)
{
	struct counters *counters = context;
	const uint32_t low = (uint32_t)value;
	const size_t at = counters->count++;

	(void)help;
	if (at >= counters->room)
		return;
	if (counters->labels)
		(void)snprintf(counters->labels + at * MX_MAX_STR_LEN, MX_MAX_STR_LEN, "%s", name);
	if (counters->values)
		memcpy(counters->values + at * sizeof(low), &low, sizeof(low));
}

static bool counters_read(const struct question *question, struct counters *counters)
{
	counters->count = 0;
	return interface_stats(&mx_front, question->board.handle, counter_take, counters) ==
	       ANSWER_OK;
}

static mx_return_t answer_counters(struct question *question)
{
	const size_t size = question->key == MX_COUNTERS_LABELS ? MX_MAX_STR_LEN : sizeof(uint32_t);
	struct counters all = {0};

	if (!counters_read(question, &all))
		return MX_NOT_INITIALIZED;
	if (question->key == MX_COUNTERS_COUNT)
		return answer_number(question, all.count);
	question->needed = all.count * size;
	if (question->needed > question->length)
		return MX_BAD_INFO_LENGTH;
	all.room = all.count;
	*(question->key == MX_COUNTERS_LABELS ? &all.labels : &all.values) = question->out;
	return counters_read(question, &all) ? MX_SUCCESS : MX_NOT_INITIALIZED;
}

/* --- keys */

static const struct fact {
	mx_return_t (*answer)(struct question *question); /* NULL: `number` is the answer */
	uint32_t number;
	bool of_board; /* in_val names one */
} facts[] = {
	[MX_NIC_COUNT] = {.answer = answer_nic_count},
	[MX_NIC_IDS] = {.answer = answer_nic_ids},
	[MX_MAX_NATIVE_ENDPOINTS] = {.number = ENDPOINTS_MAX},
	[MX_NATIVE_REQUESTS] = {.number = UINT32_MAX},
	[MX_COUNTERS_COUNT] = {.answer = answer_counters, .of_board = true},
	[MX_COUNTERS_LABELS] = {.answer = answer_counters, .of_board = true},
	[MX_COUNTERS_VALUES] = {.answer = answer_counters, .of_board = true},
	[MX_PRODUCT_CODE] = {.answer = answer_product_code, .of_board = true},
	[MX_PART_NUMBER] = {.answer = answer_part_number, .of_board = true},
	[MX_SERIAL_NUMBER] = {.answer = answer_serial_number, .of_board = true},
	[MX_PORT_COUNT] = {.number = 1, .of_board = true},
	[MX_PIO_SEND_MAX] = {.number = PIO_SEND_MAX},
	[MX_COPY_SEND_MAX] = {.number = COPY_SEND_MAX},
	[MX_NUMA_NODE] = {.answer = answer_numa_node, .of_board = true},
	[MX_NET_TYPE] = {.number = MX_NET_ETHER},
	/* The same on all hosts, because Open MPI connects equal ones only. */
	[MX_LINE_SPEED] = {.number = MX_SPEED_10G, .of_board = true},
};

static const char function[] = "mx_get_info";

/* The board that in_val names, else the endpoint's, whose number *board is. Returns false if there
 * is none; then *code is the call's result. */
static bool board_number(const struct question *question, const void *in_val, uint32_t in_length,
	const struct mx_endpoint *endpoint, uint32_t *board, mx_return_t *code)
{
	if (in_val && in_length == sizeof(*board))
		memcpy(board, in_val, sizeof(*board));
	else if (in_val)
		*code = error_raise(question->handler, MX_BAD_INFO_LENGTH, function,
			"in_len is %u; give the 4 bytes of a board's number", in_length);
	else if (!endpoint)
		*code = error_raise(NULL, MX_BOARD_UNKNOWN, function,
			"in_val is NULL, and so is the endpoint; give one of them");
	return in_val ? in_length == sizeof(*board) : endpoint != NULL;
}

static mx_return_t info_answer(const struct fact *fact, struct question *question)
{
	mx_return_t code =
		fact->answer ? fact->answer(question) : answer_number(question, fact->number);

	switch (code) {
	case MX_SUCCESS:
		return MX_SUCCESS;
	case MX_BAD_INFO_LENGTH:
		return error_raise(question->handler, code, function,
			"out_len is %u, but key %u needs %llu bytes; give that many",
			question->length, (unsigned)question->key,
			(unsigned long long)question->needed);
	default:
		return board_raise(question->handler, function, 0, code);
	}
}

mx_return_t mx_get_info(mx_endpoint_t endpoint, mx_get_info_key_t key, void *in_val,
	uint32_t in_len, void *out_val, uint32_t out_len)
{
	struct question question = {.key = key, .out = out_val, .length = out_len};
	mx_return_t code = MX_SUCCESS;
	uint32_t board = 0;

	if (!front_is_open(&mx_front))
		return error_raise_closed(function);
	if (endpoint) {
		if (!endpoint_enter(endpoint, function, &code))
			return code;
		question.handler = endpoint->handler;
		board = endpoint->board;
		endpoint_leave(endpoint);
	}
	if (key < MX_NIC_COUNT || (unsigned)key >= sizeof(facts) / sizeof(facts[0]))
		return error_raise(question.handler, MX_BAD_INFO_KEY, function,
			"key %u is unknown; give one of enum mx_get_info_key", (unsigned)key);
	if (!out_val)
		return error_raise(question.handler, MX_BAD_INFO_VAL, function,
			"out_val is NULL; give memory for the answer");
	if (facts[key].of_board) {
		if (!board_number(&question, in_val, in_len, endpoint, &board, &code))
			return code;
		code = board_open(board, &question.board);
		if (code != MX_SUCCESS)
			return board_raise(question.handler, function, board, code);
	}
	return info_answer(&facts[key], &question);
}

/* --- boards without an endpoint: the handle is the board's number */

mx_return_t mx_open_board(int board, mx_endpt_handle_t *handle)
{
	mx_return_t code = board_check("mx_open_board", (uint32_t)board);

	if (code != MX_SUCCESS)
		return code;
	if (!handle)
		return error_raise(NULL, MX_BAD_INFO_VAL, "mx_open_board",
			"handle is NULL; give memory for it");
	*handle = board;
	return MX_SUCCESS;
}

mx_return_t mx__get_mapper_state(mx_endpt_handle_t handle, mx_mapper_state_t *state)
{
	mx_return_t code = board_check("mx__get_mapper_state", (uint32_t)handle);

	if (code != MX_SUCCESS)
		return code;
	if (!state)
		return error_raise(NULL, MX_BAD_INFO_VAL, "mx__get_mapper_state",
			"state is NULL; give memory for it");
	/* Ethernet has no mapper: its address is zeros on all hosts, so they are one network. */
	*state = (mx_mapper_state_t){.board_number = (uint32_t)handle,
		.map_version = 1,
		.num_hosts = 1,
		.network_configured = 1,
		.routes_valid = 1};
	return MX_SUCCESS;
}

int mx__regcache_clean(void *address, size_t length)
{
	(void)address;
	(void)length;
	return 0;
}

mx_return_t mx_board_number_to_nic_id(uint32_t board_number, uint64_t *nic_id)
{
	static const char name[] = "mx_board_number_to_nic_id";
	mx_return_t code = board_check(name, board_number);
	struct board board;

	if (code != MX_SUCCESS)
		return code;
	if (!nic_id)
		return error_raise(
			NULL, MX_BAD_INFO_VAL, name, "nic_id is NULL; give memory for it");
	code = board_open(board_number, &board);
	if (code != MX_SUCCESS)
		return board_raise(NULL, name, board_number, code);
	*nic_id = nic_id_of(board.nid);
	return MX_SUCCESS;
}

bool board_of_nic_id(uint64_t nic_id, uint32_t *number)
{
	const uint32_t count = boards_count();
	struct board board;

	for (uint32_t i = 0; i < count; i++) {
		if (board_open(i, &board) != MX_SUCCESS || nic_id_of(board.nid) != nic_id)
			continue;
		*number = i;
		return true;
	}
	return false;
}

mx_return_t mx_nic_id_to_board_number(uint64_t nic_id, uint32_t *board_number)
{
	static const char name[] = "mx_nic_id_to_board_number";

	if (!front_is_open(&mx_front))
		return error_raise_closed(name);
	if (!board_number)
		return error_raise(
			NULL, MX_BAD_INFO_VAL, name, "board_number is NULL; give memory for it");
	if (board_of_nic_id(nic_id, board_number))
		return MX_SUCCESS;
	return error_raise(NULL, MX_BOARD_UNKNOWN, name,
		"no board of this host has NIC id %012llx; PTL_IFACE_NAME names the boards",
		(unsigned long long)nic_id);
}
