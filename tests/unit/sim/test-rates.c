/* SPDX-License-Identifier: Apache-2.0 */

/* Each way to divide rates against one that computes everything again. */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/rates/rates.h"
#include "tests/unit/assert-near.h"

#define MAX_FLOWS 120
#define MAX_UNITS 12
#define MAX_PORTS 64

/* Flows of some units on a fabric. */
struct world {
    struct sim_fabric *fabric;
    struct paths paths;
    struct rates *rates;
    double now;
    uint64_t seed;
    int n_units;
    struct unit units[MAX_UNITS];
    int planned[MAX_UNITS];     /* Rank of each unit once it has begun. */
    int n_flows;
    struct flow flows[MAX_FLOWS];
    bool on_the_way[MAX_FLOWS];
};

/* Next of a fixed sequence of numbers from 0 to 'n' - 1. */
static int
next_random(struct world *w, int n)
{
    w->seed = w->seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (w->seed >> 33) % n;
}

static void
world_init(struct world *w, struct sim_fabric *fabric, enum rates_rule rule)
{
    memset(w, 0, sizeof *w);
    w->fabric = fabric;
    paths_init(&w->paths, fabric);
    w->rates = rates_create(rule, &w->paths);
}

static void
world_uninit(struct world *w)
{
    rates_destroy(w->rates);
    for (int u = 0; u < w->n_units; u++) {
        unit_uninit(&w->units[u]);
    }
    paths_uninit(&w->paths);
    sim_fabric_destroy(w->fabric);
}

/* Adds a flow to 'unit', which world_make_units() makes. */
static struct flow *
world_add(struct world *w, int unit, int src, int dst, double bytes)
{
    struct flow *flow = &w->flows[w->n_flows];

    *flow = (struct flow) {
        .unit = &w->units[unit], .path = paths_find(&w->paths, src, dst),
        .node.seq = w->n_flows, .bytes = bytes, .remaining = bytes,
    };
    w->n_units = unit >= w->n_units ? unit + 1 : w->n_units;
    w->n_flows++;
    return flow;
}

/* Makes the units, with ranks and levels as they are numbered. */
static void
world_make_units(struct world *w)
{
    struct unit_maker maker;

    unit_maker_init(&maker, w->fabric->n_ports);
    for (int u = 0; u < w->n_units; u++) {
        for (int i = 0; i < w->n_flows; i++) {
            if (w->flows[i].unit == &w->units[u]) {
                unit_maker_add(&maker, &w->paths.paths[w->flows[i].path],
                               w->flows[i].bytes, 1);
            }
        }
        unit_maker_finish(&maker, &w->units[u]);
        for (int i = 0; i < w->n_flows; i++) {
            if (w->flows[i].unit == &w->units[u]) {
                unit_maker_bind(&maker, &w->paths.paths[w->flows[i].path],
                                &w->flows[i]);
            }
        }
        unit_maker_clear(&maker);
        unit_begin(&w->units[u], w->fabric, 0);
        w->units[u].rank = w->units[u].level = u;
    }
    unit_maker_uninit(&maker);
}

static void
world_begin_flow(struct world *w, int i)
{
    w->on_the_way[i] = true;
    w->rates->class->add(w->rates, &w->flows[i], w->now);
}

/* Lets all flows begin. */
static void
world_begin(struct world *w)
{
    world_make_units(w);
    for (int i = 0; i < w->n_flows; i++) {
        world_begin_flow(w, i);
    }
    w->rates->class->update(w->rates, w->now);
}

/* Goes on to the next end.  Returns how many flows end then. */
static int
world_step(struct world *w)
{
    const struct rates_class *class = w->rates->class;
    struct flow *flow;
    int n = 0;

    w->now = class->next(w->rates);
    assert_true(isfinite(w->now));
    while ((flow = class->pop(w->rates, w->now))) {
        w->on_the_way[flow - w->flows] = false;
        n++;
    }
    return n;
}

/* Stores the rates that flows have from sender port to receiver port. */
static void
get_rates(const struct world *w, double rates[MAX_PORTS][MAX_PORTS])
{
    struct sim_flow *flows = NULL;
    size_t allocated = 0;
    size_t n = w->rates->class->list(w->rates, &flows, &allocated);

    memset(rates, 0, MAX_PORTS * sizeof *rates);
    for (size_t i = 0; i < n; i++) {
        assert_true(flows[i].rate > 0);
        rates[flows[i].ports[0]][flows[i].ports[flows[i].n_ports - 1]]
            += flows[i].rate;
    }
    free(flows);
}

