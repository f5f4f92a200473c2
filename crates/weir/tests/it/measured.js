// What a test sees of a page: how wide it is, how bright, whether its text can be distinguished from what is behind it,
// which labels of a drawing overlap, which elements have no name, and where its first chart ends. The value of the
// expression that is this file.
(() => {
  // Red, green, blue and opacity, each from 0 to 1.
  const parts = (color) => {
    const [red, green, blue, opacity = 1] = color.match(/-?[\d.]+(e-?\d+)?/g).map(Number);
    const most = color.startsWith("rgb") ? 255 : 1;
    return [red / most, green / most, blue / most, opacity];
  };
  const luminance = (color) => {
    const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    const [red, green, blue] = parts(color).map(linear);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (one, other) => {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  // The first opaque colour at or above an element.
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if (parts(color)[3] === 1) return color;
    }
    return "rgb(255, 255, 255)";
  };
  // Text that may be read with less contrast.
  const isLarge = (style) => {
    const size = parseFloat(style.fontSize);
    return size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  };
  const faintest = { normal: { contrast: 21, text: "" }, large: { contrast: 21, text: "" } };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    const text = texts.currentNode.textContent.trim();
    const isSeen = element.checkVisibility() && element.getClientRects().length > 0;
    if (!text || !isSeen || ["SCRIPT", "STYLE", "OPTION"].includes(element.tagName)) continue;
    const style = getComputedStyle(element);
    const color = element instanceof SVGElement ? style.fill : style.color;
    const found = contrast(color, behind(element));
    const kind = isLarge(style) ? "large" : "normal";
    if (found < faintest[kind].contrast) faintest[kind] = { contrast: found, text };
  }
  // Labels of one drawing that overlap by more than a pixel in both directions; boxes of text are higher than letters.
  const clashes = [];
  for (const drawing of document.querySelectorAll("svg")) {
    if (drawing.parentElement.closest("svg")) continue;
    const labels = [...drawing.querySelectorAll("text")]
      .filter((label) => label.checkVisibility() && label.getClientRects().length > 0)
      .map((label) => ({ text: label.textContent, box: label.getBoundingClientRect() }));
    labels.forEach((one, place) => {
      for (const { text, box } of labels.slice(place + 1)) {
        const across = Math.min(one.box.right, box.right) - Math.max(one.box.left, box.left);
        const down = Math.min(one.box.bottom, box.bottom) - Math.max(one.box.top, box.top);
        if (across > 1 && down > 5) clashes.push(`${one.text} / ${text}`);
      }
    });
  }
  // The name of an element for readers who do not see the page.
  const nameOf = (element) => {
    const labelled = (element.getAttribute("aria-labelledby") ?? "").split(" ").filter(Boolean);
    const texts = [
      ...labelled.map((id) => document.getElementById(id)?.textContent),
      element.getAttribute("aria-label"),
      element.title,
      ...[...(element.labels ?? [])].map((label) => label.textContent),
      ["INPUT", "SELECT", "IFRAME", "svg"].includes(element.tagName) ? "" : element.textContent,
    ];
    return texts.filter(Boolean).join(" ").trim();
  };
  const named = "a, button, summary, iframe, th, input:not([type=hidden]), select, textarea, [role=img], [role=group]";
  const unnamed = [...document.querySelectorAll(named)]
    .filter((element) => element.checkVisibility() && !nameOf(element))
    .map((element) => element.outerHTML.slice(0, 80));
  const figure = document.querySelector("figure");
  return {
    width: document.documentElement.scrollWidth,
    brightness: luminance(behind(document.body)),
    faintest,
    clashes,
    unnamed,
    figureEnd: figure ? figure.getBoundingClientRect().bottom + scrollY : 0,
  };
})()
