"""What is known of every dataset before a byte of it is fetched."""
