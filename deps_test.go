// Package drover_test holds the rules of the tree as tests: who may import
// whom, what a pure package must not touch, who owns which dependency, and how
// big things may get. docs/architecture.md explains them.
package drover_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/drover-dev/drover/"

// imports says which packages of the module each package may import. Every
// package but jsonrpc2 may import llm besides.
var imports = map[string][]string{
	"internal/llm":      nil,
	"internal/openai":   nil,
	"internal/probe":    {"internal/openai"},
	"internal/engine":   {"internal/openai", "internal/probe"},
	"internal/catalog":  nil,
	"internal/target":   {"internal/catalog"},
	"internal/picker":   {"internal/catalog"},
	"internal/history":  nil,
	"internal/budget":   {"internal/history"},
	"internal/tool":     nil,
	"internal/memory":   {"internal/tool"},
	"internal/session":  {"internal/budget"},
	"internal/agent":    {"internal/target", "internal/history", "internal/budget", "internal/tool", "internal/memory", "internal/session"},
	"internal/brief":    {"internal/budget", "internal/tool", "internal/memory"},
	"internal/jsonrpc2": nil,
	"internal/practice": nil,
	"internal/acp": {
		"internal/agent", "internal/session", "internal/target", "internal/catalog", "internal/picker",
		"internal/budget", "internal/tool", "internal/memory", "internal/brief", "internal/jsonrpc2",
	},
	"internal/tui": {
		"internal/agent", "internal/session", "internal/target", "internal/catalog", "internal/picker",
		"internal/budget", "internal/tool", "internal/memory", "internal/brief",
	},
	"internal/hosted": {"internal/engine"},
	"internal/mcp":    {"internal/tool"},
	"internal/config": nil,
	"cmd/drover":      {"*"},

	// Test support stands beside its subject and may use it.
	"internal/llm/llmtest":       nil,
	"internal/engine/enginetest": {"internal/engine"},
	"internal/engine/livetest":   nil,
	"internal/agent/agenttest":   {"internal/budget", "internal/openai", "internal/session"},
	"internal/acp/acptest":       {"internal/acp", "internal/jsonrpc2"},
	"scripts/release":            nil,
	"scripts/tinymodel":          nil,
}

// withoutLLM lists the packages that do not even import llm.
var withoutLLM = []string{"internal/jsonrpc2"}

// owners says who may import a dependency outside the module; tests may import
// any of them.
var owners = map[string][]string{
	"github.com/spf13/cobra":                                {"cmd/drover"},
	"github.com/spf13/pflag":                                {"cmd/drover"},
	"golang.org/x/term":                                     {"cmd/drover"},
	"github.com/pelletier/go-toml/v2":                       {"internal/config"},
	"github.com/pelletier/go-toml/v2/unstable":              {"internal/config"},
	"github.com/adrg/xdg":                                   {"internal/config"},
	"github.com/zalando/go-keyring":                         {"internal/config"},
	"mvdan.cc/sh/v3/syntax":                                 {"internal/tool"},
	"github.com/go-git/go-git/v5/plumbing/format/gitignore": {"internal/tool"},
	"github.com/bmatcuk/doublestar/v4":                      {"internal/tool"},
	"github.com/aymanbagabas/go-udiff":                      {"internal/tool"},
	"github.com/landlock-lsm/go-landlock/landlock/syscall":  {"internal/tool"},
	"github.com/gofrs/flock":                                {"internal/session"},
	"charm.land/catwalk/pkg/catwalk":                        {"internal/hosted"},
	"charm.land/catwalk/pkg/embedded":                       {"internal/hosted"},
	"github.com/rivo/uniseg":                                {"internal/budget", "internal/tui"},
	"charm.land/bubbletea/v2":                               {"internal/tui"},
	"github.com/yuin/goldmark/ast":                          {"internal/tui"},
	"github.com/yuin/goldmark/parser":                       {"internal/tui"},
	"github.com/yuin/goldmark/text":                         {"internal/tui"},
	"github.com/yuin/goldmark/util":                         {"internal/tui"},
	"github.com/modelcontextprotocol/go-sdk/mcp":            {"internal/mcp"},
	"github.com/modelcontextprotocol/go-sdk/jsonrpc":        {"internal/mcp"},
	"golang.org/x/image/draw":                               {"internal/llm"},
	"golang.org/x/image/webp":                               {"internal/llm"},
	"golang.org/x/sys/unix":                                 {"cmd/drover", "internal/tool"},
}

// pure lists the packages that decide: same input, same output.
var pure = []string{
	"internal/llm", "internal/openai", "internal/probe", "internal/history", "internal/budget", "internal/picker",
}

// impure lists what a pure package must not import. Of package time it may use
// durations; see impureTime.
var impure = []string{
	"os", "net", "log", "math/rand", "crypto/rand", "syscall", "runtime", "io/ioutil", "path/filepath", "testing",
}

var pureTime = []string{"Duration", "Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour"}

// Guard rails: think again when one is passed.
const (
	maxFileLines     = 600
	maxFunctionLines = 80
	maxImportDepth   = 7
)

type source struct {
	pkg  string // folder, slash-separated
	name string
	test bool
	file *ast.File
}

