"""Programs that write one invoice for each order: `barnabas prove` tries them."""
