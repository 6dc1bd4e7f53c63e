/* SPDX-License-Identifier: Apache-2.0 */

/* Ratings, triples and texts: files as they are distributed, one line for
 * other files, and how samples and parameters are divided among workers.
 *
 * What reads real files is skipped unless $STAGECOACH_DATA is the folder that
 * has them. */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "tests/unit/unit-test.h"
#include "trainer/data/corpus.h"
#include "trainer/data/ratings.h"
#include "trainer/data/seeded.h"
#include "trainer/data/triples.h"
#include "trainer/tasks/clustering.h"
#include "trainer/tasks/factorise-data.h"

static FILE *
text_stream(const char *text)
{
    FILE *stream = fmemopen((char *) text, strlen(text), "r");

    assert_non_null(stream);
    return stream;
}

static char *
read_ratings(const char *text, struct ratings *r)
{
    FILE *stream = text_stream(text);
    char *error = ratings_read("f", stream, 100, r);

    fclose(stream);
    return error;
}

UNIT_TEST(reads_ratings_of_all_forms)
{
    static const char *const texts[] = {
        "7::30::4::978300760\n9::2::3.5::978302109\n",
        "userId,movieId,rating,timestamp\n7,30,4.0,1\r\n9,2,3.5,2\r\n",
        "7\t30\t4\t881250949\n\n9\t2\t3.5\t891717742\n",
        "7,30,4\n9,2,3.5",
    };

    for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
        struct ratings r = { .n = 0 };

        assert_null(read_ratings(texts[i], &r));
        assert_int_equal(r.n, 2);
        assert_int_equal(r.all[0].row, 7);
        assert_int_equal(r.all[0].column, 30);
        assert_true(r.all[0].value == 4);
        assert_int_equal(r.all[1].row, 9);
        assert_int_equal(r.all[1].column, 2);
        assert_true(r.all[1].value == 3.5);
        free(r.all);
    }
}

#define RATING                                                           \
    "not a rating; expected \"ROW::COLUMN::VALUE\" with \"::\", commas " \
    "or tabs, and a time after it"

UNIT_TEST(refuses_what_is_no_rating)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        { "1::2\n", "f:1: " RATING },
        { "1::2::3\n1,2::3\n", "f:2: " RATING },
        { "1::2::nan\n", "f:1: " RATING },
        { "1::2::inf\n", "f:1: " RATING },
        { "1::-2::3\n", "f:1: " RATING },
        { "4294967296::2::3\n", "f:1: " RATING },
        { "1::2::3::4::5\n", "f:1: " RATING },
        { "1::2::3 stars\n", "f:1: " RATING },
        { "1,2,3\nuserId,movieId,rating\n", "f:2: " RATING },
    };

    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct ratings r = { .n = 0 };

        assert_is(read_ratings(cases[i].text, &r), cases[i].error);
        free(r.all);
    }
}

/* Rows and columns have no gaps, and each one has a rating. */
UNIT_TEST(numbers_rows_and_columns_of_a_file)
{
    char path[] = "/tmp/ratings-XXXXXX";
    FILE *stream = fdopen(mkstemp(path), "w");
    struct ratings_config config = { .n = 1000, .n_held = 9, .seed = 3 };
    struct ratings *r;

    for (int i = 0; i < 60; i++) {
        fprintf(stream, "%d::%d::%d\n", 1000 * (i % 12), 7 * (i % 5) + 1,
                i % 12 + 20 * (i % 5));
    }
    fclose(stream);
    assert_null(ratings_open(path, &config, &r));
    unlink(path);
    assert_int_equal(r->n, 60);
    assert_int_equal(r->n_train, 57);
    assert_int_equal(r->n_rows, 12);
    assert_int_equal(r->n_columns, 5);
    for (size_t i = 0; i < r->n; i++) {
        assert_true(r->all[i].value
                    == r->all[i].row + 20 * r->all[i].column);
    }
    ratings_destroy(r);
}

static char *
read_triples(const char *text, bool names, struct triples *t)
{
    struct triples_names *n = names ? triples_names_create() : NULL;
    FILE *stream = text_stream(text);
    char *error = triples_read("f", stream, n, t);

    fclose(stream);
    triples_names_destroy(n);
    return error;
}

UNIT_TEST(reads_triples_of_both_forms)
{
    static const struct triple right[] = { { 0, 0, 1 }, { 1, 1, 2 },
                                           { 2, 0, 1 } };
    struct triples t = { .n = 0 };

    assert_null(read_triples("/m/a\tr/x\t/m/b\n/m/b\ty\tc c\r\n"
                             "c c\tr/x\t/m/b\n", true, &t));
    assert_int_equal(t.n, 3);
    assert_int_equal(t.n_entities, 3);
    assert_int_equal(t.n_relations, 2);
    assert_memory_equal(t.all, right, sizeof right);
    free(t.all);

    t = (struct triples) { .n = 0 };
    assert_null(read_triples("3\n0 1 0\n1 2 1\n2\t1\t0\n", false, &t));
    assert_int_equal(t.n, 3);
    assert_int_equal(t.n_entities, 3);
    assert_int_equal(t.n_relations, 2);
    assert_memory_equal(t.all, right, sizeof right);
    free(t.all);
}

