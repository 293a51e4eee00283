//go:build !linux

package tool

import (
	"errors"
	"runtime"
)

func landlockABI() (int, error) { return 0, errors.New("there is no sandbox on " + runtime.GOOS) }

// SandboxExec is not possible on this system.
func SandboxExec(args, environ []string) error {
	if _, _, err := sandboxArguments(args); err != nil {
		return err
	}
	_, err := landlockABI()
	return err
}

func otherwiseWritable(string) bool { return false }
