"""Methods that a user wrote: modules that are built, called, trained and recognised."""
