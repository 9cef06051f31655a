"""The study of published recoveries under WPQ and mClock, of hung OSDs, and of codes' repairs against RS."""
