package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
)

// Where the files of an archive go in a Debian package.
var debPaths = map[string]string{
	"drover":                  "usr/bin/drover",
	"LICENSE":                 "usr/share/doc/drover/copyright",
	"THIRD-PARTY-NOTICES.txt": "usr/share/doc/drover/THIRD-PARTY-NOTICES.txt",
	"README.md":               "usr/share/doc/drover/README.md",
	"CHANGELOG.md":            "usr/share/doc/drover/CHANGELOG.md",
	"completions/drover.bash": "usr/share/bash-completion/completions/drover",
	"completions/_drover":     "usr/share/zsh/vendor-completions/_drover",
	"completions/drover.fish": "usr/share/fish/vendor_completions.d/drover.fish",
}

// debVersion is a version in Debian's order: what comes before a release has a
// tilde in front.
func debVersion(version string) string { return strings.Replace(version, "-", "~", 1) }

func debName(t target, version string) string {
	return fmt.Sprintf("drover_%s_%s.deb", debVersion(version), t.arch)
}

// writeDeb writes a Debian package: an ar archive of its format, of the control
// file and of the files. Neither needs a tool of Debian, so that the package can
// be built anywhere.
func (r *release) writeDeb(path string, t target, files []file) error {
	var content []file
	folders := make(map[string]bool)
	size := 0
	for _, f := range files {
		to, ok := debPaths[f.name]
		if !ok {
			continue
		}
		for i, c := range to {
			if c == '/' {
				folders[to[:i+1]] = true
			}
		}
		content = append(content, file{name: "./" + to, data: f.data, executable: f.executable})
		size += len(f.data)
	}
	for folder := range folders {
		content = append(content, file{name: "./" + folder, executable: true})
	}
	sortFiles(content)

	control := fmt.Sprintf(`Package: drover
Version: %s
Architecture: %s
Maintainer: The drover authors <drover-dev@users.noreply.github.com>
Installed-Size: %d
Section: devel
Priority: optional
Homepage: https://github.com/drover-dev/drover
Description: agent for any editor or terminal and any language model
 One binary that lets any editor (over the Agent Client Protocol) or terminal
 work with any language model, local ones first. It plans every request against
 the model's real window, asks engines what they support, and keeps a log from
 which every request can be rebuilt.
`, debVersion(r.version), t.arch, (size+1023)/1024)

	var controlTar, dataTar bytes.Buffer
	if err := packTar(&controlTar, []file{{name: "./control", data: []byte(control)}}, r.date); err != nil {
		return err
	}
	if err := packTar(&dataTar, content, r.date); err != nil {
		return err
	}
	return writeFile(path, func(w io.Writer) error {
		return packAr(w, r.date, []file{
			{name: "debian-binary", data: []byte("2.0\n")},
			{name: "control.tar.gz", data: controlTar.Bytes()},
			{name: "data.tar.gz", data: dataTar.Bytes()},
		})
	})
}

// packAr writes the common form of an ar archive.
func packAr(w io.Writer, date time.Time, files []file) error {
	if _, err := io.WriteString(w, "!<arch>\n"); err != nil {
		return err
	}
	for _, f := range files {
		if _, err := fmt.Fprintf(w, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", f.name, date.Unix(), 0, 0, 0o100644, len(f.data)); err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
		if len(f.data)%2 == 1 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
	}
	return nil
}
