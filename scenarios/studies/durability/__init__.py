"""Published durability: chains, copysets, Backblaze's window, the curves of mlec-sim; held against ours."""
