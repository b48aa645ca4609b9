"""Terms and requests of operators, for the command line and the console."""
