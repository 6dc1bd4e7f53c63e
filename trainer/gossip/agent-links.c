/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/gossip/agent-links.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire/agent-call.h"
#include "base/memory.h"
#include "trainer/process/control.h"

#define REQUEST_MS 200          /* Timeout of a request. */
#define EVERY_MS 500

struct agent_links {
    const char *cojob, *job, *rundir;   /* From the environment. */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ending;
    bool end;                   /* The thread is to end.  Under 'mutex'. */
    struct agent_links_view view;       /* Last reply.  Under 'mutex'. */
};

static bool
get_bps(const cJSON *object, const char *name, double *bps)
{
    const cJSON *member = cJSON_GetObjectItem(object, name);

    if (!cJSON_IsNumber(member) || !(member->valuedouble > 0)
        || !isfinite(member->valuedouble)) {
        return false;
    }
    *bps = member->valuedouble;
    return true;
}

static void
parse_paths(const cJSON *links, struct agent_links_view *view)
{
    const cJSON *link;

    cJSON_ArrayForEach (link, links) {
        const cJSON *remote = cJSON_GetObjectItem(link, "remote");
        double bps;

        if (view->n < AGENT_LINKS_MAX && cJSON_IsString(remote)
            && strlen(remote->valuestring) < sizeof view->paths[0].remote
            && get_bps(link, "bps", &bps)) {
            strcpy(view->paths[view->n].remote, remote->valuestring);
            view->paths[view->n++].bps = bps;
        }
    }
}

bool
agent_links_parse(const char *reply, struct agent_links_view *view)
{
    cJSON *rpc = cJSON_Parse(reply);
    const cJSON *text = cJSON_GetObjectItem(rpc, "result");
    cJSON *result = cJSON_IsString(text) ? cJSON_Parse(text->valuestring)
                                         : NULL;

    view->n = 0;
    if (!get_bps(result, "left_bps", &view->available_bps)) {
        view->available_bps = NAN;
    }
    parse_paths(cJSON_GetObjectItem(result, "links"), view);
    cJSON_Delete(result);
    cJSON_Delete(rpc);
    return view->n || !isnan(view->available_bps);
}

/* A path has at most the bandwidth available at the uplink. */
double
agent_links_find(const struct agent_links_view *view, const char *address)
{
    for (int i = 0; i < view->n; i++) {
        if (!strcmp(view->paths[i].remote, address)) {
            return fmin(view->paths[i].bps, view->available_bps);
        }
    }
    return view->available_bps;
}

static void
request_links(struct agent_links *al)
{
    const char *const words[] = { "agent/links", al->cojob, al->job };
    struct agent_links_view view = { .available_bps = NAN };
    char *reply;

    if (!agent_call(al->rundir, agent_call_until(REQUEST_MS), words, 3,
                    &reply)) {
        agent_links_parse(reply, &view);
        free(reply);
    }
    pthread_mutex_lock(&al->mutex);
    al->view = view;
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
    al->view.available_bps = NAN;
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
    bps = agent_links_find(&al->view, address);
    pthread_mutex_unlock(&al->mutex);
    return bps;
}
