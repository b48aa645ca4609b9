"""The pages of the documentation as the site shows them, in `build/pages`."""
