package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// target is a system to build for, as Go names it.
type target struct{ os, arch string }

// allTargets are the systems of a release.
const allTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

func (t target) String() string { return t.os + "/" + t.arch }

func hostTarget() target { return target{runtime.GOOS, runtime.GOARCH} }

func parseTargets(names string) (targets []target, err error) {
	known := strings.Split(allTargets, ",")
	for name := range strings.SplitSeq(names, ",") {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("unknown target %q (there are %s)", name, allTargets)
		}
		system, arch, _ := strings.Cut(name, "/")
		targets = append(targets, target{system, arch})
	}
	return targets, nil
}

// program is the name of the program.
func (t target) program() string {
	if t.os == "windows" {
		return "drover.exe"
	}
	return "drover"
}

// archive is the name of the archive.
func (t target) archive(version string) string {
	suffix := ".tar.gz"
	if t.os == "windows" {
		suffix = ".zip"
	}
	return fmt.Sprintf("drover_%s_%s_%s%s", version, t.os, t.arch, suffix)
}

// build builds the program for a target.
func (r *release) build(ctx context.Context, t target, out string) error {
	// The linker's id would tell one build cache from another.
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w -buildid=", "-o", out, "./cmd/drover")
	cmd.Dir = r.source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOOS="+t.os, "GOARCH="+t.arch)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build for %s: %w\n%s", t, err, text)
	}
	return nil
}

// programVersion asks a program for its version, without the v in front.
func programVersion(ctx context.Context, program string) (string, error) {
	out, err := exec.CommandContext(ctx, program, "version").Output()
	if err != nil {
		return "", fmt.Errorf("ask for the version: %w", err)
	}
	fields := bytes.Fields(out)
	if len(fields) < 2 {
		return "", fmt.Errorf("the program calls itself %q", out)
	}
	return strings.TrimPrefix(string(fields[1]), "v"), nil
}
