/* SPDX-License-Identifier: Apache-2.0 */

/* Which host gets which key, and what a host that lies gains. */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "controller/hosts/pair-keys.h"
#include "controller/model/telemetry-report.h"
#include "openvswitch/json.h"
#include "tests/unit/unit-test.h"
#include "timeval.h"
#include "util.h"

#define NOTHING "nothing"

static long long now;

long long __wrap_time_msec(void);
long long
__wrap_time_msec(void)
{
    return now;
}

static int
set_up(void **state)
{
    now = 1000000;
    *state = pair_keys_create();
    return 0;
}

static int
tear_down(void **state)
{
    pair_keys_destroy(*state);
    return 0;
}

#define KEYS_TEST(NAME) \
    UNIT_TEST_GIVEN(NAME, set_up, tear_down, struct pair_keys *pk)

/* A report of 'host', with addresses and peers in JSON. */
static void
report(struct pair_keys *pk, const char *host, bool first, const char *own,
       const char *remote)
{
    char *text = xasprintf(
        "[{\"version\": 1, \"host\": \"%s\", \"state\": \"fair\", "
        "\"applied\": 0, \"ports\": {}, \"jobs\": [], \"ip_bytes\": 0, "
        "\"default_bytes\": 0, \"peers\": {\"own\": [%s], "
        "\"remote\": [%s]}}]",
        host, own, remote);
    struct json *json = json_from_string(text);
    struct telemetry_report *r;

    assert_null(telemetry_report_from_json(json, &r));
    pair_keys_learn(pk, r, first);
    telemetry_report_destroy(r);
    json_destroy(json);
    free(text);
}

#define PEER(N) "{\"address\": \"10.0.0." #N "\"}"

