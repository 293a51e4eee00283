//go:build !linux

package tool

import (
	"errors"
	"os"
)

func openNoLinks(string) (*os.File, error) { return nil, errors.ErrUnsupported }
