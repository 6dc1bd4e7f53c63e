/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/kernel-claims.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/identify/bpf/identity.h"
#include "agent/identify/process.h"
#include "agent/identify/registry.h"
#include "base/clock.h"
#include "openvswitch/hmap.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(kernel_claims);

#define TICK_NS 10000000ull /* Of the start of a process. */
#define MAX_ENDED 4096      /* Claims of processes that have ended. */

/* A claim that the kernel has. */
struct installed {
    struct hmap_node node; /* In struct kernel_claims's 'installed'. */
    struct claim_what what;
    uint64_t key; /* In the kernel's map. */
    char *job;
    struct identity_claim claim;
    bool is_new; /* The kernel does not have 'claim' yet. */
    bool seen;   /* In the current comparison. */
};

struct kernel_claims {
    struct identity *identity;
    struct registry *registry;
    struct hmap installed; /* Contains struct installed. */
    uint64_t began;        /* Start of the agent, as of a claim's process. */
    struct shares ended;   /* Claims of processes that have ended. */
    struct shares_user slots[IDENTITY_SLOTS];
    bool touched;
    bool changed;   /* By the current comparison. */
    long long next; /* Earliest next comparison. */
};

static enum identity_map
map_of(enum claim_kind kind)
{
    return kind == CLAIMS_PROCESS  ? IDENTITY_PROCESSES
           : kind == CLAIMS_CGROUP ? IDENTITY_CGROUPS
                                   : IDENTITY_NAMESPACES;
}

static uint16_t
slot_of(const struct kernel_claims *kc, const char *job)
{
    return kc->registry->class.slot(job, kc->registry->aux);
}

static struct installed *
find(const struct kernel_claims *kc, const struct claim_what *what)
{
    struct installed *i;

    HMAP_FOR_EACH_WITH_HASH(i, node, claim_what_hash(what), &kc->installed)
    {
        if (claim_what_equals(&i->what, what)) {
            return i;
        }
    }
    return NULL;
}

static void
drop_ended(struct kernel_claims *kc, const struct installed *i)
{
    if (i->claim.ended) {
        shares_drop(&kc->ended, &kc->slots[i->claim.slot]);
    }
}

static void
forget(struct kernel_claims *kc, struct installed *i)
{
    drop_ended(kc, i);
    hmap_remove(&kc->installed, &i->node);
    free(i->job);
    free(i);
}

struct kernel_claims *
kernel_claims_create(struct identity *identity, struct registry *registry)
{
    struct kernel_claims *kc = xzalloc(sizeof *kc);
    struct process self;

    kc->began = process_read(getpid(), &self) ? self.born : 0;
    kc->identity = identity;
    kc->registry = registry;
    hmap_init(&kc->installed);
    kc->ended.size = MAX_ENDED;
    kc->touched = true;
    return kc;
}

void
kernel_claims_destroy(struct kernel_claims *kc)
{
    if (kc) {
        struct installed *i;

        HMAP_FOR_EACH_SAFE(i, node, &kc->installed)
        {
            forget(kc, i);
        }
        hmap_destroy(&kc->installed);
        free(kc);
    }
}

void
kernel_claims_touch(struct kernel_claims *kc)
{
    kc->touched = true;
}

/* Adds a thing, and returns it; NULL if its namespace is gone.  The sockets of
 * a process may be older than the programs that would have noted it. */
static struct installed *
add(struct kernel_claims *kc, const struct claim *claim)
{
    uint64_t key = claim->what.id;
    struct installed *i;

    if (claim->what.kind == CLAIMS_NETNS
        && (!claim->path
            || identity_add_netns(kc->identity, claim->path, &key))) {
        return NULL;
    }
    if (claim->what.kind == CLAIMS_PROCESS && claim->born <= kc->began) {
        identity_adopt(kc->identity, key);
    }
    i = xzalloc(sizeof *i);
    i->what = claim->what;
    i->key = key;
    hmap_insert(&kc->installed, &i->node, claim_what_hash(&i->what));
    return i;
}

