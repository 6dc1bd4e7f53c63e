/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/ovsdb/listener-file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "openvswitch/json.h"
#include "sha1.h"
#include "util.h"

#define ROW "0b2d7b1c-4b0e-4f0c-9a1e-5c8d3f6a7e01"
#define GLOBAL_ROW "0b2d7b1c-4b0e-4f0c-9a1e-5c8d3f6a7e02"

/* The server reads these columns of a table of ports, if they exist. */
static const char schema[] =
    "{\"name\": \"Stagecoach_Port\", \"version\": \"1.0.0\", \"tables\": {"
    "\"Global\": {\"columns\": {\"connections\": {\"type\": {"
    "\"key\": {\"type\": \"uuid\", \"refTable\": \"Connection\"},"
    " \"min\": 0, \"max\": \"unlimited\"}}}, \"isRoot\": true},"
    " \"Connection\": {\"columns\": {\"target\": {\"type\": \"string\"},"
    " \"inactivity_probe\": {\"type\": \"integer\"}}}}}\n";

/* Writes a record as ovsdb(7) describes it. */
static void
write_record(FILE *f, const char *json)
{
    uint8_t digest[SHA1_DIGEST_SIZE];

    sha1_bytes(json, strlen(json), digest);
    fprintf(f, "OVSDB JSON %"PRIuSIZE" "SHA1_FMT"\n%s", strlen(json),
            SHA1_ARGS(digest), json);
}

static void
write_records(FILE *f, const char *target)
{
    struct json *string = json_string_create(target);
    char *quoted = json_to_string(string, 0);
    char *rows = xasprintf(
        "{\"Connection\": {\"" ROW "\": {\"target\": %s,"
        " \"inactivity_probe\": %d}}, \"Global\": {\"" GLOBAL_ROW "\":"
        " {\"connections\": [\"uuid\", \"" ROW "\"]}}}\n",
        quoted, LISTENER_SILENT_MS / 2);

    write_record(f, schema);
    write_record(f, rows);
    free(rows);
    free(quoted);
    json_destroy(string);
}

char *
listener_file_write(const char *file, const char *target)
{
    FILE *f;
    int error = 0;

    /* A server that has the old file open keeps it. */
    f = unlink(file) && errno != ENOENT ? NULL : fopen(file, "wxe");
    if (!f) {
        error = errno;
    } else {
        write_records(f, target);
        error = ferror(f) ? EIO : 0;
        if (fclose(f)) {
            error = errno;
        }
    }
    return (error ? xasprintf("%s: cannot be written (%s)", file,
                              ovs_strerror(error)) : NULL);
}
