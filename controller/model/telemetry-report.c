/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/telemetry-report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/name.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "ovsdb-error.h"
#include "ovsdb-parser.h"
#include "packets.h"
#include "util.h"
#include "wire/cgroup-path.h"
#include "wire/json-get.h"

#define MAX_PERIOD_S 86400      /* Longest burst period. */
#define MAX_BURST_BYTES 1e15
#define MAX_BUSY_S 1e10
#define MAX_GPUS 4096 /* Of a job on a host. */

/* Returns the count 'name', or 'missing' if there is no such member; -1 for
 * 'missing' means that the member is optional. */
static int64_t
parse_count(struct ovsdb_parser *p, const char *name, int missing)
{
    const struct json *json = ovsdb_parser_member(
        p, name, missing < 0 ? OP_INTEGER | OP_OPTIONAL : OP_INTEGER);

    if (json && json->integer < 0) {
        ovsdb_parser_raise_error(p, "'%s' is negative", name);
        return missing;
    }
    return json ? json->integer : missing;
}

/* Returns the iteration 'name', or -1 if there is no such member. */
static int64_t
parse_iteration(struct ovsdb_parser *p, const char *name)
{
    int64_t n = parse_count(p, name, -1);

    if (n > TELEMETRY_MAX_ITERATION) {
        ovsdb_parser_raise_error(p, "'%s' is greater than %"PRId64, name,
                                 TELEMETRY_MAX_ITERATION);
        return -1;
    }
    return n;
}

/* Returns the first error of 'p', or NULL.  It is one line of a log: without
 * the message, which the parser puts before it.  Ignores unknown members,
 * which newer agents have. */
static char *
finish_parser(struct ovsdb_parser *p)
{
    const struct json *json = p->json;
    struct ovsdb_error *error = ovsdb_parser_destroy(p);
    char *message = NULL;

    if (error) {
        char *text = ovsdb_error_to_string_free(error);
        char *syntax = json ? json_to_string(json, JSSF_SORT) : NULL;

        message = xstrdup(
            text + (syntax ? strlen("syntax \"\": ") + strlen(syntax) : 0));
        free(syntax);
        free(text);
    }
    return message;
}

static double
optional_real(struct ovsdb_parser *p, const char *name, double max)
{
    const struct json *json = ovsdb_parser_member(p, name,
                                                  OP_NUMBER | OP_OPTIONAL);
    double x = (!json ? 0 : json->type == JSON_REAL ? json->real
                : json->integer);

    if (!(x >= 0 && x <= max)) {
        ovsdb_parser_raise_error(p, "'%s' is not from 0 to %g", name, max);
        return 0;
    }
    return x;
}

static struct membership_claim
parse_claim(struct ovsdb_parser *p)
{
    const struct json *registered
        = ovsdb_parser_member(p, "registered", OP_BOOLEAN | OP_OPTIONAL);
    int64_t uid = parse_count(p, "uid", -1);

    return (struct membership_claim) {
        .registered = !registered || json_boolean(registered),
        .has_uid = uid >= 0, .uid = MAX(uid, 0),
    };
}

/* Parses an element of "sent_to". */
static char *
parse_remote(const struct json *json, struct telemetry_remote *remote)
{
    const struct json *address;
    struct ovsdb_parser p;
    struct in6_addr ip6;
    ovs_be32 ip;

    ovsdb_parser_init(&p, json, "sent_to");
    address = ovsdb_parser_member(&p, "remote", OP_STRING);
    remote->bytes = parse_count(&p, "bytes", 0);
    if (address && ip_parse(json_string(address), &ip)) {
        remote->ip = ntohl(ip);
    } else if (address && !ipv6_parse(json_string(address), &ip6)) {
        ovsdb_parser_raise_error(&p, "'remote' is not an IP address");
    }
    return finish_parser(&p);
}

static char *
parse_remotes(const struct json *remotes, struct telemetry_job *job)
{
    char *error = NULL;

    if (remotes->array.n > TELEMETRY_MAX_REMOTES) {
        return xasprintf("%" PRIuSIZE
                         " remote addresses of a job; expected at most %d",
                         remotes->array.n, TELEMETRY_MAX_REMOTES);
    }
    job->remotes = xcalloc(remotes->array.n + 1, sizeof *job->remotes);
    for (size_t i = 0; !error && i < remotes->array.n; i++) {
        error = parse_remote(remotes->array.elems[i],
                             &job->remotes[job->n_remotes++]);
    }
    return error;
}

