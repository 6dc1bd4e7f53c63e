/* SPDX-License-Identifier: Apache-2.0 */

/* Gradients against finite differences, ranks against counting, and words
 * drawn against their counts. */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tests/unit/unit-test.h"
#include "trainer/data/corpus.h"
#include "trainer/data/seeded.h"
#include "trainer/data/triples.h"
#include "trainer/models/vector.h"
#include "trainer/tasks/factorise-data.h"
#include "trainer/tasks/knowledge-model.h"
#include "trainer/tasks/skipgram.h"

#define MAX 32                  /* Floats of a vector. */
#define STEP 1e-3f              /* Of finite differences. */

static const struct knowledge_model *const models[] = {
    &knowledge_rescal, &knowledge_complex,
};

static void
draw(struct seeded *rs, size_t n, float *x)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = 0.5 * seeded_normal(rs);
    }
}

static void
check_close(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance * (1 + fabs(b)))) {
        fail_msg("%g is not %g", a, b);
    }
}

/* Sums in lanes, and what is left over. */
UNIT_TEST(multiplies_vectors_of_any_length)
{
    struct seeded rs;

    seeded_init(&rs, 1, 1);
    for (size_t n = 0; n <= MAX; n++) {
        float a[MAX], b[MAX];
        double sum = 0;

        draw(&rs, MAX, a);
        draw(&rs, MAX, b);
        for (size_t i = 0; i < n; i++) {
            sum += (double) a[i] * b[i];
        }
        check_close(vector_dot(n, a, b), sum, 1e-5);
    }
}

/* A step is 'rate' times the negative gradient of the loss in the header, and
 * both ways to make it are the same. */
UNIT_TEST(factorise_steps_down_its_gradient)
{
    enum { RANK = 13 };
    struct factorise_step step = { RANK, 1e-2, 0.7, 0.3, 0.2 };
    float w[RANK], h[RANK], dw[RANK], dh[RANK], w2[RANK], h2[RANK];
    struct seeded rs;

    seeded_init(&rs, 1, 2);
    draw(&rs, RANK, w);
    draw(&rs, RANK, h);
    check_close(factorise_delta(&step, w, h, dw, dh),
                step.value - vector_dot(RANK, w, h), 1e-6);
    memcpy(w2, w, sizeof w);
    memcpy(h2, h, sizeof h);
    factorise_step(&step, w2, h2);
    for (int i = 0; i < 2 * RANK; i++) {
        float *x = i < RANK ? &w[i] : &h[i - RANK], was = *x;
        double loss[2];

        for (int up = 0; up < 2; up++) {
            double e;

            *x = up ? was + STEP : was - STEP;
            e = step.value - vector_dot(RANK, w, h);
            loss[up] = e * e + step.shrink_w * vector_dot(RANK, w, w)
                       + step.shrink_h * vector_dot(RANK, h, h);
        }
        *x = was;
        check_close(i < RANK ? dw[i] : dh[i - RANK],
                    -step.rate * (loss[1] - loss[0]) / (2 * STEP), 1e-4);
        check_close(i < RANK ? w2[i] : h2[i - RANK],
                    was + (i < RANK ? dw[i] : dh[i - RANK]), 1e-6);
    }
}

UNIT_TEST(bold_driver_is_bold_while_the_loss_falls)
{
    struct bold_driver driver = { 0.1, 0 };

    bold_driver_run(&driver, 5);
    check_close(driver.rate, 0.105, 1e-12);
    bold_driver_run(&driver, 4);
    check_close(driver.rate, 0.11025, 1e-12);
    bold_driver_run(&driver, 4.5);
    check_close(driver.rate, 0.055125, 1e-12);
    bold_driver_run(&driver, NAN);
    check_close(driver.rate, 0.0275625, 1e-12);
}

/* All vectors of a triple and what is wrong in its place. */
enum { S, R, O, WRONG_O, WRONG_S = WRONG_O + 2, N_VECTORS = WRONG_S + 2 };

static double
knowledge_loss(const struct knowledge_model *model, size_t dimension,
               const float *x, float *g)
{
    size_t wrong[4];
    float scratch[2 * MAX];

    for (int i = 0; i < 4; i++) {
        wrong[i] = (WRONG_O + i) * MAX;
    }
    memset(g, 0, N_VECTORS * MAX * sizeof *g);
    return knowledge_step(
        model, dimension,
        &(struct knowledge_sample) {
            x, g, S * MAX, R * MAX, O * MAX, 2, wrong, wrong + 2
        }, scratch);
}

UNIT_TEST(knowledge_has_its_gradient)
{
    for (size_t m = 0; m < 2; m++) {
        float x[N_VECTORS * MAX], g[N_VECTORS * MAX];
        float ignored[N_VECTORS * MAX];
        size_t n = m ? 7 : 5;
        struct seeded rs;

        seeded_init(&rs, 1, 3);
        draw(&rs, N_VECTORS * MAX, x);
        knowledge_loss(models[m], n, x, g);
        for (size_t i = 0; i < N_VECTORS * MAX; i++) {
            float was = x[i];
            double up, down;

            x[i] = was + STEP;
            up = knowledge_loss(models[m], n, x, ignored);
            x[i] = was - STEP;
            down = knowledge_loss(models[m], n, x, ignored);
            x[i] = was;
            check_close(g[i], (up - down) / (2 * STEP), 2e-3);
        }
    }
}

/* By the definitions. */
static double
score(size_t m, size_t n, const float *s, const float *r, const float *o)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        if (m) {
            double re = s[i] * r[i] - s[n + i] * r[n + i];
            double im = s[i] * r[n + i] + s[n + i] * r[i];

            sum += re * o[i] + im * o[n + i];
        } else {
            for (size_t j = 0; j < n; j++) {
                sum += s[i] * r[i * n + j] * o[j];
            }
        }
    }
    return sum;
}

