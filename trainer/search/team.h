/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SEARCH_TEAM_H
#define SEARCH_TEAM_H 1

/* The processes of one job: servers and workers, or peers.
 *
 * The servers start first, since the workers need their ports, which the
 * kernel chooses.  Peers, under a scheme without a server, all start first and
 * then get the ports.  The workers connect, get their initial weights and wait
 * for each other.  Then they receive iteration targets.  All have a token of
 * the job's own.  A process that ends by itself ends the others by signals,
 * and is named by one message.
 *
 * A search has many teams and waits for all of them:
 *
 *    team = team_create(&config);
 *    team_until(team, 100);            // Sent when all workers wait.
 *    team_start(team);
 *    while (team_state(team) != TEAM_GONE) {
 *        ...poll() the descriptors of team_poll_fds(), or signals...
 *        error = team_run(team, 0);    // Calls config.report().
 *        if (team_has_reached(team, 100)) {
 *            team_stop(team, 5000);
 *        }
 *    }
 *    team_destroy(team);
 *
 * "train" and "compare" have one at a time, and wait in team_run(),
 * team_await() and team_end().
 *
 * The team copies nothing of 'config', which must outlive it.  Returned
 * messages belong to the caller.  No process of the team is left after
 * team_destroy().  One thread. */

#include <stdbool.h>
#include <stdint.h>

struct cJSON;
struct pollfd;
struct search_host;
struct team;

enum team_state {
    TEAM_SERVERS, /* Servers, or peers, are starting. */
    TEAM_WORKERS, /* Workers are starting. */
    TEAM_RUNNING, /* All workers have had weights. */
    TEAM_ENDING,  /* Requested to end. */
    TEAM_GONE,    /* All processes have ended. */
};

struct team_config {
    const char *program;     /* Path of the trainer; NULL: this program. */
    const char *wrapper;     /* Path of stagecoach, whose "run" starts it;
                              * or NULL. */
    const char *cojob, *job; /* Names for agents, or NULL. */
    int n_servers;           /* 0: the workers are peers. */
    int n_workers;
    const struct search_host *const *hosts; /* Of servers, then of workers;
                                             * NULL: this machine. */
    const char *const *server_arguments;    /* End with a null pointer. */
    const char *const *worker_arguments;

    /* Called with each event that worker 'rank' reports, or NULL. */
    void (*report)(void *aux, int rank, const struct cJSON *event);

    /* Whether standard error is read, and not inherited: then the message
     * about a process has its last line, and 'print' is called with each other
     * line, or NULL to print it on this process's standard error. */
    bool reads_errors;
    void (*print)(void *aux, const char *line);

    /* Returns true if team_await() or team_end() should give up, or NULL. */
    bool (*stopped)(void *aux);
    void *aux;
};

/* Returns a number of an event, NAN if it has none of this name. */
double team_number(const struct cJSON *event, const char *name);

struct team *team_create(const struct team_config *);

/* Kills the processes that still run. */
void team_destroy(struct team *);

/* Starts the processes, which become ready while events follow each other
 * within a minute. */
void team_start(struct team *);

enum team_state team_state(const struct team *);

/* Handles events for up to 'seconds', or until a signal arrives, and sends
 * signals that are due.  Returns NULL, or a message that names the process
 * that has failed. */
char *team_run(struct team *, double seconds);

/* Stores the descriptors to poll, two of each process. */
void team_poll_fds(const struct team *, struct pollfd *);

/* Runs until all workers wait for a target.  Returns NULL, also if 'stopped'
 * returned true, or a message. */
char *team_await(struct team *);

/* Sets the target of the workers. */
void team_until(struct team *, int64_t iterations);

/* Iteration at which worker 0 waits, -1 if it does not. */
int64_t team_paused(const struct team *);

/* Returns true if all workers wait at 'iteration' or later: those of an
 * asynchronous scheme do not wait for each other. */
bool team_has_reached(const struct team *, int64_t iteration);

/* Request a regular end, which is forced by signals after 'grace_ms', and an
 * end by signals. */
void team_stop(struct team *, int grace_ms);
void team_kill(struct team *, int grace_ms);

/* Requests a regular end and waits for it, at most 30 seconds.  Returns NULL,
 * also if 'stopped' returned true, or a message. */
char *team_end(struct team *);

#endif /* trainer/search/team.h */
