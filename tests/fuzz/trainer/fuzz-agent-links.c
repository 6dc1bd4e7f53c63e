/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the parser of the agent's reply about links.  The reply may come from
 * any process that listens at the agent's socket. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/must.h"
#include "trainer/gossip/agent-links.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *reply = copy_text(data, size);
    struct agent_links_view view;
    bool useful = agent_links_parse(reply, &view);

    must(useful || (!view.n && isnan(view.available_bps)));
    must(view.n >= 0 && view.n <= AGENT_LINKS_MAX);
    for (int i = 0; i < view.n; i++) {
        double bps = agent_links_find(&view, view.paths[i].remote);

        must(bps > 0 && isfinite(bps));
    }
    free(reply);
    return 0;
}
