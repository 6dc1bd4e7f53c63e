/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach doctor: examines the whole cluster. */

#include <config.h>

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/command.h"
#include "cli/operator/controller-query.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "simap.h"
#include "svec.h"
#include "util.h"
#include "wire/alarm.h"

/* What "stagecoach doctor" has found in a cluster, each with its remedy.
 *
 *    struct findings all = FINDINGS_INIT;
 *
 *    findings_add(&all, FINDING_ERROR, "h0", "systemctl start ...",
 *                 "the shim is down");
 *    findings_print(&all);
 *    findings_destroy(&all);
 *
 * A thousand hosts with one finding are one finding: places are collected for
 * the same text. */

enum finding_level {
    FINDING_ERROR,   /* A part of the cluster does not work. */
    FINDING_WARNING, /* It works worse, or will stop. */
    FINDING_NOTE,    /* It could be better. */
    N_FINDING_LEVELS,
};

struct finding {
    enum finding_level level;
    struct svec places; /* Names of hosts, or of other things. */
    char *what;
    char *remedy;
};

struct findings {
    struct finding *rows;
    size_t n, allocated;
};

#define FINDINGS_INIT \
    {                 \
        NULL, 0, 0    \
    }

#define MAX_NAMED 5 /* Places that a line names. */

static const char *const levels[N_FINDING_LEVELS] = {
    [FINDING_ERROR] = "error",
    [FINDING_WARNING] = "warning",
    [FINDING_NOTE] = "note",
};

static struct finding *
find(struct findings *f, enum finding_level level, const char *remedy,
     const char *what)
{
    for (size_t i = 0; i < f->n; i++) {
        struct finding *row = &f->rows[i];

        if (row->level == level && !strcmp(row->what, what)
            && !strcmp(row->remedy, remedy)) {
            return row;
        }
    }
    return NULL;
}

static void
findings_add(struct findings *f, enum finding_level level, const char *place,
             const char *remedy, const char *format, ...)
{
    struct finding *row;
    va_list args;
    char *what;

    va_start(args, format);
    what = xvasprintf(format, args);
    va_end(args);
    row = find(f, level, remedy, what);
    if (!row) {
        if (f->n >= f->allocated) {
            f->rows = x2nrealloc(f->rows, &f->allocated, sizeof *f->rows);
        }
        row = &f->rows[f->n++];
        *row = (struct finding){
            .level = level,
            .places = SVEC_EMPTY_INITIALIZER,
            .what = what,
            .remedy = xstrdup(remedy),
        };
    } else {
        free(what);
    }
    svec_add(&row->places, place);
}

static void
findings_destroy(struct findings *f)
{
    for (size_t i = 0; i < f->n; i++) {
        svec_destroy(&f->rows[i].places);
        free(f->rows[i].what);
        free(f->rows[i].remedy);
    }
    free(f->rows);
}

static size_t
findings_count(const struct findings *f, enum finding_level level)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n; i++) {
        n += f->rows[i].level == level;
    }
    return n;
}

static void
print_clean(const char *s)
{
    for (; *s; s++) {
        putchar((unsigned char) *s < ' ' || *s == 0x7f ? '?' : *s);
    }
}

static void
print_places(const struct svec *places)
{
    for (size_t i = 0; i < MIN(places->n, MAX_NAMED); i++) {
        fputs(i ? ", " : "", stdout);
        print_clean(places->names[i]);
    }
    if (places->n > MAX_NAMED) {
        printf(" and %" PRIuSIZE " others", places->n - MAX_NAMED);
    }
}

static void
findings_print(const struct findings *f)
{
    for (int level = 0; level < N_FINDING_LEVELS; level++) {
        for (size_t i = 0; i < f->n; i++) {
            const struct finding *row = &f->rows[i];

            if (row->level == level) {
                printf("%-8s ", levels[level]);
                print_places(&row->places);
                fputs(": ", stdout);
                print_clean(row->what);
                printf("\n%8s ", "");
                print_clean(row->remedy);
                putchar('\n');
            }
        }
    }
}