#define NAMED "not a triple; expected \"SUBJECT\\tRELATION\\tOBJECT\""
#define NUMBERED                                                     \
    "not a triple; expected \"SUBJECT OBJECT RELATION\" by numbers " \
    "below 2^28"

UNIT_TEST(refuses_what_is_no_triple)
{
    static const struct {
        const char *text;
        bool names;
        const char *error;
    } cases[] = {
        { "a\tb\n", true, "f:1: " NAMED },
        { "a\tb\tc\nd\t\te\n", true, "f:2: " NAMED },
        { "a\tb\tc\td\n", true, "f:1: " NAMED },
        { "1\n0 1\n", false, "f:2: " NUMBERED },
        { "1\n0 1 x\n", false, "f:2: " NUMBERED },
        { "1\n0 268435456 1\n", false, "f:2: " NUMBERED },
        { "0 1 2\n", false,
          "f:1: not a number, how many lines follow is needed" },
        { "3\n0 1 0\n", false,
          "f:1: 3 lines are said to follow, not the 1 that do" },
    };

    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct triples t = { .n = 0 };
        char *error = read_triples(cases[i].text, cases[i].names, &t);

        assert_is(error, cases[i].error);
        free(t.all);
    }
}

static char *
read_corpus(const char *text, uint32_t min_count, struct corpus *c)
{
    struct corpus_config config = { .n = 100, .min_count = min_count };
    FILE *stream = text_stream(text);
    char *error = corpus_read("f", stream, &config, c);

    fclose(stream);
    return error;
}

UNIT_TEST(numbers_words_by_frequency)
{
    static const uint32_t right[] = { 1, 0, 0, 1, 0 };
    struct corpus c = { .n = 0 };

    assert_null(read_corpus("a b  b\n rare a\tb", 2, &c));
    assert_int_equal(c.n_words, 2);
    assert_int_equal(c.n, 5);
    assert_memory_equal(c.text, right, sizeof right);
    assert_int_equal(c.counts[0], 3);
    assert_int_equal(c.counts[1], 2);
    free(c.text);
    free(c.counts);
}

UNIT_TEST(refuses_a_word_without_end)
{
    struct corpus c = { .n = 0 };
    char text[400], *error;

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    text[1] = '\n';
    error = read_corpus(text, 1, &c);
    assert_is(error,
              "f:2: a word of more than 255 bytes; expected a shorter one");
    free(c.text);
    free(c.counts);
}

/* The same seed makes the same, another one something else. */
UNIT_TEST(generates_the_same_of_a_seed)
{
    struct ratings_config of_ratings = { 50, 40, 500, 20, 1 };
    struct triples_config of_triples = { 50, 5, 500, 1 };
    struct corpus_config of_corpus = { 100, 500, 1, 1 };
    struct ratings *r[3];
    struct triples *t[3];
    struct corpus *c[3];

    for (int i = 0; i < 3; i++) {
        of_ratings.seed = of_triples.seed = of_corpus.seed = 1 + i / 2;
        assert_null(ratings_open("generated", &of_ratings, &r[i]));
        assert_null(triples_open("generated", &of_triples, &t[i]));
        assert_null(corpus_open("generated", &of_corpus, &c[i]));
        assert_int_equal(r[i]->n, 495);
        assert_int_equal(r[i]->n_train, 475);
        assert_int_equal(t[i]->n, 550);
        assert_int_equal(c[i]->n, 500);
        for (size_t k = 0; k < 500; k++) {
            assert_true(k >= 495 || (r[i]->all[k].row < 50
                                     && r[i]->all[k].column < 40));
            assert_true(t[i]->all[k].subject < 50
                        && t[i]->all[k].object < 50
                        && t[i]->all[k].relation < 5);
            assert_true(c[i]->text[k] < 100);
        }
    }
    assert_memory_equal(r[0]->all, r[1]->all, 495 * sizeof *r[0]->all);
    assert_memory_equal(t[0]->all, t[1]->all, 500 * sizeof *t[0]->all);
    assert_memory_equal(c[0]->text, c[1]->text, 500 * sizeof *c[0]->text);
    assert_memory_not_equal(r[0]->all, r[2]->all, 495 * sizeof *r[0]->all);
    assert_memory_not_equal(t[0]->all, t[2]->all, 500 * sizeof *t[0]->all);
    assert_memory_not_equal(c[0]->text, c[2]->text,
                            500 * sizeof *c[0]->text);
    for (int i = 0; i < 3; i++) {
        ratings_destroy(r[i]);
        triples_destroy(t[i]);
        corpus_destroy(c[i]);
    }
}

