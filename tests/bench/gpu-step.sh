#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A training step on a GPU, and the same step of PyTorch's if $PYTHON (default
# python3) has it: same model, batch and precision, both with the data on the
# device but ours with its upload.  One JSON object on standard output.
#
# $STEPS (default 200) steps each, medians; $TF32=1 lets both round products,
# $BACKEND (default cuda).  Without a GPU it says so, and exits with 77.
set -eu
cd "$(dirname "$0")/../.."

status=0
ours=$(build/tests/bench/gpu-step "${BACKEND:-cuda}" "${STEPS:-200}" \
       "${TF32:-0}") || status=$?
if [ $status -eq 77 ]; then
    echo "gpu-step: skipped, there is no GPU" >&2
    exit 77
fi
[ $status -eq 0 ]
export OURS="$ours"
exec "${PYTHON:-python3}" tests/bench/gpu-step.py "${STEPS:-200}" "${TF32:-0}"
