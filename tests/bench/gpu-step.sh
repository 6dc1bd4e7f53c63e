#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures a training step on a GPU, and the same step in PyTorch if $PYTHON
# (default python3) has it: same model, batch and precision.  The data is on
# the device for both; only our step includes the upload.  Prints one JSON
# object on standard output.
#
# Reports medians of $STEPS (default 200) steps each. $TF32=1 enables TF32 for
# both; $BACKEND (default cuda) selects our backend.  Without a GPU, says so
# and exits with 77.
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
