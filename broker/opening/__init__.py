"""Parts of a broker's start; the server determines their order."""
