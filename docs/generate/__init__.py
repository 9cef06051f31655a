"""Generate the pages that come from the code, so that code and documentation cannot differ."""
