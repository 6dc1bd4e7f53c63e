/* SPDX-License-Identifier: Apache-2.0 */

/* A node: one process of a job with a parameter for each of many keys. */

#include "trainer/loop/loop.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/keys/key-store.h"
#include "trainer/process/control.h"
#include "trainer/process/options.h"
#include "trainer/process/pace.h"
#include "trainer/process/report.h"
#include "trainer/tasks/node-task.h"

#define CONNECT_US 60000000     /* Nodes may take long to read their data. */

struct node_thread {
    pthread_t id;
    struct node_worker worker;
    char *error;
};

struct node {
    const struct options *o;
    struct control *control;
    char *names[KEY_STORE_MAX_NODES];
    int n;
    struct node_task *task;
    struct key_store *store;
    struct reporter *report;
    struct node_thread *threads;
};

static char *
open_store(struct node *node)
{
    struct key_range ranges[NODE_TASK_MAX_RANGES + 1];
    const struct options *o = node->o;
    struct key_store_config config = {
        .staleness = o->staleness,
        .ranges = ranges,
        .n_ranges = node_task_ranges(node->task, ranges),
        .identity = o->seed,
        .names = (const char *const *) node->names,
        .n_nodes = node->n,
        .rank = o->rank,
        .address = o->address,
        .port = loop_own_port(o, node->names),
        .n_workers = o->n_threads,
        .congestion = o->congestion,
        .connect_us = CONNECT_US,
        .heartbeat_timeout_us = o->heartbeat_timeout * 1e6,
        .control = node->control,
        .listening = report_listening,
        .init = node_task_init,
        .aux = node->task
    };

    key_variant_find(o->store, &config.variant);
    return key_store_create(&config, &node->store);
}

static void *
thread_main(void *t_)
{
    struct node_thread *t = t_;

    t->error = node_task_train(&t->worker);
    return NULL;
}

static char *
prepare_thread(struct node *node, int i)
{
    const struct options *o = node->o;
    struct node_thread *t = &node->threads[i];
    struct pace *pace;
    char *error = pace_create(o, &pace);

    if (error) {
        return error;
    }
    if (!pace_emulates(pace)) {
        pace_destroy(pace);
        pace = NULL;
    }
    t->worker = (struct node_worker) {
        .task = node->task, .keys = key_store_worker(node->store, i),
        .index = o->rank * o->n_threads + i, .n = node->n * o->n_threads,
        .first_of_node = !i, .control = i ? NULL : node->control,
        .report = i ? NULL : node->report, .pace = pace, .loss = NAN,
    };
    key_variant_find(o->store, &t->worker.variant);
    return NULL;
}

/* Joins the first 'n' threads.  Returns the first failure of one. */
static char *
await_threads(struct node *node, int n)
{
    char *error = NULL;

    for (int i = 0; i < n; i++) {
        struct node_thread *t = &node->threads[i];

        pthread_join(t->id, NULL);
        if (error) {
            free(t->error);
        } else {
            error = t->error;
        }
    }
    return error;
}

static char *
train(struct node *node)
{
    char *error = NULL;
    int n = 0;

    node->threads = allocate(node->o->n_threads, sizeof *node->threads);
    for (int i = 0; i < node->o->n_threads && !error; i++) {
        error = prepare_thread(node, i);
    }
    if (error) {
        return error;
    }
    while (n < node->o->n_threads && !error) {
        struct node_thread *t = &node->threads[n];

        error = thread_start(&t->id, "--threads", thread_main, t);
        n += !error;
    }
    if (error) {                /* Ends the threads that run already. */
        key_store_abort(node->store, duplicate(error));
        free(await_threads(node, n));
        return error;
    }
    return await_threads(node, n);
}

static void
report_end(struct node *node)
{
    const struct node_worker *first = &node->threads[0].worker;
    struct key_store_stats stats;

    key_store_stats(node->store, &stats);
    report_keys(stats.local, stats.remote, stats.moved);
    report_done(&(struct report_progress){ .iteration = first->epoch,
                                           .loss = first->loss,
                                           .accuracy = NAN },
                stats.sent, stats.received, NAN);
}

static void
node_uninit(struct node *node)
{
    key_store_destroy(node->store);
    node_task_destroy(node->task);
    reporter_destroy(node->report);
    for (int i = 0; i < node->o->n_threads && node->threads; i++) {
        pace_destroy(node->threads[i].worker.pace);
    }
    free(node->threads);
    for (int i = 0; i < node->n; i++) {
        free(node->names[i]);
    }
}

static char *
run_manually(struct node *node)
{
    const struct options *o = node->o;
    struct pace *pace;
    char *error = pace_create(o, &pace);

    if (error) {
        return error;
    }
    error = factorise_manual_run(&(struct factorise_manual_in) {
        .o = o, .names = (const char *const *) node->names,
        .n_nodes = node->n, .port = loop_own_port(o, node->names),
        .connect_us = CONNECT_US, .control = node->control,
        .report = node->report, .pace = pace,
    });
    pace_destroy(pace);
    return error;
}

static char *
run_with_store(struct node *node)
{
    const struct options *o = node->o;
    char *error = node_task_find(o->task)->create(
        o, node->n * o->n_threads, &node->task);

    error = error ? error : open_store(node);
    error = error ? error : train(node);
    if (!error) {
        report_end(node);
    } else if (node->store && key_store_ended(node->store)) {
        free(error);            /* Another node was stopped. */
        error = NULL;
    }
    return error;
}

char *
node_run(const struct options *o, struct control *control)
{
    struct node node = { .o = o, .control = control };
    char *error = loop_parse_names(o, "nodes", o->nodes, KEY_STORE_MAX_NODES,
                                   node.names, &node.n);

    if (!error) {
        node.report = o->rank ? NULL : reporter_create(true);
        error = strcmp(o->store, "manual") ? run_with_store(&node)
                                           : run_manually(&node);
    }
    node_uninit(&node);
    control_run(control);       /* Other nodes may have been stopped first. */
    if (error && control_stopped(control)) {
        free(error);            /* A consequence of being stopped. */
        error = NULL;
    }
    return error;
}
