/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/net/transfers.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/clock.h"

/* Returns the time for which 'fd' had data to send or unacknowledged, in
 * microseconds; 0 if unknown. */
static uint64_t
busy_us(int fd)
{
    struct tcp_info info = { .tcpi_busy_time = 0 };
    socklen_t length = sizeof info;

    getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length);
    return info.tcpi_busy_time;
}

void
transfers_begin(struct transfers *t, int fd)
{
    t->busy_us = busy_us(fd);
    t->received_us = t->both_us = 0;
}

void
transfers_header(struct transfers *t, int fd)
{
    t->header_us = clock_monotonic_us();
    t->header_busy_us = busy_us(fd);
}

/* After a reconnection the new time is less: 0. */
static uint64_t
time_since(uint64_t now, uint64_t then)
{
    return now > then ? now - then : 0;
}

void
transfers_end(struct transfers *t, int fd)
{
    uint64_t busy = busy_us(fd);

    t->received_us += clock_monotonic_us() - t->header_us;
    t->both_us += time_since(busy, t->header_busy_us);
    t->seconds = (time_since(busy, t->busy_us)
                  + time_since(t->received_us, t->both_us))
                 * 1e-6;
}
