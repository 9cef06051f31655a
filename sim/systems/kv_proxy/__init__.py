"""An encoding proxy in front of a cluster of key-value nodes (ErasureBench)."""
