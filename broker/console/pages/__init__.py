"""One module for each page or list of the console."""
