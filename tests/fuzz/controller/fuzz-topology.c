/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the reader of topology files. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "controller/model/fabric.h"
#include "controller/southbound/topology/link-ports.h"
#include "controller/southbound/topology/routes.h"
#include "controller/southbound/topology/topology.h"
#include "tests/fuzz/must.h"

/* Checks that traffic between leaves uses ports that exist, for a positive
 * time. */
static void
check_ports(const struct topology *t, const struct routes *r)
{
    struct fabric *f = link_ports_create(t, r);

    for (int i = 0; i < f->n_leaves * f->n_leaves; i++) {
        const struct fabric_pair *pair = &f->pairs[i];

        for (size_t k = 0; k < pair->n; k++) {
            must(pair->crossings[k].port >= 0
                 && pair->crossings[k].port < f->n_ports);
            must(pair->crossings[k].seconds_per_bit > 0);
        }
    }
    fabric_destroy(f);
}

/* Checks that each route begins at a port of its switch. */
static void
check_routes(const struct topology *t)
{
    struct routes *r = routes_create(t);

    for (size_t i = 0; i < t->n_hosts; i++) {
        struct route_next next;

        routes_next(r, t->hosts[0].at.sw, t->hosts[i].at.sw, &next);
        must(next.n <= t->n_links);
    }
    check_ports(t, r);
    routes_destroy(r);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_text(data, size);
    struct topology *t;
    char *error = topology_parse("fuzz", text, &t);

    must(!error == !!t);
    if (t) {
        check_routes(t);
    } else {
        must_be_message(error, "fuzz:");
    }
    topology_destroy(t);
    free(error);
    free(text);
    return 0;
}
