/* SPDX-License-Identifier: BSD-3-Clause */
/* adversary.h - one on the links who keeps frames: he repeats any frame of the whole run, whenever
 * he likes, from anywhere, and to others than it was for; and he holds frames back, and lets them
 * go later. He cannot forge, and changes nothing but addresses.
 *
 * I1. What he does follows from the seed of the network.
 */
#ifndef SIM_ADVERSARY_H
#define SIM_ADVERSARY_H

#include <stdbool.h>
#include <sim/star.h>

/* A frame is sent, and comes to the switch at `when`. Returns true if it is held back: then the
 * parcel is the adversary's. */
bool adversary_sees(struct star *star, struct parcel *parcel, uint64_t when);
void adversary_free(struct star *star);

#endif
