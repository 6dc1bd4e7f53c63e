/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach policy export: the levels of a policy as configuration of
 * switches that the controller does not manage. */

#include "cli/simulate/policy.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/command.h"
#include "cli/data-file.h"
#include "cli/rate.h"
#include "policies/policy.h"

#define COMMAND "stagecoach policy export"
#define NAME "stagecoach"
#define MAX_PORTS 512
#define N_DSCP 64
#define N_QUEUES 8

enum export_target { TO_SONIC, TO_CUMULUS, TO_OPENCONFIG };

struct export_args {
    enum export_target to;
    char **ports;               /* Names of the switch's ports. */
    size_t n_ports;
    int64_t rate;               /* Of these ports, bits per second, or 0. */
};

/* A class of traffic.  Switches serve their queue with the highest number
 * first, so 'queue' is 7 minus the number that the shim and Open vSwitch
 * use. */
struct export_class {
    char name[16];              /* "control", "level0", ..., "default". */
    int dscp;                   /* The default class gets all DSCP values that
                                 * are not of another class. */
    int queue;                  /* Traffic class, and queue of the switch. */
};

struct export {
    const struct export_args *args;
    struct export_class classes[N_QUEUES];
    size_t n_classes;           /* By falling priority. */
    int class_of[N_DSCP];       /* Index in 'classes' by DSCP. */
    int64_t min_rate;           /* Minimum rate of each queue, bits per second,
                                 * or 0. */
};

static bool
is_port(const char *name)
{
    for (const char *p = name; *p; p++) {
        if (!isalnum((unsigned char) *p) && !strchr("._/:-", *p)) {
            return false;
        }
    }
    return *name;
}

/* Parses "NAME,NAME,...". */
static char *
parse_ports(const char *text, void *args_)
{
    struct export_args *args = args_;
    char *copy = duplicate(text), *next = copy, *error = NULL;

    while (!error && next) {
        const char *name = strsep(&next, ",");

        if (!is_port(name)) {
            error = message(
                "\"%s\" is not a name of a port; expected letters, digits "
                "and \"._/:-\"",
                name);
        }
        for (size_t i = 0; !error && i < args->n_ports; i++) {
            if (!strcmp(args->ports[i], name)) {
                error = message(
                    "\"%s\" is there twice; expected each port once", name);
            }
        }
        if (!error && args->n_ports == MAX_PORTS) {
            error = message("too many ports; expected at most %d", MAX_PORTS);
        }
        if (!error) {
            args->ports = reallocate(args->ports, args->n_ports + 1,
                                     sizeof *args->ports);
            args->ports[args->n_ports++] = duplicate(name);
        }
    }
    free(copy);
    return error;
}

#define AT(MEMBER) OPTION_AT(struct export_args, MEMBER)

static const struct option_row option_rows[] = {
    { "to", OPTION_CHOICE, AT(to), .value = "sonic|cumulus|openconfig",
      .required = true, .help = "format of the configuration" },
    { "ports", OPTION_CUSTOM, .value = "PORT,...", .required = true,
      .parse = parse_ports,
      .help = "names of the switch's ports to which it applies" },
    { "rate", OPTION_CUSTOM, AT(rate), .value = "RATE", .parse = rate_option,
      .help = "rate of these ports, such as 100Gbit; each queue gets the "
              "policy's minimum share of it (sonic, cumulus)" },
    { .name = NULL },
};

static const struct option_table option_table = {
    .name = COMMAND, .rows = option_rows,
    .usage =
        "usage: stagecoach policy export NAME|FILE --to FORMAT --ports "
        "PORT,...\n"
        "       [--rate RATE]\n\n"
        "Prints the levels of a policy as configuration of a switch: the "
        "DSCP\n"
        "of each level selects a queue, and queues are served by strict\n"
        "priority.  The format \"sonic\" is a part of config_db.json, "
        "\"cumulus\"\n"
        "are lines of qos_features.conf, and \"openconfig\" is JSON of\n"
        "openconfig-qos.\n",
    .operand = "policies", .min_operands = 1, .max_operands = 1,
};

static void
add_class(struct export *e, const char *name, int dscp, int queue)
{
    struct export_class *c = &e->classes[e->n_classes++];

    snprintf(c->name, sizeof c->name, "%s", name);
    c->dscp = dscp;
    c->queue = queue;
}

