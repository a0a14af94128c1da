"""The tools that come with Leadline, one file each; listed in `leadline.tools.loading.SHIPPED`."""
