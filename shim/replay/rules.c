/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/replay/rules.h"

#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-check.h"
#include "base/memory.h"
#include "shim/classify/parse.h"
#include "shim/classify/prefix.h"
#include "shim/ports/port-spec.h"

#define MAX_JOBS (SHIM_MAX_SLOTS - 1)
#define MAX_ADDRESSES 1024
#define MAX_FLOW_RULES 4096     /* Flow rules of a job. */

static const char *const protocol_names[] = { "any", "tcp", "udp", NULL };
static const char *const otherwise_names[] = { "from-host", "to-host",
                                               "skip", NULL };

static bool
parse_prefix(const char *text, void *prefix)
{
    return prefix_parse(text, prefix);
}

static bool
parse_mac(const char *text, void *mac_)
{
    uint8_t *mac = mac_;
    unsigned int b[6];
    int n = 0;

    if (strlen(text) != 17 || strspn(text, "0123456789abcdefABCDEF:") != 17
        || sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2],
                  &b[3], &b[4], &b[5], &n) != 6 || n != 17) {
        return false;
    }
    for (int i = 0; i < 6; i++) {
        mac[i] = b[i];
    }
    return true;
}

/* Replaces control characters, so that a message stays on one line. */
static const char *
printable(char *text)
{
    for (char *p = text; *p; p++) {
        if (iscntrl((unsigned char) *p)) {
            *p = '?';
        }
    }
    return text;
}

#define PREFIX "an address such as 10.0.0.1, 10.0.0.0/24 or fd00::/64"

static void
read_prefix(const struct json_at *at, const char *member,
            struct address_prefix *p)
{
    char *text = json_string_or(at, member, NULL);

    if (text && !parse_prefix(text, p)) {
        json_fail(at, member, "\"%.60s\" is not " PREFIX, printable(text));
    }
    free(text);
}

/* Reads the array 'member' of texts, which 'parse' stores in elements of
 * 'size' bytes.  Returns the elements, and stores their number in '*n'. */
static void *
read_addresses(const struct json_at *host, const char *member,
               bool (*parse)(const char *, void *), size_t size,
               const char *allowed, size_t *n)
{
    const struct json_at *at = json_array_or_null(host, member, 0,
                                                  MAX_ADDRESSES);
    char *elements = allocate(json_n(at), size);

    *n = json_n(at);
    for (size_t i = 0; i < *n; i++) {
        char *text = json_at_string(json_element(at, i));

        if (text && !parse(text, elements + i * size)) {
            json_fail(json_element(at, i), NULL, "\"%.60s\" is not %s",
                      printable(text), allowed);
        }
        free(text);
    }
    return elements;
}

static void
read_host(struct replay_rules *rules, const struct json_at *top)
{
    const struct json_at *host = json_object(top, "host");

    rules->addresses = read_addresses(host, "addresses", parse_prefix,
                                      sizeof *rules->addresses, PREFIX,
                                      &rules->n_addresses);
    rules->macs = read_addresses(host, "macs", parse_mac, sizeof *rules->macs,
                                 "a MAC address such as 02:00:00:00:00:01",
                                 &rules->n_macs);
    rules->otherwise = json_enum_or(host, "otherwise", otherwise_names,
                                    REPLAY_TO_HOST);
    if (host && !rules->n_addresses && !rules->n_macs) {
        json_fail(top, "host", "neither \"addresses\" nor \"macs\", one of "
                  "them is needed");
    }
}

static struct replay_flow_rule *
add_flow(struct replay_rules *rules)
{
    if (rules->n_flows == rules->allocated_flows) {
        rules->allocated_flows = rules->allocated_flows * 2 + 16;
        rules->flows = reallocate(rules->flows, rules->allocated_flows,
                                  sizeof *rules->flows);
    }
    memset(&rules->flows[rules->n_flows], 0, sizeof *rules->flows);
    return &rules->flows[rules->n_flows++];
}