static char *
parse_job(const struct json *json, struct telemetry_job *job)
{
    const struct json *name, *metric, *value, *remotes;
    char *error;
    struct ovsdb_parser p;

    ovsdb_parser_init(&p, json, "job");
    name = ovsdb_parser_member(&p, "job", OP_STRING);
    job->claim = parse_claim(&p);
    job->tx_bytes = parse_count(&p, "tx_bytes", 0);
    job->rx_bytes = parse_count(&p, "rx_bytes", 0);
    job->busy = optional_real(&p, "busy_s", MAX_BUSY_S);
    job->waited = optional_real(&p, "waited_s", MAX_BUSY_S);
    job->gpus = MIN(MAX(parse_count(&p, "gpus", -1), 0), MAX_GPUS);
    job->reports_refused = MAX(parse_count(&p, "reports_refused", -1), 0);
    job->period = optional_real(&p, "period_s", MAX_PERIOD_S);
    job->burst_bytes = optional_real(&p, "burst_bytes", MAX_BURST_BYTES);
    job->duty = optional_real(&p, "duty", 1);
    job->iteration = parse_iteration(&p, "iteration");
    job->estimated = parse_iteration(&p, "counted");
    metric = ovsdb_parser_member(&p, "metric", OP_STRING | OP_OPTIONAL);
    value = ovsdb_parser_member(&p, "value", OP_NUMBER | OP_OPTIONAL);
    remotes = ovsdb_parser_member(&p, "sent_to", OP_ARRAY | OP_OPTIONAL);
    if (metric && !name_is_valid_metric(json_string(metric))) {
        ovsdb_parser_raise_error(&p, "'metric' is not a name");
    } else if (metric && value && job->iteration >= 0) {
        job->metric = xstrdup(json_string(metric));
        job->value = (value->type == JSON_REAL ? value->real : value->integer);
    }
    if (name && !cgroup_job_is_valid(json_string(name))) {
        ovsdb_parser_raise_error(&p, "'job' is not COJOB/JOB");
    } else if (name) {
        job->name = xstrdup(json_string(name));
    }
    error = finish_parser(&p);
    return error || !remotes ? error : parse_remotes(remotes, job);
}

static char *
parse_jobs(const struct json *jobs, struct telemetry_report *r)
{
    if (jobs->array.n > TELEMETRY_MAX_JOBS) {
        return xasprintf("%" PRIuSIZE " jobs; expected at most %d",
                         jobs->array.n, TELEMETRY_MAX_JOBS);
    }
    r->jobs = xcalloc(jobs->array.n ? jobs->array.n : 1, sizeof *r->jobs);
    for (size_t i = 0; i < jobs->array.n; i++) {
        char *error = parse_job(jobs->array.elems[i], &r->jobs[r->n_jobs++]);

        if (error) {
            return error;
        }
    }
    return NULL;
}

static char *
parse_ports(const struct json *ports, struct telemetry_report *r)
{
    const struct shash_node *node;

    if (shash_count(json_object(ports)) > TELEMETRY_MAX_PORTS) {
        return xasprintf("%" PRIuSIZE " ports; expected at most %d",
                         shash_count(json_object(ports)), TELEMETRY_MAX_PORTS);
    }
    SHASH_FOR_EACH (node, json_object(ports)) {
        const struct json *capacity;
        struct ovsdb_parser p;
        char *error;

        ovsdb_parser_init(&p, node->data, "port");
        capacity = ovsdb_parser_member(&p, "capacity_bps", OP_INTEGER);
        r->port_bytes[0] += MAX(parse_count(&p, "tx_bytes", -1), 0);
        r->port_bytes[1] += MAX(parse_count(&p, "rx_bytes", -1), 0);
        if (!name_is_valid(node->name)) {
            ovsdb_parser_raise_error(&p, "a port's name is not a name");
        } else if (capacity
                   && (capacity->integer < 1000
                       || capacity->integer > 4000000000000LL)) {
            ovsdb_parser_raise_error(&p, "'capacity_bps' is not from 1000 to "
                                     "4000000000000");
        } else if (capacity) {
            simap_put(&r->ports, node->name, capacity->integer / 1000);
        }
        error = finish_parser(&p);
        if (error) {
            return error;
        }
    }
    return NULL;
}

