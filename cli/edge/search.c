/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach search: runs or checks a hyper-parameter search. */

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/interrupt.h"
#include "cli/command.h"
#include "trainer/search/hosts.h"
#include "trainer/search/search.h"
#include "trainer/search/spec.h"

#ifdef HAVE_OVS
#include "controller/intent/intent-client.h"
#include "openvswitch/vlog.h"

#define INTENT_TIMEOUT_MS 1000
#endif

struct options {
    const char *cluster;        /* Cluster file. */
    const char *intent;         /* OVSDB remote, NULL for none. */
    const char *bin;            /* Folder of the programs, NULL for the folder
                                 * of this program. */
    bool json;
    bool bare;
    const char *checkpoints; /* Folder, or NULL. */
};

#define RUN 1                   /* Mode of "search run". */
#define CHECK 2

#define AT(MEMBER) OPTION_AT(struct options, MEMBER)

static const struct option_row rows[] = {
    { "cluster", OPTION_TEXT, AT(cluster), .value = "FILE", .modes = RUN,
      .required = true,
      .help = "hosts: names, addresses, launch commands, slots" },
    { "cluster", OPTION_TEXT, AT(cluster), .value = "FILE", .modes = CHECK,
      .help = "hosts: names, addresses, launch commands, slots" },
#ifdef HAVE_OVS
    { "intent", OPTION_TEXT, AT(intent), .value = "REMOTE", .modes = RUN,
      .help = "announce stages to this intent database, such as "
              "unix:/run/stagecoach/controller/intent.sock; the search "
              "continues if it is unreachable" },
#endif
    { "bare", OPTION_FLAG, AT(bare), .modes = RUN,
      .help = "start trainers without \"stagecoach run\", so that jobs have "
              "no cgroup that identifies their traffic" },
    { "checkpoints", OPTION_TEXT, AT(checkpoints), .value = "FOLDER",
      .modes = RUN,
      .help = "write the last weights of each job to FOLDER/SEARCH/JOB on the "
              "hosts of its servers" },
    { "format", OPTION_CHOICE, AT(json), .value = "table|json",
      .deflt = "table", .modes = RUN,
      .help = "output: progress on standard error and the jobs at the end, or "
              "one line for each event" },
    { "bin", OPTION_TEXT, AT(bin), .value = "FOLDER", .modes = RUN,
      .shown = "the folder of this program",
      .help = "folder of stagecoach and stagecoach-trainer" },
    { .name = NULL },
};

static const struct option_table run_table = {
    .name = "stagecoach search run",
    .rows = rows,
    .modes = RUN,
    .usage =
        "usage: stagecoach search run SEARCH.json --cluster CLUSTER.json "
        "[OPTION...]\n"
        "\n"
        "Searches hyper-parameters by successive halving: starts a job for "
        "each\n"
        "trial on the hosts of the cluster, runs all of them to the "
        "iterations of\n"
        "the first rung, keeps the best, and continues with the next rung, or "
        "judges\n"
        "each trial when it arrives (\"method\" of stagecoach-scenario(5)).\n",
    .footer =
        "Exit status: 0 success, 1 a file is invalid or all jobs failed, "
        "2 usage,\n"
        "128 + N ended by signal N.\n",
    .operand = "SEARCH.json",
    .min_operands = 1,
    .max_operands = 1,
};

static const struct option_table check_table = {
    .name = "stagecoach search check", .rows = rows, .modes = CHECK,
    .usage =
        "usage: stagecoach search check SEARCH.json "
        "[--cluster CLUSTER.json]\n"
        "\n"
        "Checks a search file, and that the cluster has the hosts and slots "
        "that it\n"
        "needs.\n",
    .operand = "SEARCH.json", .min_operands = 1, .max_operands = 1,
};

static char *
read_files(const struct options *o, const char *file,
           struct search_hosts **hosts, struct search_spec **spec)
{
    char *error = NULL;

    *hosts = NULL;
    *spec = NULL;
    if (o->cluster) {
        error = search_hosts_from_file(o->cluster, hosts);
    }
    return error ? error : search_spec_from_file(file, *hosts, spec);
}

static int
run_check(int argc, char *argv[])
{
    struct search_hosts *hosts;
    struct search_spec *spec;
    struct options o = { .cluster = NULL };
    int file;
    int status = option_table_command(&check_table, argc, argv, &o, &file);
    char *error;

    if (status >= 0) {
        return status;
    }
    error = read_files(&o, argv[file], &hosts, &spec);
    search_spec_destroy(spec);
    search_hosts_destroy(hosts);
    return error ? command_fail(NULL, error) : EXIT_OK;
}

static void
print_json(void *aux, const cJSON *event)
{
    char *text = cJSON_PrintUnformatted(event);

    if (text) {
        puts(text);
        fflush(stdout);
        free(text);
    }
}

static const char *
text_of(const cJSON *event, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(event, name));

    return text ? text : "-";
}

static double
number_of(const cJSON *event, const char *name)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItem(event, name));
}

static void
print_ranking(const cJSON *ranking)
{
    const cJSON *name;

    cJSON_ArrayForEach (name, ranking) {
        fprintf(stderr, " %s", cJSON_GetStringValue(name));
    }
    fputc('\n', stderr);
}

static void
print_parameters(FILE *stream, const cJSON *event)
{
    const cJSON *hyper = cJSON_GetObjectItem(event, "hyperparameters");

    fprintf(stream, "learning rate %.4g, ", number_of(hyper, "learning_rate"));
    if (cJSON_GetObjectItem(hyper, "width")) {
        fprintf(stream, "width %.0f, ", number_of(hyper, "width"));
    }
    fprintf(stream, "batch %.0f", number_of(hyper, "batch"));
}

