/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/duration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MS 31536000000.0

static const struct {
    char unit;
    double ms;
} units[] = {
    { 'd', 86400000 }, { 'h', 3600000 }, { 'm', 60000 }, { 's', 1000 },
};

#define N_UNITS (sizeof units / sizeof *units)

bool
duration_parse(const char *text, int64_t *msp)
{
    char *end;
    double number = strtod(text, &end);

    if (end == text || strlen(end) != 1 || !isfinite(number)) {
        return false;
    }
    for (size_t i = 0; i < N_UNITS; i++) {
        double ms = number * units[i].ms;

        if (*end == units[i].unit && ms >= 1 && ms <= MAX_MS) {
            *msp = ms;
            return true;
        }
    }
    return false;
}
