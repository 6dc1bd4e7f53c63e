#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures a training step on a GPU, and the same step in PyTorch if $PYTHON
# (default python3) has it, call by call ("eager") and as one CUDA graph: same
# model and batch, and the same precision: "mixed", PyTorch's default with
# convolutions in TF32 and products in fp32; "fp32"; and "tf32".  PyTorch
# chooses convolutions by measuring them (cudnn.benchmark).  The data is on the
# device for both; only our step includes the upload.  Prints one JSON object
# on standard output.
#
# Reports medians of $STEPS (default 200) steps each. $BACKEND (default cuda)
# selects our backend.  Without a GPU, says so and exits with 77, or with 1 if
# $REQUIRE_GPU is set.
set -eu
cd "$(dirname "$0")/../.."
exec "${PYTHON:-python3}" tests/bench/gpu-step.py
