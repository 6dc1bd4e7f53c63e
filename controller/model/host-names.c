/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/host-names.h"

#include <string.h>

#include "controller/model/cluster.h"
#include "controller/model/fabric.h"
#include "util.h"

/* Returns the first label of the host's name, or NULL if it is the whole name
 * or also the first label of another host. */
static const char *
short_name(const struct host *host)
{
    return host->label && host->label->data == host && !host->alike
               ? host->label->name
               : NULL;
}

int
host_find_leaf(const struct cluster *c, const struct host *host)
{
    const char *name = short_name(host);
    int leaf = c->fabric ? fabric_find_host(c->fabric, host->name) : -1;

    return leaf < 0 && c->fabric && name ? fabric_find_host(c->fabric, name)
                                         : leaf;
}

void
host_add_name(struct cluster *c, struct host *host)
{
    size_t n = strcspn(host->name, ".");
    const struct host *named;

    if (host->name[n]) {
        host->label = shash_find_len(&c->labels, host->name, n);
        if (!host->label) {
            host->label =
                shash_add_nocopy(&c->labels, xmemdup0(host->name, n), NULL);
        }
        host->alike = host->label->data;
        host->label->data = host;
        named = shash_find_data(&c->hosts, host->label->name);
        c->n_renamed += named && named->named;
    }
    for (; host; host = host->alike) {
        host->leaf = host_find_leaf(c, host);
    }
}

const char *
cluster_host_named(const struct cluster *c, const char *name)
{
    const struct host *exact = shash_find_data(&c->hosts, name);
    const struct host *alike = shash_find_data(&c->labels, name);

    return alike && !alike->alike && !(exact && exact->reported_at)
               ? alike->name
               : name;
}

bool
cluster_is_ambiguous(const struct cluster *c, const char *label)
{
    const struct host *exact = shash_find_data(&c->hosts, label);
    const struct host *alike = shash_find_data(&c->labels, label);

    return alike && alike->alike
           && (exact ? exact->named && !exact->reported_at
                     : c->fabric && fabric_find_host(c->fabric, label) >= 0);
}

const char *
cluster_find_address(const struct cluster *c, uint32_t ip)
{
    const char *name =
        c->fabric && ip ? fabric_find_address(c->fabric, ip) : NULL;
    const struct shash_node *node;

    if (!name && ip) {
        SHASH_FOR_EACH (node, &c->hosts) {
            const struct host *host = node->data;

            if (host->ip == ip) {
                return host->name;
            }
        }
    }
    return name;
}
