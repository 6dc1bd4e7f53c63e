# SPDX-License-Identifier: Apache-2.0

"""What tests say of inputs as other programs, clusters and people make them.

A test prints a line for each input, "case KIND ok: INPUT" or "case KIND
failed: INPUT"; the bench "cases" counts these lines."""

import contextlib

failures = []


def check(what, found, expected):
    """Notes a failure, and goes on."""
    if found != expected:
        failures.append(what)
        print(f"{what}: {found!r} is not {expected!r}", flush=True)


@contextlib.contextmanager
def case(kind, what):
    """Its body checks the input 'what', and may raise what is wrong."""
    before, result = len(failures), "failed"
    try:
        yield
        result = "ok" if len(failures) == before else "failed"
    finally:
        print(f"case {kind} {result}: {ascii(what)[:200]}", flush=True)
