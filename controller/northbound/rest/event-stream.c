/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/rest/event-stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "controller/controller.h"
#include "controller/decide/decision-log.h"
#include "controller/decide/policy-file.h"
#include "controller/hosts/hosts-db.h"
#include "controller/hosts/telemetry.h"
#include "controller/model/cluster.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "openvswitch/list.h"
#include "openvswitch/poll-loop.h"
#include "policies/policy.h"
#include "timeval.h"
#include "util.h"
#include "wire/json-put.h"

#define TELEMETRY_MS 1000

/* Maximum number of hosts in an event "telemetry". */
#define MAX_HOSTS 256

struct event_stream {
    const struct controller *ctl;
    struct ovs_list clients;    /* List of struct event_client. */

    /* Stored events.  Event 'id' is in 'ring[id % EVENTS_KEPT]', as text.  Ids
     * are unique together with 'origin'. */
    char *ring[EVENTS_KEPT];
    uint64_t last;              /* Last id, 0: none yet. */
    long long origin;           /* Start of this process, epoch ms. */

    uint64_t decision;          /* Id of the last decision in 'ring'. */
    int64_t version;            /* Version of the last order in 'ring'. */

    char *telemetry;            /* Last event "telemetry", as text. */
    uint64_t n_telemetry;       /* Number of these events so far. */
    long long next_telemetry;   /* time_msec() of the next one. */
    long long sampled;          /* time_msec() of the last one. */
    struct shash moved;         /* Host name -> struct moved. */
};

/* Bytes of a host when the last event "telemetry" was made. */
struct moved {
    uint64_t bytes[N_DIRS];
};

struct event_client {
    struct ovs_list node;       /* In struct event_stream's 'clients'. */
    struct event_stream *es;
    void (*wake)(void *aux);
    void *aux;
    uint64_t seen;              /* Id of the last event sent. */
    uint64_t n_telemetry;       /* 'n_telemetry' as of the last event. */
    struct ds rest;             /* Text of the event that is being read. */
    size_t offset;              /* Bytes of 'rest' that have been read. */
    bool lost;                  /* The stream ends after 'rest'. */
};

struct event_stream *
event_stream_create(const struct controller *ctl)
{
    struct event_stream *es = xzalloc(sizeof *es);

    es->ctl = ctl;
    es->origin = time_wall_msec();
    es->version = -1;
    ovs_list_init(&es->clients);
    shash_init(&es->moved);
    return es;
}

void
event_stream_destroy(struct event_stream *es)
{
    if (es) {
        for (size_t i = 0; i < EVENTS_KEPT; i++) {
            free(es->ring[i]);
        }
        free(es->telemetry);
        shash_destroy_free_data(&es->moved);
        free(es);
    }
}

/* Returns the text of an event of 'type', without an id if 'id' is 0.
 * Destroys 'json'. */
static char *
format_event(const struct event_stream *es, const char *type, uint64_t id,
             struct json *json)
{
    char *data = json_to_string(json, JSSF_SORT);
    struct ds text = DS_EMPTY_INITIALIZER;

    if (id) {
        ds_put_format(&text, "id: %lld-%"PRIu64"\n", es->origin, id);
    }
    ds_put_format(&text, "event: %s\ndata: %s\n\n", type, data);
    free(data);
    json_destroy(json);
    return ds_steal_cstr(&text);
}

void
event_stream_add(struct event_stream *es, const char *type, struct json *json)
{
    char **slot = &es->ring[++es->last % EVENTS_KEPT];

    free(*slot);
    *slot = format_event(es, type, es->last, json);
}

static void
add_decisions(struct event_stream *es)
{
    const struct decision *d;

    while ((d = decision_log_after(es->ctl->log, es->decision)) != NULL) {
        es->decision = d->id;
        event_stream_add(es, "decision", decision_to_json(d));
        if (d->kind == DECISION_STAGE) {
            event_stream_add(es, "stage", decision_to_json(d));
        }
    }
}

static void
add_order(struct event_stream *es)
{
    int64_t version = hosts_db_version(es->ctl->hosts);

    if (version != es->version) {
        struct json *json = json_object_create();

        es->version = version;
        json_put_integer(json, "version", version);
        json_put_integer(json, "at", time_wall_msec());
        json_object_put_string(json, "policy",
                               policy_file_get(es->ctl->policy)->name);
        event_stream_add(es, "order", json);
    }
}

static struct json *
host_rates(struct event_stream *es, const struct host *host, double seconds)
{
    static const char *const names[N_DIRS] = {
        [DIR_TX] = "tx_bps", [DIR_RX] = "rx_bps",
    };
    struct moved *last = shash_find_data(&es->moved, host->name);
    struct json *json = json_object_create();

    if (!last) {
        last = xmalloc(sizeof *last);
        memcpy(last->bytes, host->moved, sizeof last->bytes);
        shash_add(&es->moved, host->name, last);
    }
    for (int dir = 0; dir < N_DIRS; dir++) {
        uint64_t bytes = host->moved[dir] - last->bytes[dir];

        json_put_integer(json, names[dir],
                         seconds > 0 ? bytes * 8 / seconds : 0);
        last->bytes[dir] = host->moved[dir];
    }
    json_put_boolean(json, "connected", host->connected);
    return json;
}

