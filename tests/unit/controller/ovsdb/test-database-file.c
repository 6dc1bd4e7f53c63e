/* SPDX-License-Identifier: Apache-2.0 */

/* Files of databases that are sound, cut off, or damaged in the middle. */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/ovsdb/database-file.h"
#include "controller/ovsdb/database-folder.h"
#include "openvswitch/json.h"
#include "sha1.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/json-get.h"

#define N_RECORDS 50

struct place {
    char folder[40];
    char *file;
};

/* Writes a log of records of 60 bytes and more, as ovsdb-server does. */
static void
write_log(const char *name)
{
    FILE *file = fopen(name, "w");

    assert_non_null(file);
    for (int i = 0; i < N_RECORDS; i++) {
        uint8_t sha1[SHA1_DIGEST_SIZE];
        char hex[SHA1_HEX_DIGEST_LEN + 1];
        char *data = xasprintf("{\"term\":1,\"index\":%d,\"data\":\"OVSDB "
                               "is not a header here\"}\n", i);

        sha1_bytes(data, strlen(data), sha1);
        sha1_to_hex(sha1, hex);
        fprintf(file, "OVSDB CLUSTER %zu %s\n%s", strlen(data), hex, data);
        free(data);
    }
    assert_int_equal(fclose(file), 0);
}

static int
set_up(void **state)
{
    struct place *p = xzalloc(sizeof *p);

    strcpy(p->folder, "/tmp/test-database-file.XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    p->file = xasprintf("%s/intent.db", p->folder);
    write_log(p->file);
    *state = p;
    return 0;
}

static int
tear_down(void **state)
{
    static const char *const suffixes[] = {
        "", ".good", ".alarm", ".damaged-1", ".damaged-2",
    };
    struct place *p = *state;

    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        char *name = xasprintf("%s%s", p->file, suffixes[i]);

        unlink(name);
        free(name);
    }
    assert_int_equal(rmdir(p->folder), 0);
    free(p->file);
    free(p);
    return 0;
}

#define PLACE_TEST(NAME) \
    UNIT_TEST_GIVEN(NAME, set_up, tear_down, const struct place *p)

static struct database_file
check(const struct place *p)
{
    struct database_file found;

    assert_null(database_file_check(p->file, &found));
    return found;
}

static bool
exists(const struct place *p, const char *suffix)
{
    char *name = xasprintf("%s%s", p->file, suffix);
    bool found = !access(name, F_OK);

    free(name);
    return found;
}

/* Overwrites 40 bytes at 'offset'. */
static void
damage(const struct place *p, long offset)
{
    FILE *file = fopen(p->file, "r+");

    assert_non_null(file);
    assert_int_equal(fseek(file, offset, SEEK_SET), 0);
    for (int i = 0; i < 40; i++) {
        fputc('x', file);
    }
    fclose(file);
}

PLACE_TEST(a_sound_file_is_copied)
{
    struct database_file found = check(p);

    assert_true(found.size && found.good == found.size && !found.n_lost);
    assert_null(database_file_protect(p->file));
    assert_true(exists(p, ".good") && !exists(p, ".alarm"));
}

PLACE_TEST(a_record_that_the_end_cuts_off_is_no_damage)
{
    struct database_file whole = check(p), found;

    for (size_t cut = 1; cut < 150; cut++) {
        assert_int_equal(truncate(p->file, whole.size - cut), 0);
        found = check(p);
        assert_int_equal(found.n_lost, 0);
        assert_true(found.good > whole.size - 300);
    }
}

PLACE_TEST(damage_is_found_wherever_it_is)
{
    size_t size = check(p).size;

    for (size_t at = 0; at + 40 <= size; at += 37) {
        struct database_file found;

        write_log(p->file);
        damage(p, at);
        found = check(p);
        assert_true(found.good <= at);
        assert_true(found.good + 300 > at);
        assert_in_range(found.n_lost, 1, N_RECORDS);
    }
}

/* The bytes behind a damaged record, which its server would cut off, are kept
 * together with the last sound file, and there is an alarm until its file is
 * removed. */
PLACE_TEST(a_damaged_file_is_kept_and_is_an_alarm)
{
    struct database_folder *folder = database_folder_create(p->folder);
    struct json *alarms = json_array_create_empty();
    struct database_file found;
    char *message, *name;

    assert_null(database_file_protect(p->file));
    damage(p, check(p).size / 2);
    message = database_file_protect(p->file);
    assert_non_null(message);
    assert_true(exists(p, ".good") && exists(p, ".damaged-1"));
    name = xasprintf("%s.good", p->file);
    assert_null(database_file_check(name, &found));
    assert_true(found.good == found.size && found.size == check(p).size);
    free(name);

    database_folder_run(folder);
    assert_int_equal(database_folder_n_damaged(folder), 1);
    assert_true(database_folder_take_damage(folder));
    assert_false(database_folder_take_damage(folder));
    assert_true(database_folder_space(folder) > 0);
    database_folder_alarms(folder, alarms);
    assert_string_equal(
        json_string(json_get(alarms->array.elems[alarms->array.n - 1], "text",
                             JSON_STRING)),
        message);
    assert_says(message, "25 records from there are lost");
    json_destroy(alarms);
    database_folder_destroy(folder);

    /* The next one does not replace what is kept. */
    message = database_file_protect(p->file);
    assert_true(exists(p, ".damaged-2"));
    free(message);
}

PLACE_TEST(a_file_that_is_not_there_is_not_damaged)
{
    unlink(p->file);
    assert_null(database_file_protect(p->file));
    assert_false(exists(p, ".good"));
}
