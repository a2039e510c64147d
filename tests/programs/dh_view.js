// SPDX-License-Identifier: MIT
// Load a file into Valgrind's viewer as a browser would, without one:
//
//     node dh_view.js VIEWER FILE
//
// VIEWER is dh_view.js of Valgrind, unmodified.  Prints one JSON object: the
// sums at the root of the viewer's tree, its sort metrics, the page by the
// first of them, and what it says went wrong.
"use strict";

const fs = require("fs");
const vm = require("vm");

class Element {
  constructor(tag) {
    this.tagName = tag;
    this.childNodes = [];
    this.text = "";
    this.selected = false;
  }
  set className(names) { this.names = names.split(" "); }
  get classList() {
    const names = this.names || [];
    return {contains: (name) => names.includes(name), toggle: () => {}};
  }
  get selectedIndex() {
    const at = this.childNodes.findIndex((o) => o.selected);
    return at < 0 ? 0 : at;
  }
  appendChild(child) { child.parentNode = this; this.childNodes.push(child); }
  replaceChild(fresh, old) {
    this.childNodes[this.childNodes.indexOf(old)] = fresh;
    fresh.parentNode = this;
  }
  cloneNode() { return new Element(this.tagName); }
  set textContent(text) { this.text = String(text); this.childNodes = []; }
  get textContent() {
    return this.text + this.childNodes.map((c) => c.textContent).join("");
  }
}

const [viewer, file] = process.argv.slice(2);
const body = new Element("body");
const context = vm.createContext({
  document: {
    body,
    title: "",
    location: {search: ""},
    createElement: (tag) => new Element(tag),
    createTextNode: (text) => {
      const node = new Element("#text");
      node.textContent = text;
      return node;
    },
  },
  performance,
  URLSearchParams,
  FileReader: class {
    readAsText(chosen) {
      this.onload({target: {result: fs.readFileSync(chosen.name, "utf8")}});
    }
  },
});

vm.runInContext(fs.readFileSync(viewer, "utf8"), context);
vm.runInContext("onLoad()", context);
context.chosen = {name: file};
let error = null;
try {
  vm.runInContext("gInput.files = [chosen]; loadFile()", context);
} catch (e) {
  error = String(e);
}
const root = vm.runInContext("gRoot", context) || {};
const sums = {};
for (const [key, value] of Object.entries(root))
  if (typeof value === "number")
    sums[key] = value;
const metrics = error ? {} : vm.runInContext(`
  Object.fromEntries([...gSelectData.keys()]
    .filter((i) => !gSelect.childNodes[i].disabled)
    .map((i) => {
      gSelect.childNodes.forEach((o, k) => { o.selected = k === i; });
      changeSortMetric();
      return [gSelectData[i].label(), gMainDiv.textContent];
    }))`, context);
console.log(JSON.stringify({
  error, sums, metrics: Object.keys(metrics),
  page: Object.values(metrics)[0] || "",
}));
