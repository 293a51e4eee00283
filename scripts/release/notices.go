package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// module is a module that is linked into the program.
type module struct{ Path, Version, Dir string }

// linkedModules lists the modules of a program on any of the targets.
func linkedModules(ctx context.Context, source string, targets []target) ([]module, error) {
	var modules []module
	for _, t := range targets {
		cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=Module", "./cmd/drover")
		cmd.Dir = source
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOOS="+t.os, "GOARCH="+t.arch)
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("list the dependencies for %s: %w", t, err)
		}
		for dec := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct {
				Module *struct {
					module
					Main bool
				}
			}
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			if m := p.Module; m != nil && !m.Main && !slices.Contains(modules, m.module) {
				modules = append(modules, m.module)
			}
		}
	}
	slices.SortFunc(modules, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return modules, nil
}

// licenceFile matches the names of files that a licence asks to be passed on.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)([-.].*)?$`)

// licences are recognised by words that no other one has.
var licences = []struct{ name, words string }{
	{"Apache-2.0", "apache license version 2.0"},
	{"MPL-2.0", "mozilla public license version 2.0"},
	{"MIT", "permission is hereby granted, free of charge"},
	{"BSD", "redistribution and use in source and binary forms"},
	{"ISC", "permission to use, copy, modify, and/or distribute"},
}

// permissive are the licences that a linked module may have.
var permissive = []string{"Apache-2.0", "MIT", "BSD", "ISC"}

var punctuation = regexp.MustCompile(`[\s*/#,]+`)

// plainWords is a text in small letters, without line ends, commas and the marks
// of comments, in which licences are set in many ways.
func plainWords(text string) string {
	return punctuation.ReplaceAllString(strings.ToLower(text), " ")
}

// licencesOf names the licences in a text.
func licencesOf(text []byte) (names []string) {
	words := plainWords(string(text))
	for _, l := range licences {
		if strings.Contains(words, plainWords(l.words)) {
			names = append(names, l.name)
		}
	}
	return names
}

// notices gives the licence texts of everything that is linked in. A module
// without a licence that permits it is an error.
func notices(ctx context.Context, source string, targets []target) ([]byte, error) {
	modules, err := linkedModules(ctx, source, targets)
	if err != nil {
		return nil, err
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	modules = append([]module{{Path: "the Go standard library", Dir: strings.TrimSpace(string(root))}}, modules...)
	var b bytes.Buffer
	b.WriteString("drover is built from the software below. Its own licence is in the file LICENSE.\n")
	for _, m := range modules {
		text, err := m.notice()
		if err != nil {
			return nil, err
		}
		b.Write(text)
	}
	return b.Bytes(), nil
}

// notice is a module's part of the notices.
func (m *module) notice() ([]byte, error) {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w (run go mod download)", m.Path, err)
	}
	var names []string
	var texts bytes.Buffer
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, e.Name()))
		if err != nil {
			return nil, err
		}
		names = append(names, licencesOf(text)...)
		fmt.Fprintf(&texts, "\n%s\n", bytes.TrimSpace(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no licence that is recognised", m.Path)
	}
	for _, name := range names {
		if !slices.Contains(permissive, name) {
			return nil, fmt.Errorf("%s has the licence %s, which is not permissive", m.Path, name)
		}
	}
	title := strings.TrimSpace(m.Path + " " + m.Version)
	return fmt.Appendf(nil, "\n%s\n%s (%s)\n%s", strings.Repeat("=", 72), title, strings.Join(names, ", "), texts.Bytes()), nil
}
