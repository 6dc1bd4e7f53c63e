/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach-cni: chained CNI plug-in that claims a pod's network namespace
 * for its job.
 *
 * It changes nothing in the network and passes on the result of the previous
 * plug-in.  Without an agent, or with one that hangs, a pod is delayed by 0.1
 * s, and ADD writes one line to standard error, which runtimes log.  The
 * program is linked statically: with a missing library no pod of the host
 * could start. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/launch/pod-identity.h"
#include "wire/agent-call.h"

#define MAX_CONFIG (4 << 20)

/* Reads standard input.  Returns NULL if that fails or the input is too
 * long. */
static char *
read_input(size_t *sizep)
{
    char *text = malloc(MAX_CONFIG);
    size_t size = text ? fread(text, 1, MAX_CONFIG, stdin) : 0;

    if (!text || ferror(stdin) || size == MAX_CONFIG) {
        free(text);
        return NULL;
    }
    *sizep = size;
    return text;
}

static void
tell_agent(const struct cni_request *r)
{
    const struct pod_identity *id = &r->identity;
    int error =
        pod_identity_claim(id, r->command != CNI_DEL, "netns", r->netns,
                           r->rundir, agent_call_until(AGENT_CALL_MS));

    if (error && r->command == CNI_ADD) {
        fprintf(stderr,
                "stagecoach-cni: %s/%s: %s/agent.ctl: the agent does "
                "not reply (%s), going on without\n",
                id->cojob, id->job, r->rundir, strerror(error));
    }
}

static int
run(const char *text, size_t size)
{
    struct cni_environment environment = {
        .command = getenv("CNI_COMMAND"),
        .netns = getenv("CNI_NETNS"),
        .args = getenv("CNI_ARGS"),
    };
    struct cni_request r;
    char *error, *result;
    int code = CNI_NOT_JSON;
    int status = 0;

    error = cni_request_read(text, size, &environment, &r, &code);
    if (error) {
        result = cni_error(r.version, code, error);
        status = 1;
    } else {
        if (r.warning && r.command == CNI_ADD) {
            fprintf(stderr, "stagecoach-cni: %s/%s: %s, going on without\n",
                    r.identity.space, r.name, r.warning);
        }
        if (r.identity.job[0] && r.netns) {
            tell_agent(&r);
        }
        result = cni_request_result(&r);
    }
    if (result) {
        puts(result);
    }
    free(result);
    free(error);
    cni_request_uninit(&r);
    return status;
}

int
main(int argc, char *argv[])
{
    size_t size = 0;
    char *text;
    int status;

    if (argc > 1 || !getenv("CNI_COMMAND")) {
        fputs(
            "usage: CNI_COMMAND=ADD|DEL|CHECK|STATUS|GC|VERSION ... "
            "stagecoach-cni <CONFIG\nA chained CNI plug-in, which container runtimes "
            "start: docs/integrations/kubernetes.\n",
            argc > 1 && !strcmp(argv[1], "--help") ? stdout : stderr);
        return argc > 1 && !strcmp(argv[1], "--help") ? 0 : 2;
    }
    text = read_input(&size);
    status = run(text ? text : "", size);
    free(text);
    return status;
}
