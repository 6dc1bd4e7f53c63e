/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_SCENARIO_COJOB_H
#define LAB_SCENARIO_COJOB_H 1

/* Cojobs of a scenario whose jobs run arbitrary commands.
 *
 *
 * Motivation
 * ==========
 *
 * A search of stagecoach-trainer announces the ends of its stages.  Other
 * commands do not, so the scenario sets the number of iterations after which a
 * stage ends, and the lab counts the iterations of the jobs.
 *
 *    {"name": "ddp", "weight": 1, "start_s": 0, "end": "exit",
 *     "stages": [{"iterations": 20}, {"iterations": 60}],
 *     "jobs": [{"name": "t0", "hosts": ["h0", "h1"],
 *               "command": ["python3", "%scenario/ddp.py", "--rank", "%rank"],
 *               "log": "csv:%log/ddp-%rank.csv,iteration=step"}]}
 *
 * One process of a job runs on each of its hosts, by rank.  "%" and a word of
 * scenario_words are replaced in the command and in "log", the argument of
 * "stagecoach run --log" (wire/log-spec.h).
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain data, owned by the scenario, immutable after it is read. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_at;
struct scenario;

/* Words that may follow a "%", null-terminated: "rank" of the process, "world"
 * (number of processes of the job), "hosts" (their addresses, separated by
 * commas), "master" (the first address), "port" (a port that only this job
 * uses), "scenario" (folder of the scenario), "log" (folder of the lab's
 * logs), "trainer" (path of stagecoach-trainer).  "%%" is a percent sign. */
enum scenario_word {
    WORD_RANK, WORD_WORLD, WORD_HOSTS, WORD_MASTER, WORD_PORT, WORD_SCENARIO,
    WORD_LOG, WORD_TRAINER, N_WORDS
};
extern const char *const scenario_words[];

struct scenario_job {
    char *name;
    size_t n_hosts;
    int *hosts;                 /* Host of each process, by rank. */
    size_t n_command;
    char **command;             /* Before replacements. */
    char *log;                  /* Before replacements; NULL for no log. */
};

struct scenario_cojob {
    double start_s;             /* Seconds from the beginning of the run. */
    char *name;
    double weight;
    bool until_exit;            /* The last stage ends with the processes and
                                 * not with its iterations. */
    size_t n_stages;
    int64_t *stages;            /* Iteration at which each stage ends,
                                 * rising. */
    size_t n_jobs;
    struct scenario_job *jobs;
};

/* Reads the optional member "cojobs" of 'top' into 's', whose hosts and
 * searches must have been read. */
void scenario_read_cojobs(struct scenario *s, const struct json_at *top);
void scenario_cojob_uninit(struct scenario_cojob *);

/* Returns the number of processes of the cojob on 'host'. */
int scenario_cojob_processes(const struct scenario_cojob *, int host);

/* Returns 'text' with each word replaced by its element of 'values'; the
 * caller frees. */
char *scenario_substitute(const char *text, const char *const values[]);

#endif /* scenario/scenario-cojob.h */
