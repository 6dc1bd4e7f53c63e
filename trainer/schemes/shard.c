/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/schemes/shard.h"

#include <inttypes.h>

#include "base/memory.h"

char *
shard_check(uint64_t n_parameters, uint64_t n_servers)
{
    uint64_t least = (n_parameters + SHARD_MAX - 1) / SHARD_MAX;

    if (n_parameters > SHARD_MAX_TOTAL) {
        return message("%" PRIu64 " parameters; expected at most %" PRIu64 "",
                       n_parameters, SHARD_MAX_TOTAL);
    }
    return n_servers < least ? message("%" PRIu64 " parameters with %" PRIu64
                                       " server%s; expected at least "
                                       "%" PRIu64 " servers",
                                       n_parameters, n_servers,
                                       n_servers > 1 ? "s" : "", least)
                             : NULL;
}
