// Shows what the dashboard tells of the running study. Without this script the page shows the moment it was loaded.
"use strict";
const shown = document.getElementById("live");
const events = new EventSource(shown.dataset.events);
events.onmessage = (event) => {
  shown.innerHTML = event.data;
};