/* hN with the address 10.0.0.N, and one peer. */
#define REPORT(PK, N, FIRST, REMOTE) \
    report(PK, "h" #N, FIRST, "\"10.0.0." #N "\"", REMOTE)

/* Returns the keys that 'host' gets, as text: addresses of keys, those of
 * removed ones with "-", and stores the last key. */
static char *
keys_sent(struct pair_keys *pk, const char *host, char key[33])
{
    struct json *changes = pair_keys_take(pk, host);
    char *text = xstrdup(changes ? "" : NOTHING);

    for (size_t i = 0; changes && i < changes->array.n; i++) {
        const struct shash *change = json_object(changes->array.elems[i]);
        const struct json *has = shash_find_data(change, "key");
        const struct json *ip = shash_find_data(change, "address");
        char *longer = xasprintf("%s%s%s%s", text, *text ? " " : "",
                                 has ? "" : "-", json_string(ip));

        free(text);
        text = longer;
        if (has && key) {
            assert_int_equal(strlen(json_string(has)), 32);
            strcpy(key, json_string(has));
        }
    }
    json_destroy(changes);
    return text;
}

KEYS_TEST(two_hosts_with_connections_get_one_key)
{
    char a[33], b[33], c[33];

    REPORT(pk, 1, true, PEER(2));
    assert_is(keys_sent(pk, "h1", NULL), ""); /* h2 is not known yet. */
    REPORT(pk, 2, true, PEER(1) "," PEER(3));
    assert_is(keys_sent(pk, "h2", b), "10.0.0.1");
    assert_is(keys_sent(pk, "h1", a), "10.0.0.2");
    assert_string_equal(a, b);
    assert_is(keys_sent(pk, "h1", NULL), NOTHING);
    REPORT(pk, 3, true, "");
    assert_is(keys_sent(pk, "h3", NULL), "");
    assert_is(keys_sent(pk, "h2", c), "10.0.0.3");
    assert_string_not_equal(b, c);

    /* A connection of the same agent, or of another one, begins again. */
    REPORT(pk, 1, true, PEER(2));
    assert_is(keys_sent(pk, "h1", b), "10.0.0.2");
    assert_string_equal(a, b);

    /* Another hour, another leader. */
    now += 3599 * 1000;
    pair_keys_run(pk, false);
    REPORT(pk, 1, false, PEER(2));
    REPORT(pk, 2, false, PEER(1));
    assert_is(keys_sent(pk, "h1", NULL), NOTHING);
    now += 1001;
    pair_keys_run(pk, false);
    assert_is(keys_sent(pk, "h1", a), "10.0.0.2");
    assert_is(keys_sent(pk, "h2", b), "10.0.0.1");
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
}

static char *
alarms(struct pair_keys *pk)
{
    struct json *json = json_array_create_empty();
    char *text;

    pair_keys_alarms(pk, json);
    text = json_to_string(json, JSSF_SORT);
    json_destroy(json);
    return text;
}

KEYS_TEST(an_address_of_two_hosts_is_of_neither)
{
    REPORT(pk, 1, true, PEER(2));
    REPORT(pk, 2, true, PEER(1));
    assert_is(keys_sent(pk, "h1", NULL), "10.0.0.2");
    assert_is(keys_sent(pk, "h2", NULL), "10.0.0.1");
    assert_is(alarms(pk), "[]");
    report(pk, "h3", true, "\"10.0.0.3\",\"10.0.0.2\"", PEER(1));
    assert_is(keys_sent(pk, "h1", NULL), "-10.0.0.2");
    assert_is(keys_sent(pk, "h3", NULL), "10.0.0.1");
    assert_is(keys_sent(pk, "h1", NULL), NOTHING);
    assert_is(alarms(pk),
              "[{\"code\":\"address-claimed\",\"count\":1,"
              "\"text\":\"two hosts report an address as theirs, and shims "
              "believe neither: 10.0.0.2 of h2 and h3\"}]");

    /* A minute after its end. */
    now += 60001;
    REPORT(pk, 1, false, PEER(2));
    REPORT(pk, 2, false, PEER(1));
    assert_is(keys_sent(pk, "h1", NULL), "10.0.0.2");
    assert_is(alarms(pk), "[]");
}

KEYS_TEST(a_removed_host_has_no_keys)
{
    REPORT(pk, 1, true, PEER(2));
    REPORT(pk, 2, true, PEER(1));
    assert_is(keys_sent(pk, "h1", NULL), "10.0.0.2");
    pair_keys_forget(pk, "h2");
    assert_is(keys_sent(pk, "h2", NULL), NOTHING);
    assert_is(keys_sent(pk, "h1", NULL), "-10.0.0.2");
    assert_is(keys_sent(pk, "h1", NULL), NOTHING);
}

/* The leader that has revoked h2 ended before h1 heard of it.  h3 has not
 * connected yet, and is heard later. */
KEYS_TEST(a_new_leader_ends_the_keys_of_a_revoked_host)
{
    REPORT(pk, 1, true, PEER(2) "," PEER(3));
    assert_is(keys_sent(pk, "h1", NULL), "");
    now += PAIR_KEYS_GRACE_MS;
    pair_keys_run(pk, false);
    assert_is(keys_sent(pk, "h1", NULL), NOTHING);
    pair_keys_run(pk, true);
    assert_is(keys_sent(pk, "h1", NULL), "-10.0.0.2 -10.0.0.3");
    pair_keys_run(pk, true);
    assert_is(keys_sent(pk, "h1", NULL), NOTHING);
    REPORT(pk, 3, true, PEER(1));
    assert_is(keys_sent(pk, "h1", NULL), "10.0.0.3");
}

/* Its agent is away: the last keys stay. */
KEYS_TEST(a_silent_host_keeps_its_pairs)
{
    REPORT(pk, 1, true, PEER(2));
    REPORT(pk, 2, true, PEER(1));
    assert_is(keys_sent(pk, "h1", NULL), "10.0.0.2");
    now += 61000;
    REPORT(pk, 1, false, PEER(2));
    assert_is(keys_sent(pk, "h1", NULL), NOTHING);
}

KEYS_TEST(an_alarm_names_who_seems_to_have_written)
{
    REPORT(pk, 1, true, "{\"address\": \"10.0.0.2\", \"refused\": 5}");
    REPORT(pk, 2, true, PEER(1));
    assert_is(alarms(pk), "[]");
    REPORT(pk, 1, false,
           "{\"address\": \"10.0.0.2\", \"refused\": 8},"
           "{\"address\": \"10.0.0.9\", \"disobeyed\": 1}");
    assert_is(alarms(pk),
              "[{\"code\":\"shim-messages\",\"count\":1,"
              "\"text\":\"messages between shims were refused by h1 (3, of "
              "h2 10.0.0.2)\"},"
              "{\"code\":\"shim-messages\",\"count\":1,"
              "\"text\":\"more arrived than was granted, so that only "
              "windows limit the sender, at h1 (1, of 10.0.0.9)\"}]");
    now += 60001;
    assert_is(alarms(pk), "[]");
}
