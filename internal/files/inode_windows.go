package files

import "os"

// Inode returns 0: Windows does not tell it in one call.
func Inode(os.FileInfo) uint64 { return 0 }

// IsRemoved is false: Windows keeps an open file from being removed.
func IsRemoved(os.FileInfo) bool { return false }
