/* SPDX-License-Identifier: Apache-2.0 */

#include "scenario/scenario-cojob.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/log-spec.h"
#include "scenario/scenario.h"
#include "base/json-check.h"

#define MAX_COJOBS 64
#define MAX_JOBS 64
#define MAX_STAGES 32
#define MAX_WORDS 256
#define MAX_ITERATIONS 1000000000LL

const char *const scenario_words[] = {
    [WORD_RANK] = "rank", [WORD_WORLD] = "world", [WORD_HOSTS] = "hosts",
    [WORD_MASTER] = "master", [WORD_PORT] = "port",
    [WORD_SCENARIO] = "scenario", [WORD_LOG] = "log",
    [WORD_TRAINER] = "trainer", [N_WORDS] = NULL,
};

/* The simulator reads scenarios too, and links without libopenvswitch. */
static void *
zalloc_array(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);

    if (!p) {
        abort();
    }
    return p;
}

/* Returns the word that 's', what follows a "%", begins with, or N_WORDS. */
static int
find_word(const char *s)
{
    int word = 0;

    while (word < N_WORDS && strncmp(s, scenario_words[word],
                                     strlen(scenario_words[word]))) {
        word++;
    }
    return word;
}

#define WORDS_ALLOWED "does not begin with one of %%rank, %%world, %%hosts, " \
                      "%%master, %%port, %%scenario, %%log, %%%%"

/* Returns where 'text' has a "%" that stands for nothing, or NULL. */
static const char *
find_bad_word(const char *text)
{
    for (const char *p = strchr(text, '%'); p; p = strchr(p, '%')) {
        if (p[1] == '%') {
            p += 2;
        } else if (find_word(p + 1) == N_WORDS) {
            return p;
        } else {
            p++;
        }
    }
    return NULL;
}

char *
scenario_substitute(const char *text, const char *const values[])
{
    size_t size;
    char *result;
    FILE *stream = open_memstream(&result, &size);

    if (!stream) {
        abort();
    }
    for (const char *p = text; *p; p++) {
        int word = *p == '%' ? find_word(p + 1) : N_WORDS;

        if (word < N_WORDS) {
            fputs(values[word], stream);
            p += strlen(scenario_words[word]);
        } else {
            fputc(*p, stream);
            p += *p == '%';
        }
    }
    fclose(stream);
    return result;
}

static void
read_hosts(const struct scenario *s, struct scenario_job *job,
           const struct json_at *at)
{
    const struct json_at *hosts = json_array(at, "hosts", 1,
                                             SCENARIO_MAX_HOSTS);

    job->n_hosts = json_n(hosts);
    job->hosts = zalloc_array(job->n_hosts, sizeof *job->hosts);
    for (size_t i = 0; i < job->n_hosts; i++) {
        char *name = json_at_name(json_element(hosts, i));
        int end = 0;

        if (name && (sscanf(name, "h%d%n", &job->hosts[i], &end) != 1
                     || name[end] || job->hosts[i] < 0
                     || job->hosts[i] >= s->n_hosts)) {
            json_fail(json_element(hosts, i), NULL, "no such host \"%s\"",
                      name);
            job->hosts[i] = 0;
        }
        free(name);
    }
}

static void
read_command(struct scenario_job *job, const struct json_at *at)
{
    const struct json_at *words = json_array(at, "command", 1, MAX_WORDS);

    job->n_command = json_n(words);
    job->command = zalloc_array(job->n_command + 1, sizeof *job->command);
    for (size_t i = 0; i < job->n_command; i++) {
        job->command[i] = json_at_string(json_element(words, i));
        if (job->command[i]) {
            const char *bad = find_bad_word(job->command[i]);

            if (bad) {
                json_fail(json_element(words, i), NULL,
                          "\"%s\" " WORDS_ALLOWED, bad);
            }
        }
    }
}

/* Where the lab's folders will be is not known yet, but the rest can be
 * right. */
static void
read_log(struct scenario_job *job, const struct json_at *at)
{
    static const char *const values[] = {
        [WORD_RANK] = "0", [WORD_WORLD] = "1", [WORD_HOSTS] = "10.77.0.1",
        [WORD_MASTER] = "10.77.0.1", [WORD_PORT] = "1",
        [WORD_SCENARIO] = "/scenario", [WORD_LOG] = "/log",
    };
    const char *bad;

    job->log = json_string_or(at, "log", NULL);
    bad = job->log ? find_bad_word(job->log) : NULL;
    if (bad) {
        json_fail(at, "log", "\"%s\" " WORDS_ALLOWED, bad);
    } else if (job->log) {
        char *text = scenario_substitute(job->log, values);
        struct log_spec spec;
        char *error = log_spec_parse("", text, &spec);

        if (error) {
            json_fail(at, "log", "%s", error + strlen(": "));
            free(error);
        } else {
            log_spec_uninit(&spec);
        }
        free(text);
    }
}

