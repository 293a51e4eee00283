//go:build unix

package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// takeStdout gives the process's stdout to the caller alone. Whatever else
// writes to it from now on, a library or a child, writes to stderr.
func takeStdout(stdout io.Writer) (io.Writer, error) {
	if stdout != os.Stdout {
		return stdout, nil
	}
	fd, err := unix.FcntlInt(os.Stdout.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	if err := unix.Dup2(int(os.Stderr.Fd()), int(os.Stdout.Fd())); err != nil {
		return nil, err
	}
	os.Stdout = os.Stderr
	return os.NewFile(uintptr(fd), "stdout"), nil
}
