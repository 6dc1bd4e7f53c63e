#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# check-setup.sh DEPS: deps/setup.sh, in the folder DEPS, fails if apt-get
# does, and prints apt-get's reason.  Installs nothing: apt-get is a fake.
set -eu

dir=$(mktemp -d "${TMPDIR:-/tmp}/sct-setup-$$-XXXXXX")
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/deps" "$dir/bin"
cp "$1/steps.sh" "$dir/deps"
sed "s,/usr/sbin/,$dir/,g" "$1/setup.sh" >"$dir/deps/setup.sh"

fake() {
    printf '#!/bin/sh\n%s\n' "$2" >"$dir/bin/$1"
    chmod +x "$dir/bin/$1"
}
setup() {
    env -u BUILD_TORCH -u BUILD_WEB -u BUILD_VM PATH="$dir/bin:$PATH" \
        BUILD_PACKAGES=only sh "$dir/deps/setup.sh" >"$dir/out" 2>&1
}
fail() {
    echo "FAIL: $1: $(cat "$dir/out")" >&2
    exit 1
}

fake dpkg-query 'exit 1'
fake id 'echo 0'
# shellcheck disable=SC2016
fake apt-get '[ "$1" = update ] || { echo "E: no such package"; exit 100; }'
if setup; then
    fail "setup.sh succeeds without its packages"
fi
grep -q '^\[1/1\] packages ... failed' "$dir/out" || fail "no failed step"
grep -q '^E: no such package$' "$dir/out" || fail "no reason"

fake apt-get :
setup || fail "setup.sh fails after an installation"
grep -q '^\[1/1\] packages ... done' "$dir/out" || fail "the step is not done"
