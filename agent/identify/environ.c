/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/environ.h"

#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/name.h"
#include "util.h"

struct block {
    const char *text;           /* Strings that each end in a null byte. */
    size_t size;
};

/* Row of a framework.  All variables that it names must be present. */
struct row {
    const char *cojob;          /* Cojob, or its prefix. */
    const char *cojob_variable; /* Variable whose value follows the prefix
                                 * and '-', or is the whole name if 'cojob'
                                 * is NULL; may be NULL. */
    const char *job;            /* Variable with the job. */
    const char *job_more;       /* Variable whose value follows after '-',
                                 * or NULL. */

    /* Derives the job from the value of 'job'; returns NULL to skip the row.
     * NULL if the value is the job. */
    char *(*extract)(const char *value, const struct block *);
};

const char *
environ_get(const char *environ, size_t size, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = environ, *next; p < environ + size; p = next) {
        const char *end = memchr(p, '\0', environ + size - p);

        if (!end) {
            break;              /* The environment was truncated. */
        }
        next = end + 1;
        if (!strncmp(p, name, n) && p[n] == '=') {
            return p + n + 1;
        }
    }
    return NULL;
}

/* Returns the value of 'name', NULL if it is missing or empty. */
static const char *
get(const struct block *b, const char *name)
{
    const char *value = environ_get(b->text, b->size, name);

    return value && value[0] ? value : NULL;
}

/* Default run id of torchrun. */
static char *
extract_run_id(const char *value, const struct block *b OVS_UNUSED)
{
    return strcmp(value, "none") ? xstrdup(value) : NULL;
}

/* The name of a pod of an indexed job consists of the job's name and its
 * index. */
static char *
extract_pod_job(const char *value, const struct block *b)
{
    const char *index = get(b, "JOB_COMPLETION_INDEX");
    size_t n = strlen(value), m = index ? strlen(index) : 0;

    return (m && n > m + 1 && value[n - m - 1] == '-'
            && !strcmp(value + n - m, index)
            ? xmemdup0(value, n - m - 1) : NULL);
}

/* First task in the description of a TensorFlow cluster. */
static char *
extract_tf_config(const char *value, const struct block *b OVS_UNUSED)
{
    static const char *const types[] = { "chief", "master", "worker", "ps" };
    cJSON *config = cJSON_Parse(value);
    const cJSON *cluster = cJSON_GetObjectItemCaseSensitive(config, "cluster");
    char *job = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(types) && !job; i++) {
        const cJSON *task = cJSON_GetObjectItemCaseSensitive(cluster,
                                                             types[i]);
        const cJSON *first = cJSON_GetArrayItem(task, 0);

        if (cJSON_IsArray(task) && cJSON_IsString(first)
            && first->valuestring[0]) {
            job = xstrdup(first->valuestring);
        }
    }
    cJSON_Delete(config);
    return job;
}

/* More specific rows first: a framework runs below a launcher, and the search
 * is known to its tool. */
static const struct row rows[] = {
    { NULL, "STAGECOACH_COJOB", "STAGECOACH_JOB", NULL, NULL },
    { "nni", "NNI_EXP_ID", "NNI_TRIAL_JOB_ID", NULL, NULL },
    { "katib", NULL, "KATIB_TRIAL_NAME", NULL, NULL },
    { "slurm", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", NULL, NULL },
    { "slurm", NULL, "SLURM_JOB_ID", NULL, NULL },
    { "torch", NULL, "TORCHELASTIC_RUN_ID", NULL, extract_run_id },
    { "torch", NULL, "MASTER_ADDR", "MASTER_PORT", NULL },
    { "ps-lite", NULL, "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT", NULL },
    { "horovod", NULL, "HOROVOD_GLOO_RENDEZVOUS_ADDR",
      "HOROVOD_GLOO_RENDEZVOUS_PORT", NULL },
    { "tensorflow", NULL, "TF_CONFIG", NULL, extract_tf_config },
    { "mpi", NULL, "PMIX_NAMESPACE", NULL, NULL },
    { "ray", NULL, "RAY_JOB_ID", NULL, NULL },
    { "kubernetes", NULL, "HOSTNAME", NULL, extract_pod_job },
};

static char *
job_of_row(const struct row *row, const struct block *b)
{
    const char *value = get(b, row->job);
    const char *more = row->job_more ? get(b, row->job_more) : NULL;

    if (!value || (row->job_more && !more)) {
        return NULL;
    }
    if (row->extract) {
        return row->extract(value, b);
    }
    return more ? xasprintf("%s-%s", value, more) : xstrdup(value);
}

static char *
cojob_of_row(const struct row *row, const struct block *b, uid_t uid)
{
    const char *value = row->cojob_variable ? get(b, row->cojob_variable)
                        : NULL;
    const char *told = get(b, "STAGECOACH_COJOB");

    if (row->cojob_variable && !value) {
        return NULL;
    }
    if (told) {
        return xstrdup(told);
    }
    return value ? xasprintf("%s-%s-u%lu", row->cojob, value,
                             (unsigned long) uid)
           : xasprintf("%s-u%lu", row->cojob, (unsigned long) uid);
}

/* Returns the job, "COJOB/JOB", of a process of user 'uid' with the 'size'
 * bytes of environment at 'environ', or NULL if no row matches. */
char *
environ_job(const char *environ, size_t size, uid_t uid)
{
    const struct block b = { environ, size };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char *job = job_of_row(&rows[i], &b);
        char *cojob = job ? cojob_of_row(&rows[i], &b, uid) : NULL;
        char job_name[NAME_SIZE] = "", cojob_name[NAME_SIZE] = "";

        if (cojob) {
            name_fit(job, job_name);
            name_fit(cojob, cojob_name);
        }
        free(cojob);
        free(job);
        if (cojob_name[0] && job_name[0]) {
            return xasprintf("%s/%s", cojob_name, job_name);
        }
    }
    return NULL;
}
