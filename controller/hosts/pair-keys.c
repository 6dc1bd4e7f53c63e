/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/hosts/pair-keys.h"

#include <netinet/in.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "controller/model/telemetry-report.h"
#include "hash.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/hmap.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/shash.h"
#include "packets.h"
#include "timeval.h"
#include "util.h"
#include "wire/alarm.h"
#include "wire/shim-protocol.h"

#define RENEW_MS (3600 * 1000)

/* Time for which an address belongs to a host after its last report. */
#define CLAIM_MS 60000

#define ALARM_MS 60000 /* Time of an alarm after the last refused message. */

/* An address, and the last two hosts that have reported it. */
struct address {
    struct hmap_node node; /* In struct pair_keys's 'addresses'. */
    struct in6_addr ip;
    char *hosts[2];  /* NULL: none. */
    long long at[2]; /* time_msec() of their reports. */
};

/* An address that a host has connections with. */
struct peer {
    struct in6_addr ip;
    char *sent;         /* Host of the key that was sent, NULL: none. */
    unsigned int epoch; /* Of that key. */
    uint64_t refused, disobeyed; /* As last reported. */
};

/* Offences of a host of one kind, for an alarm. */
struct offence {
    uint64_t n;           /* Since the alarm began. */
    long long at;         /* time_msec() of the last one. */
    struct in6_addr peer; /* Of the last one. */
};

enum offence_kind { FORGED, REFUSED, DISOBEYED, N_OFFENCES };

struct pair_host {
    struct peer *peers; /* As last reported. */
    size_t n_peers;
    bool knows;         /* The agent has reported its peers on this
                         * connection. */
    bool sent;          /* Keys were sent on this connection. */
    unsigned int seqno; /* Of the last keys; less than that of struct
                         * pair_keys: there may be others. */
    uint64_t forged;    /* As last reported. */
    struct offence offences[N_OFFENCES];
};

struct pair_keys {
    uint8_t master[crypto_generichash_KEYBYTES];
    unsigned int epoch;    /* Number of the master key. */
    long long grace_until; /* time_msec(), 0 once it is over and a host is
                            * revoked: what is not reported is no host's. */
    long long renew_at;    /* time_msec(). */
    long long expired_at;  /* When claims were looked through. */
    unsigned int seqno;    /* Grows when there may be keys for each host. */
    struct hmap addresses; /* Of struct address. */
    struct shash hosts;    /* Name -> struct pair_host. */
};

struct pair_keys *
pair_keys_create(void)
{
    struct pair_keys *pk = xzalloc(sizeof *pk);

    hmap_init(&pk->addresses);
    shash_init(&pk->hosts);
    pk->grace_until = time_msec() + PAIR_KEYS_GRACE_MS;
    pair_keys_renew(pk);
    return pk;
}

static void
forget_peers(struct pair_host *host)
{
    for (size_t i = 0; i < host->n_peers; i++) {
        free(host->peers[i].sent);
    }
    free(host->peers);
    host->peers = NULL;
    host->n_peers = 0;
}

static void
remove_host(struct pair_keys *pk, struct shash_node *node)
{
    struct pair_host *host = node->data;

    forget_peers(host);
    free(host);
    shash_delete(&pk->hosts, node);
}

static void
remove_address(struct pair_keys *pk, struct address *a)
{
    hmap_remove(&pk->addresses, &a->node);
    free(a->hosts[0]);
    free(a->hosts[1]);
    free(a);
}

void
pair_keys_destroy(struct pair_keys *pk)
{
    struct shash_node *node;
    struct address *a;

    if (!pk) {
        return;
    }
    SHASH_FOR_EACH_SAFE(node, &pk->hosts)
    {
        remove_host(pk, node);
    }
    HMAP_FOR_EACH_SAFE(a, node, &pk->addresses)
    {
        remove_address(pk, a);
    }
    shash_destroy(&pk->hosts);
    hmap_destroy(&pk->addresses);
    sodium_memzero(pk, sizeof *pk);
    free(pk);
}

