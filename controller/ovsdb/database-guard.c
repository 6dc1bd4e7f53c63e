/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/ovsdb/database-guard.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/service-notify.h"
#include "controller/ovsdb/database-cluster.h"
#include "controller/ovsdb/database-file.h"
#include "controller/ovsdb/database.h"
#include "controller/ovsdb/rpc-call.h"
#include "jsonrpc.h"
#include "openvswitch/json.h"
#include "timeval.h"
#include "util.h"

#define ASK_MS 1000             /* Between two questions. */
#define ANSWER_MS 3000          /* Timeout of an answer. */
#define CHECK_MS 60000          /* Between two checks of the file. */

struct database_guard {
    const struct database *db;  /* NULL for the relay. */
    const char *name, *rundir;
    const char *dbfile;         /* NULL for the relay. */
    long long next_check;       /* Of the file, time_msec(). */
    bool ready;                 /* The server has answered. */
    pid_t server;               /* At the last look. */
    bool heard;                 /* It has answered then. */
    long long answered;         /* time_msec() of its last answer, or when it
                                 * was first seen. */
};

static bool
server_answers(const struct database_guard *g)
{
    char *remote = xasprintf("unix:%s/%s.sock", g->rundir, g->name);
    struct jsonrpc_msg *reply;
    int error;

    error = rpc_call(remote, jsonrpc_create_request(
                         "echo", json_array_create_empty(), NULL),
                     ANSWER_MS, &reply);
    jsonrpc_msg_destroy(reply);
    free(remote);
    return !error;
}

/* Returns true if the server has given up because it could not write. */
static bool
server_failed(const struct database_guard *g)
{
    struct database_cluster dc;
    bool failed;
    char *error;

    if (!g->db) {
        return false;
    }
    error = database_cluster_get(g->db, g->rundir, &dc);
    failed = !error && !strcmp(dc.status, "failed");
    database_cluster_uninit(&dc);
    free(error);
    return failed;
}

static bool
has_space(const struct database_guard *g)
{
    struct statvfs vfs;

    return (!statvfs(g->dbfile, &vfs)
            && (double) vfs.f_bavail * vfs.f_frsize
               >= DATABASE_GUARD_MIN_SPACE);
}

/* Has the server write its file again from memory. */
static char *
compact(const struct database_guard *g)
{
    const char *args[] = { g->db->schema };
    char *ctl = database_ctl(g->db, g->rundir), *reply, *error;
    int errnum;

    error = rpc_unixctl(ctl, "ovsdb-server/compact", 1, args, ANSWER_MS,
                        &reply, &errnum);
    free(reply);
    free(ctl);
    return error;
}

/* Copies the server's file if it is sound.  If it was damaged while the server
 * runs, nothing is lost yet. */
static void
check_file(struct database_guard *g)
{
    struct database_file check;
    char *message;

    if (!g->dbfile || time_msec() < g->next_check) {
        return;
    }
    g->next_check = time_msec() + CHECK_MS;
    message = database_file_check(g->dbfile, &check);
    if (!message && check.n_lost) {
        fprintf(stderr, "%s: damaged at byte %"PRIuSIZE", the server writes "
                "it again from memory\n", g->dbfile, check.good);
        message = compact(g);
    } else if (!message) {
        message = database_file_protect(g->dbfile);
    }
    if (message) {
        fprintf(stderr, "%s\n", message);
        free(message);
    }
}

bool
database_guard_look(struct database_guard *g, pid_t server)
{
    if (g->server != server) {
        g->server = server;
        g->answered = time_msec();
    }
    g->heard = server_answers(g);
    if (!g->heard) {
        return time_msec() < g->answered + DATABASE_GUARD_HANG_MS;
    }
    g->answered = time_msec();
    if (server_failed(g) && has_space(g)) {
        fprintf(stderr, "%s: the server could not write and has given up; "
                "there is space again, it is restarted\n", g->dbfile);
        return false;
    }
    check_file(g);
    return true;
}

/* Notifies systemd of the result of a check. */
static void
notify(struct database_guard *g)
{
    bool sound = database_guard_look(g, getppid());

    if (g->heard) {
        if (!g->ready) {
            g->ready = !service_notify("READY=1");
        }
        service_notify(sound ? "WATCHDOG=1" : "WATCHDOG=trigger");
    }
}

struct database_guard *
database_guard_create(const struct database *db, const char *rundir,
                      const char *dbfile)
{
    struct database_guard *g = xmalloc(sizeof *g);

    *g = (struct database_guard){
        .db = db,
        .name = db->name,
        .rundir = rundir,
        .dbfile = dbfile,
        .next_check = time_msec() + CHECK_MS,
    };
    return g;
}

void
database_guard_start(const struct database *db, const char *name,
                     const char *rundir, const char *dbfile)
{
    struct database_guard g = {
        .db = db,
        .name = name,
        .rundir = rundir,
        .dbfile = dbfile,
        .next_check = time_msec() + CHECK_MS,
    };
    pid_t parent = getpid();

    if (!getenv("NOTIFY_SOCKET") || fork()) {
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == parent) {
        notify(&g);
        xnanosleep(ASK_MS * 1000000LL);
    }
    _exit(EXIT_SUCCESS);
}
