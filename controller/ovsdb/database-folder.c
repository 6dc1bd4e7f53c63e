/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/ovsdb/database-folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "controller/ovsdb/database.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"
#include "wire/alarm.h"

#define LOOK_MS 1000            /* Between two readings. */
#define DELETE_MS 10000         /* Between two requests to delete. */
#define MAX_LINE 1024           /* Bytes of the text of an alarm. */

struct database_folder {
    char *directory;            /* NULL: nothing is watched. */
    int64_t space;              /* Free bytes, INT64_MAX if unknown. */
    struct svec damages;        /* First line of each NAME.db.alarm. */
    bool new_damage;            /* There are more since the last
                                 * database_folder_take_damage(). */
    long long next_look;        /* time_msec(). */
    long long next_delete;      /* time_msec(), 0 while space is not low. */
};

struct database_folder *
database_folder_create(const char *directory)
{
    struct database_folder *df = xzalloc(sizeof *df);

    df->directory = nullable_xstrdup(directory);
    df->space = INT64_MAX;
    svec_init(&df->damages);
    return df;
}

void
database_folder_destroy(struct database_folder *df)
{
    if (df) {
        svec_destroy(&df->damages);
        free(df->directory);
        free(df);
    }
}

static void
read_space(struct database_folder *df)
{
    struct statvfs vfs;

    df->space = (statvfs(df->directory, &vfs) ? INT64_MAX
                 : (int64_t) MIN((double) vfs.f_bavail * vfs.f_frsize, 1e18));
}

/* Adds the first line of the alarm of 'db', if there is one. */
static void
read_damage(struct database_folder *df, const struct database *db)
{
    char *name = xasprintf("%s/%s.db.alarm", df->directory, db->name);
    FILE *file = fopen(name, "re");
    char line[MAX_LINE];

    if (file) {
        if (!fgets(line, sizeof line, file)) {
            snprintf(line, sizeof line, "%s: a database was damaged", name);
        }
        line[strcspn(line, "\n")] = '\0';
        svec_add(&df->damages, line);
        fclose(file);
    }
    free(name);
}

bool
database_folder_run(struct database_folder *df)
{
    long long now = time_msec();
    size_t n = df->damages.n;

    if (!df->directory || now < df->next_look) {
        return false;
    }
    df->next_look = now + LOOK_MS;
    read_space(df);
    svec_clear(&df->damages);
    read_damage(df, &database_intent);
    read_damage(df, &database_hosts);
    df->new_damage |= df->damages.n > n;
    if (df->space >= DATABASE_FOLDER_MIN_SPACE) {
        df->next_delete = 0;
        return false;
    } else if (now < df->next_delete) {
        return false;
    }
    df->next_delete = now + DELETE_MS;
    return true;
}

bool
database_folder_take_damage(struct database_folder *df)
{
    bool damage = df->new_damage;

    df->new_damage = false;
    return damage;
}

void
database_folder_wait(const struct database_folder *df)
{
    if (df->directory) {
        poll_timer_wait_until(df->next_look);
    }
}

int64_t
database_folder_space(const struct database_folder *df)
{
    return df->space;
}

size_t
database_folder_n_damaged(const struct database_folder *df)
{
    return df->damages.n;
}

void
database_folder_alarms(const struct database_folder *df, struct json *alarms)
{
    if (df->space < DATABASE_FOLDER_MIN_SPACE) {
        alarm_add(
            alarms, ALARM_DATABASE_SPACE,
            "%s has %lld MiB of free space, %lld are needed: old rows of the "
            "history are deleted, and databases that cannot write stop",
            df->directory, (long long) (df->space >> 20),
            (long long) (DATABASE_FOLDER_MIN_SPACE >> 20));
    }
    for (size_t i = 0; i < df->damages.n; i++) {
        alarm_add(alarms, ALARM_DATABASE_DAMAGED, "%s", df->damages.names[i]);
    }
}