static struct json *
findings_to_json(const struct findings *f)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < f->n; i++) {
        const struct finding *row = &f->rows[i];
        struct json *places = json_array_create_empty();
        struct json *json = json_object_create();

        for (size_t k = 0; k < row->places.n; k++) {
            json_array_add(places, json_string_create(row->places.names[k]));
        }
        json_object_put_string(json, "level", levels[row->level]);
        json_object_put(json, "places", places);
        json_object_put_string(json, "what", row->what);
        json_object_put_string(json, "remedy", row->remedy);
        json_array_add(array, json);
    }
    return array;
}

/* Finds what is wrong in a cluster, from the replies of its controller.
 *
 * All facts are in the controller: telemetry has the state of a host and its
 * clock, Host_Reported what its agent and its shim have found out
 * (agent/host-rows.h), and the alarms the rest.  What is compared between
 * hosts, such as MTUs, is compared with the value that most of them have.  A
 * disconnected host has only that finding, because its facts are old. */

struct cluster_replies {
    const struct json *status, *hosts, *facts,
        *switches; /* Of
                    * "controller/NAME". */
};

#define DAY 86400

/* Validity that is left of a certificate.  "stagecoach pki rotate" renews one
 * with less than 30 days. */
#define CERTIFICATE_WARNING (28 * DAY)
#define CERTIFICATE_ERROR (3 * DAY)

/* Differences of clocks.  A new certificate is valid from five minutes before
 * it was issued. */
#define CLOCK_WARNING_MS 1000
#define CLOCK_ERROR_MS 300000

#define RESTART_SHIM                               \
    "on the host: journalctl -u stagecoach-shim; " \
    "systemctl restart stagecoach-shim"
#define SHIM_OPTIONS                                 \
    "OPTIONS in /etc/default/stagecoach-shim, then " \
    "systemctl reload stagecoach-shim"

/* Prefix of the results of an agent's checks, see agent/host-rows.h. */
#define CHECK "check_"

/* A host with its facts. */
struct view {
    const char *name;
    const struct json *host;   /* Of "controller/hosts". */
    const char *agent;         /* Its version, "-" if unknown. */
    const struct json *health; /* Of "controller/facts". */
};

struct cluster {
    struct view *views; /* Of connected hosts. */
    size_t n;
    const char *program; /* Version of the controller. */
    struct findings *findings;
};

static bool
is_known(const char *text)
{
    return *text && strcmp(text, "-");
}

static const char *
fact(const struct view *v, const char *name)
{
    return member_string(v->health, name);
}

/* The controller. */

static void
check_certificate(struct findings *f, const char *place, const char *name,
                  double expires_ms, int64_t now)
{
    double left = expires_ms / 1000 - now;
    const char *remedy = "on the machine with the keys: stagecoach pki "
                         "rotate NAME, then copy its folder to the machine";

    if (left < 0) {
        findings_add(f, FINDING_ERROR, place, remedy,
                     "the certificate of \"%s\" has expired", name);
    } else if (left < CERTIFICATE_WARNING) {
        findings_add(
            f, left < CERTIFICATE_ERROR ? FINDING_ERROR : FINDING_WARNING,
            place, remedy, "the certificate of \"%s\" expires in %.0f days",
            name, floor(left / DAY));
    }
}

/* Level and remedy of each alarm.  Those without a remedy are findings of
 * hosts or switches too. */
