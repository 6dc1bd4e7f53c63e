// SPDX-License-Identifier: Apache-2.0

// A chart by uPlot that follows the width of its box and the colour scheme.

import { el } from "./dom.js";

/* global uPlot */

const HEIGHT = 180;

export function colour(name) {
    return getComputedStyle(document.documentElement)
        .getPropertyValue(name).trim();
}

// 'describe' returns uPlot's options; its argument has the options that all
// axes share.  It is called again when the colour scheme changes.
export class Chart {
    constructor(title, describe, height = HEIGHT) {
        this.box = el("div", { role: "img", "aria-label": title });
        this.describe = describe;
        this.height = height;
        this.plot = null;
    }

    size() {
        return { width: Math.max(this.box.clientWidth, 200),
                 height: this.height };
    }

    make() {
        this.plot = new uPlot({ ...this.size(), ...this.describe({
            stroke: colour("--quiet"), font: "12px system-ui",
            grid: { stroke: colour("--line"), width: 0.5 },
        }) }, this.data, this.box);
    }

    // Shows 'data', uPlot's columns.  The box must be in the page.
    draw(data) {
        this.data = data;
        if (this.plot) {
            this.plot.setData(data);
            return;
        }
        this.make();
        new ResizeObserver(() => this.plot.setSize(this.size()))
            .observe(this.box);
        matchMedia("(prefers-color-scheme: dark)").addEventListener(
            "change", () => {
                this.plot.destroy();
                this.make();
            });
    }
}
