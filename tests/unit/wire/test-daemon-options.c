/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/daemon-options.h"

/* Parses one option in a buffer that is overwritten afterwards. */
static void
parse(const char *option)
{
    static const struct option_row rows[] = { { .name = NULL } };
    static const struct option_table table = { .name = "test", .rows = rows };
    char *argv[] = { xstrdup("test"), xstrdup(option), NULL };

    daemon_options_parse(&table, false, false, 2, argv, NULL);
    for (int i = 0; i < 2; i++) {
        memset(argv[i], 'x', strlen(argv[i]));
        free(argv[i]);
    }
}

UNIT_TEST(tls_files_are_of_the_directory_in_which_the_program_started)
{
    char dir[] = "/tmp/stagecoach-options-XXXXXX";
    char *key, *here = get_cwd();

    assert_non_null(mkdtemp(dir));
    assert_return_code(chdir(dir), 0);
    key = xasprintf("%s/key.pem", dir);
    assert_null(tls_file('p'));
    parse("--private-key=key.pem");
    assert_return_code(chdir("/"), 0);  /* As --detach does. */
    assert_string_equal(tls_file('p'), key);
    assert_null(tls_file('c'));
    assert_null(tls_file('C'));
    assert_return_code(chdir(here), 0);
    assert_return_code(rmdir(dir), 0);
    free(key);
    free(here);
}

UNIT_TEST(the_last_name_of_a_tls_file_counts)
{
    parse("--private-key=/nowhere/first.pem");
    parse("--private-key=/nowhere/second.pem");
    assert_string_equal(tls_file('p'), "/nowhere/second.pem");
}

int
unit_test_set_up(void **state)
{
    set_program_name("test-daemon-options");
    return 0;
}