// sources parses every Go file of the tree.
func sources(t *testing.T) (*token.FileSet, []source) {
	t.Helper()
	fset := token.NewFileSet()
	var all []source
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(p) != ".go" {
			return nil
		}
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		p = filepath.ToSlash(p)
		all = append(all, source{pkg: path.Dir(p), name: p, test: strings.HasSuffix(p, "_test.go"), file: f})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("only %d Go files found: is the test run in the root of the tree?", len(all))
	}
	return fset, all
}

func importsOf(f *ast.File) []string {
	var list []string
	for _, i := range f.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		list = append(list, p)
	}
	return list
}

func TestImportPolicy(t *testing.T) {
	_, all := sources(t)
	for _, src := range all {
		if src.pkg == "." {
			continue
		}
		allowed, known := imports[src.pkg]
		if !known {
			t.Errorf("%s: package %s is not in the table of this test", src.name, src.pkg)
			continue
		}
		for _, p := range importsOf(src.file) {
			in, ours := strings.CutPrefix(p, module)
			switch {
			case src.test:
			case ours && in == "internal/llm":
				if slices.Contains(withoutLLM, src.pkg) {
					t.Errorf("%s: %s must not import %s", src.name, src.pkg, in)
				}
			case ours:
				if !slices.Contains(allowed, in) && !slices.Contains(allowed, "*") {
					t.Errorf("%s: %s must not import %s", src.name, src.pkg, in)
				}
			case strings.Contains(strings.SplitN(p, "/", 2)[0], "."):
				if !slices.Contains(owners[p], src.pkg) {
					t.Errorf("%s: %s is not the owner of %s", src.name, src.pkg, p)
				}
			}
		}
	}
}

func TestEveryPackageOfTheTableExists(t *testing.T) {
	_, all := sources(t)
	for pkg := range imports {
		if !slices.ContainsFunc(all, func(s source) bool { return s.pkg == pkg }) {
			t.Errorf("the table names %s, which has no Go file", pkg)
		}
	}
}

func TestPurePackages(t *testing.T) {
	fset, all := sources(t)
	for _, src := range all {
		if src.test || !slices.Contains(pure, src.pkg) {
			continue
		}
		for _, p := range importsOf(src.file) {
			for _, bad := range impure {
				if p == bad || strings.HasPrefix(p, bad+"/") {
					t.Errorf("%s: a pure package imports %s", src.name, p)
				}
			}
		}
		ast.Inspect(src.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && x.Obj == nil && !slices.Contains(pureTime, sel.Sel.Name) {
				t.Errorf("%s: a pure package uses time.%s", fset.Position(sel.Pos()), sel.Sel.Name)
			}
			return true
		})
	}
}

func TestEnvironmentIsReadOnce(t *testing.T) {
	fset, all := sources(t)
	readers := []string{"Getenv", "LookupEnv", "Environ", "ExpandEnv", "UserHomeDir", "UserConfigDir", "UserCacheDir"}
	for _, src := range all {
		if src.test || src.pkg == "internal/config" || strings.HasPrefix(src.pkg, "scripts/") || strings.HasSuffix(src.pkg, "test") {
			continue
		}
		ast.Inspect(src.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "os" && slices.Contains(readers, sel.Sel.Name) {
				t.Errorf("%s: only package config reads the environment", fset.Position(sel.Pos()))
			}
			return true
		})
	}
}

func TestNoInit(t *testing.T) {
	fset, all := sources(t)
	for _, src := range all {
		for _, d := range src.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: no init functions; wiring belongs to cmd/drover", fset.Position(f.Pos()))
			}
		}
	}
}

func TestSizes(t *testing.T) {
	fset, all := sources(t)
	for _, src := range all {
		if n := fset.File(src.file.Pos()).LineCount(); n > maxFileLines && !src.test {
			t.Errorf("%s: %d lines, more than %d: think again", src.name, n, maxFileLines)
		}
		if src.test {
			continue
		}
		for _, d := range src.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := fset.Position(f.End()).Line - fset.Position(f.Pos()).Line + 1; n > maxFunctionLines {
				t.Errorf("%s: %s has %d lines, more than %d: think again", src.name, f.Name.Name, n, maxFunctionLines)
			}
		}
	}
}

func TestImportDepth(t *testing.T) {
	_, all := sources(t)
	graph := make(map[string][]string)
	for _, src := range all {
		if src.test {
			continue
		}
		for _, p := range importsOf(src.file) {
			if in, ours := strings.CutPrefix(p, module); ours {
				graph[src.pkg] = append(graph[src.pkg], in)
			}
		}
	}
	var depth func(pkg string) int
	depth = func(pkg string) int {
		d := 0
		for _, in := range graph[pkg] {
			d = max(d, depth(in))
		}
		return d + 1
	}
	if d := depth("cmd/drover"); d > maxImportDepth {
		t.Errorf("cmd/drover is %d packages deep, more than %d", d, maxImportDepth)
	}
}

// TestDirectDependencies keeps go.mod and the table of owners alike.
func TestDirectDependencies(t *testing.T) {
	data, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	testOnly := []string{"github.com/rogpeppe/go-internal", "golang.org/x/tools", "pgregory.net/rapid"}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || !strings.Contains(fields[0], ".") || strings.Contains(line, "// indirect") || fields[0] == "module" {
			continue
		}
		owned := slices.Contains(testOnly, fields[0])
		for dep := range owners {
			owned = owned || dep == fields[0] || strings.HasPrefix(dep, fields[0]+"/")
		}
		if !owned {
			t.Errorf("go.mod requires %s, which the table of owners does not have", fields[0])
		}
	}
}
