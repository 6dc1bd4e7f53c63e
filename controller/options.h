/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CONTROLLER_OPTIONS_H
#define CONTROLLER_OPTIONS_H 1

/* The controller's command line; stagecoach-controller(8) describes it. */

#include <stdbool.h>
#include <stdint.h>

#include "svec.h"

struct controller_options {
    char *intent, *hosts;       /* Remotes of the databases. */
    char *members;              /* Directory of the database servers' control
                                 * sockets, or NULL: the members of the
                                 * database clusters do not change. */
    char *telemetry;            /* Passive remote for agents. */
    int64_t max_agents;         /* 0: TELEMETRY_MAX_AGENTS. */
    char *policy;               /* File. */
    char *unixctl;              /* Path of the control socket. */
    struct svec rest;           /* Addresses of the HTTP server, or "none". */
    bool rest_users;            /* All users may use its Unix sockets. */
    char *api_server;           /* That reviews tokens of its clients, or
                                 * NULL. */
    char *api_account;          /* Folder with the token for that. */
    char *rest_ca_cert;         /* File: authority of its clients, or NULL. */
    char *history;              /* File, or NULL for no history. */
    int64_t history_mib;        /* Limit of the file. */
    char *dbdir;                /* Directory of the databases, or NULL. */
    char *topology;             /* File, or NULL. */
    struct svec switches;       /* OpenFlow targets. */
    struct svec switch_identities;      /* DATAPATH:NAME: CNs of the switches'
                                         * certificates. */
};

/* Ends the program after an error, --help or --version. */
void controller_options_parse(int argc, char *argv[],
                              struct controller_options *);
void controller_options_uninit(struct controller_options *);

#endif /* controller/options.h */
