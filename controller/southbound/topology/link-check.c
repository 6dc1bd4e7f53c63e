/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/topology/link-check.h"

#include <stdlib.h>

#include "controller/southbound/topology/lldp.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "random.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(link_check);

/* Frames of a switch that are looked at in LINK_CHECK_MSEC, beside two for
 * each of its ports. */
#define SPARE_FRAMES 16

/* One end of a link: what leaves it. */
struct end {
    uint64_t sent;              /* Number of its last frame, */
    uint64_t heard;             /* of the last that came in somewhere, */
    uint64_t right;             /* and of the last that did where it should.
                                 * 0 is none. */
    struct topology_port at;    /* Where one came in that should not. */
    bool alarm;                 /* It has been said that something is wrong. */
};

struct listener {
    int allowed;                /* Frames in LINK_CHECK_MSEC, */
    int left;                   /* of which that many are left. */
};

struct link_check {
    const struct topology *t;
    struct lldp_key key;
    uint64_t session;
    struct end *ends;           /* Two for each link. */
    size_t n_ends;
    size_t next;                /* Whose turn it is to send. */
    long long int next_at;      /* And when. */
    struct listener *listeners; /* One for each switch. */
    uint64_t n_sent, n_heard, n_forged, n_replayed, n_ignored;
};

struct link_check *
link_check_create(const struct topology *t, const struct lldp_key *key)
{
    struct link_check *lc = xzalloc(sizeof *lc);

    lc->t = t;
    lc->key = *key;
    lc->session = random_uint64();
    lc->n_ends = 2 * t->n_links;
    lc->ends = xcalloc(MAX(lc->n_ends, 1), sizeof *lc->ends);
    lc->listeners = xcalloc(t->n_switches, sizeof *lc->listeners);
    for (size_t i = 0; i < t->n_switches; i++) {
        lc->listeners[i].allowed = SPARE_FRAMES;
    }
    for (size_t i = 0; i < lc->n_ends; i++) {
        lc->listeners[t->links[i / 2].ends[i % 2].sw].allowed += 2;
    }
    for (size_t i = 0; i < t->n_switches; i++) {
        lc->listeners[i].left = lc->listeners[i].allowed;
    }
    return lc;
}

void
link_check_destroy(struct link_check *lc)
{
    if (lc) {
        free(lc->ends);
        free(lc->listeners);
        free(lc);
    }
}

/* The port of end 'i', and the one that it leads to. */
static const struct topology_port *
port_of(const struct link_check *lc, size_t i)
{
    return &lc->t->links[i / 2].ends[i % 2];
}

static const struct topology_port *
far_port_of(const struct link_check *lc, size_t i)
{
    return port_of(lc, i ^ 1);
}

/* The end that 'probe' left by, or 'n_ends'. */
static size_t
find_end(const struct link_check *lc, const struct lldp_probe *probe)
{
    for (size_t i = 0; i < lc->n_ends; i++) {
        const struct topology_port *port = port_of(lc, i);

        if (port->port == probe->port
            && lc->t->switches[port->sw].datapath == probe->datapath) {
            return i;
        }
    }
    return lc->n_ends;
}

static bool
is_right_port(const struct link_check *lc, size_t i,
              const struct topology_port *at)
{
    const struct topology_port *far = far_port_of(lc, i);

    return at->sw == far->sw && at->port == far->port;
}

static bool
is_silent(const struct link_check *lc, size_t i)
{
    return lc->ends[i].sent >= lc->ends[i].heard + LINK_CHECK_LOST;
}

/* Did frames come in, and not where they should?  One alone may be a copy that
 * somebody made on the way, and that was faster. */
static bool
is_elsewhere(const struct link_check *lc, size_t i)
{
    return lc->ends[i].heard >= lc->ends[i].right + 2;
}

static bool
is_right(const struct link_check *lc, size_t i)
{
    return lc->ends[i].right && !is_elsewhere(lc, i) && !is_silent(lc, i);
}

/* What is wrong with what leaves end 'i', which the caller frees, or NULL. */
static char *
describe(const struct link_check *lc, size_t i)
{
    const struct topology_switch *sws = lc->t->switches;
    const struct topology_port *port = port_of(lc, i);
    const struct topology_port *far = far_port_of(lc, i);
    const struct topology_port *at = &lc->ends[i].at;

    if (is_silent(lc, i)) {
        return xasprintf("port %"PRIu32" of \"%s\" leads nowhere that is "
                         "known, to port %"PRIu32" of \"%s\" in the topology",
                         port->port, sws[port->sw].name, far->port,
                         sws[far->sw].name);
    } else if (is_elsewhere(lc, i)) {
        return xasprintf("port %"PRIu32" of \"%s\" leads to port %"PRIu32
                         " of \"%s\", to port %"PRIu32" of \"%s\" in the "
                         "topology", port->port, sws[port->sw].name, at->port,
                         sws[at->sw].name, far->port, sws[far->sw].name);
    }
    return NULL;
}

