/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach-pods: claims the cgroups of pods for their jobs.
 *
 * Every few seconds it fetches the list of pods from the kubelet, walks the
 * cgroup tree, and claims the cgroup of each pod that belongs to a job.
 * Claims may be repeated, so it keeps no state: a restarted agent has them
 * all after one round.  An error is logged once, until it is over. */

#include <curl/curl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    int interval;               /* Seconds between rounds, 0 for one round. */
};

struct round {
    const struct options *options;
    struct pod_list *list;
    long long until;
    size_t n_claims;
    int error;                  /* Error of the call to the agent. */
};

static const char help[] =
    "usage: stagecoach-pods [OPTION...]\n"
    "\n"
    "  --pods URL          the kubelet's list, or a file: http, https or "
    "file\n"
    "                      (default: http://127.0.0.1:10255/pods)\n"
    "  --socket PATH       ask this unix socket in place of the URL's host\n"
    "  --token FILE        a bearer token for the kubelet\n"
    "  --ca FILE           who signed the kubelet's certificate\n"
    "  --insecure          take any certificate\n"
    "  --cgroup-mount DIR  where the cgroup v2 tree is\n"
    "  --rundir DIR        where the agent is (default: $STAGECOACH_RUNDIR "
    "or\n"
    "                      /run/stagecoach)\n"
    "  --interval S        seconds between rounds, 1 to 3600 (default: 2)\n"
    "  --once              one round\n"
    "  -h, --help          print this\n"
    "  -V, --version       print the version\n";

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

static bool
parse_interval(const char *text, int *interval)
{
    char *end;
    long n = strtol(text, &end, 10);

    if (end == text || *end || n < 1 || n > 3600) {
        fprintf(stderr, "stagecoach-pods: --interval: \"%s\" is not a number "
                "of seconds, 1 to 3600 are allowed\n", text);
        return false;
    }
    *interval = n;
    return true;
}

/* Returns an exit status, or -1 to continue. */
static int
parse_options(int argc, char *argv[], struct options *o)
{
    static const struct option options[] = {
        { "pods", required_argument, NULL, 'p' },
        { "socket", required_argument, NULL, 's' },
        { "token", required_argument, NULL, 't' },
        { "ca", required_argument, NULL, 'c' },
        { "insecure", no_argument, NULL, 'k' },
        { "cgroup-mount", required_argument, NULL, 'm' },
        { "rundir", required_argument, NULL, 'r' },
        { "interval", required_argument, NULL, 'i' },
        { "once", no_argument, NULL, 'o' },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'V' },
        { NULL, 0, NULL, 0 },
    };
    bool once = false;
    int option;

    while ((option = getopt_long(argc, argv, "hV", options, NULL)) != -1) {
        switch (option) {
        case 'p':
            o->source.url = optarg;
            break;
        case 's':
            o->source.socket = optarg;
            break;
        case 't':
            o->source.token = optarg;
            break;
        case 'c':
            o->source.ca = optarg;
            break;
        case 'k':
            o->source.insecure = true;
            break;
        case 'm':
            free(o->mount);
            o->mount = strdup(optarg);
            break;
        case 'r':
            o->rundir = optarg;
            break;
        case 'i':
            if (!parse_interval(optarg, &o->interval)) {
                return 2;
            }
            break;
        case 'o':
            once = true;
            break;
        case 'h':
            fputs(help, stdout);
            return 0;
        case 'V':
            puts("stagecoach-pods "STAGECOACH_VERSION);
            return 0;
        default:
            return 2;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "stagecoach-pods: \"%s\": unexpected argument\n",
                argv[optind]);
        return 2;
    }
    o->interval = once ? 0 : o->interval;
    return -1;
}

int
main(int argc, char *argv[])
{
    const char *rundir = getenv("STAGECOACH_RUNDIR");
    struct options o = {
        .source.url = "http://127.0.0.1:10255/pods",
        .rundir = rundir && rundir[0] ? rundir : AGENT_RUNDIR,
        .mount = cgroup_mount_from("/proc/mounts"),
        .interval = 2,
    };
    int status = parse_options(argc, argv, &o);

    if (status < 0 && !o.mount) {
        fputs("stagecoach-pods: no cgroup v2 file system is mounted\n",
              stderr);
        status = 1;
    }
    if (status < 0) {
        curl_global_init(CURL_GLOBAL_DEFAULT);
        status = run_round(&o) ? 0 : 1;
        while (o.interval) {
            sleep(o.interval);
            run_round(&o);
        }
        log_once(NULL);
        curl_global_cleanup();
    }
    free(o.mount);
    return status;
}