static void
read_jobs(const struct scenario *s, struct scenario_cojob *cojob,
          const struct json_at *at)
{
    const struct json_at *jobs = json_array(at, "jobs", 1, MAX_JOBS);

    cojob->n_jobs = json_n(jobs);
    cojob->jobs = zalloc_array(cojob->n_jobs, sizeof *cojob->jobs);
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        const struct json_at *job = json_element_object(jobs, i);

        cojob->jobs[i].name = json_name(job, "name");
        read_hosts(s, &cojob->jobs[i], job);
        read_command(&cojob->jobs[i], job);
        read_log(&cojob->jobs[i], job);
        for (size_t j = 0; cojob->jobs[i].name && j < i; j++) {
            if (cojob->jobs[j].name
                && !strcmp(cojob->jobs[i].name, cojob->jobs[j].name)) {
                json_fail(job, "name", "\"%s\" is the name of another job",
                          cojob->jobs[i].name);
            }
        }
    }
}

static void
read_stages(struct scenario_cojob *cojob, const struct json_at *at)
{
    const struct json_at *stages = json_array(at, "stages", 1, MAX_STAGES);
    int64_t least = 1;

    cojob->n_stages = json_n(stages);
    cojob->stages = zalloc_array(cojob->n_stages, sizeof *cojob->stages);
    for (size_t i = 0; i < cojob->n_stages; i++) {
        cojob->stages[i] = json_integer(json_element_object(stages, i),
                                        "iterations", least, MAX_ITERATIONS);
        least = cojob->stages[i] + 1;
    }
}

static void
check_name(const struct scenario *s, size_t i, const struct json_at *at)
{
    const char *name = s->cojobs[i].name;

    for (size_t j = 0; name && j < s->n_searches; j++) {
        if (s->searches[j].cojob && !strcmp(name, s->searches[j].cojob)) {
            json_fail(at, "name", "\"%s\" is the name of a search", name);
        }
    }
    for (size_t j = 0; name && j < i; j++) {
        if (s->cojobs[j].name && !strcmp(name, s->cojobs[j].name)) {
            json_fail(at, "name", "\"%s\" is the name of another cojob",
                      name);
        }
    }
}

/* Reports a host that cojob 'i' overfills. */
static void
check_slots(const struct scenario *s, size_t i, const struct json_at *at)
{
    for (int host = 0; host < s->n_hosts; host++) {
        int n = scenario_processes(s, host, s->n_searches, i + 1);

        if (n > s->slots) {
            json_fail(at, "jobs", "with all before them these make %d "
                      "processes on h%d, at most %d are allowed", n, host,
                      s->slots);
        }
    }
}

static void
read_cojob(struct scenario *s, size_t i, const struct json_at *at)
{
    static const char *const ends[] = { "exit", "iterations", NULL };
    struct scenario_cojob *cojob = &s->cojobs[i];

    cojob->name = json_name(at, "name");
    cojob->start_s = json_number_or(at, "start_s", 0, 3600, 0);
    cojob->weight = json_number_or(at, "weight", 0.001, 1e6, 1);
    cojob->until_exit = !json_enum_or(at, "end", ends, 0);
    read_stages(cojob, at);
    read_jobs(s, cojob, at);
    check_name(s, i, at);
    check_slots(s, i, at);
}

void
scenario_read_cojobs(struct scenario *s, const struct json_at *top)
{
    const struct json_at *cojobs = json_array_or_null(top, "cojobs", 1,
                                                      MAX_COJOBS);

    s->n_cojobs = json_n(cojobs);
    s->cojobs = zalloc_array(s->n_cojobs, sizeof *s->cojobs);
    for (size_t i = 0; i < s->n_cojobs; i++) {
        read_cojob(s, i, json_element_object(cojobs, i));
    }
}

void
scenario_cojob_uninit(struct scenario_cojob *cojob)
{
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        struct scenario_job *job = &cojob->jobs[i];

        for (size_t j = 0; j < job->n_command; j++) {
            free(job->command[j]);
        }
        free(job->command);
        free(job->log);
        free(job->hosts);
        free(job->name);
    }
    free(cojob->jobs);
    free(cojob->stages);
    free(cojob->name);
}

int
scenario_cojob_processes(const struct scenario_cojob *cojob, int host)
{
    int n = 0;

    for (size_t i = 0; i < cojob->n_jobs; i++) {
        for (size_t j = 0; j < cojob->jobs[i].n_hosts; j++) {
            n += cojob->jobs[i].hosts[j] == host;
        }
    }
    return n;
}
