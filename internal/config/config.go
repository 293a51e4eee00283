// Package config reads and checks the configuration file, the environment and
// stored credentials, once. It is the only package that looks at the
// environment; everything else is handed values.
package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"

	"github.com/adrg/xdg"

	"github.com/drover-dev/drover/internal/llm"
)

// MaxFileBytes bounds the configuration file: 1 MiB.
const MaxFileBytes = 1 << 20

// Config is the checked configuration.
type Config struct {
	// Path is the file that was read, empty if there is none.
	Path string

	Model  llm.Target // zero if not set
	Effort llm.Effort // zero if not set
	Mode   string     // as written; empty if not set
	Policy int        // of the budget; 0 if not set

	// Engines are in the order of the file.
	Engines []Engine
	// DeepSeek is the [deepseek] table, nil if there is none.
	DeepSeek *DeepSeek
	// Hosted are the providers of the installed catalogue.
	Hosted []HostedProvider
	// MCP are the MCP servers, in the order of the file.
	MCP []MCPServer

	// Instructions are further instruction files, absolute.
	Instructions []string
	// ImagesAsTheyAre sends large images without making them smaller.
	ImagesAsTheyAre bool
	// ModelTitles lets the model write the titles of sessions.
	ModelTitles bool
	// ToolsOff names tools that are not offered.
	ToolsOff []string

	// SandboxOff lets commands write everywhere. SandboxWrite are further files
	// and folders, absolute, that they may write otherwise.
	SandboxOff   bool
	SandboxWrite []string

	// EditorTerminal has commands run in the terminals of an editor that has some.
	EditorTerminal bool
}

// Engine is one [engines.NAME] table.
type Engine struct {
	Name     string
	Preset   string
	URL      string
	Key      string // a reference, see [Credential]; never the key itself
	Context  int    // tokens; 0 if not set
	Profile  llm.Profile
	Insecure bool // allow a key over plain http to a public host
	// EngineSampling leaves the temperature to the engine.
	EngineSampling bool
	Models         []Model
}

// Model is one [engines.NAME.models.ID] table.
type Model struct {
	ID      string
	Profile llm.Profile
}

// Dirs are the folders drover uses. State is empty when there is no home to
// put it in: sessions are then kept in memory.
type Dirs struct {
	Config string // .../drover
	State  string // .../drover
	Cache  string // .../drover
}

// FindDirs finds the folders by the XDG rules of the platform. Without HOME the
// user database is asked for one.
func FindDirs() Dirs {
	if os.Getenv("HOME") == "" {
		u, err := user.Current()
		if err != nil || u.HomeDir == "" {
			return Dirs{}
		}
		if st, err := os.Stat(u.HomeDir); err != nil || !st.IsDir() {
			return Dirs{}
		}
		// Setting it serves the library below and the commands that tools run.
		if err := os.Setenv("HOME", u.HomeDir); err != nil {
			return Dirs{}
		}
		xdg.Reload()
	}
	return Dirs{
		Config: filepath.Join(xdg.ConfigHome, "drover"),
		State:  filepath.Join(xdg.StateHome, "drover"),
		Cache:  filepath.Join(xdg.CacheHome, "drover"),
	}
}

// Path is the configuration file that would be read: $DROVER_CONFIG, else
// config.toml in the configuration folder.
func Path(dirs Dirs) string {
	if p := os.Getenv("DROVER_CONFIG"); p != "" {
		return p
	}
	if dirs.Config == "" {
		return ""
	}
	return filepath.Join(dirs.Config, "config.toml")
}

// Load reads the file at path. A file that is not there is an empty
// configuration, unless $DROVER_CONFIG names it. The error of a file with
// mistakes is an [*Error].
func Load(path string) (*Config, error) {
	if path == "" {
		return &Config{}, nil
	}
	data, err := readBounded(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && os.Getenv("DROVER_CONFIG") == "":
		return &Config{}, nil
	case err != nil:
		return nil, unreadable(path, err)
	}
	return Parse(path, data)
}

// unreadable is the error of a file that cannot be read, or is not there although
// it was named.
func unreadable(path string, err error) *Error {
	text := plainPathError(err)
	if errors.Is(err, fs.ErrNotExist) {
		text += " (DROVER_CONFIG names this file)"
	}
	return &Error{Path: path, Problems: []Problem{{Message: text}}}
}

// readAtMost reads a file, and no further than the limit in bytes; more says that it
// is longer. A pipe or a device tells no size, and may have no end.
func readAtMost(path string, limit int) (data []byte, more bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	data, err = io.ReadAll(io.LimitReader(f, int64(limit)+1))
	return data, len(data) > limit, err
}

func readBounded(path string) ([]byte, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return nil, errors.New("is a folder, not a file")
	}
	data, more, err := readAtMost(path, MaxFileBytes)
	if more {
		return nil, fmt.Errorf("more than %d bytes", MaxFileBytes)
	}
	// Some editors of Windows begin a file with a mark that TOML does not have.
	return bytes.TrimPrefix(data, []byte("\ufeff")), err
}

func plainPathError(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

// Environment returns the process's environment for the commands that tools
// run.
func Environment() []string { return os.Environ() }

// Engine finds an engine by name.
func (c *Config) Engine(name string) (*Engine, bool) {
	i := slices.IndexFunc(c.Engines, func(e Engine) bool { return e.Name == name })
	if i < 0 {
		return nil, false
	}
	return &c.Engines[i], true
}

// Error lists what is wrong with a configuration file.
type Error struct {
	Path     string
	Problems []Problem
}

// Problem is one mistake and where it stands. Line and Column count from 1, 0
// if unknown.
type Problem struct {
	Line, Column int
	Message      string
}

func (e *Error) Error() string {
	msg := ""
	for i, p := range e.Problems {
		if i > 0 {
			msg += "\n"
		}
		msg += e.Path
		if p.Line > 0 {
			msg += fmt.Sprintf(":%d:%d", p.Line, p.Column)
		}
		msg += ": " + p.Message
	}
	return msg
}

func (e *Error) sort() {
	slices.SortStableFunc(e.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
