"""Questions and answers of the lessons, one module each: what is drawn, asked, computed, and how it is marked."""
