// Shows what the dashboard sends about the running study, and says so when nothing comes. Without this script the page
// shows the moment it was loaded.
"use strict";
const shown = document.getElementById("live");
const lost = document.getElementById("lost");
const said = document.getElementById("said");
const stop = document.getElementById("stop");
// The dashboard gives a sign of life every fifteen seconds: after three that did not come, nobody is there.
const silenceMs = 50000;
const againMs = 5000;

// Replaces the scene. Focus stays at its place, and only the progress is said to readers who listen.
function show(scene) {
  const places = () => [...shown.querySelectorAll("a, [tabindex]")];
  const place = places().indexOf(document.activeElement);
  shown.innerHTML = scene;
  if (place >= 0) places()[place]?.focus({ preventScroll: true });
  const progress = shown.querySelector("progress");
  said.textContent = (progress ? shown.querySelector(".facts span") : shown).textContent;
  stop.hidden = !progress;
}

function watch() {
  const events = new EventSource(shown.dataset.events);
  const lose = () => {
    lost.hidden = false;
  };
  const again = () => {
    lose();
    events.close();
    watch();
  };
  let silence = setTimeout(again, silenceMs);
  const heard = () => {
    lost.hidden = true;
    clearTimeout(silence);
    silence = setTimeout(again, silenceMs);
  };
  events.onmessage = (event) => {
    show(event.data);
    heard();
  };
  events.addEventListener("beat", heard);
  // Another page watches in this one's place, and is not sent away by it in turn.
  events.addEventListener("replaced", () => {
    events.close();
    clearTimeout(silence);
    lose();
  });
  // A connection that was lost is made anew by the browser itself; one that was refused is not.
  events.onerror = () => {
    lose();
    if (events.readyState === EventSource.CLOSED) {
      clearTimeout(silence);
      setTimeout(watch, againMs);
    }
  };
}
watch();
