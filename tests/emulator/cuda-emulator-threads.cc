/* SPDX-License-Identifier: Apache-2.0 */

/* The device: grids, blocks, threads and barriers; see cuda-emulator.h. */

#include "tests/emulator/cuda-emulator.h"

#include <setjmp.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <vector>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

/* Threads. */

static const size_t stack_size = 64 << 10;
static const size_t max_threads = 1024;         /* Of a block. */

enum state {
    RUNS,
    MEETS_WARP,
    MEETS_BLOCK,
    GONE,
};

/* AddressSanitizer, if the program has it, must know which stack is in use.
 * Otherwise each longjmp() writes a report. */
extern "C" {
__attribute__((weak)) void
__sanitizer_start_switch_fiber(void **, const void *stack, size_t);
__attribute__((weak)) void
__sanitizer_finish_switch_fiber(void *, const void **old_stack, size_t *);
}

/* A thread starts with a context, and runs all kernels from then on.  Later
 * switches use longjmp(), which, unlike swapcontext(), makes no system
 * calls. */
struct thread {
    ucontext_t context;
    jmp_buf jump;
    bool started = false;
    std::vector<char> stack;
};

static std::deque<thread> threads;

/* Of each thread, side by side, because a barrier reads all of them. */
static uint3 indices[max_threads];
static enum state states[max_threads];
static char values[max_threads][16];    /* Shared with its warp. */

static size_t current;
static jmp_buf scheduler;
static const void *scheduler_stack;
static size_t scheduler_stack_size;
static const std::function<void()> *kernel_running;

/* Announces the switch to 'stack'. */
static void
leave_stack(const void *stack, size_t size)
{
    if (__sanitizer_start_switch_fiber) {
        __sanitizer_start_switch_fiber(NULL, stack, size);
    }
}

/* Confirms a switch and stores the stack that was left. */
static void
enter_stack(const void **left, size_t *size)
{
    if (__sanitizer_finish_switch_fiber) {
        __sanitizer_finish_switch_fiber(NULL, left, size);
    }
}

static void
switch_to_scheduler()
{
    leave_stack(scheduler_stack, scheduler_stack_size);
    _longjmp(scheduler, 1);
}

static void
meet(enum state state)
{
    states[current] = state;
    if (!_setjmp(threads[current].jump)) {
        switch_to_scheduler();
    }
    enter_stack(&scheduler_stack, &scheduler_stack_size);
}

static void
thread_main()
{
    enter_stack(&scheduler_stack, &scheduler_stack_size);
    while (true) {
        (*kernel_running)();
        meet(GONE);
    }
}

[[noreturn]] static void
switch_to(thread &t)
{
    leave_stack(t.stack.data(), t.stack.size());
    if (t.started) {
        _longjmp(t.jump, 1);
    }
    t.started = true;
    setcontext(&t.context);
    abort();
}

/* Runs thread 'i' until it reaches a barrier or ends. */
static void
run_thread(size_t i)
{
    current = i;
    threadIdx = indices[i];
    if (!_setjmp(scheduler)) {
        switch_to(threads[current]);
    }
    enter_stack(NULL, NULL);
}

void
emulator_meet_block()
{
    meet(MEETS_BLOCK);
}

void
emulator_meet_warp(const void *value, size_t size)
{
    if (size > sizeof values[current]) {
        emulator_die("a shuffled value is too large");
    }
    if (size) {
        memcpy(values[current], value, size);
    }
    meet(MEETS_WARP);
}

unsigned int
emulator_lane()
{
    return current % 32;
}

void
emulator_read_lane(int lane, void *value, size_t size)
{
    memcpy(value, values[current / 32 * 32 + lane % 32], size);
}

/* Releases the threads from 'first' on if all of them wait in 'state'. */
static bool
release(size_t first, size_t n, enum state state)
{
    for (size_t i = first; i < first + n; i++) {
        if (states[i] != state) {
            return false;
        }
    }
    for (size_t i = first; i < first + n; i++) {
        states[i] = RUNS;
    }
    return true;
}

/* Runs each thread until it reaches a barrier.  Returns false if all have
 * ended. */
static bool
run_threads(size_t n)
{
    bool any = false, released = false;

    for (size_t i = 0; i < n; i++) {
        if (states[i] == RUNS) {
            run_thread(i);
        }
        any = any || states[i] != GONE;
    }
    for (size_t i = 0; i < n; i += 32) {
        released = release(i, std::min<size_t>(32, n - i), MEETS_WARP)
                   || released;
    }
    released = release(0, n, MEETS_BLOCK) || released;
    if (any && !released) {
        emulator_die("threads wait for others that do not come");
    }
    return any;
}

static void
run_meeting_block(size_t n, const std::function<void()> &kernel)
{
    kernel_running = &kernel;
    for (size_t i = threads.size(); i < n; i++) {
        threads.push_back({});

        thread &t = threads.back();

        t.stack.resize(stack_size);
        getcontext(&t.context);
        t.context.uc_stack.ss_sp = t.stack.data();
        t.context.uc_stack.ss_size = t.stack.size();
        makecontext(&t.context, thread_main, 0);
    }
    for (size_t i = 0; i < n; i++) {
        states[i] = RUNS;
    }
    while (run_threads(n)) {
    }
}

void
emulator_run(dim3 grid, dim3 block, bool meeting,
             const std::function<void()> &kernel)
{
    unsigned int n = 0;

    for (unsigned int z = 0; z < block.z; z++) {
        for (unsigned int y = 0; y < block.y; y++) {
            for (unsigned int x = 0; x < block.x; x++) {
                indices[n++] = { x, y, z };
            }
        }
    }
    gridDim = grid;
    blockDim = block;
    blockIdx.z = 0;
    for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++) {
        for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++) {
            if (meeting) {
                run_meeting_block(n, kernel);
                continue;
            }
            for (size_t i = 0; i < n; i++) {
                threadIdx = indices[i];
                kernel();
            }
        }
    }
}

void
emulator_die(const char *why)
{
    fprintf(stderr, "emulator: %s\n", why);
    abort();
}
