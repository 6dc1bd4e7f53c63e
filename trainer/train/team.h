/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TEAM_H
#define TEAM_H 1

/* The servers and workers, or the peers, of one job on this machine.
 *
 * "train" and "compare" run the real programs over loopback: each process of
 * the job is a child of this one, with a token of the job's own and ports that
 * the kernel chooses.  A child that dies ends the job at once, with one
 * message that names it and has its own last line on standard error.
 *
 *    error = team_start(&config, &team);       // Until all workers wait.
 *    team_say(team, "until 100\n");
 *    while (!error && !team_has_reached(team, 100)) {
 *        error = team_run(team, 0.1);          // Calls config.report().
 *    }
 *    error = error ? error : team_end(team);
 *    team_destroy(team);
 *
 * The team copies nothing of 'config', which must outlive it.  Returned
 * messages belong to the caller.  No process of the team is left after
 * team_destroy().  One thread. */

#include <stdbool.h>
#include <stdint.h>

struct cJSON;
struct team;

struct team_config {
    const char *program;        /* Path of the trainer; NULL: this program. */
    int n_servers;              /* 0: the workers are peers. */
    int n_workers;
    const char *const *server_arguments;        /* End with a null pointer. */
    const char *const *worker_arguments;

    /* Called with each event that worker 'rank' reports, or NULL. */
    void (*report)(void *aux, int rank, const struct cJSON *event);

    /* Called with each line that a process prints on standard error, except
     * those about its own death or another one's; NULL: the line is printed on
     * this process's standard error. */
    void (*print)(void *aux, const char *line);

    /* Returns true if the start, or the end, should be given up, or NULL. */
    bool (*stopped)(void *aux);
    void *aux;
};

/* Starts the processes and waits until all workers have weights and wait for a
 * target, while events follow each other within 30 seconds.  Returns NULL,
 * also if 'stopped' returned true, or a message.  Stores a team in any case.
 */
char *team_start(const struct team_config *, struct team **);

/* Kills the processes that still run. */
void team_destroy(struct team *);

/* Sends a line to the standard input of all workers. */
void team_say(struct team *, const char *line);

/* Handles reports for up to 'seconds', or until a signal arrives.  Returns
 * NULL, or a message that names the process that has failed. */
char *team_run(struct team *, double seconds);

/* Iteration at which worker 0 waits, -1 if it does not. */
int64_t team_paused(const struct team *);

/* Returns true if all workers wait at 'iteration' or later: those of an
 * asynchronous scheme do not wait for each other. */
bool team_has_reached(const struct team *, int64_t iteration);

/* Makes the workers, and then the servers, end, and waits for at most 30
 * seconds.  Returns NULL, also if 'stopped' returned true, or a message. */
char *team_end(struct team *);

#endif /* trainer/train/team.h */
