/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/topology/topology.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-check.h"
#include "base/name.h"
#include "util.h"
#include "wire/certificate.h"

const char *const queue_kind_names[N_QUEUE_KINDS + 1] = {
    [QUEUES_HTB] = "linux-htb",
    [QUEUES_NOOP] = "linux-noop",
    [QUEUES_POLICER] = "egress-policer",
    [QUEUES_NONE] = "none",
};

void
topology_destroy(struct topology *t)
{
    if (t) {
        for (size_t i = 0; i < t->n_switches; i++) {
            free(t->switches[i].name);
            free(t->switches[i].target);
            free(t->switches[i].identity);
            free(t->switches[i].database);
        }
        for (size_t i = 0; i < t->n_hosts; i++) {
            free(t->hosts[i].name);
        }
        free(t->switches);
        free(t->links);
        free(t->hosts);
        free(t);
    }
}

static int
find_switch(const struct topology *t, const char *name)
{
    for (size_t i = 0; i < t->n_switches; i++) {
        if (t->switches[i].name && !strcmp(t->switches[i].name, name)) {
            return i;
        }
    }
    return -1;
}

/* Returns the index of host 'name', or -1. */
static int
find_host(const struct topology *t, const char *name)
{
    for (size_t i = 0; i < t->n_hosts; i++) {
        if (t->hosts[i].name && !strcmp(t->hosts[i].name, name)) {
            return i;
        }
    }
    return -1;
}

/* Reads sixteen hexadecimal digits, as "ovs-ofctl show" prints them. */
static uint64_t
read_datapath(const struct json_at *at)
{
    char *text = json_string(at, "datapath");
    uint64_t datapath = 0;

    if (text && strlen(text) == 16 && strspn(text, "0123456789abcdef") == 16) {
        datapath = strtoull(text, NULL, 16);
    }
    if (text && !datapath) {
        json_fail(at, "datapath",
                  "\"%.32s\"; expected 16 digits 0-9 and a-f, not all "
                  "0",
                  text);
    }
    free(text);
    return datapath;
}

static char *
read_target(const struct json_at *at, const char *member)
{
    char *text = json_string(at, member);

    if (text && strncmp(text, "unix:/", 6) && strncmp(text, "tcp:", 4)
        && strncmp(text, "ssl:", 4)) {
        json_fail(at, member,
                  "\"%.64s\"; expected unix:/PATH, tcp:IP:PORT or "
                  "ssl:IP:PORT",
                  text);
    }
    return text;
}

/* Reads the CN of the switch's certificate, by default the switch's name. */
static char *
read_identity(const struct json_at *at, const char *name)
{
    char cn[CERTIFICATE_NAME_SIZE], *text;

    name_shorten(name ? name : "", cn, sizeof cn);
    text = json_string_or(at, "identity", cn);

    if (text && json_has(at, "identity")
        && (!*text || strlen(text) > TOPOLOGY_MAX_IDENTITY)) {
        json_fail(at, "identity", "%zu characters; expected 1 to %d",
                  strlen(text), TOPOLOGY_MAX_IDENTITY);
    }
    return text;
}

static void
read_switch(const struct json_at *at, struct topology *t, size_t i)
{
    struct topology_switch *sw = &t->switches[i];
    char *name = json_name(at, "name");

    if (name && find_switch(t, name) >= 0) {
        json_fail(at, "name",
                  "another switch is \"%s\" too; expected only one of "
                  "each name",
                  name);
    }
    sw->name = name;
    sw->target = read_target(at, "target");
    sw->datapath = read_datapath(at);
    sw->identity = read_identity(at, name);
    if (json_has(at, "queues")) {
        const struct json_at *queues = json_object(at, "queues");

        sw->database = read_target(queues, "database");
        sw->queues = json_enum(queues, "type", queue_kind_names);
    }
    for (size_t j = 0; sw->datapath && j < i; j++) {
        if (t->switches[j].datapath == sw->datapath) {
            json_fail(at, "datapath",
                      "\"%s\" has it too; expected only one switch of "
                      "each id",
                      t->switches[j].name);
        }
    }
}

static bool
same_port(const struct topology_port *a, const struct topology_port *b)
{
    return a->sw == b->sw && a->port == b->port;
}

/* Returns true if one of the first 'n_links' links or 'n_hosts' hosts uses
 * 'port'. */
static bool
is_taken(const struct topology *t, size_t n_links, size_t n_hosts,
         const struct topology_port *port)
{
    for (size_t i = 0; i < n_links; i++) {
        if (same_port(&t->links[i].ends[0], port)
            || same_port(&t->links[i].ends[1], port)) {
            return true;
        }
    }
    for (size_t i = 0; i < n_hosts; i++) {
        if (same_port(&t->hosts[i].at, port)) {
            return true;
        }
    }
    return false;
}

