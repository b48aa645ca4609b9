"""What the process is made of: time, threads, the loop's turns, log lines, failpoints."""
