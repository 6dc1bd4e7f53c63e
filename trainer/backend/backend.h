/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BACKEND_H
#define BACKEND_H 1

/* Where the trainer's arithmetic runs.
 *
 *
 * Motivation
 * ==========
 *
 * Model and parameter server are written once against a table of functions.
 * "cpu" (OpenBLAS) is always there and is the reference that every other
 * backend is compared with.  "cuda" is there if it was built, and opens if the
 * machine has a GPU and its driver.
 *
 *
 * Usage
 * =====
 *
 *    struct backend *b;
 *    char *error = backend_open_named("auto", n_threads, &b);
 *    float *d_x = backend_alloc(b, n * sizeof *d_x);
 *    b->class->gemm(b, false, false, m, n, k, d_x, d_w, 0, d_y);
 *    backend_sync(b);
 *    if (backend_failure(b)) {
 *        ...what was computed is worthless...
 *    }
 *    backend_free(b, d_x);
 *    backend_close(b);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Names with 'd_' are pointers to memory of the same backend.  Work may be
 * queued and is complete only after backend_sync(); download() and
 * cross_entropy() wait by themselves, and upload() is done with the host's
 * memory when it returns.  One thread a backend.
 *
 * Matrices are row-major: m rows, then n columns. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct backend_class;

struct backend {
    const struct backend_class *class;
};

struct backend_class {
    const char *name;

    /* Opens device 'index' with 'n_threads' threads, as far as that has a
     * meaning there.  Returns ENODEV if there is no such device, ELIBACC if a
     * library that it needs is not there. */
    int (*open)(int index, int n_threads, struct backend **);
    void (*close)(struct backend *);

    /* Memory, zeroed.  Returns NULL if there is none. */
    void *(*alloc)(struct backend *, size_t bytes);
    void (*free)(struct backend *, void *d_buffer);
    void (*upload)(struct backend *, void *d_to, const void *, size_t);
    void (*download)(struct backend *, void *to, const void *d_from, size_t);

    /* Optional: where the host reads and writes 'd_buffer' in place. */
    void *(*map)(struct backend *, void *d_buffer);

    /* C = A B + beta C, A (after transposing, if 't_a') is m by k, B k by
     * n. */
    void (*gemm)(struct backend *, bool t_a, bool t_b, int m, int n, int k,
                 const float *d_a, const float *d_b, float beta, float *d_c);

    /* Adds 'd_bias' to each of the m rows of 'd_y', then cuts at 0 if
     * 'relu'. */
    void (*bias)(struct backend *, int m, int n, const float *d_bias,
                 bool relu, float *d_y);

    /* Makes the gradient 'd_dy' of a cut layer 0 where its output was. */
    void (*relu_gradient)(struct backend *, size_t n, const float *d_y,
                          float *d_dy);

    /* d_sums[j] is the sum of column j. */
    void (*column_sums)(struct backend *, int m, int n, const float *d_y,
                        float *d_sums);

    /* Sums over m rows of the cross entropy of softmax(row) against
     * 'd_labels' and of the rows whose largest is the label's.  If 'd_dy' is
     * nonnull, it gets the gradient of the mean over the rows. */
    void (*cross_entropy)(struct backend *, int m, int n, const float *d_y,
                          const int32_t *d_labels, float *d_dy,
                          double *loss_sum, int *n_correct);

    /* d_sum = d_sum + scale d_x. */
    void (*accumulate)(struct backend *, size_t n, float scale,
                       const float *d_x, float *d_sum);

    /* One step of SGD with momentum: v = momentum v + g, w = w - rate v. */
    void (*sgd)(struct backend *, size_t n, float rate, float momentum,
                const float *d_g, float *d_v, float *d_w);

    /* Optional: waits for what is queued. */
    void (*sync)(struct backend *);

    /* Optional: the first thing that has gone wrong since the opening, in
     * words, or NULL.  A backend that has failed stays so. */
    const char *(*failure)(const struct backend *);
};

extern const struct backend_class backend_cpu;
extern const struct backend_class backend_cuda; /* If built: HAVE_CUDA. */

/* Those of this build, the preferred one first, then NULL. */
extern const struct backend_class *const backend_classes[];

int backend_open(const struct backend_class *, int index, int n_threads,
                 struct backend **);

/* Opens the first device of the backend called 'name', or, if that is "auto",
 * of the first backend that opens.  Returns NULL or a message. */
char *backend_open_named(const char *name, int n_threads, struct backend **);
void backend_close(struct backend *);
void *backend_alloc(struct backend *, size_t bytes);    /* Never null. */
void backend_free(struct backend *, void *d_buffer);
void backend_sync(struct backend *);
const char *backend_failure(const struct backend *);    /* NULL: none. */

#endif /* trainer/backend/backend.h */
