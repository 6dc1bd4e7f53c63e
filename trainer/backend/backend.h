/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BACKEND_H
#define BACKEND_H 1

/* Arithmetic of the trainer: backends for CPU and GPU.
 *
 * Models and parameter servers use a table of functions.  "cpu" (OpenBLAS) is
 * always available and is the reference for tests of other backends.  "cuda"
 * is optional at build time, and opens if the machine has a GPU and its
 * driver.
 *
 *    struct backend *b;
 *    char *error = backend_open_named("auto", n_threads, &b);
 *    float *d_x = backend_alloc(b, n * sizeof *d_x);
 *    b->class->gemm(b, false, false, m, n, k, d_x, d_w, 0, d_y);
 *    backend_sync(b);
 *    if (backend_failure(b)) {
 *        ...the results are invalid...
 *    }
 *    backend_free(b, d_x);
 *    backend_close(b);
 *
 * A step on a GPU is one recorded graph: a small net consists of a hundred
 * kernels of some microseconds each, which take longer to launch than to run.
 * The first step of a batch size runs call by call, because libraries choose
 * their algorithms in it; the second is recorded.  From then on one launch
 * copies samples from pinned memory, computes, and copies each part of the
 * gradient to the host by a second stream while earlier layers are still
 * computed.  The device copies a counter behind each part, by which the host
 * sees that the part has arrived.
 *
 * The order of sums on a GPU depends on sizes only: no atomics, two passes,
 * double precision.  A run can be repeated bit by bit. tests/emulator compiles
 * the kernels for the host, so that they are tested without a GPU; it finds
 * writes out of bounds and deadlocks, but not a missing synchronization.
 *
 * Pointers named 'd_...' are memory of the same backend.  Operations may be
 * queued and are complete only after backend_sync(); download() and losses()
 * wait by themselves, and upload() has read the host's memory when it returns.
 * One thread per backend.
 *
 * Matrices are row-major: m rows, n columns.  The channels of images are
 * interleaved: a batch of images is a matrix with one row per pixel, n times
 * height times width, and one column per channel. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/backend/geometry.h"

struct backend_class;
struct backend_recording;

struct backend {
    const struct backend_class *class;
};

/* Largest number of parts of leave(). */
#define BACKEND_MAX_PARTS 192

struct backend_class {
    const char *name;

    /* Opens device 'index' with 'n_threads' threads, if that has a meaning.
     * Returns ENODEV if there is no such device, ELIBACC if a library is
     * missing, and other error numbers for a device that does not work. */
    int (*open)(int index, int n_threads, struct backend **);
    void (*close)(struct backend *);

    /* Optional: returns the reason why the last open() of this thread
     * failed. */
    const char *(*why)(void);

    /* Optional: writes the names and the versions of device and libraries, and
     * what is computed by which, for a log. */
    void (*describe)(struct backend *, char *text, size_t size);

    /* Optional: writes the PCI address of the device, for its driver. */
    void (*bus_id)(struct backend *, char *text, size_t size);

    /* Allocates zeroed memory.  Returns NULL if out of memory. */
    void *(*alloc)(struct backend *, size_t bytes);
    void (*free)(struct backend *, void *d_buffer);

    /* Optional: returns the bytes of the device that are free. */
    size_t (*left)(struct backend *);
    void (*upload)(struct backend *, void *d_to, const void *, size_t);
    void (*download)(struct backend *, void *to, const void *d_from, size_t);

    /* Optional: returns the address at which the host can access
     * 'd_buffer'. */
    void *(*map)(struct backend *, void *d_buffer);

    /* C = A B + beta C, A (after transposing, if 't_a') is m by k, B k by
     * n. */
    void (*gemm)(struct backend *, bool t_a, bool t_b, int m, int n, int k,
                 const float *d_a, const float *d_b, float beta, float *d_c);

    /* Adds 'd_bias' to each of the m rows of 'd_y', then applies ReLU if
     * 'relu'. */
    void (*bias)(struct backend *, int m, int n, const float *d_bias,
                 bool relu, float *d_y);

    /* Sets the gradient 'd_dy' to 0 where the output of the ReLU was 0. */
    void (*relu_gradient)(struct backend *, size_t n, const float *d_y,
                          float *d_dy);

    /* Stores the sum of column j in d_sums[j]. */
    void (*column_sums)(struct backend *, int m, int n, const float *d_y,
                        float *d_sums);

    /* Cross entropy of softmax(row) against 'd_labels', m rows.  Stores the
     * gradient of the mean over the rows in 'd_dy' unless that is NULL. */
    void (*cross_entropy)(struct backend *, int m, int n, const float *d_y,
                          const int32_t *d_labels, float *d_dy);

    /* Loss of m values against labels 0 and 1, which stand for signs: with the
     * margin 'a', max(0, 1 - a) if 'hinge', else log(1 + exp(-a)).  'd_dy' as
     * above. */
    void (*margin_loss)(struct backend *, int m, bool hinge, const float *d_y,
                        const int32_t *d_labels, float *d_dy);

    /* Results of the last of these two losses: the sum over the rows, and the
     * number of rows with the largest value, or the sign, at the label. */
    void (*losses)(struct backend *, double *loss_sum, int *n_correct);

    /* im2col() stores a row per pixel of the output: the pixels of the input
     * under the kernel, all channels of each, 0 outside. col2im() adds to each
     * pixel of the input its copies; if not 'add', starting from 0. */
    void (*im2col)(struct backend *, const struct convolution *, int n,
                   const float *d_x, float *d_columns);
    void (*col2im)(struct backend *, const struct convolution *, int n,
                   const float *d_columns, bool add, float *d_x);

