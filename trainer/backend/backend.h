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
 * queued and is complete only after backend_sync(); download() and losses()
 * wait by themselves, and upload() is done with the host's memory when it
 * returns.  One thread a backend.
 *
 * Matrices are row-major: m rows, then n columns.  Images have their channels
 * side by side: a batch of images is a matrix of n times height times width
 * rows, one a pixel, and of as many columns as channels. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/backend/geometry.h"

struct backend_class;
struct backend_recording;

struct backend {
    const struct backend_class *class;
};

/* Parts that backend_class.leave() knows. */
#define BACKEND_MAX_PARTS 192

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

    /* The cross entropy of softmax(row) against 'd_labels' of m rows.  If
     * 'd_dy' is nonnull, it gets the gradient of the mean over the rows. */
    void (*cross_entropy)(struct backend *, int m, int n, const float *d_y,
                          const int32_t *d_labels, float *d_dy);

    /* The loss of m values against labels 0 and 1, which stand for signs: of
     * the margin 'a', max(0, 1 - a) if 'hinge', else log(1 + exp(-a)).
     * 'd_dy' is as above. */
    void (*margin_loss)(struct backend *, int m, bool hinge,
                        const float *d_y, const int32_t *d_labels,
                        float *d_dy);

    /* Of the last of those two: the sum of the rows' losses, and how many rows
     * have the label's value as their largest, or its sign. */
    void (*losses)(struct backend *, double *loss_sum, int *n_correct);

    /* One row for each pixel of the output: the pixels of the input under the
     * kernel, all channels of each, 0 outside.  col2im() adds to each pixel
     * of the input what its copies have; if not 'add', to 0. */
    void (*im2col)(struct backend *, const struct convolution *, int n,
                   const float *d_x, float *d_columns);
    void (*col2im)(struct backend *, const struct convolution *, int n,
                   const float *d_columns, bool add, float *d_x);

    /* Optional: a convolution of n images, and its gradients; the one by the
     * input is added to 'd_dx' if 'add'.  Return false if there is no better
     * way than im2col(); call backend_convolve() and so on instead. */
    bool (*convolve)(struct backend *, const struct convolution *, int n,
                     const float *d_x, const float *d_w, float *d_y);
    bool (*convolve_weights)(struct backend *, const struct convolution *,
                             int n, const float *d_x, const float *d_dy,
                             float *d_dw);
    bool (*convolve_input)(struct backend *, const struct convolution *,
                           int n, const float *d_dy, const float *d_w,
                           bool add, float *d_dx);

    /* The largest of each square; its gradient goes to the first such. */
    void (*max_pool)(struct backend *, const struct pooling *, int n,
                     const float *d_x, float *d_y);
    void (*max_pool_gradient)(struct backend *, const struct pooling *, int n,
                              const float *d_x, const float *d_dy,
                              float *d_dx);

    /* The mean of all pixels of each image. */
    void (*mean_pool)(struct backend *, int n, int n_pixels, int n_channels,
                      const float *d_x, float *d_y);
    void (*mean_pool_gradient)(struct backend *, int n, int n_pixels,
                               int n_channels, const float *d_dy,
                               float *d_dx);

    /* Batch normalisation of each column, then times 'd_scale', plus
     * 'd_shift', cut at 0 if 'relu'.  'd_stats' has 4 n elements: mean and 1
     * / deviation of this batch, which norm() writes, and the running mean and
     * variance, which it moves on by BACKEND_NORM_RATE and by which
     * norm_fixed() goes instead.  norm_gradient() makes of the gradient
     * 'd_dy' of the output 'd_y', which it may change, that of the input
     * 'd_x'; 'd_dx' may be the same memory. */
    void (*norm)(struct backend *, int m, int n, const float *d_x,
                 const float *d_scale, const float *d_shift, bool relu,
                 float *d_stats, float *d_y);
    void (*norm_fixed)(struct backend *, int m, int n, const float *d_x,
                       const float *d_scale, const float *d_shift, bool relu,
                       const float *d_stats, float *d_y);
    void (*norm_gradient)(struct backend *, int m, int n, const float *d_x,
                          const float *d_y, const float *d_scale, bool relu,
                          const float *d_stats, float *d_dy, float *d_dx,
                          float *d_dscale, float *d_dshift);

    /* 'd_y', of the shape of the output, plus the way around it for 'd_x', cut
     * at 0.  The gradient is that of the way around. */
    void (*join)(struct backend *, const struct shortcut *, int n,
                 const float *d_x, float *d_y);
    void (*join_gradient)(struct backend *, const struct shortcut *, int n,
                          const float *d_dy, float *d_dx);

    /* y[i] = sum of values[e] x[at[e]], e from starts[i] to starts[i + 1] -
     * 1: a product with a sparse matrix of m rows. */
    void (*gather)(struct backend *, int m, const uint32_t *d_starts,
                   const uint32_t *d_at, const float *d_values,
                   const float *d_x, float *d_y);

    /* d_sum = d_sum + scale d_x. */
    void (*accumulate)(struct backend *, size_t n, float scale,
                       const float *d_x, float *d_sum);

    /* One step of SGD with momentum: v = momentum v + g, w = w - rate v. */
    void (*sgd)(struct backend *, size_t n, float rate, float momentum,
                const float *d_g, float *d_v, float *d_w);

    /* Optional: waits for what is queued. */
    void (*sync)(struct backend *);

    /* Optional: host memory that the following copy from and to without
     * waiting. */
    void *(*alloc_host)(struct backend *, size_t bytes);
    void (*free_host)(struct backend *, void *);

    /* Optional, together: send() queues an upload.  leave() queues a download
     * of what the work that is queued before it makes, beside the work that is
     * queued after it, and await() waits for that, by the number of the part,
     * as it is in the step that step() began last. */
    void (*step)(struct backend *);
    void (*send)(struct backend *, void *d_to, const void *, size_t);
    void (*leave)(struct backend *, int part, void *to, const void *d_from,
                  size_t);
    void (*await)(struct backend *, int part);

    /* Optional, together: what is queued between record() and record_end(),
     * one step, is not done but kept, and replay() queues all of it at once.
     * Nothing that waits, and no memory, may be asked for meanwhile.
     * record_end() returns NULL if it cannot be kept. */
    void (*record)(struct backend *);
    struct backend_recording *(*record_end)(struct backend *);
    void (*replay)(struct backend *, struct backend_recording *);
    void (*recording_free)(struct backend *, struct backend_recording *);

    /* Optional: lets products round their factors to TF32 (10 bits). */
    void (*set_tf32)(struct backend *, bool);

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

/* Memory of the host, zeroed, from which the backend copies fastest. */
void *backend_alloc_host(struct backend *, size_t bytes);   /* Never null. */
void backend_free_host(struct backend *, void *);
void backend_sync(struct backend *);

/* See backend_class.convolve(): as it can, or by im2col(). */
void backend_convolve(struct backend *, const struct convolution *, int n,
                      const float *d_x, const float *d_w, float *d_y);
void backend_convolve_weights(struct backend *, const struct convolution *,
                              int n, const float *d_x, const float *d_dy,
                              float *d_dw);
void backend_convolve_input(struct backend *, const struct convolution *,
                            int n, const float *d_dy, const float *d_w,
                            bool add, float *d_dx);
const char *backend_failure(const struct backend *);    /* NULL: none. */

#endif /* trainer/backend/backend.h */