/* Of each part of each epoch, and of each epoch of each worker. */
UNIT_TEST(gives_each_worker_each_block_once)
{
    for (int n = 1; n <= 9; n++) {
        struct blocking *b = blocking_create(103, n, 5);
        int seen[103] = { 0 };

        for (uint32_t i = 0; i < 103; i++) {
            seen[b->items[i]]++;
        }
        for (uint32_t i = 0; i < 103; i++) {
            uint32_t block = b->block_of[b->items[i]];

            assert_int_equal(seen[i], 1);
            assert_true(b->starts[block] <= i && i < b->starts[block + 1]);
        }
        for (int epoch = 0; epoch < 5; epoch++) {
            int had[9][9] = { { 0 } };

            for (int part = 0; part < n; part++) {
                bool taken[9] = { false };

                for (int w = 0; w < n; w++) {
                    int block = blocking_block(b, epoch, part, w);

                    assert_false(taken[block]);
                    taken[block] = true;
                    had[w][block]++;
                    assert_int_equal(blocking_worker(b, epoch, part, block),
                                     w);
                }
            }
            for (int i = 0; i < n * n; i++) {
                assert_int_equal(had[i / n][i % n], 1);
            }
        }
        blocking_destroy(b);
    }
}

/* Clusters of sizes by Zipf's law: no node has much more than others, and
 * those that fit stay together. */
UNIT_TEST(keeps_clusters_together)
{
    enum { N = 5000, N_CLUSTERS = 60, N_WORKERS = 7 };
    uint32_t cluster_of[N];
    size_t loads[N_WORKERS] = { 0 }, sizes[N_CLUSTERS] = { 0 };
    size_t away[N_CLUSTERS] = { 0 };
    struct clustering *c;
    struct seeded rs;
    int n_divided = 0;

    seeded_init(&rs, 1, 1);
    for (int i = 0; i < N; i++) {
        cluster_of[i] = pow(N_CLUSTERS, seeded_uniform(&rs)) - 0.5;
        sizes[cluster_of[i]]++;
    }
    c = clustering_create(cluster_of, sizeof *cluster_of, N, N_CLUSTERS,
                          N_WORKERS);
    for (int i = 0; i < N; i++) {
        loads[c->worker_of_sample[i]]++;
        away[cluster_of[i]] += c->worker_of_sample[i]
                               != c->home[cluster_of[i]];
    }
    for (int i = 0; i < N_WORKERS; i++) {
        assert_true(loads[i] <= N * 1.02 / N_WORKERS + 1);
        assert_true(loads[i] >= N * 0.85 / N_WORKERS);
    }
    for (int i = 0; i < N_CLUSTERS; i++) {
        n_divided += away[i] > 0;
        if (sizes[i] > N / N_WORKERS * 1.1) {
            assert_true(away[i] > 0);
        }
    }
    assert_true(n_divided < N_WORKERS);
    clustering_destroy(c);
}

/* Unpacks a file of $STAGECOACH_DATA into a folder. */
static void
unpack(const char *folder, const char *from, const char *to)
{
    const char *data = getenv("STAGECOACH_DATA");
    char *command;

    if (!data) {
        skip();
    }
    command = message("gunzip -c '%s/%s' > '%s/%s'", data, from, folder, to);
    if (system(command)) {
        free(command);
        skip();
    }
    free(command);
}

UNIT_TEST(reads_fb15k237)
{
    char folder[] = "/tmp/triples-XXXXXX", *command;
    struct triples_config config = { .seed = 1 };
    struct triples *t;

    assert_non_null(mkdtemp(folder));
    unpack(folder, "kge/fb15k237/train2id.txt.gz", "train2id.txt");
    unpack(folder, "kge/fb15k237/valid2id.txt.gz", "valid2id.txt");
    unpack(folder, "kge/fb15k237/test2id.txt.gz", "test2id.txt");
    assert_null(triples_open(folder, &config, &t));
    assert_int_equal(t->n_entities, 14541);
    assert_int_equal(t->n_relations, 237);
    assert_int_equal(t->first[TRIPLES_VALID], 272115);
    assert_int_equal(t->n - t->first[TRIPLES_TEST], 20466);
    triples_destroy(t);
    command = message("rm -r '%s'", folder);
    assert_int_equal(system(command), 0);
    free(command);
}

UNIT_TEST(reads_text8)
{
    char folder[] = "/tmp/corpus-XXXXXX", *path, *command;
    struct corpus_config config = { .n = 1000000, .min_count = 5 };
    struct corpus *c;

    assert_non_null(mkdtemp(folder));
    unpack(folder, "text/text8_100k.txt.gz", "text");
    path = message("%s/text", folder);
    assert_null(corpus_open(path, &config, &c));
    assert_true(c->n > 70000 && c->n <= 100000 && c->n_words > 1000);
    assert_true(c->counts[0] > c->counts[1] && c->counts[c->n_words - 1] == 5);
    corpus_destroy(c);
    command = message("rm -r '%s'", folder);
    assert_int_equal(system(command), 0);
    free(command);
    free(path);
}
