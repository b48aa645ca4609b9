"""Parts of the process: time, threads, the event loop's turns, log lines, failpoints."""
