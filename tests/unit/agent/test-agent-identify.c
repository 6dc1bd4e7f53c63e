/* SPDX-License-Identifier: Apache-2.0 */

/* What the agent knows of jobs and cgroups. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/identify/cgroup.h"
#include "agent/identify/registry.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/cgroup-path.h"

static void
roots_stay_below_the_mount(void **state OVS_UNUSED)
{
    static const char *const good[] = { "a", "a/b", "a.b/..c/d" };
    static const char *const bad[] = {
        "", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b",
    };

    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        assert_true(cgroup_root_is_valid(good[i]));
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_false(cgroup_root_is_valid(bad[i]));
    }
}

/* Files. */

static char *
make_temp_dir(void)
{
    char *dir = xstrdup("/tmp/sct-identify-XXXXXX");

    assert_non_null(mkdtemp(dir));
    return dir;
}

static void
make_dir(const char *root, const char *name)
{
    char *path = xasprintf("%s/%s", root, name);

    assert_int_equal(mkdir(path, 0755), 0);
    free(path);
}

static void
write_file(const char *root, const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", root, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    free(path);
}

static void
remove_file(const char *root, const char *name)
{
    char *path = xasprintf("%s/%s", root, name);

    assert_int_equal(remove(path), 0);
    free(path);
}

static bool
exists(const char *root, const char *name)
{
    char *path = xasprintf("%s/%s", root, name);
    bool result = !access(path, F_OK);

    free(path);
    return result;
}

static void
finds_the_mount_of_a_hybrid_host(void **state OVS_UNUSED)
{
    char *dir = make_temp_dir();
    char *path = xasprintf("%s/mounts", dir);

    write_file(dir, "mounts",
               "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n"
               "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"
               "cgroup2 /mnt/a\\040b/unified cgroup2 rw 0 0\n");
    assert_is(cgroup_mount_from(path), "/mnt/a b/unified");

    write_file(dir, "mounts", "cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\n");
    assert_null(cgroup_mount_from(path));
    remove_file(dir, "mounts");
    assert_null(cgroup_mount_from(path));
    free(path);
    rmdir(dir);
    free(dir);
}

static void
see(const char *job, uint64_t id, uid_t uid OVS_UNUSED, void *r_)
{
    registry_see(r_, job, id, 0, 1000);
}

static void
count_gone(struct job *job, void *text_)
{
    strcat(text_, job->name);
    strcat(text_, " ");
}

static uint64_t
inode_of(const char *root, const char *name)
{
    char *path = xasprintf("%s/%s", root, name);
    struct stat s;

    assert_int_equal(stat(path, &s), 0);
    free(path);
    return s.st_ino;
}

static struct job *
job_of_cgroup(const struct registry *r, uint64_t id)
{
    struct claim_what what = { CLAIMS_CGROUP, id };
    const struct claim *claim = registry_best_claim(r, &what, NULL);

    return claim ? claim->job : NULL;
}

static void
look(const char *root, struct registry *r, char *gone)
{
    gone[0] = '\0';
    r->class.end = count_gone;
    r->aux = gone;
    registry_begin(r);
    assert_int_equal(cgroup_scan(root, see, r), 0);
    registry_end(r);
}

