/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the parser of the agent's reply about links.  The reply may come from
 * any process that listens at the agent's socket. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "tests/fuzz/must.h"
#include "trainer/gossip/agent-links.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *reply = copy_text(data, size);
    cJSON *result = agent_links_parse(reply);
    double bps = agent_links_find(result, "10.0.0.2");

    must(isnan(bps) || (bps > 0 && isfinite(bps)));
    cJSON_Delete(result);
    free(reply);
    return 0;
}
