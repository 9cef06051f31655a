"""Two further systems that studies simulate on the same engines.

`transfer` sends their messages; each system has a folder of its own.
"""
