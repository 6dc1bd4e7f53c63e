/* SPDX-License-Identifier: Apache-2.0 */

/* What the agent knows of jobs, cgroups and flows. */

#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/identify/cgroup.h"
#include "agent/identify/flow-table.h"
#include "agent/identify/miss-filter.h"
#include "agent/identify/registry.h"
#include "agent/identify/sock-diag.h"
#include "util.h"
#include "wire/cgroup-path.h"

static struct shim_flow_key
make_key(uint16_t port)
{
    struct shim_flow_key key;

    memset(&key, 0, sizeof key);
    key.family = 4;
    key.protocol = IPPROTO_TCP;
    key.local_port = htons(port);
    key.remote_port = htons(80);
    key.local[0] = key.remote[0] = 10;
    return key;
}

/* Names. */

static void
names_are_checked(void **state OVS_UNUSED)
{
    static const char *const good[] = {
        "a", "asha-7", "A.b_c-9", "0", "abcdefghijklmnopqrstuvwxyz01234",
    };
    static const char *const bad[] = {
        "", ".", "..", "-a", "_a", "a/b", "a b", "a\n", "\xc3\xa4", "a\"",
        "abcdefghijklmnopqrstuvwxyz012345",
    };

    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        assert_true(cgroup_name_is_valid(good[i]));
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_false(cgroup_name_is_valid(bad[i]));
    }
}

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
    char *mount;

    write_file(dir, "mounts",
               "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n"
               "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"
               "cgroup2 /mnt/a\\040b/unified cgroup2 rw 0 0\n");
    mount = cgroup_mount_from(path);
    assert_string_equal(mount, "/mnt/a b/unified");
    free(mount);

    write_file(dir, "mounts", "cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\n");
    assert_null(cgroup_mount_from(path));
    remove_file(dir, "mounts");
    assert_null(cgroup_mount_from(path));
    free(path);
    rmdir(dir);
    free(dir);
}

static void
see(const char *job, uint64_t id, bool below, uid_t uid OVS_UNUSED,
    void *r_)
{
    registry_see(r_, job, id, below, 0, 1000);
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

    return registry_owner(r, &what, 1, NULL);
}

static void
look(const char *root, struct registry *r, char *gone)
{
    gone[0] = '\0';
    registry_begin(r);
    assert_int_equal(cgroup_scan(root, see, r), 0);
    registry_end(r, count_gone, gone);
}

static void
scan_finds_jobs_and_what_is_below(void **state OVS_UNUSED)
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
    assert_int_equal(cgroup_see_job(root, "asha/t9", see, &r), ENOENT);
    assert_int_equal(cgroup_see_job(root, "asha/t0", see, &r), 0);
    assert_int_equal(hmap_count(&r.jobs), 1);
    t0 = registry_find(&r, "asha/t0");
    assert_non_null(t0);
    assert_ptr_equal(job_of_cgroup(
                         &r, inode_of(root, "asha/t0/step.1/x y")), t0);
    look(root, &r, gone);
    assert_string_equal(gone, "");

    assert_int_equal(hmap_count(&r.jobs), 2);
    assert_ptr_equal(registry_find(&r, "asha/t0"), t0);
    t1 = registry_find(&r, "asha/t1");
    assert_non_null(t1);
    assert_int_equal(t0->cgroup, inode_of(root, "asha/t0"));
    assert_ptr_equal(job_of_cgroup(&r, t0->cgroup), t0);
    assert_ptr_equal(job_of_cgroup(
                         &r, inode_of(root, "asha/t0/step.1/x y")), t0);
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
registry_is_bounded(void **state OVS_UNUSED)
{
    struct registry r;

    registry_init(&r);
    registry_begin(&r);
    for (int i = 0; i < REGISTRY_MAX_JOBS + 10; i++) {
        char *name = xasprintf("c/j%d", i);

        assert_int_equal(registry_see(&r, name, 100 + i, false, 0, 0) != NULL,
                         i < REGISTRY_MAX_JOBS);
        free(name);
    }
    assert_null(registry_see(&r, "c/other", 7, true, 0, 0));
    assert_int_equal(hmap_count(&r.jobs), REGISTRY_MAX_JOBS);
    assert_int_equal(r.n_refused, 10);
    registry_uninit(&r);
}

/* Flows. */

static void
count_flow(const struct flow *flow OVS_UNUSED, void *n)
{
    ++*(int *) n;
}

