"""What holds only where Barnabas is compiled: `make compiled`."""
