"""Two further systems that studies simulate on the same engines, one folder each.

`transfer` sends their messages.
"""
