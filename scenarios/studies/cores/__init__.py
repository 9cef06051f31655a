"""The study of cores per OSD: published rates and cores used of OSDs pinned to 2 to 16 cores."""