static struct json *
telemetry_to_json(struct event_stream *es, double seconds)
{
    const struct cluster *c = es->ctl->cluster;
    size_t n_stages, n;
    const struct host **known = cluster_known_hosts(c, &n);
    struct json *json = json_object_create();
    struct json *hosts = json_object_create();

    for (size_t i = 0; i < MIN(n, MAX_HOSTS); i++) {
        json_object_put(hosts, known[i]->name,
                        host_rates(es, known[i], seconds));
    }
    free(known);
    free(cluster_running_stages(c, &n_stages));
    json_put_integer(json, "at", time_wall_msec());
    json_put_integer(json, "agents", telemetry_n_agents(es->ctl->telemetry));
    json_put_integer(json, "stages", n_stages);
    json_object_put(json, "hosts", hosts);
    return json;
}

static void
update_telemetry(struct event_stream *es)
{
    long long now = time_msec();

    if (ovs_list_is_empty(&es->clients) || now < es->next_telemetry) {
        return;
    }
    free(es->telemetry);
    es->telemetry = format_event(es, "telemetry", 0, telemetry_to_json(
                                     es, (now - es->sampled) / 1000.0));
    es->n_telemetry++;
    es->sampled = now;
    es->next_telemetry = now + TELEMETRY_MS;
}

static bool
has_more(const struct event_client *client)
{
    return (client->offset < client->rest.length || client->lost
            || client->seen < client->es->last
            || client->n_telemetry < client->es->n_telemetry);
}

void
event_stream_run(struct event_stream *es)
{
    struct event_client *client;

    add_decisions(es);
    add_order(es);
    update_telemetry(es);
    LIST_FOR_EACH (client, node, &es->clients) {
        if (has_more(client)) {
            client->wake(client->aux);
        }
    }
}

void
event_stream_wait(const struct event_stream *es)
{
    if (!ovs_list_is_empty(&es->clients)) {
        poll_timer_wait_until(es->next_telemetry);
    }
}

/* Returns the id in 'text', "ORIGIN-ID".  Returns 0 if it is from another
 * process, so that the client gets all stored events. */
static uint64_t
parse_id(const struct event_stream *es, const char *text)
{
    unsigned long long id;
    long long origin;
    int n = 0;

    return (ovs_scan(text, "%lld-%llu%n", &origin, &id, &n) && !text[n]
            && origin == es->origin && id <= es->last ? id : 0);
}

struct event_client *
event_client_create(struct event_stream *es, const char *last,
                    void (*wake)(void *aux), void *aux)
{
    struct event_client *client = xmalloc(sizeof *client);

    *client = (struct event_client) {
        .es = es, .wake = wake, .aux = aux,
        .seen = last ? parse_id(es, last) : es->last,
        .n_telemetry = es->n_telemetry, .rest = DS_EMPTY_INITIALIZER,
    };
    if (last && !client->seen && es->last > EVENTS_KEPT) {
        client->seen = es->last - EVENTS_KEPT;
    }
    /* Confirms the subscription at once. */
    ds_put_cstr(&client->rest, "retry: 2000\n\n");
    ovs_list_push_back(&es->clients, &client->node);
    poll_immediate_wake();
    return client;
}

void
event_client_destroy(struct event_client *client)
{
    if (client) {
        ovs_list_remove(&client->node);
        ds_destroy(&client->rest);
        free(client);
    }
}

/* Stores the text of the next event in 'rest', "" without an event. */
static void
load_next_event(struct event_client *client)
{
    const struct event_stream *es = client->es;

    ds_clear(&client->rest);
    client->offset = 0;
    if (client->seen + EVENTS_KEPT < es->last) {
        ds_put_cstr(&client->rest, "event: lost\ndata: {}\n\n");
        client->lost = true;
    } else if (client->seen < es->last) {
        ds_put_cstr(&client->rest, es->ring[++client->seen % EVENTS_KEPT]);
    } else if (client->n_telemetry < es->n_telemetry) {
        client->n_telemetry = es->n_telemetry;
        ds_put_cstr(&client->rest, es->telemetry);
    }
}

ssize_t
event_client_read(struct event_client *client, char *buffer, size_t size)
{
    size_t n;

    if (client->offset >= client->rest.length) {
        if (client->lost) {
            return -1;
        }
        load_next_event(client);
    }
    n = MIN(size, client->rest.length - client->offset);
    memcpy(buffer, ds_cstr(&client->rest) + client->offset, n);
    client->offset += n;
    return n;
}
