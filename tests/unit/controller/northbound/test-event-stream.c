/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "controller/northbound/rest/event-stream.h"
#include "openvswitch/json.h"
#include "tests/unit/unit-test.h"
#include "util.h"

static void
add_event(struct event_stream *es, int i)
{
    event_stream_add(es, "decision", json_integer_create(i));
}

static void
ignore_wake(void *aux OVS_UNUSED)
{
}

static struct event_client *
follow(struct event_stream *es, const char *last)
{
    struct event_client *client = event_client_create(es, last, ignore_wake,
                                                      NULL);
    char buffer[64];
    ssize_t n = event_client_read(client, buffer, sizeof buffer);

    assert_int_equal(n, strlen("retry: 2000\n\n"));
    return client;
}

/* Reads the next event in pieces of 5 bytes.  Returns its data, or -1 if there
 * is no event or no data, and stores its id in '*id' if 'id' is not null. */
static int
read_event(struct event_client *client, char id[64])
{
    char text[256] = "";
    size_t size = 0;
    const char *data;
    ssize_t n;

    do {
        n = event_client_read(client, text + size, 5);
        assert_true(n >= 0);
        size += n;
        text[size] = '\0';
    } while (n && !strstr(text, "\n\n"));
    data = strstr(text, "data: ");
    if (id) {
        assert_int_equal(sscanf(text, "id: %63s", id), 1);
    }
    return data ? atoi(data + 6) : -1;
}

UNIT_TEST(a_new_client_gets_new_events_only)
{
    struct event_stream *es = event_stream_create(NULL);
    struct event_client *client;

    add_event(es, 1);
    client = follow(es, NULL);
    assert_int_equal(read_event(client, NULL), -1);
    add_event(es, 2);
    add_event(es, 3);
    assert_int_equal(read_event(client, NULL), 2);
    assert_int_equal(read_event(client, NULL), 3);
    assert_int_equal(read_event(client, NULL), -1);
    event_client_destroy(client);
    event_stream_destroy(es);
}

UNIT_TEST(a_client_continues_after_the_last_event_it_got)
{
    struct event_stream *es = event_stream_create(NULL);
    struct event_client *client = follow(es, NULL);
    char id[64];

    for (int i = 1; i <= 4; i++) {
        add_event(es, i);
    }
    read_event(client, NULL);
    assert_int_equal(read_event(client, id), 2);
    event_client_destroy(client);
    client = follow(es, id);
    assert_int_equal(read_event(client, NULL), 3);
    event_client_destroy(client);
    event_stream_destroy(es);
}

UNIT_TEST(an_unknown_id_gets_all_stored_events)
{
    static const char *const ids[] = { "", "1-1", "x", "99999999999999-2" };
    struct event_stream *es = event_stream_create(NULL);

    for (int i = 1; i <= EVENTS_KEPT + 3; i++) {
        add_event(es, i);
    }
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
        struct event_client *client = follow(es, ids[i]);

        assert_int_equal(read_event(client, NULL), 4);
        event_client_destroy(client);
    }
    event_stream_destroy(es);
}

UNIT_TEST(a_client_that_falls_behind_is_lost)
{
    struct event_stream *es = event_stream_create(NULL);
    struct event_client *client = follow(es, NULL);
    char buffer[64];
    ssize_t n;

    for (int i = 1; i <= EVENTS_KEPT; i++) {
        add_event(es, i);
    }
    assert_int_equal(read_event(client, NULL), 1);
    add_event(es, 0);
    add_event(es, 0);
    n = event_client_read(client, buffer, sizeof buffer);
    assert_int_equal(n, strlen("event: lost\ndata: {}\n\n"));
    assert_memory_equal(buffer, "event: lost\n", 12);
    assert_int_equal(event_client_read(client, buffer, sizeof buffer), -1);
    event_client_destroy(client);
    event_stream_destroy(es);
}
