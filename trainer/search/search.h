/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SEARCH_H
#define SEARCH_H 1

/* Runs a search: starts its jobs, halves them, announces its stages.
 *
 * The network is scheduled by the stages of such searches, so a search
 * announces their begin and end to the controller (wire/announce.h), which may
 * be away, and reports them to its caller by events.
 *
 * The first stage begins with the search, before its jobs have started: what
 * they transfer first is little, and the stage waits for it.  Each job trains
 * as soon as its own workers are ready.
 *
 *    struct search_config config = { .spec = spec, .hosts = hosts, ... };
 *    error = search_execute(&config, &result);
 *
 * search_execute() blocks until the search and all its processes have ended.
 * Meanwhile it handles SIGTERM, SIGINT and SIGCHLD; the first two end the
 * search.  One thread. */

#include "wire/announce.h"

struct cJSON;
struct search_hosts;
struct search_spec;

struct search_config {
    const struct search_spec *spec;
    const struct search_hosts *hosts;
    const char *trainer;        /* Path of stagecoach-trainer. */
    const char *wrapper;        /* Path of stagecoach, which starts the jobs
                                 * with "run"; NULL to start them directly. */
    const char *checkpoints;    /* Folder for one of each job, at its end, on
                                 * the hosts of its servers; or NULL. */
    announce_func *announce;    /* Called with each change of the search;
                                 * NULL for none. */
    void (*announce_again)(void *announce_aux);     /* Called at least four
                                 * times a second: repeats announcements that
                                 * did not succeed.  NULL for none. */
    void *announce_aux;

    /* Called with each event of docs/interfaces.md, which it must not keep;
     * NULL for none. */
    void (*event)(void *aux, const struct cJSON *);
    void *event_aux;
};

struct search_result {
    int best;                   /* Best trial, -1 if all jobs failed. */
    int n_failed;               /* Number of failed jobs. */
    int signal;                 /* Signal that ended the search, 0 if none. */
    int n_stages;               /* That have ended. */
};

/* Returns NULL, or a message if the search could not begin. */
char *search_execute(const struct search_config *, struct search_result *);

/* Finds program 'name' in 'folder' or, if that is NULL, beside the running
 * program, installed or in a build tree.  Returns its path, or NULL. */
char *search_find_program(const char *folder, const char *name);

#endif /* trainer/search/search.h */
