"""CRUSH: maps, their text form, and a compiled mapping that equals crushtool's to the bit.

Start with `elements` and `map`; `kernel` holds the mapping, `text` the parser.
"""
