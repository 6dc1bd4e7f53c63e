/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach agent: checks that a host can run an agent and a shim. */

#include <config.h>

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/doctor/doctor.h"
#include "cli/command.h"
#include "fatal-signal.h"
#include "openvswitch/vlog.h"
#include "svec.h"
#include "util.h"

struct doctor_options {
    struct doctor_config config;
    struct svec ports;
    char *defaults[3];          /* Strings that 'config' points to. */
    bool json;
};

/* Stores 'text', or NULL if it is "none". */
static char *
parse_or_none(const char *text, void *value)
{
    *(const char **) value = strcmp(text, "none") ? text : NULL;
    return NULL;
}

static char *
add_port(const char *text, void *ports)
{
    svec_add(ports, text);
    return NULL;
}

#define AT(MEMBER) OPTION_AT(struct doctor_options, MEMBER)

static const struct option_row rows[] = {
    { "db", OPTION_CUSTOM, AT(config.db), .value = "REMOTE",
      .parse = parse_or_none, .help = "hosts database of the agent, or none" },
    { "controller", OPTION_CUSTOM, AT(config.controller), .value = "REMOTE",
      .parse = parse_or_none, .help = "telemetry of the controller, or none" },
    { "shim", OPTION_CUSTOM, AT(config.shim), .value = "PATH",
      .parse = parse_or_none, .help = "control socket of the shim, or none" },
    { "cgroup", OPTION_TEXT, AT(config.cgroup), .value = "PATH",
      .shown = "$STAGECOACH_CGROUP", .help = "parent cgroup of jobs" },
    { "port", OPTION_CUSTOM, AT(ports), .value = "KIND:WHAT",
      .repeated = true, .parse = add_port, .help = "port of the shim" },
    { "bypass", OPTION_FLAG, AT(config.bypass),
      .help = "check what the agent needs for a kernel bypass, which forwards "
              "while the shim is down" },
    { "netns", OPTION_FLAG, AT(config.netns),
      .help = "jobs run in other network namespaces" },
    { "root", OPTION_TEXT, AT(config.root), .value = "DIR",
      .help = "check the files below DIR instead of this host" },
    FORMAT_ROW(struct doctor_options, json),
    { .name = NULL },
};

static const struct option_table table = {
    .name = "stagecoach agent doctor", .rows = rows,
    .usage =
        "usage: stagecoach agent doctor [OPTION...]\n"
        "\n"
        "Checks that this host can run an agent and a shim, and prints how "
        "to\n"
        "fix what is missing.\n",
    .footer = "Exit status: 0 complete, 1 something required is missing, "
              "2 usage.\n",
};

static void
set_defaults(struct doctor_options *o)
{
    const char *rundir = command_rundir();
    char *controller = command_controller_rundir();

    svec_init(&o->ports);
    o->defaults[0] = xasprintf("unix:%s/hosts.sock", controller);
    o->defaults[1] = xasprintf("unix:%s/telemetry.sock", controller);
    free(controller);
    o->defaults[2] = xasprintf("%s/shim.sock", rundir);
    o->config = (struct doctor_config) {
        .root = "", .rundir = rundir,
        .cgroup = command_env("STAGECOACH_CGROUP", "stagecoach"),
        .db = o->defaults[0], .controller = o->defaults[1],
        .shim = o->defaults[2],
    };
}

static void
print_json(const struct doctor *d)
{
    cJSON *top = cJSON_CreateObject();
    cJSON *findings = cJSON_AddArrayToObject(top, "findings");

    cJSON_AddBoolToObject(top, "well", doctor_is_well(d));
    for (size_t i = 0; i < d->n; i++) {
        const struct doctor_finding *f = &d->findings[i];
        cJSON *o = cJSON_CreateObject();

        cJSON_AddStringToObject(o, "check", f->check);
        cJSON_AddStringToObject(o, "result", doctor_result_names[f->result]);
        cJSON_AddStringToObject(o, "what", f->what);
        if (f->mend) {
            cJSON_AddStringToObject(o, "mend", f->mend);
        } else {
            cJSON_AddNullToObject(o, "mend");
        }
        cJSON_AddItemToArray(findings, o);
    }
    command_print_json(top);
}

static void
print_text(const struct doctor *d)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct doctor_finding *f = &d->findings[i];

        printf("%-8s %-13s %s\n", doctor_result_names[f->result], f->check,
               f->what);
        if (f->mend && f->result != DOCTOR_OK) {
            printf("%22s mend: %s\n", "", f->mend);
        }
    }
    puts(doctor_is_well(d) ? "nothing is missing"
         : "something required is missing");
}

static int
agent_doctor(int argc, char *argv[])
{
    struct doctor_options o = { .json = false };
    int status;

    vlog_set_levels(NULL, VLF_ANY_DESTINATION, VLL_OFF);
    set_defaults(&o);
    status = option_table_command(&table, argc, argv, &o, NULL);
    if (status < 0) {
        struct doctor *d;

        o.config.ports = (const char *const *) o.ports.names;
        o.config.n_ports = o.ports.n;
        fatal_ignore_sigpipe(); /* A daemon may close its socket. */
        d = doctor_examine(&o.config);
        (o.json ? print_json : print_text)(d);
        status = doctor_is_well(d) ? EXIT_OK : EXIT_NO;
        doctor_destroy(d);
    }
    for (size_t i = 0; i < ARRAY_SIZE(o.defaults); i++) {
        free(o.defaults[i]);
    }
    svec_destroy(&o.ports);
    return status;
}

int
cmd_agent(int argc, char *argv[])
{
    static const struct command commands[] = {
        { "doctor", "[OPTION...]",
          "Check this host's configuration for an agent and a shim.",
          agent_doctor },
        { NULL, NULL, NULL, NULL },
    };

    return command_dispatch(commands, "stagecoach agent", argc - 1, argv + 1);
}
