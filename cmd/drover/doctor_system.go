package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/drover-dev/drover/internal/config"
)

// examineMode notes a file of keys that others may read.
func examineMode(f *findings, area, path string) {
	if runtime.GOOS == "windows" {
		return // the mode says nothing there
	}
	st, err := os.Stat(path)
	if err == nil && st.Mode().Perm()&0o077 != 0 {
		f.add(area, note, "chmod 600 "+path, "%s has mode %o: others may read it", path, st.Mode().Perm())
	}
}

// examineFolders looks whether drover can write where it keeps its own files.
func (a *app) examineFolders(f *findings) {
	const area = "folders"
	dirs := config.FindDirs()
	if dirs.State == "" {
		f.add(area, wrong, "Set HOME to a folder of yours.", "there is no home: sessions are kept in memory and are lost")
		return
	}
	for _, d := range []struct {
		what, path string
		bad        state
		hint       string
	}{
		{"configuration", dirs.Config, note, "Change the configuration by hand: drover engines and drover config init cannot."},
		{"sessions", filepath.Join(dirs.State, "sessions"), wrong, "Make it writable, or set XDG_STATE_HOME to another folder. Until then sessions are lost."},
		{"long outputs of tools", filepath.Join(dirs.Cache, "output"), wrong, "Make it writable, or set XDG_CACHE_HOME to another folder."},
	} {
		made, err := writable(d.path)
		switch {
		case err != nil:
			f.add(area, d.bad, d.hint, "%s: nothing can be written to %s: %v", d.what, d.path, plainError(err))
		case !made:
			f.add(area, fine, "", "%s: %s (is made when it is needed)", d.what, d.path)
		default:
			f.add(area, fine, "", "%s: %s", d.what, d.path)
		}
	}
}

// writable tries to write to a folder, or to the nearest one above it that there
// is, and leaves nothing behind.
func writable(path string) (made bool, err error) {
	for made = true; ; made = false {
		st, err := os.Stat(path)
		if err == nil && !st.IsDir() {
			return false, fmt.Errorf("%s is no folder", path)
		}
		if err == nil {
			break
		}
		up := filepath.Dir(path)
		if !errors.Is(err, fs.ErrNotExist) || up == path {
			return false, err
		}
		path = up
	}
	tmp, err := os.CreateTemp(path, ".drover-doctor-*")
	if err != nil {
		return made, err
	}
	return made, errors.Join(tmp.Close(), os.Remove(tmp.Name()))
}

// plainError is an error without the path that stands beside it anyway.
func plainError(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// examineSessions looks at the heads and ends of the saved sessions.
func (a *app) examineSessions(f *findings) {
	const area = "sessions"
	a.dirs = config.FindDirs() // also when the configuration was not read
	list, err := a.sessions().List(nil)
	if err != nil {
		f.add(area, wrong, "Make the folder readable, or move it away.", "%v", err)
		return
	}
	var size int64
	var odd []string
	for _, s := range list {
		size += s.Size
		if s.Problem != nil {
			odd = append(odd, fmt.Sprintf("%s: %v", s.ID, s.Problem))
		}
	}
	f.add(area, fine, "", "%s, %.1f MiB", count(len(list), "saved session"), float64(size)/(1<<20))
	if len(odd) > 0 {
		f.add(area, note, "They are left as they are; the others are not touched by it.", "%s cannot be read wholly:\n%s",
			count(len(odd), "session"), strings.Join(odd, "\n"))
	}
}

// examinePrograms looks for what tools run.
func examinePrograms(f *findings) {
	const area = "programs"
	for _, p := range []struct {
		name    string
		missing state
		text    string
		hint    string
	}{
		{"bash", note, "commands run in sh", "Install bash: models write commands for it."},
		{"git", note, "the model cannot look at the history", "Install git if the model shall use it."},
		{"rg", note, "searches in large folders take longer, and find the same", "Install ripgrep to make them faster."},
	} {
		path, err := exec.LookPath(p.name)
		if err == nil {
			f.add(area, fine, "", "%s: %s", p.name, path)
			continue
		}
		if p.name == "bash" {
			if _, err := exec.LookPath("sh"); err != nil {
				f.add(area, wrong, "Install bash (on Windows: Git for Windows), and put it into PATH.", "neither bash nor sh is in PATH: the shell tool cannot run commands")
				continue
			}
		}
		f.add(area, p.missing, p.hint, "%s is not in PATH: %s", p.name, p.text)
	}
}
