/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach-trainer: a whole training job on this machine; a server, a
 * worker, a peer or a node of one; or several jobs, one after the other, to
 * compare. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/compare/compare.h"
#include "trainer/gossip/peer.h"
#include "trainer/groups/group-server.h"
#include "trainer/loop/loop.h"
#include "trainer/net/token.h"
#include "trainer/process/control.h"
#include "trainer/process/options.h"
#include "trainer/ps/server.h"
#include "trainer/train/train.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

static char *
run(const struct options *o, struct control *control)
{
    if (o->role == ROLE_SERVER && o->central) {
        return group_server_run(&(struct group_server_config) {
     .central = o->central, .address = o->address, .port = o->port,
     .congestion = o->congestion,
     .reconnect_timeout_us = o->reconnect_timeout * 1e6,
     .heartbeat_timeout_us = o->heartbeat_timeout * 1e6, .control = control
 });
    }
    if (o->role == ROLE_SERVER) {
        return ps_server_run(&(struct ps_server_config){
            .address = o->address,
            .port = o->port,
            .n_workers = o->n_workers,
            .n_threads = o->n_threads,
            .congestion = o->congestion,
            .sync = &o->sync,
            .control_port = o->control_port,
            .reconnect_timeout_us = o->reconnect_timeout * 1e6,
            .heartbeat_timeout_us = o->heartbeat_timeout * 1e6,
            .checkpoint = o->checkpoint,
            .checkpoint_every = o->checkpoint_every,
            .resume = !o->no_resume,
            .new_rate = o->new_rate,
            .central = &central_server,
            .group_program =
                o->group_servers_elsewhere ? NULL : "/proc/self/exe",
            .control = control,
        });
    }
    if (o->role == ROLE_NODE) {
        return node_run(o, control);
    }
    return loop_run(o, control,
                    o->role == ROLE_PEER    ? &exchange_peers
                    : o->role == ROLE_LOCAL ? &exchange_local
                                            : &exchange_server);
}

/* Prints the message of 'command', if there is one, and frees it.  Returns the
 * exit status. */
static int
conclude(const char *command, char *error, int status)
{
    if (!error) {
        return 0;
    }
    fprintf(stderr, "stagecoach-trainer%s%s: %s\n", *command ? " " : "",
            command, error);
    free(error);
    return status;
}

int
main(int argc, char *argv[])
{
    struct control *control;
    struct options o;
    bool help;
    char *error;

    if (argc == 2 && !strcmp(argv[1], "--version")) {
        puts("stagecoach-trainer " STAGECOACH_VERSION);
        return 0;
    }
    if (argc >= 2 && !strcmp(argv[1], "compare")) {
        return compare_command(argc - 1, argv + 1);
    }
    error = options_parse(argc - 1, argv + 1, &o, &help);
    if (error) {
        return conclude(o.role ? argv[1] : "", error, EXIT_USAGE);
    }
    if (help) {
        options_help(&o);
        return 0;
    }
    if (o.role == ROLE_TRAIN) {
        return train_command(&o);
    }
    if (o.role == ROLE_EVALUATE || o.role == ROLE_EXPORT) {
        return conclude(argv[1], weights_command(&o), EXIT_FAILED);
    }
    error = token_load(o.token_file);
    if (error) {
        return conclude(argv[1], error, EXIT_USAGE);
    }
    control = control_create(o.target);
    error = run(&o, control);
    control_destroy(control);
    return conclude(argv[1], error, EXIT_FAILED);
}