static void
flow_stays_for_two_dumps_and_two_seconds(void **state OVS_UNUSED)
{
    struct shim_flow_key key = make_key(1);
    struct flow_table ft;
    struct job a, b;
    int n = 0;

    flow_table_init(&ft);
    flow_table_begin(&ft);
    assert_true(flow_table_see(&ft, &key, &a, 1, 0));
    assert_false(flow_table_see(&ft, &key, &a, 1, 0));
    flow_table_end(&ft, 0, count_flow, &n);

    /* Long ago but only one dump, and then two dumps but not long ago. */
    flow_table_begin(&ft);
    flow_table_end(&ft, 9000, count_flow, &n);
    assert_int_equal(n, 0);
    flow_table_begin(&ft);
    assert_false(flow_table_see(&ft, &key, &a, 1, 10000));
    flow_table_end(&ft, 10000, count_flow, &n);
    for (int i = 0; i < 5; i++) {
        flow_table_begin(&ft);
        flow_table_end(&ft, 10000 + FLOW_GONE_MS, count_flow, &n);
    }
    assert_int_equal(n, 0);

    /* The addresses are reused by another job. */
    flow_table_begin(&ft);
    assert_true(flow_table_see(&ft, &key, &b, 1, 12000));
    flow_table_end(&ft, 12000, count_flow, &n);
    assert_ptr_equal(CONTAINER_OF(hmap_first(&ft.flows), struct flow,
                                  node)->job, &b);

    for (int i = 0; i < 2; i++) {
        flow_table_begin(&ft);
        flow_table_end(&ft, 12001 + FLOW_GONE_MS, count_flow, &n);
    }
    assert_int_equal(n, 1);
    assert_true(hmap_is_empty(&ft.flows));

    flow_table_see(&ft, &key, &a, 1, 0);
    flow_table_forget_job(&ft, &b, count_flow, &n);
    assert_int_equal(n, 1);
    flow_table_forget_job(&ft, &a, count_flow, &n);
    assert_int_equal(n, 2);
    flow_table_uninit(&ft);
}

/* Takes what is due at 'now', as if no socket had it.  Returns how many. */
static int
look_in_vain(struct miss_filter *mf, long long now)
{
    struct shim_flow_key key;
    long long since;
    int n = 0;

    while (miss_filter_next(mf, now, &key, &since)) {
        miss_filter_retry(mf, &key, now);
        n++;
    }
    return n;
}

static void
miss_is_looked_at_at_once(void **state OVS_UNUSED)
{
    struct shim_flow_key key = make_key(1), next;
    struct miss_filter mf;
    long long since;

    miss_filter_init(&mf);
    assert_int_equal(miss_filter_due(&mf), LLONG_MAX);
    assert_false(miss_filter_next(&mf, 1000, &next, &since));
    miss_filter_report(&mf, &key, 1000);
    miss_filter_report(&mf, &key, 1001);
    assert_true(miss_filter_due(&mf) <= 1000);
    assert_true(miss_filter_next(&mf, 1001, &next, &since));
    assert_true(flow_key_equal(&key, &next));
    assert_int_equal(since, 1000);

    /* It was a job's. */
    miss_filter_resolve(&mf, &key);
    assert_int_equal(miss_filter_due(&mf), LLONG_MAX);
    assert_int_equal(hmap_count(&mf.misses), 0);
    miss_filter_uninit(&mf);
}

static void
flow_of_nobody_asks_once_in_a_while(void **state OVS_UNUSED)
{
    struct shim_flow_key key = make_key(1);
    struct miss_filter mf;
    long long since;
    int n_lookups = 0;

    miss_filter_init(&mf);
    for (long long now = 0; now < 20000; now += 10) {
        miss_filter_report(&mf, &key, now);
        while (miss_filter_next(&mf, now, &key, &since)) {
            miss_filter_quiet(&mf, &key, now + MISS_NO_JOB_MS);
            n_lookups++;
        }
    }
    assert_in_range(n_lookups, 3, 5);
    miss_filter_uninit(&mf);
}

static void
flow_without_socket_is_retried_ever_less(void **state OVS_UNUSED)
{
    struct shim_flow_key key = make_key(1);
    struct miss_filter mf;
    int n_lookups = 0, n_early = 0;

    miss_filter_init(&mf);
    miss_filter_report(&mf, &key, 0);
    for (long long now = 0; now < 10000; now++) {
        int n = look_in_vain(&mf, now);

        n_lookups += n;
        n_early += now < 50 ? n : 0;
    }
    assert_in_range(n_early, 4, 6);
    assert_int_equal(n_lookups, MISS_MAX_TRIES + 1);

    /* Nothing wakes us for it, but it is not forgotten for ever. */
    assert_int_equal(miss_filter_due(&mf), LLONG_MAX);
    miss_filter_report(&mf, &key, 10000);
    assert_int_equal(look_in_vain(&mf, 10000), 1);
    miss_filter_uninit(&mf);
}

