/* SPDX-License-Identifier: Apache-2.0 */

/* The owners of directories of sockets. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/run-directory.h"
#include "tests/unit/unit-test.h"

static char dir[] = "/tmp/stagecoach-run-XXXXXX";
static char below[64];

static int
make(void **state)
{
    strcpy(dir, "/tmp/stagecoach-run-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(below, sizeof below, "%s/below", dir);
    assert_int_equal(mkdir(below, 0755), 0);
    return 0;
}

static int
delete(void **state)
{
    assert_int_equal(rmdir(below) || rmdir(dir), 0);
    return 0;
}

UNIT_TEST(only_the_standard_directory_has_one_for_the_controller)
{
    char *path = run_directory_of_controller("/run/stagecoach");

    assert_is(path, "/run/stagecoach/controller");
    path = run_directory_of_controller("/run/stagecoach/lab-a");
    assert_is(path, "/run/stagecoach/lab-a");
}

UNIT_TEST_BETWEEN(a_directory_that_others_can_write_is_refused, make, delete)
{
    assert_null(run_directory_check(below));
    assert_int_equal(chmod(below, 0775), 0);
    assert_says(run_directory_check(below), "mode 0775");
    assert_int_equal(chmod(below, 01777), 0);
    assert_says(run_directory_check(below), "mode 1777");
    assert_int_equal(chmod(below, 0755), 0);
    assert_int_equal(chmod(dir, 0777), 0);
    assert_says(run_directory_check(below), "mode 0777");
    assert_int_equal(chmod(dir, 01777), 0);
    assert_null(run_directory_check(below));
}

UNIT_TEST_BETWEEN(a_directory_of_another_user_is_refused, make, delete)
{
    if (geteuid()) {
        skip();
    }
    assert_int_equal(chown(below, 65534, 65534), 0);
    assert_says(run_directory_check(below), "belongs to user 65534");
    assert_int_equal(chown(below, 0, 0), 0);
    assert_int_equal(chown(dir, 65534, 65534), 0);
    assert_says(run_directory_check(below), "belongs to user 65534");
    assert_says(run_directory_check("/nothing/here"), "No such file");
}
