/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/environ.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cjson/cJSON.h>

#include "base/name.h"
#include "util.h"

struct block {
    const char *text;           /* Strings that each end in a null byte. */
    size_t size;
    char *(*host)(pid_t); /* Returns the host name of 'pid', or NULL. */
    pid_t pid;            /* Process that has the environment. */
};

/* Row of a framework.  All variables that it names must be present. */
struct row {
    const char *cojob;          /* Cojob, or its prefix. */
    const char *cojob_variable; /* Variable with the text after the prefix and
                                 * '-', or with the whole name if 'cojob' is
                                 * NULL; may be NULL. */
    const char *job;            /* Variable with the job. */
    bool is_address;            /* The job begins with an address. */
    const char *job_more;       /* Variable whose value follows after '-', the
                                 * port of a rendezvous, or NULL. */

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
    { NULL, "STAGECOACH_COJOB", "STAGECOACH_JOB" },
    { "nni", "NNI_EXP_ID", "NNI_TRIAL_JOB_ID" },
    { "katib", NULL, "KATIB_TRIAL_NAME" },
    { "slurm", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID" },
    { "slurm", NULL, "SLURM_JOB_ID" },
    { "torch", NULL, "TORCHELASTIC_RUN_ID", .extract = extract_run_id },
    { "torch", NULL, "MASTER_ADDR", true, "MASTER_PORT" },
    { "ps-lite", NULL, "DMLC_PS_ROOT_URI", true, "DMLC_PS_ROOT_PORT" },
    { "horovod", NULL, "HOROVOD_GLOO_RENDEZVOUS_ADDR", true,
      "HOROVOD_GLOO_RENDEZVOUS_PORT" },
    { "tensorflow", NULL, "TF_CONFIG", true, .extract = extract_tf_config },
    { "mpi", NULL, "PMIX_NAMESPACE" },
    { "ray", NULL, "RAY_JOB_ID" },
    { "kubernetes", NULL, "HOSTNAME", .extract = extract_pod_job },
};

/* Returns true if each host would mean itself by 'address'. */
static bool
is_local(const char *address)
{
    static const char *const names[] = {
        "localhost",  "localhost.localdomain", "localhost4",
        "localhost6", "ip6-localhost",         "ip6-loopback"
    };
    struct in6_addr v6;
    struct in_addr v4;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (!strcasecmp(address, names[i])) {
            return true;
        }
    }
    if (inet_pton(AF_INET6, address, &v6) == 1) {
        if (!IN6_IS_ADDR_V4MAPPED(&v6)) {
            return IN6_IS_ADDR_LOOPBACK(&v6) || IN6_IS_ADDR_UNSPECIFIED(&v6);
        }
        memcpy(&v4, &v6.s6_addr[12], sizeof v4);
    } else if (inet_pton(AF_INET, address, &v4) != 1) {
        return false;
    }
    return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET || !v4.s_addr;
}

/* Returns 'value', "ADDRESS", "ADDRESS:PORT" or "[ADDRESS]:PORT", with the
 * host name in place of a local address. */
static char *
without_local(const char *value, const struct block *b)
{
    const char *open = value[0] == '[' ? strchr(value, ']') : NULL;
    const char *colon = strchr(value, ':');
    bool has_port = !open && colon && !strchr(colon + 1, ':');
    size_t n = open       ? open - value - 1
               : has_port ? colon - value
                          : strlen(value);
    char *address = xmemdup0(value + (open != NULL), n);
    char *host = is_local(address) ? b->host(b->pid) : NULL;
    char *result = host ? xasprintf("%s%s", host, open ? open + 1 : value + n)
                        : xstrdup(value);

    free(host);
    free(address);
    return result;
}

static char *
job_of_row(const struct row *row, const struct block *b)
{
    const char *value = get(b, row->job);
    const char *more = row->job_more ? get(b, row->job_more) : NULL;
    char *job;

    if (!value || (row->job_more && !more)) {
        return NULL;
    }
    job = row->extract ? row->extract(value, b) : xstrdup(value);
    if (job && row->is_address) {
        char *address = job;

        job = without_local(address, b);
        free(address);
    }
    if (job && more) {
        char *first = job;

        job = xasprintf("%s-%s", first, more);
        free(first);
    }
    return job;
}

static char *
cojob_of_row(const struct row *row, const struct block *b, uid_t uid)
{
    const char *value = row->cojob_variable ? get(b, row->cojob_variable)
                        : NULL;
    const char *cojob = get(b, "STAGECOACH_COJOB");

    if (row->cojob_variable && !value) {
        return NULL;
    }
    if (cojob) {
        return xstrdup(cojob);
    }
    return value ? xasprintf("%s-%s-u%lu", row->cojob, value,
                             (unsigned long) uid)
           : xasprintf("%s-u%lu", row->cojob, (unsigned long) uid);
}

/* Returns the job, "COJOB/JOB", of a process of user 'uid' with the 'size'
 * bytes of environment at 'environ', or NULL if no row matches. */
char *
environ_job(const char *environ, size_t size, uid_t uid, char *(*host)(pid_t),
            pid_t pid)
{
    const struct block b = { environ, size, host, pid };

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

uint16_t
environ_rendezvous(const char *environ, size_t size)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const char *name = rows[i].job_more;
        const char *value = name ? environ_get(environ, size, name) : NULL;
        int port;

        if (value && str_to_int(value, 10, &port) && port > 0
            && port <= UINT16_MAX) {
            return port;
        }
    }
    return 0;
}
