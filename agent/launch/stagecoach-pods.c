/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach-pods: claims the cgroups of pods for their jobs.
 *
 * Every few seconds it walks the cgroup tree, and claims the cgroup of each
 * pod that belongs to a job, by the list of the node's pods (list-watch.h).
 * Claims may be repeated, so it keeps no state: a restarted agent has them
 * all after one round.  An error is logged once, until it is over. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/launch/pod-identity.h"
#include "agent/launch/pod-labels.h"
#include "agent/launch/pod-path.h"
#include "base/memory.h"
#include "base/options.h"
#include "wire/agent-call.h"
#include "wire/cgroup-path.h"
#include "wire/list-watch.h"

#define ROUND_MS 2000           /* Time limit for all claims of a round. */

struct options {
    struct api_source source;
    const char *rundir;
    char *mount;                /* Cgroup of the kubelet. */
    const char *labels;         /* File of rows of pod-labels.h, or NULL. */
    int interval;               /* Seconds between rounds. */
    bool once;                  /* End after one round. */
};

struct round {
    const struct options *options;
    const json_t *list;
    long long until;
    int error;                  /* Error of the call to the agent. */
    char *complaint;            /* About the first pod with an annotation that
                                 * is passed over, or NULL. */
};

#define AT(MEMBER) OPTION_AT(struct options, MEMBER)

static const struct option_row rows[] = {
    { "pods", OPTION_TEXT, AT(source.url), .value = "URL", .required = true,
      .help = "list of the node's pods, of the API server, of the kubelet, or "
              "a file: https or file, http with --socket" },
    { "socket", OPTION_TEXT, AT(source.socket), .value = "PATH",
      .help = "connect to this unix socket instead of the host of the URL" },
    { "token", OPTION_TEXT, AT(source.token), .value = "FILE",
      .help = "bearer token for the server" },
    { "ca", OPTION_TEXT, AT(source.ca), .value = "FILE",
      .shown = "the system's",
      .help = "certificate of the authority that signed the server's" },
    { "cgroup-mount", OPTION_COPY, AT(mount), .value = "DIR",
      .shown = "from /proc/mounts",
      .help = "cgroup of the kubelet, its --cgroup-root" },
    { "labels", OPTION_TEXT, AT(labels), .value = "FILE",
      .help = "labels that name a pod's job, before those that are known" },
    { "rundir", OPTION_TEXT, AT(rundir), .value = "DIR",
      .shown = "$STAGECOACH_RUNDIR or /run/stagecoach",
      .help = "directory of the agent's socket" },
    { "interval", OPTION_INTEGER, AT(interval), 1, 3600, "S", "2",
      .help = "seconds between rounds" },
    { "once", OPTION_FLAG, AT(once), .help = "end after one round" },
    { .name = NULL },
};

static const struct option_table table = {
    .name = "stagecoach-pods",
    .version = "stagecoach-pods " STAGECOACH_VERSION,
    .usage = "usage: stagecoach-pods [OPTION...]\n\n"
             "Reports the pods of jobs to this host's agent.\n",
    .rows = rows,
};

/* Logs 'text', which it frees, unless it was logged last.  NULL means that
 * there is no error. */
static void
log_once(char *text)
{
    static char *last;

    if (text && (!last || strcmp(text, last))) {
        fprintf(stderr, "stagecoach-pods: %s\n", text);
    }
    free(last);
    last = text;
}

static void
claim(const char *path, const char *uid, void *round_)
{
    struct round *round = round_;
    struct pod_identity id;
    char *error = pod_identity_find(round->list, uid, &id);

    if (id.job[0] && !round->error) {
        round->error = pod_identity_claim(
            &id, true, "cgroup", path, round->options->rundir, round->until);
    }
    if (!round->complaint) {
        round->complaint = error;
    } else {
        free(error);
    }
}

/* Returns the error of a round, or NULL. */
static char *
describe_error(const struct round *round, int tree_error)
{
    const struct options *o = round->options;

    if (round->error) {
        return message("%s/agent.ctl: the agent does not reply (%s)",
                       o->rundir, strerror(round->error));
    } else if (tree_error) {
        return message("%s: the cgroups cannot be read (%s)", o->mount,
                       strerror(tree_error));
    } else if (round->complaint) {
        return message("%s, and is passed over", round->complaint);
    }
    return NULL;
}

/* Runs one round.  Returns false after logging an error. */
static bool
run_round(const struct options *o, struct list_watch *watch)
{
    struct round round = { .options = o };
    char *error = list_watch_run(watch, o->interval * 1000);

    if (!error) {
        int tree_error;

        round.list = list_watch_list(watch);
        round.until = agent_call_until(ROUND_MS);
        tree_error = pod_path_scan(o->mount, claim, &round);
        error = describe_error(&round, tree_error);
        free(round.complaint);
    }
    log_once(error);
    return !error;
}

int
main(int argc, char *argv[])
{
    const char *rundir = getenv("STAGECOACH_RUNDIR");
    struct options o = { .rundir = rundir && rundir[0] ? rundir : AGENT_RUNDIR,
                         .mount = cgroup_mount_from("/proc/mounts") };
    int status = option_table_command(&table, argc, argv, &o, NULL);

    if (status < 0 && !o.mount) {
        fputs("stagecoach-pods: no cgroup v2 file system is mounted\n",
              stderr);
        status = 1;
    }
    if (status < 0 && o.labels) {
        char *error = pod_labels_add(o.labels);

        if (error) {
            fprintf(stderr, "stagecoach-pods: --labels: %s\n", error);
            free(error);
            status = 2;
        }
    }
    if (status < 0) {
        struct list_watch *watch = list_watch_create(&o.source);

        do {
            status = run_round(&o, watch) ? 0 : 1;
        } while (!o.once);
        log_once(NULL);
        list_watch_destroy(watch);
    }
    free(o.mount);
    return status;
}
