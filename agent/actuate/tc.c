/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/actuate/tc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/actuate/tc-link.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "shim/ports/route-socket.h"
#include "timeval.h"
#include "util.h"
#include "wire/json-put.h"
#include "wire/shim-protocol.h"

/* Last, since it has macros with names of openvswitch/json.h. */
#include "base/json-check.h"

VLOG_DEFINE_THIS_MODULE(tc);

#define CHECK_MS 1000           /* Between checks of the interfaces. */
#define DEFAULT_MIN_SHARE (SHIM_MIN_SHARE_UNIT / 50)

struct tc {
    struct route_socket *rs;    /* NULL if it could not be opened, or without
                                 * interfaces. */
    struct tc_iface *ifaces;
    size_t n_ifaces;
    struct tc_plan plan;        /* Without a rate. */
    bool has_plan;              /* Before that the queues of a previous agent
                                 * stay. */
    long long next;             /* time_msec() of the next check. */
};

char *
tc_iface_parse(const char *text, struct tc_iface *iface)
{
    const char *colon = strrchr(text, ':');
    size_t n = colon ? colon - text : 0;
    uint64_t rate = colon ? json_rate_parse(colon + 1) : 0;

    if (!n || n >= sizeof iface->name || memchr(text, '/', n) || !rate) {
        return xasprintf("\"%s\", an interface of 1 to %d characters, a colon "
                         "and " JSON_RATE_RULE " are allowed",
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
        VLOG_ERR("the queues of interfaces are not managed (%s)",
                 ovs_strerror(error));
    }
    tc->ifaces = xmemdup(ifaces, n * sizeof *ifaces);
    tc->n_ifaces = n;
    for (size_t i = 0; i < n; i++) {
        tc->ifaces[i].error = error;
    }
    return tc;
}

void
tc_destroy(struct tc *tc)
{
    for (size_t i = 0; tc->rs && i < tc->n_ifaces; i++) {
        tc_link_remove(tc->rs, tc->ifaces[i].name);
    }
    route_socket_close(tc->rs);
    free(tc->ifaces);
    free(tc);
}

void
tc_set(struct tc *tc, long long until, uint32_t min_share,
       const uint8_t dscps[TC_LEVELS])
{
    struct tc_plan plan;

    memset(&plan, 0, sizeof plan);
    plan.ordered = until > time_msec();
    plan.min_share =
        (min_share == SHIM_MIN_SHARE_DEFAULT ? DEFAULT_MIN_SHARE : min_share);
    memcpy(plan.dscps, dscps, sizeof plan.dscps);
    if (!tc->has_plan || memcmp(&plan, &tc->plan, sizeof plan)) {
        memcpy(&tc->plan, &plan, sizeof plan);
        tc->has_plan = true;
        tc->next = 0;
    }
}

/* Inspects an interface, corrects what differs from the plan, and inspects it
 * again: only the kernel's state counts. */
static int
check_iface(struct tc *tc, const struct tc_iface *iface)
{
    struct tc_plan plan = tc->plan;
    struct tc_state state;
    int error;

    plan.rate_bps = iface->rate_bps;
    error = tc_link_inspect(tc->rs, iface->name, &plan, &state);
    if (error || tc_state_is_right(&state)) {
        return error;
    }
    VLOG_INFO("%s: %s", iface->name, state.ours
              ? "changing queues" : "creating queues");
    error = tc_link_write(tc->rs, &state);
    if (!error) {
        error = tc_link_inspect(tc->rs, iface->name, &plan, &state);
    }
    return error ? error : tc_state_is_right(&state) ? 0 : EAGAIN;
}

static const char *
error_to_string(int error)
{
    return (error == EBUSY ? "another program has configured its queues, only "
                             "the kernel's default is replaced"
            : error == EAGAIN ? "the kernel's state differs from what was "
                                "written"
            : error == EPERM ? "CAP_NET_ADMIN is missing"
            : ovs_strerror(error));
}

void
tc_run(struct tc *tc)
{
    long long now = time_msec();

    if (!tc->rs || !tc->has_plan || now < tc->next) {
        return;
    }
    tc->next = now + CHECK_MS;
    for (size_t i = 0; i < tc->n_ifaces; i++) {
        struct tc_iface *iface = &tc->ifaces[i];
        int error = check_iface(tc, iface);

        if (error && error != iface->error) {
            VLOG_WARN("%s: no queues: %s", iface->name,
                      error_to_string(error));
        }
        iface->error = error;
    }
}

void
tc_wait(const struct tc *tc)
{
    if (tc->rs && tc->has_plan) {
        poll_timer_wait_until(tc->next);
    }
}

struct json *
tc_to_json(const struct tc *tc)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < tc->n_ifaces; i++) {
        const struct tc_iface *iface = &tc->ifaces[i];
        int error = iface->error;
        struct json *json = json_object_create();

        json_object_put_string(json, "iface", iface->name);
        json_put_integer(json, "rate_bps", iface->rate_bps);
        json_object_put_string(json, "state", error ? "failed" : "in sync");
        json_object_put_string(json, "reason",
                               error ? error_to_string(error) : "");
        json_array_add(array, json);
    }
    return array;
}
