/* SPDX-License-Identifier: Apache-2.0 */

#include "scenario/scenario.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-check.h"
#include "base/memory.h"
#include "scenario/random-placements.h"
#include "scenario/random-searches.h"
#include "trainer/search/hosts.h"
#include "trainer/search/spec.h"
#include "wire/log-spec.h"

/* Limits of a software switch, see docs/notes/kernel.md.  Above them a run
 * would measure the processor, not the order. */
#define MAX_RATE_SMALL_MTU 200000000LL
#define MAX_RATE 500000000LL
#define MAX_RATE_KERNEL 2500000000LL /* Nothing but the kernel forwards. */
#define SMALL_MTU 1500

#define MAX_COJOBS 64
#define MAX_JOBS 64
#define MAX_STAGES 32
#define MAX_WORDS 256
#define MAX_ITERATIONS 1000000000LL
#define MAX_LEAVES 16
#define MAX_SPINES 8
#define MAX_OVER 100

static const char *const fabric_names[] = { "ovs", "bridge", NULL };
static const char *const datapath_names[] = { "userspace", "kernel", NULL };
static const char *const queue_names[] = { "strict", "fifo", "ecn", NULL };
static const char *const actuator_names[] = { "shim", "bpf", "observe", NULL };
static const char *const host_names[] = { "shim", "bpf", "observe", "none",
                                          NULL };

static const char *const scenario_words[] = {
    [WORD_RANK] = "rank", [WORD_WORLD] = "world", [WORD_HOSTS] = "hosts",
    [WORD_MASTER] = "master", [WORD_PORT] = "port",
    [WORD_SCENARIO] = "scenario", [WORD_LOG] = "log",
    [WORD_TRAINER] = "trainer", [N_WORDS] = NULL,
};

static void
read_policies(struct scenario *s, const struct json_at *top)
{
    const struct json_at *policies = json_array(top, "policies", 1, 16);

    s->n_policies = json_n(policies);
    s->policies = allocate(s->n_policies + 1, sizeof *s->policies);
    for (size_t i = 0; i < s->n_policies; i++) {
        s->policies[i] = json_at_string(json_element(policies, i));
        for (size_t j = 0; j < i; j++) {
            if (s->policies[i] && s->policies[j]
                && !strcmp(s->policies[i], s->policies[j])) {
                json_fail(json_element(policies, i), NULL,
                          "policy \"%s\" is named twice", s->policies[i]);
            }
        }
    }
}

/* Reads the optional member "actuator"; hosts must have been read. */
static void
read_actuator(struct scenario *s, const struct json_at *top)
{
    bool each = json_has_array(top, "actuator");
    const struct json_at *hosts = NULL;
    int all = ACTUATOR_SHIM;

    if (each) {
        hosts = json_array(top, "actuator", s->n_hosts, s->n_hosts);
    } else {
        all = json_enum_or(top, "actuator", actuator_names, ACTUATOR_SHIM);
    }
    for (int i = 0; i < s->n_hosts; i++) {
        s->actuators[i] =
            each ? json_at_enum(json_element(hosts, i), host_names) : all;
    }
    if (scenario_n_actuators(s, ACTUATOR_NONE) == s->n_hosts) {
        json_fail(top, "actuator",
                  "no host has an agent, at least one \"shim\" or \"bpf\" is "
                  "needed");
    }
}

/* Reads the optional member "cc"; actuators must have been read. */
static void
read_cc(struct scenario *s, const struct json_at *top)
{
    s->cc = (!json_has(top, "cc")            ? SCENARIO_CC_ORDERED
             : json_bool_or(top, "cc", true) ? SCENARIO_CC_ON
                                             : SCENARIO_CC_OFF);
    if (s->cc == SCENARIO_CC_ON && !scenario_n_actuators(s, ACTUATOR_SHIM)) {
        json_fail(
            top, "cc",
            "true is of shims; expected false with the actuator \"bpf\"");
    }
}

