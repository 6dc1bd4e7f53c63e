/* SPDX-License-Identifier: Apache-2.0 */

/* What a pod is called, by its cgroup and by its labels. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/launch/pod-identity.h"
#include "agent/launch/pod-path.h"
#include "tests/unit/unit-test.h"

#define UID "c3a1f0d2-0f1e-4b7c-9d58-1234567890ab"
#define UID_ "c3a1f0d2_0f1e_4b7c_9d58_1234567890ab"
#define HASH "0123456789abcdef0123456789abcdef"
#define ID HASH HASH
#define SLICE "/kubepods.slice/kubepods-burstable.slice/" \
    "kubepods-burstable-pod"UID_".slice"

UNIT_TEST(knows_the_cgroups_of_pods)
{
    static const struct {
        const char *path;
        const char *uid;        /* NULL: no pod's. */
    } cases[] = {
        /* Driver systemd. */
        { SLICE "/cri-containerd-" ID ".scope", UID },
        { SLICE "/crio-" ID ".scope", UID },
        { SLICE "/docker-" ID ".scope\n", UID },
        { SLICE "/crio-" ID ".scope/container/init.scope", UID },
        { SLICE "/crio-conmon-" ID ".scope", UID },
        { SLICE, UID },
        { SLICE "/", UID },
        { "/kubepods.slice/kubepods-pod" UID_ ".slice/cri-containerd-" ID
          ".scope",
          UID },
        { "/kubelet-kubepods.slice/kubelet-kubepods-besteffort"
          ".slice/kubelet-kubepods-besteffort-pod" UID_
          ".slice/cri-containerd-" ID ".scope",
          UID },

        /* Driver cgroupfs. */
        { "/kubepods/burstable/pod" UID "/" ID, UID },
        { "/kubepods/pod" UID "/" ID, UID },
        { "/kubepods/besteffort/pod" UID, UID },
        { "/kubepods/besteffort/pod" UID "/crio-" ID, UID },
        { "/kubepods/burstable/pod" HASH "/" ID, HASH },

        /* containerd with systemd's names but not its driver. */
        { "/kubepods-burstable-pod" UID_ ".slice:cri-containerd:" ID, UID },

        /* Where a user may make his own. */
        { "/user.slice/user-1000.slice/user@1000.service/kubepods/pod" UID,
          NULL },
        { "/docker/" ID "/kubepods/burstable/pod" UID "/" ID, NULL },
        { "/kubepods/burstable/a/pod" UID, NULL },
        { "/kubepods.slice/kubepods-burstable.slice", NULL },
        { "/pod" UID "/" ID, NULL },
        { "/docker/" ID, NULL },
        { "/kubepods/podC3A1F0D2-0f1e-4b7c-9d58-1234567890ab", NULL },
        { "/kubepods/pod" UID "0", NULL },
        { "/kubepods/xpod" UID, NULL },
        { "/kubepods/pod", NULL },
        { "/kubepods/p", NULL },
        { "/kubepods/burstable/pod" UID "/" ID "0", UID },
        { "/kubepods/burstable/pod" UID "/0" HASH, UID },
        { "", NULL },
        { "////", NULL },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char uid[37] = "untouched";

        assert_int_equal(pod_path_parse(cases[i].path, uid) > 0,
                         cases[i].uid != NULL);
        assert_string_equal(uid, cases[i].uid ? cases[i].uid : "untouched");
    }
}

