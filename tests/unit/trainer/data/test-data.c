/* SPDX-License-Identifier: Apache-2.0 */

/* Data sets: each sample once an epoch, files as they are distributed, and one
 * line for other files.
 *
 * What reads real files is skipped unless $STAGECOACH_DATA is the folder that
 * has them. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/unit-test.h"
#include "trainer/data/dataset.h"
#include "trainer/data/readers.h"
#include "trainer/process/options.h"

/* Samples with their number as the first value. */
static struct dataset *
numbered(size_t n, bool sparse)
{
    struct dataset *ds = dataset_create(sparse ? 0 : 2, 2, n, 1);

    ds->n_inputs = 2;
    if (sparse) {
        ds->train.starts = allocate(n + 1, sizeof *ds->train.starts);
        ds->train.keys = allocate(n, sizeof *ds->train.keys);
        ds->train.values = allocate(n, sizeof *ds->train.values);
    }
    for (size_t i = 0; i < n; i++) {
        ds->train_labels[i] = i & 1;
        if (sparse) {
            ds->train.starts[i + 1] = i + 1;
            ds->train.values[i] = i;
        } else {
            ds->train_x[2 * i] = i;
        }
    }
    return ds;
}

/* Three workers of different and changing shares go through several epochs;
 * batches reach from one epoch into the next. */
static void
check_epochs(bool sparse)
{
    enum { N = 103, N_EPOCHS = 5, N_WORKERS = 3 };
    struct dataset *ds = numbered(N, sparse);
    int seen[N_EPOCHS][N] = { { 0 } }, orders_differ = 0;
    struct batch *batch = batch_create();
    uint64_t position = 0;

    for (int k = 0; position < N * N_EPOCHS; k++) {
        int share = 1 + (k * 7 + k % N_WORKERS) % 11;

        dataset_fill(ds, 9, position, share, batch);
        assert_int_equal(batch->n, share);
        for (int i = 0; i < share; i++, position++) {
            int sample = sparse ? batch->sparse.values[batch->sparse.starts[i]]
                                : batch->x[2 * i];

            assert_int_equal(batch->labels[i], sample & 1);
            if (position < N * N_EPOCHS) {
                seen[position / N][sample]++;
                orders_differ += sample != position % N;
            }
        }
    }
    for (int i = 0; i < N * N_EPOCHS; i++) {
        assert_int_equal(seen[i / N][i % N], 1);
    }
    assert_true(orders_differ > N * N_EPOCHS / 2);
    batch_destroy(batch);
    dataset_destroy(ds);
}

UNIT_TEST(each_sample_comes_once_an_epoch)
{
    check_epochs(false);
    check_epochs(true);
}

UNIT_TEST(generated_data_is_that_of_the_seed)
{
    struct dataset *(*const makers[])(const struct dataset_config *) = {
        dataset_generate, dataset_generate_images, dataset_generate_sparse,
    };

    for (size_t i = 0; i < N_ELEMENTS(makers); i++) {
        struct dataset_config config = {
            .n_inputs = 192, .n_classes = 3, .image = { 8, 8, 3 },
            .n_train = 50, .n_held = 10, .seed = 1,
        };
        struct dataset *sets[3];
        bool same[2];

        for (int j = 0; j < 3; j++) {
            config.seed = j == 2 ? 2 : 1;
            sets[j] = makers[i](&config);
        }
        for (int j = 0; j < 2; j++) {
            const struct dataset *a = sets[0], *b = sets[j + 1];

            same[j] = a->train_x
                ? !memcmp(a->train_x, b->train_x,
                          50 * 192 * sizeof *a->train_x)
                : a->train.starts[50] == b->train.starts[50]
                  && !memcmp(a->train.keys, b->train.keys,
                             a->train.starts[50] * sizeof *a->train.keys);
        }
        assert_true(same[0] && !same[1]);
        for (int j = 0; j < 3; j++) {
            dataset_destroy(sets[j]);
        }
    }
}

static char folder[] = "/tmp/sct-data-XXXXXX";

static int
make_folder(void **state)
{
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int
remove_folder(void **state)
{
    char *command = message("rm -rf %s", folder);
    int status = system(command);

    free(command);
    return status;
}

static void
put(const char *name, const void *bytes, size_t n)
{
    char *path = message("%s/%s", folder, name);
    FILE *stream = fopen(path, "wb");

    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, 1, n, stream), n);
    fclose(stream);
    free(path);
}

