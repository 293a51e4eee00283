package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var testDate = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func testFiles() []file {
	return []file{
		{name: "drover", data: []byte("program\n"), executable: true},
		{name: "LICENSE", data: []byte("MIT\n")},
		{name: "completions/drover.bash", data: []byte("complete")},
	}
}

func TestTargets(t *testing.T) {
	all, err := parseTargets(allTargets)
	if err != nil || len(all) != 6 {
		t.Fatalf("%v, %v", all, err)
	}
	for _, bad := range []string{"", "linux", "plan9/amd64", "linux/amd64,"} {
		if got, err := parseTargets(bad); err == nil {
			t.Errorf("%q gives %v", bad, got)
		}
	}
	for _, tt := range []struct{ target, program, archive, platform string }{
		{"linux/amd64", "drover", "drover_1.2.3_linux_amd64.tar.gz", "linux-x86_64"},
		{"windows/arm64", "drover.exe", "drover_1.2.3_windows_arm64.zip", "windows-aarch64"},
	} {
		got, err := parseTargets(tt.target)
		if err != nil {
			t.Fatal(err)
		}
		if x := got[0]; x.program() != tt.program || x.archive("1.2.3") != tt.archive || x.platform() != tt.platform {
			t.Errorf("%s: %s, %s, %s", tt.target, x.program(), x.archive("1.2.3"), x.platform())
		}
	}
}

// unpackTar gives the files of an archive, with their modes.
func unpackTar(t *testing.T, data []byte) (files []file) {
	t.Helper()
	zr, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(testDate) || h.Uid != 0 || h.Uname != "root" {
			t.Errorf("%s: %v of %d %s", h.Name, h.ModTime, h.Uid, h.Uname)
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file{name: h.Name, data: content, executable: h.Mode&0o100 != 0})
	}
}

