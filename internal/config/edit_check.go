package config

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pelletier/go-toml/v2"
)

// Mistake is something wrong with the value of a key, found by who knows its
// meaning.
type Mistake struct {
	Key     []string
	Message string
}

// Check looks for all mistakes of a file, unknown keys and wrong values
// together. more finds further ones in what could be read; it may be nil. The
// error is an [*Error]. Without a file there are no mistakes, unless
// $DROVER_CONFIG names it.
func Check(path string, more func(*Config) []Mistake) error {
	if path == "" {
		return nil
	}
	data, err := readBounded(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && os.Getenv("DROVER_CONFIG") == "":
		return nil
	case err != nil:
		return unreadable(path, err)
	}
	return checkText(path, data, more)
}

func checkText(path string, data []byte, more func(*Config) []Mistake) error {
	all := &Error{Path: path}
	var f file
	err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&f)
	if err != nil {
		if e, ok := errors.AsType[*Error](decodeError(path, err)); ok {
			all.Problems = e.Problems
		}
		if _, strict := errors.AsType[*toml.StrictMissingError](err); !strict {
			return all
		}
		// Only keys are unknown: the others can be looked at as well.
		f = file{}
		if err := toml.Unmarshal(data, &f); err != nil {
			return all
		}
	}
	p := &parser{keys: keyPositions(data), err: all}
	c := p.config(&f, filepath.Dir(path))
	if more != nil {
		for _, m := range more(c) {
			p.problem(m.Key, "%s", m.Message)
		}
	}
	if len(all.Problems) == 0 {
		return nil
	}
	all.sort()
	return all
}
