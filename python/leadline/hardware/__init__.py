"""What is known of devices: peak rates, matrix instructions, what names of kernels say of both."""
