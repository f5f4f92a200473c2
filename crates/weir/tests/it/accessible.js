// What keeps readers out who do not see a page, or who do not use a mouse: rules of WCAG 2.2 and of tools that check
// them, beyond names, contrast and overlaps (`measured.js`). The value of the expression is a list of faults.
(() => {
  const faults = [];
  const all = (selector, of = document) => [...of.querySelectorAll(selector)];
  const isSeen = (element) =>
    element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;
  const shown = (element) => element.outerHTML.replace(/\s+/g, " ").slice(0, 110);
  const expectNone = (rule, elements) => elements.forEach((it) => faults.push(`${rule}: ${shown(it)}`));
  const expect = (holds, fault) => {
    if (!holds) faults.push(fault);
  };

  // The page as a whole (2.4.2, 3.1.1, 1.4.4).
  expect(document.title.trim() !== "", "the page has no title");
  expect(/^(en|ko|zh-Hans)$/.test(document.documentElement.lang), `language: ${document.documentElement.lang}`);
  const viewport = document.querySelector("meta[name=viewport]")?.content ?? "";
  expect(!/user-scalable|maximum-scale/.test(viewport), `it cannot be enlarged: ${viewport}`);

  // Landmarks and headings (1.3.1, 2.4.1).
  expect(all("main").length === 1, `${all("main").length} elements main`);
  const landmarks = "main, nav, header, footer, aside, [role=status], script, style";
  expectNone("outside every landmark", all("body > *").filter((it) => isSeen(it) && !it.matches(landmarks)));
  const navigation = all("nav").map((it) => it.getAttribute("aria-label") ?? "");
  expect(new Set(navigation).size === navigation.length, `navigations with one name: ${navigation.join(", ")}`);
  const headings = all("h1, h2, h3, h4, h5, h6").filter(isSeen);
  const level = (heading) => Number(heading.localName[1]);
  expect(headings.length === 0 || level(headings[0]) <= 2, "the first heading is no h1 and no h2");
  expect(all("h1").some(isSeen), "no heading h1");
  expectNone(
    "a heading skips a level",
    headings.filter((it, place) => place > 0 && level(it) > level(headings[place - 1]) + 1),
  );
  expectNone("an empty heading", headings.filter((it) => it.textContent.trim() === ""));

  // References (4.1.2).
  const ids = all("[id]").map((it) => it.id);
  const twice = ids.filter((id, place) => ids.indexOf(id) !== place);
  expect(twice.length === 0, `ids that occur twice: ${twice.join(", ")}`);
  for (const attribute of ["aria-labelledby", "aria-describedby", "aria-controls", "for"]) {
    const leadsNowhere = (it) => it.getAttribute(attribute).split(/\s+/).some((id) => !document.getElementById(id));
    expectNone(`${attribute} leads nowhere`, all(`[${attribute}]`).filter(leadsNowhere));
  }

  // Names of what acts (1.1.1, 2.5.3, 4.1.2). Names of links and fields as such are in measured.js.
  const focusable = "a[href], button, input:not([type=hidden]), select, textarea, summary, iframe, [tabindex]";
  const hasName = (it) => it.hasAttribute("aria-label") || it.hasAttribute("aria-labelledby") || it.labels?.length > 0;
  expectNone("a meter without a name", all("progress, meter").filter((it) => isSeen(it) && !hasName(it)));
  expectNone("an image without a text", all("img:not([alt])"));
  expectNone("something that acts inside an image", all(`[role=img] :is(${focusable})`));
  expectNone("something that acts is hidden from readers", all(`[aria-hidden=true] :is(${focusable})`).filter(isSeen));
  expectNone("an order of focus that is not that of the page", all("[tabindex]").filter((it) => it.tabIndex > 0));
  const isAct = ":is(a[href], button, input, select)";
  expectNone("something that acts inside another", all(`:is(a[href], button, summary) ${isAct}`));
  const isOtherwiseNamed = (it) => {
    const [label, text] = [it.getAttribute("aria-label"), it.textContent.trim()];
    return label && /\p{L}/u.test(text) && !label.toLowerCase().includes(text.toLowerCase());
  };
  expectNone("its name lacks its text", all(":is(a, button)[aria-label]").filter(isOtherwiseNamed));
  const isDrawing = (it) => !it.closest("[role=img], [aria-hidden=true]") && !it.parentElement.closest("svg");
  const hasText = (it) => it.hasAttribute("aria-label") || it.querySelector(":scope > title, text");
  expectNone("a drawing without a text", all("svg").filter((it) => isSeen(it) && isDrawing(it) && !hasText(it)));

  // Lists and tables (1.3.1).
  const others = (list, allowed) => [...list.children].some((it) => !it.matches(allowed));
  expectNone("a list of other things", all("ul, ol").filter((it) => others(it, "li, script, template")));
  expectNone("a list of other things", all("dl").filter((it) => others(it, "dt, dd, div, script, template")));
  expectNone("an item without a list", all("li").filter((it) => !it.parentElement.matches("ul, ol, menu")));
  expectNone("a table without headers", all("table").filter((it) => isSeen(it) && !it.querySelector("th")));
  expectNone("a header without a scope", all("th:not([scope])"));
  expectNone("a scope of something else", all("th[scope]:not([scope=col], [scope=row], [scope=colgroup])"));

  // Keys (2.1.1, 2.4.7).
  const scrolls = (it) => /auto|scroll/.test(getComputedStyle(it).overflowX) && it.scrollWidth > it.clientWidth + 1;
  const isReached = (it) => it.tabIndex >= 0 || it.querySelector(focusable);
  const unreached = all("body *").filter((it) => isSeen(it) && scrolls(it) && !isReached(it));
  expectNone("it scrolls, and keys do not reach it", unreached);
  const acting = all(focusable).filter((it) => isSeen(it) && it.tabIndex >= 0 && !it.disabled);
  const before = document.activeElement;
  const showsFocus = (it) => {
    it.focus({ preventScroll: true, focusVisible: true });
    const style = getComputedStyle(it);
    return it.localName === "iframe" || style.outlineStyle !== "none" || style.boxShadow !== "none";
  };
  const sample = acting.filter((_, place) => place % Math.ceil(acting.length / 120) === 0);
  expectNone("focus is not seen", sample.filter((it) => !showsFocus(it)));
  before?.focus?.({ preventScroll: true });

  // Targets of at least 24 px, or as far from others; links in lines of text are exempt (2.5.8).
  const leastPx = 24;
  const centres = (it) => {
    const box = it.getBoundingClientRect();
    return { it, box, x: box.left + box.width / 2, y: box.top + box.height / 2 };
  };
  const isInText = (it) => {
    const beside = [...it.parentElement.childNodes].filter((node) => node !== it);
    const hasLetters = beside.some((node) => /\p{L}/u.test(node.textContent));
    return getComputedStyle(it).display === "inline" && hasLetters;
  };
  const targets = acting.filter((it) => it.matches("a[href], button, input, select, summary")).map(centres);
  const small = targets.filter(({ it, box }) => Math.min(box.width, box.height) < leastPx - 0.5 && !isInText(it));
  const isNear = (one) => {
    const reaches = ({ it, box }) => {
      if (it === one.it || it.contains(one.it) || one.it.contains(it)) return false;
      const [across, down] = [
        Math.max(box.left - one.x, one.x - box.right, 0),
        Math.max(box.top - one.y, one.y - box.bottom, 0),
      ];
      return Math.hypot(across, down) < leastPx / 2 - 0.5;
    };
    return targets.some(reaches);
  };
  expectNone("a small target beside another", small.filter(isNear).map(({ it }) => it));

  // Links in text that differ by more than their colour (1.4.1).
  const isPlain = (it) => !/underline/.test(getComputedStyle(it).textDecorationLine);
  const inText = all("p a[href], li a[href], dd a[href]").filter((it) => isSeen(it) && isInText(it));
  expectNone("a link in text is marked by its colour alone", inText.filter(isPlain));
  return faults;
})()
