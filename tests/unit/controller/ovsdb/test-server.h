/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TEST_SERVER_H
#define TEST_SERVER_H 1

/* A server of a database of one member, in a directory of its own.
 *
 * The database exists from test_server_init() on, its server only between
 * test_server_start() and test_server_stop(), which does nothing without a
 * server.  'file' is NULL if there is no ovsdb-tool: then the test should be
 * skipped. */

#include <sys/types.h>

#include "controller/ovsdb/database.h"

struct test_server {
    const struct database *db;
    char dir[32];
    char *file, *remote;
    pid_t pid;                  /* 0 if it does not run. */
};

void test_server_init(struct test_server *, const struct database *);
void test_server_uninit(struct test_server *);

void test_server_start(struct test_server *);
void test_server_stop(struct test_server *);

#endif /* tests/unit/controller/ovsdb/test-server.h */