static void
scan_finds_jobs(void **state OVS_UNUSED)
{
    char *root = make_temp_dir();
    struct registry r;
    struct job *t0, *t1;
    char gone[256];

    registry_init(&r);
    make_dir(root, "asha");
    make_dir(root, "asha/t0");
    make_dir(root, "asha/t0/step.1");
    make_dir(root, "asha/t0/step.1/x y");
    make_dir(root, "asha/t1");
    make_dir(root, "asha/not a name");
    make_dir(root, "-bad");
    make_dir(root, "-bad/t0");
    write_file(root, "asha/cgroup.procs", "");

    /* One that is asked for, and nothing but it. */
    cgroup_see_job(root, "asha/t9", see, &r);
    cgroup_see_job(root, "asha/t0", see, &r);
    assert_int_equal(hmap_count(&r.jobs), 1);
    t0 = registry_find(&r, "asha/t0");
    assert_non_null(t0);
    look(root, &r, gone);
    assert_string_equal(gone, "");

    assert_int_equal(hmap_count(&r.jobs), 2);
    assert_ptr_equal(registry_find(&r, "asha/t0"), t0);
    t1 = registry_find(&r, "asha/t1");
    assert_non_null(t1);
    assert_int_equal(t0->cgroup, inode_of(root, "asha/t0"));
    assert_ptr_equal(job_of_cgroup(&r, t0->cgroup), t0);
    assert_ptr_equal(job_of_cgroup(&r, t1->cgroup), t1);
    assert_null(job_of_cgroup(&r, inode_of(root, "asha")));
    assert_null(job_of_cgroup(&r, 0));

    /* A job keeps its place over looks, and what is gone is told once. */
    remove_file(root, "asha/t0/step.1/x y");
    remove_file(root, "asha/t1");
    look(root, &r, gone);
    assert_string_equal(gone, "asha/t1 ");
    assert_ptr_equal(registry_find(&r, "asha/t0"), t0);
    assert_null(registry_find(&r, "asha/t1"));
    look(root, &r, gone);
    assert_string_equal(gone, "");

    /* Populated or not, and the removal of the last one out. */
    assert_false(cgroup_is_populated(root, "asha/gone"));
    write_file(root, "asha/t0/cgroup.events", "populated 1\nfrozen 0\n");
    assert_true(cgroup_is_populated(root, "asha/t0"));
    write_file(root, "asha/t0/cgroup.events", "populated 0\nfrozen 0\n");
    assert_false(cgroup_is_populated(root, "asha/t0"));
    assert_int_equal(cgroup_remove(root, "asha/t0"), EBUSY);
    assert_false(exists(root, "asha/t0/step.1"));
    remove_file(root, "asha/t0/cgroup.events");
    remove_file(root, "asha/cgroup.procs");
    remove_file(root, "asha/not a name");
    assert_int_equal(cgroup_remove(root, "asha/t0"), 0);
    assert_false(exists(root, "asha"));

    remove_file(root, "-bad/t0");
    remove_file(root, "-bad");
    assert_int_equal(rmdir(root), 0);
    assert_int_equal(cgroup_scan(root, see, &r), 0);
    registry_uninit(&r);
    free(root);
}

static void
count_hogs(const char *job, uint64_t id OVS_UNUSED, uid_t uid OVS_UNUSED,
           void *n_)
{
    int *n = n_;

    n[strncmp(job, "hog/", 4) != 0]++;
}

/* A directory with very many jobs is not read to its end. */
static void
a_cojob_hides_no_other(void **state OVS_UNUSED)
{
    char *root = make_temp_dir();
    char name[32];
    int n[2] = { 0, 0 };

    for (int i = 0; i < 1100; i++) {
        snprintf(name, sizeof name, i < 8 ? "c%d" : "hog", i);
        if (i <= 8) {
            make_dir(root, name);
        }
        snprintf(name, sizeof name, i < 8 ? "c%d/t0" : "hog/t%d", i);
        make_dir(root, name);
    }
    assert_int_equal(cgroup_scan(root, count_hogs, n), 0);
    assert_in_range(n[0], REGISTRY_MAX_JOBS, 1024);
    assert_int_equal(n[1], 8);
    for (int i = 1099; i >= 0; i--) {
        snprintf(name, sizeof name, i < 8 ? "c%d/t0" : "hog/t%d", i);
        remove_file(root, name);
        if (i <= 8) {
            snprintf(name, sizeof name, i < 8 ? "c%d" : "hog", i);
            remove_file(root, name);
        }
    }
    assert_int_equal(rmdir(root), 0);
    free(root);
}

static void
registry_is_bounded(void **state OVS_UNUSED)
{
    struct registry r;

    registry_init(&r);
    registry_begin(&r);
    for (int i = 0; i < REGISTRY_MAX_JOBS + 10; i++) {
        char *name = xasprintf("c/j%d", i);

        assert_int_equal(registry_see(&r, name, 100 + i, 0, 0) != NULL,
                         i < REGISTRY_MAX_JOBS);
        free(name);
    }
    assert_int_equal(hmap_count(&r.jobs), REGISTRY_MAX_JOBS);
    assert_int_equal(r.n_refused, 10);
    registry_uninit(&r);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roots_stay_below_the_mount),
        cmocka_unit_test(finds_the_mount_of_a_hybrid_host),
        cmocka_unit_test(scan_finds_jobs),
        cmocka_unit_test(a_cojob_hides_no_other),
        cmocka_unit_test(registry_is_bounded),
    };
    return cmocka_run_group_tests_name("agent-identify", tests, NULL, NULL);
}
