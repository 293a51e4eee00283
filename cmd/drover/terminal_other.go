//go:build !unix

package main

import "os"

// openTerminal opens the console of the process, for reading and for writing.
func openTerminal() (in, out *os.File, err error) {
	if in, err = os.OpenFile("CONIN$", os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	out, err = os.OpenFile("CONOUT$", os.O_RDWR, 0)
	return in, out, err
}
