/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/progress/waiting.h"

#include "util.h"
#include "wire/shim-protocol.h"

#define BIN_S (SHIM_BIN_MS / 1000.)

static void
end_burst(struct waiting *w, uint64_t rate_bps)
{
    double busy = (w->last - w->first) * BIN_S;

    w->busy += busy;
    w->waited += MAX(0, busy - w->bytes * 8 / rate_bps);
    w->bytes = 0;
}

void
waiting_add_bins(struct waiting *w, uint64_t first,
                 const struct shim_bin bins[], size_t n, uint64_t rate_bps)
{
    double least = rate_bps / 8. * BIN_S * WAITING_LEAST;

    for (size_t i = 0; i < n && rate_bps; i++) {
        uint32_t bytes = MAX(bins[i].tx, bins[i].rx);

        if (w->bytes && first + i - w->last > WAITING_GAP) {
            end_burst(w, rate_bps);
        }
        if (bytes && bytes >= least) {
            w->first = w->bytes ? w->first : first + i;
            w->last = first + i;
            w->bytes += bytes;
        }
    }
}
