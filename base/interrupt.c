/* SPDX-License-Identifier: Apache-2.0 */

#include "base/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_int caught;

static void
on_signal(int number)
{
    caught = number;
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
}

void
interrupt_catch(void)
{
    struct sigaction action = { .sa_handler = on_signal,
                                .sa_flags = SA_RESTART };

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int
interrupt_caught(void)
{
    return caught;
}

int
interrupt_say(int number, size_t n, size_t n_all, const char *noun)
{
    fflush(stdout);
    fprintf(stderr, "interrupted after %zu", n);
    if (n_all) {
        fprintf(stderr, " of %zu", n_all);
    }
    fprintf(stderr, " %s%s\n", noun, (n_all ? n_all : n) == 1 ? "" : "s");
    return 128 + number;
}
