/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/launch/pod-identity.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/launch/launch.h"
#include "agent/launch/pod-labels.h"
#include "base/memory.h"
#include "base/name.h"
#include "wire/agent-call.h"

#define STAGE "stagecoach.dev/stage"
#define JOB "stagecoach.dev/job"

#define MAX_GPUS 1024 /* Of a pod, as agents allow. */

/* Returns the value of 'key', NULL if it is missing, empty or not a string. */
static const char *
get(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value && value[0] ? value : NULL;
}

char *
pod_identity_read(const struct pod *pod, struct pod_identity *identity)
{
    const char *text = get(pod->annotations, STAGE);
    struct stage_name stage = { "", -1 };
    const char *own = get(pod->labels, JOB);
    const char *job = own ? own : get(pod->annotations, JOB);
    const char *cojob =
        pod_labels_find("search", pod->labels, pod->annotations, false);
    char *error = text ? stage_name_parse(STAGE, text, '/', &stage) : NULL;
    bool annotated = text && !error;

    job =
        job ? job
            : pod_labels_find("job", pod->labels, pod->annotations, annotated);
    job = !job && annotated ? pod->name : job;
    identity->rung = stage.rung;
    identity->gpus = 0;
    snprintf(identity->space, sizeof identity->space, "%s", pod->space);
    name_fit(job ? job : "", identity->job);
    name_fit(stage.cojob[0] ? stage.cojob
             : cojob        ? cojob
                            : pod->space,
             identity->cojob);
    if (!identity->cojob[0]) {
        identity->job[0] = '\0';
    }
    return error;
}

int
pod_identity_claim(const struct pod_identity *id, bool claims,
                   const char *kind, const char *place, const char *rundir,
                   long long until)
{
    const char *words[9] = { claims ? "agent/claim" : "agent/unclaim",
                             "launcher",
                             id->cojob,
                             id->job,
                             kind,
                             place };
    char space[80], rung[24], gpus[24];
    size_t n = 6;

    if (claims && id->space[0]) {
        snprintf(space, sizeof space, "namespace=%s", id->space);
        words[n++] = space;
    }
    if (claims && id->rung >= 0) {
        snprintf(rung, sizeof rung, "rung=%d", id->rung);
        words[n++] = rung;
    }
    if (claims && id->gpus) {
        snprintf(gpus, sizeof gpus, "gpus=%u", id->gpus);
        words[n++] = gpus;
    }
    return agent_call(rundir, until, words, n, NULL);
}

/* Returns the GPUs of the containers of 'spec'. */
static unsigned int
count_gpus(const json_t *spec)
{
    const json_t *container, *limit;
    unsigned int n = 0;
    const char *name;
    size_t i;

    json_array_foreach(json_object_get(spec, "containers"), i, container)
    {
        json_t *limits =
            json_object_get(json_object_get(container, "resources"), "limits");

        json_object_foreach(limits, name, limit)
        {
            size_t length = strlen(name);

            if (length > 4 && !strcmp(name + length - 4, "/gpu")) {
                n += (json_is_string(limit)
                          ? strtoul(json_string_value(limit), NULL, 10)
                          : json_integer_value(limit));
            }
        }
    }
    return n < MAX_GPUS ? n : MAX_GPUS;
}

char *
pod_identity_find(const json_t *list, const char *uid,
                  struct pod_identity *identity)
{
    const json_t *item;
    size_t i;

    json_array_foreach(json_object_get(list, "items"), i, item)
    {
        const json_t *meta = json_object_get(item, "metadata");
        const char *own = get(meta, "uid");
        const struct pod pod = {
            .name = get(meta, "name"),
            .space = get(meta, "namespace"),
            .labels = json_object_get(meta, "labels"),
            .annotations = json_object_get(meta, "annotations"),
        };

        if (own && !strcmp(own, uid) && pod.name && pod.space) {
            char *error = pod_identity_read(&pod, identity), *text;

            identity->gpus = count_gpus(json_object_get(item, "spec"));
            text =
                error ? message("%.63s/%.253s: %s", pod.space, pod.name, error)
                      : NULL;
            free(error);
            return text;
        }
    }
    identity->job[0] = '\0';
    return NULL;
}

/* Requests. */

#define ANNOTATIONS "io.kubernetes.cri.pod-annotations"

static const char *const commands[] = {
    [CNI_ADD] = "ADD",     [CNI_DEL] = "DEL",
    [CNI_CHECK] = "CHECK", [CNI_STATUS] = "STATUS",
    [CNI_GC] = "GC",       [CNI_VERSION_COMMAND] = "VERSION",
};

static const char *const versions[] = { "0.3.0", "0.3.1", "0.4.0", "1.0.0",
                                        CNI_VERSION };

#define N(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])

/* Returns the index of 'word' in 'words', 'n' if it is missing. */
static size_t
index_of(const char *word, const char *const words[], size_t n)
{
    size_t i = 0;

    while (i < n && strcmp(word, words[i])) {
        i++;
    }
    return i;
}

