"""Files and folders: atomic writes, private folders, safe paths, full disks."""
