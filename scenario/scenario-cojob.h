/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_SCENARIO_COJOB_H
#define LAB_SCENARIO_COJOB_H 1

/* Cojobs of a scenario whose jobs are any command.
 *
 *
 * Motivation
 * ==========
 *
 * A search of our own trainer says where its stages end.  A command that
 * somebody else wrote does not, so the scenario says after how many iterations
 * a stage ends, and who watches the job counts them.
 *
 *    {"name": "ddp", "weight": 1, "start_s": 0, "end": "exit",
 *     "stages": [{"iterations": 20}, {"iterations": 60}],
 *     "jobs": [{"name": "t0", "hosts": ["h0", "h1"],
 *               "command": ["python3", "%scenario/ddp.py", "--rank", "%rank"],
 *               "log": "csv:%log/ddp-%rank.csv,iteration=step"}]}
 *
 * One process of a job runs on each of its hosts, in the order in which they
 * are named.  What follows a "%" in a command's words and in "log", which is
 * what "stagecoach run --log" takes (wire/log-spec.h), is replaced;
 * see scenario_words.
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

/* What a command's words may have after a "%", null-terminated: "rank" of the
 * process, "world" (processes of the job), "hosts" (their addresses, joined by
 * commas), "master" (the first of these), "port" (one that is the job's
 * alone), "scenario" (the scenario's folder), "log" (where the lab keeps its
 * logs), "trainer" (stagecoach-trainer).  "%%" is a percent sign. */
enum scenario_word {
    WORD_RANK, WORD_WORLD, WORD_HOSTS, WORD_MASTER, WORD_PORT, WORD_SCENARIO,
    WORD_LOG, WORD_TRAINER, N_WORDS
};
extern const char *const scenario_words[];

struct scenario_job {
    char *name;
    size_t n_hosts;
    int *hosts;                 /* Of the processes, by rank. */
    size_t n_command;
    char **command;             /* With words to be replaced. */
    char *log;                  /* As well; NULL if there is none. */
};

struct scenario_cojob {
    double start_s;             /* From the beginning of the run. */
    char *name;
    double weight;
    bool until_exit;            /* The last stage ends with the processes and
                                 * not with its iterations. */
    size_t n_stages;
    int64_t *stages;            /* Iterations where each ends; they grow. */
    size_t n_jobs;
    struct scenario_job *jobs;
};

/* Reads member "cojobs" of 'top', if it is there, into 's', whose hosts and
 * searches are known. */
void scenario_read_cojobs(struct scenario *s, const struct json_at *top);
void scenario_cojob_uninit(struct scenario_cojob *);

/* Processes of 'cojob' on 'host'. */
int scenario_cojob_processes(const struct scenario_cojob *, int host);

/* Returns 'text' with each word replaced by its element of 'values'; the
 * caller frees. */
char *scenario_substitute(const char *text, const char *const values[]);

#endif /* scenario/scenario-cojob.h */
