// An update may add or remove the error of a field: mark the field itself accordingly.
document.addEventListener("htmx:afterSettle", () => {
  for (const error of document.querySelectorAll(".field .error")) {
    const field = document.getElementById(error.id.replace(/-error$/, ""));
    if (error.textContent.trim()) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
  }
});
