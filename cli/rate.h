/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CLI_RATE_H
#define CLI_RATE_H 1

/* Rates of options, such as "100Gbit". */

/* Parses the value of an option that is stored in an int64_t, in bits per
 * second. */
char *rate_option(const char *text, void *bps);

#endif /* cli/rate.h */