UNIT_TEST(knows_the_labels_of_others)
{
    static const struct {
        const char *labels;
        const char *annotations;
        const char *job; /* NULL: of no job. */
        const char *cojob;
        int rung;
    } cases[] = {
        { "{}", "{}", NULL, NULL, -1 },
        { "{'app': 'web', 'job-name': 'backup-17'}", "{}", NULL, NULL, -1 },
        { "{'training.kubeflow.org/job-name': 'bert',"
          " 'training.kubeflow.org/replica-type': 'worker'}",
          "{}", "bert", "ml", -1 },
        { "{'volcano.sh/job-name': 'v'}", "{}", "v", "ml", -1 },
        { "{}", "{'scheduling.k8s.io/group-name': 'g'}", "g", "ml", -1 },
        { "{'ray.io/cluster': 'r'}", "{}", "r", "ml", -1 },
        { "{'katib.kubeflow.org/experiment': 'asha7',"
          " 'katib.kubeflow.org/trial': 'asha7-x1',"
          " 'training.kubeflow.org/job-name': 'asha7-x1'}",
          "{}", "asha7-x1", "asha7", -1 },
        { "{'training.kubeflow.org/job-name': 'bert'}",
          "{'stagecoach.dev/stage': 'hyper/2'}", "bert", "hyper", 2 },
        { "{'job-name': 'backup-17'}", "{'stagecoach.dev/stage': 'hyper'}",
          "backup-17", "hyper", -1 },
        { "{}", "{'stagecoach.dev/stage': 'hyper/0'}", "pod-0", "hyper", 0 },
        { "{'ray.io/cluster': 'r'}",
          "{'stagecoach.dev/stage': 'hyper/0',"
          " 'stagecoach.dev/job': 't3'}",
          "t3", "hyper", 0 },
        /* A TrainJob's JobSet, and the batch jobs of its roles. */
        { "{'jobset.sigs.k8s.io/jobset-name': 'llama',"
          " 'jobset.sigs.k8s.io/replicatedjob-name': 'node',"
          " 'batch.kubernetes.io/job-name': 'llama-node-0',"
          " 'job-name': 'llama-node-0'}",
          "{}", "llama", "ml", -1 },
        { "{'batch.kubernetes.io/job-name': 'llama-ps-0',"
          " 'batch.kubernetes.io/job-completion-index': '0',"
          " 'jobset.sigs.k8s.io/jobset-name': 'llama'}",
          "{'stagecoach.dev/stage': 'asha7/2'}", "llama", "asha7", 2 },
        { "{'pytorch-job-name': 'old', 'job-name': 'old-master'}", "{}", "old",
          "ml", -1 },
        { "{'leaderworkerset.sigs.k8s.io/name': 'lws',"
          " 'leaderworkerset.sigs.k8s.io/group-index': '0'}",
          "{}", "lws", "ml", -1 },
        { "{'kueue.x-k8s.io/pod-group-name': 'grp'}", "{}", "grp", "ml", -1 },
        { "{'volcano.sh/job-name': 'vc'}",
          "{'scheduling.k8s.io/group-name': 'vc-3d5e'}", "vc", "ml", -1 },
        { "{'ray.io/cluster': 'r', 'ray.io/originated-from-cr-name': 'j'}",
          "{'scheduling.k8s.io/group-name': 'ray-r-pg'}", "r", "ml", -1 },
        { "{'batch.kubernetes.io/job-name': 'etl'}", "{}", NULL, NULL, -1 },
        { "{'batch.kubernetes.io/job-name': 'bert',"
          " 'batch.kubernetes.io/job-completion-index': '3'}",
          "{}", "bert", "ml", -1 },
        { "{'job-name': 'bert'}",
          "{'batch.kubernetes.io/job-completion-index': '3'}", "bert", "ml",
          -1 },
        { "{'ray.io/cluster': 'r'}", "{'stagecoach.dev/stage': 'a/2/3'}", "r",
          "ml", -1 },
        { "{'job-name': 'b'}", "{'stagecoach.dev/stage': 'a/2/3'}", NULL, NULL,
          -1 },
        { "{'ray.io/cluster': 7}", "{}", NULL, NULL, -1 },
        { "{'ray.io/cluster': ''}", "{}", NULL, NULL, -1 },
        { "[]", "7", NULL, NULL, -1 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char labels[256], annotations[256];
        struct pod_identity id;
        struct pod pod = { .name = "pod-0", .space = "ml" };
        char *error;

        snprintf(labels, sizeof labels, "%s", cases[i].labels);
        snprintf(annotations, sizeof annotations, "%s", cases[i].annotations);
        for (char *p = labels; (p = strchr(p, '\'')); *p = '"') {
        }
        for (char *p = annotations; (p = strchr(p, '\'')); *p = '"') {
        }
        pod.labels = json_loads(labels, 0, NULL);
        pod.annotations = json_loads(annotations, JSON_DECODE_ANY, NULL);
        assert_non_null(pod.labels);
        assert_non_null(pod.annotations);
        error = pod_identity_read(&pod, &id);
        if (strstr(annotations, "2/3")) {
            assert_says(error, "stagecoach.dev/stage: \"a/2/3\" is not");
        } else {
            assert_null(error);
        }
        assert_string_equal(id.job, cases[i].job ? cases[i].job : "");
        if (cases[i].job) {
            assert_string_equal(id.cojob, cases[i].cojob);
            assert_int_equal(id.rung, cases[i].rung);
        }
        json_decref((json_t *) pod.labels);
        json_decref((json_t *) pod.annotations);
    }
}

UNIT_TEST(reads_a_list_of_pods)
{
    static const char text[] =
        "{\"kind\": \"PodList\", \"items\": ["
        "{\"metadata\": {\"name\": \"web\", \"namespace\": \"x\","
        "  \"uid\": \"1-1\"}},"
        "{\"metadata\": {\"name\": \"b\", \"namespace\": \"x\","
        "  \"uid\": \"9-9\", \"labels\": {\"ray.io/cluster\": \"r\"}},"
        " \"spec\": {\"containers\": ["
        "  {\"resources\": {\"limits\": {\"nvidia.com/gpu\": \"4\","
        "    \"cpu\": \"7\"}}},"
        "  {\"resources\": {\"limits\": {\"amd.com/gpu\": 2}}}, {}]}},"
        "{\"metadata\": {\"name\": \"a\", \"namespace\": \"x\","
        "  \"uid\": \"5-5\", \"annotations\": {"
        "     \"stagecoach.dev/stage\": \"s/1\"}}},"
        "{\"metadata\": {\"name\": \"c\", \"namespace\": \"x\","
        "  \"uid\": \"6-6\", \"annotations\": {"
        "     \"stagecoach.dev/stage\": \"/1\"}}},"
        "{\"metadata\": {\"name\": \"no uid\"}}, 7, {}]}";
    json_t *json = json_loadb(text, sizeof text - 1, 0, NULL);
    static const struct {
        const char *uid, *cojob, *job;
        int rung;
        unsigned int gpus;
    } cases[] = {
        { "9-9", "x", "r", -1, 6 }, { "5-5", "s", "a", 1, 0 },
        { "1-1", "x", "", -1, 0 },  { "7-7", NULL, "", -1, 0 },
        { "", NULL, "", -1, 0 },
    };
    struct pod_identity id;
    char *error;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_null(pod_identity_find(json, cases[i].uid, &id));
        assert_string_equal(id.job, cases[i].job);
        if (cases[i].cojob) {
            assert_string_equal(id.space, "x");
            assert_string_equal(id.cojob, cases[i].cojob);
            assert_int_equal(id.rung, cases[i].rung);
            assert_int_equal(id.gpus, cases[i].gpus);
        }
    }
    error = pod_identity_find(json, "6-6", &id);
    assert_non_null(error);
    assert_memory_equal(error, "x/c: stagecoach.dev", 19);
    free(error);
    json_decref(json);
}

