/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/rates/rates.h"

#include "order/problem/memory.h"

struct rates *
rates_create(enum rates_rule rule, const struct paths *paths)
{
    const struct rates_class *class =
        rule == RATES_MADD ? &rates_madd : &rates_fill;
    struct rates *r = class->create(paths, rule);

    r->class = class;
    r->rule = rule;
    r->paths = paths;
    return r;
}

void
rates_destroy(struct rates *r)
{
    if (r) {
        r->class->destroy(r);
    }
}

void
rates_show(const struct path *path, double rate, struct sim_flow *f)
{
    f->n_ports = path->n_ports;
    memcpy(f->ports, path->ports, sizeof f->ports);
    f->rate = rate;
}