static void
deferred_flow_comes_at_its_time(void **state OVS_UNUSED)
{
    struct shim_flow_key a = make_key(1), b = make_key(2), key;
    struct miss_filter mf;
    long long since;

    miss_filter_init(&mf);
    miss_filter_report(&mf, &a, 0);
    miss_filter_report(&mf, &b, 0);
    assert_true(miss_filter_next(&mf, 0, &key, &since));
    assert_true(miss_filter_next(&mf, 0, &key, &since));
    miss_filter_defer(&mf, &a, 200);
    miss_filter_defer(&mf, &b, 100);
    assert_int_equal(miss_filter_due(&mf), 100);
    assert_false(miss_filter_next(&mf, 99, &key, &since));
    assert_true(miss_filter_next(&mf, 100, &key, &since));
    assert_true(flow_key_equal(&key, &b));
    miss_filter_resolve(&mf, &b);
    assert_int_equal(miss_filter_due(&mf), 200);
    miss_filter_resolve(&mf, &a);
    assert_int_equal(miss_filter_due(&mf), LLONG_MAX);
    miss_filter_uninit(&mf);
}

static struct shim_flow_key
make_many(int i)
{
    struct shim_flow_key key = make_key(i);

    key.remote[2] = i >> 16;
    return key;
}

static void
storm_of_new_flows_is_bounded(void **state OVS_UNUSED)
{
    struct miss_filter mf;
    int n_lookups = 0;

    miss_filter_init(&mf);
    for (int now = 0; now < 10000; now++) {
        for (int i = 0; i < 40; i++) {
            struct shim_flow_key key = make_many(40 * now + i);

            miss_filter_report(&mf, &key, now);
        }
        n_lookups += look_in_vain(&mf, now);
        assert_true(hmap_count(&mf.misses) <= MISS_FILTER_MAX);
    }
    assert_in_range(n_lookups, 10000 * MISS_LOOKUPS_PER_MS / 2,
                    10000 * MISS_LOOKUPS_PER_MS + MISS_LOOKUPS_MAX);
    miss_filter_uninit(&mf);
}

static void
new_flow_goes_before_old_strangers(void **state OVS_UNUSED)
{
    struct miss_filter mf;
    struct shim_flow_key key, next;
    long long since;

    miss_filter_init(&mf);
    for (int i = 0; i < 50000; i++) {
        key = make_many(i);
        miss_filter_report(&mf, &key, 0);
    }
    for (long long now = 0; now < 4000; now++) {
        while (miss_filter_next(&mf, now, &next, &since)) {
            miss_filter_quiet(&mf, &next, now + 1);
        }
    }
    for (int i = 0; i < 50000; i++) {
        key = make_many(i);
        miss_filter_report(&mf, &key, 5000);
    }
    key = make_many(60000);
    miss_filter_report(&mf, &key, 5000);
    assert_true(miss_filter_next(&mf, 5000, &next, &since));
    assert_true(flow_key_equal(&key, &next));
    miss_filter_uninit(&mf);
}

/* Sockets. */

struct wish {
    struct shim_flow_key key;
    int n;
    uint64_t cgroup;
};

static void
look_for(const struct sock_info *info, void *wish_)
{
    struct wish *wish = wish_;

    assert_int_not_equal(info->key.remote[0], 127);
    if (flow_key_equal(&info->key, &wish->key)) {
        wish->n++;
        wish->cgroup = info->cgroup;
    }
}

/* Makes a key of the IPv4 connection of 'fd', whose addresses may be in IPv6
 * clothes. */
static void
key_of_socket(int fd, struct shim_flow_key *key)
{
    struct sockaddr_in6 local, remote;
    socklen_t n = sizeof local;

    memset(key, 0, sizeof *key);
    assert_int_equal(getsockname(fd, (struct sockaddr *) &local, &n), 0);
    n = sizeof remote;
    assert_int_equal(getpeername(fd, (struct sockaddr *) &remote, &n), 0);
    key->family = 4;
    key->protocol = IPPROTO_TCP;
    key->local_port = local.sin6_port;
    key->remote_port = remote.sin6_port;
    memcpy(key->local, &local.sin6_addr.s6_addr[12], 4);
    memcpy(key->remote, &remote.sin6_addr.s6_addr[12], 4);
}

