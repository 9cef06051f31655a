"""Key lines in one document that has every form of TOML."""

import tomllib

from stripesim.scenarios.schema.toml import locate_keys

DOCUMENT = '''# a comment = 1
a.b = """x
"y" ""\\\\" """""
"q.r" = { x = 1, y = [1, {z=2}] }
[[t]]
n = 1 # ] [ "
[t.sub]
v = 'x'
[[t]]
[[t.sub]]
d = 1979-05-27 07:32:00
'''


def test_every_form_of_key_is_located() -> None:
    tomllib.loads(DOCUMENT)
    expected = {
        ("a",): 2,
        ("a", "b"): 2,
        ("q.r",): 4,
        ("q.r", "x"): 4,
        ("q.r", "y"): 4,
        ("q.r", "y", 0): 4,
        ("q.r", "y", 1): 4,
        ("q.r", "y", 1, "z"): 4,
        ("t",): 5,
        ("t", 0): 5,
        ("t", 0, "n"): 6,
        ("t", 0, "sub"): 7,
        ("t", 0, "sub", "v"): 8,
        ("t", 1): 9,
        ("t", 1, "sub"): 10,
        ("t", 1, "sub", 0): 10,
        ("t", 1, "sub", 0, "d"): 11,
    }
    assert locate_keys(DOCUMENT) == expected
    assert locate_keys(DOCUMENT.replace("\n", "\r\n")) == expected
