/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "controller/southbound/topology/link-check.h"
#include "controller/southbound/topology/topology.h"
#include "openvswitch/json.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/json-get.h"

/* The clock, linked with --wrap. */
static long long int now = 1000;
long long int __wrap_time_msec(void);

long long int
__wrap_time_msec(void)
{
    return now;
}

static const struct lldp_key key = { .bytes = "0123456789abcdef", .n = 16 };

/* A leaf-spine fabric with cables by 'wire', and the last probe of each of its
 * eight ends. */
struct fabric {
    struct topology *t;
    struct link_check *lc;
    int wire[8];                /* Where end 'i' leads: an end, -1 nowhere. */
    struct lldp_frame {
        uint8_t bytes[LLDP_MAX_SIZE];
        size_t n;
    } last[8];
};

static int
end_of(const struct topology *t, const struct topology_port *port)
{
    for (size_t i = 0; i < 2 * t->n_links; i++) {
        const struct topology_port *p = &t->links[i / 2].ends[i % 2];

        if (p->sw == port->sw && p->port == port->port) {
            return i;
        }
    }
    fail();
    return -1;
}

static void
deliver(struct fabric *f, int end, const struct lldp_frame *frame)
{
    const struct topology_port *at = &f->t->links[end / 2].ends[end % 2];

    link_check_receive(f->lc, at->sw, at->port, frame->bytes, frame->n);
}

static bool
carry(const struct topology_port *from, const struct topology_port *to,
      const void *frame, size_t n, void *f_)
{
    struct fabric *f = f_;
    int end = end_of(f->t, from);

    assert_int_equal(end_of(f->t, to), end ^ 1);
    assert_true(n <= LLDP_MAX_SIZE);
    memcpy(f->last[end].bytes, frame, n);
    f->last[end].n = n;
    return true;
}

/* One interval: each end sends one frame, and then all arrive. */
static void
round_of(struct fabric *f)
{
    for (int i = 0; i < LINK_CHECK_MSEC; i += 100) {
        now += 100;
        link_check_run(f->lc, carry, f);
    }
    for (int i = 0; i < 8; i++) {
        if (f->wire[i] >= 0) {
            deliver(f, f->wire[i], &f->last[i]);
        }
    }
}

static void
fabric_init(struct fabric *f)
{
    memset(f, 0, sizeof *f);
    assert_null(topology_read("tests/topologies/good/leaf-spine.json",
                              &f->t));
    assert_int_equal(f->t->n_links, 4);
    f->lc = link_check_create(f->t, &key);
    for (int i = 0; i < 8; i++) {
        f->wire[i] = i ^ 1;
    }
}

static void
fabric_uninit(struct fabric *f)
{
    link_check_destroy(f->lc);
    topology_destroy(f->t);
}

static int64_t
count(const struct fabric *f, const char *name)
{
    struct json *json = link_check_to_json(f->lc);
    int64_t n = json_integer(shash_find_data(json->object, name));

    json_destroy(json);
    return n;
}

static size_t
n_alarms(const struct fabric *f, const char *first)
{
    struct json *alarms = json_array_create_empty();
    size_t n;

    link_check_alarms(f->lc, alarms);
    n = alarms->array.n;
    if (first) {
        assert_true(n > 0);
        assert_string_equal(
            json_string(json_get(alarms->array.elems[0], "text", JSON_STRING)),
            first);
    }
    json_destroy(alarms);
    return n;
}

UNIT_TEST(right_cables_raise_no_alarm)
{
    struct fabric f;

    fabric_init(&f);
    assert_int_equal(count(&f, "right"), 0);
    for (int i = 0; i < 5; i++) {
        round_of(&f);
        assert_int_equal(count(&f, "right"), 4);
        assert_int_equal(n_alarms(&f, NULL), 0);
    }
    /* One frame of each of the eight ends in five seconds, not more. */
    assert_in_range(count(&f, "sent"), 40, 41);
    assert_int_equal(count(&f, "replayed"), 0);
    fabric_uninit(&f);
}

UNIT_TEST(two_swapped_cables_raise_alarms)
{
    struct fabric f;

    fabric_init(&f);
    round_of(&f);

    /* Link 0, leaf0:10 - spine0:1, and link 1, leaf0:11 - spine1:1. */
    f.wire[0] = 3;
    f.wire[3] = 0;
    f.wire[2] = 1;
    f.wire[1] = 2;
    round_of(&f);
    assert_int_equal(n_alarms(&f, NULL), 0);
    round_of(&f);
    assert_int_equal(n_alarms(&f, "port 10 of \"leaf0\": probes are received "
                              "at port 1 of \"spine1\"; the topology "
                              "connects it to port 1 of \"spine0\""), 4);
    assert_int_equal(count(&f, "right"), 2);

    for (int i = 0; i < 8; i++) {
        f.wire[i] = i ^ 1;
    }
    round_of(&f);
    assert_int_equal(n_alarms(&f, NULL), 0);
    assert_int_equal(count(&f, "right"), 4);
    fabric_uninit(&f);
}