/* Reads the optional member "fabric"; hosts must have been read. */
static void
read_fabric(struct scenario *s, const struct json_at *top)
{
    const struct json_at *at;

    if (!json_has_object(top, "fabric")) {
        s->fabric = json_enum_or(top, "fabric", fabric_names, FABRIC_OVS);
        return;
    }
    at = json_object(json_object(top, "fabric"), "leaf_spine");
    s->fabric = FABRIC_LEAF_SPINE;
    s->leaf_spine.leaves = json_integer(at, "leaves", 1, MAX_LEAVES);
    s->leaf_spine.spines = json_integer(at, "spines", 1, MAX_SPINES);
    s->leaf_spine.over = json_number_or(at, "over", 1, MAX_OVER, 1);
    if (s->leaf_spine.leaves && s->n_hosts % s->leaf_spine.leaves) {
        json_fail(at, "leaves",
                  "%d leaves; expected a divisor of the number of hosts",
                  s->leaf_spine.leaves);
    }
}

/* Reads "rate" and "mtu"; actuators and the fabric must have been read. */
static void
read_rate(struct scenario *s, const struct json_at *top)
{
    long long max;

    s->rate_bps = json_rate(top, "rate");
    s->mtu = json_integer_or(top, "mtu", 576, 9000, 9000);
    if (s->fabric == FABRIC_BRIDGE
        && !scenario_n_actuators(s, ACTUATOR_SHIM)) {
        max = MAX_RATE_KERNEL;
    } else {
        max = s->mtu <= SMALL_MTU ? MAX_RATE_SMALL_MTU : MAX_RATE;
    }
    if (s->rate_bps > max) {
        json_fail(
            top, "rate",
            "%lld Mbit/s; expected at most %lld Mbit/s "
            "with an MTU of %d%s",
            s->rate_bps / 1000000LL, max / 1000000, s->mtu,
            max == MAX_RATE_KERNEL ? "" : ", unless only the kernel forwards");
    }
}

/* Reads the optional member "datapath"; the fabric must have been read. */
static void
read_datapath(struct scenario *s, const struct json_at *top)
{
    s->datapath = json_enum_or(top, "datapath", datapath_names,
                               DATAPATH_USERSPACE);
    if (s->datapath == DATAPATH_KERNEL && s->fabric == FABRIC_BRIDGE) {
        json_fail(top, "datapath",
                  "\"kernel\" is of Open vSwitch; expected the fabric "
                  "\"ovs\" or one with \"leaf_spine\"");
    }
}

char *
scenario_fabric_to_string(const struct scenario *s)
{
    const struct leaf_spine *ls = &s->leaf_spine;

    const char *datapath = s->datapath == DATAPATH_KERNEL
                           ? ", kernel datapath" : "";

    return (s->fabric == FABRIC_LEAF_SPINE
            ? message("leaf-spine %d x %d, %g:1%s", ls->leaves, ls->spines,
                      ls->over, datapath)
            : message("%s%s", fabric_names[s->fabric], datapath));
}

int
scenario_n_actuators(const struct scenario *s, enum host_actuator actuator)
{
    int n = 0;

    for (int i = 0; i < s->n_hosts; i++) {
        n += s->actuators[i] == actuator;
    }
    return n;
}

char *
scenario_actuators_to_string(const struct scenario *s)
{
    int shim = scenario_n_actuators(s, ACTUATOR_SHIM);
    int bpf = scenario_n_actuators(s, ACTUATOR_BPF);
    int observe = scenario_n_actuators(s, ACTUATOR_OBSERVE);

    return (shim == s->n_hosts  ? message("%s", "")
            : bpf == s->n_hosts ? message(", BPF in place of shims")
            : observe == s->n_hosts
                ? message(", observed only")
                : message(", %d with shims, %d with BPF, "
                          "%d with neither",
                          shim, bpf, s->n_hosts - shim - bpf));
}

/* Reads the optional members "random_placements" and "random_searches", of
 * which one is required if 'has_seed'. */
static void
read_random(struct scenario *s, const struct json_at *top, bool has_seed)
{
    const struct json_at *searches =
        json_object_or_null(top, "random_searches");
    const struct json_at *at = json_object_or_null(top, "random_placements");
    struct random_placements rp;
    struct random_searches drawn;

    s->random = searches || at;
    if (searches) {
        random_searches_read(searches, s->n_hosts, &drawn);
        s->seed = drawn.seed;
    }
    if (at) {
        random_placements_read(at, s->n_hosts, &rp);
        s->seed = rp.seed;
    }
    if (!s->random && has_seed) {
        json_fail(top, "random_searches",
                  "required member is missing, only "
                  "it and \"random_placements\" depend on a seed");
    }
}

