/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/actuate/bypass.h"
#include "agent/agent.h"
#include "agent/identify/bpf/identity.h"
#include "tests/unit/unit-test.h"
#include "util.h"

/* Parses "stagecoach-agent --host=h0" with one or two more options. */
static const struct agent_config *
parse(const char *option, const char *other)
{
    static struct agent_config configs[16]; /* All stay. */
    static size_t n;
    char *argv[] = {
        CONST_CAST(char *, "stagecoach-agent"),
        CONST_CAST(char *, "--host=h0"),
        CONST_CAST(char *, option), CONST_CAST(char *, other), NULL,
    };

    agent_options_parse(other ? 4 : 3, argv, &configs[n]);
    return &configs[n++];
}

UNIT_TEST(a_command_line_keeps_its_bypass_when_another_is_parsed)
{
    const struct agent_config *first =
        parse("--bypass=node-h0:host,uplink", NULL);
    const struct agent_config *second = parse("--bypass=left,right", NULL);

    assert_string_equal(first->bypass->netns, "node-h0");
    assert_string_equal(first->bypass->iface, "host");
    assert_string_equal(first->bypass->other, "uplink");
    assert_string_equal(second->bypass->netns, "");
    assert_string_equal(second->bypass->iface, "left");
    assert_string_equal(second->bypass->other, "right");
}

UNIT_TEST(the_last_bypass_of_a_command_line_counts)
{
    const struct agent_config *config = parse("--bypass=a,b", "--bypass=c,d");

    assert_string_equal(config->bypass->iface, "c");
    assert_string_equal(config->bypass->other, "d");
}

UNIT_TEST(addresses_of_controllers_imply_remotes)
{
    const struct agent_config *config =
        parse("--controllers=10.0.0.1,fd00::1", NULL);

    assert_string_equal(config->db, "ssl:10.0.0.1:6640,ssl:[fd00::1]:6640");
    assert_string_equal(config->controller,
                        "ssl:10.0.0.1:6650,ssl:[fd00::1]:6650");
}

UNIT_TEST(an_explicit_remote_replaces_that_of_the_controllers)
{
    const struct agent_config *config =
        parse("--controllers=10.0.0.1", "--db=unix:/run/x");

    assert_string_equal(config->db, "unix:/run/x");
    assert_string_equal(config->controller, "ssl:10.0.0.1:6650");
}

UNIT_TEST(an_uplink_chooses_the_kernel)
{
    const struct agent_config *config;

    assert_int_equal(parse("--rate=1Gbit", NULL)->actuator, AGENT_SHIM);
    config = parse("--uplink=eth0", "--uplink=eth1");
    assert_int_equal(config->actuator, AGENT_BPF);
    assert_int_equal(config->n_uplinks, 2);
    assert_string_equal(config->uplinks[1], "eth1");
    assert_string_equal(config->pins, IDENTITY_PINS);
    assert_int_equal(parse("--actuator=observe", "--uplink=eth0")->actuator,
                     AGENT_OBSERVE);
}

UNIT_TEST(an_actuator_must_fit_its_options)
{
    static const struct {
        const char *option, *other;
        int status;
    } cases[] = {
        { "--actuator=kernel", "--uplink=eth0", 2 },
        { "--actuator=bpf", NULL, 2 },
        { "--actuator=shim", "--uplink=eth0", 0 },
        { "--uplink=an-interface-of-17", NULL, 2 },
        { "--uplink=eth0", "--mark=22", 2 },
        { "--uplink=eth0", "--mark=21", 0 },
        { "--uplink=eth0", "--mark=none", 0 },
        { "--uplink=eth0", "--kernel-cgroup=/x", 2 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int status;
        pid_t pid = fork();

        if (!pid) {
            assert_non_null(freopen("/dev/null", "w", stderr));
            parse(cases[i].option, cases[i].other);
            _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(WEXITSTATUS(status), cases[i].status);
    }
}

int
unit_test_set_up(void **state OVS_UNUSED)
{
    set_program_name("test-agent-options");
    return 0;
}
