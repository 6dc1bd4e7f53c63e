/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TOP_FRAME_H
#define TOP_FRAME_H 1

/* What "stagecoach top" shows: a header, then the stages in their order, the
 * hosts and the ports of the order, from two samples of the controller.
 *
 * Rates and loads are differences between the samples.  A part that needs more
 * lines than its share of the screen shows its first rows. */

#include <stdbool.h>
#include <stddef.h>

struct ds;
struct json;

enum top_view { TOP_STATUS, TOP_ORDER, TOP_HOSTS, TOP_PORTS, N_TOP_VIEWS };

struct top_sample {
    struct json *views[N_TOP_VIEWS];    /* Replies, by view. */
    double at;                  /* Monotonic seconds. */
};

struct top_screen {
    int lines, columns;         /* 0: no limit. */
    const char *error;          /* Why the samples are old, or NULL. */
};

/* Appends the frame to 'out', its lines separated by newlines. */
void top_frame(const struct top_sample *before, const struct top_sample *now,
               const struct top_screen *, struct ds *out);

#endif /* cli/operator/top-frame.h */
