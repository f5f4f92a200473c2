// Shows what the dashboard sends about the running study, and says so when nothing comes. Without this script the page
// shows the moment it was loaded.
"use strict";
const shown = document.getElementById("live");
const lost = document.getElementById("lost");
// The dashboard gives a sign of life every fifteen seconds: after three that did not come, nobody is there.
const silenceMs = 50000;
const againMs = 5000;

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
    shown.innerHTML = event.data;
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
