// What a test sees of a page: how wide it is, how bright, whether its text can be distinguished from what is behind it,
// and where its first chart ends. The value of the expression that is this file.
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
  const figure = document.querySelector("figure");
  return {
    width: document.documentElement.scrollWidth,
    brightness: luminance(behind(document.body)),
    faintest,
    figureEnd: figure ? figure.getBoundingClientRect().bottom + scrollY : 0,
  };
})()
