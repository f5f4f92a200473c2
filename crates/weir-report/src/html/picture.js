// Saves charts as PNG: a chart of a report as the page shows it at the moment, and a chart that has a link to its image
// as that image. Without this script the page has no buttons for it.
"use strict";
(() => {
  const words = document.currentScript.dataset;
  const namespaces = { svg: "http://www.w3.org/2000/svg", html: "http://www.w3.org/1999/xhtml" };
  const marginPx = 16;
  // Screens have up to two dots in a pixel. Browsers refuse images with more dots in one direction.
  const dotsInPx = 2;
  const dotsMax = 16000;

  function element(of, name, attributes, ...children) {
    const made = document.createElementNS(namespaces[of], name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    made.append(...children);
    return made;
  }

  // The rules for the reader's colours and for the width of the window, which an image alone would not know.
  const inForce = (rules) =>
    [...rules]
      .map((rule) => {
        if (!(rule instanceof CSSMediaRule)) return rule.cssText;
        return matchMedia(rule.conditionText).matches ? inForce(rule.cssRules) : "";
      })
      .join("\n");

  // A copy of a chart inside copies of the elements around it, which give it their rules and take no room.
  function copied(figure) {
    let copy = figure.cloneNode(true);
    for (let at = figure.parentElement; at !== document.body; at = at.parentElement) {
      // Details without their summary would get one from the browser.
      const around = at.localName === "details" ? element("html", "div", {}) : at.cloneNode(false);
      around.style.display = "contents";
      around.style.fontSize = getComputedStyle(at).fontSize;
      around.append(copy);
      copy = around;
    }
    return copy;
  }

  // The chart with the study, its date and its machine above it, as an image of the same width.
  function imageOf(figure) {
    const box = figure.getBoundingClientRect();
    const [inside, chart] = [box.width, box.height].map(Math.ceil);
    const origin = element("html", "p", { class: "study", style: `width:${inside}px` }, words.origin);
    figure.after(origin);
    const above = Math.ceil(origin.getBoundingClientRect().height);
    origin.remove();
    const [width, height] = [inside + 2 * marginPx, above + chart + 3 * marginPx];
    const gap = element("html", "div", { style: `height:${marginPx}px` });
    const style = `width:${width}px;height:${height}px;padding:${marginPx}px;background:var(--paper);color:var(--ink)`;
    const language = document.documentElement.lang;
    const body = element("html", "body", { style, lang: language }, origin, gap, copied(figure));
    const rules = inForce(document.querySelector("style").sheet.cssRules);
    const page = element("svg", "foreignObject", { width: "100%", height: "100%" }, body);
    return { image: element("svg", "svg", { width, height }, element("svg", "style", {}, rules), page), width, height };
  }

  async function linkedImage(link) {
    const answer = await fetch(link.href);
    if (!answer.ok) throw new Error(answer.statusText);
    const image = new DOMParser().parseFromString(await answer.text(), "image/svg+xml").documentElement;
    const [style, sheet] = [image.querySelector("style"), new CSSStyleSheet()];
    sheet.replaceSync(style.textContent);
    style.textContent = inForce(sheet.cssRules);
    const [width, height] = ["width", "height"].map((side) => Number(image.getAttribute(side)));
    return { image, width, height };
  }

  // An address with the whole image in it, because a canvas does not give back what it took from most others.
  async function drawn({ image, width, height }) {
    const source = new Image();
    source.src = `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(image))}`;
    await source.decode();
    const dots = Math.min(dotsInPx, dotsMax / Math.max(width, height));
    const canvas = element("html", "canvas", { width: Math.ceil(width * dots), height: Math.ceil(height * dots) });
    canvas.getContext("2d").drawImage(source, 0, 0, canvas.width, canvas.height);
    return new Promise((done, fail) => {
      canvas.toBlob((file) => (file ? done(file) : fail(new Error("no image"))), "image/png");
    });
  }

  function save(file, name) {
    const link = element("html", "a", { href: URL.createObjectURL(file), download: name });
    link.click();
    // The browser has begun to read it by then.
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  }

  function buttonFor(title, name, image) {
    const attributes = { type: "button", class: "copy png", "aria-label": `${words.save}: ${title}` };
    const button = element("html", "button", attributes, "PNG");
    button.addEventListener("click", async () => {
      try {
        save(await drawn(await image()), name);
      } catch {
        button.removeAttribute("aria-label");
        button.textContent = words.failed;
      }
    });
    return button;
  }

  for (const figure of document.querySelectorAll(".chart > figure")) {
    const caption = figure.querySelector("figcaption");
    figure.after(buttonFor(caption.textContent, `${words.study}-${caption.id}.png`, () => imageOf(figure)));
  }
  for (const link of document.querySelectorAll("a[download$='.svg']")) {
    const name = link.download.replace(/svg$/, "png");
    link.after(" ", buttonFor(link.dataset.title, name, () => linkedImage(link)));
  }
})();
