/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach agent: checks that a host can run an agent and a shim. */

#include <config.h>

#include <cjson/cJSON.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/doctor/doctor.h"
#include "cli/command.h"
#include "cli/operator/controller-query.h"
#include "cli/operator/table.h"
#include "openvswitch/vlog.h"
#include "svec.h"
#include "util.h"

static const char usage_text[] =
    "usage: stagecoach agent doctor [OPTION...]\n"
    "\n"
    "Checks that this host can run an agent and a shim, and prints how to\n"
    "fix what is missing.\n"
    "\n"
    "  --db REMOTE          hosts database of the agent, or none\n"
    "  --controller REMOTE  telemetry of the controller, or none\n"
    "  --shim PATH          control socket of the shim, or none\n"
    "  --cgroup PATH        parent cgroup of jobs; default:\n"
    "                       $STAGECOACH_CGROUP\n"
    "  --port KIND:WHAT     port of the shim; may be repeated\n"
    "  --bypass             check what the agent needs for a kernel bypass,\n"
    "                       which forwards while the shim is down\n"
    "  --netns              jobs run in other network namespaces\n"
    "  --root DIR           check the files below DIR instead of this host\n"
    "  --format F           output: \"table\" (default) or \"json\"\n"
    "\n"
    "Exit status: 0 complete, 1 something required is missing, 2 usage.\n";

struct doctor_options {
    struct doctor_config config;
    struct svec ports;
    char *defaults[3];          /* What the configuration points to. */
    bool json;
};

static const char *
or_none(const char *value)
{
    return strcmp(value, "none") ? value : NULL;
}

static void
set_defaults(struct doctor_options *o)
{
    const char *cgroup = getenv("STAGECOACH_CGROUP");
    const char *rundir = cli_rundir();

    svec_init(&o->ports);
    o->defaults[0] = xasprintf("unix:%s/hosts.sock", rundir);
    o->defaults[1] = xasprintf("unix:%s/telemetry.sock", rundir);
    o->defaults[2] = xasprintf("%s/shim.sock", rundir);
    o->config = (struct doctor_config) {
        .root = "", .rundir = rundir,
        .cgroup = cgroup && *cgroup ? cgroup : "stagecoach",
        .db = o->defaults[0], .controller = o->defaults[1],
        .shim = o->defaults[2],
    };
}

static bool
parse(int argc, char *argv[], struct doctor_options *o)
{
    static const struct option options[] = {
        { "db", required_argument, NULL, 'd' },
        { "controller", required_argument, NULL, 'c' },
        { "shim", required_argument, NULL, 's' },
        { "cgroup", required_argument, NULL, 'g' },
        { "port", required_argument, NULL, 'p' },
        { "bypass", no_argument, NULL, 'b' },
        { "netns", no_argument, NULL, 'n' },
        { "root", required_argument, NULL, 'r' },
        { "format", required_argument, NULL, 'f' },
        { NULL, 0, NULL, 0 },
    };
    struct doctor_config *config = &o->config;
    int c;

    optind = 0;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 'd': config->db = or_none(optarg); break;
        case 'c': config->controller = or_none(optarg); break;
        case 's': config->shim = or_none(optarg); break;
        case 'g': config->cgroup = optarg; break;
        case 'p': svec_add(&o->ports, optarg); break;
        case 'b': config->bypass = true; break;
        case 'n': config->netns = true; break;
        case 'r': config->root = optarg; break;
        case 'f':
            o->json = !strcmp(optarg, "json");
            if (!o->json && strcmp(optarg, "table")) {
                fprintf(stderr, "stagecoach agent doctor: --format: \"%s\" is "
                        "not one of \"table\", \"json\"\n", optarg);
                return false;
            }
            break;
        default:
            return false;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "stagecoach agent doctor: \"%s\": unexpected "
                "argument\n", argv[optind]);
        return false;
    }
    config->ports = (const char *const *) o->ports.names;
    config->n_ports = o->ports.n;
    return true;
}

static void
print_json(const struct doctor *d)
{
    cJSON *top = cJSON_CreateObject();
    cJSON *findings = cJSON_AddArrayToObject(top, "findings");
    char *text;

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
    text = cJSON_Print(top);
    puts(text);
    free(text);
    cJSON_Delete(top);
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
    int status = EXIT_USAGE;

    vlog_set_levels(NULL, VLF_ANY_DESTINATION, VLL_OFF);
    set_defaults(&o);
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        fputs(usage_text, stdout);
        status = EXIT_OK;
    } else if (parse(argc, argv, &o)) {
        struct doctor *d = doctor_examine(&o.config);

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
