/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SEARCH_FAMILIES_H
#define SEARCH_FAMILIES_H 1

/* Families of searches at random hosts, for benchmarks of orders.
 *
 * "spread", "one" and "equal" are four searches as in the quickstart, on six
 * hosts: two servers, one, and two with equal widths.  "16_load" are twelve
 * generated searches on 16 hosts, "narrow_wide" searches of wide rings beside
 * narrow jobs. */

struct workload;

struct search_family {
    const char *name;
    struct workload *(*make)(int seed); /* The caller destroys it. */
};

#define N_SEARCH_FAMILIES 8

extern const struct search_family search_families[N_SEARCH_FAMILIES];

#endif /* tests/bench/search-families.h */
