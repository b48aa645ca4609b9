"""Jobs for long work: with progress, and a cancellation that undoes them."""
