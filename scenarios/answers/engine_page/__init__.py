"""A page that runs the compiled engine in the browser. Start with `page`."""