static double
get_rate(const struct world *w, int src, int dst)
{
    double rates[MAX_PORTS][MAX_PORTS];

    get_rates(w, rates);
    return rates[2 * src][2 * dst + 1];
}

/* No port carries more than it can, and every flow has a port that cannot
 * carry more. */
static void
check_use(const struct world *w)
{
    struct sim_flow *flows = NULL;
    size_t allocated = 0;
    size_t n = w->rates->class->list(w->rates, &flows, &allocated);
    double used[MAX_PORTS] = { 0 };

    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < flows[i].n_ports; k++) {
            used[flows[i].ports[k]] += flows[i].rate;
        }
    }
    free(flows);
    for (int p = 0; p < w->fabric->n_ports; p++) {
        assert_true(used[p] <= w->fabric->capacity[p] * (1 + 1e-9));
    }
    for (int i = 0; i < w->n_flows; i++) {
        const struct path *path = &w->paths.paths[w->flows[i].path];
        bool full = !w->on_the_way[i];

        for (int k = 0; k < path->n_ports; k++) {
            int p = path->ports[k];

            full |= used[p] >= w->fabric->capacity[p] * (1 - 1e-9);
        }
        assert_true(full);
    }
}

/* What units have left is what their flows have. */
static void
check_work(struct world *w)
{
    w->rates->class->settle(w->rates, w->now);
    for (int u = 0; u < w->n_units; u++) {
        double left[MAX_PORTS] = { 0 };
        double sent = 0;

        for (int i = 0; i < w->n_flows; i++) {
            const struct flow *flow = &w->flows[i];

            if (flow->unit == &w->units[u]) {
                const struct path *path = &w->paths.paths[flow->path];

                for (int k = 0; k < path->n_ports; k++) {
                    left[path->ports[k]] += flow->remaining;
                }
                sent += flow->bytes - flow->remaining;
            }
        }
        for (size_t i = 0; i < w->units[u].n_work; i++) {
            assert_true(fabs(w->units[u].bytes[i]
                             - left[w->units[u].work[i].port]) < 1e-6);
        }
        assert_true(fabs(w->units[u].sent - sent) < 1e-6);
    }
}

static void
add_random_flows(struct world *w, int n_units, int n_flows)
{
    for (int i = 0; i < n_flows; i++) {
        world_add(w, i < n_units ? i : next_random(w, n_units),
                  next_random(w, w->fabric->n_hosts),
                  next_random(w, w->fabric->n_hosts),
                  1 + next_random(w, 1000000) / 1000.0);
    }
}

static bool
has_begun(const struct world *w, const struct unit *unit)
{
    bool begun = unit->rank >= 0;

    for (int i = 0; i < w->n_flows && !begun; i++) {
        begun = w->on_the_way[i] && w->flows[i].unit == unit;
    }
    return begun;
}

/* Ranks the units that have begun as planned. */
static void
rank_units(struct world *w)
{
    struct unit *units[MAX_UNITS];
    size_t n = 0;

    for (int place = 0; place < w->n_units; place++) {
        for (int u = 0; u < w->n_units; u++) {
            if (w->planned[u] == place && has_begun(w, &w->units[u])) {
                units[n++] = &w->units[u];
            }
        }
    }
    units_set_ranks(units, n);
    w->rates->class->reorder(w->rates, w->now);
}

/* Gives the units other ranks and levels. */
static void
shuffle_units(struct world *w, int n_levels)
{
    for (int u = 0; u < w->n_units; u++) {
        int other = next_random(w, u + 1);

        w->planned[u] = w->planned[other];
        w->planned[other] = u;
    }
    for (int u = 0; u < w->n_units; u++) {
        w->units[u].level = w->planned[u] % n_levels;
    }
}

/* Runs random flows, some of them later, and shuffles the units now and then.
 * Calls 'expect' before and 'check' after each update. */
