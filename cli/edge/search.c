/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach search: a hyper-parameter search, from its file to its answer. */

#include <cjson/cJSON.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    const char *file;           /* The search's. */
    const char *cluster;        /* The hosts'. */
    const char *intent;         /* OVSDB remote, NULL for none. */
    const char *bin;            /* Folder of our programs, NULL: beside us. */
    bool json;
    bool bare;
};

static const char run_usage[] =
"usage: stagecoach search run SEARCH.json --cluster CLUSTER.json [OPTION...]\n"
"\n"
"Searches hyper-parameters by successive halving: starts a job for each\n"
"trial on the hosts of the cluster, runs all of them to the iterations of\n"
"the first rung, keeps the best, and continues with the next rung.\n"
"\n"
"  --cluster FILE    hosts: names, addresses, launch commands, slots\n"
#ifdef HAVE_OVS
"  --intent REMOTE   announce stages to this intent database, such as\n"
"                    unix:/run/stagecoach/intent.sock; the search\n"
"                    continues if it is unreachable\n"
"  --bare            start trainers without \"stagecoach run\", so that\n"
"                    jobs have no cgroup that identifies their traffic\n"
#endif
"  --format FORMAT   table: progress on standard error, at the end the jobs\n"
"                    on standard output (default); json: one line for each\n"
"                    event\n"
"  --bin FOLDER      folder of stagecoach and stagecoach-trainer; default:\n"
"                    the folder of this program\n"
"\n"
"Exit status: 0 success, 1 a file is invalid or all jobs failed, 2 usage,\n"
"128 + N ended by signal N.\n";

static const char check_usage[] =
"usage: stagecoach search check SEARCH.json [--cluster CLUSTER.json]\n"
"\n"
"Checks a search file, and that the cluster has the hosts and slots that it\n"
"needs.\n";

static int
bad_usage(const char *what, const char *value)
{
    fprintf(stderr, "stagecoach search: %s%s, see --help\n", what,
            value ? value : "");
    return EXIT_USAGE;
}

/* Reads options into '*o'.  Returns -1 to go on, or an exit status. */
static int
parse(int argc, char *argv[], const char *usage, bool run, struct options *o)
{
    enum { CLUSTER, INTENT, FORMAT, BIN, BARE, HELP };
    static const struct option run_options[] = {
        { "cluster", required_argument, NULL, CLUSTER },
        { "help", no_argument, NULL, HELP },
        { "format", required_argument, NULL, FORMAT },
        { "bin", required_argument, NULL, BIN },
#ifdef HAVE_OVS
        { "intent", required_argument, NULL, INTENT },
        { "bare", no_argument, NULL, BARE },
#endif
        { NULL, 0, NULL, 0 },
    };
    static const struct option check_options[] = {
        { "cluster", required_argument, NULL, CLUSTER },
        { "help", no_argument, NULL, HELP },
        { NULL, 0, NULL, 0 },
    };
    int c;

    memset(o, 0, sizeof *o);
    optind = 0;
    opterr = 0;
    while ((c = getopt_long(argc, argv, "",
                            run ? run_options : check_options, NULL)) >= 0) {
        switch (c) {
        case CLUSTER:
            o->cluster = optarg;
            break;
        case INTENT:
            o->intent = optarg;
            break;
        case BIN:
            o->bin = optarg;
            break;
        case BARE:
            o->bare = true;
            break;
        case FORMAT:
            o->json = !strcmp(optarg, "json");
            if (!o->json && strcmp(optarg, "table")) {
                return bad_usage("--format: table and json are allowed, "
                                 "not ", optarg);
            }
            break;
        case HELP:
            fputs(usage, stdout);
            return EXIT_OK;
        default:
            return bad_usage("bad option ", argv[optind - 1]);
        }
    }
    if (optind != argc - 1) {
        return bad_usage("one SEARCH.json is needed", NULL);
    }
    o->file = argv[optind];
    return -1;
}

