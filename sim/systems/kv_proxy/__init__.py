"""An encoding proxy in front of a cluster of key-value nodes (ErasureBench).

Start with `proxy` (the machine and its operations), then `plan` (operations of writes and reads) and
`cluster` (nodes that come and go).
"""
