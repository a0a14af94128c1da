"""A look into other processes: what each of their threads does at this moment, from outside, without stopping them."""
