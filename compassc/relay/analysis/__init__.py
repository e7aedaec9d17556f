"""What can be said of Relay programs without running them."""
