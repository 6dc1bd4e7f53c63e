/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/duration.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

#define MAX_MS 31536000000.0

bool
duration_parse(const char *text, int64_t *msp)
{
    char *unit;
    double ms = strtod(text, &unit);

    if (unit == text || !unit[0] || unit[1]) {
        return false;
    }
    ms *= (*unit == 'd' ? 86400000 : *unit == 'h' ? 3600000
           : *unit == 'm' ? 60000 : *unit == 's' ? 1000 : NAN);
    if (!(ms >= 1 && ms <= MAX_MS)) {
        return false;
    }
    *msp = ms;
    return true;
}

char *
duration_option(const char *text, void *ms)
{
    return duration_parse(text, ms)
               ? NULL
               : message(
                   "\"%s\" is not a duration; expected one such as 90s, 15m, "
                   "24h, 7d up to a year",
                   text);
}
