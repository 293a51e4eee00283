package tool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// SandboxCommand is the argument with which [Sandbox] starts its program again.
// That process hands the arguments behind it to [SandboxExec].
const SandboxCommand = "sandbox-exec"

// Sandbox lets the commands of a session write only in its roots, in temporary
// and cache folders, and in Write. It reaches all that they start. What they
// read, run and send over the network is not its business. It needs Landlock, a
// part of the Linux kernel; nil is a sandbox that is turned off.
type Sandbox struct {
	// Self is the program that is started as
	//
	//	Self sandbox-exec --write PATH... -- COMMAND...
	//
	// and has to call [SandboxExec] with what follows the first argument.
	Self string
	// Path is the same program by its name, absolute, for a [Terminal]: what Self
	// is in this process it need not be in the one that starts the command there.
	// Whoever can write to that file is not confined.
	Path string
	// Write are further files and folders, absolute, that commands may write.
	Write []string

	temp []string // instead of tempPlaces, for tests
}

// SandboxState says whether commands are confined.
type SandboxState struct {
	ABI    int    // the version of the kernel's interface, 0 if there is no sandbox
	Off    bool   // it was turned off
	Reason string // why there is none, if nobody turned it off
}

// State says whether the commands of this machine can be confined.
func (s *Sandbox) State() SandboxState {
	if s == nil {
		return SandboxState{Off: true}
	}
	abi, err := landlockABI()
	if err != nil {
		return SandboxState{Reason: err.Error()}
	}
	return SandboxState{ABI: abi}
}

// Active reports whether commands are confined.
func (s SandboxState) Active() bool { return s.ABI > 0 }

// Whole reports whether nothing that writes is left out.
func (s SandboxState) Whole() bool { return s.ABI >= truncateABI }

func (s SandboxState) String() string {
	switch {
	case s.Off:
		return "off"
	case s.ABI == 0:
		return s.Reason
	case !s.Whole():
		// Before, nothing but opening a file for writing is refused.
		return fmt.Sprintf("Landlock %d, which cannot keep commands from emptying files elsewhere", s.ABI)
	}
	return fmt.Sprintf("Landlock %d", s.ABI)
}

// The versions of Landlock in which something came that is used here.
const (
	referABI    = 2 // files may move between folders
	truncateABI = 3 // files cannot be emptied
)

// Wrapper gives a function for [Workspace.Wrap] that confines commands while
// confined says so, which is asked for each command. Without a kernel that can,
// it leaves commands as they are.
func (s *Sandbox) Wrapper(w *Workspace, confined func() bool) func(argv []string) []string {
	if !s.State().Active() {
		return func(argv []string) []string { return argv }
	}
	// What may be written is settled before the first command could change where
	// a path leads.
	start := sync.OnceValue(func() []string {
		self := s.Self
		if w.Terminal != nil {
			self = s.Path
		}
		args := []string{self, SandboxCommand}
		for _, p := range s.writable(w) {
			args = append(args, "--write", p)
		}
		return append(args, "--")
	})
	return func(argv []string) []string {
		if !confined() {
			return argv
		}
		return append(slices.Clone(start()), argv...)
	}
}

// sandboxArguments reads what follows sandbox-exec.
func sandboxArguments(args []string) (write, argv []string, err error) {
	for len(args) > 1 && args[0] == "--write" {
		write, args = append(write, args[1]), args[2:]
	}
	if len(args) < 2 || args[0] != "--" {
		return nil, nil, errors.New("usage: sandbox-exec --write PATH -- COMMAND")
	}
	return write, args[1:], nil
}

// refusals are what programs print when the kernel refuses them something.
var refusals = []string{"ermission denied", "peration not permitted", "EACCES", "nvalid cross-device link"}

// maxRefusals is how many lines of a command's output are looked at for paths.
const maxRefusals = 100

// sandboxNote explains to a model what may have stopped a command in dir that may
// write in the given places. Most refusals have nothing to do with the sandbox: those
// that name a path count only where it is what forbids writing there.
func sandboxNote(output, dir string, writable []string) string {
	const places = "commands can write only in the work tree, temporary and cache folders"
	unnamed := false
	n := 0
	for line := range strings.Lines(output) {
		if !slices.ContainsFunc(refusals, func(s string) bool { return strings.Contains(line, s) }) {
			continue
		}
		if n++; n > maxRefusals {
			break
		}
		paths := pathsIn(line, dir)
		unnamed = unnamed || len(paths) == 0
		for _, p := range paths {
			if !slices.ContainsFunc(writable, func(w string) bool { _, in := below(w, p); return in }) && otherwiseWritable(p) {
				return "; " + places
			}
		}
	}
	if unnamed {
		return "; if it was writing that was refused: " + places
	}
	return ""
}

// pathsIn finds what in a message of a program may be paths: words with a slash, and
// words in quotes.
func pathsIn(line, dir string) []string {
	var paths []string
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n'\"`\u2018\u2019", r) }) {
		if word = strings.TrimRight(word, ":,.;)"); !strings.Contains(word, "/") {
			continue
		}
		if !filepath.IsAbs(word) {
			word = filepath.Join(dir, word)
		}
		if real, err := resolve(filepath.Clean(word)); err == nil {
			paths = append(paths, real)
		}
	}
	return paths
}

// devices are what every command may write besides folders.
var devices = []string{"/dev/null", "/dev/zero", "/dev/tty", "/dev/shm"}

// homeCaches are the folders below a home in which tools keep what they have
// downloaded or built, and that are not in the cache folder of the system.
var homeCaches = []string{
	".npm", ".cargo/registry", ".cargo/git", ".cargo/.package-cache", ".gradle/caches", ".m2/repository", ".nuget/packages",
}

