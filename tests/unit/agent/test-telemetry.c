/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/registry.h"
#include "agent/telemetry.h"
#include "tests/unit/unit-test.h"
#include "util.h"

UNIT_TEST(a_report_has_the_jobs_with_news)
{
    static const struct {
        const char *what;
        size_t hash;
        uint64_t bytes;
        long long at;
        bool moved; /* Before. */
        int64_t counters_ms;
        bool due;
    } cases[] = {
        { "nothing is new", 1, 5, 800, true, 1000, false },
        { "nothing is new, and the controller is older", 1, 5, 200, true, 0,
          true },
        { "nothing is new for a second", 1, 5, 1000, true, 1000, true },
        { "the same, a little early", 1, 5, 901, true, 200, true },
        { "an iteration", 2, 5, 200, true, 1000, true },
        { "bytes after bytes", 1, 6, 400, true, 1000, false },
        { "bytes after bytes, for few hosts", 1, 6, 200, true, 200, true },
        { "the same, a little early", 1, 6, 101, true, 200, true },
        { "bytes after bytes, later", 1, 6, 400, true, 500, true },
        { "the first bytes", 1, 6, 200, false, 1000, true },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct job_reported told = {
            .hash = 1, .bytes = 5, .moved = cases[i].moved, .at = 10000
        };
        const struct job_reported now = { .hash = cases[i].hash,
                                          .bytes = cases[i].bytes,
                                          .at = 10000 + cases[i].at };

        if (telemetry_is_due(&told, &now, cases[i].counters_ms)
            != cases[i].due) {
            fail_msg("%s", cases[i].what);
        }
    }
}
