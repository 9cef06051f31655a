// After an update the error of a field may have come or gone: the field itself says so too.
document.addEventListener("htmx:afterSettle", () => {
  for (const error of document.querySelectorAll(".field .error")) {
    const field = document.getElementById(error.id.replace(/-error$/, ""));
    if (error.textContent.trim()) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
  }
});
