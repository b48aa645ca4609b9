"""Every configuration key: its type, its default, where its value comes from."""
