/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach flows: profiles a capture. */

#include <arpa/inet.h>
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "cli/command.h"
#include "shim/capture/profile.h"

#define TABLE_FLOWS 32          /* Flows in the table; the JSON has all. */

struct flows_options {
    bool json;
};

static const struct option_row rows[] = {
    { "format", OPTION_CHOICE, OPTION_AT(struct flows_options, json),
      .value = "table|json", .deflt = "table",
      .help = "output: groups and the 32 largest flows, or all flows" },
    { .name = NULL },
};

static const struct option_table table = {
    .name = "stagecoach flows", .rows = rows,
    .usage =
        "usage: stagecoach flows CAPTURE [--format table|json]\n"
        "\n"
        "Profiles a pcap or pcapng file of Ethernet frames: flows, their "
        "bursts, and\n"
        "groups of flows that burst together, which may be jobs, with the "
        "confidence\n"
        "of that estimate (0 to 1).\n",
    .footer = "Exit status: 0 success, 1 the file cannot be read, 2 usage.\n",
    .operand = "CAPTURE", .min_operands = 1, .max_operands = 1,
};

static void
format_end(char *s, size_t size, const struct shim_flow_key *key, bool local)
{
    char address[INET6_ADDRSTRLEN];

    inet_ntop(key->family == 4 ? AF_INET : AF_INET6,
              local ? key->local : key->remote, address, sizeof address);
    snprintf(s, size, key->family == 4 ? "%s:%u" : "[%s]:%u", address,
             ntohs(local ? key->local_port : key->remote_port));
}

static const char *
protocol_name(const struct shim_flow_key *key)
{
    return key->protocol == IPPROTO_TCP ? "tcp" : "udp";
}

static void
put_bursts(cJSON *json, const struct shim_burst_stats *b)
{
    if (b->period_ns) {
        cJSON_AddNumberToObject(json, "period_s", b->period_ns / 1e9);
        cJSON_AddNumberToObject(json, "burst_bytes", b->bytes);
        cJSON_AddNumberToObject(json, "duty", b->duty / 1e6);
        cJSON_AddNumberToObject(json, "regularity", b->regularity / 1e6);
    }
}

static void
put_side(cJSON *flow, const char *name, const struct profile_side *side)
{
    cJSON *json = cJSON_AddObjectToObject(flow, name);

    cJSON_AddNumberToObject(json, "packets", side->packets);
    cJSON_AddNumberToObject(json, "bytes", side->bytes);
    put_bursts(json, &side->bursts);
}

static void
put_flow(cJSON *flows, const struct profile *p, const struct profile_flow *f)
{
    cJSON *json = cJSON_CreateObject();
    char end[64];

    cJSON_AddItemToArray(flows, json);
    cJSON_AddStringToObject(json, "protocol", protocol_name(&f->key));
    format_end(end, sizeof end, &f->key, true);
    cJSON_AddStringToObject(json, "a", end);
    format_end(end, sizeof end, &f->key, false);
    cJSON_AddStringToObject(json, "b", end);
    cJSON_AddNumberToObject(json, "begin_s", (f->first - p->first) / 1e9);
    cJSON_AddNumberToObject(json, "end_s", (f->last - p->first) / 1e9);
    put_side(json, "sent", &f->sent);
    put_side(json, "received", &f->received);
    if (f->group == SIZE_MAX) {
        cJSON_AddNullToObject(json, "group");
    } else {
        cJSON_AddNumberToObject(json, "group", f->group);
    }
}

