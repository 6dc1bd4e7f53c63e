#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# check-setup.sh DEPS: deps/setup.sh, in the folder DEPS, fails if apt-get
# does, and prints apt-get's reason.  It prints what it will install, and for
# ./run it installs no package that only tests need.  Installs nothing: apt-get
# is a fake.
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
    env -u BUILD_TORCH -u BUILD_WEB -u BUILD_VM BUILD_FOR="$1" PATH="$dir/bin:$PATH" \
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
if setup test; then
    fail "setup.sh succeeds without its packages"
fi
grep -q '^\[1/1\] packages ... failed' "$dir/out" || fail "no failed step"
grep -q '^E: no such package$' "$dir/out" || fail "no reason"

fake apt-get "echo \"\$@\" >>$dir/apt"
setup test || fail "setup.sh fails after an installation"
grep -q '^\[1/1\] packages ... done' "$dir/out" || fail "the step is not done"
for package in slurmctld munge tshark mandoc libcmocka-dev python3-optuna \
    prometheus; do
    grep -qw "$package" "$dir/apt" || fail "no $package for tests"
done
rm "$dir/apt"
setup run || fail "setup.sh fails for ./run"
for package in slurmctld munge tshark mandoc libcmocka-dev python3-optuna \
    prometheus chromium; do
    ! grep -qw "$package" "$dir/apt" || fail "$package for ./run"
done
grep -qw libdpdk-dev "$dir/apt" || fail "no libdpdk-dev for ./run"
n=$(tr ' ' '\n' <"$dir/apt" | grep -cv '^-\|^install$')
grep -q "^will install $n packages of Debian" "$dir/out" ||
    fail "does not announce $n packages"
