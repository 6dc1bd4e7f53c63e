/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/decide/policy-file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "policies/policy.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(policy_file);

/* Time between two checks of the file.  Editors replace a file by rename(), so
 * the name is checked. */
#define CHECK_MS 500

struct policy_file {
    char *name;                 /* Absolute: daemons change directories. */
    struct policy *policy;      /* In force. */
    struct policy *previous;    /* Freed at the next replacement. */
    char *error;                /* Of the last read, NULL if it succeeded. */
    struct stat seen;           /* The file as it was last read. */
    long long next_check;        /* time_msec(). */
};

/* Logs the warnings of the policy in force. */
static void
log_warnings(const struct policy_file *pf)
{
    char *warnings = policy_warnings(pf->name, pf->policy);

    if (warnings) {
        char *save = NULL;

        for (char *line = strtok_r(warnings, "\n", &save); line;
             line = strtok_r(NULL, "\n", &save)) {
            VLOG_WARN("%s", line);
        }
        free(warnings);
    }
}

/* Reads a policy that shims can serve. */
static char *
read_policy(const char *name, struct policy **policyp)
{
    char *error = policy_from_file(name, policyp);

    error = error ? error : policy_check_served(name, *policyp);
    if (error) {
        policy_destroy(*policyp);
        *policyp = NULL;
    }
    return error;
}

/* Opens the policy file 'name'.  Fails if it is not a valid policy. */
char *
policy_file_open(const char *name, struct policy_file **pfp)
{
    struct policy_file *pf = xzalloc(sizeof *pf);
    char *error;

    *pfp = NULL;
    pf->name = abs_file_name(NULL, name);
    if (!pf->name) {
        pf->name = xstrdup(name);
    }
    if (stat(pf->name, &pf->seen)) {
        memset(&pf->seen, 0, sizeof pf->seen);
    }
    error = read_policy(pf->name, &pf->policy);
    if (error) {
        policy_file_close(pf);
        return error;
    }
    log_warnings(pf);
    pf->next_check = time_msec() + CHECK_MS;
    *pfp = pf;
    return NULL;
}

void
policy_file_close(struct policy_file *pf)
{
    if (pf) {
        policy_destroy(pf->policy);
        policy_destroy(pf->previous);
        free(pf->error);
        free(pf->name);
        free(pf);
    }
}

static bool
is_same_file(const struct stat *a, const struct stat *b)
{
    return (a->st_dev == b->st_dev && a->st_ino == b->st_ino
            && a->st_size == b->st_size
            && a->st_mtim.tv_sec == b->st_mtim.tv_sec
            && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec);
}

/* Reads the file now.  Returns true if another policy is in force. */
bool
policy_file_reload(struct policy_file *pf)
{
    struct policy *policy;
    char *error;

    if (stat(pf->name, &pf->seen)) {
        memset(&pf->seen, 0, sizeof pf->seen);
    }
    error = read_policy(pf->name, &policy);
    if (error) {
        VLOG_WARN("%s; policy %s (%s) stays in force", error,
                  pf->policy->name, pf->policy->hash);
        free(pf->error);
        pf->error = error;
        return false;
    }
    free(pf->error);
    pf->error = NULL;
    if (!strcmp(policy->hash, pf->policy->hash)) {
        policy_destroy(policy);
        return false;
    }
    VLOG_INFO("%s: policy %s (%s) is in force", pf->name, policy->name,
              policy->hash);
    policy_destroy(pf->previous);
    pf->previous = pf->policy;
    pf->policy = policy;
    log_warnings(pf);
    return true;
}

/* Reads the file again if it has changed.  Returns true if another policy is
 * in force. */
bool
policy_file_run(struct policy_file *pf)
{
    struct stat now;

    if (time_msec() < pf->next_check) {
        return false;
    }
    pf->next_check = time_msec() + CHECK_MS;
    if (stat(pf->name, &now)) {
        memset(&now, 0, sizeof now);
    }
    return !is_same_file(&now, &pf->seen) && policy_file_reload(pf);
}

void
policy_file_wait(const struct policy_file *pf)
{
    poll_timer_wait_until(pf->next_check);
}

/* The policy in force; never NULL. */
const struct policy *
policy_file_get(const struct policy_file *pf)
{
    return pf->policy;
}

/* Why the file as it is now is not the policy in force, or NULL if it is. */
const char *
policy_file_error(const struct policy_file *pf)
{
    return pf->error;
}