static const struct {
    enum finding_level level;
    const char *remedy;
} alarms[N_ALARM_CODES] = {
    [ALARM_INTENT_UNREACHABLE] = { FINDING_ERROR,
                                   "stagecoach controller status; systemctl restart "
                                   "stagecoach-database@intent" },
    [ALARM_HOSTS_UNREACHABLE] = { FINDING_ERROR,
                                  "stagecoach controller status; systemctl restart "
                                  "stagecoach-database@hosts" },
    [ALARM_POLICY_REFUSED] = { FINDING_ERROR,
                               "stagecoach policy check FILE, then systemctl reload "
                               "stagecoach-controller" },
    [ALARM_AGENT_DISCONNECTED] = { FINDING_ERROR, NULL },
    [ALARM_SHIM_DOWN] = { FINDING_ERROR, NULL },
    [ALARM_ORDER_NOT_APPLIED] = { FINDING_ERROR,
                                  "on the host: journalctl -u stagecoach-agent -u stagecoach-shim" },
    [ALARM_JOBS_REFUSED] = { FINDING_WARNING,
                             "end jobs of the user, or start them as the user of their cojob" },
    [ALARM_TABLE_FULL] = { FINDING_WARNING,
                           "end the processes of that user on that host that are too many" },
    [ALARM_CLAIM_REFUSED] = { FINDING_WARNING,
                              "stagecoach explain COJOB/JOB" },
    [ALARM_PROGRESS_REFUSED] = { FINDING_WARNING,
                                 "stagecoach explain COJOB/JOB" },
    [ALARM_STAGE_IDLE] = { FINDING_WARNING,
                           "start its jobs, under the names that \"stagecoach stage begin "
                           "--jobs\" has, or stagecoach stage end" },
    [ALARM_ANNOUNCEMENT_WRONG] = { FINDING_WARNING,
                                   "correct what the search announces" },
    [ALARM_COVERAGE] = { FINDING_WARNING,
                         "stagecoach hosts has the share of each host; start jobs by "
                         "\"stagecoach run\" or a launcher" },
    [ALARM_SWITCH] = { FINDING_ERROR, NULL },
    [ALARM_DATABASE_MEMBER] = { FINDING_WARNING,
                                "stagecoach controller status" },
    [ALARM_DATABASE_SPACE] = { FINDING_WARNING,
                               "free space in /var/lib/stagecoach" },
    [ALARM_DATABASE_DAMAGED] = { FINDING_WARNING,
                                 "operations.md, \"When something is wrong\"" },
};

static void
check_alarm(struct findings *f, const struct json *alarm)
{
    enum alarm_code code;
    bool known = alarm_code_parse(member_string(alarm, "code"), &code);

    if (!known || alarms[code].remedy) {
        findings_add(
            f, known ? alarms[code].level : FINDING_WARNING, "controller",
            known ? alarms[code].remedy
                  : "stagecoach controller status; operations.md, \"When "
                    "something is wrong\"",
            "%s", member_string(alarm, "text"));
    }
}

static void
check_controller(struct cluster *c, const struct json *status, int64_t now)
{
    const struct json *list = member_array(status, "alarms");
    const struct json *cert = member_object(status, "certificate");

    if (strcmp(c->program, STAGECOACH_VERSION)) {
        findings_add(c->findings, FINDING_WARNING, "controller",
                     "systemctl restart stagecoach-controller after an "
                     "upgrade, standby controllers first",
                     "its version is %s, this command has %s", c->program,
                     STAGECOACH_VERSION);
    }
    if (is_known(member_string(cert, "name"))) {
        check_certificate(c->findings, "controller",
                          member_string(cert, "name"),
                          member_number(cert, "expires"), now);
    }
    if (member_number(status, "observe")) {
        findings_add(c->findings, FINDING_NOTE, "controller",
                     "stagecoach undo",
                     "observe mode: no order is sent to hosts");
    }
    for (size_t i = 0; i < list->array.n; i++) {
        check_alarm(c->findings, list->array.elems[i]);
    }
}

/* One host. */

static void
check_version(struct cluster *c, const struct view *v, const char *program,
              const char *version)
{
    if (is_known(version) && is_known(c->program)
        && strcmp(version, c->program)) {
        findings_add(c->findings, FINDING_WARNING, v->name,
                     "upgrade the packages on the host, after the "
                     "controllers' "
                     "packages; then systemctl restart stagecoach-agent, "
                     "systemctl reload stagecoach-shim",
                     "the %s has version %s, the controller %s", program,
                     version, c->program);
    }
}

