"""What a start opens, piece by piece; the server says in which order."""