unsigned int
pair_keys_seqno(const struct pair_keys *pk)
{
    return pk->seqno;
}

void
pair_keys_renew(struct pair_keys *pk)
{
    randombytes_buf(pk->master, sizeof pk->master);
    pk->epoch++;
    pk->renew_at = time_msec() + RENEW_MS;
    pk->seqno++;
}

/* Ends claims that were not repeated, at most once a second: it looks at
 * those of all hosts. */
static void
expire_claims(struct pair_keys *pk)
{
    long long now = time_msec();
    struct address *a;

    if (now < pk->expired_at + 1000) {
        return;
    }
    pk->expired_at = now;
    HMAP_FOR_EACH_SAFE(a, node, &pk->addresses)
    {
        for (int i = 0; i < 2; i++) {
            if (a->hosts[i] && now > a->at[i] + CLAIM_MS) {
                free(a->hosts[i]);
                a->hosts[i] = NULL;
                pk->seqno++;
            }
        }
        if (!a->hosts[0] && !a->hosts[1]) {
            remove_address(pk, a);
        }
    }
}

void
pair_keys_run(struct pair_keys *pk, bool revoked)
{
    if (time_msec() >= pk->renew_at) {
        pair_keys_renew(pk);
    }
    if (revoked && pk->grace_until && time_msec() >= pk->grace_until) {
        pk->grace_until = 0;
        pk->seqno++;
    }
}

/* Messages of agents wake the caller several times a second. */
void
pair_keys_wait(const struct pair_keys *pk)
{
    poll_timer_wait_until(pk->renew_at);
}

static struct address *
find_address(const struct pair_keys *pk, const struct in6_addr *ip)
{
    struct address *a;

    HMAP_FOR_EACH_WITH_HASH(a, node, hash_bytes(ip, sizeof *ip, 0),
                            &pk->addresses)
    {
        if (ipv6_addr_equals(&a->ip, ip)) {
            return a;
        }
    }
    return NULL;
}

/* Notes that 'host' has reported 'ip' as one of its own. */
static void
claim(struct pair_keys *pk, const char *host, const struct in6_addr *ip)
{
    struct address *a = find_address(pk, ip);
    int i;

    if (!a) {
        a = xzalloc(sizeof *a);
        a->ip = *ip;
        hmap_insert(&pk->addresses, &a->node, hash_bytes(ip, sizeof *ip, 0));
    }
    for (i = 0; i < 2 && a->hosts[i] && strcmp(a->hosts[i], host); i++) {
    }
    /* A third host changes nothing. */
    if (i < 2) {
        if (!a->hosts[i]) {
            a->hosts[i] = xstrdup(host);
            pk->seqno++;
        }
        a->at[i] = time_msec();
    }
}

/* Returns the only host that has an address, or NULL. */
static const char *
find_owner(const struct address *a)
{
    return (!a || (a->hosts[0] && a->hosts[1]) ? NULL
            : a->hosts[0]                      ? a->hosts[0]
                                               : a->hosts[1]);
}

static void
note_offence(struct pair_host *host, enum offence_kind kind,
             const struct in6_addr *peer, uint64_t now, uint64_t before)
{
    struct offence *o = &host->offences[kind];

    if (now > before) {
        o->n = now - before + (time_msec() <= o->at + ALARM_MS ? o->n : 0);
        o->at = time_msec();
        o->peer = *peer;
    }
}

static struct peer *
find_peer(const struct pair_host *host, const struct in6_addr *ip)
{
    for (size_t i = 0; i < host->n_peers; i++) {
        if (ipv6_addr_equals(&host->peers[i].ip, ip)) {
            return &host->peers[i];
        }
    }
    return NULL;
}

