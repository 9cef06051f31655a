"""Show answers: quantities, words, tables, figures, pages and files. Nothing here simulates."""
