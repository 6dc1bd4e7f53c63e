/* SPDX-License-Identifier: Apache-2.0 */

#include "order/problem/problem.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "order/problem/memory.h"
#include "order/problem/scratch.h"

/* Limits 'seconds' to the range in which sums stay exact enough.  Returns 0
 * for NaN and ORDER_MAX_SECONDS for a port without capacity. */
static double
clamp_seconds(double seconds)
{
    return seconds >= ORDER_MIN_SECONDS ? fmin(seconds, ORDER_MAX_SECONDS) : 0;
}

struct order_problem *
order_problem_create(int n_ports)
{
    struct order_problem *op = order_alloc(1, sizeof *op);

    op->scratch = order_alloc(1, sizeof *op->scratch);
    order_problem_restart(op, n_ports);
    return op;
}

void
order_problem_destroy(struct order_problem *op)
{
    if (op) {
        for (size_t i = 0; i < op->allocated_stages; i++) {
            free(op->stages[i].demands);
        }
        free(op->stages);
        free(op->by_id);
        free(op->n_on_port);
        scratch_uninit(op->scratch);
        free(op->scratch);
        free(op);
    }
}

/* Removes all stages of 'op', which keeps its ports and its memory. */
void
order_problem_clear(struct order_problem *op)
{
    memset(op->n_on_port, 0, op->n_ports * sizeof *op->n_on_port);
    op->n_stages = 0;
    op->now = 0;
}

/* Removes all stages of 'op' and sets its number of ports.  It keeps its
 * memory. */
void
order_problem_restart(struct order_problem *op, int n_ports)
{
    assert(n_ports >= 0);
    if (!op->n_on_port || n_ports > op->allocated_ports) {
        op->n_on_port = order_renew(op->n_on_port, n_ports,
                                    sizeof *op->n_on_port);
        op->allocated_ports = n_ports;
    }
    op->n_ports = n_ports;
    order_problem_clear(op);
}

/* Allocates space for one more stage. */
static void
grow_stages(struct order_problem *op)
{
    size_t old = op->allocated_stages;

    if (op->n_stages < old) {
        return;
    }
    op->stages = order_grow(op->stages, old + 1, &op->allocated_stages,
                            sizeof *op->stages);
    memset(&op->stages[old], 0,
           (op->allocated_stages - old) * sizeof *op->stages);
    op->by_id = order_must(reallocarray(op->by_id, op->allocated_stages,
                                        sizeof *op->by_id));
}

/* Adds a stage that has begun and has no demand yet.  Returns its index. */
int
order_problem_add_stage(struct order_problem *op, double weight, uint64_t id)
{
    struct order_stage *stage;
    size_t i = op->n_stages;

    assert(weight <= ORDER_MAX_WEIGHT && weight >= 1 / ORDER_MAX_WEIGHT);
    grow_stages(op);
    stage = &op->stages[op->n_stages];
    *stage =
        (struct order_stage){ .id = id,
                              .weight = weight,
                              .demands = stage->demands,
                              .allocated_demands = stage->allocated_demands };
    while (i > 0 && op->stages[op->by_id[i - 1]].id > id) {
        op->by_id[i] = op->by_id[i - 1];
        i--;
    }
    op->by_id[i] = op->n_stages;
    return op->n_stages++;
}

static struct order_stage *
get_stage(struct order_problem *op, int stage)
{
    assert(stage >= 0 && (size_t) stage < op->n_stages);
    return &op->stages[stage];
}

/* Removes 'stage' from 'op'.  The last stage takes its index. */
void
order_problem_remove_stage(struct order_problem *op, int stage)
{
    struct order_stage removed = *get_stage(op, stage);
    int last = --op->n_stages;
    size_t n = 0;

    for (size_t i = 0; i < removed.n_demands; i++) {
        op->n_on_port[removed.demands[i].port]--;
    }
    for (int i = 0; i <= last; i++) {
        if (op->by_id[i] != stage) {
            op->by_id[n++] = op->by_id[i] == last ? stage : op->by_id[i];
        }
    }
    op->stages[stage] = op->stages[last];
    op->stages[last] = removed;         /* For its memory. */
}

void
order_problem_set_release(struct order_problem *op, int stage,
                          double release, double isolated)
{
    struct order_stage *s = get_stage(op, stage);

    s->release = clamp_seconds(release);
    s->isolated = clamp_seconds(isolated);
}

void
order_problem_set_weight(struct order_problem *op, int stage, double weight)
{
    get_stage(op, stage)->weight = weight;
}

