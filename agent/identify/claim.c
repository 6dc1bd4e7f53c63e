/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/claim.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/identify/process.h"
#include "util.h"
#include "wire/cgroup-path.h"
#include "wire/shim-protocol.h"

const char *const claim_source_names[] = {
    [CLAIM_REGISTRATION] = "registration",
    [CLAIM_LAUNCHER] = "launcher",
    [CLAIM_CGROUP] = "cgroup",
    [CLAIM_ENVIRONMENT] = "environment",
    [CLAIM_PORT] = "port",
};

const char *const claim_kind_names[] = {
    [CLAIMS_CGROUP] = "cgroup",
    [CLAIMS_NETNS] = "netns",
    [CLAIMS_PROCESS] = "pid",
};

static char *
parse_process(const char *text, struct claim_what *what)
{
    struct process process;
    int pid;

    if (!str_to_int(text, 10, &pid) || pid < 2) {
        return xasprintf("pid: \"%.40s\" is not the id of a process, 2 and "
                         "more are allowed", text);
    }
    if (!process_read(pid, &process)) {
        return xasprintf("pid: there is no process %d", pid);
    }
    what->id = pid;
    return NULL;
}

/* Takes ownership of 'path'. */
static char *
parse_path(const char *kind, char *path, bool directory,
           struct claim_what *what, char **pathp)
{
    struct stat s;
    char *error = NULL;

    if (stat(path, &s)) {
        error = xasprintf("%s: %.200s: %s", kind, path, ovs_strerror(errno));
    } else if (S_ISDIR(s.st_mode) != directory) {
        error = xasprintf("%s: %.200s is not a %s, such as %s is allowed",
                          kind, path, kind,
                          directory ? "/kubepods.slice/a" : "/run/netns/a");
    } else {
        what->id = s.st_ino;
        *pathp = path;
        return NULL;
    }
    free(path);
    return error;
}

/* Parses 'kind', "cgroup", "netns" or "pid", and 'text' into '*what', and
 * stores the path in '*pathp', which the caller must free; NULL for a process.
 * The path of a cgroup may begin below 'cgroup_mount', as in /proc/PID/cgroup;
 * that is NULL without cgroup v2.  Returns NULL, or a malloc()'d message. */
char *
claim_what_parse(const char *kind, const char *text, const char *cgroup_mount,
                 struct claim_what *what, char **pathp)
{
    *pathp = NULL;
    if (!strcmp(kind, claim_kind_names[CLAIMS_PROCESS])) {
        what->kind = CLAIMS_PROCESS;
        return parse_process(text, what);
    }
    what->kind = !strcmp(kind, claim_kind_names[CLAIMS_NETNS]) ? CLAIMS_NETNS
                                                               : CLAIMS_CGROUP;
    if (what->kind == CLAIMS_CGROUP
        && strcmp(kind, claim_kind_names[CLAIMS_CGROUP])) {
        return xasprintf("\"%.40s\" cannot be claimed, cgroup, netns and pid "
                         "are allowed", kind);
    }
    if (text[0] != '/' || strstr(text, "/../")) {
        return xasprintf("%s: \"%.200s\" is not a path, absolute ones without "
                         "\"..\" are allowed", kind, text);
    }
    if (what->kind == CLAIMS_NETNS) {
        return parse_path(kind, xstrdup(text), false, what, pathp);
    }
    if (!cgroup_mount) {
        return xasprintf("cgroup: no cgroup v2 file system is mounted");
    }
    return parse_path(kind, !strncmp(text, cgroup_mount, strlen(cgroup_mount))
                      ? xstrdup(text) : xasprintf("%s%s", cgroup_mount, text),
                      true, what, pathp);
}

/* Parses "FIRST[-LAST]=COJOB/JOB" into '*rule'.  Returns NULL or a malloc()'d
 * message. */
char *
port_rule_parse(const char *text, struct port_rule *rule)
{
    int first, last, n = 0;

    if (sscanf(text, "%d-%d=%n", &first, &last, &n) != 2 || !n) {
        n = 0;
        last = sscanf(text, "%d=%n", &first, &n) == 1 && n ? first : -1;
    }
    if (!n || first < 1 || last < first || last > 65535) {
        return xasprintf("\"%.80s\" has no ports, such as 29500-29510=asha/t0 "
                         "is allowed", text);
    }
    if (!cgroup_job_is_valid(text + n)) {
        return xasprintf("\"%.80s\" is not a job, COJOB/JOB, each " NAME_RULE,
                         text + n);
    }
    rule->first = first;
    rule->last = last;
    ovs_strlcpy(rule->job, text + n, sizeof rule->job);
    return NULL;
}
