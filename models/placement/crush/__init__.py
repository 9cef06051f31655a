"""CRUSH: maps, their text form, and the compiled mapping that equals crushtool's to the bit."""