/* The hosts of a scenario as a search knows them. */
static struct search_hosts *
make_hosts(const struct scenario *s)
{
    struct search_hosts *hosts = allocate(1, sizeof *hosts);

    hosts->n = s->n_hosts;
    hosts->hosts = allocate(hosts->n, sizeof *hosts->hosts);
    for (size_t i = 0; i < hosts->n; i++) {
        hosts->hosts[i].name = message("h%zu", i);
        hosts->hosts[i].slots = s->slots;
    }
    return hosts;
}

static int
cojob_processes(const struct scenario_cojob *cojob, int host)
{
    int n = 0;

    for (size_t i = 0; i < cojob->n_jobs; i++) {
        for (size_t j = 0; j < cojob->jobs[i].n_hosts; j++) {
            n += cojob->jobs[i].hosts[j] == host;
        }
    }
    return n;
}

int
scenario_processes(const struct scenario *s, int host, size_t n_searches,
                   size_t n_cojobs)
{
    char name[16];
    int n = 0;

    snprintf(name, sizeof name, "h%d", host);
    for (size_t i = 0; i < n_searches; i++) {
        n += search_spec_processes(s->searches[i].spec, name);
    }
    for (size_t i = 0; i < n_cojobs; i++) {
        n += cojob_processes(&s->cojobs[i], host);
    }
    return n;
}

/* Reports 'member' of 'at' if a host has too many processes of the first
 * 'n_searches' searches and 'n_cojobs' cojobs.  'what' begins the message. */
static void
check_slots(const struct scenario *s, size_t n_searches, size_t n_cojobs,
            const struct json_at *at, const char *member, const char *what)
{
    for (int host = 0; host < s->n_hosts; host++) {
        int n = scenario_processes(s, host, n_searches, n_cojobs);

        if (n > s->slots) {
            json_fail(at, member,
                      "%s %d processes on h%d; expected at most %d", what, n,
                      host, s->slots);
        }
    }
}

static void
read_search(struct scenario *s, size_t i, const struct json_at *at,
            const cJSON *item, const struct search_hosts *hosts)
{
    struct scenario_search *ss = &s->searches[i];
    const struct json_at *search;

    ss->start_s = json_number_or(at, "start_s", 0, 3600, 0);
    search = json_object(at, "search");
    search_spec_from_json(search, &ss->spec);
    search_spec_check(search, ss->spec, hosts);
    ss->cojob = duplicate(ss->spec->name);
    ss->text = cJSON_Print(cJSON_GetObjectItem(item, "search"));
    for (size_t j = 0; j < i; j++) {
        if (ss->cojob && s->searches[j].cojob
            && !strcmp(ss->cojob, s->searches[j].cojob)) {
            json_fail(search, "name", "\"%s\" is the name of another search",
                      ss->cojob);
        }
    }
    check_slots(s, i + 1, 0, search, "placements",
                "with the searches before it this makes");
}

static void
read_searches(struct scenario *s, const struct json_at *top, const char *text)
{
    const struct json_at *searches =
        (json_has(top, "cojobs") ? json_array_or_null(top, "searches", 1, 64)
                                 : json_array(top, "searches", 1, 64));
    cJSON *root = cJSON_Parse(text);
    const cJSON *items = cJSON_GetObjectItem(root, "searches");
    struct search_hosts *hosts = make_hosts(s);

    s->n_searches = json_n(searches);
    s->searches = allocate(s->n_searches + 1, sizeof *s->searches);
    for (size_t i = 0; i < s->n_searches; i++) {
        read_search(s, i, json_element_object(searches, i),
                    cJSON_GetArrayItem(items, i), hosts);
    }
    search_hosts_destroy(hosts);
    cJSON_Delete(root);
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
    FILE *stream = must(open_memstream(&result, &size));

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
    job->hosts = allocate(job->n_hosts, sizeof *job->hosts);
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
    job->command = allocate(job->n_command + 1, sizeof *job->command);
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
    cojob->jobs = allocate(cojob->n_jobs, sizeof *cojob->jobs);
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
    cojob->stages = allocate(cojob->n_stages, sizeof *cojob->stages);
    for (size_t i = 0; i < cojob->n_stages; i++) {
        cojob->stages[i] = json_integer(json_element_object(stages, i),
                                        "iterations", least, MAX_ITERATIONS);
        least = cojob->stages[i] + 1;
    }
}

