"""CRUSH: maps, their text form, and a compiled mapping that is bit-identical to crushtool's.

Start with `elements` and `map`. `kernel` contains the mapping and `text` the parser.
"""
