// After an update, keep aria-invalid of each field in step with its error text.
document.addEventListener("htmx:afterSettle", () => {
  for (const error of document.querySelectorAll(".field .error")) {
    const field = document.getElementById(error.id.replace(/-error$/, ""));
    if (error.textContent.trim()) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
  }
});
