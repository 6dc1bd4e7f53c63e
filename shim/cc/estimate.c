/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/cc/estimate.h"

#define PERIOD (5 * NS_PER_S)   /* Half the life of a minimum. */
#define ANY_RTT MS              /* Default. */
#define MAX_RTT NS_PER_S        /* A longer one is a pause. */

void
cc_rate_restart(struct cc_rate *r, uint64_t now, uint64_t bps)
{
    *r = (struct cc_rate) { .since = now, .bps = bps, .before = bps };
}

bool
cc_rate_step(struct cc_rate *r, uint64_t now, uint64_t window)
{
    uint64_t ns = now - r->since;

    if (ns >= window && ns) {
        r->before = r->bps;
        r->bps = (double) r->bytes * 8 * NS_PER_S / ns;
        r->bytes = 0;
        r->since = now;
        return true;
    }
    return false;
}

uint64_t
cc_rate_demand(const struct cc_rate *r, uint64_t granted, uint64_t line)
{
    uint64_t most = larger(r->bps, r->before), demand = most + most / 4;

    return most >= granted / 4 * 3 || demand > line ? line : demand;
}

void
cc_echo_sent(struct cc_echo *e, uint32_t stamp, uint64_t now)
{
    if (!e->waiting && (!e->sent_at || (int32_t) (stamp - e->stamp) > 0)) {
        e->stamp = stamp;
        e->sent_at = now;
        e->waiting = true;
    }
}

uint64_t
cc_echo_received(struct cc_echo *e, uint32_t echo, uint64_t now)
{
    if (!e->waiting || (int32_t) (echo - e->stamp) < 0) {
        return 0;
    }
    e->waiting = false;
    return echo == e->stamp ? now - e->sent_at : 0;
}

void
cc_rtt_sample(struct cc_rtt *rtt, uint64_t sample, uint64_t now)
{
    if (!sample || sample > MAX_RTT) {
        return;
    }
    if (!rtt->min || now - rtt->since > PERIOD) {
        rtt->older = rtt->min ? rtt->min : sample;
        rtt->min = sample;
        rtt->since = now;
    } else if (sample < rtt->min) {
        rtt->min = sample;
    }
}

uint64_t
cc_rtt_get(const struct cc_rtt *rtt)
{
    return (!rtt->min ? ANY_RTT
            : rtt->older < rtt->min ? rtt->older : rtt->min);
}
