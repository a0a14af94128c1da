"""Many ranks folded into one tree, with statistics over ranks."""
