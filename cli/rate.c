/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/rate.h"

#include "base/json-check.h"
#include "base/memory.h"

char *
rate_option(const char *text, void *bps_)
{
    int64_t *bps = bps_;

    *bps = json_rate_parse(text);
    return *bps ? NULL : message("\"%s\" is not " JSON_RATE_RULE, text);
}
