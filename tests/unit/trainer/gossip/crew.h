/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CREW_H
#define CREW_H 1

/* Trainers without a server, several of one job, as processes of a test, and
 * what they say.
 *
 *    crew_choose_ports(&crew, n);
 *    for (int i = 0; i < n; i++) {
 *        int out = crew_fork(&crew, i);
 *
 *        if (out >= 0) {
 *            crew_become(out);
 *            ...be it, and then crew_exit()...
 *        }
 *    }
 *    ...crew_find_line()...
 *    crew_await(&crew, i, 0);
 *
 * All of them end with the test (ps-processes.h). */

#include <stdbool.h>
#include <stdio.h>

#include "tests/unit/trainer/ps/ps-processes.h"

#define CREW_MAX 66
#define CREW_LINE 512

struct crew {
    char names[CREW_MAX * 24];  /* HOST:PORT of each, by commas. */
    int ports[CREW_MAX];
    pid_t pids[CREW_MAX];
    FILE *out[CREW_MAX];        /* What each writes. */
};

/* Reserves ports. */
void crew_choose_ports(struct crew *, int n);

/* Starts member 'i'.  Returns where it is to write in its process, and -1 in
 * ours. */
int crew_fork(struct crew *, int i);

/* Makes this process a trainer that writes to 'out' and gets no input. */
void crew_become(int out);

/* Ends it, with a line about 'error' unless that is NULL.  Frees 'error'. */
void crew_exit(char *error) __attribute__((noreturn));

/* The next line of member 'i' with 'text' in it. */
bool crew_find_line(struct crew *, int i, const char *text,
                    char line[CREW_LINE]);

/* Waits for its end, without hearing more of it: it must not wait for us to
 * read. */
void crew_await(struct crew *, int i, int status);

#endif /* tests/unit/trainer/gossip/crew.h */
