/* packet.h - what is known of a kernel interface without opening it. */
#ifndef PMD_GLUE_PACKET_H
#define PMD_GLUE_PACKET_H

#include <stdbool.h>

bool packet_may_open(void); /* has this process CAP_NET_RAW? */
bool packet_is_up(const char *interface);

#endif
