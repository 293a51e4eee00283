package tool

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openNoLinks opens a path for reading on which no symbolic link lies. The error is
// errors.ErrUnsupported where the kernel cannot tell: before 5.6, or in a container
// that forbids the call.
func openNoLinks(path string) (*os.File, error) {
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
			Flags: unix.O_RDONLY | unix.O_CLOEXEC | nonBlock, Resolve: unix.RESOLVE_NO_SYMLINKS,
		})
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EPERM):
			return nil, errors.ErrUnsupported
		case errors.Is(err, syscall.ELOOP):
			return nil, errMoved
		}
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
}
