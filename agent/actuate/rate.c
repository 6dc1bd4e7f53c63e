/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/actuate/rate.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "util.h"

uint64_t
rate_parse(const char *text)
{
    static const struct {
        const char *unit;
        double factor;
    } units[] = {
        { "", 1 }, { "bit", 1 }, { "kbit", 1e3 }, { "Mbit", 1e6 },
        { "Gbit", 1e9 },
    };
    char *tail;
    double value = strtod(text, &tail);

    if (isdigit((unsigned char) text[0])) {
        for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
            double bps = value * units[i].factor;

            if (!strcmp(tail, units[i].unit) && bps >= 1e3 && bps <= 4e12) {
                return bps;
            }
        }
    }
    return 0;
}
