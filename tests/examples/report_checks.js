// What test_reports_in_browser.py asks of a page; each function returns plain data.

const luminance = (colour) => {
  const [r, g, b] = colour.map((v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};

const contrast = (a, b) => {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
};

// A canvas reads every notation of a colour: red, green, blue, opacity.
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const parse = (text) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = text;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
};

// The nearest background that is painted behind an element, and the bar of a cell that has one.
const behind = (element) => {
  const grounds = [];
  if (element.closest("td.bar")) {
    grounds.push(parse(getComputedStyle(document.documentElement).getPropertyValue("--accent-soft")));
  }
  for (let at = element; at; at = at.parentElement) {
    const colour = parse(getComputedStyle(at).backgroundColor);
    if (colour[3] === 255) return [...grounds, colour];
  }
  return [...grounds, [255, 255, 255, 255]];
};

// Texts, the letters of figures among them, whose contrast is too low: [text, contrast].
const faint = (wanted, wantedLarge) => {
  const found = [];
  const check = (element, colour, words) => {
    const style = getComputedStyle(element);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && parseInt(style.fontWeight) >= 700);
    for (const ground of behind(element)) {
      const ratio = contrast(parse(colour).slice(0, 3), ground.slice(0, 3));
      if (ratio < (large ? wantedLarge : wanted)) found.push([words.trim().slice(0, 40), ratio.toFixed(2)]);
    }
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let texts = 0;
  while (walk.nextNode()) {
    const words = walk.currentNode.textContent;
    const element = walk.currentNode.parentElement;
    if (!words.trim() || element.closest("svg, style") || !element.getClientRects().length) continue;
    texts += 1;
    check(element, getComputedStyle(element).color, words);
  }
  for (const svg of document.querySelectorAll("figure svg[role=img]")) {
    check(svg, getComputedStyle(svg).fill, "letters of a figure");
  }
  return { texts, faint: found };
};

// Figures: their boxes, what is drawn in them, and what lies outside without being clipped.
const figures = () =>
  [...document.querySelectorAll("figure")].map((figure) => {
    const svg = figure.querySelector("svg");
    const box = svg.getBoundingClientRect();
    const marks = [...svg.querySelectorAll("path, use, rect, text")]
      .filter((mark) => !mark.closest("[clip-path], defs, svg svg"))
      .map((mark) => mark.getBoundingClientRect())
      .filter((mark) => mark.width + mark.height > 0);
    const outside = marks.filter(
      (mark) =>
        mark.left < box.left - 1 || mark.right > box.right + 1 ||
        mark.top < box.top - 1 || mark.bottom > box.bottom + 1,
    );
    return {
      name: figure.id, width: box.width, height: box.height, drawn: marks.length, outside: outside.length,
    };
  });

// How much wider the page is than the window, and which elements stick out that do not scroll in their own box.
const overflow = () => {
  const width = document.documentElement.clientWidth;
  const wide = [...document.body.querySelectorAll("*")].filter(
    (one) => !one.closest(".box, pre, svg") && one.getBoundingClientRect().right > width + 1,
  );
  return {
    page: document.documentElement.scrollWidth - width,
    wide: wide.map((one) => `${one.tagName} ${one.className} ${one.id}`),
  };
};

// Colours that a theme changes: of the page, of a figure's paper, of its letters, of text.
const colours = () => {
  const figure = document.querySelector("figure");
  return [
    getComputedStyle(document.body).backgroundColor, getComputedStyle(figure).backgroundColor,
    getComputedStyle(figure.querySelector("svg")).fill, getComputedStyle(document.body).color,
  ];
};

// Step through a played request: the steps whose lane is not between the player and the window's lower edge.
const lanesOutOfView = () => {
  const slider = document.getElementById("at"), player = document.getElementById("player");
  // Above two steps a second the page moves at once.
  document.getElementById("speed").value = "15";
  const unseen = [];
  let seen = 0;
  for (let step = 1; step <= +slider.max; step += 1) {
    slider.value = step;
    slider.dispatchEvent(new Event("input"));
    const lane = document.querySelector(".host.active");
    if (!lane) { unseen.push([step, "no lane"]); continue; }
    const box = lane.getBoundingClientRect();
    if (box.top < player.getBoundingClientRect().bottom - 1 || box.bottom > innerHeight + 1) {
      unseen.push([step, box.top, box.bottom]);
    }
    seen += 1;
  }
  return { seen, unseen };
};

// Labels of rows that intersect a bar, the axis or the window's edge.
const coveringLabels = () => {
  const bars = [...document.querySelectorAll(".bar")].map((bar) => bar.getBoundingClientRect());
  const labels = [...document.querySelectorAll(".row > span")];
  const covering = labels.filter((label) => {
    const box = label.getBoundingClientRect();
    const meets = (bar) =>
      box.left < bar.right && bar.left < box.right && box.top < bar.bottom && bar.top < box.bottom;
    return box.left < 0 || bars.some(meets);
  });
  return { labels: labels.length, bars: bars.length, covering: covering.map((label) => label.textContent) };
};
