/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SEARCH_H
#define SEARCH_H 1

/* Runs a search: starts its jobs, halves them, tells the world.
 *
 *
 * Motivation
 * ==========
 *
 * This is the search whose stages the network is scheduled for, so it says
 * when they begin and end: to the controller by announce.h, which may be
 * away, and to whoever started the search through events.
 *
 * All jobs start, connect and wait before the first stage begins, so that
 * starting up is part of no stage.
 *
 *
 * Usage
 * =====
 *
 *    struct search_config config = { .spec = spec, .hosts = hosts, ... };
 *    error = search_execute(&config, &result);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * search_execute() blocks until the search has ended and no process of it is
 * left.  Meanwhile SIGTERM, SIGINT and SIGCHLD are its own; the first two end
 * the search.  One thread. */

#include <stdbool.h>

#include "wire/announce.h"

struct cJSON;
struct search_hosts;
struct search_spec;

struct search_config {
    const struct search_spec *spec;
    const struct search_hosts *hosts;
    const char *trainer;        /* Path of stagecoach-trainer. */
    const char *wrapper;        /* Path of stagecoach, to start jobs by its
                                 * "run"; NULL to start them directly. */
    announce_func *announce;    /* Gets each change of the search.  NULL: no
                                 * announcements. */
    void *announce_aux;

    /* Gets each event of docs/interfaces.md, an object that it may not
     * keep.  NULL: nobody. */
    void (*event)(void *aux, const struct cJSON *);
    void *event_aux;
};

struct search_result {
    int best;                   /* Trial, -1 if all jobs failed. */
    int n_failed;               /* Jobs. */
    int signal;                 /* That ended the search, 0 if none. */
};

/* Returns NULL, or a message if the search could not begin. */
char *search_execute(const struct search_config *, struct search_result *);

/* Finds program 'name' in 'folder' or, if that is NULL, beside the running
 * program, installed or in a build tree.  Returns its path, or NULL. */
char *search_find_program(const char *folder, const char *name);

#endif /* trainer/search/search.h */
