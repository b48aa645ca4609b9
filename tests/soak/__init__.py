"""Hours of clients that come and go, and of brokers that are killed: `make soak`."""