static void
check_clock(struct cluster *c, const struct view *v)
{
    double ms = member_number(v->host, "clock_ms");

    if (fabs(ms) >= CLOCK_WARNING_MS) {
        findings_add(c->findings,
                     fabs(ms) >= CLOCK_ERROR_MS ? FINDING_ERROR
                                                : FINDING_WARNING,
                     v->name,
                     "on the host: systemctl enable --now chrony (or "
                     "systemd-timesyncd)",
                     "its clock is %.1f s %s the controller's",
                     fabs(ms) / 1000, ms > 0 ? "ahead of" : "behind");
    }
}

/* Limits of kinds of ports and of drivers. */
static const struct {
    const char *name; /* Beginning of "KIND:WHAT" or of a driver. */
    const char *what, *remedy;
} limits[] = {
    { "pci:",
      "its uplink has no kernel bypass: without a shim the host has "
      "no network",
      "if that matters more than speed: leave the card to the "
      "kernel, and use an af_packet or af_xdp port" },
    { "net_e1000_em",
      "its card raises no receive interrupts: the shim "
      "sleeps between polls",
      "--poll busy in " SHIM_OPTIONS },
    { "af_xdp:", "an af_xdp port has an MTU of up to 2984",
      "af_packet or "
      "pci as the uplink, if the others use jumbo frames" },
};

static void
check_port(struct cluster *c, const struct view *v)
{
    const char *uplink = fact(v, "shim_uplink");
    const char *merges = fact(v, "shim_merges");
    int mtu = atoi(fact(v, "shim_mtu"));
    int uplink_mtu = atoi(fact(v, "shim_uplink_mtu"));

    for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
        size_t n = strlen(limits[i].name);

        if (!strncmp(uplink, limits[i].name, n)
            || !strncmp(fact(v, "shim_driver"), limits[i].name, n)) {
            findings_add(c->findings, FINDING_NOTE, v->name, limits[i].remedy,
                         "%s", limits[i].what);
        }
    }
    if (uplink_mtu && uplink_mtu < mtu) {
        findings_add(c->findings, FINDING_ERROR, v->name,
                     "raise the interface's MTU (ip link set IFACE mtu N), "
                     "or lower --mtu in " SHIM_OPTIONS,
                     "the MTU of the uplink is %d, the shim forwards packets "
                     "of up to %d bytes: longer ones are dropped",
                     uplink_mtu, mtu);
    }
    if (is_known(merges) && strcmp(merges, "none")) {
        findings_add(c->findings, FINDING_WARNING, v->name,
                     "in the shim's network namespace: ethtool -K IFACE gro "
                     "off lro off",
                     "the kernel merges packets at the uplink (%s), and the "
                     "shim must cut them",
                     merges);
    }
}

/* The shim disabled it at its start, unless it has --keep-offload. */
static void
check_tso(struct cluster *c, const struct view *v)
{
    if (!strcmp(fact(v, "shim_host_tso"), "on")) {
        findings_add(c->findings, FINDING_ERROR, v->name,
                     "on the host: systemctl reload stagecoach-shim, without "
                     "--keep-offload, disables it; find what enables it "
                     "(ethtool -K IFACE tso on)",
                     "segmentation offload is enabled at the interface before "
                     "the shim, which drops packets longer than the MTU: TCP "
                     "is slow");
    }
}

