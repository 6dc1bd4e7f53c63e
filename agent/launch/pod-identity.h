/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POD_IDENTITY_H
#define POD_IDENTITY_H 1

/* Jobs of pods, and requests of container runtimes about them.
 *
 * Operators of training on Kubernetes label its pods; a table (pod-labels.h)
 * has the labels that name the job, which is what owns all pods that train
 * together, and the cojob, which is else the namespace.  The annotation
 * stagecoach.dev/job, which may be a label, names the job before any other.
 *
 * The annotation stagecoach.dev/stage, "asha7/2" (or "asha7" alone), has what
 * cannot be derived.  It also assigns pods without these labels to a job, with
 * the name of the batch job or of the pod.  Pods without any of these
 * belong to no job.
 *
 * API servers and kubelets send a PodList: {"items": [{"metadata": {"name",
 * "namespace", "uid", "labels", "annotations"}, ...}]}.  Cgroups are named
 * after the UID.  The GPUs of a container are its limits with a name that ends
 * with "/gpu", such as nvidia.com/gpu.
 *
 * Names of Kubernetes can be longer than those of jobs: see name_fit().
 *
 *    error = pod_identity_read(&pod, &identity);
 *    if (identity.job[0]) {
 *        ...it is identity.cojob/identity.job...
 *    }
 *    ...warn and free(error)...
 *
 *    error = pod_identity_find(list, "c3a1f0d2-...", &identity);
 *
 * A runtime starts a plug-in with a command and the container in environment
 * variables and the configuration of the network on standard input, and reads
 * the result from standard output (github.com/containernetworking/cni,
 * SPEC.md).  This plug-in runs after those that create the network: their
 * result arrives as "prevResult" and must be passed on unchanged.  Unknown
 * members are ignored.
 *
 * It only observes, so it must never keep a pod from starting or ending, or
 * make a node NotReady: STATUS and GC succeed without reading anything, and a
 * version that is not known is treated as the newest one, where the
 * specification wants an error.
 *
 *    error = cni_request_read(text, size, &environment, &request, &code);
 *    if (!error && request.identity.job[0]) {
 *        ...request.netns belongs to the job...
 *    }
 *    ...cni_request_result(&request)...
 *    cni_request_uninit(&request);
 *
 * Configuration: {"cniVersion", "name", "type", "prevResult", "rundir"?,
 * "claim"?: "annotated" or "all" pods, "capabilities":
 * {"io.kubernetes.cri.pod-annotations": true}}; with that capability the
 * runtime adds the annotations of the pod as "runtimeConfig".
 *
 * The caller owns the JSON, and a request its strings.  No state. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/name.h"

struct pod {
    const char *name;
    const char *space;          /* Namespace of the pod. */
    const json_t *labels;       /* An object; anything else counts as no
                                 * labels. */
    const json_t *annotations;
};

struct pod_identity {
    char space[64]; /* Namespace of the pod, which is its user. */
    char cojob[NAME_SIZE];
    char job[NAME_SIZE];        /* Empty if the pod belongs to no job. */
    int rung;                   /* -1 if unknown. */
    unsigned int gpus; /* Of its containers, by pod_identity_find(); 0 if
                        * it has none. */
};

/* Always sets '*identity'.  Returns NULL, or a malloc()'d message about an
 * invalid annotation that was ignored. */
char *pod_identity_read(const struct pod *, struct pod_identity *identity);

/* The same for the pod 'uid' of 'list', a PodList, with its GPUs.  It belongs
 * to no job if it is not there. */
char *pod_identity_find(const json_t *list, const char *uid,
                        struct pod_identity *identity);

/* Claims 'place', a path of 'kind' "cgroup" or "netns", for the pod's job, or
 * takes the claim back, by the agent in 'rundir'.  Returns 0 or a positive
 * errno value as agent_call(). */
int pod_identity_claim(const struct pod_identity *, bool claims,
                       const char *kind, const char *place, const char *rundir,
                       long long until);

/* Error codes of the specification. */
enum {
    CNI_BAD_ENVIRONMENT = 4,
    CNI_NOT_JSON = 6,
    CNI_BAD_CONFIG = 7,
};

/* Newest supported version of the protocol. */
#define CNI_VERSION "1.1.0"

enum cni_command {
    CNI_ADD,
    CNI_DEL,
    CNI_CHECK,
    CNI_STATUS,
    CNI_GC,
    CNI_VERSION_COMMAND,
};

/* Environment variables, NULL if not set. */
struct cni_environment {
    const char *command; /* CNI_COMMAND. */
    const char *netns;   /* CNI_NETNS. */
    const char *args;    /* CNI_ARGS: "A=b;C=d". */
};

struct cni_request {
    enum cni_command command;
    json_t *config;      /* NULL for STATUS and GC. */
    const char *version; /* Version in the configuration. */
    const char *rundir;
    const char *netns; /* Network namespace of the container, or NULL. */
    char name[256];    /* Name of the pod, empty if not passed. */
    struct pod_identity identity;
    char *warning; /* Description of an ignored value, or NULL. */
};

/* Returns NULL or a malloc()'d message; then '*code' is its error code.  Call
 * cni_request_uninit() in either case. */
char *cni_request_read(const char *text, size_t size,
                       const struct cni_environment *,
                       struct cni_request *request, int *code);
void cni_request_uninit(struct cni_request *);

/* Returns the text to print, which the caller frees, or NULL for nothing. */
char *cni_request_result(const struct cni_request *);
char *cni_error(const char *version, int code, const char *message);

#endif /* agent/launch/pod-identity.h */
