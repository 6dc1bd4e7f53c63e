/* SPDX-License-Identifier: Apache-2.0 */

#include "base/progress-bar.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define WIDTH 24 /* Characters of the bar. */

void
progress_bar_begin(struct progress_bar *bar, const char *label,
                   const char *noun)
{
    *bar = (struct progress_bar){ .label = label,
                                  .noun = noun,
                                  .begin = clock_monotonic_s(),
                                  .terminal = isatty(STDERR_FILENO) };
    if (bar->terminal) {
        fprintf(stderr, "\r%s...\033[K", label);
    }
}

void
progress_bar_update(void *bar_, size_t n, size_t n_all)
{
    struct progress_bar *bar = bar_;
    double seconds = bar->terminal ? clock_monotonic_s() - bar->begin : 0;
    int done;

    if (seconds - bar->shown < 0.25) {
        return;
    }
    bar->shown = seconds;
    done = n * WIDTH / n_all;
    fprintf(stderr, "\r%s [%.*s%.*s] %zu of %zu %ss", bar->label, done,
            "########################", WIDTH - done,
            "........................", n, n_all, bar->noun);
    if (n) {
        fprintf(stderr, ", %.0f s left", seconds / n * (n_all - n));
    }
    fputs("\033[K", stderr);
}

void
progress_bar_end(struct progress_bar *bar)
{
    if (bar->terminal) {
        fputs("\r\033[K", stderr);
    }
}
