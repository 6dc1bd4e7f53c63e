/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "tests/unit/controller/ovsdb/test-server.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "openvswitch/vlog.h"
#include "svec.h"
#include "tests/unit/unit-test.h"
#include "util.h"

void
test_server_init(struct test_server *s, const struct database *db)
{
    char *error;

    *s = (struct test_server) { .db = db, .dir = "/tmp/sct-server-XXXXXX" };
    assert_non_null(mkdtemp(s->dir));
    s->file = xasprintf("%s/%s.db", s->dir, db->name);
    s->remote = database_remote(db, s->dir);
    vlog_set_levels(NULL, VLF_ANY_DESTINATION, VLL_OFF);
    error = database_init(db, s->file, NULL);
    if (error) {
        free(error);
        free(s->file);
        s->file = NULL;
    }
}

void
test_server_uninit(struct test_server *s)
{
    char *command = xasprintf("rm -rf %s", s->dir);

    test_server_stop(s);
    assert_int_equal(system(command), 0);
    free(command);
    free(s->file);
    free(s->remote);
}

void
test_server_start(struct test_server *s)
{
    const struct database_site site = { .rundir = s->dir };
    struct svec argv = SVEC_EMPTY_INITIALIZER;

    database_argv(s->db, s->file, &site, &argv);
    s->pid = fork();
    if (!s->pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(argv.names[0], argv.names);
        _exit(1);
    }
    svec_destroy(&argv);
}

void
test_server_stop(struct test_server *s)
{
    if (s->pid) {
        kill(s->pid, SIGTERM);
        waitpid(s->pid, NULL, 0);
        s->pid = 0;
    }
}