/* Copies the value of 'key' in 'args', if present and if it fits. */
static void
get_arg(const char *args, const char *key, char *value, size_t size)
{
    size_t n = strlen(key);

    while (args && *args) {
        size_t length = strcspn(args, ";");

        if (length > n && !strncmp(args, key, n) && args[n] == '='
            && length - n - 1 < size) {
            memcpy(value, args + n + 1, length - n - 1);
            value[length - n - 1] = '\0';
            return;
        }
        args += length + (args[length] == ';');
    }
}

static char *
read_string(const json_t *config, const char *member, const char *deflt,
            const char **valuep)
{
    const json_t *value = json_object_get(config, member);

    if (value && (!json_is_string(value) || !json_string_length(value))) {
        return message(
            "%s: it is not a string; expected one that is not empty", member);
    }
    *valuep = value ? json_string_value(value) : deflt;
    return NULL;
}

static char *
read_config(struct cni_request *r, bool *all, int *code)
{
    const char *claim;
    char *error;

    *code = CNI_BAD_CONFIG;
    error = read_string(r->config, "cniVersion", versions[0], &r->version);
    error = error ? error
                  : read_string(r->config, "rundir", AGENT_RUNDIR, &r->rundir);
    error =
        error ? error : read_string(r->config, "claim", "annotated", &claim);
    if (error) {
        return error;
    }
    *all = !strcmp(claim, "all");
    if (!*all && strcmp(claim, "annotated")) {
        return message("claim: \"%.40s\"; expected annotated or all", claim);
    }
    if (r->command == CNI_ADD
        && !json_is_object(json_object_get(r->config, "prevResult"))) {
        return message(
            "prevResult: missing; expected this plug-in behind others");
    }
    return NULL;
}

/* Determines the job of the pod. */
static void
identify(struct cni_request *r, const char *args, bool all)
{
    char space[sizeof r->identity.space] = "";
    struct pod pod = { .name = r->name, .space = space };

    get_arg(args, "K8S_POD_NAMESPACE", space, sizeof space);
    get_arg(args, "K8S_POD_NAME", r->name, sizeof r->name);
    pod.annotations = json_object_get(
        json_object_get(r->config, "runtimeConfig"), ANNOTATIONS);
    r->warning = make_printable(pod_identity_read(&pod, &r->identity));
    if (all && !r->identity.job[0] && space[0] && r->name[0]) {
        name_fit(r->name, r->identity.job);
        name_fit(space, r->identity.cojob);
    }
}

static char *
read_request(const char *text, size_t size, const struct cni_environment *e,
             struct cni_request *r, int *code)
{
    const char *command = e->command ? e->command : "";
    size_t index = index_of(command, commands, N(commands));
    json_error_t at;
    bool all = false;
    char *error;

    memset(r, 0, sizeof *r);
    if (index == N(commands)) {
        *code = CNI_BAD_ENVIRONMENT;
        return message(
            "CNI_COMMAND: \"%.40s\"; expected ADD, DEL, CHECK, STATUS, GC "
            "or VERSION",
            command);
    }
    r->command = index;
    if (r->command == CNI_STATUS || r->command == CNI_GC) {
        return NULL;
    }
    r->config = (size || r->command != CNI_VERSION_COMMAND
                     ? json_loadb(text, size, JSON_REJECT_DUPLICATES, &at)
                     : json_object());
    if (!json_is_object(r->config)) {
        *code = CNI_NOT_JSON;
        return (
            r->config ? message(
                "standard input: it is not an object; expected a network's "
                "configuration")
                      : message(
                          "standard input:%d:%d: %s; expected a network's "
                          "configuration",
                          at.line, at.column, at.text));
    }
    if (r->command == CNI_VERSION_COMMAND) {
        *code = CNI_BAD_CONFIG;
        return read_string(r->config, "cniVersion", CNI_VERSION, &r->version);
    }
    error = read_config(r, &all, code);
    if (!error) {
        r->netns = e->netns && e->netns[0] ? e->netns : NULL;
        identify(r, e->args, all);
    }
    return error;
}

char *
cni_request_read(const char *text, size_t size,
                 const struct cni_environment *e, struct cni_request *r,
                 int *code)
{
    return make_printable(read_request(text, size, e, r, code));
}

void
cni_request_uninit(struct cni_request *r)
{
    json_decref(r->config);
    free(r->warning);
}

char *
cni_request_result(const struct cni_request *r)
{
    json_t *json, *list;
    char *text;

    if (r->command == CNI_ADD) {
        return json_dumps(json_object_get(r->config, "prevResult"),
                          JSON_COMPACT);
    }
    if (r->command != CNI_VERSION_COMMAND) {
        return NULL;
    }
    list = json_array();
    for (size_t i = 0; i < N(versions); i++) {
        json_array_append_new(list, json_string(versions[i]));
    }
    json = json_pack("{s:s, s:o}", "cniVersion", r->version,
                     "supportedVersions", list);
    text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return text;
}

/* Returns the error object of a failed command.  The caller frees it. */
char *
cni_error(const char *version, int code, const char *text)
{
    json_t *json =
        json_pack("{s:s, s:i, s:s}", "cniVersion",
                  version ? version : CNI_VERSION, "code", code, "msg", text);
    char *result = json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    return result;
}