static void
export_init(struct export *e, const struct policy *p,
            const struct export_args *args)
{
    *e =
        (struct export){ .args = args, .min_rate = args->rate * p->min_share };
    add_class(e, "control", p->control_dscp, N_QUEUES - 1);
    for (int i = 0; i < p->n_levels; i++) {
        char name[16];

        snprintf(name, sizeof name, "level%d", i);
        add_class(e, name, p->dscp[i], N_QUEUES - 2 - i);
    }
    add_class(e, "default", p->default_dscp, 0);
    for (int dscp = 0; dscp < N_DSCP; dscp++) {
        e->class_of[dscp] = e->n_classes - 1;
        for (size_t i = 0; i < e->n_classes; i++) {
            if (e->classes[i].dscp == dscp) {
                e->class_of[dscp] = i;
            }
        }
    }
}

/* Adds member "KEY": "VALUE" of two numbers. */
static void
add_pair(cJSON *object, int key, int value)
{
    char key_text[16], value_text[16];

    snprintf(key_text, sizeof key_text, "%d", key);
    snprintf(value_text, sizeof value_text, "%d", value);
    cJSON_AddStringToObject(object, key_text, value_text);
}

/* The tables of config_db.json.  The scheduler serves queues below "cir",
 * which is in bytes per second, before the others. */
static void
print_sonic(const struct export *e)
{
    cJSON *top = cJSON_CreateObject();
    cJSON *dscp_to_tc = cJSON_AddObjectToObject(
        cJSON_AddObjectToObject(top, "DSCP_TO_TC_MAP"), NAME);
    cJSON *tc_to_queue = cJSON_AddObjectToObject(
        cJSON_AddObjectToObject(top, "TC_TO_QUEUE_MAP"), NAME);
    cJSON *scheduler = cJSON_AddObjectToObject(
        cJSON_AddObjectToObject(top, "SCHEDULER"), NAME);
    cJSON *queues = cJSON_AddObjectToObject(top, "QUEUE");
    cJSON *maps = cJSON_AddObjectToObject(top, "PORT_QOS_MAP");

    for (int dscp = 0; dscp < N_DSCP; dscp++) {
        add_pair(dscp_to_tc, dscp, e->classes[e->class_of[dscp]].queue);
    }
    for (size_t i = 0; i < e->n_classes; i++) {
        add_pair(tc_to_queue, e->classes[i].queue, e->classes[i].queue);
    }
    cJSON_AddStringToObject(scheduler, "type", "STRICT");
    if (e->min_rate) {
        char cir[32];

        snprintf(cir, sizeof cir, "%"PRId64, e->min_rate / 8);
        cJSON_AddStringToObject(scheduler, "meter_type", "bytes");
        cJSON_AddStringToObject(scheduler, "cir", cir);
    }
    for (size_t i = 0; i < e->args->n_ports; i++) {
        const char *port = e->args->ports[i];
        cJSON *map = cJSON_AddObjectToObject(maps, port);

        cJSON_AddStringToObject(map, "dscp_to_tc_map", NAME);
        cJSON_AddStringToObject(map, "tc_to_queue_map", NAME);
        for (size_t j = 0; j < e->n_classes; j++) {
            char *key = message("%s|%d", port, e->classes[j].queue);

            cJSON_AddStringToObject(cJSON_AddObjectToObject(queues, key),
                                    "scheduler", NAME);
            free(key);
        }
    }
    command_print_json(top);
}

static void
print_ports(const struct export_args *args)
{
    for (size_t i = 0; i < args->n_ports; i++) {
        printf("%s%s", i ? "," : "", args->ports[i]);
    }
    putchar('\n');
}

/* Lines of qos_features.conf.  A bandwidth of 0 percent is strict priority;
 * a shaper has the minimum and the maximum rate in kbit/s. */
