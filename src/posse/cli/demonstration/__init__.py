"""What `posse demo` trains: programs of their own that know nothing of Posse."""
