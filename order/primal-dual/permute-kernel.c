/* SPDX-License-Identifier: Apache-2.0 */

#include "order/primal-dual/permute-kernel.h"

#include <math.h>
#include <stdbool.h>

#include "order/primal-dual/primal-dual.h"

#if defined __x86_64__
#include <immintrin.h>
#endif

static double
portable_price(const struct permute_list *list, const double *remaining,
               double *price, size_t *n_placed)
{
    double least = INFINITY;
    size_t placed = 0;

    for (size_t i = 0; i < list->n; i++) {
        double l = remaining[list->stage[i]];
        double p = (l > PERMUTE_TIE ? l : 0) * list->inverse[i];

        price[i] = p;
        least = p < least ? p : least;
        placed += isinf(p) != 0;
    }
    *n_placed = placed;
    return least;
}

static size_t
portable_match(const double *price, size_t n, double limit, int *match)
{
    size_t n_matches = 0;

    for (size_t i = 0; i < n; i++) {
        match[n_matches] = i;
        n_matches += price[i] <= limit;
    }
    return n_matches;
}

static void
portable_charge(const struct permute_list *list, double price,
                double *remaining)
{
    for (size_t i = 0; i < list->n; i++) {
        remaining[list->stage[i]] -= price * list->share[i];
    }
}

static double
portable_most(const double *load, size_t n)
{
    double most = 0;

    for (size_t i = 0; i < n; i++) {
        most = load[i] > most ? load[i] : most;
    }
    return most;
}

static size_t
portable_at_least(const double *load, size_t n, double line, int *hot)
{
    size_t n_hot = 0;

    for (size_t i = 0; i < n; i++) {
        hot[n_hot] = i;
        n_hot += load[i] >= line;
    }
    return n_hot;
}

static const struct permute_kernel portable = {
    portable_price, portable_match, portable_charge, portable_most,
    portable_at_least,
};

#if defined __x86_64__
#define AVX2 __attribute__((target("avx2")))

AVX2 static double
least_of(__m256d x)
{
    __m128d half = _mm_min_pd(_mm256_castpd256_pd128(x),
                              _mm256_extractf128_pd(x, 1));

    return _mm_cvtsd_f64(_mm_min_sd(half, _mm_unpackhi_pd(half, half)));
}

/* Returns the remaining shares of four stages.  A gather instruction would be
 * slow on processors with the mitigation of gather data sampling. */
AVX2 static inline __m256d
load_remaining(const double *remaining, const int *stage)
{
    __m128d low = _mm_loadh_pd(_mm_load_sd(&remaining[stage[0]]),
                               &remaining[stage[1]]);
    __m128d high = _mm_loadh_pd(_mm_load_sd(&remaining[stage[2]]),
                                &remaining[stage[3]]);

    return _mm256_insertf128_pd(_mm256_castpd128_pd256(low), high, 1);
}

/* Stores the prices of four stages and returns them. */
AVX2 static inline __m256d
price_four(const struct permute_list *list, const double *remaining, size_t i,
           double *price)
{
    __m256d l = load_remaining(remaining, &list->stage[i]);
    __m256d p;

    l = _mm256_and_pd(l, _mm256_cmp_pd(l, _mm256_set1_pd(PERMUTE_TIE),
                                       _CMP_GT_OQ));
    p = _mm256_mul_pd(l, _mm256_loadu_pd(&list->inverse[i]));
    _mm256_storeu_pd(&price[i], p);
    return p;
}

/* Returns -1 for each of the four stages that is placed, else 0. */
AVX2 static inline __m256i
is_placed(__m256d price)
{
    return _mm256_castpd_si256(
        _mm256_cmp_pd(price, _mm256_set1_pd(INFINITY), _CMP_EQ_OQ));
}

