#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh asan|tsan: builds $SOURCE with sanitizers in $BUILD-asan or
# $BUILD-tsan, and runs unit tests there.  Fails if a test fails, or if any
# process has written a report into the folder "reports" of that build.
set -eu
here=$SOURCE/tests/sanitize
dir=$BUILD-$1
reports=$dir/reports

case $1 in
asan)
    options="-Db_sanitize=address,undefined"
    suites="--suite unit --suite process"
    [ -z "$OVS_WORK" ] || options="$options -Dovs_work=$OVS_WORK"
    ;;
tsan)
    # Only the shim and the trainer have threads.
    options="-Db_sanitize=thread -Dovs=disabled -Dkubernetes=disabled"
    options="$options -Dslurm=disabled"
    suites="--suite threads"
    ;;
esac

if [ ! -e "$dir/build.ninja" ]; then
    rm -rf "$dir"
    # shellcheck disable=SC2086
    meson setup "$dir" "$SOURCE" -Db_lundef=false -Ddocs=disabled $options
fi
rm -rf "$reports"
mkdir -m 1777 "$reports"        # Processes of other users write there, too.

export ASAN_OPTIONS="log_path=$reports/asan:detect_leaks=1"
export UBSAN_OPTIONS="log_path=$reports/ubsan:print_stacktrace=1"
export TSAN_OPTIONS="log_path=$reports/tsan:history_size=7"
TSAN_OPTIONS="$TSAN_OPTIONS:suppressions=$here/tsan.supp"
# Its threads are not instrumented, and ThreadSanitizer wants processes that
# fork to have one thread.
export OPENBLAS_NUM_THREADS=1

# All of it: the tests of databases skip without the schemas.
ninja -C "$dir"

status=0
# shellcheck disable=SC2086
meson test -C "$dir" --no-rebuild --print-errorlogs --num-processes 2 \
    --timeout-multiplier 10 $suites || status=1
for report in "$reports"/*; do
    [ -e "$report" ] || continue
    status=1
    echo "report: $report"
    head -n 60 "$report"
done
exit $status