static void
read_flow(struct replay_rules *rules, const struct json_at *at, uint16_t slot)
{
    static const uint8_t protocols[] = { 0, IPPROTO_TCP, IPPROTO_UDP };
    struct replay_flow_rule *flow = add_flow(rules);

    flow->slot = slot;
    flow->protocol = protocols[json_enum_or(at, "protocol", protocol_names,
                                            0)];
    flow->local_port = json_integer_or(at, "local_port", 1, 65535, 0);
    flow->remote_port = json_integer_or(at, "remote_port", 1, 65535, 0);
    read_prefix(at, "local", &flow->local);
    read_prefix(at, "remote", &flow->remote);
    if (flow->local.family && flow->remote.family
        && flow->local.family != flow->remote.family) {
        json_fail(at, "remote", "not of the same family as \"local\"");
    }
}

static bool
is_name_taken(const struct replay_rules *rules, const struct shim_slot *job)
{
    for (const struct shim_slot *j = rules->jobs; j < job; j++) {
        if (!strcmp(j->name, job->name)) {
            return true;
        }
    }
    return false;
}

static void
read_name(struct replay_rules *rules, const struct json_at *at,
          struct shim_slot *job)
{
    char *name = json_string(at, "name");

    if (name && (!*name || strlen(name) >= sizeof job->name
                 || name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ._/-")])) {
        json_fail(at, "name", "\"%.70s\" is not 1 to 63 letters, digits, "
                  "'.', '_', '-' and '/'", printable(name));
    } else if (name) {
        strcpy(job->name, name);
        if (is_name_taken(rules, job)) {
            json_fail(at, "name", "\"%s\" is the name of another job", name);
        }
    }
    free(name);
}

static void
read_job(struct replay_rules *rules, const struct json_at *at, size_t i)
{
    static const uint8_t dscps[] = SHIM_LEVEL_DSCPS;
    struct shim_slot *job = &rules->jobs[i];
    const struct json_at *flows;

    job->slot = i + 1;
    read_name(rules, at, job);
    job->rank = json_integer_or(at, "rank", 0, UINT32_MAX, i);
    job->level = json_integer(at, "level", 0, SHIM_N_LEVELS - 1);
    job->dscp = json_integer_or(at, "dscp", 0, 63, dscps[job->level]);
    job->weight = json_number_or(at, "weight", 0.001, 1000, 1) * 1000 + 0.5;
    flows = json_array(at, "flows", 1, MAX_FLOW_RULES);
    for (size_t j = 0; j < json_n(flows); j++) {
        read_flow(rules, json_element_object(flows, j), job->slot);
    }
}

static void
read_top(struct replay_rules *rules, const struct json_at *top)
{
    const struct json_at *jobs;
    double min_share;

    json_ignore(top, "$schema");
    json_ignore(top, "description");
    read_host(rules, top);
    rules->rate_bps = json_rate(top, "rate");
    if (rules->rate_bps && (rules->rate_bps < SHIM_MIN_RATE
                            || rules->rate_bps > SHIM_MAX_RATE)) {
        json_fail(top, "rate", "not from 100kbit to 800Gbit");
    }
    rules->mtu = json_integer_or(top, "mtu", PORT_MIN_MTU, PORT_MAX_MTU, 1500);
    rules->tag = json_bool_or(top, "tag", true);
    rules->default_dscp = json_integer_or(top, "default_dscp", 0, 63, 0);
    min_share = json_number_or(top, "min_share", 0, 1, -1);
    rules->min_share = (min_share < 0 ? SHIM_MIN_SHARE_DEFAULT
                        : min_share * SHIM_MIN_SHARE_UNIT + 0.5);
    jobs = json_array(top, "jobs", 0, MAX_JOBS);
    rules->n_jobs = json_n(jobs);
    rules->jobs = allocate(rules->n_jobs, sizeof *rules->jobs);
    for (size_t i = 0; i < rules->n_jobs; i++) {
        read_job(rules, json_element_object(jobs, i), i);
    }
}

char *
replay_rules_parse(const char *name, const char *text,
                   struct replay_rules **rulesp)
{
    struct replay_rules *rules = allocate(1, sizeof *rules);
    struct json_check *jc = json_check_open(name, text);
    char *error;

