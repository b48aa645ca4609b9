"""What the command line and the console have in common: the terms and requests of operators."""