static void
print_cumulus(const struct export *e)
{
    puts("# Classes of Stagecoach by egress queue.  The queue with the "
         "highest number is\n# served first.");
    for (size_t i = 0; i < e->n_classes; i++) {
        printf("# %d: %s\n", e->classes[i].queue, e->classes[i].name);
    }
    puts("\nsource.port_group_list = ["NAME"]\n"
         "source."NAME".packet_priority_source_set = [dscp]");
    printf("source."NAME".port_set = ");
    print_ports(e->args);
    puts("source."NAME".port_default_priority = 0");
    for (int queue = 0; queue < N_QUEUES; queue++) {
        const char *separator = "";

        printf("source."NAME".cos_%d.priority_source.dscp = [", queue);
        for (int dscp = 0; dscp < N_DSCP; dscp++) {
            if (e->classes[e->class_of[dscp]].queue == queue) {
                printf("%s%d", separator, dscp);
                separator = ",";
            }
        }
        puts("]");
    }
    puts("\negress_sched.port_group_list = ["NAME"]");
    printf("egress_sched."NAME".port_set = ");
    print_ports(e->args);
    for (int queue = 0; queue < N_QUEUES; queue++) {
        printf("egress_sched."NAME".egr_queue_%d.bw_percent = 0\n", queue);
    }
    if (!e->min_rate) {
        return;
    }
    puts("\n# Each queue with packets gets its minimum rate first.\n"
         "shaping.port_group_list = ["NAME"]");
    printf("shaping."NAME".port_set = ");
    print_ports(e->args);
    for (size_t i = e->n_classes; i-- > 0; ) {
        printf("shaping."NAME".egr_queue_%d.shaper = [%"PRId64", %"PRId64"]"
               "\n", e->classes[i].queue, e->min_rate / 1000,
               e->args->rate / 1000);
    }
}

/* Adds a list element of OpenConfig: its key, which "config" repeats.  Returns
 * the element and stores its "config". */
static cJSON *
add_element(cJSON *list, const char *key, const char *value, cJSON **configp)
{
    cJSON *element = cJSON_CreateObject();
    cJSON *config;

    cJSON_AddItemToArray(list, element);
    cJSON_AddStringToObject(element, key, value);
    config = cJSON_AddObjectToObject(element, "config");
    cJSON_AddStringToObject(config, key, value);
    if (configp) {
        *configp = config;
    }
    return element;
}

/* Adds {"NAMES": {"NAME": []}} and returns the array. */
static cJSON *
add_list(cJSON *parent, const char *container, const char *list)
{
    return cJSON_AddArrayToObject(cJSON_AddObjectToObject(parent, container),
                                  list);
}

static const struct {
    const char *name;           /* Of the classifier. */
    const char *type;           /* In the enumeration of OpenConfig. */
    const char *conditions;     /* Container of its conditions. */
} classifiers[] = {
    { NAME"-ipv4", "IPV4", "ipv4" }, { NAME"-ipv6", "IPV6", "ipv6" },
};
#define N_CLASSIFIERS (sizeof classifiers / sizeof *classifiers)

static void
add_terms(cJSON *classifier, const char *conditions, const struct export *e)
{
    cJSON *terms = add_list(classifier, "terms", "term");

    for (size_t i = 0; i < e->n_classes; i++) {
        const char *name = e->classes[i].name;
        cJSON *term = add_element(terms, "id", name, NULL);
        cJSON *match = cJSON_AddObjectToObject(
            cJSON_AddObjectToObject(
                cJSON_AddObjectToObject(term, "conditions"), conditions),
            "config");
        cJSON *set = cJSON_AddArrayToObject(match, "dscp-set");

        for (int dscp = 0; dscp < N_DSCP; dscp++) {
            if (e->class_of[dscp] == (int) i) {
                cJSON_AddItemToArray(set, cJSON_CreateNumber(dscp));
            }
        }
        cJSON_AddStringToObject(
            cJSON_AddObjectToObject(
                cJSON_AddObjectToObject(term, "actions"), "config"),
            "target-group", name);
    }
}

static void
add_scheduler(cJSON *qos, const struct export *e)
{
    cJSON *policy = add_element(
        add_list(qos, "scheduler-policies", "scheduler-policy"), "name", NAME,
        NULL);
    cJSON *scheduler = cJSON_CreateObject();
    cJSON *config, *inputs, *output;

    cJSON_AddItemToArray(add_list(policy, "schedulers", "scheduler"),
                         scheduler);
    cJSON_AddNumberToObject(scheduler, "sequence", 0);
    config = cJSON_AddObjectToObject(scheduler, "config");
    cJSON_AddNumberToObject(config, "sequence", 0);
    cJSON_AddStringToObject(config, "priority", "STRICT");
    inputs = add_list(scheduler, "inputs", "input");
    for (size_t i = 0; i < e->n_classes; i++) {
        char weight[16];

        /* The priority of the input; JSON of YANG has 64-bit integers in
         * strings. */
        snprintf(weight, sizeof weight, "%d", e->classes[i].queue + 1);
        add_element(inputs, "id", e->classes[i].name, &config);
        cJSON_AddStringToObject(config, "input-type", "QUEUE");
        cJSON_AddStringToObject(config, "queue", e->classes[i].name);
        cJSON_AddStringToObject(config, "weight", weight);
    }
    output = cJSON_AddObjectToObject(scheduler, "output");
    cJSON_AddStringToObject(cJSON_AddObjectToObject(output, "config"),
                            "output-type", "INTERFACE");
}