/* Says it when something begins to be wrong with end 'i', or ends. */
static void
tell(struct link_check *lc, size_t i)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(60, 60);
    char *words = describe(lc, i);

    if (words && !lc->ends[i].alarm) {
        VLOG_WARN_RL(&rl, "%s", words);
    } else if (!words && lc->ends[i].alarm) {
        VLOG_INFO_RL(&rl, "port %"PRIu32" of \"%s\" leads where it should "
                     "again", port_of(lc, i)->port,
                     lc->t->switches[port_of(lc, i)->sw].name);
    }
    lc->ends[i].alarm = words != NULL;
    free(words);
}

static void
send_probe(struct link_check *lc, size_t i, link_check_send_func *send,
           void *aux)
{
    const struct topology_port *from = port_of(lc, i);
    struct lldp_probe probe = {
        .datapath = lc->t->switches[from->sw].datapath,
        .port = from->port,
        .session = lc->session,
        .number = lc->ends[i].sent + 1,
    };
    uint8_t frame[LLDP_MAX_SIZE];
    size_t n = lldp_encode(&probe, &lc->key, frame);

    if (send(from, far_port_of(lc, i), frame, n, aux)) {
        lc->ends[i].sent++;
        lc->n_sent++;
        tell(lc, i);
    }
}

/* Sends from one end after the other, evenly over LINK_CHECK_MSEC. */
void
link_check_run(struct link_check *lc, link_check_send_func *send, void *aux)
{
    long long int now = time_msec();

    while (lc->n_ends && now >= lc->next_at) {
        if (!lc->next) {
            lc->next_at = now;
            for (size_t i = 0; i < lc->t->n_switches; i++) {
                lc->listeners[i].left = lc->listeners[i].allowed;
            }
        }
        send_probe(lc, lc->next, send, aux);
        lc->next_at += (LINK_CHECK_MSEC * (lc->next + 1) / lc->n_ends
                        - LINK_CHECK_MSEC * lc->next / lc->n_ends);
        lc->next = (lc->next + 1) % lc->n_ends;
    }
}

void
link_check_wait(const struct link_check *lc)
{
    if (lc->n_ends) {
        poll_timer_wait_until(lc->next_at);
    }
}

/* Frame 'number' of end 'i' came in at 'at'. */
static void
note(struct link_check *lc, size_t i, uint64_t number,
     struct topology_port at)
{
    struct end *e = &lc->ends[i];

    e->heard = number;
    if (is_right_port(lc, i, &at)) {
        e->right = number;
    } else {
        e->at = at;
    }
    tell(lc, i);
}

/* Is frame 'number' of end 'i' new, and not one of long ago? */
static bool
is_fresh(const struct link_check *lc, size_t i, uint64_t number)
{
    const struct end *e = &lc->ends[i];

    return (number > e->heard && number <= e->sent
            && number + 2 > e->sent);
}

void
link_check_heard(struct link_check *lc, int sw, uint32_t port,
                 const void *frame, size_t size)
{
    struct listener *listener = &lc->listeners[sw];
    struct lldp_probe probe;
    enum lldp_kind kind;
    struct topology_port at = { .sw = sw, .port = port };
    size_t i;

    if (!listener->left) {
        lc->n_ignored++;
        return;
    }
    listener->left--;
    kind = lldp_decode(frame, size, &lc->key, &probe);
    if (kind != LLDP_OURS) {
        lc->n_forged += kind == LLDP_FORGED;
        lc->n_ignored += kind == LLDP_OTHERS;
        return;
    }
    i = find_end(lc, &probe);
    if (probe.session != lc->session || i == lc->n_ends) {
        lc->n_replayed++;
    } else if (is_fresh(lc, i, probe.number)) {
        lc->n_heard++;
        note(lc, i, probe.number, at);
    } else {
        lc->n_replayed++;
        if (probe.number == lc->ends[i].heard && is_right_port(lc, i, &at)) {
            note(lc, i, probe.number, at);      /* A copy came before it. */
        }
    }
}

void
link_check_alarms(const struct link_check *lc, struct json *alarms)
{
    for (size_t i = 0; i < lc->n_ends; i++) {
        char *words = describe(lc, i);

        if (words) {
            json_array_add(alarms, json_string_create_nocopy(words));
        }
    }
}

struct json *
link_check_to_json(const struct link_check *lc)
{
    struct json *json = json_object_create();
    size_t n_right = 0;

    for (size_t i = 0; i < lc->n_ends; i += 2) {
        n_right += is_right(lc, i) && is_right(lc, i + 1);
    }
    json_object_put(json, "links", json_integer_create(lc->t->n_links));
    json_object_put(json, "right", json_integer_create(n_right));
    json_object_put(json, "sent", json_integer_create(lc->n_sent));
    json_object_put(json, "heard", json_integer_create(lc->n_heard));
    json_object_put(json, "forged", json_integer_create(lc->n_forged));
    json_object_put(json, "replayed", json_integer_create(lc->n_replayed));
    json_object_put(json, "ignored", json_integer_create(lc->n_ignored));
    return json;
}