/* Each sample is in one share, and a share has few labels. */
UNIT_TEST(shards_by_label_have_few_labels_and_all_samples)
{
    enum { N_PEERS = 5, N_TRAIN = 1003 };
    const struct dataset_config config = {
        .n_inputs = 4, .n_classes = 10, .n_train = N_TRAIN, .n_held = 1,
        .seed = 3,
    };
    int n_times[N_TRAIN] = { 0 }, n_moved = 0;

    for (int i = 0; i < N_PEERS; i++) {
        struct dataset *ds = dataset_generate(&config);
        struct batch *batch = batch_create();
        bool has[10] = { false };
        int n_labels = 0;
        size_t first;

        dataset_shard_by_label(ds, 8, i, N_PEERS);
        first = ds->shard[0];
        /* A whole epoch of the share. */
        dataset_fill(ds, 1, 0, ds->n_shard, batch);
        for (size_t k = 0; k < ds->n_shard; k++) {
            n_times[ds->shard[k]]++;
            has[batch->labels[k]] = true;
        }
        for (int label = 0; label < 10; label++) {
            n_labels += has[label];
        }
        assert_true(n_labels >= 2 && n_labels <= 6);
        free(ds->shard);
        ds->n_shard = 0;
        dataset_shard_by_label(ds, 9, i, N_PEERS);
        n_moved += ds->shard[0] != first;
        batch_destroy(batch);
        dataset_destroy(ds);
    }
    for (int k = 0; k < N_TRAIN; k++) {
        assert_int_equal(n_times[k], 1);
    }
    assert_true(n_moved);
}

#define RECORD (1 + CIFAR_COLOURS * CIFAR_PIXELS)

static const struct dataset_config cifar_config = {
    .n_inputs = 3072, .n_classes = 10, .n_train = 5, .n_held = 2,
};

/* Two files to train on; the second is only needed in part. */
UNIT_TEST_BETWEEN(reads_cifar_colour_by_colour, make_folder, remove_folder)
{
    static uint8_t bytes[3 * RECORD];
    struct dataset *ds;

    for (int i = 0; i < 3; i++) {
        bytes[i * RECORD] = i + 1;
        bytes[i * RECORD + 1 + 2] = 255;                /* Red. */
        bytes[i * RECORD + 1 + 2 * CIFAR_PIXELS + 2] = 128;     /* Blue. */
    }
    put("data_batch_1.bin", bytes, sizeof bytes);
    put("data_batch_2.bin", bytes, sizeof bytes);
    put("test_batch.bin", bytes, sizeof bytes);
    assert_null(dataset_cifar(&cifar_config, folder, &ds));
    assert_int_equal(ds->n_train, 5);
    assert_int_equal(ds->n_held, 2);
    assert_int_equal(ds->image.channels, 3);
    assert_int_equal(ds->train_labels[4], 2);
    assert_true(ds->train_x[6] > ds->train_x[8]);
    assert_true(ds->train_x[8] > ds->train_x[7]);
    assert_true(ds->train_x[7] == ds->train_x[0]);
    dataset_destroy(ds);
}

static void
check_message(char *error, const char *ending)
{
    char *wanted = message("%s%s", folder, ending);

    assert_is(error, wanted);
    free(wanted);
}

UNIT_TEST_BETWEEN(refuses_bad_cifar_files, make_folder, remove_folder)
{
    static uint8_t bytes[2 * RECORD];
    struct dataset *ds;

    check_message(dataset_cifar(&cifar_config, folder, &ds),
                  "/data_batch*.bin*: no such file");
    put("data_batch_1.bin", bytes, 0);
    check_message(dataset_cifar(&cifar_config, folder, &ds),
                  "/data_batch*.bin*: no images");
    put("data_batch_1.bin", bytes, sizeof bytes - 1);
    check_message(dataset_cifar(&cifar_config, folder, &ds),
                  "/data_batch_1.bin: ends within an image, a label and 3072 "
                  "bytes each are needed");
    bytes[RECORD] = 10;
    put("data_batch_1.bin", bytes, sizeof bytes);
    check_message(dataset_cifar(&cifar_config, folder, &ds),
                  "/data_batch_1.bin: label 10; expected 0 to 9");
    assert_null(ds);
}

