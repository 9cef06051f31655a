// A slider moves through the values of its field, and follows what is typed there.
function stopsOf(slider) { return slider.dataset.stops.split(" ").map(Number); }
function follow(slider) {
  const stops = stopsOf(slider);
  const value = Number(document.getElementById(slider.dataset.field).value);
  const distances = stops.map((stop) => Math.abs(stop - value));
  slider.value = distances.indexOf(Math.min(...distances));
  slider.setAttribute("aria-valuetext", stops[slider.value]);
}
const sliders = [...document.querySelectorAll(".slider")];
for (const slider of sliders) { slider.hidden = false; follow(slider); }

// Before htmx sends the form: the slider's value goes to its field, and the other way round.
document.addEventListener("input", (event) => {
  const field = event.target;
  if (field.matches(".slider")) {
    document.getElementById(field.dataset.field).value = stopsOf(field)[field.value];
    follow(field);
  }
  for (const slider of sliders) if (slider.dataset.field === field.id) follow(slider);
  if (field.name === "one_cluster" && !field.checked) separate();
}, true);

// Option B keeps the cluster that it shared.
function separate() {
  for (const own of document.querySelectorAll(".cluster.b [name]")) {
    own.value = document.getElementsByName(own.name.replace(/^b/, "a"))[0].value;
  }
  sliders.forEach(follow);
}

// On a narrow screen the answer comes first, so the groups of fields start closed.
if (matchMedia("(max-width: 899px)").matches) {
  for (const group of document.querySelectorAll(".group")) {
    group.open = group.querySelector("[aria-invalid]") !== null;
  }
}

// What a reader has opened stays open when it is drawn anew.
let opened = [];
document.addEventListener("htmx:beforeSwap", () => {
  opened = [...document.querySelectorAll(".answers details[open]")].map((one) => one.id);
});
document.addEventListener("htmx:afterSwap", () => {
  for (const id of opened) {
    const details = document.getElementById(id);
    if (details) details.open = true;
  }
});

// What only a closed tab showed does not go on for long. A page that is loaded again asks for it in time.
addEventListener("pagehide", () => {
  const tab = document.getElementsByName("tab")[0].value;
  navigator.sendBeacon("/leave", new URLSearchParams({ tab }));
});

// An update may add or remove the error of a field: mark the field itself accordingly.
document.addEventListener("htmx:afterSettle", () => {
  for (const error of document.querySelectorAll(".field .error")) {
    const field = document.getElementById(error.id.replace(/-error$/, ""));
    if (error.textContent.trim()) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
  }
});