static void
check_shim(struct cluster *c, const struct view *v)
{
    if (member_number(v->host, "bypass")) {
        findings_add(c->findings, FINDING_ERROR, v->name, RESTART_SHIM,
                     "the shim is down, the kernel forwards without "
                     "priorities");
    } else if (!strcmp(fact(v, "shim"), "disconnected")
               && !is_known(fact(v, "tc"))) {
        findings_add(c->findings, FINDING_WARNING, v->name,
                     RESTART_SHIM "; without a shim: --tc of the agent",
                     "it has neither a shim nor queues in the kernel: its "
                     "traffic has no priorities");
    }
    if (!strcmp(fact(v, "shim"), "connected") && is_known(fact(v, "kernel"))
        && !is_known(fact(v, "shim_version"))) {
        findings_add(c->findings, FINDING_WARNING, v->name,
                     "on the host: systemctl reload stagecoach-shim, after an "
                     "upgrade of its package",
                     "the shim reports no facts: it has an older version");
    }
    check_version(c, v, "shim", fact(v, "shim_version"));
    check_port(c, v);
    check_tso(c, v);
    if (!strcmp(fact(v, "shim_memory"), "ordinary")) {
        findings_add(c->findings, FINDING_NOTE, v->name,
                     "on the host: sysctl -w vm.nr_hugepages=64, then "
                     "systemctl reload stagecoach-shim",
                     "the shim has no huge pages, which costs some speed");
    }
    if (!strcmp(fact(v, "shim_tag"), "off")) {
        findings_add(c->findings, FINDING_WARNING, v->name,
                     "remove --no-tag from " SHIM_OPTIONS,
                     "the shim writes no DSCPs: switches see no order");
    }
}

/* Adds what the agent has found on its host. */
static void
check_findings(struct cluster *c, const struct view *v)
{
    const struct shash_node *node;

    SHASH_FOR_EACH (node, json_object(v->health)) {
        if (!strncmp(node->name, CHECK, strlen(CHECK))) {
            const char *name = node->name + strlen(CHECK);
            char *what = xasprintf("what_%s", name);
            char *remedy = xasprintf("remedy_%s", name);

            findings_add(c->findings,
                         !strcmp(fact(v, node->name), "missing")
                             ? FINDING_ERROR
                             : FINDING_NOTE,
                         v->name, fact(v, remedy), "%s", fact(v, what));
            free(what);
            free(remedy);
        }
    }
}

static void
check_host(struct cluster *c, const struct view *v, int64_t now)
{
    const char *certificate = fact(v, "certificate");

    check_version(c, v, "agent", v->agent);
    check_clock(c, v);
    if (is_known(certificate)) {
        check_certificate(c->findings, v->name, certificate,
                          atof(fact(v, "certificate_expires")), now);
        if (strcmp(certificate, v->name)) {
            findings_add(c->findings, FINDING_ERROR, v->name,
                         "copy the folder agents/HOST of the keys to "
                         "/etc/stagecoach/tls of the host",
                         "its certificate is for \"%s\"", certificate);
        }
    }
    check_shim(c, v);
    check_findings(c, v);
}

static void
add_disconnected(struct cluster *c, const struct json *host)
{
    const char *name = member_string(host, "host");
    const char *remedy = "on the host: systemctl status stagecoach-agent; "
                         "journalctl -u stagecoach-agent; if it has left the "
                         "cluster: stagecoach host remove HOST";

    if (shash_find(json_object(host), "silent_ms")) {
        findings_add(c->findings, FINDING_ERROR, name, remedy,
                     "its agent has disconnected, the last message is "
                     "%.0f s old",
                     member_number(host, "silent_ms") / 1000);
    } else {
        findings_add(c->findings, FINDING_ERROR, name, remedy,
                     "its agent has not connected since the controller "
                     "started");
    }
}

/* All hosts. */

/* Adds the hosts that have another value of a fact than most hosts. */
static void
check_majority(struct cluster *c, const char *name, const char *label,
               const char *remedy)
{
    struct simap counts = SIMAP_INITIALIZER(&counts);
    const struct simap_node *node, *most = NULL;

    for (size_t i = 0; i < c->n; i++) {
        if (is_known(fact(&c->views[i], name))) {
            simap_increase(&counts, fact(&c->views[i], name), 1);
        }
    }
    SIMAP_FOR_EACH(node, &counts)
    {
        if (!most || node->data > most->data
            || (node->data == most->data
                && strcmp(node->name, most->name) > 0)) {
            most = node;
        }
    }
    for (size_t i = 0; i < c->n; i++) {
        const char *value = fact(&c->views[i], name);

        if (is_known(value) && strcmp(value, most->name)) {
            findings_add(c->findings, FINDING_WARNING, c->views[i].name,
                         remedy, "%s %s, %s on most hosts", label, value,
                         most->name);
        }
    }
    simap_destroy(&counts);
}