static void
check_cojob_name(const struct scenario *s, size_t i, const struct json_at *at)
{
    const char *name = s->cojobs[i].name;

    for (size_t j = 0; name && j < s->n_searches; j++) {
        if (s->searches[j].cojob && !strcmp(name, s->searches[j].cojob)) {
            json_fail(at, "name", "\"%s\" is the name of a search", name);
        }
    }
    for (size_t j = 0; name && j < i; j++) {
        if (s->cojobs[j].name && !strcmp(name, s->cojobs[j].name)) {
            json_fail(at, "name", "\"%s\" is the name of another cojob", name);
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
    check_cojob_name(s, i, at);
    check_slots(s, s->n_searches, i + 1, at, "jobs",
                "with all before them these make");
}

/* Reads the optional member "cojobs"; hosts and searches must have been
 * read. */
static void
read_cojobs(struct scenario *s, const struct json_at *top)
{
    const struct json_at *cojobs = json_array_or_null(top, "cojobs", 1,
                                                      MAX_COJOBS);

    s->n_cojobs = json_n(cojobs);
    s->cojobs = allocate(s->n_cojobs, sizeof *s->cojobs);
    for (size_t i = 0; i < s->n_cojobs; i++) {
        read_cojob(s, i, json_element_object(cojobs, i));
    }
}

static void
cojob_uninit(struct scenario_cojob *cojob)
{
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        struct scenario_job *job = &cojob->jobs[i];

        free_strings(job->command, job->n_command);
        free(job->log);
        free(job->hosts);
        free(job->name);
    }
    free(cojob->jobs);
    free(cojob->stages);
    free(cojob->name);
}

/* Returns the folder of 'file', which need not exist. */
static char *
folder(const char *file)
{
    const char *slash = strrchr(file, '/');

    return must(!slash ? strdup(".")
                : strndup(file, slash > file ? slash - file : 1));
}

char *
scenario_from_string(const char *name, const char *original,
                     const int64_t *seed, struct scenario **scenariop)
{
    size_t n_placed;
    char *drawn = random_searches_expand(original, seed);
    char *text = random_placements_expand(drawn, seed, &n_placed);
    struct json_check *jc = json_check_open(name, text);
    const struct json_at *top = json_check_top(jc);
    struct scenario *s = allocate(1, sizeof *s);
    char *error;

    json_ignore(top, "$schema");
    s->name = json_name(top, "name");
    s->dir = folder(name);
    s->description = json_string_or(top, "description", NULL);
    s->n_hosts = json_integer(top, "hosts", 1, SCENARIO_MAX_HOSTS);
    s->slots = json_integer_or(top, "slots", 1, 64, 4);
    read_actuator(s, top);
    read_cc(s, top);
    read_fabric(s, top);
    read_rate(s, top);
    read_datapath(s, top);
    s->queues = json_enum_or(top, "queues", queue_names, QUEUES_STRICT);
    s->timeout_s = json_number_or(top, "timeout_s", 1, 86400, 150);
    read_policies(s, top);
    read_random(s, top, seed);
    read_searches(s, top, text);
    if (json_has(top, "random_placements") && !n_placed) {
        json_fail(top, "random_placements", "each search has \"placements\", "
                  "at least one search without them is needed");
    }
    read_cojobs(s, top);
    error = json_check_close(jc);
    free(text);
    free(drawn);

    if (error) {
        scenario_destroy(s);
        s = NULL;
    }
    *scenariop = s;
    return error;
}

char *
scenario_from_file(const char *file, const int64_t *seed,
                   struct scenario **scenariop)
{
    char *text;
    char *error = json_read_file(file, &text);

    *scenariop = NULL;
    if (!error) {
        error = scenario_from_string(file, text, seed, scenariop);
        free(text);
    }
    return error;
}

void
scenario_destroy(struct scenario *s)
{
    if (s) {
        free_strings(s->policies, s->n_policies);
        for (size_t i = 0; i < s->n_searches; i++) {
            free(s->searches[i].cojob);
            free(s->searches[i].text);
            search_spec_destroy(s->searches[i].spec);
        }
        free(s->searches);
        for (size_t i = 0; i < s->n_cojobs; i++) {
            cojob_uninit(&s->cojobs[i]);
        }
        free(s->cojobs);
        free(s->dir);
        free(s->name);
        free(s->description);
        free(s);
    }
}
