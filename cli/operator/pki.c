/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach pki: keys and certificates of controllers, agents and clients. */

#include <config.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/command.h"
#include "cli/operator/controller-query.h"
#include "cli/operator/table.h"
#include "controller/northbound/rest/peer.h"
#include "controller/ovsdb/pki.h"
#include "openvswitch/json.h"
#include "util.h"

/* Default of --within. */
#define WITHIN_DAYS 30

struct pki_options {
    const char *dir;
    const char *role; /* Of clients, NULL if not given. */
    double days, within;
    bool json;
    char **args;                /* Operands. */
    int n_args;
};

#define AT(MEMBER) OPTION_AT(struct pki_options, MEMBER)

static const struct option_row rows[] = {
    { "dir", OPTION_TEXT, AT(dir), .value = "DIR",
      .deflt = "/etc/stagecoach/pki", .help = "folder of the authorities" },
    { "role", OPTION_WORD, AT(role), .value = PEER_ROLES,
      .help = "issue client: what the client may do (required)" },
    { "days", OPTION_REAL, AT(days), 0.00001, PKI_MAX_DAYS, "N",
      .help = "validity of new certificates, days" },
    { "within", OPTION_REAL, AT(within), 0.00001, PKI_MAX_DAYS, "DAYS",
      .help = "rotate: replace certificates that expire within this time" },
    FORMAT_ROW(struct pki_options, json),
    { .name = NULL },
};

static const struct option_table table = {
    .name = "stagecoach pki", .rows = rows, .max_operands = -1,
    .usage = "usage: stagecoach pki COMMAND [ARG...]\n",
};

static char *
init(const struct pki_options *o)
{
    return pki_init(o->dir);
}

static char *
issue(const struct pki_options *o)
{
    char *error = NULL;
    int role = 0;

    if (o->n_args < 2) {
        return xstrdup("KIND NAME: missing; expected \"controller\", "
                       "\"agent\" or \"client\", and one name or more");
    }
    while (role < N_PKI_ROLES && strcmp(o->args[0], pki_role_names[role])) {
        role++;
    }
    if (role == N_PKI_ROLES) {
        return xasprintf("KIND: \"%.32s\"; expected \"controller\", \"agent\" "
                         "or \"client\"",
                         o->args[0]);
    } else if ((role == PKI_CLIENT) != (o->role != NULL)) {
        return xstrdup(o->role ? "--role: only clients have one; expected "
                                 "\"client\" as KIND"
                               : "--role: missing; expected \"--role read\"");
    }
    for (int i = 1; !error && i < o->n_args; i++) {
        error = pki_issue(o->dir, role, o->args[i], o->role, o->days);
    }
    return error;
}

static bool
is_named(const struct pki_options *o, const char *name)
{
    for (int i = 0; i < o->n_args; i++) {
        if (!strcmp(o->args[i], name)) {
            return true;
        }
    }
    return false;
}

static char *
check_names(const struct pki_options *o, const struct pki_entry *entries,
            size_t n)
{
    for (int i = 0; i < o->n_args; i++) {
        size_t j = 0;

        while (j < n && strcmp(entries[j].name, o->args[i])) {
            j++;
        }
        if (j == n) {
            return xasprintf("NAME: \"%s\" has no certificate, \"stagecoach "
                             "pki show\" lists all", o->args[i]);
        }
    }
    return NULL;
}

/* Replaces the keys and certificates of the named machines, or without names
 * those that expire soon. */
static char *
rotate(const struct pki_options *o)
{
    int64_t soon = time(NULL) + (int64_t) (o->within * 86400);
    struct pki_entry *entries;
    size_t n;
    char *error = pki_list(o->dir, &entries, &n);

    error = error ? error : check_names(o, entries, n);
    for (size_t i = 0; !error && i < n; i++) {
        if (o->n_args ? is_named(o, entries[i].name)
            : entries[i].expires <= soon) {
            error = pki_issue(o->dir, entries[i].role, entries[i].name,
                              entries[i].client_role, o->days);
            if (!error) {
                printf("%s %s\n", pki_role_names[entries[i].role],
                       entries[i].name);
            }
        }
    }
    pki_list_free(entries, n);
    return error;
}

/* Returns the role in the certificate. */
static const char *
role_of(const struct pki_entry *entry)
{
    return (*entry->client_role ? entry->client_role
                                : pki_role_names[entry->role]);
}

static void
show_json(const struct pki_entry *entries, size_t n)
{
    struct json *array = json_array_create_empty();
    struct json *top = json_object_create();

    for (size_t i = 0; i < n; i++) {
        struct json *json = json_object_create();

        json_object_put_string(json, "role", role_of(&entries[i]));
        json_object_put_string(json, "name", entries[i].name);
        json_object_put(json, "expires",
                        json_integer_create(entries[i].expires * 1000));
        json_array_add(array, json);
    }
    json_object_put(top, "certificates", array);
    print_and_destroy(top);
}

static char *
show(const struct pki_options *o)
{
    struct pki_entry *entries;
    size_t n;
    char *error = pki_list(o->dir, &entries, &n);

    if (!error && o->json) {
        show_json(entries, n);
    } else if (!error) {
        struct table *t = table_create("role\tname\tdays_left");

        for (size_t i = 0; i < n; i++) {
            table_add(t, "%s\t%s\t%.1f", role_of(&entries[i]), entries[i].name,
                      (entries[i].expires - time(NULL)) / 86400.0);
        }
        table_finish(t);
    }
    pki_list_free(entries, n);
    return error;
}

static int
run_pki(int argc, char *argv[])
{
    static const struct {
        const char *name;
        char *(*run)(const struct pki_options *);
    } actions[] = {
        { "init", init }, { "issue", issue }, { "rotate", rotate },
        { "show", show },
    };
    size_t i = 0;
    struct pki_options o = { .days = PKI_DAYS, .within = WITHIN_DAYS };
    int first, status;
    char *error;

    status = option_table_command(&table, argc, argv, &o, &first);
    if (status >= 0) {
        return status;
    }
    o.args = &argv[first];
    o.n_args = argc - first;
    while (strcmp(actions[i].name, argv[0])) {
        i++;
    }
    error = actions[i].run(&o);
    return error ? command_fail("stagecoach pki", error) : EXIT_OK;
}

int
cmd_pki(int argc, char *argv[])
{
    static const struct command commands[] = {
        { "init", "[--dir DIR]", "Create the three certificate authorities.",
          run_pki },
        { "issue",
          "controller|agent|client NAME... [--role " PEER_ROLES "] "
          "[--days N] [--dir DIR]",
          "Create keys and certificates.", run_pki },
        { "rotate", "[NAME...] [--within DAYS] [--days N] [--dir DIR]",
          "Replace the named certificates, or those that expire soon.",
          run_pki },
        { "show", "[--format table|json] [--dir DIR]",
          "List certificates and their remaining days.", run_pki },
        { NULL, NULL, NULL, NULL },
    };

    return command_group(commands, "stagecoach pki", argc, argv);
}
