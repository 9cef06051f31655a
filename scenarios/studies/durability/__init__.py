"""The study of published durability: chains, copysets, Backblaze's window, the curves of mlec-sim."""
