package access

import "io/fs"

// checkPrivate does not look: Windows keeps who may read a file elsewhere than in its mode.
func checkPrivate(string, fs.FileInfo) error { return nil }