static void
run_random(struct world *w, int n_levels, void (*expect)(struct world *),
           void (*check)(struct world *))
{
    int n_begun = 0;
    int n_ended = 0;

    add_random_flows(w, 1 + next_random(w, MAX_UNITS),
                     MAX_UNITS + next_random(w, MAX_FLOWS - MAX_UNITS));
    world_make_units(w);
    for (int u = 0; u < w->n_units; u++) {
        w->planned[u] = u;
        w->units[u].rank = -1;
    }
    while (n_ended < w->n_flows) {
        if (n_begun > n_ended) {
            n_ended += world_step(w);
        }
        while (n_begun < w->n_flows && next_random(w, 4)) {
            world_begin_flow(w, n_begun++);
        }
        w->rates->class->settle(w->rates, w->now);
        if (!next_random(w, 5)) {
            shuffle_units(w, n_levels);
        }
        rank_units(w);
        expect(w);
        w->rates->class->update(w->rates, w->now);
        check(w);
        check_use(w);
        if (!next_random(w, 5)) {
            check_work(w);
        }
    }
    for (int u = 0; u < w->n_units; u++) {
        for (size_t i = 0; i < w->units[u].n_work; i++) {
            assert_true(w->units[u].bytes[i] == 0);
        }
    }
}

static void
expect_nothing(struct world *w)
{
}

static struct sim_fabric *
random_fabric(struct world *w)
{
    return next_random(w, 2)
        ? sim_fabric_create_leaf_spine(2 + next_random(w, 8), 3, 100,
                                       1 + next_random(w, 3))
        : sim_fabric_create(2 + next_random(w, 8), 100);
}

/* What the naive computations find: rates of flows. */
static double expected[MAX_FLOWS];

/* Water-filling from the beginning. */
static void
expect_share(struct world *w)
{
    double left[MAX_PORTS];
    bool done[MAX_FLOWS] = { false };

    memcpy(left, w->fabric->capacity, w->fabric->n_ports * sizeof *left);
    memset(expected, 0, sizeof expected);
    for (int level = 0; level < MAX_UNITS; level++) {
        for (;;) {
            int n[MAX_PORTS] = { 0 };
            int tightest = -1;
            double share = INFINITY;

            for (int i = 0; i < w->n_flows; i++) {
                const struct path *path = &w->paths.paths[w->flows[i].path];

                for (int k = 0; k < path->n_ports; k++) {
                    n[path->ports[k]] += w->on_the_way[i] && !done[i]
                                         && w->flows[i].unit->level == level;
                }
            }
            for (int p = 0; p < w->fabric->n_ports; p++) {
                if (n[p] && left[p] / n[p] < share) {
                    tightest = p;
                    share = left[p] / n[p];
                }
            }
            if (tightest < 0) {
                break;
            }
            for (int i = 0; i < w->n_flows; i++) {
                const struct path *path = &w->paths.paths[w->flows[i].path];
                bool here = false;

                for (int k = 0; k < path->n_ports; k++) {
                    here |= path->ports[k] == tightest;
                }
                if (here && w->on_the_way[i] && !done[i]
                    && w->flows[i].unit->level == level) {
                    done[i] = true;
                    expected[i] = share;
                    for (int k = 0; k < path->n_ports; k++) {
                        left[path->ports[k]] -= share;
                        if (left[path->ports[k]] < 1e-9) {
                            left[path->ports[k]] = 0;
                        }
                    }
                }
            }
        }
    }
}

/* A bundle shows its flows as one. */
static void
check_paths(struct world *w)
{
    double rates[MAX_PORTS][MAX_PORTS];

    get_rates(w, rates);
    for (int i = 0; i < w->n_flows; i++) {
        const struct path *path = &w->paths.paths[w->flows[i].path];

        rates[path->ports[0]][path->ports[path->n_ports - 1]]
            -= w->on_the_way[i] ? expected[i] : 0;
    }
    for (int p = 0; p < MAX_PORTS; p++) {
        for (int q = 0; q < MAX_PORTS; q++) {
            assert_true(fabs(rates[p][q]) < 1e-6);
        }
    }
}

UNIT_TEST(sharing_is_water_filling)
{
    for (int round = 0; round < 400; round++) {
        struct world w = { .seed = round };
        struct sim_fabric *fabric = random_fabric(&w);
        bool floors = round >= 300;

        for (int p = 0; round % 3 == 0 && p < fabric->n_ports; p++) {
            fabric->capacity[p] = 1 + next_random(&w, 1000);
        }
        world_init(&w, fabric, RATES_SHARE);
        w.seed = round;
        w.rates->watches = round % 2;
        w.rates->min_share = floors ? 0.1 : 0;
        run_random(&w, 1 + round % 5, floors ? expect_nothing : expect_share,
                   floors ? expect_nothing : check_paths);
        world_uninit(&w);
    }
}

