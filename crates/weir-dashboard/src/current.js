// Keeps a page of figures current: takes them from the page's own address, and replaces the parts that changed, so that
// focus, selection and open details stay. Without this script the page shows the moment it was loaded.
"use strict";
const everyMs = 2000;
const lost = document.getElementById("lost");
const pause = document.getElementById("pause");
const hasFocus = (element) => element.contains(document.activeElement);

// An element without its content. A reader opens and closes details.
function head(element) {
  const own = element.cloneNode();
  own.removeAttribute("open");
  return own;
}

const textOf = (element) =>
  [...element.childNodes].map((node) => (node.nodeType === Node.TEXT_NODE ? node.data : "\0")).join("");

// Replaces what differs, in the smallest parts that both have, except a part in which the reader is.
function renew(own, now) {
  const [ours, theirs] = [own, now].map((of) => [...of.children]);
  const isAlike = (element, place) => head(element).isEqualNode(head(theirs[place]));
  const hasSameParts = ours.length > 0 && ours.length === theirs.length && textOf(own) === textOf(now);
  if (hasSameParts && ours.every(isAlike)) {
    ours.forEach((element, place) => renew(element, theirs[place]));
  } else if (own.innerHTML !== now.innerHTML && !hasFocus(own)) {
    own.innerHTML = now.innerHTML;
  }
}

// Gives the rows the order of the new ones. Moving a row takes its focus, so others move around the one that has it.
function arrange(body, rows) {
  if (rows.every((row, place) => body.rows[place] === row)) return;
  const fixed = rows.findIndex(hasFocus);
  rows.forEach((row, place) => {
    if (place < fixed) body.insertBefore(row, rows[fixed]);
    if (place > fixed) body.append(row);
  });
}

function renewRows(body, now) {
  const known = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  const rows = [...now.rows].map((row) => {
    const own = known.get(row.dataset.key);
    if (!own) return row;
    known.delete(row.dataset.key);
    [...row.cells].forEach((cell, place) => renew(own.cells[place], cell));
    return own;
  });
  known.forEach((row) => row.remove());
  arrange(body, rows);
}

function renewServers(own, now) {
  const [body, rows] = [own, now].map((of) => of.querySelector("tbody"));
  const [alerts, alertsNow] = [own, now].map((of) => of.querySelector(".alerts"));
  if (body && rows && !alerts === !alertsNow) {
    renewRows(body, rows);
    if (alerts) renew(alerts, alertsNow);
  } else {
    renew(own, now);
  }
}

function show(text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  const parts = [["servers", renewServers], ["threads", renew], ["process", renew]];
  for (const [id, take] of parts) {
    const [own, now] = [document, page].map((of) => of.getElementById(id));
    if (own && now) take(own, now);
  }
}

async function look() {
  if (pause.getAttribute("aria-pressed") === "false" && !document.hidden) {
    try {
      const answer = await fetch(location.href);
      const text = await answer.text();
      lost.hidden = answer.ok;
      if (answer.ok) show(text);
    } catch {
      lost.hidden = false;
    }
  }
  setTimeout(look, everyMs);
}

pause.hidden = false;
pause.addEventListener("click", () => {
  pause.setAttribute("aria-pressed", String(pause.getAttribute("aria-pressed") === "false"));
});
setTimeout(look, everyMs);
