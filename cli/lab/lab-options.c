/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "cli/lab/lab-options.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/data-file.h"
#include "lab/cluster/interrupt.h"
#include "lab/cluster/plan.h"
#include "lab/cluster/say.h"
#include "scenario/scenario.h"
#include "policies/policy.h"
#include "util.h"

char *
lab_options_parse(int argc, char *argv[], struct lab_options *o)
{
    static const struct option long_options[] = {
        { "policy", required_argument, NULL, 'p' },
        { "out", required_argument, NULL, 'o' },
        { "keep", no_argument, NULL, 'k' },
        { "format", required_argument, NULL, 'f' },
        { "name", required_argument, NULL, 'n' },
        { "rundir", required_argument, NULL, 'r' },
        { "ha", no_argument, NULL, 'a' },
        { "bin", required_argument, NULL, 'b' },
        { NULL, 0, NULL, 0 },
    };
    int c;

    *o = (struct lab_options) { .name = "lab", .out = "report" };
    svec_init(&o->policies);
    optind = 0;
    opterr = 0;
    while ((c = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        switch (c) {
        case 'p': svec_add(&o->policies, optarg); break;
        case 'o': o->out = optarg; break;
        case 'k': o->keep = true; break;
        case 'a': o->ha = true; break;
        case 'n': o->name = optarg; break;
        case 'r': o->rundir = optarg; break;
        case 'b': o->bin_dir = optarg; break;
        case 'f':
            o->json = !strcmp(optarg, "json");
            if (!o->json && strcmp(optarg, "table")) {
                return xasprintf("--format: \"%s\" is not one of \"table\", "
                                 "\"json\"", optarg);
            }
            break;
        case ':':
            return xasprintf("%s: needs a value", argv[optind - 1]);
        default:
            return xasprintf("%s: not an option, \"stagecoach lab --help\" "
                             "lists them", argv[optind - 1]);
        }
    }
    o->args = argv + optind;
    return NULL;
}

void
lab_options_uninit(struct lab_options *o)
{
    svec_destroy(&o->policies);
}

/* 'where' is what a message begins with. */
static char *
choose_policy(const char *where, const char *name, struct lab_policy *chosen)
{
    struct policy *policy;
    char *error;

    if (strchr(name, '/') || strstr(name, ".json")) {
        chosen->file = xstrdup(name);
    } else {
        char *base = xasprintf("%s.json", name);

        chosen->file = data_file_find("policies", base);
        free(base);
    }
    if (!chosen->file) {
        return xasprintf("%s: there is no policy \"%s\", a name from the "
                         "policies folder or a file is allowed", where, name);
    }
    error = policy_from_file(chosen->file, &policy);
    if (!error) {
        chosen->name = xstrdup(policy->name);
        policy_destroy(policy);
    }
    return error;
}

static char *
choose_policies(const struct lab_options *o, const char *file,
                struct lab_setting *setting)
{
    const struct scenario *s = setting->scenario;
    size_t n = o->policies.n ? o->policies.n : s->n_policies;
    char *error = NULL;

    setting->policies = xcalloc(n, sizeof *setting->policies);
    setting->n_policies = n;
    for (size_t i = 0; !error && i < n; i++) {
        char *where = o->policies.n ? xstrdup("--policy")
                      : xasprintf("%s: /policies/%"PRIuSIZE, file, i);

        error = choose_policy(where, o->policies.n ? o->policies.names[i]
                              : s->policies[i], &setting->policies[i]);
        free(where);
    }
    return error;
}

static char *
need_root(void)
{
    /* The tools are not always in the path of whom became root by su. */
    char *path = xasprintf("%s:/usr/sbin:/sbin",
                           getenv("PATH") ? getenv("PATH") : "/usr/bin");

    setenv("PATH", path, 1);
    free(path);
    return geteuid() ? xstrdup("stagecoach lab: only root can make network "
                               "namespaces") : NULL;
}

char *
lab_plan_create(const struct lab_options *o, struct plan **planp)
{
    char *rundir = o->rundir ? xasprintf("%s/lab-%s", o->rundir, o->name)
                             : NULL;
    char *error = plan_create(o->name, rundir, o->bin_dir, planp);

    free(rundir);
    return error ? error : need_root();
}

char *
lab_setting_init(struct lab_setting *setting, const struct lab_options *o,
                 const char *file)
{
    char *error;

    *setting = (struct lab_setting) { .scenario = NULL };
    error = scenario_from_file(file, &setting->scenario);
    error = error ? error : choose_policies(o, file, setting);
    error = error ? error : lab_plan_create(o, &setting->plan);
    if (!error) {
        plan_set_scenario(setting->plan, setting->scenario);
        setting->plan->ha = o->ha;
    }
    return error;
}

void
lab_setting_uninit(struct lab_setting *setting)
{
    for (size_t i = 0; i < setting->n_policies; i++) {
        free(setting->policies[i].name);
        free(setting->policies[i].file);
    }
    free(setting->policies);
    plan_destroy(setting->plan);
    scenario_destroy(setting->scenario);
}

int
lab_fail(char *error)
{
    say_status_end();
    fprintf(stderr, "%s\n", error);
    free(error);
    return interrupt_signal() ? 128 + interrupt_signal() : EXIT_NO;
}
