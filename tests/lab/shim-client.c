/* SPDX-License-Identifier: Apache-2.0 */

/* Sends requests to a shim's control socket.
 *
 *    shim-client SOCKET COMMAND...
 *
 *    lease MS DEFAULT-DSCP
 *    slot SLOT LEVEL DSCP NAME [RANK]
 *    clear SLOT
 *    guard MILLIONTHS
 *    stop            first step of a takeover
 *    leave           second step of a takeover
 *
 * Exits 1 with the reply's status if that is not 0. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/shim-client.h"

#define TIMEOUT_MS 2000

static int
ask(struct shim_client *c, uint16_t type, const void *body, size_t size)
{
    return shim_client_transact(c, type, body, size, TIMEOUT_MS, NULL, NULL);
}

static int
lease(struct shim_client *c, char *argv[])
{
    struct shim_lease l = { .ms = atoi(argv[0]),
                            .default_dscp = atoi(argv[1]) };

    return ask(c, SHIM_LEASE, &l, sizeof l);
}

static int
slot(struct shim_client *c, char *argv[])
{
    struct shim_slot s = { .slot = atoi(argv[0]), .level = atoi(argv[1]),
                           .dscp = atoi(argv[2]), .weight = 1000 };

    snprintf(s.name, sizeof s.name, "%s", argv[3]);
    return ask(c, SHIM_SLOT_SET, &s, sizeof s);
}

static int
ranked_slot(struct shim_client *c, char *argv[])
{
    struct shim_slot s = { .slot = atoi(argv[0]), .level = atoi(argv[1]),
                           .dscp = atoi(argv[2]), .weight = 1000,
                           .rank = strtoul(argv[4], NULL, 10) };

    snprintf(s.name, sizeof s.name, "%s", argv[3]);
    return ask(c, SHIM_SLOT_SET, &s, sizeof s);
}

static int
clear(struct shim_client *c, char *argv[])
{
    uint16_t s = atoi(argv[0]);

    return ask(c, SHIM_SLOT_CLEAR, &s, sizeof s);
}

static int
guard(struct shim_client *c, char *argv[])
{
    struct shim_min_share g = { .share = strtoul(argv[0], NULL, 10) };

    return ask(c, SHIM_MIN_SHARE, &g, sizeof g);
}

static int
take_over(struct shim_client *c, uint32_t step)
{
    struct shim_take_over t = { .step = step };

    return ask(c, SHIM_TAKE_OVER, &t, sizeof t);
}

static int
stop(struct shim_client *c, char *argv[])
{
    return take_over(c, SHIM_STEP_STOP);
}

static int
leave(struct shim_client *c, char *argv[])
{
    return take_over(c, SHIM_STEP_LEAVE);
}

int
main(int argc, char *argv[])
{
    static const struct {
        const char *name;
        int n_args;
        int (*run)(struct shim_client *, char *argv[]);
    } commands[] = {
        { "lease", 2, lease },      { "slot", 4, slot },
        { "slot", 5, ranked_slot }, { "clear", 1, clear },
        { "guard", 1, guard },      { "stop", 0, stop },
        { "leave", 0, leave },
    };
    struct shim_client *c;
    int error;

    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (argc == commands[i].n_args + 3
            && !strcmp(argv[2], commands[i].name)) {
            error = shim_client_open(argv[1], &c);
            error = error ? error : commands[i].run(c, argv + 3);
            shim_client_close(c);
            if (error) {
                fprintf(stderr, "shim-client: %s: %s\n", argv[2],
                        strerror(error));
            }
            return error ? EXIT_FAILURE : EXIT_SUCCESS;
        }
    }
    fputs("usage: see the top of tests/lab/shim-client.c\n", stderr);
    return 2;
}
