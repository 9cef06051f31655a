"""The study of Koh et al. 2017 (IISWC): online erasure coding on SSD arrays under Ceph."""