/* The rank of entity 'right' in a place, when others that make a triple of
 * 't' are left out. */
static double
count_better(size_t m, size_t n, const struct triples *t,
             const struct triple *x, bool object, float entities[][MAX],
             const float *r)
{
    uint32_t right = object ? x->object : x->subject;
    double goal = score(m, n, entities[x->subject], r, entities[x->object]);
    double rank = 1;

    for (uint32_t e = 0; e < t->n_entities; e++) {
        struct triple other = *x;
        bool known = false;

        *(object ? &other.object : &other.subject) = e;
        for (size_t i = 0; i < t->n; i++) {
            known = known || !memcmp(&t->all[i], &other, sizeof other);
        }
        if (e != right && !known) {
            rank += score(m, n, entities[other.subject], r,
                          entities[other.object]) > goal;
        }
    }
    return rank;
}

UNIT_TEST(ranks_without_other_right_ones)
{
    enum { N_ENTITIES = 30 };
    struct triples_config config = { N_ENTITIES, 3, 200, 4 };
    struct triples *t;
    struct triples_index *index;

    assert_null(triples_open("generated", &config, &t));
    index = triples_index_create(t);
    for (size_t m = 0; m < 2; m++) {
        size_t n = m ? 7 : 5;
        float entities[N_ENTITIES][MAX], relations[3][MAX], scratch[MAX];
        struct knowledge_rank_in in = {
            models[m], n, index, N_ENTITIES, entities[0], MAX
        };
        struct seeded rs;
        int n_filtered = 0;

        seeded_init(&rs, 1, 4);
        draw(&rs, N_ENTITIES * MAX, entities[0]);
        draw(&rs, 3 * MAX, relations[0]);
        for (size_t i = t->first[TRIPLES_TEST]; i < t->n; i++) {
            const struct triple *x = &t->all[i];
            struct knowledge_ranks ranks = { .n = 0 };
            double object = count_better(m, n, t, x, true, entities,
                                         relations[x->relation]);
            double subject = count_better(m, n, t, x, false, entities,
                                          relations[x->relation]);
            size_t n_known;

            knowledge_rank(&in, x, relations[x->relation], scratch, &ranks);
            assert_int_equal(ranks.n, 2);
            check_close(ranks.reciprocal, 1 / object + 1 / subject, 1e-9);
            check_close(ranks.hits10, (object <= 10) + (subject <= 10), 0);
            triples_index_objects(index, x, &n_known);
            n_filtered += n_known > 1;
        }
        assert_true(n_filtered > 0);
    }
    triples_index_destroy(index);
    triples_destroy(t);
}

/* 'x' and 'g' have the word and then three contexts. */
static double
skipgram_loss(size_t n, const float *x, float *g)
{
    const size_t places[] = { 0, MAX, 2 * MAX, 3 * MAX };

    memset(g, 0, 4 * MAX * sizeof *g);
    return skipgram_step(n, x, 2, places, g);
}

UNIT_TEST(skipgram_has_its_gradient)
{
    enum { N = 11 };
    float x[4 * MAX], g[4 * MAX], ignored[4 * MAX];
    struct seeded rs;

    seeded_init(&rs, 1, 5);
    draw(&rs, 4 * MAX, x);
    skipgram_loss(N, x, g);
    for (size_t i = 0; i < 4 * MAX; i++) {
        float was = x[i];
        double up, down;

        x[i] = was + STEP;
        up = skipgram_loss(N, x, ignored);
        x[i] = was - STEP;
        down = skipgram_loss(N, x, ignored);
        x[i] = was;
        check_close(g[i], (up - down) / (2 * STEP), 2e-3);
    }
}

UNIT_TEST(draws_words_by_their_counts)
{
    enum { N_WORDS = 6, N_DRAWS = 200000 };
    uint64_t counts[N_WORDS] = { 1000, 300, 100, 10, 3, 1 };
    struct corpus c = { .n_words = N_WORDS, .n = 1414, .counts = counts };
    struct skipgram_sampler *sampler = skipgram_sampler_create(&c, 0.1);
    double drawn[N_WORDS] = { 0 }, sum = 0;
    struct seeded rs;

    seeded_init(&rs, 1, 6);
    for (int i = 0; i < N_DRAWS; i++) {
        drawn[skipgram_sampler_draw(sampler, &rs)]++;
    }
    for (int i = 0; i < N_WORDS; i++) {
        sum += pow(counts[i], 0.75);
    }
    for (int i = 0; i < N_WORDS; i++) {
        double part = pow(counts[i], 0.75) / sum;

        /* Five deviations. */
        assert_true(fabs(drawn[i] / N_DRAWS - part)
                    < 5 * sqrt(part / N_DRAWS));
    }
    assert_true(skipgram_sampler_keeps(sampler, 5) == 1);
    check_close(skipgram_sampler_keeps(sampler, 0),
                sqrt(0.1 / (1000. / 1414)) + 0.1 / (1000. / 1414), 1e-6);
    skipgram_sampler_destroy(sampler);
}

UNIT_TEST(adagrad_divides_by_the_root_of_all_squares)
{
    float g[2] = { 3, -1 }, sum[2] = { 16, 0 }, squares[2];

    vector_adagrad(2, 0.1, sum, g, squares);
    check_close(squares[0], 9, 0);
    check_close(squares[1], 1, 0);
    check_close(g[0], -0.1 * 3 / 5, 1e-6);
    check_close(g[1], 0.1, 1e-6);
}
