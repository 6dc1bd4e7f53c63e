/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions by cuDNN, if its header was present at build time and the
 * library is present at run time; otherwise by matrix products.
 *
 * The fastest algorithm depends on the dimensions.  cuDNN estimates the times,
 * and the first convolution of each size takes the best deterministic one that
 * fits into the working memory.  Measuring the times instead would choose
 * another one in some runs, which then differ in the last bits.  Functions
 * return false if no algorithm fits. */

#include "trainer/backend/cuda.h"

#include <stdlib.h>
#include <string.h>

#ifdef HAVE_CUDNN

#include <cudnn.h>
#include <dlfcn.h>

#define TEXT_OF(X) #X
#define TEXT(X) TEXT_OF(X)
#define CUDNN_FILE "libcudnn.so." TEXT(CUDNN_MAJOR)
#define MAX_PLANS 256
#define MAX_TRIED 8             /* Algorithms of one kind. */

/* Functions of cuDNN in use. */
#define FUNCTIONS                               \
    FUNCTION(cudnnCreate)                       \
    FUNCTION(cudnnDestroy)                      \
    FUNCTION(cudnnGetVersion)                   \
    FUNCTION(cudnnSetStream)                    \
    FUNCTION(cudnnCreateTensorDescriptor)       \
    FUNCTION(cudnnDestroyTensorDescriptor)      \
    FUNCTION(cudnnSetTensor4dDescriptor)        \
    FUNCTION(cudnnCreateFilterDescriptor)       \
    FUNCTION(cudnnDestroyFilterDescriptor)      \
    FUNCTION(cudnnSetFilter4dDescriptor)        \
    FUNCTION(cudnnCreateConvolutionDescriptor)  \
    FUNCTION(cudnnDestroyConvolutionDescriptor) \
    FUNCTION(cudnnSetConvolution2dDescriptor)   \
    FUNCTION(cudnnSetConvolutionMathType)       \
    FUNCTION(cudnnGetConvolutionForwardAlgorithm_v7)              \
    FUNCTION(cudnnGetConvolutionBackwardDataAlgorithm_v7)         \
    FUNCTION(cudnnGetConvolutionBackwardFilterAlgorithm_v7)       \
    FUNCTION(cudnnConvolutionForward)           \
    FUNCTION(cudnnConvolutionBackwardData)      \
    FUNCTION(cudnnConvolutionBackwardFilter)

enum kind { FORWARD, WEIGHTS, INPUT };

/* Algorithm for one size. */
struct plan {
    enum kind kind;
    int n;
    struct convolution c;
    int algorithm;              /* -1 for matrix products. */
    cudnnMathType_t math;       /* Its kind of arithmetic. */
    size_t workspace;           /* Bytes. */
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t form;
};

struct cuda_dnn {
    void *file;
    cudnnHandle_t handle;
    struct plan plans[MAX_PLANS];
    int n_plans;
#define FUNCTION(NAME) __typeof__(&NAME) NAME;
    FUNCTIONS
#undef FUNCTION
};

