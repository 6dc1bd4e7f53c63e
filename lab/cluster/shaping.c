/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/cluster/shaping.h"

#include <inttypes.h>

#include "openvswitch/dynamic-string.h"
#include "util.h"

#define N_LEVELS 8

/* Queue limit of one level of a port: the windows of several connections, so
 * that waiting packets are not dropped. */
#define QUEUE_BYTES 1000000

void
shaping_put(struct ds *commands, const char *dev, int64_t rate_bps, int mtu)
{
    /* 250 us of the rate, at least two packets: HTB counts whole packets and
     * would otherwise be late for each one. */
    long long burst = MAX(rate_bps / 8 / 4000, 2 * (mtu + 14));

    ds_put_format(commands,
                  "qdisc add dev %s root handle 1: htb default 17 r2q 1000\n"
                  "class add dev %s parent 1: classid 1:1 htb rate %"PRId64
                  "bit ceil %"PRId64"bit burst %lld cburst %lld"
                  " quantum 60000\n",
                  dev, dev, rate_bps, rate_bps, burst, burst);
    for (int level = 0; level < N_LEVELS; level++) {
        ds_put_format(commands,
                      "class add dev %s parent 1:1 classid 1:1%d htb"
                      " rate %"PRId64"bit ceil %"PRId64"bit prio %d"
                      " burst %d cburst %lld quantum 60000\n"
                      "qdisc add dev %s parent 1:1%d handle 2%d:"
                      " bfifo limit %d\n"
                      "filter add dev %s parent 1: protocol ip prio %d u32"
                      " match ip tos 0x%02x 0xe0 flowid 1:1%d\n",
                      dev, level, MAX(rate_bps / 50, 1000), rate_bps, level,
                      2 * (mtu + 14), burst,
                      dev, level, level, QUEUE_BYTES,
                      dev, level + 1, (N_LEVELS - 1 - level) << 5, level);
    }
    ds_put_format(commands,
                  "filter add dev %s parent 1: protocol arp prio %d u32"
                  " match u32 0 0 flowid 1:10\n", dev, N_LEVELS + 1);
}