/* Notes the claim that decides about a thing. */
static void
see(struct kernel_claims *kc, const struct claim *claim)
{
    const char *job = claim->job->name;
    struct identity_claim new = { .born = claim->born * TICK_NS,
                                  .slot = slot_of(kc, job),
                                  .source = claim->source,
                                  .uid = claim->real };
    struct installed *i = find(kc, &claim->what);

    if (!new.slot || (!i && !(i = add(kc, claim)))) {
        return;
    }
    i->seen = true;
    if (memcmp(&i->claim, &new, sizeof new)) {
        drop_ended(kc, i);
        i->claim = new;
        free(i->job);
        i->job = xstrdup(job);
        i->is_new = true;
    }
    kc->changed = kc->changed || i->is_new;
}

/* Returns true if the claim of a process that has ended stays. */
static bool
keep(struct kernel_claims *kc, const struct installed *i)
{
    const struct job *job = registry_find(kc->registry, i->job);
    bool stays = shares_admit(&kc->ended, &kc->slots[i->claim.slot]);

    if (!stays && job && job->has_uid) {
        users_find(&kc->registry->users, job->uid, 0)->n_other++;
    }
    return stays;
}

/* Handles a claim that the registry no longer has. */
static void
lose(struct kernel_claims *kc, struct installed *i)
{
    struct process process;

    if (i->what.kind == CLAIMS_PROCESS && slot_of(kc, i->job) == i->claim.slot
        && (i->claim.ended
            || (!process_read(i->what.id, &process) && keep(kc, i)))) {
        if (!i->claim.ended) {
            i->claim.ended = clock_ns(CLOCK_BOOTTIME);
            i->is_new = kc->changed = true;
        }
        return;
    }
    identity_remove_claim(kc->identity, map_of(i->what.kind), i->key);
    kc->changed = true;
    forget(kc, i);
}

/* Writes the new claims of a map into the kernel, all at once.  Those that it
 * refuses stay new for the next comparison. */
static void
write_map(struct kernel_claims *kc, enum identity_map map)
{
    size_t n = 0, most = hmap_count(&kc->installed);
    struct installed **items = xcalloc(most, sizeof *items), *i;
    struct identity_claim *claims = xcalloc(most, sizeof *claims);
    uint64_t *keys = xcalloc(most, sizeof *keys);

    HMAP_FOR_EACH (i, node, &kc->installed) {
        if (i->is_new && map_of(i->what.kind) == map) {
            keys[n] = i->key;
            claims[n] = i->claim;
            items[n++] = i;
        }
    }
    for (size_t at = 0; at < n; at++) {
        size_t set;
        int error = identity_set_claims(kc->identity, map, &keys[at],
                                        &claims[at], n - at, &set);

        for (; set; set--) {
            items[at++]->is_new = false;
        }
        if (error) {
            static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

            VLOG_WARN_RL(&rl,
                         "%s: cannot tell the kernel what belongs to it "
                         "(%s)",
                         items[at]->job, ovs_strerror(error));
        }
    }
    free(items);
    free(claims);
    free(keys);
}

static void
compare(struct kernel_claims *kc)
{
    struct installed *i;
    const struct claim *claim;

    HMAP_FOR_EACH (i, node, &kc->installed) {
        i->seen = false;
    }
    HMAP_FOR_EACH (claim, node, &kc->registry->claims) {
        if (claim == registry_best_claim(kc->registry, &claim->what, NULL)) {
            see(kc, claim);
        }
    }
    HMAP_FOR_EACH_SAFE(i, node, &kc->installed)
    {
        if (!i->seen) {
            lose(kc, i);
        }
    }
}

void
kernel_claims_run(struct kernel_claims *kc, long long now)
{
    if (!kc->touched || now < kc->next) {
        return;
    }
    kc->touched = kc->changed = false;
    compare(kc);
    if (kc->changed) {
        write_map(kc, IDENTITY_PROCESSES);
        write_map(kc, IDENTITY_CGROUPS);
        write_map(kc, IDENTITY_NAMESPACES);
        kc->next =
            now
            + KERNEL_CLAIMS_GAP_MS * (1 + hmap_count(&kc->installed) / 1024);
        identity_raise_epoch(kc->identity);
    }
}

void
kernel_claims_wait(const struct kernel_claims *kc)
{
    if (kc->touched) {
        poll_timer_wait_until(kc->next);
    }
}