static bool
is_full(const struct world *w, const double *left, const struct path *path)
{
    for (int k = 0; k < path->n_ports; k++) {
        int p = path->ports[k];

        if (left[p] <= 1e-9 * w->fabric->capacity[p]) {
            return true;
        }
    }
    return false;
}

/* Lets the flows of 'unit' that have no full port grow in proportion to what
 * they have left until one more port is full.  Returns false if there are
 * none. */
static bool
grow_unit(const struct world *w, const struct unit *unit, double *left,
          bool *stuck)
{
    double load[MAX_PORTS] = { 0 };
    double growth = INFINITY;

    for (int i = 0; i < w->n_flows; i++) {
        const struct flow *flow = &w->flows[i];
        const struct path *path = &w->paths.paths[flow->path];

        stuck[i] |= !w->on_the_way[i] || flow->unit != unit
                    || is_full(w, left, path);
        for (int k = 0; !stuck[i] && k < path->n_ports; k++) {
            load[path->ports[k]] += flow->remaining;
        }
    }
    for (int p = 0; p < w->fabric->n_ports; p++) {
        growth = load[p] > 0 ? fmin(growth, left[p] / load[p]) : growth;
    }
    for (int i = 0; i < w->n_flows; i++) {
        const struct path *path = &w->paths.paths[w->flows[i].path];

        for (int k = 0; !stuck[i] && k < path->n_ports; k++) {
            left[path->ports[k]] -= growth * w->flows[i].remaining;
        }
        expected[i] += stuck[i] ? 0 : growth * w->flows[i].remaining;
    }
    return isfinite(growth);
}

/* All units by rank, from the beginning. */
static void
expect_fill(struct world *w)
{
    double left[MAX_PORTS];

    w->rates->class->settle(w->rates, w->now);
    memcpy(left, w->fabric->capacity, w->fabric->n_ports * sizeof *left);
    memset(expected, 0, sizeof expected);
    for (int rank = 0; rank < w->n_units; rank++) {
        for (int u = 0; u < w->n_units; u++) {
            bool stuck[MAX_FLOWS] = { false };

            while (w->planned[u] == rank
                   && grow_unit(w, &w->units[u], left, stuck)) {
                continue;
            }
        }
    }
}

/* Only units that an event concerns get new rates, whatever begins, ends or
 * changes places: what all of them have is what they would get. */
UNIT_TEST(filling_is_computing_anew)
{
    for (int round = 0; round < 600; round++) {
        struct world w = { .seed = round };
        struct sim_fabric *fabric = random_fabric(&w);

        for (int p = 0; round % 3 == 0 && p < fabric->n_ports; p++) {
            fabric->capacity[p] = 1 + next_random(&w, 1000);
        }
        world_init(&w, fabric, RATES_FILL);
        w.seed = round;
        run_random(&w, 1, expect_fill, check_paths);
        world_uninit(&w);
    }
}

UNIT_TEST(madd_wastes_nothing)
{
    for (int round = 0; round < 300; round++) {
        struct world w = { .seed = round };

        world_init(&w, random_fabric(&w), RATES_MADD);
        w.seed = round;
        run_random(&w, 1, expect_nothing, expect_nothing);
        world_uninit(&w);
    }
}

/* What flows of few units get, at hosts with equal links. */
struct rates_case {
    const char *name;
    enum rates_rule rule;
    double capacity, min_share;
    struct {
        int unit, src, dst;
        double bytes;
        double rate; /* Of all flows of its path, at the begin. */
    } flows[5];
    struct {
        double now;
        int n; /* Flows that end then. */
    } ends[3];
};

