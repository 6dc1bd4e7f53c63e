/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/history-feed.h"

#include <limits.h>
#include <stdlib.h>

#include "controller/controller.h"
#include "controller/decide/decide.h"
#include "controller/decide/policy-file.h"
#include "controller/decide/stage-history.h"
#include "controller/history/history.h"
#include "controller/hosts/hosts-db.h"
#include "controller/intent/intent-db.h"
#include "controller/model/cluster.h"
#include "controller/model/demand.h"
#include "controller/model/unannounced.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "policies/policy.h"
#include "timeval.h"
#include "util.h"

/* Maximum delay of the telemetry of a stage's last bytes. */
#define SETTLE_MS 3000

#define PORTS_MS 60000          /* Interval of the use of ports. */

struct history_feed {
    struct controller *ctl;
    long long ports_since;      /* time_msec() when ports were last written. */
};

struct history_feed *
history_feed_create(struct controller *ctl)
{
    struct history_feed *feed = xzalloc(sizeof *feed);

    feed->ctl = ctl;
    feed->ports_since = time_msec();
    return feed;
}

static const char *
policy_name(const struct history_feed *feed)
{
    return policy_file_get(feed->ctl->policy)->name;
}

static void
put_stage(struct history_feed *feed, const struct stage *stage, bool announced)
{
    struct json *record = stage_history_row(stage);

    history_add_stage(feed->ctl->history, &(struct history_stage){
                                              .announced = announced,
                                              .began = stage->began,
                                              .ended = stage->ended,
                                              .cojob = stage->cojob_name,
                                              .rung = stage->rung,
                                              .policy = policy_name(feed),
                                              .record = record,
                                          });
    json_destroy(record);
}

/* Takes what jobs without an announcement have done; if 'all', also what they
 * are doing.  If 'write', writes it. */
static void
put_unannounced(struct history_feed *feed, bool all, bool write)
{
    struct cluster *c = feed->ctl->cluster;
    struct stage *stage;

    while ((stage = unannounced_take(c->unannounced, all ? NULL : &c->jobs,
                                     time_msec()))) {
        if (write && stage_has_moved(stage)) {
            put_stage(feed, stage, false);
        }
        stage_destroy(stage);
    }
}

/* Writes the stages that ended at or before 'until', time_msec(). */
static void
put_stages(struct history_feed *feed, long long until)
{
    struct stage *stage;

    LIST_FOR_EACH (stage, node, &feed->ctl->cluster->ended) {
        if (!stage->stored && stage->end_ms <= until) {
            put_stage(feed, stage, true);
            stage->stored = true;
        } else if (stage->stored) {
            break;
        }
    }
}

static void
put_port(struct history_feed *feed, struct host *host, enum direction dir,
         int ms)
{
    uint64_t bytes = host->moved[dir] - host->stored[dir];
    uint64_t all = host->carried[dir] - host->stored_carried[dir];

    if (bytes || all) {
        char *name = demand_port_name(host, dir);

        host->stored[dir] = host->moved[dir];
        host->stored_carried[dir] = host->carried[dir];
        history_add_port(feed->ctl->history,
                         &(struct history_port){
                             .at = time_wall_msec(),
                             .port = name,
                             .ms = ms,
                             .bytes = bytes,
                             .all_bytes = all,
                             .capacity_bps = host_capacity(host),
                         });
        free(name);
    }
}

static void
put_ports(struct history_feed *feed, long long now)
{
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &feed->ctl->cluster->hosts) {
        for (int dir = 0; dir < N_DIRS; dir++) {
            put_port(feed, node->data, dir, now - feed->ports_since);
        }
    }
}

/* Writes everything that is not written yet. */
void
history_feed_destroy(struct history_feed *feed)
{
    if (feed) {
        if (feed->ctl->history && intent_db_is_active(feed->ctl->intent)) {
            put_stages(feed, LLONG_MAX);
            put_unannounced(feed, true, true);
            put_ports(feed, time_msec());
        }
        free(feed);
    }
}

void
history_feed_run(struct history_feed *feed)
{
    long long now = time_msec();
    bool writes = feed->ctl->history && intent_db_is_active(feed->ctl->intent);

    if (writes) {
        put_stages(feed, now - SETTLE_MS);
    }
    if (now >= feed->ports_since + PORTS_MS) {
        if (writes) {
            put_ports(feed, now);
        }
        put_unannounced(feed, false, writes);
        feed->ports_since = now;
    }
    if (feed->ctl->history) {
        history_run(feed->ctl->history);
    }
}

void
history_feed_wait(const struct history_feed *feed)
{
    if (feed->ctl->history) {
        history_wait(feed->ctl->history);
    }
    poll_timer_wait_until(feed->ports_since + PORTS_MS);
}
