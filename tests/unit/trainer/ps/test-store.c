/* SPDX-License-Identifier: Apache-2.0 */

/* What a parameter server keeps, and how updates change it. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/unit/unit-test.h"
#include "trainer/net/keys.h"
#include "trainer/ps/store.h"
#include "trainer/schemes/optimiser.h"

#define UNIVERSE 20000

static uint64_t random_state = 88172645463325252ULL;

static uint64_t
draw(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

UNIT_TEST(keys_take_as_few_bytes_as_they_need)
{
    static const struct {
        uint64_t keys[3];
        int size;
    } cases[] = {
        { { 7, 8, 9 }, 0 },
        { { 0, 2, 3 }, 1 },
        { { 0, 256, 257 }, 1 },
        { { 0, 257, 258 }, 2 },
        { { 0, 65537, 65538 }, 4 },
        { { 5, 6, UINT64_C(6) + (UINT64_C(1) << 32) }, 4 },
        { { 5, 6, UINT64_C(7) + (UINT64_C(1) << 32) }, 8 },
        { { 0, 1, UINT64_MAX }, 8 },
        { { 1, 1, 2 }, KEYS_UNSORTED },
        { { 1, 3, 2 }, KEYS_UNSORTED },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t bytes[32];
        uint64_t keys[3];
        int size = keys_choose(cases[i].keys, 3);

        assert_int_equal(size, cases[i].size);
        if (size != KEYS_UNSORTED) {
            assert_int_equal(keys_length(3, size), size == 1 ? 4 : 2 * size);
            keys_encode(cases[i].keys, 3, size, bytes);
            assert_true(keys_decode(cases[i].keys[0], bytes, 3, size, keys));
            assert_memory_equal(keys, cases[i].keys, sizeof keys);
        }
    }
}

UNIT_TEST(keys_that_wrap_or_descend_are_refused)
{
    static const uint8_t ones[64] = { 1, 0, 0, 0, 0, 0, 0, 0, 1 };
    uint64_t keys[9];

    assert_false(keys_decode(UINT64_MAX, ones, 2, 0, keys));
    assert_false(keys_decode(UINT64_MAX - 1, ones, 2, 1, keys));
    assert_false(keys_decode(UINT64_MAX - 1, ones, 2, 4, keys));
    assert_false(keys_decode(0, ones, 3, 8, keys));     /* 0, 1, 1. */
    assert_false(keys_decode(0, ones, 3, 3, keys));
    assert_true(keys_decode(UINT64_MAX, ones, 1, 8, keys));
}

/* Random batches against an array with a place for every key. */
UNIT_TEST(sparse_values_are_those_of_an_array)
{
    struct optimiser_config sum = { .class = optimiser_find("sum") };

    for (uint32_t width = 1; width <= 3; width += 2) {
        struct store *s = store_create(width, &sum);
        float *model = calloc(UNIVERSE * width, sizeof *model);

        for (int round = 0; round < 60; round++) {
            uint64_t keys[UNIVERSE];
            float *g = malloc(UNIVERSE * width * sizeof *g);
            float *values = malloc(UNIVERSE * width * sizeof *values);
            uint64_t sparsity = 1 + draw() % (round % 3 ? 300 : 3), n = 0;

            for (uint64_t k = draw() % 5000; k < UNIVERSE;
                 k += 1 + draw() % sparsity) {
                keys[n++] = k;
            }
            for (size_t i = 0; i < n * width; i++) {
                g[i] = (float) (draw() % 100);
            }
            store_update_keys(s, keys, n, g);
            for (size_t i = 0; i < n; i++) {
                for (uint32_t j = 0; j < width; j++) {
                    model[keys[i] * width + j] += g[i * width + j];
                }
            }
            n = 0;
            for (uint64_t k = draw() % 3; k < UNIVERSE; k += 1 + draw() % 4) {
                keys[n++] = k;
            }
            store_read_keys(s, keys, n, values);
            for (size_t i = 0; i < n; i++) {
                assert_memory_equal(values + i * width,
                                    model + keys[i] * width,
                                    width * sizeof *model);
            }
            free(g);
            free(values);
        }
        free(model);
        store_destroy(s);
    }
}

/* A key that is seen at every third push has the weight that it would have
 * alone: leaves that split keep their optimiser's state. */
UNIT_TEST(keys_have_their_own_optimiser_state)
{
    for (int c = 0; optimiser_by_number(c); c++) {
        struct optimiser_config config = optimiser_defaults(
            optimiser_by_number(c), 0.1f, 0.9f);
        struct store *s = store_create(1, &config);
        float *vectors[OPTIMISER_MAX_STATES], zeros[4] = { 0 }, w = 0, got;
        uint64_t key = 999, seen = 0;

        for (int v = 0; v < OPTIMISER_MAX_STATES; v++) {
            vectors[v] = &zeros[v];
        }
        for (int round = 0; round < 30; round++) {
            uint64_t keys[4000];
            float g[4000];
            size_t n = 0;

            for (uint64_t k = 0; k < 4000; k++) {
                if (k == key ? round % 3 : (k * 31 + round * 17) % 4) {
                    continue;
                }
                seen += k == key;
                g[n] = k == key ? (float) seen : 1;
                keys[n++] = k;
                if (k == key) {
                    config.class->step(&config, 1, &g[n - 1], vectors, &w);
                }
            }
            store_update_keys(s, keys, n, g);
        }
        assert_int_equal(seen, 10);
        store_read_keys(s, &key, 1, &got);
        assert_true(got == w);
        store_destroy(s);
    }
}

/* Each optimiser against its textbook formula in double precision. */
UNIT_TEST(optimisers_do_what_books_say)
{
    const double rate = 0.1, b1 = 0.9, b2 = 0.999, epsilon = 1e-8;
    double w[5] = { 0 }, v = 0, sum = 0, m = 0, s = 0;
    float got[5] = { 0 }, states[5][4] = { { 0 } };

    for (int t = 1; t <= 200; t++) {
        double g = sin(t) + 0.3;
        float gf = g;

        g = gf;
        w[0] += g;
        w[1] -= rate * g;
        v = b1 * v + g;
        w[2] -= rate * v;
        sum += g * g;
        w[3] -= rate * g / (sqrt(sum) + epsilon);
        m = b1 * m + (1 - b1) * g;
        s = b2 * s + (1 - b2) * g * g;
        w[4] -= rate * (m / (1 - pow(b1, t)))
                / (sqrt(s / (1 - pow(b2, t))) + epsilon);
        for (int c = 0; c < 5; c++) {
            struct optimiser_config config = optimiser_defaults(
                optimiser_by_number(c), rate, b1);
            float *of_class[4] = {
                &states[c][0],
                &states[c][1],
                &states[c][2],
                &states[c][3],
            };

            config.class->step(&config, 1, &gf, of_class, &got[c]);
            assert_true(fabs(got[c] - w[c]) < 1e-3 * (1 + fabs(w[c])));
        }
    }
    assert_null(optimiser_find("adamant"));
    assert_null(optimiser_by_number(5));
    assert_ptr_equal(optimiser_by_number(4), optimiser_find("adam"));
}