static void
print_json(const char *file, const struct profile *p)
{
    cJSON *json = cJSON_CreateObject(), *groups, *flows;
    char *text;

    cJSON_AddStringToObject(json, "file", file);
    cJSON_AddNumberToObject(json, "frames", p->frames);
    cJSON_AddNumberToObject(json, "bytes", p->bytes);
    cJSON_AddNumberToObject(json, "other_frames", p->other_frames);
    cJSON_AddNumberToObject(json, "reordered", p->reordered);
    cJSON_AddNumberToObject(json, "seconds", (p->last - p->first) / 1e9);
    groups = cJSON_AddArrayToObject(json, "groups");
    for (size_t i = 0; i < p->n_groups; i++) {
        cJSON *group = cJSON_CreateObject();

        cJSON_AddItemToArray(groups, group);
        cJSON_AddNumberToObject(group, "flows", p->groups[i].n_flows);
        cJSON_AddNumberToObject(group, "bytes", p->groups[i].bytes);
        put_bursts(group, &p->groups[i].bursts);
        cJSON_AddNumberToObject(group, "confidence", p->groups[i].confidence);
    }
    flows = cJSON_AddArrayToObject(json, "flows");
    for (size_t i = 0; i < p->n_flows; i++) {
        put_flow(flows, p, &p->flows[i]);
    }
    text = must(cJSON_PrintUnformatted(json));
    puts(text);
    cJSON_free(text);
    cJSON_Delete(json);
}

/* Prints the four columns of bursts. */
static void
print_bursts(const struct shim_burst_stats *b)
{
    if (b->period_ns) {
        printf("  %9.3f  %11"PRIu64"  %5.1f  %10.2f", b->period_ns / 1e9,
               b->bytes, b->duty / 1e4, b->regularity / 1e6);
    } else {
        printf("  %9s  %11s  %5s  %10s", "-", "-", "-", "-");
    }
}

#define BURSTS_HEAD "   period_s  burst_bytes  duty%  regularity"

static void
print_side(const struct profile_flow *f, bool sent)
{
    const struct profile_side *side = sent ? &f->sent : &f->received;
    char from[64], to[64];

    if (!side->packets) {
        return;
    }
    format_end(from, sizeof from, &f->key, sent);
    format_end(to, sizeof to, &f->key, !sent);
    printf("%5zu  %-3s  %-22s  %-22s  %9"PRIu64"  %12"PRIu64, f->group,
           protocol_name(&f->key), from, to, side->packets, side->bytes);
    print_bursts(&side->bursts);
    putchar('\n');
}

static void
print_tables(const struct profile *p)
{
    size_t n = p->n_flows < TABLE_FLOWS ? p->n_flows : TABLE_FLOWS;

    printf("%"PRIu64" frames, %"PRIu64" bytes, %.3f s; %zu flows; %"PRIu64
           " frames without a flow\n\n", p->frames, p->bytes,
           (p->last - p->first) / 1e9, p->n_flows, p->other_frames);
    printf("group  flows         bytes%s  confidence\n", BURSTS_HEAD);
    for (size_t i = 0; i < p->n_groups && i < TABLE_FLOWS; i++) {
        const struct profile_group *g = &p->groups[i];

        printf("%5zu  %5zu  %12"PRIu64, i, g->n_flows, g->bytes);
        print_bursts(&g->bursts);
        printf("  %10.2f\n", g->confidence);
    }
    printf("\ngroup  is   %-22s  %-22s    packets         bytes%s\n", "from",
           "to", BURSTS_HEAD);
    for (size_t i = 0; i < n; i++) {
        print_side(&p->flows[i], true);
        print_side(&p->flows[i], false);
    }
    if (n < p->n_flows) {
        printf("and %zu smaller flows\n", p->n_flows - n);
    }
}

int
cmd_flows(int argc, char *argv[])
{
    struct flows_options o;
    struct profile *p;
    int capture, status;
    char *error;

    status = option_table_command(&table, argc, argv, &o, &capture);
    if (status >= 0) {
        return status;
    }
    error = profile_read(argv[capture], &p);
    if (error) {
        return command_fail(NULL, error);
    }
    if (o.json) {
        print_json(argv[capture], p);
    } else {
        print_tables(p);
    }
    profile_destroy(p);
    return EXIT_OK;
}
