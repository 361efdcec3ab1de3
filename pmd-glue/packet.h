/* packet.h - what is known of a kernel interface without opening it. */
#ifndef PMD_GLUE_PACKET_H
#define PMD_GLUE_PACKET_H

#include <stdbool.h>

/* What a process that may not open one is told. */
#define PACKET_NEEDS "needs CAP_NET_RAW and CAP_NET_ADMIN: run as root or setcap cap_net_raw,cap_net_admin+ep PROGRAM"

bool packet_may_open(void);
bool packet_is_up(const char *interface);

#endif