AVX2 static double
avx2_price(const struct permute_list *list, const double *remaining,
           double *price, size_t *n_placed)
{
    __m256d least_a = _mm256_set1_pd(INFINITY), least_b = least_a;
    __m256i placed = _mm256_setzero_si256();
    long long n[4];

    for (size_t i = 0; i < list->n; i += PERMUTE_LANES) {
        __m256d a = price_four(list, remaining, i, price);
        __m256d b = price_four(list, remaining, i + 4, price);

        least_a = _mm256_min_pd(a, least_a);
        least_b = _mm256_min_pd(b, least_b);
        placed = _mm256_add_epi64(placed, is_placed(a));
        placed = _mm256_add_epi64(placed, is_placed(b));
    }
    _mm256_storeu_si256((__m256i *) n, placed);
    *n_placed = -(n[0] + n[1] + n[2] + n[3]);
    return least_of(_mm256_min_pd(least_a, least_b));
}

AVX2 static size_t
avx2_match(const double *price, size_t n, double limit, int *match)
{
    const __m256d most = _mm256_set1_pd(limit);
    size_t n_matches = 0;

    for (size_t i = 0; i < n; i += PERMUTE_LANES) {
        __m256d a = _mm256_loadu_pd(&price[i]);
        __m256d b = _mm256_loadu_pd(&price[i + 4]);
        int mask = _mm256_movemask_pd(_mm256_cmp_pd(a, most, _CMP_LE_OQ));

        mask |= _mm256_movemask_pd(_mm256_cmp_pd(b, most, _CMP_LE_OQ)) << 4;
        for (; mask; mask &= mask - 1) {
            match[n_matches++] = i + __builtin_ctz(mask);
        }
    }
    return n_matches;
}

AVX2 static inline void
charge_four(const struct permute_list *list, __m256d price, size_t i,
            double *remaining)
{
    const int *stage = &list->stage[i];
    __m256d l = load_remaining(remaining, stage);
    __m128d low, high;

    l = _mm256_sub_pd(l, _mm256_mul_pd(price,
                                       _mm256_loadu_pd(&list->share[i])));
    low = _mm256_castpd256_pd128(l);
    high = _mm256_extractf128_pd(l, 1);
    _mm_storel_pd(&remaining[stage[0]], low);
    _mm_storeh_pd(&remaining[stage[1]], low);
    _mm_storel_pd(&remaining[stage[2]], high);
    _mm_storeh_pd(&remaining[stage[3]], high);
}

AVX2 static void
avx2_charge(const struct permute_list *list, double price, double *remaining)
{
    const __m256d y = _mm256_set1_pd(price);

    for (size_t i = 0; i < list->n; i += PERMUTE_LANES) {
        charge_four(list, y, i, remaining);
        charge_four(list, y, i + 4, remaining);
    }
}

AVX2 static double
avx2_most(const double *load, size_t n)
{
    __m256d a = _mm256_setzero_pd(), b = a;
    double most[4];

    for (size_t i = 0; i < n; i += PERMUTE_LANES) {
        a = _mm256_max_pd(_mm256_loadu_pd(&load[i]), a);
        b = _mm256_max_pd(_mm256_loadu_pd(&load[i + 4]), b);
    }
    _mm256_storeu_pd(most, _mm256_max_pd(a, b));
    return portable_most(most, 4);
}

AVX2 static size_t
avx2_at_least(const double *load, size_t n, double line, int *hot)
{
    const __m256d least = _mm256_set1_pd(line);
    size_t n_hot = 0;

    for (size_t i = 0; i < n; i += PERMUTE_LANES) {
        __m256d a = _mm256_loadu_pd(&load[i]);
        __m256d b = _mm256_loadu_pd(&load[i + 4]);
        int mask = _mm256_movemask_pd(_mm256_cmp_pd(a, least, _CMP_GE_OQ));

        mask |= _mm256_movemask_pd(_mm256_cmp_pd(b, least, _CMP_GE_OQ)) << 4;
        for (; mask; mask &= mask - 1) {
            hot[n_hot++] = i + __builtin_ctz(mask);
        }
    }
    return n_hot;
}

static const struct permute_kernel avx2 = {
    avx2_price, avx2_match, avx2_charge, avx2_most, avx2_at_least,
};
#endif

static bool use_portable;

void
permute_use_portable(bool portable_only)
{
    use_portable = portable_only;
}

const struct permute_kernel *
permute_kernel(void)
{
#if defined __x86_64__
    if (!use_portable && __builtin_cpu_supports("avx2")) {
        return &avx2;
    }
#endif
    return &portable;
}
