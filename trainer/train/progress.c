/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/train/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define MARK_S 5                /* Time between two marks. */
#define MIN_BAR 10              /* Characters between the brackets. */
#define MAX_BAR 40

void
progress_init(struct progress *p, double now, int64_t first, int64_t total)
{
    p->iteration = first;
    p->marks[0] = p->marks[1] = (struct progress_mark) { now, first, total };
}

void
progress_count(struct progress *p, double now, int64_t iteration,
               int64_t total)
{
    double seconds = now - p->marks[0].time;

    p->iteration = iteration;
    if (seconds > 0 && iteration > p->marks[0].iteration) {
        p->iterations_s = (iteration - p->marks[0].iteration) / seconds;
        p->samples_s = (total - p->marks[0].total) / seconds * p->share;
        p->eta_s = iteration < p->target
                   ? (p->target - iteration) / p->iterations_s : 0;
    }
    if (now - p->marks[1].time >= MARK_S) {
        p->marks[0] = p->marks[1];
        p->marks[1] = (struct progress_mark) { now, iteration, total };
    }
}

bool
progress_rises(struct progress *p, int64_t iteration, double loss)
{
    bool known = p->first_loss > 0;

    p->loss = loss;
    if (!known) {
        p->first_loss = p->lowest_loss = isfinite(loss) ? loss : 0;
        p->lowest_at = iteration;
    } else if (loss < p->lowest_loss) {
        p->lowest_loss = loss;
        p->lowest_at = iteration;
    } else if (!p->rose_at
               && !(loss <= fmax(p->first_loss, 2 * p->lowest_loss))) {
        p->rose_at = iteration;
        return true;
    }
    return false;
}

/* Appends "WORD FORMAT" to the text, unless 'value' is unknown. */
static void
append(char **text, const char *separator, const char *format, double value)
{
    if (isfinite(value)) {
        char *part = message(format, value), *longer;

        longer = message("%s%s%s", *text, separator, part);
        free(*text);
        free(part);
        *text = longer;
    }
}

static char *
numbers(const struct progress *p, const char *separator)
{
    char *text = message("%"PRId64"/%"PRId64, p->iteration, p->target);
    long left = isfinite(p->eta_s) && p->eta_s < 1e9 ? lround(p->eta_s) : -1;

    append(&text, separator,
           p->iterations_s < 10 ? "%.2f it/s" : "%.0f it/s", p->iterations_s);
    append(&text, separator, "%.0f samples/s", p->samples_s);
    append(&text, separator, "loss %.4f", p->loss);
    append(&text, separator, "accuracy %.3f", p->accuracy);
    if (left >= 0) {
        char *longer = left >= 3600
                       ? message("%s%sETA %ld:%02ld:%02ld", text, separator,
                                 left / 3600, left / 60 % 60, left % 60)
                       : message("%s%sETA %ld:%02ld", text, separator,
                                 left / 60, left % 60);

        free(text);
        text = longer;
    }
    return text;
}

char *
progress_line(const struct progress *p)
{
    return numbers(p, ", ");
}

char *
progress_bar(const struct progress *p, int width)
{
    double done = p->target > 0 && p->iteration < p->target
                  ? (double) p->iteration / p->target : 1;
    char *text = numbers(p, "  "), *percent, *line;
    int n, n_done;
    char bar[MAX_BAR + 1];

    percent = message(" %3.0f%%  ", floor(100 * done));
    n = width - (int) (2 + strlen(percent) + strlen(text));
    n = n > MAX_BAR ? MAX_BAR : n;
    if (n >= MIN_BAR) {
        n_done = done * n;
        memset(bar, ' ', n);
        memset(bar, '=', n_done);
        if (n_done < n) {
            bar[n_done] = '>';
        }
        line = message("[%.*s]%s%s", n, bar, percent, text);
    } else {
        line = message("%.*s", width > 0 ? width : 0, text);
    }
    free(percent);
    free(text);
    return line;
}