/* Prints the stages as they happen, and at the end a row for each job. */
static void
print_table(void *aux, const cJSON *event)
{
    const char *type = text_of(event, "event");
    const char *cojob = text_of(event, "cojob");

    if (!strcmp(type, "job-begin")) {
        fprintf(stderr, "%s/%s: ", cojob, text_of(event, "job"));
        print_parameters(stderr, event);
        fputc('\n', stderr);
    } else if (!strcmp(type, "stage-begin")) {
        fprintf(stderr, "%s: stage %.0f to %.0f iterations, %d jobs\n", cojob,
                number_of(event, "rung"), number_of(event, "iterations"),
                cJSON_GetArraySize(cJSON_GetObjectItem(event, "jobs")));
    } else if (!strcmp(type, "stage-end")) {
        fprintf(stderr, "%s: stage %.0f took %.2f s, best first:", cojob,
                number_of(event, "rung"), number_of(event, "seconds"));
        print_ranking(cJSON_GetObjectItem(event, "ranking"));
    } else if (!strcmp(type, "job-end")) {
        printf("%-24s %-8s %8.0f iterations  loss %8.4f  accuracy %6.4f  "
               "%10.1f MB\n", text_of(event, "job"),
               text_of(event, "outcome"), number_of(event, "iteration"),
               number_of(event, "loss"), number_of(event, "accuracy"),
               number_of(event, "bytes") / 1e6);
    } else if (!strcmp(type, "search-end")) {
        printf("best: %s, after %.2f s", text_of(event, "best"),
               number_of(event, "seconds"));
        if (cJSON_GetObjectItem(event, "hyperparameters")) {
            printf(": loss %.4f, ", number_of(event, "loss"));
            print_parameters(stdout, event);
            printf(", checkpoint %s", text_of(event, "checkpoint"));
        }
        putchar('\n');
    }
}

#ifdef HAVE_OVS
/* Disables log messages of libraries that would confuse users, such as
 * warnings about a hanging program while the search waits for its jobs. */
static void
quieten(void)
{
    vlog_set_levels(NULL, VLF_CONSOLE, VLL_WARN);
    vlog_set_levels(vlog_module_from_name("timeval"), VLF_CONSOLE, VLL_ERR);
    vlog_set_levels(vlog_module_from_name("intent_client"), VLF_CONSOLE,
                    VLL_INFO);
}
#endif

static int
execute(const struct options *o, struct search_config *config)
{
    struct search_result result;
    char *error;
#ifdef HAVE_OVS
    struct intent_client *client = NULL;

    if (o->intent) {
        quieten();
        client = intent_client_create(o->intent, INTENT_TIMEOUT_MS);
        config->announce = intent_client_announce;
        config->announce_again = intent_client_run;
        config->announce_aux = client;
    } else if (!o->bare) {
        fputs("stagecoach search: no stage is announced, so its jobs have no "
              "rank; expected --intent REMOTE\n",
              stderr);
    }
#endif
    error = search_execute(config, &result);
#ifdef HAVE_OVS
    intent_client_destroy(client);
#endif
    if (error) {
        return command_fail(NULL, error);
    }
    if (result.signal) {
        return interrupt_say(
            result.signal, result.n_stages,
            config->spec->method.places ? 1 : config->spec->n_rungs, "stage");
    }
    return result.best < 0 ? EXIT_NO : EXIT_OK;
}

/* Stores the path of program 'name', which is needed, in '*path'.  Returns
 * EXIT_OK, or EXIT_NO after a message. */
static int
find_program(const struct options *o, const char *name, char **path)
{
    *path = search_find_program(o->bin, name);
    if (!*path) {
        fprintf(stderr, "stagecoach search: %s not found, set --bin\n", name);
        return EXIT_NO;
    }
    return EXIT_OK;
}

static int
run_run(int argc, char *argv[])
{
    struct search_hosts *hosts;
    struct search_spec *spec;
    struct options o = { .cluster = NULL };
    int file;
    int status = option_table_command(&run_table, argc, argv, &o, &file);
    char *error, *trainer, *wrapper = NULL;

    if (status >= 0) {
        return status;
    }
    error = read_files(&o, argv[file], &hosts, &spec);
    if (error) {
        search_hosts_destroy(hosts);
        return command_fail(NULL, error);
    }
    status = find_program(&o, "stagecoach-trainer", &trainer);
#ifdef HAVE_OVS
    if (status == EXIT_OK && !o.bare) {
        status = find_program(&o, "stagecoach", &wrapper);
    }
#endif
    if (status == EXIT_OK) {
        status = execute(&o, &(struct search_config){
                                 .spec = spec,
                                 .hosts = hosts,
                                 .trainer = trainer,
                                 .wrapper = wrapper,
                                 .checkpoints = o.checkpoints,
                                 .event = o.json ? print_json : print_table,
                             });
    }
    free(trainer);
    free(wrapper);
    search_spec_destroy(spec);
    search_hosts_destroy(hosts);
    return status;
}

int
cmd_search(int argc, char *argv[])
{
    static const struct command commands[] = {
        { "run", "SEARCH.json --cluster CLUSTER.json",
          "Run a search to its end.", run_run },
        { "check", "SEARCH.json [--cluster CLUSTER.json]",
          "Check a search file.", run_check },
        { NULL, NULL, NULL, NULL },
    };

    return command_dispatch(commands, "stagecoach search", argc - 1, argv + 1);
}
