//go:build !unix

package main

import "os"

// openTerminal opens the console of the process for reading; questions go to
// it too.
func openTerminal() (*os.File, error) { return os.OpenFile("CON", os.O_RDWR, 0) }