    read_top(rules, json_check_top(jc));
    error = json_check_close(jc);
    if (error) {
        replay_rules_destroy(rules);
        rules = NULL;
    }
    *rulesp = rules;
    return error;
}

char *
replay_rules_read(const char *file, struct replay_rules **rulesp)
{
    char *text, *error = json_read_file(file, &text);

    *rulesp = NULL;
    if (!error) {
        error = replay_rules_parse(file, text, rulesp);
        free(text);
    }
    return error;
}

void
replay_rules_destroy(struct replay_rules *rules)
{
    if (rules) {
        free(rules->addresses);
        free(rules->macs);
        free(rules->jobs);
        free(rules->flows);
        free(rules);
    }
}

static bool
is_hosts_address(const struct replay_rules *rules, uint8_t family,
                 const uint8_t *address)
{
    for (size_t i = 0; i < rules->n_addresses; i++) {
        if (prefix_fits(&rules->addresses[i], family, address)) {
            return true;
        }
    }
    return false;
}

static bool
is_hosts_mac(const struct replay_rules *rules, const uint8_t *mac)
{
    for (size_t i = 0; i < rules->n_macs; i++) {
        if (!memcmp(rules->macs[i], mac, 6)) {
            return true;
        }
    }
    return false;
}

/* Finds the sender's and the receiver's address, of IP or of ARP.  Returns
 * their family, 0 if there are no addresses. */
static uint8_t
find_addresses(const uint8_t *frame, size_t size, const uint8_t **from,
               const uint8_t **to)
{
    struct parsed p;

    parse_frame(frame, size, true, &p);
    if (p.family == 4 && size - p.l3 >= 20) {
        *from = frame + p.l3 + 12;
        *to = frame + p.l3 + 16;
        return 4;
    }
    if (p.family == 6 && size - p.l3 >= 40) {
        *from = frame + p.l3 + 8;
        *to = frame + p.l3 + 24;
        return 6;
    }
    if (size >= 42 && frame[12] == 0x08 && frame[13] == 0x06) {
        *from = frame + 28;
        *to = frame + 38;
        return 4;
    }
    return 0;
}

enum replay_direction
replay_rules_direction(const struct replay_rules *rules, const uint8_t *frame,
                       size_t size)
{
    const uint8_t *from, *to;
    uint8_t family;

    if (size >= 14 && is_hosts_mac(rules, frame + 6)) {
        return REPLAY_FROM_HOST;
    }
    if (size >= 14 && is_hosts_mac(rules, frame)) {
        return REPLAY_TO_HOST;
    }
    family = find_addresses(frame, size, &from, &to);
    if (family && is_hosts_address(rules, family, from)) {
        return REPLAY_FROM_HOST;
    }
    if (family && is_hosts_address(rules, family, to)) {
        return REPLAY_TO_HOST;
    }
    return rules->otherwise;
}

uint16_t
replay_rules_slot(const struct replay_rules *rules,
                  const struct shim_flow_key *key)
{
    for (size_t i = 0; i < rules->n_flows; i++) {
        const struct replay_flow_rule *f = &rules->flows[i];

        if ((!f->protocol || f->protocol == key->protocol)
            && (!f->local_port || htons(f->local_port) == key->local_port)
            && (!f->remote_port || htons(f->remote_port) == key->remote_port)
            && prefix_fits(&f->local, key->family, key->local)
            && prefix_fits(&f->remote, key->family, key->remote)) {
            return f->slot;
        }
    }
    return 0;
}
