#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# all.sh [FOLDER]: everything that needs a GPU, in about ten minutes, from a
# build that is there: tests, races, speed against PyTorch, learning curves,
# and jobs that share the device.  Each step has a limit of its own, and the
# next ones run if it fails.  Their output goes to files in FOLDER (default
# build/gpu).  Without a device all steps fail: none is skipped.  Prints one
# line for each step; exits with 1 if one has failed.
#
# $ONLY: the steps to run, of those below (default: all).  $DATA: folder of
# data sets (default ../shared/data), for the learning curves.
set -u
cd "$(dirname "$0")/../.."
out=${1:-build/gpu}
python=${PYTHON:-python3}
test_backend=build/tests/gpu/test-backend
mkdir -p "$out"
export REQUIRE_GPU=1
failed=0

step() {        # NAME SECONDS COMMAND...
    name=$1
    limit=$2
    shift 2
    case " ${ONLY:-$name} " in
        *" $name "*) ;;
        *) return 0 ;;
    esac
    began=$(date +%s)
    timeout -k 5 "$limit" "$@" >"$out/$name.log" 2>&1 </dev/null
    status=$?
    echo "$name: exit status $status, $(($(date +%s) - began)) s"
    [ $status -eq 0 ] || failed=1
    return $status
}

versions() {
    nvidia-smi
    "$python" -c 'import torch
print(torch.__version__, torch.version.cuda, torch.backends.cudnn.version())'
    ldd $test_backend build/tests/gpu/gpu-step
    # The libraries that are opened, and a convolution.
    LD_DEBUG=libs build/tests/gpu/gpu-step cuda 1 2>&1 |
        grep -E 'init:.*(cublas|cudnn)|^\{'
}

same_twice() {
    for i in 1 2; do
        build/tests/gpu/gpu-step cuda 20 mixed |
            "$python" -c 'import json, sys
print({k: v["losses"] for k, v in json.load(sys.stdin).items()
       if isinstance(v, dict)})' >"$out/losses.$i" || return 1
    done
    cmp "$out/losses.1" "$out/losses.2" && [ -s "$out/losses.1" ]
}

# The time of each kernel in about one recorded gradient of each model.
kernels() {
    for case in "mlp 60 30" "cifarnet 100 50" "resnet32 1200 450"; do
        # shellcheck disable=SC2086
        set -- $case
        ncu --graph-profiling node --metrics gpu__time_duration.sum \
            --clock-control none --csv --page raw --launch-skip "$2" \
            --launch-count "$3" --kill yes build/tests/gpu/gpu-step cuda 5 \
            mixed "$1" >"$out/kernels-$1.csv"
    done
    wc -l "$out"/kernels-*.csv
    [ "$(wc -l <"$out/kernels-mlp.csv")" -gt 10 ]
}

# The functions of this file as commands.
case ${1:-} in
    versions | same_twice | kernels) out=$2; "$1"; exit ;;
esac
step versions 60 sh tests/gpu/all.sh versions "$out"
step backend 150 $test_backend all || {
    # Recordings, races and convolutions, told apart.
    step backend-blocking 150 env CUDA_LAUNCH_BLOCKING=1 $test_backend all
}
step speed 200 sh tests/bench/gpu-step.sh
step direct 60 build/tests/gpu/gpu-step cuda 200 mixed direct
step products 60 build/tests/gpu/gpu-step cuda 200 fp32 products
step replays 100 $test_backend all 10000
step same 60 sh tests/gpu/all.sh same_twice "$out"
step losses 240 "$python" tests/unit/check-curves.py \
    build/trainer/stagecoach-trainer cuda
step overlap 60 "$python" tests/gpu/jobs.py overlap
step sharing 100 "$python" tests/gpu/jobs.py sharing
step others 60 "$python" tests/gpu/jobs.py others
step search 60 "$python" tests/gpu/jobs.py search
step curves 200 "$python" tests/gpu/jobs.py curves "${DATA:-../shared/data}"
step memcheck 100 compute-sanitizer --tool memcheck --error-exitcode 1 \
    $test_backend all
# Slow tools: each operation, but not whole models.
for tool in racecheck initcheck; do
    step $tool 100 compute-sanitizer --tool $tool --error-exitcode 1 \
        $test_backend all 20 operations
done
step kernels 120 sh tests/gpu/all.sh kernels "$out"
exit $failed
