/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BENCH_PS_H
#define BENCH_PS_H 1

/* How fast a parameter server is, beside plain sockets.
 *
 * A server process and this one exchange values over the loopback interface.
 * Beside each exchange the same bytes go over a plain socket to a process
 * that does nothing with them, in turns, so that what disturbs the one
 * disturbs the other; figures are medians.
 *
 * Prints a table, or one JSON object.  Returns NULL or a message. */

#include <stdbool.h>

char *bench_ps(bool json);

#endif /* trainer/ps/bench-ps.h */
