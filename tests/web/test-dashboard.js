// SPDX-License-Identifier: Apache-2.0

// Tests of the dashboard in a browser.  test-dashboard.sh starts a controller
// with three stages and simulated agents.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";

import { openBrowser, openPage } from "./browser.js";
import { openProxy } from "./proxy.js";

const SOCKET = process.env.REST_SOCKET;
const PICTURES = ["#helping svg[role=img]", "#timeline svg", "#hosts svg",
                  "#ahead svg", "#use svg", "#queue canvas", "#coverage canvas",
                  "#decisions table"];
const PHONE = { width: 360, height: 740 };

let browser;
let quiet;                      // Proxy of the controller.

before(async () => {
    browser = await openBrowser();
    quiet = await openProxy(SOCKET);
});

after(async () => {
    await browser?.close();
    await quiet?.close();
});

// Opens a page that is closed at the end of test 't'.
async function pageFor(t, url, options) {
    const opened = await openPage(browser, url, options);

    t.after(opened.close);
    return opened;
}

async function proxyFor(t, made) {
    const proxy = await openProxy(SOCKET, made);

    t.after(proxy.close);
    return proxy;
}

// Waits until the page of 'proxy' has read nothing for a second.
async function settled(page, proxy) {
    let n;

    do {
        n = proxy.seen.length;
        await page.waitForTimeout(1000);
    } while (proxy.seen.length !== n);
}

// Waits until the page of 'proxy' has read everything again.
async function readsAgain(page, proxy) {
    await settled(page, proxy);
    proxy.seen.length = 0;
    for (const path of ["/v1/decisions", "/v1/hosts"]) {
        for (let i = 0; i < 100 && !proxy.seen.includes(path); i++) {
            await page.waitForTimeout(100);
        }
        assert.ok(proxy.seen.includes(path));
    }
    await settled(page, proxy);
}

function stagecoach(...args) {
    execFileSync(process.env.STAGECOACH, args);
}

// Waits until all charts of 'page' are drawn, and returns it.
async function drawn(page) {
    for (const picture of PICTURES) {
        await page.waitForSelector(picture, { timeout: 20000 });
    }
    return page;
}

test("the order is shown without JavaScript", async t => {
    const { page } = await pageFor(t, quiet.url,
                                   { javaScriptEnabled: false });
    const first = page.locator(".order tbody tr").first();

    assert.equal(await first.locator("th").innerText(), "small/1");
    assert.match(await first.innerText(), /needs h[01]:[tr]x most, for/);
    assert.equal(await page.locator(".order tbody tr").count(), 2);
    assert.match(await page.locator(".tiles").innerText(), /2 of 2/);
    assert.ok(await page.locator("noscript p").isVisible());
    assert.equal(await page.locator("#pictures").isVisible(), false);
});

test("all charts are drawn without violations of the policy", async t => {
    const { page, complaints } = await pageFor(t, quiet.url);

    await drawn(page);
    assert.match(await page.locator("#live").innerText(), /every two seconds/);
    assert.match(await page.locator("#helping").innerText(),
                 /last 1 ended stages and 2 running .*by simulation/);
    assert.equal(await page.locator("#timeline rect").count(), 3);
    assert.equal(await page.locator("#timeline rect.running").count(), 2);
    assert.match(await page.locator("#decisions").innerText(), /rank 0 of/);
    assert.deepEqual(complaints, []);
});

test("the use of ports begins with the history", async t => {
    const at = Date.now() - 120000;
    const proxy = await proxyFor(t, {
        "/v1/history/ports": { ports: [0, 60000].map(later => ({
            at: at + later, port: "old:tx", ms: 60000, bytes: 3.75e9,
            capacity_bps: 1e9 })) },
    });
    const { page, complaints } = await pageFor(t, proxy.url);
    const cells = page.locator("#use rect title", { hasText: "old:tx" });

    await cells.first().waitFor({ state: "attached" });
    assert.equal(await cells.count(), 2);
    assert.match(await cells.first().textContent(), /: 50 %$/);
    assert.deepEqual(complaints, []);
});

