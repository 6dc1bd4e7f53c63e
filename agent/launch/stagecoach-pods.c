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

#include "agent/launch/pod-identity.h"
#include "agent/launch/pod-path.h"
#include "base/memory.h"
#include "base/options.h"
#include "wire/agent-call.h"
#include "wire/cgroup-path.h"

#define TIMEOUT_MS 5000L        /* Of a request to the kubelet. */
#define MAX_SIZE (64 << 20)     /* Of its reply, bytes. */
#define ROUND_MS 2000           /* Time limit for all claims of a round. */

struct options {
    const char *url;            /* List of pods: http, https or file. */
    const char *socket;         /* Unix socket to connect to instead of the
                                 * host of the URL, or NULL. */
    const char *token;          /* File with a bearer token, read for each
                                 * request, or NULL. */
    const char *ca;             /* File of certificates of authorities, NULL
                                 * for the system's. */
    bool insecure;              /* Accept any certificate. */
    const char *rundir;
    char *mount;                /* Mount of cgroup v2. */
    int interval;               /* Seconds between rounds. */
    bool once;                  /* End after one round. */
};

struct round {
    const struct options *options;
    struct pod_list *list;
    long long until;
    int error;                  /* Error of the call to the agent. */
};

#define AT(MEMBER) OPTION_AT(struct options, MEMBER)

static const struct option_row rows[] = {
    { "pods", OPTION_TEXT, AT(url), .value = "URL",
      .deflt = "http://127.0.0.1:10255/pods",
      .help = "list of pods of the kubelet, or a file: http, https or file" },
    { "socket", OPTION_TEXT, AT(socket), .value = "PATH",
      .help = "connect to this unix socket instead of the host of the URL" },
    { "token", OPTION_TEXT, AT(token), .value = "FILE",
      .help = "bearer token for the kubelet" },
    { "ca", OPTION_TEXT, AT(ca), .value = "FILE",
      .help = "certificate of the authority that signed the kubelet's" },
    { "insecure", OPTION_FLAG, AT(insecure),
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

struct body {
    char *text;
    size_t size;
};

static size_t
take(char *data, size_t one, size_t n, void *body_)
{
    struct body *body = body_;
    char *larger = (body->size + n <= MAX_SIZE
                    ? realloc(body->text, body->size + n + 1) : NULL);

    if (!larger) {
        return 0;
    }
    memcpy(larger + body->size, data, n);
    body->text = larger;
    body->size += n;
    return n;
}

/* Has requests carry the token in 'file'. */
static char *
use_token(CURL *curl, const char *file)
{
    char token[8192];
    FILE *stream = fopen(file, "re");
    size_t n = stream ? fread(token, 1, sizeof token - 1, stream) : 0;

    if (stream) {
        fclose(stream);
    }
    token[n] = '\0';
    token[strcspn(token, "\r\n")] = '\0';
    if (!token[0]) {
        return message("%s: it cannot be read or is empty, a file with a "
                       "token is allowed", file);
    }
    curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, token);
    return NULL;
}

static char *
get(CURL *curl, const struct options *o, struct body *body)
{
    char why[CURL_ERROR_SIZE] = "";
    CURLcode code;

    curl_easy_setopt(curl, CURLOPT_URL, o->url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https,file");
    curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, o->socket);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
    if (o->ca) {
        curl_easy_setopt(curl, CURLOPT_CAINFO, o->ca);
    }
    if (o->insecure) {
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    code = curl_easy_perform(curl);
    return code == CURLE_OK ? NULL
           : message("%s: no list of pods came (%s)", o->url,
                     why[0] ? why : curl_easy_strerror(code));
}

/* Fetches the list of pods from the kubelet.  Returns NULL and stores the list
 * in '*textp', which the caller frees, or returns a message. */
static char *
fetch_pods(const struct options *o, char **textp, size_t *sizep)
{
    struct body body = { NULL, 0 };
    CURL *curl = must(curl_easy_init());
    char *error = o->token ? use_token(curl, o->token) : NULL;

    error = error ? error : get(curl, o, &body);
    curl_easy_cleanup(curl);
    if (error) {
        free(body.text);
        return error;
    }
    *textp = body.text ? body.text : allocate(1, 1);
    *sizep = body.size;
    return NULL;
}

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
    const struct pod_identity *id = pod_list_find(round->list, uid);
    char rung[32], gpus[32];

    if (id && !round->error) {
        const char *words[8] = { "agent/claim", "launcher", id->cojob,
                                 id->job,       "cgroup",   path };
        size_t n = 6;

        if (id->rung >= 0) {
            snprintf(rung, sizeof rung, "rung=%d", id->rung);
            words[n++] = rung;
        }
        if (id->gpus) {
            snprintf(gpus, sizeof gpus, "gpus=%u", id->gpus);
            words[n++] = gpus;
        }
        round->error =
            agent_call(round->options->rundir, round->until, words, n, NULL);
    }
}

/* Returns the error of a round, or NULL. */
static char *
describe_error(const struct round *round, int tree_error)
{
    const struct options *o = round->options;

    if (round->error) {
        return message("%s/agent.ctl: the agent does not answer (%s)",
                       o->rundir, strerror(round->error));
    } else if (tree_error) {
        return message("%s: the cgroups cannot be read (%s)", o->mount,
                       strerror(tree_error));
    } else if (round->list->n_bad) {
        return message("%zu pods have an annotation that is passed over, the "
                       "first: %s", round->list->n_bad,
                       round->list->complaint);
    }
    return NULL;
}

/* Runs one round.  Returns false after logging an error. */
static bool
run_round(const struct options *o)
{
    struct round round = { .options = o };
    char *text = NULL;
    size_t size;
    char *error = fetch_pods(o, &text, &size);

    if (!error) {
        error = pod_list_read(o->url, text, size, &round.list);
        free(text);
    }
    if (!error) {
        int tree_error;

        round.until = agent_call_until(ROUND_MS);
        tree_error = pod_path_scan(o->mount, claim, &round);
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
    struct options o = { .rundir = rundir && rundir[0] ? rundir : AGENT_RUNDIR,
                         .mount = cgroup_mount_from("/proc/mounts") };
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
