/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/launch/cni-request.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/name.h"
#include "wire/agent-call.h"

#define ANNOTATIONS "io.kubernetes.cri.pod-annotations"

static const char *const commands[] = {
    [CNI_ADD] = "ADD",
    [CNI_DEL] = "DEL",
    [CNI_CHECK] = "CHECK",
    [CNI_VERSION_COMMAND] = "VERSION",
};

static const char *const versions[] = { "0.3.0", "0.3.1", "0.4.0",
                                        CNI_VERSION };

#define N(ARRAY) (sizeof (ARRAY) / sizeof (ARRAY)[0])

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
        return message("%s: it is not a string, one that is not empty is "
                       "allowed", member);
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
        return message("claim: \"%.40s\", annotated and all are allowed",
                       claim);
    }
    if (r->command == CNI_ADD
        && !json_is_object(json_object_get(r->config, "prevResult"))) {
        return message("prevResult: it is missing, this plug-in is allowed "
                       "behind others only");
    }
    if (index_of(r->version, versions, N(versions)) == N(versions)) {
        *code = CNI_BAD_VERSION;
        return message("cniVersion: \"%.40s\", 0.3.0 to "CNI_VERSION
                       " are allowed", r->version);
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
        return message("CNI_COMMAND: \"%.40s\", ADD, DEL, CHECK and VERSION "
                       "are allowed", command);
    }
    r->command = index;
    r->config = (size || r->command != CNI_VERSION_COMMAND
                 ? json_loadb(text, size, JSON_REJECT_DUPLICATES, &at)
                 : json_object());
    if (!json_is_object(r->config)) {
        *code = CNI_NOT_JSON;
        return (r->config
                ? message("standard input: it is not an object, a network's "
                          "configuration is allowed")
                : message("standard input:%d:%d: %s, a network's "
                          "configuration is allowed", at.line, at.column,
                          at.text));
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
    json_t *json;
    char *text;

    if (r->command == CNI_ADD) {
        return json_dumps(json_object_get(r->config, "prevResult"),
                          JSON_COMPACT);
    }
    if (r->command != CNI_VERSION_COMMAND) {
        return NULL;
    }
    json = json_pack("{s:s, s:[ssss]}", "cniVersion", r->version,
                     "supportedVersions", versions[0], versions[1],
                     versions[2], versions[3]);
    text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return text;
}

/* Returns the error object of a failed command.  The caller frees it. */
char *
cni_error(const char *version, int code, const char *text)
{
    json_t *json = json_pack("{s:s, s:i, s:s}", "cniVersion",
                             version ? version : CNI_VERSION, "code", code,
                             "msg", text);
    char *result = json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    return result;
}
