/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CUDA_EMULATOR_H
#define CUDA_EMULATOR_H 1

/* An emulator for CUDA kernels: compiles them with the host's C++ compiler and
 * runs them on a machine without a GPU.
 *
 * The CUDA backend must be tested where there is no GPU.  This header is
 * included before a .cu file and defines what nvcc would have defined; the .cc
 * files emulate the device, the runtime library and cuBLAS.  The threads of a
 * block run one after the other, each until it reaches a barrier; a block in
 * which some threads wait for others that have ended, or that wait at another
 * barrier, aborts the program.
 *
 * Kernels and copies to the device are done at once.  Copies to the host are
 * late, so that a missing wait for one is detected; see cuda-emulator.cc.
 * With $EMULATOR_REFUSES=FUNCTION, cudaStreamBeginCapture() or
 * cudaGraphInstantiate() fails.
 *
 *    c++ -x c++ -include cuda-emulator.h -c kernels.cu
 *
 * The program is linked with -Wl,--wrap=dlopen,--wrap=dlsym,--wrap=dlclose,
 * because the backend loads cuBLAS at run time.
 *
 * One thread. */

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

/* Indices and dimensions of the running thread. */
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

/* Blocks run one after the other, so that one copy of shared memory is
 * enough. */
#undef __shared__
#define __shared__ static
#define __launch_bounds__(...)

void emulator_meet_block();
void emulator_meet_warp(const void *value, size_t size);
void emulator_read_lane(int lane, void *value, size_t size);
unsigned int emulator_lane();
cudaError_t emulator_launch(dim3 grid, dim3 block, cudaStream_t,
                            bool meeting, std::function<void()> kernel);

/* Runs a kernel now. */
void emulator_run(dim3 grid, dim3 block, bool meeting,
                  const std::function<void()> &kernel);
void emulator_die(const char *why);

#define __syncthreads() emulator_meet_block()

/* The second meeting prevents a lane from overwriting a value before all other
 * lanes have read it. */
template<class T> static inline T
__shfl_sync(unsigned int, T value, int lane)
{
    T result;

    emulator_meet_warp(&value, sizeof value);
    emulator_read_lane(lane, &result, sizeof result);
    emulator_meet_warp(nullptr, 0);
    return result;
}

template<class T> static inline T
__shfl_xor_sync(unsigned int mask, T value, int step)
{
    return __shfl_sync(mask, value, emulator_lane() ^ step);
}

#define EMULATOR_LAUNCH(KERNEL, GRID, THREADS, STREAM, MEETING, ...)    \
    emulator_launch((GRID), (THREADS), (STREAM), (MEETING),             \
                    [=]() { (KERNEL)(__VA_ARGS__); })
#define LAUNCH(KERNEL, GRID, THREADS, STREAM, ...)                      \
    EMULATOR_LAUNCH(KERNEL, GRID, THREADS, STREAM, false, __VA_ARGS__)
#define LAUNCH_MEETING(KERNEL, GRID, THREADS, STREAM, ...)              \
    EMULATOR_LAUNCH(KERNEL, GRID, THREADS, STREAM, true, __VA_ARGS__)

#endif /* tests/emulator/cuda-emulator.h */
