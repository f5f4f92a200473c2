// Presses the first button that saves a chart, and says what it saves: its name, its size, the box of the chart, and
// how much is drawn. The value of the expression that is this file.
(async () => {
  const saved = {};
  const make = URL.createObjectURL;
  URL.createObjectURL = (file) => {
    saved.file = file;
    return make.call(URL, file);
  };
  HTMLAnchorElement.prototype.click = function () {
    saved.name = this.download;
  };
  const button = document.querySelector("button.png");
  const label = button.getAttribute("aria-label");
  button.click();
  while (!saved.name && button.textContent === "PNG") await new Promise((done) => setTimeout(done, 20));
  if (!saved.name) return { failed: button.textContent };
  const image = await createImageBitmap(saved.file);
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height];
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  // Colours of dots in a part of the image.
  const colours = (from, rows) => {
    const { data } = context.getImageData(0, from, image.width, rows);
    const dots = new Uint32Array(data.buffer);
    return [...new Set(dots)].length;
  };
  const [red, green, blue, opacity] = context.getImageData(0, 0, 1, 1).data;
  const figure = document.querySelector(".chart > figure");
  const box = figure ? figure.getBoundingClientRect() : { width: 0, height: 0 };
  // Above the chart are the study, its date and its machine: lines of about 20 px from the margin on, at two dots a px.
  return {
    name: saved.name,
    type: saved.file.type,
    label,
    width: image.width,
    height: image.height,
    paper: (red + green + blue) / (3 * 255),
    opacity,
    above: colours(32, 40),
    all: colours(0, image.height),
    box: { width: Math.ceil(box.width), height: Math.ceil(box.height) },
  };
})()