// writable lists what commands may write: links resolved, nothing twice. A path
// that goes through a link which a command could have put there is left out.
func (s *Sandbox) writable(w *Workspace) []string {
	roots, temp := w.roots(), s.temp
	if temp == nil {
		temp = tempPlaces(w.Environ)
	}
	written := slices.Clone(roots)
	for _, p := range temp {
		if real, err := resolve(filepath.Clean(p)); err == nil && filepath.IsAbs(p) {
			written = append(written, real)
		}
	}
	caches := cachePlaces(w.Environ, written)
	var places []followed
	for _, p := range slices.Concat(devices, temp, caches, s.Write) {
		if !filepath.IsAbs(p) {
			continue
		}
		if f, err := follow(filepath.Clean(p)); err == nil {
			f.make = slices.Contains(caches, p)
			places = append(places, f)
		}
	}
	all := slices.Clone(roots)
	for _, p := range places {
		all = append(all, p.real)
	}
	list := roots
	for _, p := range places {
		if p.planted(all) {
			continue
		}
		if p.make {
			_ = os.MkdirAll(p.real, 0o700) // else it stays as it is: not there
		}
		list = append(list, p.real)
	}
	return outermost(list)
}

// outermost leaves out what is in another folder of the list.
func outermost(list []string) []string {
	slices.Sort(list)
	list = slices.Compact(list)
	return slices.DeleteFunc(slices.Clone(list), func(p string) bool {
		return slices.ContainsFunc(list, func(dir string) bool {
			_, in := below(dir, p)
			return in && dir != p
		})
	})
}

// tempPlaces are the folders for temporary files.
func tempPlaces(environ []string) []string {
	list := []string{"/tmp", "/var/tmp"}
	if dir := variable(environ, "TMPDIR"); dir != "" {
		list = append(list, dir)
	}
	return list
}

// cachePlaces are the folders for caches that are made when they are not there,
// since a command could not, and those of tools that may be there. Nothing in the
// given folders, which commands write, has a say in it.
func cachePlaces(environ, written []string) []string {
	home := variable(environ, "HOME")
	var list []string
	switch cache := variable(environ, "XDG_CACHE_HOME"); {
	case filepath.IsAbs(cache):
		list = append(list, cache)
	case filepath.IsAbs(home):
		list = append(list, filepath.Join(home, ".cache"))
	}
	if lookPath(environ, "go", written...) != "" {
		list = append(list, goCaches(environ, home, written)...)
	}
	if filepath.IsAbs(home) {
		for _, p := range homeCaches {
			if p = filepath.Join(home, p); exists(p) {
				list = append(list, p)
			}
		}
	}
	return list
}

// goCaches are the build cache, the module cache, and the checksums that go keeps
// beside it.
func goCaches(environ []string, home string, written []string) []string {
	saved := goEnviron(environ, home, written)
	value := func(name string) string {
		if v := variable(environ, name); v != "" {
			return v
		}
		return variable(saved, name)
	}
	gopath, _, _ := strings.Cut(value("GOPATH"), string(filepath.ListSeparator))
	if gopath == "" && filepath.IsAbs(home) {
		gopath = filepath.Join(home, "go")
	}
	list := []string{value("GOCACHE"), value("GOMODCACHE")}
	if list[1] == "" && filepath.IsAbs(gopath) {
		list[1] = filepath.Join(gopath, "pkg", "mod")
	}
	if filepath.IsAbs(gopath) {
		list = append(list, filepath.Join(gopath, "pkg", "sumdb"))
	}
	return slices.DeleteFunc(list, func(p string) bool { return !filepath.IsAbs(p) })
}

// maxGoEnviron bounds the file of go env -w.
const maxGoEnviron = 64 << 10

// goEnviron is what go env -w has saved. A file counts only where an absolute path
// names it ("off" in GOENV turns it off), and where no command can have written it:
// a repository must not say where commands may write.
func goEnviron(environ []string, home string, written []string) []string {
	file := variable(environ, "GOENV")
	if file == "" {
		dir := variable(environ, "XDG_CONFIG_HOME")
		if dir == "" {
			dir = filepath.Join(home, ".config")
		}
		file = filepath.Join(dir, "go", "env")
	}
	if !filepath.IsAbs(file) {
		return nil
	}
	f, err := follow(filepath.Clean(file))
	if err != nil || f.planted(written) || slices.ContainsFunc(written, func(dir string) bool { _, in := below(dir, f.real); return in }) {
		return nil
	}
	info, err := os.Stat(f.real)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxGoEnviron {
		return nil
	}
	data, _ := os.ReadFile(f.real)
	return strings.Split(string(data), "\n")
}

// variable is a variable of an environment, "" if it is not set.
func variable(environ []string, name string) string {
	value := ""
	for _, e := range environ {
		if n, v, _ := strings.Cut(e, "="); envNameEqual(n, name) {
			value = v // the last one counts
		}
	}
	return value
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// followed is a path and the links on the way to where it leads.
type followed struct {
	real  string
	links []string
	make  bool // make the folder if it is not there
}

// planted reports whether a link on the way is in a folder of the list.
func (f *followed) planted(writable []string) bool {
	return slices.ContainsFunc(f.links, func(link string) bool {
		return slices.ContainsFunc(writable, func(dir string) bool {
			_, in := below(dir, filepath.Dir(link))
			return in
		})
	})
}

// follow resolves a clean absolute path and remembers the links.
func follow(path string) (f followed, err error) {
	f.real, f.links, err = resolveLinks(path)
	return f, err
}
