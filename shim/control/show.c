/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/control/show.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "wire/shim-client.h"

#define TIMEOUT_MS 2000

static void
show_hello(const void *body, size_t size, FILE *stream)
{
    const struct shim_hello *h = body;

    if (size >= sizeof *h) {
        fprintf(stream,
                "boot_id %016" PRIx64 " pid %u rate %" PRIu64 " mtu %u "
                "slots %u lease_ms %u\n",
                h->boot_id, h->pid, h->rate_bps, h->mtu, h->n_slots,
                h->lease_left_ms);
    }
}

static void
show_bursts(uint16_t slot, const char *direction,
            const struct shim_burst_stats *b, FILE *stream)
{
    if (b->period_ns) {
        fprintf(stream, "bursts slot %u direction %s period_us %"PRIu64
                " bytes %"PRIu64" duty %.3f regularity %.3f\n", slot,
                direction, b->period_ns / 1000, b->bytes, b->duty / 1e6,
                b->regularity / 1e6);
    }
}

static void
show_slot_stats(const struct shim_slot_stats *s, size_t n, FILE *stream)
{
    for (; n; s++, n--) {
        fprintf(stream, "count slot %u level %u dscp %u tx_packets %"PRIu64
                " tx_bytes %"PRIu64" rx_packets %"PRIu64" rx_bytes %"PRIu64
                " tx_dropped %"PRIu64"\n", s->slot, s->level, s->dscp,
                s->tx_packets, s->tx_bytes, s->rx_packets, s->rx_bytes,
                s->tx_dropped);
        show_bursts(s->slot, "tx", &s->tx_bursts, stream);
        show_bursts(s->slot, "rx", &s->rx_bursts, stream);
    }
}

static void
show_about(const void *body, size_t size, FILE *stream)
{
    fwrite(body, 1, size, stream);
}

#define ROW(MEMBER) { #MEMBER, offsetof(struct shim_stats, MEMBER) }

static void
show_stats(const void *body, size_t size, FILE *stream)
{
    static const struct {
        const char *name;
        size_t offset;
    } rows[] = { ROW(tx_packets),      ROW(tx_bytes),
                 ROW(rx_packets),      ROW(rx_bytes),
                 ROW(tx_ip_bytes),     ROW(tx_default_bytes),
                 ROW(queue_dropped),   ROW(port_dropped),
                 ROW(malformed),       ROW(queued_bytes),
                 ROW(busy_ns),         ROW(late_bytes),
                 ROW(port_restarts),   ROW(checksums_completed),
                 ROW(long_refused),    ROW(cc_flows),
                 ROW(cc_windows),      ROW(cc_grants_sent),
                 ROW(cc_grants_taken), ROW(cc_marks),
                 ROW(untagged),        ROW(cc_forged),
                 ROW(cc_refused),      ROW(cc_repeated),
                 ROW(cc_disobeyed),    ROW(control_dropped) };
    const struct shim_slot_stats *slots;
    const struct shim_stats *s = body;

    if (size < sizeof *s) {
        return;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fprintf(stream, "%s %"PRIu64"\n", rows[i].name,
                *(const uint64_t *) ((const char *) body + rows[i].offset));
    }
    slots = (const struct shim_slot_stats *) (s + 1);
    if (s->n_slot_stats <= (size - sizeof *s) / sizeof *slots) {
        show_slot_stats(slots, s->n_slot_stats, stream);
    }
}

static void
show_slots(const void *body, size_t size, FILE *stream)
{
    const struct shim_slot *s = body;

    for (size_t n = size / sizeof *s; n; s++, n--) {
        fprintf(stream, "slot %u level %u dscp %u rank %u weight %.3f "
                "name %.*s\n", s->slot, s->level, s->dscp, s->rank,
                s->weight / 1000.0, (int) sizeof s->name, s->name);
    }
}

char *
shim_show(const char *path, FILE *stream)
{
    static const struct {
        uint16_t type;
        void (*show)(const void *body, size_t size, FILE *);
    } parts[] = {
        { SHIM_HELLO, show_hello },
        { SHIM_ABOUT, show_about },
        { SHIM_STATS, show_stats },
        { SHIM_SLOT_LIST, show_slots },
    };
    struct shim_client *c;
    int error = shim_client_open(path, &c);

    for (size_t i = 0; !error && i < sizeof parts / sizeof *parts; i++) {
        const void *body;
        size_t size;

        error = shim_client_transact(c, parts[i].type, NULL, 0, TIMEOUT_MS,
                                     &body, &size);
        if (!error) {
            parts[i].show(body, size, stream);
        } else if (parts[i].type == SHIM_ABOUT && error == EOPNOTSUPP) {
            error = 0;          /* A shim of an older version. */
        }
    }
    shim_client_close(c);
    return (error ? message("%s: no shim replies there (%s)", path,
                            strerror(error))
                  : NULL);
}
