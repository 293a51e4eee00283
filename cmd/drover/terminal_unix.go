//go:build unix

package main

import "os"

// openTerminal opens the controlling terminal of the process, for reading and
// for writing.
func openTerminal() (in, out *os.File, err error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	return tty, tty, err
}
