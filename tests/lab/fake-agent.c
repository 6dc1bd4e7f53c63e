/* SPDX-License-Identifier: Apache-2.0 */

/* An agent without a host: sends telemetry of made-up jobs and prints each
 * lease that it gets.
 *
 *     fake-agent REMOTE [--tls DIR] HOST BPS
 *                [JOB:BYTES_PER_ITERATION:ITERATION_MS]...
 *     fake-agent REMOTE --raw JSON
 *
 * With FAKE_AGENT_APPLIES in its environment it reports the order of the last
 * lease as applied, otherwise none.
 *
 * The second form sends one notification "telemetry" with JSON as its
 * parameter and exits with 0 if the controller then ends the connection. */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fatal-signal.h"
#include "jsonrpc.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/shash.h"
#include "openvswitch/vlog.h"
#include "stream-ssl.h"
#include "stream.h"
#include "timeval.h"
#include "util.h"

#define PERIOD_MS 200

struct fake_job {
    char name[80];
    long long bytes, period_ms; /* Of an iteration. */
};

static struct json *
job_to_json(const struct fake_job *job, long long elapsed)
{
    long long bytes = elapsed * job->bytes / job->period_ms;
    struct json *json = json_object_create();

    json_object_put_string(json, "job", job->name);
    json_object_put(json, "uid", json_integer_create(getuid()));
    json_object_put(json, "tx_bytes", json_integer_create(bytes));
    json_object_put(json, "rx_bytes", json_integer_create(bytes / 2));
    json_object_put(json, "iteration",
                    json_integer_create(elapsed / job->period_ms));
    json_object_put(json, "stage", json_integer_create(0));
    json_object_put_string(json, "metric", "loss");
    json_object_put(json, "value", json_real_create(0.5));
    return json;
}

static struct jsonrpc_msg *
make_report(const char *host, long long bps, const struct fake_job *jobs,
            size_t n, long long elapsed, long long applied)
{
    struct json *json = json_object_create();
    struct json *array = json_array_create_empty();
    struct json *ports = json_object_create();
    struct json *uplink = json_object_create();

    for (size_t i = 0; i < n; i++) {
        json_array_add(array, job_to_json(&jobs[i], elapsed));
    }
    json_object_put(uplink, "tx_bytes", json_integer_create(elapsed));
    json_object_put(uplink, "rx_bytes", json_integer_create(elapsed));
    json_object_put(uplink, "capacity_bps", json_integer_create(bps));
    json_object_put(ports, "uplink", uplink);

    json_object_put(json, "version", json_integer_create(1));
    json_object_put_string(json, "host", host);
    json_object_put(json, "time", json_integer_create(time_wall_msec()));
    json_object_put_string(json, "state", "ordered");
    json_object_put(json, "applied", json_integer_create(applied));
    json_object_put(json, "ports", ports);
    json_object_put(json, "ip_bytes", json_integer_create(elapsed * 4));
    json_object_put(json, "default_bytes", json_integer_create(elapsed));
    json_object_put(json, "queued_bytes",
                    json_integer_create(elapsed % 10000 * 20));
    json_object_put(
        json, "shim",
        json_from_string(
            "{\"tx_packets\": 3, \"tx_bytes\": 4, \"rx_packets\": 5,"
            " \"rx_bytes\": 6, \"queue_dropped\": 7, \"port_dropped\": 0,"
            " \"policed\": 0, \"malformed\": 0,"
            " \"port_restarts\": 0, \"cc_flows\": 0, \"cc_windows\": 0,"
            " \"cc_grants\": 0, \"cc_marks\": 0, \"untagged\": 0,"
            " \"cc_forged\": 0, \"cc_refused\": 0,"
            " \"cc_repeated\": 0, \"cc_disobeyed\": 0,"
            " \"level_bytes\": [0, 8, 0, 0, 0, 0, 0, 9],"
            " \"level_dropped\": [0, 0, 0, 0, 0, 0, 0, 2]}"));
    json_object_put(json, "jobs", array);
    return jsonrpc_create_notify("telemetry", json_array_create_1(json));
}

static void
print_message(const struct jsonrpc_msg *msg)
{
    char *text = json_to_string(msg->params, JSSF_SORT);

    printf("%s %s\n", msg->method, text);
    fflush(stdout);
    free(text);
}

