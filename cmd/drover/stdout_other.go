//go:build !unix

package main

import (
	"io"
	"os"
)

// takeStdout gives the process's stdout to the caller alone. What else writes
// to os.Stdout from now on writes to stderr.
func takeStdout(stdout io.Writer) (io.Writer, error) {
	if stdout == os.Stdout {
		os.Stdout = os.Stderr
	}
	return stdout, nil
}
