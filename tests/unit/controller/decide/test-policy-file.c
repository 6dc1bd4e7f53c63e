/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/decide/policy-file.h"
#include "openvswitch/vlog.h"
#include "policies/policy.h"
#include "tests/unit/unit-test.h"
#include "timeval.h"
#include "util.h"

static char *name;

/* Puts the policy in place as an editor does: by a new file of its name. */
static void
put_policy(const char *policy, const char *order)
{
    char *tmp = xasprintf("%s.new", name);
    FILE *f = fopen(tmp, "w");

    assert_non_null(f);
    fprintf(f, "{\"name\": \"%s\", \"order\": \"%s\", \"levels\":"
            " {\"dscp\": [48, 40], \"default_dscp\": 0,"
            " \"control_dscp\": 56}, \"lease_ms\": 10000,"
            " \"coalesce_ms\": 20, \"retag_ms\": 100, \"aging_s\": 600}",
            policy, order);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(rename(tmp, name), 0);
    free(tmp);
}

static int
set_up(void **state OVS_UNUSED)
{
    int fd;

    vlog_set_levels(NULL, VLF_CONSOLE, VLL_OFF);
    vlog_set_levels(NULL, VLF_SYSLOG, VLL_OFF);
    name = xstrdup("/tmp/sct-policy-file-XXXXXX");
    fd = mkstemp(name);
    close(fd);
    put_policy("one", "stage");
    return fd < 0;
}

static int
tear_down(void **state OVS_UNUSED)
{
    unlink(name);
    free(name);
    return 0;
}

FIXTURE_TEST(a_bad_file_keeps_the_old_policy)
{
    struct policy_file *pf;

    assert_null(policy_file_open(name, &pf));
    put_policy("two", "nonsense");
    assert_false(policy_file_reload(pf));
    assert_string_equal(policy_file_get(pf)->name, "one");
    assert_non_null(strstr(policy_file_error(pf), "/order"));

    put_policy("two", "plain"); /* Of the simulator only. */
    assert_false(policy_file_reload(pf));
    assert_string_equal(policy_file_get(pf)->name, "one");
    assert_non_null(strstr(policy_file_error(pf), "/order: \"plain\""));

    assert_int_equal(unlink(name), 0);
    assert_false(policy_file_reload(pf));
    assert_string_equal(policy_file_get(pf)->name, "one");
    assert_non_null(strstr(policy_file_error(pf), name));

    put_policy("three", "fair");
    assert_true(policy_file_reload(pf));
    assert_string_equal(policy_file_get(pf)->name, "three");
    assert_null(policy_file_error(pf));
    policy_file_close(pf);
}

static bool
run_until(struct policy_file *pf, bool wanted)
{
    long long deadline = time_msec() + (wanted ? 3000 : 700);
    bool changed = false;

    while (!changed && time_msec() < deadline) {
        changed = policy_file_run(pf);
        xnanosleep(10 * 1000 * 1000);
    }
    return changed;
}

FIXTURE_TEST(a_change_is_noticed)
{
    struct policy_file *pf;

    assert_null(policy_file_open(name, &pf));
    put_policy("two", "stage");
    assert_true(run_until(pf, true));
    assert_string_equal(policy_file_get(pf)->name, "two");

    put_policy("two", "stage");         /* Another file, the same policy. */
    assert_false(run_until(pf, false));
    policy_file_close(pf);
}

FIXTURE_TEST(without_a_good_file_nothing_begins)
{
    struct policy_file *pf;
    char *error;

    put_policy("two", "nonsense");
    error = policy_file_open(name, &pf);
    assert_non_null(error);
    assert_null(pf);
    free(error);
}
