//go:build unix

package tool

import (
	"os"
	"syscall"
)

// nonBlock keeps the opening of a pipe without a writer from waiting for one.
const nonBlock = syscall.O_NONBLOCK

func openNoBlock(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDONLY|nonBlock, 0) }

// openNoFollow does not open a symbolic link.
func openNoFollow(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|nonBlock|syscall.O_NOFOLLOW, 0)
}
