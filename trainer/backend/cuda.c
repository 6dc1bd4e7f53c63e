/* SPDX-License-Identifier: Apache-2.0 */

/* NVIDIA GPU: device, memory, copies, recordings.
 *
 * The runtime library is linked statically, so that the program starts on
 * machines without driver and toolkit and reports that there is no device. */

#include "trainer/backend/cuda.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

struct backend_recording {
    cudaGraphExec_t graph;
};

void
cuda_check(struct cuda *cuda, const char *what, cudaError_t error)
{
    if (error != cudaSuccess && !cuda->failure[0]) {
        snprintf(cuda->failure, sizeof cuda->failure, "%s: %s", what,
                 cudaGetErrorString(error));
    }
}

void
cuda_fail(struct cuda *cuda, const char *what, const char *library,
          int status)
{
    if (!cuda->failure[0]) {
        snprintf(cuda->failure, sizeof cuda->failure, "%s: %s status %d",
                 what, library, status);
    }
}

const char *
cuda_failure(const struct backend *b)
{
    const struct cuda *cuda = cuda_cast(b);

    return cuda->failure[0] ? cuda->failure : NULL;
}

/* Opening. */

/* Closes a backend, also one that is partly open. */
void
cuda_close(struct backend *b)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_dnn_close(cuda);
    cuda_blas_close(cuda);
    cudaFree(cuda->d_partials);
    cudaFree(cuda->d_work);
    cudaFree(cuda->d_step);
    if (cuda->mailbox) {
        cudaFreeHost((void *) cuda->mailbox);
    }
    if (cuda->fork) {
        cudaEventDestroy(cuda->fork);
    }
    if (cuda->join) {
        cudaEventDestroy(cuda->join);
    }
    if (cuda->copies) {
        cudaStreamDestroy(cuda->copies);
    }
    if (cuda->stream) {
        cudaStreamDestroy(cuda->stream);
    }
    free(cuda);
}

static int
open_streams(struct cuda *cuda, int index)
{
    return cudaSetDevice(index) == cudaSuccess
           && cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking)
              == cudaSuccess
           && cudaStreamCreateWithFlags(&cuda->copies, cudaStreamNonBlocking)
              == cudaSuccess
           && cudaEventCreateWithFlags(&cuda->fork, cudaEventDisableTiming)
              == cudaSuccess
           && cudaEventCreateWithFlags(&cuda->join, cudaEventDisableTiming)
              == cudaSuccess ? 0 : EIO;
}

static int
open_memory(struct cuda *cuda)
{
    return cudaMalloc((void **) &cuda->d_partials,
                      sizeof cuda->mailbox->partials) == cudaSuccess
           && cudaMalloc((void **) &cuda->d_work,
                         CUDA_KERNELS_WORK * sizeof *cuda->d_work)
              == cudaSuccess
           && cudaMalloc((void **) &cuda->d_step, sizeof *cuda->d_step)
              == cudaSuccess
           && cudaMemset(cuda->d_step, 0, sizeof *cuda->d_step)
              == cudaSuccess
           && cudaHostAlloc((void **) &cuda->mailbox, sizeof *cuda->mailbox,
                            cudaHostAllocDefault) == cudaSuccess
           ? 0 : ENOMEM;
}

/* No driver, an old driver and no device are equal here. */
int
cuda_open(int index, int n_threads, struct backend **backendp)
{
    struct cuda *cuda;
    int n_devices, error;

    if (cudaGetDeviceCount(&n_devices) != cudaSuccess || index < 0
        || index >= n_devices) {
        return ENODEV;
    }
    cuda = calloc(1, sizeof *cuda);
    if (!cuda) {
        return ENOMEM;
    }
    cuda->up.class = &backend_cuda;
    error = open_streams(cuda, index);
    if (!error) {
        error = open_memory(cuda);
    }
    if (!error) {
        error = cuda_blas_open(cuda);
    }
    if (error) {
        cuda_close(&cuda->up);
        return error;
    }
    for (int i = 0; i < BACKEND_MAX_PARTS; i++) {
        cuda->mailbox->left[i] = 0;
    }
    cuda_dnn_open(cuda);
    *backendp = &cuda->up;
    return 0;
}

void
cuda_set_tf32(struct backend *b, bool tf32)
{
    struct cuda *cuda = cuda_cast(b);

    cuda->tf32 = tf32;
    cuda_blas_set_tf32(cuda, tf32);
    cuda_dnn_forget(cuda);
}

/* Memory and synchronous copies. */

void
cuda_sync(struct backend *b)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(cuda, "sync", cudaStreamSynchronize(cuda->stream));
    cuda_check(cuda, "sync", cudaStreamSynchronize(cuda->copies));
}

void *
cuda_alloc(struct backend *b, size_t bytes)
{
    struct cuda *cuda = cuda_cast(b);
    void *d_buffer;

    if (cudaMalloc(&d_buffer, bytes ? bytes : 1) != cudaSuccess) {
        return NULL;
    }
    cuda_check(cuda, "alloc",
               cudaMemsetAsync(d_buffer, 0, bytes, cuda->stream));
    return d_buffer;
}

