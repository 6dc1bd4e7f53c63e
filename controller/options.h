/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CONTROLLER_OPTIONS_H
#define CONTROLLER_OPTIONS_H 1

/* The controller's command line; stagecoach-controller(8) describes it. */

#include <stdbool.h>

#include "svec.h"

struct controller_options {
    char *intent, *hosts;       /* Remotes of the databases. */
    char *members;              /* Directory, or NULL: they stay who they
                                 * are. */
    char *telemetry;            /* Where agents connect to. */
    char *policy;               /* File. */
    char *unixctl;              /* Control socket. */
    struct svec rest;           /* Where HTTP is answered, or "none". */
    struct svec rest_clients;   /* Names of TLS certificates that may ask. */
    char *key, *certificate, *ca_cert;  /* Files of TLS, or NULL. */
    char *history;              /* File, or NULL: none is kept. */
    char *topology;             /* File, or NULL: none is known. */
    char *link_key;             /* File, or NULL: no link is looked at. */
    bool observe;               /* Never order anything. */
    struct svec switches;       /* OpenFlow targets. */
    struct svec switch_identities;      /* DATAPATH:NAME of their
                                         * certificates. */
};

/* Ends the program if 'argv' is not right, or asks for no more than help. */
void controller_options_parse(int argc, char *argv[],
                              struct controller_options *);
void controller_options_uninit(struct controller_options *);

#endif /* controller/options.h */