/* Reads {"switch", "port"}, a port that none of the first 'n_links' links and
 * 'n_hosts' hosts uses. */
static struct topology_port
read_port(const struct json_at *at, const struct topology *t, size_t n_links,
          size_t n_hosts)
{
    struct topology_port port = { .sw = -1 };
    char *name = json_name(at, "switch");

    port.port = json_integer(at, "port", 1, TOPOLOGY_MAX_PORT);
    if (name) {
        port.sw = find_switch(t, name);
        if (port.sw < 0) {
            json_fail(at, "switch", "\"%s\"; expected a name of \"switches\"",
                      name);
        } else if (is_taken(t, n_links, n_hosts, &port)) {
            json_fail(at, "port",
                      "%u of \"%s\" is taken; expected one link or host "
                      "at a port",
                      port.port, name);
        }
    }
    free(name);
    return port;
}

static void
read_link(const struct json_at *at, struct topology *t, size_t i)
{
    struct topology_link *link = &t->links[i];
    const struct json_at *ends = json_array(at, "ends", 2, 2);

    link->capacity = json_rate(at, "capacity");
    for (size_t j = 0; j < json_n(ends) && j < 2; j++) {
        link->ends[j] = read_port(json_element_object(ends, j), t, i, 0);
    }
    if (json_n(ends) == 2 && link->ends[0].sw >= 0
        && link->ends[0].sw == link->ends[1].sw) {
        json_fail(at, "ends", "both are of one switch; expected two switches");
    }
}

static void
read_host(const struct json_at *at, struct topology *t, size_t i)
{
    struct topology_host *host = &t->hosts[i];
    char *name = json_name(at, "name");
    char *ip = json_string(at, "ip");
    struct in_addr addr = { .s_addr = 0 };

    if (name && find_host(t, name) >= 0) {
        json_fail(at, "name",
                  "another host is \"%s\" too; expected only one of each "
                  "name",
                  name);
    }
    host->name = name;
    if (ip && inet_pton(AF_INET, ip, &addr) != 1) {
        json_fail(at, "ip", "\"%.32s\"; expected an IPv4 address", ip);
    }
    host->ip = ntohl(addr.s_addr);
    for (size_t j = 0; host->ip && j < i; j++) {
        if (t->hosts[j].ip == host->ip) {
            json_fail(at, "ip",
                      "\"%s\" has it too; expected only one host of each "
                      "address",
                      t->hosts[j].name);
        }
    }
    host->capacity = json_rate(at, "capacity");
    host->at = read_port(json_object(at, "at"), t, t->n_links, i);
    free(ip);
}

char *
topology_parse(const char *name, const char *text, struct topology **tp)
{
    struct json_check *jc = json_check_open(name, text);
    const struct json_at *top = json_check_top(jc);
    const struct json_at *switches, *links, *hosts;
    struct topology *t = xzalloc(sizeof *t);
    char *error;

    json_ignore(top, "$schema");
    json_ignore(top, "description");
    switches = json_array(top, "switches", 1, TOPOLOGY_MAX_SWITCHES);
    links = json_array(top, "links", 0, TOPOLOGY_MAX_LINKS);
    hosts = json_array(top, "hosts", 0, TOPOLOGY_MAX_HOSTS);
    if (json_ok(jc)) {
        t->n_switches = json_n(switches);
        t->n_links = json_n(links);
        t->n_hosts = json_n(hosts);
    }
    t->switches = xcalloc(t->n_switches, sizeof *t->switches);
    t->links = xcalloc(t->n_links, sizeof *t->links);
    t->hosts = xcalloc(t->n_hosts, sizeof *t->hosts);
    for (size_t i = 0; i < t->n_switches; i++) {
        read_switch(json_element_object(switches, i), t, i);
    }
    for (size_t i = 0; i < t->n_links; i++) {
        t->links[i].ends[0].sw = t->links[i].ends[1].sw = -1;
        read_link(json_element_object(links, i), t, i);
    }
    for (size_t i = 0; i < t->n_hosts; i++) {
        read_host(json_element_object(hosts, i), t, i);
    }
    error = json_check_close(jc);
    if (error) {
        topology_destroy(t);
        t = NULL;
    }
    *tp = t;
    return error;
}

char *
topology_read(const char *file, struct topology **tp)
{
    char *text, *error;

    *tp = NULL;
    error = json_read_file(file, &text);
    if (!error) {
        error = topology_parse(file, text, tp);
        free(text);
    }
    return error;
}
