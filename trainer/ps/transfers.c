/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/transfers.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "trainer/report.h"

/* Microseconds for which 'fd' has had something to send or unacknowledged;
 * 0 if the kernel does not say. */
static uint64_t
busy_us(int fd)
{
    struct tcp_info info;
    socklen_t length = sizeof info;

    memset(&info, 0, sizeof info);
    getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length);
    return info.tcpi_busy_time;
}

void
transfers_begin(struct transfers *t, int fd)
{
    t->busy_us = busy_us(fd);
}

void
transfers_header(struct transfers *t)
{
    t->header_us = report_monotonic_us();
}

/* A connection that was opened anew has been busy for less. */
void
transfers_end(struct transfers *t, int fd)
{
    uint64_t busy = busy_us(fd);
    int64_t received = report_monotonic_us() - t->header_us;

    t->seconds = ((busy > t->busy_us ? busy - t->busy_us : 0) + received)
                 * 1e-6;
}
