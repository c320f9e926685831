"""What this host offers: processes, programs, files, and children that look at what other users control."""
