// SPDX-License-Identifier: Apache-2.0

// Compares the prediction without Stagecoach with results computed by hand.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const source = readFileSync(
    `${process.env.SOURCE}/controller/northbound/dashboard/ui/plain.js`);
const { predictPlain, shareOnePort } = await import(
    `data:text/javascript;base64,${source.toString("base64")}`);

function assertNear(got, wanted) {
    assert.equal(got.length, wanted.length);
    got.forEach((x, i) => assert.ok(Math.abs(x - wanted[i]) < 1e-9,
                                    `${got} is not ${wanted}`));
}

test("one item takes its work", () => {
    assertNear(shareOnePort([{ release: 5, work: 3 }]), [8]);
});

test("two items share until the smaller one ends", () => {
    assertNear(shareOnePort([{ release: 0, work: 3 },
                             { release: 0, work: 1 }]), [4, 2]);
});

test("a later item shares from its release on", () => {
    assertNear(shareOnePort([{ release: 0, work: 4 },
                             { release: 2, work: 1 }]), [5, 4]);
});

test("a port idles until the next release", () => {
    assertNear(shareOnePort([{ release: 10, work: 1 },
                             { release: 0, work: 1 }]), [11, 1]);
});

test("an item that ends at the release of another does not wait", () => {
    assertNear(shareOnePort([{ release: 0, work: 1 },
                             { release: 1, work: 1 }]), [1, 2]);
});

test("no items have no ends", () => {
    assertNear(shareOnePort([]), []);
    assertNear(predictPlain([]), []);
});

test("work is conserved for random items", () => {
    const items = Array.from({ length: 200 }, (_, i) => (
        { release: 0, work: ((i * 7919) % 101 + 1) / 7 }));
    const ends = shareOnePort(items);
    const total = items.reduce((sum, item) => sum + item.work, 0);

    assert.ok(Math.abs(Math.max(...ends) - total) < 1e-6);
    items.forEach((item, i) => assert.ok(ends[i] >= item.work));
});

test("a stage ends with its last port", () => {
    assertNear(predictPlain([
        { began: 1000, demand: { "a:tx": 2, "b:rx": 1 } },
        { began: 1000, demand: { "a:tx": 1, "c:rx": 5 } },
        { began: 1000, demand: {} }]), [3, 5, 0]);
});