static const struct rates_case cases[] = {
    { "levels are strict: level 0 fills port 0 and half of port 5; level 1 "
      "gets the other half, and level 2 nothing",
      RATES_SHARE,
      12,
      0,
      { { 2, 1, 2, 1, 0 },
        { 0, 0, 0, 1, 6 },
        { 0, 0, 2, 1, 6 },
        { 1, 2, 2, 1, 6 },
        { 1, 0, 1, 1, 0 } } },
    { "a guard is a floor: each level gets what a tenth of the network would "
      "give it, of which level 2 shares port 3; then the first gets the rest "
      "of port 0",
      RATES_SHARE,
      100,
      0.1,
      { { 0, 0, 1, 1000, 85 },
        { 1, 0, 2, 1000, 10 },
        { 2, 0, 3, 1000, 5 },
        { 2, 1, 3, 1000, 95 } },
      { { 200 / 19.0, 1 } } },
    { "MADD lets a unit end together: rank 0 takes 4 s at host 0, which sends "
      "20 + 20; its third flow takes as long; rank 1 gets what that leaves of "
      "port 2 -> 3, and rank 2 nothing before rank 0 has ended",
      RATES_MADD,
      10,
      0,
      { { 0, 0, 4, 20, 5 },
        { 0, 0, 5, 20, 5 },
        { 0, 2, 3, 8, 10 },
        { 1, 2, 3, 80, 10 },
        { 2, 0, 1, 5, 0 } },
      { { 4, 3 }, { 4.5, 1 }, { 8.8, 1 } } },
    { "filling lets the flows of a unit end together: two share the port that "
      "they leave from in proportion, so that both end with it, at (60 + 30) "
      "/ 10; what they leave of the other ends is for the next units",
      RATES_FILL,
      10,
      0,
      { { 0, 0, 1, 60, 20 / 3.0 },
        { 0, 0, 2, 30, 10 / 3.0 },
        { 1, 3, 1, 40, 10 / 3.0 } },
      { { 9, 2 }, { 10, 1 } } },
    { "filling holds back nothing that could go: a flow that shares no port "
      "with its unit's busiest one goes at the whole rate, and the next unit "
      "after it",
      RATES_FILL,
      10,
      0,
      { { 0, 0, 2, 100, 10 }, { 0, 1, 3, 50, 10 }, { 1, 1, 0, 60, 0 } },
      { { 5, 1 }, { 10, 1 }, { 11, 1 } } },
};

UNIT_TEST(rules_give_what_they_say)
{
    for (size_t c = 0; c < N_ELEMENTS(cases); c++) {
        const struct rates_case *rc = &cases[c];
        struct world w;

        print_message("%s\n", rc->name);
        world_init(&w, sim_fabric_create(6, rc->capacity), rc->rule);
        w.rates->min_share = rc->min_share;
        for (int i = 0; i < 5 && rc->flows[i].bytes > 0; i++) {
            world_add(&w, rc->flows[i].unit, rc->flows[i].src,
                      rc->flows[i].dst, rc->flows[i].bytes);
        }
        world_begin(&w);
        for (int i = 0; i < w.n_flows; i++) {
            assert_near(get_rate(&w, rc->flows[i].src, rc->flows[i].dst),
                        rc->flows[i].rate);
        }
        for (int i = 0; i < 3 && rc->ends[i].n; i++) {
            assert_int_equal(world_step(&w), rc->ends[i].n);
            assert_near(w.now, rc->ends[i].now);
            w.rates->class->update(w.rates, w.now);
        }
        world_uninit(&w);
    }
}

/* Two equal flows of a unit that is limited: at 10 bytes per second it has
 * sent 25 after 2.5 s; from 1 s on at half the rate, after 4 s. */
UNIT_TEST(limits_are_foreseen)
{
    struct world w;

    world_init(&w, sim_fabric_create(3, 10), RATES_SHARE);
    w.rates->watches = true;
    world_add(&w, 0, 0, 1, 50);
    world_add(&w, 0, 0, 2, 50);
    world_add(&w, 1, 0, 1, 1000);
    world_add(&w, 1, 0, 2, 1000);
    world_make_units(&w);
    w.units[0].sent_limit = 25;
    w.units[1].level = 0;
    world_begin_flow(&w, 0);
    world_begin_flow(&w, 1);
    w.rates->class->update(w.rates, 0);
    assert_near(unit_limit_time(&w.units[0]), 2.5);
    assert_true(isinf(unit_limit_time(&w.units[1])));
    world_begin_flow(&w, 2);
    world_begin_flow(&w, 3);
    w.rates->class->update(w.rates, 1);
    assert_near(unit_limit_time(&w.units[0]), 4);
    world_uninit(&w);
}
