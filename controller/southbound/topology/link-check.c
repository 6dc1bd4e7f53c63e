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

/* Frames accepted from a switch in LINK_CHECK_MSEC, in addition to two for
 * each of its ports. */
#define SPARE_FRAMES 16

/* The probes that leave one end of a link. */
struct end {
    uint64_t sent;              /* Number of the last probe sent, 0: none. */
    uint64_t heard;             /* Number of the last probe received at any
                                 * port, 0: none. */
    uint64_t right;             /* Number of the last probe received at the
                                 * port in the topology, 0: none. */
    struct topology_port at;    /* The last other port that received one. */
    bool alarm;                 /* An alarm has been logged. */
};

/* Limit of the frames accepted from a switch. */
struct listener {
    int n_ports;                /* Ports of the switch with a link. */
    int left;                   /* Remaining frames in this interval. */
};

struct link_check {
    const struct topology *t;
    struct lldp_key key;
    uint64_t session;           /* Random id of this run. */
    struct end *ends;           /* Two for each link. */
    size_t n_ends;
    size_t next;                /* Index in 'ends' of the next sender. */
    long long int next_at;      /* time_msec() when it is due. */
    struct listener *listeners; /* One for each switch. */
    uint64_t n_sent, n_heard, n_forged, n_replayed, n_ignored;
};

/* Returns the port of end 'i'.  The other end of the link is 'i ^ 1'. */
static const struct topology_port *
port_of(const struct link_check *lc, size_t i)
{
    return &lc->t->links[i / 2].ends[i % 2];
}

static void
reset_listeners(struct link_check *lc)
{
    for (size_t i = 0; i < lc->t->n_switches; i++) {
        lc->listeners[i].left = SPARE_FRAMES + 2 * lc->listeners[i].n_ports;
    }
}

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
    for (size_t i = 0; i < lc->n_ends; i++) {
        lc->listeners[port_of(lc, i)->sw].n_ports++;
    }
    reset_listeners(lc);
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

/* Returns the index of the end that sent 'probe', or 'n_ends'. */
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
    const struct topology_port *far = port_of(lc, i ^ 1);

    return at->sw == far->sw && at->port == far->port;
}

static bool
is_silent(const struct link_check *lc, size_t i)
{
    return lc->ends[i].sent >= lc->ends[i].heard + LINK_CHECK_LOST;
}

/* Returns true if the last two probes were received at another port.  A single
 * one may be a copy that overtook the probe. */
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

/* Returns the text of the alarm of end 'i', which the caller frees, or
 * NULL. */
static char *
alarm_to_string(const struct link_check *lc, size_t i)
{
    const struct topology_switch *sws = lc->t->switches;
    const struct topology_port *port = port_of(lc, i);
    const struct topology_port *far = port_of(lc, i ^ 1);
    const struct topology_port *at = &lc->ends[i].at;

    if (is_silent(lc, i)) {
        return xasprintf("port %"PRIu32" of \"%s\": probes are not received "
                         "anywhere; the topology connects it to port %"PRIu32
                         " of \"%s\"", port->port, sws[port->sw].name,
                         far->port, sws[far->sw].name);
    } else if (is_elsewhere(lc, i)) {
        return xasprintf("port %"PRIu32" of \"%s\": probes are received at "
                         "port %"PRIu32" of \"%s\"; the topology connects it "
                         "to port %"PRIu32" of \"%s\"", port->port,
                         sws[port->sw].name, at->port, sws[at->sw].name,
                         far->port, sws[far->sw].name);
    }
    return NULL;
}

/* Logs the start or the end of the alarm of end 'i'. */
static void
log_alarm(struct link_check *lc, size_t i)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(60, 60);
    char *text = alarm_to_string(lc, i);

    if (text && !lc->ends[i].alarm) {
        VLOG_WARN_RL(&rl, "%s", text);
    } else if (!text && lc->ends[i].alarm) {
        VLOG_INFO_RL(&rl, "port %"PRIu32" of \"%s\": probes arrive at the "
                     "right port again", port_of(lc, i)->port,
                     lc->t->switches[port_of(lc, i)->sw].name);
    }
    lc->ends[i].alarm = text != NULL;
    free(text);
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

    if (send(from, port_of(lc, i ^ 1), frame, n, aux)) {
        lc->ends[i].sent++;
        lc->n_sent++;
        log_alarm(lc, i);
    }
}

/* Sends the probes that are due, evenly distributed over LINK_CHECK_MSEC. */
void
link_check_run(struct link_check *lc, link_check_send_func *send, void *aux)
{
    long long int now = time_msec();

    while (lc->n_ends && now >= lc->next_at) {
        if (!lc->next) {
            lc->next_at = now;
            reset_listeners(lc);
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

/* Records that probe 'number' of end 'i' was received at 'at'. */
static void
record_probe(struct link_check *lc, size_t i, uint64_t number,
             struct topology_port at)
{
    struct end *e = &lc->ends[i];

    e->heard = number;
    if (is_right_port(lc, i, &at)) {
        e->right = number;
    } else {
        e->at = at;
    }
    log_alarm(lc, i);
}

/* Returns true if probe 'number' of end 'i' is one of the last two and was not
 * received before. */
static bool
is_fresh(const struct link_check *lc, size_t i, uint64_t number)
{
    const struct end *e = &lc->ends[i];

    return (number > e->heard && number <= e->sent
            && number + 2 > e->sent);
}

void
link_check_receive(struct link_check *lc, int sw, uint32_t port,
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
        record_probe(lc, i, probe.number, at);
    } else {
        lc->n_replayed++;
        if (probe.number == lc->ends[i].heard && is_right_port(lc, i, &at)) {
            record_probe(lc, i, probe.number, at);      /* After a copy. */
        }
    }
}

void
link_check_alarms(const struct link_check *lc, struct json *alarms)
{
    for (size_t i = 0; i < lc->n_ends; i++) {
        char *text = alarm_to_string(lc, i);

        if (text) {
            json_array_add(alarms, json_string_create_nocopy(text));
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
