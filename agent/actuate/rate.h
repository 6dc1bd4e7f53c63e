/* SPDX-License-Identifier: Apache-2.0 */

#ifndef AGENT_RATE_H
#define AGENT_RATE_H 1

/* The rate of a link as people write it. */

#include <stdint.h>

#define RATE_RULE "1kbit to 4000Gbit is allowed"

/* Returns the bits per second of 'text', such as "50Mbit" or "50000000", or 0
 * if it is no rate. */
uint64_t rate_parse(const char *text);

#endif /* agent/actuate/rate.h */
