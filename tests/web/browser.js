// SPDX-License-Identifier: Apache-2.0

// Debian's Chromium, and pages that collect complaints.

import { chromium } from "playwright-core";

export function openBrowser() {
    return chromium.launch({
        executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
        args: ["--no-sandbox", "--disable-dev-shm-usage"],
    });
}

// Opens 'url'.  'complaints' collects errors, violations of the page's policy,
// and requests to other servers.
export async function openPage(browser, url, options = {}) {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    const complaints = [];

    page.setDefaultTimeout(10000);
    await page.addInitScript(() => {
        document.addEventListener("securitypolicyviolation", event =>
            console.error(`policy: ${event.violatedDirective} ${
                event.blockedURI}`));
    });
    page.on("pageerror", error => complaints.push(`error: ${error}`));
    page.on("console", message => {
        // Browsers report a missing path, which the page tries once.
        if (message.type() === "error"
            && !message.text().includes("404 (Not Found)")) {
            complaints.push(message.text());
        }
    });
    page.on("request", request => {
        if (new URL(request.url()).origin !== new URL(url).origin) {
            complaints.push(`request to ${request.url()}`);
        }
    });
    await page.goto(url);
    return { page, complaints, close: () => context.close() };
}