void
order_problem_set_traits(struct order_problem *op, int stage,
                         const struct order_traits *traits)
{
    get_stage(op, stage)->traits = *traits;
}

/* Returns the index in the demands of 'stage' at which the one for 'port' is
 * or must be inserted. */
static size_t
find_demand(const struct order_stage *stage, int port)
{
    size_t i = stage->n_demands;

    while (i > 0 && stage->demands[i - 1].port >= port) {
        i--;
    }
    return i;
}

static void
insert_demand(struct order_stage *stage, size_t i, int port)
{
    stage->demands = order_grow(stage->demands, stage->n_demands + 1,
                                &stage->allocated_demands,
                                sizeof *stage->demands);
    memmove(&stage->demands[i + 1], &stage->demands[i],
            (stage->n_demands - i) * sizeof *stage->demands);
    stage->demands[i].port = port;
    stage->n_demands++;
}

static void
remove_demand(struct order_stage *stage, size_t i)
{
    stage->n_demands--;
    memmove(&stage->demands[i], &stage->demands[i + 1],
            (stage->n_demands - i) * sizeof *stage->demands);
}

/* Sets the demand of 'stage' for 'port' to 'seconds'. */
void
order_problem_set_demand(struct order_problem *op, int stage, int port,
                         double seconds)
{
    struct order_stage *s = get_stage(op, stage);
    size_t i = find_demand(s, port);
    bool found = i < s->n_demands && s->demands[i].port == port;

    assert(port >= 0 && port < op->n_ports);
    seconds = clamp_seconds(seconds);
    if (seconds > 0) {
        if (!found) {
            insert_demand(s, i, port);
            op->n_on_port[port]++;
        }
        s->demands[i].seconds = seconds;
        s->demands[i].inverse = 1 / seconds;
    } else if (found) {
        remove_demand(s, i);
        op->n_on_port[port]--;
    }
}

/* Adds 'seconds' to the demand of 'stage' for 'port'. */
void
order_problem_add_demand(struct order_problem *op, int stage, int port,
                         double seconds)
{
    const struct order_stage *s = get_stage(op, stage);
    size_t i = find_demand(s, port);

    if (i < s->n_demands && s->demands[i].port == port) {
        seconds = s->demands[i].seconds + clamp_seconds(seconds);
    }
    order_problem_set_demand(op, stage, port, seconds);
}

double
order_stage_earliest_end(const struct order_stage *stage)
{
    double most = order_stage_bottleneck(stage);

    return stage->release + (most > stage->isolated ? most : stage->isolated);
}

double
order_stage_arrival(const struct order_stage *stage)
{
    return -stage->traits.arrival;
}

bool
order_stage_has_sent(const struct order_stage *stage, double bytes)
{
    return stage->traits.sent >= bytes * (1 - 1e-9);
}

double
order_stage_bottleneck(const struct order_stage *stage)
{
    double most = 0;

    for (size_t i = 0; i < stage->n_demands; i++) {
        double seconds = stage->demands[i].seconds;

        most = seconds > most ? seconds : most;
    }
    return most;
}

double
order_stage_work(const struct order_stage *stage)
{
    double sum = 0;

    for (size_t i = 0; i < stage->n_demands; i++) {
        sum += stage->demands[i].seconds;
    }
    return sum;
}

/* Returns the seconds that the whole of 'stage' takes without competitors,
 * extrapolated from its remaining time by its bytes. */
static double
whole_isolated_time(const struct order_stage *stage)
{
    double isolated = order_stage_earliest_end(stage) - stage->release;
    double sent = fmax(stage->traits.sent, 0), bytes = stage->traits.bytes;

    return bytes > 0 ? isolated * (1 + sent / bytes) : isolated;
}

double
order_aging(double age, double isolated, double aging_s, double aging_slowdown)
{
    double growth = 0;

    if (aging_s > 0) {
        growth += age / aging_s;
    }
    if (aging_slowdown > 0 && isolated > 0) {
        growth += pow(age / isolated / aging_slowdown, 4);
    }
    return 1 + growth;
}

void
order_problem_age(struct order_problem *op, double aging_s,
                  double aging_slowdown)
{
    for (size_t i = 0; i < op->n_stages; i++) {
        struct order_stage *stage = &op->stages[i];
        double age = fmax(stage->traits.arrival, 0);
        double factor = order_aging(age, whole_isolated_time(stage), aging_s,
                                    aging_slowdown);

        stage->weight = fmin(stage->weight * factor, ORDER_MAX_WEIGHT);
    }
}