    /* Optional: convolution of n images, and its gradients; the gradient of
     * the input is added to 'd_dx' if 'add'.  Return false if im2col() should
     * be used; backend_convolve() etc. do that. */
    bool (*convolve)(struct backend *, const struct convolution *, int n,
                     const float *d_x, const float *d_w, float *d_y);
    bool (*convolve_weights)(struct backend *, const struct convolution *,
                             int n, const float *d_x, const float *d_dy,
                             float *d_dw);
    bool (*convolve_input)(struct backend *, const struct convolution *,
                           int n, const float *d_dy, const float *d_w,
                           bool add, float *d_dx);

    /* Maximum of each square; its gradient goes to the first maximum. */
    void (*max_pool)(struct backend *, const struct pooling *, int n,
                     const float *d_x, float *d_y);
    void (*max_pool_gradient)(struct backend *, const struct pooling *, int n,
                              const float *d_x, const float *d_dy,
                              float *d_dx);

    /* Mean of all pixels of each image. */
    void (*mean_pool)(struct backend *, int n, int n_pixels, int n_channels,
                      const float *d_x, float *d_y);
    void (*mean_pool_gradient)(struct backend *, int n, int n_pixels,
                               int n_channels, const float *d_dy, float *d_dx);

    /* Batch normalisation of each column, then times 'd_scale', plus
     * 'd_shift', ReLU if 'relu'.  'd_stats' has 4 n elements: mean and 1 /
     * deviation of this batch, which norm() writes, and the running mean and
     * variance, which norm() updates by BACKEND_NORM_RATE and norm_fixed()
     * uses. norm_gradient() computes the gradient of the input 'd_x' from
     * 'd_dy', the gradient of the output 'd_y', which it may change; 'd_dx'
     * may be the same memory. */
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

    /* Residual join: adds the shortcut from 'd_x' to 'd_y' and applies ReLU.
     * join_gradient() computes the gradient of the shortcut. */
    void (*join)(struct backend *, const struct shortcut *, int n,
                 const float *d_x, float *d_y);
    void (*join_gradient)(struct backend *, const struct shortcut *, int n,
                          const float *d_dy, float *d_dx);

    /* y[i] = sum of values[e] x[at[e]], e from starts[i] to starts[i + 1] -
     * 1: a product with a sparse matrix of m rows. */
    void (*gather)(struct backend *, int m, const uint32_t *d_starts,
                   const uint32_t *d_at, const float *d_values,
                   const float *d_x, float *d_y);

    /* Computes d_sum += scale d_x. */
    void (*accumulate)(struct backend *, size_t n, float scale,
                       const float *d_x, float *d_sum);

    /* One step of SGD with momentum: v = momentum v + g, w = w - rate v. */
    void (*sgd)(struct backend *, size_t n, float rate, float momentum,
                const float *d_g, float *d_v, float *d_w);

    /* Optional: waits for queued operations. */
    void (*sync)(struct backend *);

    /* Optional: pinned host memory, for the asynchronous copies below. */
    void *(*alloc_host)(struct backend *, size_t bytes);
    void (*free_host)(struct backend *, void *);

    /* Optional, together: send() queues an upload. leave() queues a download
     * of the result of the operations queued before it, in parallel with those
     * queued after it; await() waits for it, by the number of the part in the
     * step that step() began last. */
    void (*step)(struct backend *);
    void (*send)(struct backend *, void *d_to, const void *, size_t);
    void (*leave)(struct backend *, int part, void *to, const void *d_from,
                  size_t);
    void (*await)(struct backend *, int part);

    /* Optional, together: operations queued between record() and record_end()
     * are stored instead of executed, and replay() queues all of them.  No
     * waiting or allocation is allowed in between.  record() returns false,
     * without a record_end() to follow, and record_end() returns NULL, if they
     * cannot be stored. */
    bool (*record)(struct backend *);
    struct backend_recording *(*record_end)(struct backend *);
    void (*replay)(struct backend *, struct backend_recording *);
    void (*recording_free)(struct backend *, struct backend_recording *);

    /* Optional: lets convolutions, or matrix products, round their factors to
     * TF32 (10 bits). */
    void (*set_tf32)(struct backend *, bool convolutions, bool products);

    /* Optional: returns a description of the first error since opening, or
     * NULL.  A failed backend stays failed. */
    const char *(*failure)(const struct backend *);
};

extern const struct backend_class backend_cpu;
/* Only with HAVE_CUDA. */
extern const struct backend_class backend_cuda;

/* Backends of this build, the preferred one first, terminated by NULL. */
extern const struct backend_class *const backend_classes[];

int backend_open(const struct backend_class *, int index, int n_threads,
                 struct backend **);

/* Opens the first device of the backend called 'name', or, if that is "auto",
 * of the first backend that has one.  Returns NULL or a message. */
char *backend_open_named(const char *name, int n_threads, struct backend **);
void backend_close(struct backend *);
void *backend_alloc(struct backend *, size_t bytes);    /* Never null. */
void backend_free(struct backend *, void *d_buffer);

/* Allocates zeroed host memory, pinned if the backend supports that. */
void *backend_alloc_host(struct backend *, size_t bytes);   /* Never null. */
void backend_free_host(struct backend *, void *);
void backend_sync(struct backend *);

/* See backend_class.convolve(); uses im2col() if necessary. */
void backend_convolve(struct backend *, const struct convolution *, int n,
                      const float *d_x, const float *d_w, float *d_y);
void backend_convolve_weights(struct backend *, const struct convolution *,
                              int n, const float *d_x, const float *d_dy,
                              float *d_dw);
void backend_convolve_input(struct backend *, const struct convolution *,
                            int n, const float *d_dy, const float *d_w,
                            bool add, float *d_dx);
/* NULL if none. */
const char *backend_failure(const struct backend *);

#endif /* trainer/backend/backend.h */
