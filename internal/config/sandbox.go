package config

import (
	"os"
	"path/filepath"
	"strings"
)

// sandboxWrite reads the paths of sandbox.write, in which ~/ is the home.
func (p *parser) sandboxWrite(paths []string) []string {
	key := []string{"sandbox", "write"}
	var list []string
	for _, path := range paths {
		full := path
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			home, err := os.UserHomeDir()
			if err != nil {
				p.problem(key, "%q: %v", path, err)
				continue
			}
			full = filepath.Join(home, rest)
		}
		if !filepath.IsAbs(full) {
			p.problem(key, "%q: want a path from the top, or one that begins with ~/", path)
			continue
		}
		list = append(list, filepath.Clean(full))
	}
	return list
}
