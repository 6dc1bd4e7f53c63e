/* SPDX-License-Identifier: Apache-2.0 */

/* The input of every order: stages and what they need of each port. */

#include "order/order.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "order/memory.h"
#include "order/permute.h"
#include "order/scratch.h"

/* Returns 'seconds' within what sums of it stay exact enough for: 0 for what
 * is no number, ORDER_MAX_SECONDS for a port without capacity. */
static double
clamp_seconds(double seconds)
{
    return seconds >= ORDER_MIN_SECONDS ? fmin(seconds, ORDER_MAX_SECONDS) : 0;
}

struct order_problem *
order_problem_create(int n_ports)
{
    struct order_problem *op = order_alloc(1, sizeof *op);

    op->permuter = permuter_create();
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
        free(op->next_level);
        permuter_destroy(op->permuter);
        scratch_uninit(op->scratch);
        free(op->scratch);
        free(op);
    }
}

/* Takes all stages out of 'op', which keeps its ports and its memory. */
void
order_problem_clear(struct order_problem *op)
{
    memset(op->n_on_port, 0, op->n_ports * sizeof *op->n_on_port);
    op->n_stages = 0;
    op->now = 0;
}

/* Empties 'op', which keeps its memory, for other stages on 'n_ports'. */
void
order_problem_restart(struct order_problem *op, int n_ports)
{
    assert(n_ports >= 0);
    if (!op->n_on_port || n_ports > op->allocated_ports) {
        op->n_on_port = order_renew(op->n_on_port, n_ports,
                                    sizeof *op->n_on_port);
        op->next_level = order_renew(op->next_level, n_ports,
                                     sizeof *op->next_level);
        op->allocated_ports = n_ports;
    }
    op->n_ports = n_ports;
    order_problem_clear(op);
}

/* Makes room for one more stage. */
static void
grow(struct order_problem *op)
{
    size_t old = op->allocated_stages;

    if (op->n_stages < old) {
        return;
    }
    op->stages = order_grow(op->stages, op->n_stages, &op->allocated_stages,
                            sizeof *op->stages);
    memset(&op->stages[old], 0,
           (op->allocated_stages - old) * sizeof *op->stages);
    op->by_id = order_must(reallocarray(op->by_id, op->allocated_stages,
                                        sizeof *op->by_id));
}

/* Adds a stage that has begun and needs nothing yet.  Returns its index; the
 * first has 0. */
int
order_problem_add_stage(struct order_problem *op, double weight, uint64_t id)
{
    struct order_stage *stage;
    size_t i = op->n_stages;

    assert(weight <= ORDER_MAX_WEIGHT && weight >= 1 / ORDER_MAX_WEIGHT);
    grow(op);
    stage = &op->stages[op->n_stages];
    *stage = (struct order_stage) {
        .id = id,
        .weight = weight,
        .demands = stage->demands,
        .allocated_demands = stage->allocated_demands,
    };
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

/* Takes 'stage' out of 'op'.  The last stage takes its index. */
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
order_problem_set_traits(struct order_problem *op, int stage,
                         const struct order_traits *traits)
{
    get_stage(op, stage)->traits = *traits;
}

/* Returns where in the demands of 'stage' that for 'port' is or belongs. */
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
    stage->demands = order_grow(stage->demands, stage->n_demands,
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

/* Makes 'seconds' of 'port' what 'stage' needs of it. */
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

/* Adds 'seconds' of 'port' to what 'stage' needs. */
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

/* Returns when 'stage' would end if it had every port to itself, which no
 * schedule can beat. */
double
order_stage_earliest_end(const struct order_stage *stage)
{
    double alone = stage->isolated;

    for (size_t i = 0; i < stage->n_demands; i++) {
        double seconds = stage->demands[i].seconds;

        alone = seconds > alone ? seconds : alone;
    }
    return stage->release + alone;
}

/* Returns the seconds that all of 'stage', what has gone of it included, takes
 * if it has every port to itself, as far as its bytes tell. */
static double
whole_alone(const struct order_stage *stage)
{
    double alone = order_stage_earliest_end(stage) - stage->release;
    double sent = fmax(stage->traits.sent, 0), left = stage->traits.bytes;

    return left > 0 ? alone * (1 + sent / left) : alone;
}

void
order_problem_age(struct order_problem *op, double aging_s,
                  double aging_slowdown)
{
    for (size_t i = 0; i < op->n_stages; i++) {
        struct order_stage *stage = &op->stages[i];
        double age = fmax(stage->traits.arrival, 0);
        double alone = whole_alone(stage), growth = 0;

        if (aging_s > 0) {
            growth += age / aging_s;
        }
        if (aging_slowdown > 0 && alone > 0) {
            growth += pow(age / alone / aging_slowdown, 4);
        }
        stage->weight = fmin(stage->weight * (1 + growth), ORDER_MAX_WEIGHT);
    }
}