UNIT_TEST_BETWEEN(reads_libsvm_lines, make_folder, remove_folder)
{
    static const char text[] = "\xef\xbb\xbf# a comment\n"
                               "+1 1:0.5 3:-2e1\n"
                               "\n"
                               "-1\n"
                               "+1 2:1 \t 4:3  # another\r\n"
                               "-1 4:7";
    struct dataset_config config = {
        .n_inputs = 4, .n_classes = 2, .n_train = 100, .n_held = 1,
    };
    char *path = message("%s/a", folder);
    struct dataset *ds;

    put("a", text, sizeof text - 1);
    assert_null(dataset_libsvm(&config, path, &ds));
    assert_int_equal(ds->n_train, 3);   /* The last is to judge by. */
    assert_int_equal(ds->n_held, 1);
    assert_int_equal(ds->train_labels[0], 1);
    assert_int_equal(ds->train_labels[1], 0);
    assert_int_equal(ds->train.starts[1], 2);
    assert_int_equal(ds->train.starts[2], 2);
    assert_int_equal(ds->train.starts[3], 4);
    assert_int_equal(ds->train.keys[1], 2);
    assert_true(ds->train.values[1] == -20);
    assert_int_equal(ds->held.keys[0], 3);
    dataset_destroy(ds);

    put("a.t", text, sizeof text - 1);          /* Now all of a are. */
    assert_null(dataset_libsvm(&config, path, &ds));
    assert_int_equal(ds->n_train, 4);
    assert_int_equal(ds->n_held, 1);
    assert_int_equal(ds->held_labels[0], 1);
    dataset_destroy(ds);
    free(path);
}

UNIT_TEST_BETWEEN(refuses_bad_libsvm_lines, make_folder, remove_folder)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "", "/b: 0 samples, more than the 1 to judge by are needed" },
        { "x 1:1\n", "/b:1: not a label, a number is needed" },
        { "1x 1:1\n", "/b:1: not a label, a number is needed" },
        { "nan 1:1\n", "/b:1: not a label, a number is needed" },
        { "1 1:1\n1 2:1 2:3\n",
          "/b:2: not a \"key:value\" after 2; expected keys up "
          "to 4 that ascend" },
        { "1 0:1\n",
          "/b:1: not a \"key:value\" after 0; expected keys up to 4 that "
          "ascend" },
        { "1 5:1\n",
          "/b:1: not a \"key:value\" after 0; expected keys up to 4 that "
          "ascend" },
        { "1 1:inf\n",
          "/b:1: not a \"key:value\" after 0; expected keys up to 4 that "
          "ascend" },
        { "1 1: 2:1x\n",
          "/b:1: not a \"key:value\" after 0; expected keys up to 4 "
          "that ascend" },
        { "1 1:1\n2 1:1\n3 1:1\n", "/b: labels 1, 2 and 3; expected two" },
        { "1 1:1\n1 1:1\n", "/b: 2 samples of one label, two labels are "
                            "needed" },
    };
    struct dataset_config config = {
        .n_inputs = 4, .n_classes = 2, .n_train = 100, .n_held = 1,
    };
    char *path = message("%s/b", folder);

    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct dataset *ds;

        put("b", cases[i].text, strlen(cases[i].text));
        check_message(dataset_libsvm(&config, path, &ds), cases[i].message);
        assert_null(ds);
    }
    free(path);
}

/* Options. */

UNIT_TEST(options_say_what_model_and_data_are)
{
    static const struct {
        const char *argv[6];
        int n_inputs, n_classes;
        const char *message;            /* NULL: fine. */
    } cases[] = {
        { { "--shape", "30,20,7" }, 30, 7, NULL },
        { { "--model", "cifarnet", "--image", "16x12x3" }, 576, 10, NULL },
        { { "--model", "resnet32", "--data", "mnist:/m" }, 784, 10, NULL },
        { { "--model", "cifarnet", "--data", "cifar10:/c" }, 3072, 10, NULL },
        { { "--model", "linear", "--features", "77" }, 77, 2, NULL },
        { { "--model", "linear", "--data", "libsvm:/l" }, 1024, 2, NULL },
        { { "--data", "libsvm:/l" }, 0, 0,
          "--data: \"libsvm:/l\" is not for the model \"mlp\"" },
        { { "--model", "linear", "--data", "/m" }, 0, 0,
          "--data: \"/m\" is not for the model \"linear\"" },
        { { "--model", "lenet" }, 0, 0, "--model: \"lenet\" is not one of "
          "\"mlp\", \"cifarnet\", \"resnet32\", \"linear\"" },
        { { "--image", "7x8x3" }, 0, 0, "--image: \"7x8x3\" is not "
          "HEIGHTxWIDTHxCHANNELS, up to 256x256x16" },
        { { "--image", "8x8x3x" }, 0, 0, "--image: \"8x8x3x\" is not "
          "HEIGHTxWIDTHxCHANNELS, up to 256x256x16" },
    };

    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        char *argv[8] = { (char []) { "local" } }, *error;
        struct options o;
        int argc = 1;
        bool help;

        while (argc < 7 && cases[i].argv[argc - 1]) {
            argv[argc] = (char *) cases[i].argv[argc - 1];
            argc++;
        }
        error = options_parse(argc, argv, &o, &help);
        if (cases[i].message) {
            assert_is(error, cases[i].message);
        } else {
            assert_null(error);
            assert_int_equal(options_n_inputs(&o), cases[i].n_inputs);
            assert_int_equal(options_n_classes(&o), cases[i].n_classes);
        }
    }
}