/* Replaces the peers of 'host' by those of the report. */
static void
learn_peers(struct pair_host *host, const struct telemetry_report *r,
            bool first)
{
    struct peer *peers = xcalloc(MAX(r->n_peers, 1), sizeof *peers);

    for (size_t i = 0; i < r->n_peers; i++) {
        const struct telemetry_peer *tp = &r->peers[i];
        struct peer *before =
            (i < host->n_peers && ipv6_addr_equals(&host->peers[i].ip, &tp->ip)
                 ? &host->peers[i] /* Peers seldom change. */
                 : find_peer(host, &tp->ip));

        peers[i] = (struct peer){ .ip = tp->ip,
                                  .refused = tp->refused,
                                  .disobeyed = tp->disobeyed };
        if (!first) {
            note_offence(host, REFUSED, &tp->ip, tp->refused,
                         before ? before->refused : 0);
            note_offence(host, DISOBEYED, &tp->ip, tp->disobeyed,
                         before ? before->disobeyed : 0);
        }
        if (before) {
            peers[i].sent = nullable_xstrdup(before->sent);
            peers[i].epoch = before->epoch;
        } else {
            host->seqno = 0;
        }
    }
    forget_peers(host);
    host->peers = peers;
    host->n_peers = r->n_peers;
}

void
pair_keys_learn(struct pair_keys *pk, const struct telemetry_report *r,
                bool first)
{
    struct pair_host *host = shash_find_data(&pk->hosts, r->host);
    uint64_t forged = shim_counters_get(&r->shim, "cc_forged");

    if (!host) {
        host = xzalloc(sizeof *host);
        shash_add(&pk->hosts, r->host, host);
        first = true;
    }
    if (first) {
        forget_peers(host);
        host->knows = host->sent = false;
    }
    if (!first && r->shim.known) {
        note_offence(host, FORGED, &in6addr_any, forged, host->forged);
    }
    host->forged = r->shim.known ? forged : host->forged;
    if (!r->knows_peers) {
        return;
    }
    host->seqno = host->knows ? host->seqno : 0;
    learn_peers(host, r, !host->knows);
    host->knows = true;
    for (size_t i = 0; i < r->n_own; i++) {
        claim(pk, r->host, &r->own[i]);
    }
    expire_claims(pk);
}

void
pair_keys_forget(struct pair_keys *pk, const char *name)
{
    struct shash_node *node = shash_find(&pk->hosts, name);
    struct address *a;

    if (node) {
        remove_host(pk, node);
    }
    HMAP_FOR_EACH (a, node, &pk->addresses) {
        for (int i = 0; i < 2; i++) {
            if (a->hosts[i] && !strcmp(a->hosts[i], name)) {
                free(a->hosts[i]);
                a->hosts[i] = NULL;
            }
        }
    }
    pk->seqno++;
}

static void
put_address(struct json *json, const char *member, const struct in6_addr *ip)
{
    struct ds ds = DS_EMPTY_INITIALIZER;

    ipv6_format_mapped(ip, &ds);
    json_object_put_string(json, member, ds_cstr(&ds));
    ds_destroy(&ds);
}

/* Returns the key of two hosts, in hexadecimal digits. */
static char *
get_key(const struct pair_keys *pk, const char *a, const char *b)
{
    bool in_order = strcmp(a, b) < 0;
    char *names = xasprintf("%s %s", in_order ? a : b, in_order ? b : a);
    char text[2 * SHIM_KEY_BYTES + 1];
    uint8_t key[SHIM_KEY_BYTES];

    crypto_generichash(key, sizeof key, (const uint8_t *) names, strlen(names),
                       pk->master, sizeof pk->master);
    sodium_bin2hex(text, sizeof text, key, sizeof key);
    sodium_memzero(key, sizeof key);
    free(names);
    return xstrdup(text);
}

/* Adds the key for 'peer' to 'changes' unless 'host' has it already. */
static void
add_change(const struct pair_keys *pk, const char *host, struct peer *peer,
           struct json *changes)
{
    const struct address *a = find_address(pk, &peer->ip);
    const char *owner = find_owner(a);
    bool disputed = a && a->hosts[0] && a->hosts[1];
    bool removed = (peer->sent ? !shash_find(&pk->hosts, peer->sent)
                               : !a && !pk->grace_until);
    struct json *json;

