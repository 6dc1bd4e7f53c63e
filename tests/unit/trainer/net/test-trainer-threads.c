/* SPDX-License-Identifier: Apache-2.0 */

/* A system that gives no thread: one message, no abort, no hang.  Linked with
 * --wrap=pthread_create. */

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/unit-test.h"
#include "trainer/loop/loop.h"
#include "trainer/net/address.h"
#include "trainer/net/mesh.h"
#include "trainer/net/server-watch.h"
#include "trainer/process/control.h"
#include "trainer/process/options.h"

int __wrap_pthread_create(pthread_t *, const pthread_attr_t *,
                          void *(*)(void *), void *);
int __real_pthread_create(pthread_t *, const pthread_attr_t *,
                          void *(*)(void *), void *);

static int n_allowed;           /* Calls that are to succeed. */

int
__wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr,
                      void *(*main)(void *), void *aux)
{
    return n_allowed-- > 0 ? __real_pthread_create(id, attr, main, aux)
                           : EAGAIN;
}

static void
check_message(char *error, const char *place)
{
    assert_non_null(error);
    assert_true(!strncmp(error, place, strlen(place)));
    assert_says(error, "cannot start a thread: ");
}

UNIT_TEST(heartbeats_name_the_thread_that_cannot_start)
{
    struct server_watch *watch;

    n_allowed = 0;
    check_message(server_watch_create(NULL, 0, 1000000, NULL, NULL, NULL,
                                      &watch),
                  "heartbeats: ");
    assert_null(watch);
}

UNIT_TEST(a_mesh_names_the_thread_that_cannot_start)
{
    static const struct peer_net_class class;
    struct peer_net *net;

    n_allowed = 0;
    assert_null(peer_net_create(
        &(struct peer_net_config){
            .n = 1,
            .address = "127.0.0.1",
            .hello = { .n_workers = 1, .n_shards = 1 },
        },
        &net));
    check_message(peer_net_start(net, &class, NULL), "network: ");
    peer_net_destroy(net);
}

/* The first thread that fails is the network's, then those of --threads: the
 * ones that run wait for it at a barrier, and are ended. */
UNIT_TEST(a_node_ends_when_a_thread_cannot_start)
{
    char name[32];
    const char *argv[] = {
        "node", "--nodes", name, "--samples", "1000", "--rows", "40",
        "--columns", "20", "--dimension", "4", "--validation", "100",
        "--threads", "3", "--epochs", "2",
    };
    struct options o;
    uint16_t port;
    bool help;
    int fd;

    assert_null(address_listen("127.0.0.1", 0, &fd, &port));
    close(fd);
    snprintf(name, sizeof name, "127.0.0.1:%u", port);
    assert_null(options_parse(sizeof argv / sizeof argv[0], (char **) argv,
                              &o, &help));
    for (int i = 0; i < 4; i++) {
        struct control *control = control_create(o.target);

        n_allowed = i;
        check_message(node_run(&o, control), i ? "--threads: " : "network: ");
        control_destroy(control);
    }
}