/* The version that 'msg', a lease, is for. */
static long long
lease_version(const struct jsonrpc_msg *msg)
{
    const struct json *lease
        = (msg->params && msg->params->type == JSON_ARRAY
           && msg->params->array.n ? msg->params->array.elems[0] : NULL);
    const struct json *version
        = (lease && lease->type == JSON_OBJECT
           ? shash_find_data(json_object(lease), "version") : NULL);

    return version && version->type == JSON_INTEGER ? json_integer(version)
                                                    : 0;
}

static void
run_agent(const char *remote, const char *host, long long bps,
          const struct fake_job *jobs, size_t n)
{
    struct jsonrpc_session *s = jsonrpc_session_open(remote, true);
    long long began = time_msec(), next = began;
    bool applies = getenv("FAKE_AGENT_APPLIES") != NULL;
    long long applied = 0;

    jsonrpc_session_set_max_backoff(s, 500);
    for (;;) {
        struct jsonrpc_msg *msg;

        jsonrpc_session_run(s);
        while ((msg = jsonrpc_session_recv(s))) {
            print_message(msg);
            applied = applies ? lease_version(msg) : 0;
            jsonrpc_msg_destroy(msg);
        }
        if (time_msec() >= next) {
            next = time_msec() + PERIOD_MS;
            if (jsonrpc_session_is_connected(s)) {
                jsonrpc_session_send(s, make_report(host, bps, jobs, n,
                                                    time_msec() - began,
                                                    applied));
            }
        }
        jsonrpc_session_wait(s);
        jsonrpc_session_recv_wait(s);
        poll_timer_wait_until(next);
        poll_block();
    }
}

static int
run_raw(const char *remote, const char *text)
{
    struct json *param = json_from_string(text);
    long long deadline = time_msec() + 3000;
    struct stream *stream;
    struct jsonrpc *rpc;
    int error;

    if (stream_open_block(jsonrpc_stream_open(remote, &stream, 0), 3000,
                          &stream)) {
        return 2;
    }
    rpc = jsonrpc_open(stream);
    jsonrpc_send(rpc, jsonrpc_create_notify("telemetry",
                                            json_array_create_1(param)));
    while (!jsonrpc_get_status(rpc) && time_msec() < deadline) {
        struct jsonrpc_msg *msg;

        jsonrpc_run(rpc);
        if (!jsonrpc_recv(rpc, &msg)) {
            jsonrpc_msg_destroy(msg);
        }
        jsonrpc_wait(rpc);
        jsonrpc_recv_wait(rpc);
        poll_timer_wait_until(deadline);
        poll_block();
    }
    error = jsonrpc_get_status(rpc);
    jsonrpc_close(rpc);
    return error ? 0 : 1;
}

int
main(int argc, char *argv[])
{
    struct fake_job jobs[64];
    size_t n = 0;

    set_program_name(argv[0]);
    fatal_ignore_sigpipe();     /* Controllers come and go. */
    vlog_set_levels(NULL, VLF_CONSOLE, VLL_OFF);
    vlog_set_levels(NULL, VLF_SYSLOG, VLL_OFF);
    if (argc > 4 && !strcmp(argv[2], "--tls")) {
        char *identity = xasprintf("%s/identity.pem", argv[3]);
        char *ca = xasprintf("%s/ca.pem", argv[3]);

        stream_ssl_set_key_and_cert(identity, identity);
        stream_ssl_set_ca_cert_file(ca, false);
        free(identity);
        free(ca);
        argv[3] = argv[1];
        argv += 2;
        argc -= 2;
    }
    if (argc == 4 && !strcmp(argv[2], "--raw")) {
        return run_raw(argv[1], argv[3]);
    }
    if (argc < 4 || argc - 4 > ARRAY_SIZE(jobs)) {
        return 2;
    }
    for (int i = 4; i < argc; i++, n++) {
        if (sscanf(argv[i], "%79[^:]:%lld:%lld", jobs[n].name,
                   &jobs[n].bytes, &jobs[n].period_ms) != 3
            || jobs[n].period_ms < 1) {
            return 2;
        }
    }
    alarm(150);                 /* Never left behind. */
    run_agent(argv[1], argv[2], atoll(argv[3]), jobs, n);
    return 0;
}
