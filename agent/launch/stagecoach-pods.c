/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach-pods: claims the cgroups of pods for their jobs.
 *
 * Every few seconds it fetches the list of pods from the kubelet, walks the
 * cgroup tree, and claims the cgroup of each pod that belongs to a job.
 * Claims may be repeated, so it keeps no state: a restarted agent has them
 * all after one round.  An error is logged once, until it is over. */

#include <curl/curl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "wire/cgroup-path.h"
#include "wire/agent-call.h"
#include "agent/launch/pod-fetch.h"
#include "agent/launch/pod-list.h"
#include "agent/launch/pod-tree.h"

#define ROUND_MS 2000           /* Time limit for all claims of a round. */

struct options {
    struct pod_source source;
    const char *rundir;
    char *mount;                /* Mount of cgroup v2. */
    int interval;               /* Seconds between rounds. */
    bool once;                  /* End after one round. */
};

struct round {
    const struct options *options;
    struct pod_list *list;
    long long until;
    size_t n_claims;
    int error;                  /* Error of the call to the agent. */
};

#define AT(MEMBER) OPTION_AT(struct options, MEMBER)

static const struct option_row rows[] = {
    { "pods", OPTION_TEXT, AT(source.url), .value = "URL",
      .deflt = "http://127.0.0.1:10255/pods",
      .help = "list of pods of the kubelet, or a file: http, https or file" },
    { "socket", OPTION_TEXT, AT(source.socket), .value = "PATH",
      .help = "connect to this unix socket instead of the host of the URL" },
    { "token", OPTION_TEXT, AT(source.token), .value = "FILE",
      .help = "bearer token for the kubelet" },
    { "ca", OPTION_TEXT, AT(source.ca), .value = "FILE",
      .help = "certificate of the authority that signed the kubelet's" },
    { "insecure", OPTION_FLAG, AT(source.insecure),
      .help = "do not verify the certificate of the kubelet" },
    { "cgroup-mount", OPTION_COPY, AT(mount), .value = "DIR",
      .shown = "from /proc/mounts", .help = "mount of the cgroup v2 tree" },
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
claim(const char *path, const struct pod_path *pod, void *round_)
{
    struct round *round = round_;
    const struct pod_identity *id = pod_list_find(round->list, pod->uid);
    char rung[32];

    if (id && !round->error) {
        const char *words[] = { "agent/claim", "launcher", id->cojob, id->job,
                                "cgroup", path, rung };

        snprintf(rung, sizeof rung, "rung=%d", id->rung);
        round->error = agent_call(round->options->rundir, round->until, words,
                                  id->rung >= 0 ? 7 : 6, NULL);
        round->n_claims += !round->error;
    }
}

/* Returns the error of a round, or NULL. */
static char *
describe_error(const struct round *round, int tree_error)
{
    const struct options *o = round->options;
    char *text = NULL;
    int n = 0;

    if (round->error) {
        n = asprintf(&text, "%s/agent.ctl: the agent does not answer (%s)",
                     o->rundir, strerror(round->error));
    } else if (tree_error) {
        n = asprintf(&text, "%s: the cgroups cannot be read (%s)", o->mount,
                     strerror(tree_error));
    } else if (pod_list_n_bad(round->list)) {
        n = asprintf(&text, "%zu pods have an annotation that is passed over, "
                     "the first: %s", pod_list_n_bad(round->list),
                     pod_list_complaint(round->list));
    }
    if (n < 0) {
        abort();
    }
    return text;
}

/* Runs one round.  Returns false after logging an error. */
static bool
run_round(const struct options *o)
{
    struct round round = { .options = o };
    char *text = NULL;
    size_t size;
    char *error = pod_fetch(&o->source, &text, &size);

    if (!error) {
        error = pod_list_read(o->source.url, text, size, &round.list);
        free(text);
    }
    if (!error) {
        int tree_error;

        round.until = agent_call_until(ROUND_MS);
        tree_error = pod_tree_scan(o->mount, claim, &round);
        error = describe_error(&round, tree_error);
        pod_list_destroy(round.list);
    }
    log_once(error);
    return !error;
}

int
main(int argc, char *argv[])
{
    const char *rundir = getenv("STAGECOACH_RUNDIR");
    struct options o = {
        .rundir = rundir && rundir[0] ? rundir : AGENT_RUNDIR,
        .mount = cgroup_mount_from("/proc/mounts"),
    };
    int status = option_table_command(&table, argc, argv, &o, NULL);

    if (status < 0 && !o.mount) {
        fputs("stagecoach-pods: no cgroup v2 file system is mounted\n",
              stderr);
        status = 1;
    }
    if (status < 0) {
        curl_global_init(CURL_GLOBAL_DEFAULT);
        status = run_round(&o) ? 0 : 1;
        while (!o.once) {
            sleep(o.interval);
            run_round(&o);
        }
        log_once(NULL);
        curl_global_cleanup();
    }
    free(o.mount);
    return status;
}