/* Stores the address that 'json', a string or NULL, has. */
static void
parse_address(struct ovsdb_parser *p, const struct json *json,
              struct in6_addr *ip6)
{
    ovs_be32 ip;

    if (json && ip_parse(json_string(json), &ip)) {
        in6_addr_set_mapped_ipv4(ip6, ip);
    } else if (json && !ipv6_parse(json_string(json), ip6)) {
        ovsdb_parser_raise_error(p, "'%s' is not an IP address",
                                 json_string(json));
    }
}

static char *
parse_peer(const struct json *json, struct telemetry_peer *peer)
{
    struct ovsdb_parser p;

    ovsdb_parser_init(&p, json, "remote");
    parse_address(&p, ovsdb_parser_member(&p, "address", OP_STRING),
                  &peer->ip);
    peer->refused = MAX(parse_count(&p, "refused", -1), 0);
    peer->disobeyed = MAX(parse_count(&p, "disobeyed", -1), 0);
    return finish_parser(&p);
}

static char *
parse_peers(const struct json *json, struct telemetry_report *r)
{
    const struct json *own, *remote;
    struct ovsdb_parser p;
    char *error = NULL;

    ovsdb_parser_init(&p, json, "peers");
    own = ovsdb_parser_member(&p, "own", OP_ARRAY);
    remote = ovsdb_parser_member(&p, "remote", OP_ARRAY);
    if (own && remote
        && MAX(own->array.n, remote->array.n) > TELEMETRY_MAX_PEERS) {
        ovsdb_parser_raise_error(&p, "more than %d addresses",
                                 TELEMETRY_MAX_PEERS);
    } else if (own && remote) {
        r->own = xcalloc(own->array.n + 1, sizeof *r->own);
        r->peers = xcalloc(remote->array.n + 1, sizeof *r->peers);
        for (size_t i = 0; i < own->array.n; i++) {
            const struct json *ip = own->array.elems[i];

            if (ip->type != JSON_STRING) {
                ovsdb_parser_raise_error(&p, "'own' has no strings");
                break;
            }
            parse_address(&p, ip, &r->own[r->n_own++]);
        }
        for (size_t i = 0; !error && i < remote->array.n; i++) {
            error =
                parse_peer(remote->array.elems[i], &r->peers[r->n_peers++]);
        }
    }
    r->knows_peers = true;
    if (error) {
        free(finish_parser(&p));
        return error;
    }
    return finish_parser(&p);
}

static char *
parse_user(const struct json *json, struct telemetry_user *user)
{
    static const char allowed[] = "0123456789abcdef-_";
    const struct json *pod;
    struct ovsdb_parser p;
    int64_t uid;

    ovsdb_parser_init(&p, json, "user");
    pod = ovsdb_parser_member(&p, "pod", OP_STRING | OP_OPTIONAL);
    uid = parse_count(&p, "uid", pod ? -1 : 0);
    user->uid = MAX(uid, 0);
    user->entries = parse_count(&p, "entries", 0);
    user->refused = parse_count(&p, "refused", 0);
    if (pod
        && (strlen(json_string(pod)) >= sizeof user->pod
            || json_string(pod)[strspn(json_string(pod), allowed)])) {
        ovsdb_parser_raise_error(&p, "'pod' is not an id");
    } else if (pod) {
        ovs_strlcpy(user->pod, json_string(pod), sizeof user->pod);
    }
    return finish_parser(&p);
}

static char *
parse_users(const struct json *users, struct telemetry_report *r)
{
    char *error = NULL;

    if (users && users->array.n > TELEMETRY_MAX_USERS) {
        return xasprintf("%" PRIuSIZE " users; expected at most %d",
                         users->array.n, TELEMETRY_MAX_USERS);
    }
    while (users && !error && r->n_users < users->array.n) {
        error =
            parse_user(users->array.elems[r->n_users], &r->users[r->n_users]);
        r->n_users++;
    }
    return error;
}