// A cluster of 64 hosts: one is not connected, and for one the kernel forwards.
function manyHosts(second) {
    return { hosts: Array.from({ length: 64 }, (_, i) => ({
        host: `host${i}`, connected: i !== 7, state: "ordered",
        bypass: i === 9, lag_s: 0, coverage: 1, ports: { uplink: 1e9 },
        moved: { tx: 1e7 * second, rx: 1e6 * i * second } })) };
}

test("many hosts have a cell each, and a row if they need it", async t => {
    const begin = Date.now();
    const proxy = await proxyFor(t, {
        get "/v1/hosts"() {
            return manyHosts((Date.now() - begin) / 1000);
        },
    });
    const { page, complaints } = await pageFor(t, proxy.url);
    const rows = page.locator("#hosts > table tbody tr");

    await page.locator("#use svg").waitFor();
    assert.equal(await page.locator("#hosts rect").count(), 64);
    assert.match(await page.locator("#hosts > p").first().innerText(),
                 /^2 of 64 hosts need attention/);
    assert.deepEqual(await rows.locator("td:first-child").allInnerTexts(),
                     ["host7", "host9"]);
    assert.match(await rows.last().innerText(), /without priorities/);
    assert.deepEqual(
        await page.locator("#hosts svg text").allTextContents(), ["×", "!"]);
    assert.match(await page.locator("#use .note").innerText(),
                 /the 24 busiest of 64 hosts/);
    assert.equal(await page.locator("#use details tbody tr").count(), 64);
    // The busiest one receives about 63 MB/s of 125.
    assert.match(await page.locator("#use details tbody tr").first()
        .textContent(), /^host63[3-9][0-9] %/);
    assert.deepEqual(complaints, []);
});

test("a foreign script does not run", async t => {
    const { page, complaints } = await pageFor(t, quiet.url);

    await page.evaluate(() => {
        const script = document.createElement("script");

        script.textContent = "window.foreign = true";
        document.body.append(script);
        document.body.setAttribute("onclick", "window.foreign = true");
    });
    await page.locator("h1").click();
    assert.equal(await page.evaluate(() => window.foreign), undefined);
    assert.ok(complaints.some(line => line.startsWith("policy: script-src")));
});

test("the page follows the order", async t => {
    const { page, complaints } = await pageFor(t, quiet.url);
    const row = page.locator(".order tbody th", { hasText: "late/1" });

    await page.waitForSelector("#live[data-state=live]");
    stagecoach("stage", "begin", "--cojob", "late", "--rung", "1",
               "--iterations", "100000", "--jobs", "t0");
    await row.waitFor();
    await page.locator("#decisions td", { hasText: "late/1" }).first()
        .waitFor();
    stagecoach("stage", "end", "--cojob", "late", "--rung", "1");
    await row.waitFor({ state: "detached" });
    assert.deepEqual(complaints, []);
});

test("a disconnected controller is shown, and the page recovers", async t => {
    const proxy = await proxyFor(t);
    const { page } = await pageFor(t, proxy.url);

    await page.waitForSelector("#live[data-state=live]");
    proxy.away = true;
    await page.waitForSelector("#live[data-state=disconnected]");
    assert.ok(await page.locator(".order tbody tr").count() > 0);
    proxy.away = false;
    await page.waitForSelector("#live[data-state=live]");
});

test("a phone needs no horizontal scrolling", async t => {
    for (const colorScheme of ["light", "dark"]) {
        const { page, complaints } = await pageFor(
            t, quiet.url, { viewport: PHONE, colorScheme });

        await drawn(page);
        for (const details of await page.locator("summary").all()) {
            await details.click();
        }
        assert.equal(await page.evaluate(
            () => document.documentElement.scrollWidth), PHONE.width);
        // In one step: the page replaces the table every two seconds, and a
        // replaced cell has no style.
        assert.match(await page.evaluate(() => getComputedStyle(
            document.querySelector(".order td"), "::before").content), /Rank/);
        assert.deepEqual(complaints, []);
    }
});

