"""What a compiled program of XLA says of its operations: pure functions, used where programs run and where profiles of
XLA are read."""