static size_t
count(const struct cluster *c, const char *name, const char *value)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++) {
        n += !strcmp(fact(&c->views[i], name), value);
    }
    return n;
}

static void
check_switches(struct cluster *c, const struct json *switches)
{
    const struct json *list = member_array(switches, "switches");
    const char *remedy = "\"queues\" in the topology, or stagecoach policy "
                         "export --to sonic|cumulus|openconfig";
    bool queues = false;

    for (size_t i = 0; i < list->array.n; i++) {
        const struct json *row = list->array.elems[i];
        const char *state = member_string(row, "state");
        const char *name = member_string(row, "name");

        queues |= !strcmp(member_string(row, "driver"), "ovsdb-qos");
        const char *reason = member_string(row, "reason");

        if (!strcmp(state, "disconnected") || !strcmp(state, "refused")
            || is_known(reason)) {
            findings_add(c->findings, FINDING_ERROR,
                         is_known(name) ? name : member_string(row, "switch"),
                         "operations.md, \"When something is wrong\"; "
                         "journalctl -u stagecoach-controller",
                         "switch %s (%s): %s", state,
                         member_string(row, "driver"), reason);
        }
    }
    if (queues || !c->n) {
        return;
    }
    if (count(c, "shim_switch_queues", "strict")) {
        findings_add(c->findings, FINDING_NOTE, "switches", remedy,
                     "shims expect switches that serve levels in order, and "
                     "the controller configures no queues");
    } else if (!count(c, "shim_cc", "on")) {
        findings_add(c->findings, FINDING_WARNING, "switches", remedy,
                     "no queues and no congestion control: at a switch, the "
                     "order has no effect");
    }
}

/* Returns the facts by host; the values belong to 'facts'. */
static void
index_facts(const struct json *facts, struct shash *by_host)
{
    const struct json *list = member_array(facts, "facts");

    shash_init(by_host);
    for (size_t i = 0; i < list->array.n; i++) {
        shash_add_once(by_host, member_string(list->array.elems[i], "host"),
                       list->array.elems[i]);
    }
}

static void
check_hosts(struct cluster *c, const struct json *hosts,
            const struct json *facts, int64_t now)
{
    const struct json *list = member_array(hosts, "hosts");
    static struct shash no_members = SHASH_INITIALIZER(&no_members);
    static const struct json unknown = {
        .type = JSON_OBJECT,
        .count = 1,
        .object = &no_members,
    };
    struct shash by_host;

    index_facts(facts, &by_host);
    c->views = xcalloc(list->array.n + 1, sizeof *c->views);
    for (size_t i = 0; i < list->array.n; i++) {
        const struct json *host = list->array.elems[i];
        const char *name = member_string(host, "host");
        const struct json *found = shash_find_data(&by_host, name);

        found = found ? found : &unknown;
        if (!member_number(host, "connected")) {
            add_disconnected(c, host);
            continue;
        }
        c->views[c->n] = (struct view){
            .name = name,
            .host = host,
            .agent = member_string(found, "agent"),
            .health = member_object(found, "health"),
        };
        check_host(c, &c->views[c->n++], now);
    }
    shash_destroy(&by_host);
}

/* Adds findings.  'now' is in seconds since the epoch. */
static void
cluster_check(const struct cluster_replies *r, int64_t now,
              struct findings *findings)
{
    struct cluster c = { .program = member_string(r->status, "program"),
                         .findings = findings };