test("the keyboard reaches everything, and the focus is visible", async t => {
    const proxy = await proxyFor(t);
    const { page } = await pageFor(t, proxy.url);
    const reached = [];

    await page.waitForSelector("#live[data-state=live]");
    await readsAgain(page, proxy);      // Two readings make a chart.
    await drawn(page);
    for (let i = 0; i < 20; i++) {
        await page.keyboard.press("Tab");
        const where = await page.evaluate(() => {
            const node = document.activeElement;

            return { tag: node.tagName, text: node.textContent.slice(0, 40),
                     section: node.closest("section")?.querySelector("h2").id,
                     outline: getComputedStyle(node).outlineStyle };
        });

        if (where.tag === "BODY") {
            break;
        }
        assert.equal(where.outline, "solid", JSON.stringify(where));
        reached.push(where.section ?? where.text);
    }
    assert.deepEqual([...new Set(reached)], [
        "To the order", "helping-title", "timeline-title", "hosts-title",
        "ahead-title", "use-title", "queue-title", "coverage-title", "decisions-title"]);

    // The focus, the selection and an open table survive an update.
    await page.locator("#timeline summary").focus();
    await page.keyboard.press("Enter");
    await readsAgain(page, proxy);
    assert.equal(await page.evaluate(() => document.activeElement.textContent),
                 "As a table");
    await page.locator("#kind").focus();
    await page.keyboard.press("s");
    await readsAgain(page, proxy);
    assert.equal(await page.locator("#kind").inputValue(), "stage");
    assert.ok(await page.locator("#timeline details").evaluate(
        details => details.open));
    assert.doesNotMatch(await page.locator("#decisions table").innerText(),
                        /rank 0 of/);
});

test("everything has a name", async t => {
    const { page } = await pageFor(t, quiet.url);

    await drawn(page);
    const bad = await page.evaluate(() => {
        const ids = [...document.querySelectorAll("[id]")].map(
            node => node.id);
        const levels = [...document.querySelectorAll("h1, h2, h3")].map(
            node => node.tagName).join(" ");
        const named = node => node.getAttribute("aria-label")
            || document.getElementById(
                node.getAttribute("aria-labelledby") ?? "")?.textContent
            || node.labels?.length;

        return [
            ...ids.filter((id, i) => ids.indexOf(id) !== i),
            ...[...document.querySelectorAll(
                "[role=img], [role=region], select, section")]
                .filter(node => !named(node)).map(node => node.outerHTML),
            ...[...document.querySelectorAll(
                "main th:not([role=img] th)")].filter(
                node => !node.scope).map(node => node.outerHTML),
            ...(document.documentElement.lang ? [] : ["no language"]),
            ...(/^H1( H2)+$/.test(levels) ? [] : [levels]),
        ];
    });

    assert.deepEqual(bad, []);
});

// The contrast of two colours as WCAG 2 has it, 1 to 21.
function contrast(a, b) {
    const luminance = colour => {
        const [r, g, bl] = [1, 3, 5].map(i => {
            const c = parseInt(colour.slice(i, i + 2), 16) / 255;

            return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
        });

        return 0.2126 * r + 0.7152 * g + 0.0722 * bl;
    };
    const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);

    return (x + 0.05) / (y + 0.05);
}

test("text and charts have enough contrast", async t => {
    for (const colorScheme of ["light", "dark"]) {
        const { page } = await pageFor(t, quiet.url, { colorScheme });
        const colour = await page.evaluate(names => {
            const style = getComputedStyle(document.documentElement);

            return Object.fromEntries(names.map(
                name => [name, style.getPropertyValue(`--${name}`).trim()]));
        }, ["back", "card", "text", "quiet", "accent", "c0", "c5"]);

        for (const back of ["back", "card"]) {
            for (const [front, least] of [["text", 7], ["quiet", 4.5],
                                          ["accent", 4.5], ["c0", 3],
                                          ["c5", 3]]) {
                const got = contrast(colour[front], colour[back]);

                assert.ok(got >= least,
                          `${colorScheme}: ${front} on ${back}: ${got}`);
            }
        }
    }
});