UNIT_TEST(large_models_need_enough_servers)
{
    static const struct {
        const char *name, *value;
        int n_servers;
        const char *message;            /* NULL: fine. */
    } cases[] = {
        { "--shape", "65535,65536", 8, NULL },
        { "--shape", "65535,65536", 7,
          "--shape: 4294967296 parameters with 7 "
          "servers; expected at least 8 servers" },
        { "--shape", "65535,8192", 1, NULL },
        { "--shape", "65535,8193", 1,
          "--shape: 536936448 parameters with 1 "
          "server; expected at least 2 servers" },
        { "--features", "536870911", 1, NULL },
        { "--features", "536870912", 1,
          "--features: 536870913 parameters "
          "with 1 server; expected at least 2 servers" },
    };

    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        char *argv[24] = { (char *) "worker" }, *error;
        struct options o;
        int argc = 1;
        bool help;

        argv[argc++] = (char *) cases[i].name;
        argv[argc++] = (char *) cases[i].value;
        if (!strcmp(cases[i].name, "--features")) {
            argv[argc++] = (char *) "--model=linear";
        }
        for (int j = 0; j < cases[i].n_servers; j++) {
            argv[argc++] = (char *) "--server";
            argv[argc++] = (char *) "h0:1";
        }
        error = options_parse(argc, argv, &o, &help);
        if (cases[i].message) {
            assert_non_null(error);
            assert_string_equal(error, cases[i].message);
        } else {
            assert_null(error);
        }
        free(error);
    }
}

/* Real files. */

/* Unpacks a file of $STAGECOACH_DATA into the folder. */
static void
unpack(const char *from, const char *to)
{
    char *command = message("gzip -dc \"$STAGECOACH_DATA/%s\" >%s/%s", from,
                            folder, to);

    assert_int_equal(system(command), 0);
    free(command);
}

UNIT_TEST_BETWEEN(reads_the_real_sets, make_folder, remove_folder)
{
    struct dataset_config mnist = {
        .n_inputs = 784, .n_classes = 10, .n_train = 3000, .n_held = 100,
    }, cifar = {
        .n_inputs = 3072, .n_classes = 10, .n_train = 3000, .n_held = 100,
    }, a9a = {
        .n_inputs = 123, .n_classes = 2, .n_train = 3000, .n_held = 100,
    };
    struct dataset *ds;
    char *path;

    if (!getenv("STAGECOACH_DATA")) {
        skip();
    }
    unpack("images/mnist/train-60k-images-idx3-ubyte.gz",
           "train-images-idx3-ubyte");
    unpack("images/mnist/train-60k-labels-idx1-ubyte.gz",
           "train-labels-idx1-ubyte");
    unpack("images/mnist/t10k-images-idx3-ubyte.gz",
           "t10k-images-idx3-ubyte");
    unpack("images/mnist/t10k-labels-idx1-ubyte.gz",
           "t10k-labels-idx1-ubyte");
    unpack("images/cifar10/data_batch_8k.bin.gz", "data_batch_8k.bin");
    unpack("images/cifar10/test_batch_1k.bin.gz", "test_batch_1k.bin");
    unpack("libsvm/a9a/a9a.gz", "a9a");
    unpack("libsvm/a9a/a9a.t.gz", "a9a.t");

    assert_null(dataset_mnist(&mnist, folder, &ds));
    assert_int_equal(ds->n_train, 3000);
    assert_int_equal(ds->image.height, 28);
    dataset_destroy(ds);
    assert_null(dataset_cifar(&cifar, folder, &ds));
    assert_int_equal(ds->n_train, 3000);
    dataset_destroy(ds);
    path = message("%s/a9a", folder);
    assert_null(dataset_libsvm(&a9a, path, &ds));
    assert_int_equal(ds->n_train, 3000);
    assert_int_equal(ds->n_held, 100);
    dataset_destroy(ds);
    free(path);
}