/* An address of this host that is not 127.0.0.0/8, or 0. */
static uint32_t
own_address(void)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET,
        .sin_port = htons(9),
        .sin_addr.s_addr = htonl(0x0a000001),
    };
    socklen_t n = sizeof to;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    bool ok = !connect(fd, (struct sockaddr *) &to, sizeof to)
              && !getsockname(fd, (struct sockaddr *) &to, &n);

    close(fd);
    return ok && (ntohl(to.sin_addr.s_addr) >> 24) != 127
           ? to.sin_addr.s_addr : 0;
}

static void
dump_shows_a_mapped_connection_as_ipv4(void **state OVS_UNUSED)
{
    uint32_t address = own_address();
    struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6 };
    socklen_t n = sizeof sin6;
    struct sock_diag *sd;
    struct wish wish = { .n = 0 };
    struct sock_info info;
    struct stat s;
    int listener, fd, off = 0;

    if (!address) {
        skip();
    }
    assert_int_equal(sock_diag_open(NULL, &sd), 0);
    sin6.sin6_addr.s6_addr[10] = sin6.sin6_addr.s6_addr[11] = 0xff;
    memcpy(&sin6.sin6_addr.s6_addr[12], &address, 4);
    listener = socket(AF_INET6, SOCK_STREAM, 0);
    if (listener < 0) {
        sock_diag_close(sd);
        skip();
    }
    setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    assert_int_equal(bind(listener, (struct sockaddr *) &sin6, n), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *) &sin6, &n), 0);
    fd = socket(AF_INET6, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *) &sin6, n), 0);

    key_of_socket(fd, &wish.key);
    assert_int_equal(sock_diag_dump(sd, NULL, 0, look_for, &wish), 0);
    assert_int_equal(wish.n, 1);

    /* Alone, and by its cgroup. */
    assert_int_equal(fstat(fd, &s), 0);
    assert_int_equal(sock_diag_find(sd, &wish.key, &info), 0);
    assert_int_equal(info.inode, s.st_ino);
    assert_int_equal(info.cgroup, wish.cgroup);
    for (size_t i = 1; i <= SOCK_DIAG_MAX_CGROUPS + 1; i++) {
        uint64_t cgroups[SOCK_DIAG_MAX_CGROUPS + 1];

        /* First, last and not there. */
        for (size_t j = 0; j < i; j++) {
            cgroups[j] = 1000000000 + j;
        }
        wish.n = 0;
        assert_int_equal(sock_diag_dump(sd, cgroups, i, look_for, &wish), 0);
        assert_int_equal(wish.n, i > SOCK_DIAG_MAX_CGROUPS);
        cgroups[i % 2 ? 0 : i - 1] = info.cgroup;
        wish.n = 0;
        assert_int_equal(sock_diag_dump(sd, cgroups, i, look_for, &wish), 0);
        assert_int_equal(wish.n, 1);
    }

    /* A listener is not the connection that could be made to it. */
    wish.key.remote_port = wish.key.local_port;
    wish.key.local_port = sin6.sin6_port;
    assert_int_equal(sock_diag_find(sd, &wish.key, &info), 0);
    wish.key.remote_port = htons(1);
    assert_int_equal(sock_diag_find(sd, &wish.key, &info), ENOENT);
    wish.key.local_port = htons(1);
    assert_int_equal(sock_diag_find(sd, &wish.key, &info), ENOENT);
    close(fd);
    close(listener);
    sock_diag_close(sd);
}

static void
namespace_that_is_not_there_is_an_error(void **state OVS_UNUSED)
{
    struct sock_diag *sd;

    assert_int_equal(sock_diag_open("/run/netns/sct-no-such", &sd), ENOENT);
    assert_null(sd);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(roots_stay_below_the_mount),
        cmocka_unit_test(finds_the_mount_of_a_hybrid_host),
        cmocka_unit_test(scan_finds_jobs_and_what_is_below),
        cmocka_unit_test(registry_is_bounded),
        cmocka_unit_test(flow_stays_for_two_dumps_and_two_seconds),
        cmocka_unit_test(miss_is_looked_at_at_once),
        cmocka_unit_test(flow_of_nobody_asks_once_in_a_while),
        cmocka_unit_test(flow_without_socket_is_retried_ever_less),
        cmocka_unit_test(deferred_flow_comes_at_its_time),
        cmocka_unit_test(new_flow_goes_before_old_strangers),
        cmocka_unit_test(storm_of_new_flows_is_bounded),
        cmocka_unit_test(dump_shows_a_mapped_connection_as_ipv4),
        cmocka_unit_test(namespace_that_is_not_there_is_an_error),
    };
    return cmocka_run_group_tests_name("agent-identify", tests, NULL, NULL);
}
