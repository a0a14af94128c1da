"""What the kernel did with the program's threads, recorded by the supervisor and never inside the program."""
