/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/net/heartbeat.h"

#define MAX_INTERVAL_US 1000000
#define PER_TIMEOUT 4

void
heartbeat_start(struct heartbeat *hb, int64_t timeout_us, int64_t now)
{
    hb->timeout_us = timeout_us;
    hb->sent_us = 0;
    hb->heard_us = now;
}

void
heartbeat_stop(struct heartbeat *hb)
{
    hb->heard_us = 0;
}

static int64_t
interval_us(const struct heartbeat *hb)
{
    int64_t part = hb->timeout_us / PER_TIMEOUT;

    return part && part < MAX_INTERVAL_US ? part : MAX_INTERVAL_US;
}

int64_t
heartbeat_next_us(const struct heartbeat *hb)
{
    return hb->sent_us + interval_us(hb);
}

bool
heartbeat_due(struct heartbeat *hb, int64_t now)
{
    bool due = !hb->sent_us || now >= heartbeat_next_us(hb);

    hb->sent_us = due ? now : hb->sent_us;
    return due;
}

void
heartbeat_heard(struct heartbeat *hb, int64_t now)
{
    hb->heard_us = now;
}

bool
heartbeat_is_silent(const struct heartbeat *hb, int64_t now)
{
    return hb->timeout_us && hb->heard_us
           && now - hb->heard_us > hb->timeout_us;
}

int64_t
heartbeat_silence_s(const struct heartbeat *hb, int64_t now)
{
    return (now - hb->heard_us) / 1000000;
}
