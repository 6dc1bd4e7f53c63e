/* SPDX-License-Identifier: Apache-2.0 */

/* Masters of a switch, by its log. */

#include <config.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lab/measure/switch-log.h"
#include "tests/unit/unit-test.h"

#define AT "2026-01-01T00:00:00Z|00001|vconn|DBG|"
#define ASKS(WHO, XID, GENERATION) \
    AT WHO ": received: OFPT_ROLE_REQUEST (OF1.4) (xid=" XID "): " \
    "role=primary generation_id=" GENERATION "\n"
#define GETS(WHO, XID) \
    AT WHO ": sent (Success): OFPT_ROLE_REPLY (OF1.4) (xid=" XID "): " \
    "role=primary generation_id=1\n"
#define CHANGES(WHO, XID) \
    AT WHO ": received: OFPT_FLOW_MOD (OF1.3) (xid=" XID "): DEL table:255 " \
    "actions=drop\n"
#define REFUSED(WHO, XID) \
    AT WHO ": sent (Success): OFPT_ERROR (OF1.4) (xid=" XID "): " \
    "OFPBRC_IS_SECONDARY\n"
#define FIRST ASKS("unix#1", "0x3", "2") GETS("unix#1", "0x3")
#define SECOND ASKS("unix#2", "0x3", "3") GETS("unix#2", "0x3")

static struct switch_log_counts
parse(const char *log)
{
    FILE *stream = fmemopen((void *) (uintptr_t) log, strlen(log), "r");
    struct switch_log_counts counts;

    assert_non_null(stream);
    switch_log_parse(stream, &counts);
    fclose(stream);
    return counts;
}

UNIT_TEST(takes_changes_of_the_primary)
{
    struct switch_log_counts c;

    c = parse(FIRST CHANGES("unix#1", "0x4") SECOND CHANGES("unix#2", "0x4")
              "2026-01-01T00:00:00Z|00001|bridge|INFO|else\n");
    assert_int_equal(c.roles, 2);
    assert_int_equal(c.changes, 2);
    assert_int_equal(c.refused, 0);
    assert_int_equal(c.backwards, 0);
    assert_int_equal(c.foreign, 0);
}

UNIT_TEST(counts_a_change_of_who_was_replaced)
{
    assert_int_equal(parse(FIRST SECOND CHANGES("unix#1", "0x4")).foreign, 1);
    assert_int_equal(parse(CHANGES("unix#1", "0x4")
                           CHANGES("unix#2", "0x4")).foreign, 1);
}

UNIT_TEST(does_not_count_what_was_refused)
{
    struct switch_log_counts c;

    c = parse(FIRST SECOND CHANGES("unix#1", "0x4") CHANGES("unix#1", "0x5")
              REFUSED("unix#1", "0x4"));
    assert_int_equal(c.foreign, 1);
    assert_int_equal(c.refused, 1);
    c = parse(SECOND ASKS("unix#1", "0x9", "2") REFUSED("unix#1", "0x9"));
    assert_int_equal(c.roles, 1);
    assert_int_equal(c.refused, 1);
    assert_int_equal(c.backwards, 0);
}

UNIT_TEST(counts_a_role_that_goes_to_the_older)
{
    assert_int_equal(parse(SECOND FIRST).backwards, 1);
}