static char *
read_files(const struct options *o, struct search_hosts **hosts,
           struct search_spec **spec)
{
    char *error = NULL;

    *hosts = NULL;
    *spec = NULL;
    if (o->cluster) {
        error = search_hosts_from_file(o->cluster, hosts);
    }
    return error ? error : search_spec_from_file(o->file, *hosts, spec);
}

/* Says 'error' and frees it. */
static int
refuse(char *error)
{
    fprintf(stderr, "%s\n", error);
    free(error);
    return EXIT_NO;
}

static int
run_check(int argc, char *argv[])
{
    struct search_hosts *hosts;
    struct search_spec *spec;
    struct options o;
    int status = parse(argc, argv, check_usage, false, &o);
    char *error;

    if (status >= 0) {
        return status;
    }
    error = read_files(&o, &hosts, &spec);
    search_spec_destroy(spec);
    search_hosts_destroy(hosts);
    return error ? refuse(error) : EXIT_OK;
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

/* For people: stages as they come, then a row for each job. */
static void
print_table(void *aux, const cJSON *event)
{
    const char *type = text_of(event, "event");
    const char *cojob = text_of(event, "cojob");

    if (!strcmp(type, "job-begin")) {
        const cJSON *hyper = cJSON_GetObjectItem(event, "hyperparameters");

        fprintf(stderr, "%s/%s: learning rate %.4g, ", cojob,
                text_of(event, "job"), number_of(hyper, "learning_rate"));
        if (cJSON_GetObjectItem(hyper, "width")) {
            fprintf(stderr, "width %.0f, ", number_of(hyper, "width"));
        }
        fprintf(stderr, "batch %.0f\n", number_of(hyper, "batch"));
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
        printf("best: %s, after %.2f s\n", text_of(event, "best"),
               number_of(event, "seconds"));
    }
}

#ifdef HAVE_OVS
/* Keeps what concerns a person of what the library says, which takes a search
 * that waits for its jobs for a program that hangs. */
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
        config->announce_aux = client;
    }
#endif
    error = search_execute(config, &result);
#ifdef HAVE_OVS
    intent_client_destroy(client);
#endif
    if (error) {
        return refuse(error);
    }
    if (result.signal) {
        return 128 + result.signal;
    }
    return result.best < 0 ? EXIT_NO : EXIT_OK;
}

/* Fills in where the programs are.  Returns EXIT_OK or says what is wrong. */
static int
find_programs(const struct options *o, char **trainer, char **wrapper)
{
    *trainer = search_find_program(o->bin, "stagecoach-trainer");
#ifdef HAVE_OVS
    *wrapper = o->bare ? NULL : search_find_program(o->bin, "stagecoach");
    if (!o->bare && !*wrapper) {
        fprintf(stderr, "stagecoach search: stagecoach not found, "
                "set --bin\n");
        return EXIT_NO;
    }
#else
    *wrapper = NULL;
#endif
    if (!*trainer) {
        fprintf(stderr, "stagecoach search: stagecoach-trainer not found, "
                "set --bin\n");
        return EXIT_NO;
    }
    return EXIT_OK;
}

static int
run_run(int argc, char *argv[])
{
    struct search_hosts *hosts;
    struct search_spec *spec;
    struct options o;
    int status = parse(argc, argv, run_usage, true, &o);
    char *error, *trainer, *wrapper;

    if (status >= 0) {
        return status;
    }
    if (!o.cluster) {
        return bad_usage("--cluster is needed", NULL);
    }
    error = read_files(&o, &hosts, &spec);
    if (error) {
        search_hosts_destroy(hosts);
        return refuse(error);
    }
    status = find_programs(&o, &trainer, &wrapper);
    if (status == EXIT_OK) {
        status = execute(&o, &(struct search_config) {
            .spec = spec, .hosts = hosts,
            .trainer = trainer, .wrapper = wrapper,
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

    return command_dispatch(commands, "stagecoach search", argc - 1,
                            argv + 1);
}
