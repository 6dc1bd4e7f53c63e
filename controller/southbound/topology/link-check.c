/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/topology/link-check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "byte-order.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "random.h"
#include "timeval.h"
#include "util.h"
#include "wire/alarm.h"

VLOG_DEFINE_THIS_MODULE(link_check);

/* Types and sizes of IEEE 802.1AB. */
#define ETH_SIZE 14
#define TLV_END 0
#define TLV_CHASSIS 1
#define TLV_PORT 2
#define TLV_TTL 3
#define TLV_OWN 127
#define SUBTYPE_LOCAL 7         /* Id of a chassis or port: a local name. */
#define TTL_SECONDS 20
#define MAC_SIZE 32

/* Start of our TLV: a locally administered organization id and a subtype. */
static const uint8_t own_head[] = { 0x02, 's', 't', 1 };

/* Our TLV. */
OVS_PACKED(struct own_tlv {
    uint8_t head[sizeof own_head];
    ovs_be64 datapath;
    ovs_be32 port;
    ovs_be64 session;
    ovs_be64 number;
    uint8_t code[MAC_SIZE];     /* HMAC-SHA256 of the members above. */
});

struct lldp_probe {
    uint64_t datapath;          /* Datapath id of the sending switch. */
    uint32_t port;              /* OpenFlow port that it leaves by. */
    uint64_t session;           /* Random id of the controller's run. */
    uint64_t number;            /* Per port and session, from 1. */
};

enum lldp_kind {
    LLDP_OURS,
    LLDP_OTHERS,                /* Without our TLV. */
    LLDP_FORGED,                /* With our TLV and an invalid code. */
};

char *
lldp_key_read(const char *file, struct lldp_key *key)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    struct stat st;
    ssize_t n;

    if (fd < 0 || fstat(fd, &st)) {
        char *error = xasprintf("%s: %s, a file is allowed", file,
                                ovs_strerror(errno));

        if (fd >= 0) {
            close(fd);
        }
        return error;
    }
    n = read(fd, key->bytes, sizeof key->bytes);
    close(fd);
    key->n = n;
    if (n < LLDP_MIN_KEY || n > LLDP_MAX_KEY) {
        return xasprintf("%s: not a key, a file of %d to %d bytes is "
                         "allowed", file, LLDP_MIN_KEY, LLDP_MAX_KEY);
    } else if (st.st_mode & (S_IRWXG | S_IRWXO)) {
        return xasprintf("%s: mode %04o, a key that its owner alone can read "
                         "(0400, 0600) is allowed", file,
                         (unsigned int) st.st_mode & 07777);
    }
    return NULL;
}

static uint8_t *
put_bytes(uint8_t *p, const void *bytes, size_t n)
{
    memcpy(p, bytes, n);
    return p + n;
}

static uint8_t *
put_tlv(uint8_t *p, unsigned int type, size_t size)
{
    ovs_be16 head = htons(type << 9 | size);

    return put_bytes(p, &head, sizeof head);
}

static uint8_t *
put_name(uint8_t *p, unsigned int type, const char *name)
{
    size_t n = strlen(name);

    p = put_tlv(p, type, 1 + n);
    *p++ = SUBTYPE_LOCAL;
    return put_bytes(p, name, n);
}

static void
make_code(const struct lldp_key *key, const struct own_tlv *own,
          uint8_t code[MAC_SIZE])
{
    unsigned int size = MAC_SIZE;

    ovs_assert(HMAC(EVP_sha256(), key->bytes, key->n, (const uint8_t *) own,
                    offsetof(struct own_tlv, code), code, &size));
}

/* Returns the size of the frame. */
static size_t
lldp_encode(const struct lldp_probe *probe, const struct lldp_key *key,
            uint8_t frame[LLDP_MAX_SIZE])
{
    static const uint8_t dst[] = LLDP_ETH_DST;
    ovs_be16 type = htons(LLDP_ETH_TYPE);
    ovs_be16 ttl = htons(TTL_SECONDS);
    ovs_be64 mac = htonll(probe->datapath << 24);
    struct own_tlv own = {
        .datapath = htonll(probe->datapath), .port = htonl(probe->port),
        .session = htonll(probe->session), .number = htonll(probe->number),
    };
    uint8_t *p = frame;
    char name[24];

    memcpy(own.head, own_head, sizeof own_head);
    make_code(key, &own, own.code);
    p = put_bytes(p, dst, sizeof dst);
    *p++ = 0x02;                /* Locally administered address. */
    p = put_bytes(p, &mac, 5);
    p = put_bytes(p, &type, sizeof type);

    snprintf(name, sizeof name, "%016"PRIx64, probe->datapath);
    p = put_name(p, TLV_CHASSIS, name);
    snprintf(name, sizeof name, "%"PRIu32, probe->port);
    p = put_name(p, TLV_PORT, name);
    p = put_tlv(p, TLV_TTL, sizeof ttl);
    p = put_bytes(p, &ttl, sizeof ttl);
    p = put_tlv(p, TLV_OWN, sizeof own);
    p = put_bytes(p, &own, sizeof own);
    p = put_tlv(p, TLV_END, 0);
    return p - frame;
}

/* Decodes our TLV: 'size' bytes at 'p'. */
static enum lldp_kind
read_own(const uint8_t *p, size_t size, const struct lldp_key *key,
         struct lldp_probe *probe)
{
    struct own_tlv own;
    uint8_t code[MAC_SIZE];

    if (size < sizeof own_head || memcmp(p, own_head, sizeof own_head)) {
        return LLDP_OTHERS;
    } else if (size != sizeof own) {
        return LLDP_FORGED;
    }
    memcpy(&own, p, sizeof own);
    make_code(key, &own, code);
    if (CRYPTO_memcmp(code, own.code, sizeof code)) {
        return LLDP_FORGED;
    }
    *probe = (struct lldp_probe) {
        .datapath = ntohll(own.datapath), .port = ntohl(own.port),
        .session = ntohll(own.session), .number = ntohll(own.number),
    };
    return LLDP_OURS;
}

/* Stores the probe if the frame is ours. */
static enum lldp_kind
lldp_decode(const void *frame, size_t size, const struct lldp_key *key,
            struct lldp_probe *probe)
{
    const uint8_t *p = frame;
    const uint8_t *end = p + size;

    if (size < ETH_SIZE || p[12] != LLDP_ETH_TYPE >> 8
        || p[13] != (LLDP_ETH_TYPE & 0xff)) {
        return LLDP_OTHERS;
    }
    p += ETH_SIZE;
    while (end - p >= 2) {
        unsigned int type = p[0] >> 1;
        size_t n = (p[0] & 1) << 8 | p[1];

        p += 2;
        if (type == TLV_END || n > (size_t) (end - p)) {
            break;
        } else if (type == TLV_OWN) {
            enum lldp_kind kind = read_own(p, n, key, probe);

            if (kind != LLDP_OTHERS) {
                return kind;
            }
        }
        p += n;
    }
    return LLDP_OTHERS;
}

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
    struct link_check *lc = xmalloc(sizeof *lc);

    *lc = (struct link_check) {
        .t = t, .key = *key, .session = random_uint64(),
        .n_ends = 2 * t->n_links,
    };
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
        .datapath = lc->t->switches[from->sw].datapath, .port = from->port,
        .session = lc->session, .number = lc->ends[i].sent + 1
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

    return (number > e->heard && number <= e->sent && number + 2 > e->sent);
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
            alarm_add(alarms, ALARM_LINK, "%s", text);
            free(text);
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
