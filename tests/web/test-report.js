// SPDX-License-Identifier: Apache-2.0

// The page of a report in a browser: test-report.sh makes the pages.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { openBrowser, openPage } from "./browser.js";

const EXAMPLE = `file://${process.env.EXAMPLE}`;        // test-report.c's.
const SIMULATION = `file://${process.env.SIMULATION}`;
const PHONE = { width: 360, height: 740 };
const SEARCH = "a</script><b>&\"'";

let browser;

before(async () => {
    browser = await openBrowser();
});

after(() => browser?.close());

async function pageFor(t, url, options) {
    const opened = await openPage(browser, url, options);

    t.after(opened.close);
    return opened;
}

// Returns the share of the pixels of the canvas that are drawn.
function inkOf(canvas) {
    const { data } = canvas.getContext("2d").getImageData(
        0, 0, canvas.width, canvas.height);
    let n = 0;

    for (let i = 3; i < data.length; i += 4) {
        n += data[i] > 0;
    }
    return 4 * n / data.length;
}

test("all charts are drawn without violations of the policy", async t => {
    const { page, complaints } = await pageFor(t, EXAMPLE);

    await page.waitForSelector("#loss canvas");
    for (const [picture, n] of [["#bars rect[class]", 2 + 6],
                                ["#timeline svg", 2],
                                ["#timeline rect", 6], ["#use svg", 2],
                                ["#cdf canvas", 1], ["#loss canvas", 2]]) {
        assert.equal(await page.locator(picture).count(), n, picture);
    }
    for (const canvas of await page.locator("canvas").all()) {
        assert.ok(await canvas.evaluate(inkOf) > 0.005);
    }
    assert.deepEqual(complaints, []);
});

test("names are text", async t => {
    const { page } = await pageFor(t, EXAMPLE);

    await page.waitForSelector("#loss canvas");
    assert.equal(await page.locator("#timeline svg").first().locator("text")
        .filter({ hasText: SEARCH }).count(), 1);
    assert.equal(await page.locator("b").count(), 0);
    assert.equal(await page.locator("#timeline rect title").first()
        .textContent(), `${SEARCH}/0, 2 jobs: 0.50 to 4.50 s`);
});

test("tables are shown without JavaScript", async t => {
    const { page } = await pageFor(t, EXAMPLE, { javaScriptEnabled: false });

    assert.equal(await page.locator("table:visible").count(), 5);
    assert.match(await page.locator(".policies").innerText(), /6\.00 s/);
    assert.ok(await page.locator("noscript p").isVisible());
    assert.equal(await page.locator("#cdf-title").isVisible(), false);
});

test("the page of a simulation has its charts", async t => {
    const { page, complaints } = await pageFor(t, SIMULATION);

    await page.waitForSelector("#cdf canvas");
    assert.equal(await page.locator("#timeline svg").count(), 2);
    assert.ok(await page.locator("#use rect[fill]").count() > 100);
    assert.equal(await page.locator("#loss").count(), 0);
    assert.deepEqual(complaints, []);
});

test("a phone needs no horizontal scrolling", async t => {
    for (const colorScheme of ["light", "dark"]) {
        const { page, complaints } = await pageFor(
            t, EXAMPLE, { viewport: PHONE, colorScheme });

        await page.waitForSelector("#loss canvas");
        for (const details of await page.locator("summary").all()) {
            await details.click();
        }
        assert.equal(await page.evaluate(
            () => document.documentElement.scrollWidth), PHONE.width);
        // Text of pictures has about the size that it has elsewhere.
        const width = await page.locator("#timeline svg").first().evaluate(
            node => node.clientWidth / node.viewBox.baseVal.width);

        assert.ok(width > 0.9, `${width}`);
        assert.deepEqual(complaints, []);
    }
});

test("charts follow the colour scheme", async t => {
    const { page, complaints } = await pageFor(t, EXAMPLE);
    const back = () => page.evaluate(
        () => getComputedStyle(document.body).backgroundColor);

    await page.waitForSelector("#loss canvas");
    const light = await back();

    await page.emulateMedia({ colorScheme: "dark" });
    await page.emulateMedia({ colorScheme: "light" });
    await page.emulateMedia({ colorScheme: "dark" });
    assert.notEqual(await back(), light);
    assert.equal(await page.locator("#cdf canvas").count(), 1);
    assert.deepEqual(complaints, []);
});