static void
add_interface(cJSON *interfaces, const char *port)
{
    cJSON *interface = add_element(interfaces, "interface-id", port, NULL);
    cJSON *list = add_list(cJSON_AddObjectToObject(interface, "input"),
                           "classifiers", "classifier");

    for (size_t i = 0; i < N_CLASSIFIERS; i++) {
        cJSON *config;

        add_element(list, "type", classifiers[i].type, &config);
        cJSON_AddStringToObject(config, "name", classifiers[i].name);
    }
    cJSON_AddStringToObject(
        cJSON_AddObjectToObject(
            cJSON_AddObjectToObject(
                cJSON_AddObjectToObject(interface, "output"),
                "scheduler-policy"), "config"),
        "name", NAME);
}

static void
print_openconfig(const struct export *e)
{
    cJSON *top = cJSON_CreateObject();
    cJSON *qos = cJSON_AddObjectToObject(top, "openconfig-qos:qos");
    cJSON *list = add_list(qos, "classifiers", "classifier");
    cJSON *groups = add_list(qos, "forwarding-groups", "forwarding-group");
    cJSON *queues = add_list(qos, "queues", "queue");
    cJSON *config;

    for (size_t i = 0; i < N_CLASSIFIERS; i++) {
        cJSON *classifier = add_element(list, "name", classifiers[i].name,
                                        &config);

        cJSON_AddStringToObject(config, "type", classifiers[i].type);
        add_terms(classifier, classifiers[i].conditions, e);
    }
    for (size_t i = 0; i < e->n_classes; i++) {
        const struct export_class *c = &e->classes[i];

        add_element(groups, "name", c->name, &config);
        cJSON_AddStringToObject(config, "output-queue", c->name);
        add_element(queues, "name", c->name, &config);
        cJSON_AddNumberToObject(config, "queue-id", c->queue);
    }
    add_scheduler(qos, e);
    list = add_list(qos, "interfaces", "interface");
    for (size_t i = 0; i < e->args->n_ports; i++) {
        add_interface(list, e->args->ports[i]);
    }
    command_print_json(top);
}

/* Checks --rate.  OpenConfig has no minimum rate of a queue. */
static int
check_rate(const struct export_args *args, const struct policy *policy)
{
    if (args->to == TO_OPENCONFIG && args->rate) {
        fputs(COMMAND ": --rate: OpenConfig has no minimum rate of a queue; "
                      "expected --to sonic or cumulus\n",
              stderr);
        return EXIT_USAGE;
    }
    if (args->to != TO_OPENCONFIG && policy->min_share > 0 && !args->rate) {
        fprintf(stderr, COMMAND": --rate is missing, the rate of the ports is "
                "needed for the policy's min_share, %g\n", policy->min_share);
        return EXIT_USAGE;
    }
    if (args->to == TO_OPENCONFIG && policy->min_share > 0) {
        fprintf(stderr, COMMAND": the configuration lacks the policy's "
                "min_share, %g: a level may starve\n", policy->min_share);
    }
    return EXIT_OK;
}

static int
print(const struct export_args *args, const char *name)
{
    static void (*const writers[])(const struct export *) = {
        [TO_SONIC] = print_sonic, [TO_CUMULUS] = print_cumulus,
        [TO_OPENCONFIG] = print_openconfig,
    };
    struct policy *policy;
    struct export export;
    char *error = policy_open(name, &policy);
    int status;

    if (error) {
        return command_fail(NULL, error);
    }
    status = check_rate(args, policy);
    if (status == EXIT_OK) {
        export_init(&export, policy, args);
        writers[args->to](&export);
    }
    policy_destroy(policy);
    return status == EXIT_OK && fflush(stdout) ? EXIT_NO : status;
}

int
policy_export(int argc, char *argv[])
{
    struct export_args args = { .to = TO_SONIC };
    int first;
    int status = option_table_command(&option_table, argc, argv, &args,
                                      &first);

    if (status < 0) {
        status = print(&args, argv[first]);
    }
    free_strings(args.ports, args.n_ports);
    return status;
}