    if (owner ? (!strcmp(owner, host)
                 || (peer->sent && peer->epoch == pk->epoch
                     && !strcmp(peer->sent, owner)))
              : !disputed && !removed) {
        return; /* The host keeps its key. */
    } else if (!owner && !peer->sent && peer->epoch == pk->epoch) {
        return; /* The host knows that it has no key. */
    }
    json = json_object_create();
    put_address(json, "address", &peer->ip);
    if (owner) {
        json_object_put_nocopy(
            json, xstrdup("key"),
            json_string_create_nocopy(get_key(pk, host, owner)));
    }
    free(peer->sent);
    peer->sent = nullable_xstrdup(owner);
    peer->epoch = pk->epoch;
    json_array_add(changes, json);
}

struct json *
pair_keys_take(struct pair_keys *pk, const char *name)
{
    struct pair_host *host = shash_find_data(&pk->hosts, name);
    struct json *changes;

    if (!host || !host->knows || host->seqno == pk->seqno) {
        return NULL;
    }
    host->seqno = pk->seqno;
    changes = json_array_create_empty();
    for (size_t i = 0; i < host->n_peers; i++) {
        add_change(pk, name, &host->peers[i], changes);
    }
    if (!changes->array.n && host->sent) {
        json_destroy(changes);
        return NULL;
    }
    host->sent = true;
    return changes;
}

/* Adds 'host' to 'names' if its last offence 'o' is recent. */
static void
name_offence(const struct pair_keys *pk, const char *host,
             const struct offence *o, struct alarm_names *names)
{
    const char *owner = find_owner(find_address(pk, &o->peer));
    struct ds ip = DS_EMPTY_INITIALIZER;

    if (!o->at || time_msec() > o->at + ALARM_MS) {
        return;
    }
    if (ipv6_addr_is_set(&o->peer)) {
        ds_put_format(&ip, ", of %s%s", owner ? owner : "", owner ? " " : "");
        ipv6_format_mapped(&o->peer, &ip);
    }
    alarm_name(names, "%s (%" PRIu64 "%s)", host, o->n, ds_cstr(&ip));
    ds_destroy(&ip);
}

static void
name_disputed(const struct pair_keys *pk, struct alarm_names *names)
{
    const struct address *a;

    HMAP_FOR_EACH (a, node, &pk->addresses) {
        if (a->hosts[0] && a->hosts[1]) {
            struct ds ip = DS_EMPTY_INITIALIZER;

            ipv6_format_mapped(&a->ip, &ip);
            alarm_name(names, "%s of %s and %s", ds_cstr(&ip), a->hosts[0],
                       a->hosts[1]);
            ds_destroy(&ip);
        }
    }
}

void
pair_keys_alarms(const struct pair_keys *pk, struct json *alarms)
{
    static const char *const texts[N_OFFENCES] = {
        [FORGED] = "packets of processes to the port of shims' messages were "
                   "dropped on ",
        [REFUSED] = "messages between shims were refused by ",
        [DISOBEYED] = "more arrived than was granted, so that only windows "
                      "limit the sender, at ",
    };
    const struct shash_node **hosts = shash_sort(&pk->hosts);
    struct alarm_names names = { .n = 0 };

    name_disputed(pk, &names);
    alarm_about(alarms, ALARM_ADDRESS_CLAIMED, &names,
                "two hosts report an address as theirs, and shims believe "
                "neither: ",
                "");
    for (int kind = 0; kind < N_OFFENCES; kind++) {
        for (size_t i = 0; i < shash_count(&pk->hosts); i++) {
            const struct pair_host *host = hosts[i]->data;

            name_offence(pk, hosts[i]->name, &host->offences[kind], &names);
        }
        alarm_about(alarms, ALARM_SHIM_MESSAGES, &names, texts[kind], "");
    }
    free(hosts);
}