func TestArchives(t *testing.T) {
	for _, system := range []string{"linux", "windows"} {
		target := target{system, "amd64"}
		var first, second bytes.Buffer
		for _, b := range []*bytes.Buffer{&first, &second} {
			if err := target.pack(b, testFiles(), testDate); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%s: two archives of the same files differ", system)
		}
		var got []file
		if system == "linux" {
			got = unpackTar(t, first.Bytes())
		} else {
			zr, err := zip.NewReader(bytes.NewReader(first.Bytes()), int64(first.Len()))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range zr.File {
				r, err := f.Open()
				if err != nil {
					t.Fatal(err)
				}
				content, err := io.ReadAll(r)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, file{name: f.Name, data: content, executable: f.Mode()&0o100 != 0})
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(testFiles()) {
			t.Errorf("%s: %v", system, got)
		}
	}
}

// arFile is the header of a file in an ar archive.
var arFile = regexp.MustCompile("^([^ ]+) +([0-9]+) +0 +0 +100644 +([0-9]+) *`\n$")

func TestDebianPackage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.deb")
	r := &release{version: "1.2.3-rc.1", date: testDate}
	if err := r.writeDeb(path, target{"linux", "arm64"}, testFiles()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rest, ok := bytes.CutPrefix(data, []byte("!<arch>\n"))
	if !ok {
		t.Fatalf("begins with %q", data[:8])
	}
	members := make(map[string][]byte)
	var order []string
	for len(rest) > 0 {
		const header = 60
		m := arFile.FindSubmatch(rest[:header])
		if m == nil {
			t.Fatalf("header %q", rest[:header])
		}
		var size int
		fmt.Sscan(string(m[3]), &size)
		members[string(m[1])] = rest[header : header+size]
		order = append(order, string(m[1]))
		rest = rest[header+size+size%2:]
	}
	if got := fmt.Sprint(order); got != "[debian-binary control.tar.gz data.tar.gz]" || string(members["debian-binary"]) != "2.0\n" {
		t.Errorf("members %s, %q", got, members["debian-binary"])
	}
	control := unpackTar(t, members["control.tar.gz"])
	for _, line := range []string{"Package: drover\n", "Version: 1.2.3~rc.1\n", "Architecture: arm64\n", "Installed-Size: 1\n"} {
		if !strings.Contains(string(control[0].data), line) {
			t.Errorf("control has no %q:\n%s", line, control[0].data)
		}
	}
	var names []string
	for _, f := range unpackTar(t, members["data.tar.gz"]) {
		names = append(names, f.name)
		if f.name == "./usr/bin/drover" && (!f.executable || string(f.data) != "program\n") {
			t.Errorf("%+v", f)
		}
	}
	if !slices.IsSorted(names) || !slices.Contains(names, "./usr/bin/") || !slices.Contains(names, "./usr/share/doc/drover/copyright") ||
		!slices.Contains(names, "./usr/share/bash-completion/completions/drover") {
		t.Errorf("files %v", names)
	}
}

func TestLicences(t *testing.T) {
	for text, want := range map[string]string{
		"MIT License\n\nPermission is hereby granted, free\nof charge, to any person":      "[MIT]",
		"Apache License\n                           Version 2.0, January 2004":             "[Apache-2.0]",
		"// Redistribution and use in source and binary forms,\n// with or without":        "[BSD]",
		"Mozilla Public License, version 2.0":                                              "[MPL-2.0]",
		"Permission to use, copy, modify, and/or distribute this software for any":         "[ISC]",
		"GNU GENERAL PUBLIC LICENSE":                                                       "[]",
		"Permission is hereby granted, free of charge ... Apache License, Version 2.0 ...": "[Apache-2.0 MIT]",
	} {
		if got := fmt.Sprint(licencesOf([]byte(text))); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	for name, want := range map[string]bool{
		"LICENSE": true, "LICENCE.txt": true, "LICENSE-MIT": true, "COPYING": true, "NOTICE": true, "license.md": true,
		"licenses.go": false, "README.md": false, "NOTICES.go": false,
	} {
		if got := licenceFile.MatchString(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	dir := t.TempDir()
	m := &module{Path: "example.org/x", Version: "v1", Dir: dir}
	for text, want := range map[string]string{"": "no licence", "GNU GENERAL PUBLIC LICENSE": "no licence", "Mozilla Public License Version 2.0": "MPL-2.0, which is not permissive"} {
		if err := os.WriteFile(filepath.Join(dir, "LICENSE"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := m.notice(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestNotices: everything that is linked into the program on any system has a
// licence that permits it.
func TestNotices(t *testing.T) {
	targets, err := parseTargets("linux/amd64,darwin/arm64,windows/amd64")
	if err != nil {
		t.Fatal(err)
	}
	text, err := notices(t.Context(), filepath.Join("..", ".."), targets)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"the Go standard library (BSD)", "github.com/spf13/cobra ", "github.com/danieljoos/wincred ", "kernel.org/pub/linux/libs/security/libcap/psx "} {
		if !bytes.Contains(text, []byte("\n"+want)) {
			t.Errorf("no notice of %s", want)
		}
	}
	for _, not := range []string{"rapid", "go-internal", "drover-dev"} {
		if bytes.Contains(text, []byte(not)) {
			t.Errorf("%s is not linked in", not)
		}
	}
}

// TestRegistryEntry holds the entry against the rules of the registry.
func TestRegistryEntry(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "drover_1.2.3_linux_amd64.tar.gz")
	if err := os.WriteFile(archive, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	entry := newAgent("1.2.3")
	if err := entry.add(target{"linux", "amd64"}, archive); err != nil {
		t.Fatal(err)
	}
	if err := entry.write(dir, filepath.Join("..", "..")); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "agent.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		ID, Name, Version, Description string
		LicenseURL                     string `json:"license_url"`
		Distribution                   struct {
			Binary map[string]struct {
				Archive, SHA256, Cmd string
				Args                 []string
			}
		}
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	b := got.Distribution.Binary["linux-x86_64"]
	if !regexp.MustCompile(`^[a-z][a-z0-9-]*$`).MatchString(got.ID) || got.Name == "" || got.Description == "" || got.LicenseURL == "" ||
		!releaseVersion.MatchString(got.Version) || !strings.HasSuffix(b.Archive, "/v1.2.3/drover_1.2.3_linux_amd64.tar.gz") ||
		len(b.SHA256) != 64 || b.Cmd != "./drover" || fmt.Sprint(b.Args) != "[acp]" {
		t.Errorf("%+v", got)
	}
	icon, err := os.ReadFile(filepath.Join(dir, "icon.svg"))
	if err != nil || !bytes.Contains(icon, []byte(`width="16" height="16"`)) {
		t.Fatalf("%s, %v", icon, err)
	}
	for _, paint := range regexp.MustCompile(`(?:fill|stroke)="([^"]*)"`).FindAllSubmatch(icon, -1) {
		if p := string(paint[1]); p != "none" && p != "currentColor" {
			t.Errorf("the icon is painted with %s", p)
		}
	}
}

func TestSums(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b", "sub/a"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeSums(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, sumsFile))
	const sum = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
	if want := sum + "  b\n" + sum + "  sub/a\n"; err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
}
