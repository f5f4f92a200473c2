// Copies the text of an element when its button is pressed. Without this script the buttons stay hidden.
"use strict";
for (const button of document.querySelectorAll("button[data-copies]")) {
  const copied = document.getElementById(button.dataset.copies);
  button.hidden = false;
  button.addEventListener("click", async () => {
    let isDone = false;
    try {
      await navigator.clipboard.writeText(copied.textContent);
      isDone = true;
    } catch {
      // Without TLS a browser gives no clipboard: the text is selected, and the older command may copy it.
      getSelection().selectAllChildren(copied);
      isDone = document.execCommand("copy");
    }
    if (isDone) {
      button.textContent = button.dataset.done;
    }
  });
}
