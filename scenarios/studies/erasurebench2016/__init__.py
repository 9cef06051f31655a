"""The study of Vaucher et al. 2016 (ErasureBench): codes over a key-value store, and nodes that leave."""
