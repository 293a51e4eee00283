//go:build !unix

package tool

import "os"

const nonBlock = 0

func openNoBlock(path string) (*os.File, error) { return os.Open(path) }

func openNoFollow(path string) (*os.File, error) { return os.Open(path) }