/* An annotation decides even where names of pods would. */
UNIT_TEST(reads_a_request)
{
    static const char text[] =
        "{\"cniVersion\": \"1.0.0\", \"name\": \"n\", \"type\": \"t\","
        " \"rundir\": \"/r\", \"claim\": \"all\", \"prevResult\": {\"z\": 1,"
        " \"a\": [12345678901234567]}, \"runtimeConfig\": {"
        " \"io.kubernetes.cri.pod-annotations\": {"
        " \"stagecoach.dev/stage\": \"hyper/3\"}}}";
    struct cni_environment e = {
        "ADD", "/run/netns/x",
        "IgnoreUnknown=1;K8S_POD_NAMESPACE=ml;K8S_POD_NAME=pod-0;"
        "K8S_POD_INFRA_CONTAINER_ID=7"
    };
    struct cni_request r;
    int code;

    assert_null(cni_request_read(text, sizeof text - 1, &e, &r, &code));
    assert_string_equal(r.rundir, "/r");
    assert_string_equal(r.netns, "/run/netns/x");
    assert_string_equal(r.identity.cojob, "hyper");
    assert_string_equal(r.identity.job, "pod-0");
    assert_int_equal(r.identity.rung, 3);
    assert_is(cni_request_result(&r), "{\"z\":1,\"a\":[12345678901234567]}");
    cni_request_uninit(&r);
}
