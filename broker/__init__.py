"""The daemon: sockets, tasks, time, configuration and the command line."""
