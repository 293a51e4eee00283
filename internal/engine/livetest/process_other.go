//go:build !unix

package livetest

import "os/exec"

// Engines are installed on Linux only; elsewhere this package has to compile.

func isolate(*exec.Cmd) {}

func interrupt(c *exec.Cmd) { kill(c) }

func kill(c *exec.Cmd) { _ = c.Process.Kill() }

func guard(*exec.Cmd) (unguard func()) { return func() {} }