    if (strcmp(member_string(r->status, "state"), "active")) {
        findings_add(findings, FINDING_ERROR, "controller",
                     "run this command on the machine of the active "
                     "controller; stagecoach controller status",
                     "its state is \"%s\", hosts report to the active one",
                     member_string(r->status, "state"));
        return;
    }
    check_controller(&c, r->status, now);
    check_hosts(&c, r->hosts, r->facts, now);
    if (!c.n) {
        findings_add(findings, FINDING_ERROR, "controller",
                     "on each host: systemctl enable --now stagecoach-agent, "
                     "with the addresses of this controller and its hosts "
                     "database",
                     "no host is connected: an order has no "
                     "effect");
    }
    check_majority(&c, "shim_uplink_mtu", "MTU of the uplink",
                   "ip link set IFACE mtu N, in the shim's network "
                   "namespace");
    check_majority(&c, "shim_mtu", "MTU of the shim",
                   "--mtu in " SHIM_OPTIONS);
    check_majority(&c, "shim_cc", "congestion control",
                   "--cc in " SHIM_OPTIONS);
    check_majority(&c, "shim_switch_queues", "--switch-queues",
                   "--switch-queues in " SHIM_OPTIONS);
    check_switches(&c, r->switches);
    free(c.views);
}

struct doctor_options {
    bool json;
};

static void
print_summary(const struct findings *f, size_t n_hosts)
{
    printf("%"PRIuSIZE" hosts; errors: %"PRIuSIZE", warnings: %"PRIuSIZE", "
           "notes: %"PRIuSIZE"\n", n_hosts, findings_count(f, FINDING_ERROR),
           findings_count(f, FINDING_WARNING),
           findings_count(f, FINDING_NOTE));
}

static int
report(const struct cluster_replies *r, bool as_json)
{
    struct findings findings = FINDINGS_INIT;
    size_t n_hosts = member_array(r->hosts, "hosts")->array.n;
    bool well;

    cluster_check(r, time(NULL), &findings);
    well = !findings_count(&findings, FINDING_ERROR);
    if (as_json) {
        struct json *json = json_object_create();

        json_object_put(json, "well", json_boolean_create(well));
        json_object_put(json, "hosts", json_integer_create(n_hosts));
        json_object_put(json, "findings", findings_to_json(&findings));
        print_and_destroy(json);
    } else {
        findings_print(&findings);
        print_summary(&findings, n_hosts);
    }
    findings_destroy(&findings);
    return well ? EXIT_OK : EXIT_NO;
}

int
cmd_doctor(int argc, char *argv[])
{
    static const struct option_row rows[] = {
        FORMAT_ROW(struct doctor_options, json), { .name = NULL }
    };
    static const struct option_table table = {
        .name = "stagecoach doctor", .rows = rows,
        .usage = "usage: stagecoach doctor [--format table|json]\n\n"
                 "Examines the controller, all hosts and the switches, and "
                 "prints what is wrong\nwith its remedy.  \"stagecoach agent "
                 "doctor\" examines this host.\n",
        .footer = "Exit status: 0 no error, 1 errors, 2 usage, 3 the "
                  "controller does not reply.\n",
    };
    static const char *const requests[] = {
        "controller/status", "controller/hosts", "controller/facts",
        "controller/switches",
    };
    struct json *replies[ARRAY_SIZE(requests)] = { NULL };
    struct doctor_options o = { .json = false };
    int status = option_table_command(&table, argc, argv, &o, NULL);

    if (status >= 0) {
        return status;
    }
    status = EXIT_OK;
    for (size_t i = 0; status == EXIT_OK && i < ARRAY_SIZE(requests); i++) {
        status = controller_get(argv[0], requests[i], &replies[i]);
    }
    if (status == EXIT_OK) {
        struct cluster_replies r = {
            .status = replies[0], .hosts = replies[1], .facts = replies[2],
            .switches = replies[3],
        };

        status = report(&r, o.json);
    }
    for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
        json_destroy(replies[i]);
    }
    return status;
}