UNIT_TEST(a_silent_cable_raises_an_alarm)
{
    struct fabric f;

    fabric_init(&f);
    round_of(&f);
    f.wire[7] = -1;
    for (int i = 0; i < LINK_CHECK_LOST; i++) {
        assert_int_equal(n_alarms(&f, NULL), 0);
        round_of(&f);
    }
    assert_int_equal(n_alarms(&f, "port 2 of \"spine1\": probes are not "
                              "received anywhere; the topology connects "
                              "it to port 11 of \"leaf1\""), 1);
    assert_int_equal(count(&f, "right"), 3);
    fabric_uninit(&f);
}

UNIT_TEST(a_probe_without_the_key_is_ignored)
{
    struct fabric f;
    struct lldp_frame forged;

    fabric_init(&f);
    round_of(&f);
    round_of(&f);

    /* Every byte of the TLV, and each shorter frame. */
    forged = f.last[0];
    for (size_t i = 14; i < forged.n; i++) {
        forged.bytes[i] ^= 0x10;
        deliver(&f, 3, &forged);
        forged.bytes[i] ^= 0x10;
        if (i % 8 == 0) {
            round_of(&f);       /* Renew the limit of frames. */
        }
    }
    for (forged.n--; forged.n; forged.n--) {
        deliver(&f, 3, &forged);
        if (forged.n % 8 == 0) {
            round_of(&f);
        }
    }
    assert_true(count(&f, "forged") >= 60);
    assert_int_equal(n_alarms(&f, NULL), 0);
    assert_int_equal(count(&f, "right"), 4);
    fabric_uninit(&f);
}

UNIT_TEST(a_probe_counts_once)
{
    struct fabric f, other;
    struct lldp_frame old;

    fabric_init(&f);
    round_of(&f);
    old = f.last[0];
    deliver(&f, 1, &old);
    deliver(&f, 3, &old);
    assert_int_equal(count(&f, "replayed"), 2);

    /* From another controller, or from the same one before a restart. */
    fabric_init(&other);
    round_of(&other);
    deliver(&f, 3, &other.last[0]);
    assert_int_equal(count(&f, "replayed"), 3);
    fabric_uninit(&other);

    /* A delayed probe. */
    f.wire[0] = -1;
    round_of(&f);
    old = f.last[0];
    round_of(&f);
    round_of(&f);
    deliver(&f, 3, &old);
    assert_int_equal(count(&f, "replayed"), 4);
    fabric_uninit(&f);
}

/* An attacker's copy always arrives before the probe. */
UNIT_TEST(a_copy_that_overtakes_a_probe_raises_no_alarm)
{
    struct fabric f;

    fabric_init(&f);
    for (int i = 0; i < 6; i++) {
        for (int ms = 0; ms < LINK_CHECK_MSEC; ms += 100) {
            now += 100;
            link_check_run(f.lc, carry, &f);
        }
        deliver(&f, 3, &f.last[0]);
        for (int j = 0; j < 8; j++) {
            deliver(&f, j ^ 1, &f.last[j]);
        }
        assert_int_equal(n_alarms(&f, NULL), 0);
    }
    assert_int_equal(count(&f, "replayed"), 6);
    assert_int_equal(count(&f, "right"), 4);
    fabric_uninit(&f);
}

UNIT_TEST(frames_above_the_limit_are_ignored)
{
    struct lldp_frame junk = { .n = 60 };
    struct fabric f;

    fabric_init(&f);
    round_of(&f);
    for (int i = 0; i < 10000; i++) {
        deliver(&f, 0, &junk);
    }
    deliver(&f, 0, &f.last[1]);         /* Above the limit. */
    assert_int_equal(count(&f, "replayed"), 0);
    round_of(&f);
    deliver(&f, 0, &f.last[1]);
    assert_int_equal(count(&f, "replayed"), 1);
    assert_int_equal(n_alarms(&f, NULL), 0);
    fabric_uninit(&f);
}

/* Writes a key of 'n' bytes to a file with 'mode', and reads it. */
static char *
read_key(size_t n, mode_t mode, struct lldp_key *k)
{
    char file[] = "/tmp/test-link-check-XXXXXX";
    int fd = mkstemp(file);
    char *error;

    assert_true(fd >= 0);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(write(fd, "k", 1), 1);
    }
    fchmod(fd, mode);
    close(fd);
    error = lldp_key_read(file, k);
    unlink(file);
    return error;
}

UNIT_TEST(an_invalid_key_file_is_refused)
{
    static const struct {
        size_t n;
        mode_t mode;
        const char *error;
    } rows[] = {
        { 0, 0600, "not a key, a file of 16 to 4096 bytes" },
        { LLDP_MIN_KEY - 1, 0600, "not a key" },
        { LLDP_MAX_KEY + 1, 0600, "not a key" },
        { 32, 0640, "mode 0640, a key that its owner alone can read" },
        { 32, 0604, "mode 0604" },
    };
    struct lldp_key k;
    char *error;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_says(read_key(rows[i].n, rows[i].mode, &k), rows[i].error);
    }
    error = lldp_key_read("/nonexistent/key", &k);
    assert_is(error, "/nonexistent/key: No such file or directory, "
                     "a file is allowed");
    assert_null(read_key(LLDP_MIN_KEY, 0400, &k));
    assert_int_equal(k.n, LLDP_MIN_KEY);
    assert_null(read_key(LLDP_MAX_KEY, 0600, &k));
    assert_int_equal(k.n, LLDP_MAX_KEY);
}
