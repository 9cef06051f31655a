"""What a scenario may say: keys, types, rules across keys, and errors with file, line and key."""
