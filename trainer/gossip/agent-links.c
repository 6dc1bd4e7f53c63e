/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/gossip/agent-links.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "trainer/process/control.h"
#include "wire/agent-call.h"

#define REQUEST_MS 200          /* Timeout of a request. */
#define EVERY_MS 500

struct agent_links {
    const char *cojob, *job, *rundir;   /* From the environment. */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ending;
    bool end;                   /* The thread is to end.  Under 'mutex'. */
    cJSON *result;              /* Of the last reply.  Under 'mutex'. */
};

/* Returns a member that is a usable number, or NAN. */
static double
get_bps(const cJSON *object, const char *name)
{
    const cJSON *member = cJSON_GetObjectItem(object, name);
    double bps = cJSON_IsNumber(member) ? member->valuedouble : NAN;

    return bps > 0 && isfinite(bps) ? bps : NAN;
}

cJSON *
agent_links_parse(const char *reply)
{
    cJSON *rpc = cJSON_Parse(reply);
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(rpc,
                                                                "result"));
    cJSON *result = text ? cJSON_Parse(text) : NULL;

    cJSON_Delete(rpc);
    return result;
}

/* A path has at most the bandwidth available at the uplink. */
double
agent_links_find(const cJSON *result, const char *address)
{
    double available_bps = get_bps(result, "left_bps");
    const cJSON *link;

    cJSON_ArrayForEach (link, cJSON_GetObjectItem(result, "links")) {
        const char *remote = cJSON_GetStringValue(cJSON_GetObjectItem(
            link, "remote"));
        double bps = get_bps(link, "bps");

        if (remote && !strcmp(remote, address) && !isnan(bps)) {
            return fmin(bps, available_bps);
        }
    }
    return available_bps;
}

static void
request_links(struct agent_links *al)
{
    const char *const words[] = { "agent/links", al->cojob, al->job };
    cJSON *result = NULL;
    char *reply;

    if (!agent_call(al->rundir, agent_call_until(REQUEST_MS), words, 3,
                    &reply)) {
        result = agent_links_parse(reply);
        free(reply);
    }
    pthread_mutex_lock(&al->mutex);
    cJSON_Delete(al->result);
    al->result = result;
    pthread_mutex_unlock(&al->mutex);
}

static void *
thread_main(void *al_)
{
    struct agent_links *al = al_;
    bool end = false;

    while (!end) {
        struct timespec ts;

        request_links(al);
        clock_gettime(CLOCK_MONOTONIC, &ts);
        ts.tv_nsec += EVERY_MS * 1000000L;
        ts.tv_sec += ts.tv_nsec / 1000000000;
        ts.tv_nsec %= 1000000000;
        pthread_mutex_lock(&al->mutex);
        while (!al->end && !pthread_cond_timedwait(&al->ending, &al->mutex,
                                                   &ts)) {
            continue;
        }
        end = al->end;
        pthread_mutex_unlock(&al->mutex);
    }
    return NULL;
}

static void
agent_links_free(struct agent_links *al)
{
    pthread_cond_destroy(&al->ending);
    pthread_mutex_destroy(&al->mutex);
    cJSON_Delete(al->result);
    free(al);
}

struct agent_links *
agent_links_create(void)
{
    const char *cojob = getenv("STAGECOACH_COJOB");
    const char *job = getenv("STAGECOACH_JOB");
    const char *rundir = getenv("STAGECOACH_RUNDIR");
    struct agent_links *al;
    pthread_condattr_t attr;
    char *error;

    if (!cojob || !job) {
        return NULL;
    }
    al = allocate(1, sizeof *al);
    al->cojob = cojob;
    al->job = job;
    al->rundir = rundir ? rundir : AGENT_RUNDIR;
    pthread_mutex_init(&al->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&al->ending, &attr);
    pthread_condattr_destroy(&attr);
    error = thread_start(&al->thread, "agent links", thread_main, al);
    if (error) {
        fprintf(stderr, "%s; going on without them\n", error);
        free(error);
        agent_links_free(al);
        return NULL;
    }
    return al;
}

void
agent_links_destroy(struct agent_links *al)
{
    if (al) {
        pthread_mutex_lock(&al->mutex);
        al->end = true;
        pthread_cond_signal(&al->ending);
        pthread_mutex_unlock(&al->mutex);
        pthread_join(al->thread, NULL);
        agent_links_free(al);
    }
}

double
agent_links_bps(struct agent_links *al, const char *address)
{
    double bps;

    if (!al) {
        return NAN;
    }
    pthread_mutex_lock(&al->mutex);
    bps = agent_links_find(al->result, address);
    pthread_mutex_unlock(&al->mutex);
    return bps;
}
