/* SPDX-License-Identifier: Apache-2.0 */

#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/directory.h"
#include "base/memory.h"
#include "tests/unit/unit-test.h"
#include "trainer/process/machine-use.h"

#define SECOND 1000000          /* Microseconds. */
#define NEAR 1e-6

/* A folder with the files of a machine with four processors. */
struct machine {
    char root[64];
    struct machine_use *use;
    int64_t now_us;
    int saved_stderr;
};

/* Writes ROOT/NAME. */
static void
write_file(const struct machine *m, const char *name, const char *text)
{
    char *path = message("%s/%s", m->root, name);
    char *folder = duplicate(path);
    FILE *stream;

    *strrchr(folder, '/') = '\0';
    assert_null(directory_create(folder));
    stream = fopen(path, "w");
    assert_non_null(stream);
    fputs(text, stream);
    assert_int_equal(fclose(stream), 0);
    free(folder);
    free(path);
}

static void
remove_file(const struct machine *m, const char *name)
{
    char *path = message("%s/%s", m->root, name);

    assert_int_equal(unlink(path), 0);
    free(path);
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

/* The time that two threads ran and waited, in milliseconds. */
static void
write_threads(const struct machine *m, int ran_ms, int waited_ms)
{
    char text[64];

    snprintf(text, sizeof text, "%d000000 %d000000 7\n", ran_ms, waited_ms);
    write_file(m, "proc/self/task/100/schedstat", text);
    write_file(m, "proc/self/task/101/schedstat", "5000000 0 7\n");
}

static void
write_v1(const struct machine *m)
{
    write_file(m, "proc/self/mountinfo",
               "25 20 0:21 / /proc rw - proc proc rw\n"
               "30 20 0:26 / /cg/cpu rw shared:9 - cgroup cgroup "
               "rw,cpu,cpuacct\n"
               "31 20 0:27 / /cg/unified rw - cgroup2 none rw\n");
    write_file(m, "proc/self/cgroup",
               "9:name=systemd:/\n2:cpu,cpuacct:/jobs/one\n0::/jobs/two\n");
    write_file(m, "cg/cpu/jobs/one/cpu.cfs_quota_us", "-1\n");
    write_file(m, "cg/cpu/jobs/one/cpu.cfs_period_us", "100000\n");
}

static void
write_v2(const struct machine *m)
{
    write_file(m, "proc/self/mountinfo",
               "31 20 0:27 / /cg rw,nosuid - cgroup2 cgroup2 rw\n");
    write_file(m, "proc/self/cgroup", "0::/jobs/one\n");
    write_file(m, "cg/jobs/one/cpu.max", "max 100000\n");
    write_file(m, "cg/jobs/one/memory.pressure",
               "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\n"
               "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
}

static int
set_up(void **state)
{
    struct machine *m = allocate(1, sizeof *m);

    *state = m;
    strcpy(m->root, "/tmp/test-machine-use.XXXXXX");
    assert_non_null(mkdtemp(m->root));
    write_file(m, "proc/self/status",
               "Name:\ttrainer\nCpus_allowed_list:\t0-1,3\n");
    write_file(m, "proc/meminfo",
               "MemTotal:       1000000 kB\nMemFree:   1 kB\n"
               "MemAvailable:    750000 kB\n");
    write_file(m, "proc/self/statm", "9999 0 0 0 0 0 0\n");
    write_file(m, "proc/pressure/memory",
               "some avg10=0.00 avg60=0.00 avg300=0.00 total=500\n");
    write_threads(m, 1000, 50);
    write_v2(m);
    m->now_us = 10 * SECOND;
    m->saved_stderr = -1;
    return 0;
}

static int
tear_down(void **state)
{
    struct machine *m = *state;

    machine_use_destroy(m->use);
    assert_int_equal(nftw(m->root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    free(m);
    return 0;
}

#define MACHINE_TEST(NAME) \
    UNIT_TEST_GIVEN(NAME, set_up, tear_down, struct machine *m)

/* Reads one second after the last time. */
static struct machine_sample
sample(struct machine *m)
{
    struct machine_sample s;

    if (!m->use) {
        m->use = machine_use_create(m->root, 1);
    }
    m->now_us += SECOND;
    machine_use_read(m->use, m->now_us, &s);
    return s;
}

/* Returns what a first sample prints on standard error. */
static char *
first_lines(struct machine *m)
{
    int saved = dup(2);
    FILE *stream = tmpfile();
    char *text = allocate(1, 1024);

    assert_non_null(stream);
    fflush(stderr);
    dup2(fileno(stream), 2);
    sample(m);
    sample(m);
    fflush(stderr);
    dup2(saved, 2);
    close(saved);
    rewind(stream);
    text[fread(text, 1, 1023, stream)] = '\0';
    fclose(stream);
    return text;
}

MACHINE_TEST(a_free_machine_has_no_use)
{
    char *lines = first_lines(m);
    struct machine_sample s;

    assert_is(lines, "");
    write_threads(m, 2000, 50);
    s = sample(m);
    assert_float_equal(s.cpu, 0, NEAR);
    assert_float_equal(s.stalled, 0, NEAR);
}

MACHINE_TEST(waits_count_as_use_by_others)
{
    sample(m);
    write_threads(m, 1600, 450);        /* 600 ms more, and 400 ms. */
    assert_float_equal(sample(m).cpu, 0.4, NEAR);
    write_threads(m, 2600, 450);
    assert_float_equal(sample(m).cpu, 0, NEAR);
}

MACHINE_TEST(a_quota_counts_from_the_moment_that_it_is_set)
{
    sample(m);
    write_file(m, "cg/jobs/one/cpu.max", "25000 100000\n");
    write_threads(m, 2000, 50);         /* Not yet slower. */
    assert_float_equal(sample(m).cpu, 0.75, NEAR);
    write_threads(m, 2250, 800);        /* Slowed down by the quota only. */
    assert_float_equal(sample(m).cpu, 0.75, NEAR);
    write_file(m, "cg/jobs/one/cpu.max", "max 100000\n");
    write_threads(m, 2500, 1550);
    assert_float_equal(sample(m).cpu, 0, NEAR);
}

MACHINE_TEST(waits_beyond_a_quota_count_too)
{
    write_file(m, "cg/jobs/one/cpu.max", "50000 100000\n");
    sample(m);
    write_threads(m, 1250, 800);        /* A quarter instead of a half. */
    assert_float_equal(sample(m).cpu, 0.75, NEAR);
}

MACHINE_TEST(the_lowest_quota_of_all_levels_counts)
{
    write_file(m, "cg/jobs/one/cpu.max", "50000 100000\n");
    write_file(m, "cg/jobs/cpu.max", "10000 50000\n");
    assert_float_equal(sample(m).quota, 0.8, NEAR);
}

MACHINE_TEST(threads_share_a_quota)
{
    m->use = machine_use_create(m->root, 2);
    write_file(m, "cg/jobs/one/cpu.max", "100000 100000\n");
    assert_float_equal(sample(m).quota, 0.5, NEAR);

    /* No more than the three processors that are allowed. */
    machine_use_destroy(m->use);
    m->use = machine_use_create(m->root, 8);
    write_file(m, "cg/jobs/one/cpu.max", "150000 100000\n");
    assert_float_equal(sample(m).quota, 0.5, NEAR);
}

MACHINE_TEST(quotas_of_version_1_count)
{
    write_v1(m);
    assert_float_equal(sample(m).quota, 0, NEAR);
    write_file(m, "cg/cpu/jobs/one/cpu.cfs_quota_us", "40000\n");
    assert_float_equal(sample(m).quota, 0.6, NEAR);
}

/* As in a container: the mount begins at its cgroup. */
MACHINE_TEST(a_mount_may_begin_below_the_top)
{
    write_file(m, "proc/self/mountinfo",
               "31 20 0:27 /box/7 /cg rw - cgroup2 cgroup2 rw\n");
    write_file(m, "proc/self/cgroup", "0::/box/7/jobs/one\n");
    write_file(m, "cg/jobs/one/cpu.max", "30000 100000\n");
    assert_float_equal(sample(m).quota, 0.7, NEAR);
}

MACHINE_TEST(a_process_may_move_to_another_cgroup)
{
    assert_float_equal(sample(m).quota, 0, NEAR);
    write_file(m, "cg/jobs/two/cpu.max", "30000 100000\n");
    write_file(m, "proc/self/cgroup", "0::/jobs/two\n");
    assert_float_equal(sample(m).quota, 0.7, NEAR);
}

MACHINE_TEST(memory_of_this_process_is_not_that_of_others)
{
    char text[64];

    assert_float_equal(sample(m).memory, 0.25, NEAR);
    snprintf(text, sizeof text, "9999 %ld 0\n",
             50000 / (sysconf(_SC_PAGESIZE) / 1024));
    write_file(m, "proc/self/statm", text);
    assert_float_equal(sample(m).memory, 0.2, NEAR);
}

MACHINE_TEST(the_tightest_limit_decides_what_memory_is_left)
{
    assert_float_equal(machine_memory_left(m->root), 750000 * 1024., 1);
    write_file(m, "cg/jobs/memory.max", "max\n");
    write_file(m, "cg/jobs/one/memory.max", "1000000\n");
    write_file(m, "cg/jobs/one/memory.current", "700000\n");
    write_file(m, "cg/jobs/one/memory.stat", "anon 1\ninactive_file 200000\n");
    assert_float_equal(machine_memory_left(m->root), 500000, 1);
    write_file(m, "cg/jobs/memory.max", "600000\n");
    write_file(m, "cg/jobs/memory.current", "599000\n");
    assert_float_equal(machine_memory_left(m->root), 1000, 1);
}

MACHINE_TEST(stalls_are_those_of_the_own_cgroup)
{
    sample(m);
    write_file(m, "proc/pressure/memory", "some avg10=0 total=900500\n");
    assert_float_equal(sample(m).stalled, 0, NEAR);
    write_file(m, "cg/jobs/one/memory.pressure", "some avg10=0 "
                                                 "total=251000\n");
    assert_float_equal(sample(m).stalled, 0.25, NEAR);
}

MACHINE_TEST(without_a_cgroup_stalls_are_those_of_the_machine)
{
    remove_file(m, "cg/jobs/one/memory.pressure");
    sample(m);
    write_file(m, "proc/pressure/memory", "some avg10=0 total=250500\n");
    assert_float_equal(sample(m).stalled, 0.25, NEAR);
}

MACHINE_TEST(samples_are_at_least_a_tick_apart)
{
    struct machine_sample s;

    sample(m);
    write_threads(m, 1500, 550);
    assert_float_equal(sample(m).cpu, 0.5, NEAR);
    write_threads(m, 9000, 550);
    machine_use_read(m->use, m->now_us + 9000, &s);
    assert_float_equal(s.cpu, 0.5, NEAR);
    machine_use_read(m->use, m->now_us + 10000, &s);
    assert_float_equal(s.cpu, 0, NEAR);
}

/* All files are missing, or contain something else. */
MACHINE_TEST(bad_files_are_named_in_one_line)
{
    static const char *const names[] = {
        "proc/self/status", "proc/meminfo", "proc/self/statm",
        "proc/pressure/memory", "proc/self/task/100/schedstat",
        "proc/self/task/101/schedstat", "proc/self/mountinfo",
        "proc/self/cgroup", "cg/jobs/one/cpu.max",
        "cg/jobs/one/memory.pressure",
    };
    const char *const line =
        "/proc/self/status, /proc/self/task/N/schedstat, "
        "/proc/self/cgroup, /proc/meminfo, /proc/self/statm, "
        "memory.pressure: not readable; the use by others that they "
        "have counts as 0\n";

    for (int pass = 0; pass < 2; pass++) {
        struct machine_sample s;

        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            if (pass) {
                remove_file(m, names[i]);
            } else {
                write_file(m, names[i], "0::rubbish -1 \xff\n\n99 total=x");
            }
        }
        machine_use_destroy(m->use);
        m->use = NULL;
        assert_is(first_lines(m), line);
        s = sample(m);
        assert_float_equal(s.cpu, 0, 0);
        assert_float_equal(s.memory, 0, 0);
        assert_float_equal(s.stalled, 0, 0);
    }
}

/* The files of this machine are readable, whatever it has. */
UNIT_TEST(this_machine_has_a_use_from_0_to_1)
{
    struct machine_use *use = machine_use_create("", 1);
    struct machine_sample s;

    for (int i = 1; i <= 2; i++) {
        machine_use_read(use, i * SECOND, &s);
        assert_true(s.cpu >= 0 && s.cpu <= 1);
        assert_true(s.memory >= 0 && s.memory <= 1);
        assert_true(s.stalled >= 0 && s.stalled <= 1);
    }
    machine_use_destroy(use);
}
