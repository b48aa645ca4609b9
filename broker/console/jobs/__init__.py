"""What takes longer than an answer: jobs, with progress, and a cancel that undoes them."""