void
cuda_free(struct backend *b, void *d_buffer)
{
    cudaFree(d_buffer);         /* Waits for what uses it. */
}

void
cuda_upload(struct backend *b, void *d_to, const void *from, size_t bytes)
{
    cuda_send(b, d_to, from, bytes);
    cuda_sync(b);
}

void
cuda_download(struct backend *b, void *to, const void *d_from, size_t bytes)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(cuda, "download",
               cudaMemcpyAsync(to, d_from, bytes, cudaMemcpyDeviceToHost,
                               cuda->stream));
    cuda_sync(b);
}

/* Copies that do not. */

void *
cuda_alloc_host(struct backend *b, size_t bytes)
{
    void *p;

    return cudaHostAlloc(&p, bytes ? bytes : 1, cudaHostAllocDefault)
           == cudaSuccess ? p : NULL;
}

void
cuda_free_host(struct backend *b, void *p)
{
    if (p) {
        cudaFreeHost(p);
    }
}

void
cuda_send(struct backend *b, void *d_to, const void *from, size_t bytes)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(cuda, "upload",
               cudaMemcpyAsync(d_to, from, bytes, cudaMemcpyHostToDevice,
                               cuda->stream));
}

/* The device counts steps too, so that the arrival of a part is reported with
 * the number of its step. */
void
cuda_step(struct backend *b)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(cuda, "step", cuda_kernels_count(cuda->stream, cuda->d_step));
    cuda->step += !cuda->recording;
}

void
cuda_leave(struct backend *b, int part, void *to, const void *d_from,
           size_t bytes)
{
    struct cuda *cuda = cuda_cast(b);

    cuda->leaves = true;
    cuda_check(cuda, "leave", cudaEventRecord(cuda->fork, cuda->stream));
    cuda_check(cuda, "leave",
               cudaStreamWaitEvent(cuda->copies, cuda->fork, 0));
    cuda_check(cuda, "leave",
               cudaMemcpyAsync(to, d_from, bytes, cudaMemcpyDeviceToHost,
                               cuda->copies));
    cuda_check(cuda, "leave",
               cudaMemcpyAsync((void *) &cuda->mailbox->left[part],
                               cuda->d_step, sizeof cuda->step,
                               cudaMemcpyDeviceToHost, cuda->copies));
}

/* A part comes within microseconds of the one before, so that sleeping would
 * take longer.  Nothing comes any more once both streams are empty, or have
 * failed. */
void
cuda_await(struct backend *b, int part)
{
    struct cuda *cuda = cuda_cast(b);

    while (cuda->mailbox->left[part] != cuda->step) {
        cudaError_t error = cudaStreamQuery(cuda->stream);

        if (error == cudaSuccess) {
            error = cudaStreamQuery(cuda->copies);
        }
        if (error != cudaErrorNotReady) {
            cuda_check(cuda, "await", error);
            if (cuda->mailbox->left[part] != cuda->step) {
                cuda_check(cuda, "await", cudaErrorUnknown);
            }
            return;
        }
        sched_yield();
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

/* Recordings. */

void
cuda_record(struct backend *b)
{
    struct cuda *cuda = cuda_cast(b);

    cuda->was_well = !cuda->failure[0];
    cuda_check(cuda, "record",
               cudaStreamBeginCapture(cuda->stream,
                                      cudaStreamCaptureModeThreadLocal));
    cuda->recording = true;
    cuda->leaves = false;
}

/* The stream of copies comes back to the other one if a leave() made it part
 * of the recording; if none did, it must not. */
struct backend_recording *
cuda_record_end(struct backend *b)
{
    struct cuda *cuda = cuda_cast(b);
    struct backend_recording *recording = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec;

    if (cuda->leaves) {
        cuda_check(cuda, "record", cudaEventRecord(cuda->join, cuda->copies));
        cuda_check(cuda, "record",
                   cudaStreamWaitEvent(cuda->stream, cuda->join, 0));
    }
    cuda_check(cuda, "record", cudaStreamEndCapture(cuda->stream, &graph));
    cuda->recording = false;
    if (!graph && cuda->was_well) {
        cuda->failure[0] = '\0';        /* Nothing was done, or lost. */
        cudaGetLastError();
    }
    if (graph && cudaGraphInstantiateWithFlags(&exec, graph, 0)
                 == cudaSuccess) {
        recording = malloc(sizeof *recording);
        if (recording) {
            recording->graph = exec;
        } else {
            cudaGraphExecDestroy(exec);
        }
    }
    if (graph) {
        cudaGraphDestroy(graph);
    }
    return recording;
}

void
cuda_replay(struct backend *b, struct backend_recording *recording)
{
    struct cuda *cuda = cuda_cast(b);

    cuda->step++;
    cuda_check(cuda, "replay",
               cudaGraphLaunch(recording->graph, cuda->stream));
}

void
cuda_recording_free(struct backend *b, struct backend_recording *recording)
{
    if (recording) {
        cuda_sync(b);
        cudaGraphExecDestroy(recording->graph);
        free(recording);
    }
}
