// SPDX-License-Identifier: Apache-2.0

// pictures.js DIR: takes the pictures of docs/dashboard.md, of the controller
// at $REST_SOCKET.

import { openBrowser, openPage } from "./browser.js";
import { openProxy } from "./proxy.js";

const LOOK_MS = Number(process.env.LOOK_MS ?? 22000);
const PICTURES = {
    "dashboard.png": { viewport: { width: 1200, height: 800 } },
    "dashboard-dark.png": { viewport: { width: 1200, height: 800 },
                            colorScheme: "dark" },
    "dashboard-phone.png": { viewport: { width: 390, height: 844 } },
};

const browser = await openBrowser();
const proxy = await openProxy(process.env.REST_SOCKET);
const pages = [];

for (const [name, options] of Object.entries(PICTURES)) {
    pages.push({ name, ...await openPage(browser, proxy.url, options) });
}
await new Promise(resolve => setTimeout(resolve, LOOK_MS));
for (const { name, page } of pages) {
    await page.bringToFront();
    await page.waitForTimeout(2500);
    await page.screenshot({ path: `${process.argv[2]}/${name}`,
                            fullPage: !name.includes("phone") });
}
await browser.close();
await proxy.close();
