/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/actuate/tc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/actuate/tc-link.h"
#include "agent/actuate/rate.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "wire/shim-protocol.h"
#include "shim/ports/route-socket.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(tc);

#define CHECK_MSEC 1000
#define DEFAULT_GUARD (SHIM_GUARD_UNIT / 50)    /* Until the controller says
                                                 * something else. */

struct kept {
    struct tc_iface iface;
    int error;                  /* Of the last look. */
};

struct tc {
    struct route_socket *rs;    /* NULL if there is no interface. */
    struct kept *kept;
    size_t n;
    bool told;                  /* tc_set() was called: until then what a
                                 * former agent left stays. */
    bool ordered;
    uint32_t guard;
    long long int next;
};

char *
tc_parse(const char *text, struct tc_iface *iface)
{
    const char *colon = strrchr(text, ':');
    size_t n = colon ? colon - text : 0;
    uint64_t rate = colon ? rate_parse(colon + 1) : 0;

    if (!n || n >= sizeof iface->name || memchr(text, '/', n) || !rate) {
        return xasprintf("\"%s\", an interface of 1 to %d characters, a colon "
                         "and a rate are allowed; of that, "RATE_RULE,
                         text, IFNAMSIZ - 1);
    }
    memset(iface, 0, sizeof *iface);
    memcpy(iface->name, text, n);
    iface->rate_bps = rate;
    return NULL;
}

struct tc *
tc_create(const struct tc_iface *ifaces, size_t n)
{
    struct tc *tc = xzalloc(sizeof *tc);
    int error = n ? route_socket_open(-1, &tc->rs) : 0;

    if (error) {
        VLOG_ERR("no queues of interfaces will be kept (%s)",
                 ovs_strerror(error));
    }
    tc->kept = xcalloc(n + 1, sizeof *tc->kept);
    tc->n = n;
    for (size_t i = 0; i < n; i++) {
        tc->kept[i].iface = ifaces[i];
        tc->kept[i].error = error;
    }
    return tc;
}

void
tc_destroy(struct tc *tc)
{
    if (tc) {
        for (size_t i = 0; tc->rs && i < tc->n; i++) {
            tc_link_remove(tc->rs, tc->kept[i].iface.name);
        }
        route_socket_close(tc->rs);
        free(tc->kept);
        free(tc);
    }
}

void
tc_set(struct tc *tc, bool ordered, uint32_t guard)
{
    if (guard == SHIM_GUARD_UNTOLD) {
        guard = DEFAULT_GUARD;
    }
    if (!tc->told || tc->ordered != ordered || tc->guard != guard) {
        tc->told = true;
        tc->ordered = ordered;
        tc->guard = guard;
        tc->next = 0;
    }
}

/* Looks at an interface, writes what is not right, and looks again: what the
 * kernel says counts. */
static int
keep(struct tc *tc, struct kept *k)
{
    const struct tc_plan plan = {
        .rate_bps = k->iface.rate_bps,
        .guard = tc->guard,
        .ordered = tc->ordered,
    };
    struct tc_seen seen;
    int error = tc_link_look(tc->rs, k->iface.name, &plan, &seen);

    if (error || tc_seen_is_right(&seen, &plan)) {
        return error;
    }
    VLOG_INFO("%s: %s", k->iface.name, seen.ours
              ? "changing queues" : "making queues");
    error = tc_link_write(tc->rs, &seen, &plan);
    if (!error) {
        error = tc_link_look(tc->rs, k->iface.name, &plan, &seen);
    }
    return error ? error : tc_seen_is_right(&seen, &plan) ? 0 : EAGAIN;
}

/* What 'error' means, of an interface. */
static const char *
words(int error)
{
    return (error == EBUSY ? "its queues are somebody else's, none or ours "
                             "are allowed"
            : error == EAGAIN ? "the kernel has not what was written"
            : error == EPERM ? "CAP_NET_ADMIN is missing"
            : ovs_strerror(error));
}

void
tc_run(struct tc *tc)
{
    if (!tc->rs || !tc->told || time_msec() < tc->next) {
        return;
    }
    tc->next = time_msec() + CHECK_MSEC;
    for (size_t i = 0; i < tc->n; i++) {
        struct kept *k = &tc->kept[i];
        int error = keep(tc, k);

        if (error && error != k->error) {
            VLOG_WARN("%s: no queues: %s", k->iface.name, words(error));
        }
        k->error = error;
    }
}

void
tc_wait(const struct tc *tc)
{
    if (tc->rs && tc->told) {
        poll_timer_wait_until(tc->next);
    }
}

struct json *
tc_to_json(const struct tc *tc)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < tc->n; i++) {
        const struct kept *k = &tc->kept[i];
        struct json *json = json_object_create();

        json_object_put_string(json, "iface", k->iface.name);
        json_object_put(json, "rate_bps",
                        json_integer_create(k->iface.rate_bps));
        json_object_put_string(json, "state",
                               k->error ? "failed" : "in sync");
        json_object_put_string(json, "reason",
                               k->error ? words(k->error) : "");
        json_array_add(array, json);
    }
    return array;
}