static bool
load_all(struct cuda_dnn *dnn)
{
    dnn->file = dlopen(CUDNN_FILE, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!dnn->file) {
        return false;
    }
#define FUNCTION(NAME)                                          \
    *(void **) &dnn->NAME = dlsym(dnn->file, #NAME);            \
    if (!dnn->NAME) {                                           \
        return false;                                           \
    }
    FUNCTIONS
#undef FUNCTION
    return true;
}

void
cuda_dnn_open(struct cuda *cuda)
{
    struct cuda_dnn *dnn = calloc(1, sizeof *dnn);

    cuda->dnn = dnn;
    if (!dnn || !load_all(dnn)
        || dnn->cudnnCreate(&dnn->handle) != CUDNN_STATUS_SUCCESS
        || dnn->cudnnSetStream(dnn->handle, cuda->stream)
           != CUDNN_STATUS_SUCCESS) {
        cuda_dnn_close(cuda);
    }
}

static void
plan_uninit(struct cuda_dnn *dnn, struct plan *plan)
{
    if (plan->x) {
        dnn->cudnnDestroyTensorDescriptor(plan->x);
    }
    if (plan->y) {
        dnn->cudnnDestroyTensorDescriptor(plan->y);
    }
    if (plan->w) {
        dnn->cudnnDestroyFilterDescriptor(plan->w);
    }
    if (plan->form) {
        dnn->cudnnDestroyConvolutionDescriptor(plan->form);
    }
}

void
cuda_dnn_forget(struct cuda *cuda)
{
    if (cuda->dnn) {
        for (int i = 0; i < cuda->dnn->n_plans; i++) {
            plan_uninit(cuda->dnn, &cuda->dnn->plans[i]);
        }
        cuda->dnn->n_plans = 0;
    }
}

void
cuda_dnn_close(struct cuda *cuda)
{
    struct cuda_dnn *dnn = cuda->dnn;

    if (dnn) {
        cuda_dnn_forget(cuda);
        if (dnn->handle) {
            dnn->cudnnDestroy(dnn->handle);
        }
        if (dnn->file) {
            dlclose(dnn->file);
        }
        free(dnn);
        cuda->dnn = NULL;
    }
}

static bool
same_form(const struct plan *plan, enum kind kind,
          const struct convolution *c, int n)
{
    return plan->kind == kind && plan->n == n && plan->c.height == c->height
           && plan->c.width == c->width && plan->c.n_in == c->n_in
           && plan->c.n_out == c->n_out && plan->c.kernel == c->kernel
           && plan->c.stride == c->stride && plan->c.pad == c->pad;
}

static bool
describe(struct cuda_dnn *dnn, struct plan *plan, bool tf32)
{
    const struct convolution *c = &plan->c;

    return !dnn->cudnnCreateTensorDescriptor(&plan->x)
           && !dnn->cudnnCreateTensorDescriptor(&plan->y)
           && !dnn->cudnnCreateFilterDescriptor(&plan->w)
           && !dnn->cudnnCreateConvolutionDescriptor(&plan->form)
           && !dnn->cudnnSetTensor4dDescriptor(
               plan->x, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, plan->n,
               c->n_in, c->height, c->width)
           && !dnn->cudnnSetTensor4dDescriptor(
               plan->y, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, plan->n,
               c->n_out, convolution_height(c), convolution_width(c))
           && !dnn->cudnnSetFilter4dDescriptor(
               plan->w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, c->n_out,
               c->n_in, c->kernel, c->kernel)
           && !dnn->cudnnSetConvolution2dDescriptor(
               plan->form, c->pad, c->pad, c->stride, c->stride, 1, 1,
               CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT)
           && !dnn->cudnnSetConvolutionMathType(
               plan->form, tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH);
}

/* The results are sorted by time.  An algorithm may come several times, with
 * different kinds of arithmetic. */
#define CHOOSE(PLAN, TRIED, N, LIMIT)                                   \
    for (int i = 0; i < (N); i++) {                                     \
        if (!(TRIED)[i].status                                          \
            && (TRIED)[i].determinism == CUDNN_DETERMINISTIC            \
            && (TRIED)[i].memory <= (LIMIT)) {                          \
            (PLAN)->algorithm = (TRIED)[i].algo;                        \
            (PLAN)->workspace = (TRIED)[i].memory;                      \
            (PLAN)->math = (TRIED)[i].mathType;                         \
            break;                                                      \
        }                                                               \
    }

static void
choose(struct cuda_dnn *dnn, struct plan *plan)
{
    size_t limit = plan->c.max_columns * sizeof(float);
    int n = 0;

    if (plan->kind == FORWARD) {
        cudnnConvolutionFwdAlgoPerf_t tried[MAX_TRIED];

        dnn->cudnnGetConvolutionForwardAlgorithm_v7(
            dnn->handle, plan->x, plan->w, plan->form, plan->y, MAX_TRIED, &n,
            tried);
        CHOOSE(plan, tried, n, limit);
    } else if (plan->kind == INPUT) {
        cudnnConvolutionBwdDataAlgoPerf_t tried[MAX_TRIED];

        dnn->cudnnGetConvolutionBackwardDataAlgorithm_v7(
            dnn->handle, plan->w, plan->y, plan->form, plan->x, MAX_TRIED, &n,
            tried);
        CHOOSE(plan, tried, n, limit);
    } else {
        cudnnConvolutionBwdFilterAlgoPerf_t tried[MAX_TRIED];

        dnn->cudnnGetConvolutionBackwardFilterAlgorithm_v7(
            dnn->handle, plan->x, plan->y, plan->form, plan->w, MAX_TRIED, &n,
            tried);
        CHOOSE(plan, tried, n, limit);
    }
    if (plan->algorithm >= 0
        && dnn->cudnnSetConvolutionMathType(plan->form, plan->math)) {
        plan->algorithm = -1;
    }
}

/* Returns NULL if matrix products must be used. */
static struct plan *
get_plan(struct cuda *cuda, enum kind kind, const struct convolution *c, int n)
{
    struct cuda_dnn *dnn = cuda->dnn;
    struct plan *plan;

    if (!dnn) {
        return NULL;
    }
    for (int i = 0; i < dnn->n_plans; i++) {
        plan = &dnn->plans[i];
        if (same_form(plan, kind, c, n)) {
            return plan->algorithm < 0
                   || plan->workspace > c->max_columns * sizeof(float)
                   ? NULL : plan;
        }
    }
    if (cuda->recording) {
        return NULL;            /* Measuring is impossible while recording. */
    }
    if (dnn->n_plans == MAX_PLANS) {
        cuda_dnn_forget(cuda);
    }
    plan = &dnn->plans[dnn->n_plans++];
    memset(plan, 0, sizeof *plan);
    plan->kind = kind;
    plan->n = n;
    plan->c = *c;
    plan->algorithm = -1;
    if (describe(dnn, plan, cuda->tf32)) {
        choose(dnn, plan);
    }
    cudaGetLastError();         /* An attempt may have failed. */
    return plan->algorithm < 0 ? NULL : plan;
}

/* Returns false if matrix products must do the work of a call that was
 * refused, such as one that adds to what is there.  The first step of a batch
 * size is not recorded, so that later ones know. */
static bool
was_done(struct cuda *cuda, struct plan *plan, cudnnStatus_t status)
{
    if (status == CUDNN_STATUS_SUCCESS) {
        return true;
    }
    if (cuda->recording) {
        cuda_fail(cuda, "convolution", "cuDNN", status);
        return true;
    }
    plan->algorithm = -1;
    cudaGetLastError();
    return false;
}

bool
cuda_dnn_convolve(struct backend *b, const struct convolution *c, int n,
                  const float *d_x, const float *d_w, float *d_y)
{
    struct cuda *cuda = cuda_cast(b);
    struct cuda_dnn *dnn = cuda->dnn;
    struct plan *plan = get_plan(cuda, FORWARD, c, n);
    const float one = 1, zero = 0;

    return plan
           && was_done(cuda, plan, dnn->cudnnConvolutionForward(
               dnn->handle, &one, plan->x, d_x, plan->w, d_w, plan->form,
               plan->algorithm, c->d_columns, plan->workspace, &zero, plan->y,
               d_y));
}

bool
cuda_dnn_convolve_weights(struct backend *b, const struct convolution *c,
                          int n, const float *d_x, const float *d_dy,
                          float *d_dw)
{
    struct cuda *cuda = cuda_cast(b);
    struct cuda_dnn *dnn = cuda->dnn;
    struct plan *plan = get_plan(cuda, WEIGHTS, c, n);
    const float one = 1, zero = 0;

    return plan
           && was_done(cuda, plan, dnn->cudnnConvolutionBackwardFilter(
               dnn->handle, &one, plan->x, d_x, plan->y, d_dy, plan->form,
               plan->algorithm, c->d_columns, plan->workspace, &zero, plan->w,
               d_dw));
}

bool
cuda_dnn_convolve_input(struct backend *b, const struct convolution *c,
                        int n, const float *d_dy, const float *d_w, bool add,
                        float *d_dx)
{
    struct cuda *cuda = cuda_cast(b);
    struct cuda_dnn *dnn = cuda->dnn;
    struct plan *plan = get_plan(cuda, INPUT, c, n);
    const float one = 1, beta = add;

    return plan
           && was_done(cuda, plan, dnn->cudnnConvolutionBackwardData(
               dnn->handle, &one, plan->w, d_w, plan->y, d_dy, plan->form,
               plan->algorithm, c->d_columns, plan->workspace, &beta, plan->x,
               d_dx));
}

size_t
cuda_dnn_count(struct cuda *cuda, int *n_convolved, int *n_left)
{
    *n_convolved = *n_left = 0;
    if (!cuda->dnn) {
        return 0;
    }
    for (int i = 0; i < cuda->dnn->n_plans; i++) {
        bool left = cuda->dnn->plans[i].algorithm < 0;

        *n_left += left;
        *n_convolved += !left;
    }
    return cuda->dnn->cudnnGetVersion();
}

#else /* HAVE_CUDNN */

void
cuda_dnn_open(struct cuda *cuda)
{
}

void
cuda_dnn_close(struct cuda *cuda)
{
}

void
cuda_dnn_forget(struct cuda *cuda)
{
}

size_t
cuda_dnn_count(struct cuda *cuda, int *n_convolved, int *n_left)
{
    *n_convolved = *n_left = 0;
    return 0;
}

bool
cuda_dnn_convolve(struct backend *b, const struct convolution *c, int n,
                  const float *d_x, const float *d_w, float *d_y)
{
    return false;
}

bool
cuda_dnn_convolve_weights(struct backend *b, const struct convolution *c,
                          int n, const float *d_x, const float *d_dy,
                          float *d_dw)
{
    return false;
}

bool
cuda_dnn_convolve_input(struct backend *b, const struct convolution *c,
                        int n, const float *d_dy, const float *d_w, bool add,
                        float *d_dx)
{
    return false;
}

#endif /* HAVE_CUDNN */