static char *
parse_top(const struct json *json, struct telemetry_report *r)
{
    const struct json *host, *state, *bypass, *ports, *jobs;
    const struct json *shim, *users, *peers;
    struct ovsdb_parser p;
    char *error;

    ovsdb_parser_init(&p, json, "telemetry");
    ovsdb_parser_member(&p, "version", OP_INTEGER);
    host = ovsdb_parser_member(&p, "host", OP_STRING);
    state = ovsdb_parser_member(&p, "state", OP_STRING);
    r->time = parse_count(&p, "time", -1);
    r->applied = parse_count(&p, "applied", 0);
    r->applied_generation = parse_count(&p, "applied_generation", -1);
    r->generation = parse_count(&p, "generation", -1);
    r->jobs_refused = MAX(parse_count(&p, "jobs_refused", -1), 0);
    bypass = ovsdb_parser_member(&p, "bypass", OP_BOOLEAN | OP_OPTIONAL);
    users = ovsdb_parser_member(&p, "users", OP_ARRAY | OP_OPTIONAL);
    peers = ovsdb_parser_member(&p, "peers", OP_OBJECT | OP_OPTIONAL);
    ports = ovsdb_parser_member(&p, "ports", OP_OBJECT | OP_OPTIONAL);
    r->has_counters = ports != NULL;
    shim = ovsdb_parser_member(&p, "shim", OP_OBJECT | OP_OPTIONAL);
    r->ip_bytes = MAX(parse_count(&p, "ip_bytes", ports ? 0 : -1), 0);
    r->default_bytes =
        MAX(parse_count(&p, "default_bytes", ports ? 0 : -1), 0);
    r->queued_bytes = parse_count(&p, "queued_bytes", -1);
    jobs = ovsdb_parser_member(&p, "jobs", OP_ARRAY);
    if (host && !name_is_valid(json_string(host))) {
        ovsdb_parser_raise_error(&p, "'host' is not a name");
    }
    if (state && strcmp(json_string(state), "ordered")
        && strcmp(json_string(state), "fair")) {
        ovsdb_parser_raise_error(&p, "'state' is not ordered or fair");
    }
    error = finish_parser(&p);
    if (error) {
        return error;
    }

    r->host = xstrdup(json_string(host));
    r->state = xstrdup(json_string(state));
    r->bypass = bypass && json_boolean(bypass);
    error = shim_counters_from_json(shim, &r->shim);
    error = error ? error : parse_users(users, r);
    error = error || !peers ? error : parse_peers(peers, r);
    error = error || !ports ? error : parse_ports(ports, r);
    return error ? error : parse_jobs(jobs, r);
}

static bool
is_single(const struct json *params)
{
    return params && params->type == JSON_ARRAY && params->array.n == 1;
}

/* Returns the version of a message, 1 if it has none. */
static long long
get_version(const struct json *params)
{
    const struct json *version =
        json_get(params->array.elems[0], "version", JSON_INTEGER);

    return version ? version->integer : 1;
}

/* Reads the parameters of a "telemetry" notification into '*reportp', which
 * the caller must free with telemetry_report_destroy().  Returns NULL or a
 * malloc()'d message; then '*reportp' is NULL. */
char *
telemetry_report_from_json(const struct json *params,
                           struct telemetry_report **reportp)
{
    struct telemetry_report *r;
    char *error;

    *reportp = NULL;
    if (!is_single(params)) {
        return xstrdup("telemetry: not exactly one parameter");
    } else if (get_version(params) != 1) {
        return xasprintf("telemetry of version %lld, and this controller "
                         "reads 1; expected controllers that are updated "
                         "before agents",
                         get_version(params));
    }
    r = xzalloc(sizeof *r);
    simap_init(&r->ports);
    error = parse_top(params->array.elems[0], r);
    if (error) {
        telemetry_report_destroy(r);
        return error;
    }
    *reportp = r;
    return NULL;
}

const char *
telemetry_report_later(const struct json *params)
{
    const struct json *host =
        (is_single(params) && get_version(params) > 1
             ? json_get(params->array.elems[0], "host", JSON_STRING)
             : NULL);

    return host && name_is_valid(json_string(host)) ? json_string(host) : NULL;
}

void
telemetry_report_destroy(struct telemetry_report *r)
{
    if (r) {
        for (size_t i = 0; i < r->n_jobs; i++) {
            free(r->jobs[i].name);
            free(r->jobs[i].metric);
            free(r->jobs[i].remotes);
        }
        free(r->jobs);
        free(r->own);
        free(r->peers);
        simap_destroy(&r->ports);
        free(r->state);
        free(r->host);
        free(r);
    }
}
