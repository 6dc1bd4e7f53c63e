/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/actuate/tc-classes.h"

#include <linux/if_ether.h>

#include "wire/shim-protocol.h"
#include "util.h"

#define QUANTUM 60000
#define TICK_NS 64              /* Unit of HTB's times, as in /proc/net/psched
                                 * of every kernel since 2.6.30. */

struct tc_filter
tc_filter_of(int i)
{
    int level = i % TC_LEVELS;
    uint32_t bits = TC_LEVELS - 1 - level;

    if (i == TC_N_FILTERS - 1) {
        return (struct tc_filter) { ETH_P_ARP, 0, 0, TC_CONTROL_LEVEL };
    } else if (i < TC_LEVELS) {
        return (struct tc_filter) { ETH_P_IP, 7u << 21, bits << 21, level };
    }
    return (struct tc_filter) { ETH_P_IPV6, 7u << 25, bits << 25, level };
}

/* Returns the time that 'bytes' take at 'bps', in ticks of HTB. */
static uint32_t
ticks(uint64_t bytes, uint64_t bps)
{
    double n = bytes * 8e9 / bps / TICK_NS;

    return n < UINT32_MAX ? n : UINT32_MAX;
}

struct tc_class
tc_class_of(const struct tc_plan *plan, int mtu, int level)
{
    uint64_t rate = plan->rate_bps;
    uint64_t min_rate = (double) rate * plan->min_share / SHIM_MIN_SHARE_UNIT;

    /* 250 us at the rate, but at least two packets: HTB counts whole packets
     * and would otherwise be late at each of them. */
    uint64_t two = 2 * (mtu + ETH_HLEN);
    uint64_t burst = MAX(rate / 8 / 4000, two);

    if (level < 0) {
        return (struct tc_class) {
            .id = TC_LINK_CLASS,
            .parent = TC_ROOT,
            .rate_bps = rate,
            .ceil_bps = rate,
            .burst = burst,
            .ceil_burst = burst,
        };
    }
    return (struct tc_class) {
        .id = TC_LEVEL_CLASS(level),
        .parent = TC_LINK_CLASS,
        .rate_bps = MIN(MAX(min_rate, TC_MIN_RATE_BPS), rate),
        .ceil_bps = rate,
        .priority = level,
        .burst = two,
        .ceil_burst = burst,
    };
}

struct tc_htb_opt
tc_class_options(const struct tc_class *c)
{
    return (struct tc_htb_opt) {
        .rate = { .rate = MIN(c->rate_bps / 8, UINT32_MAX),
                  .linklayer = TC_LINKLAYER_ETHERNET },
        .ceil = { .rate = MIN(c->ceil_bps / 8, UINT32_MAX),
                  .linklayer = TC_LINKLAYER_ETHERNET },
        .buffer = ticks(c->burst, c->rate_bps),
        .cbuffer = ticks(c->ceil_burst, c->ceil_bps),
        .quantum = QUANTUM,
        .prio = c->priority,
    };
}
