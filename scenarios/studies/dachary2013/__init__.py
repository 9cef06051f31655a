"""The study of Dachary 2013 and 2014: Ceph's erasure-code kernels, then and on this machine."""
