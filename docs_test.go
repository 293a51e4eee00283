package drover_test

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestEveryPackageHasAComment(t *testing.T) {
	_, all := sources(t)
	commented := make(map[string]bool)
	for _, src := range all {
		if !src.test && src.file.Doc != nil && len(src.file.Doc.Text()) > 40 {
			commented[src.pkg] = true
		}
	}
	for _, src := range all {
		if !src.test && !commented[src.pkg] {
			t.Errorf("package %s has no comment", src.pkg)
			commented[src.pkg] = true
		}
	}
}

// TestDocLinksResolve checks every [Name] and [pkg.Name] of the doc comments.
func TestDocLinksResolve(t *testing.T) {
	fset, all := sources(t)
	files := make(map[string][]*ast.File)
	for _, src := range all {
		if !src.test {
			files[src.pkg] = append(files[src.pkg], src.file)
		}
	}
	packages := make(map[string]*doc.Package)
	for dir, list := range files {
		p, err := doc.NewFromFiles(fset, list, module+dir, doc.AllDecls|doc.PreserveAST)
		if err != nil {
			t.Fatal(err)
		}
		packages[dir] = p
	}
	for dir, p := range packages {
		symbols := symbolsOf(p)
		for _, text := range commentsOf(p) {
			parsed := p.Parser().Parse(text)
			for _, link := range docLinks(parsed) {
				if link.ImportPath == "" {
					if !symbols[linkName(link)] {
						t.Errorf("package %s: [%s] names nothing in the package", dir, linkName(link))
					}
					continue
				}
				in, ours := strings.CutPrefix(link.ImportPath, module)
				if other := packages[in]; ours && link.Name != "" && (other == nil || !symbolsOf(other)[linkName(link)]) {
					t.Errorf("package %s: [%s.%s] names nothing", dir, in, linkName(link))
				}
			}
		}
	}
}

func linkName(l *comment.DocLink) string {
	if l.Recv != "" {
		return strings.TrimPrefix(l.Recv, "*") + "." + l.Name
	}
	return l.Name
}

func docLinks(d *comment.Doc) []*comment.DocLink {
	var links []*comment.DocLink
	texts := func(list []comment.Text) {
		for _, x := range list {
			if l, ok := x.(*comment.DocLink); ok {
				links = append(links, l)
			}
		}
	}
	for _, block := range d.Content {
		switch b := block.(type) {
		case *comment.Paragraph:
			texts(b.Text)
		case *comment.List:
			for _, item := range b.Items {
				for _, inner := range item.Content {
					if p, ok := inner.(*comment.Paragraph); ok {
						texts(p.Text)
					}
				}
			}
		}
	}
	return links
}

func commentsOf(p *doc.Package) []string {
	list := []string{p.Doc}
	values := func(vs []*doc.Value) {
		for _, v := range vs {
			list = append(list, v.Doc)
		}
	}
	funcs := func(fs []*doc.Func) {
		for _, f := range fs {
			list = append(list, f.Doc)
		}
	}
	values(p.Consts)
	values(p.Vars)
	funcs(p.Funcs)
	for _, typ := range p.Types {
		list = append(list, typ.Doc)
		values(typ.Consts)
		values(typ.Vars)
		funcs(typ.Funcs)
		funcs(typ.Methods)
	}
	return list
}

func symbolsOf(p *doc.Package) map[string]bool {
	set := make(map[string]bool)
	values := func(vs []*doc.Value) {
		for _, v := range vs {
			for _, n := range v.Names {
				set[n] = true
			}
		}
	}
	values(p.Consts)
	values(p.Vars)
	for _, f := range p.Funcs {
		set[f.Name] = true
	}
	for _, typ := range p.Types {
		set[typ.Name] = true
		values(typ.Consts)
		values(typ.Vars)
		for _, f := range typ.Funcs {
			set[f.Name] = true
		}
		for _, m := range typ.Methods {
			set[typ.Name+"."+m.Name] = true
		}
		for _, spec := range typ.Decl.Specs {
			members(spec, typ.Name, set)
		}
	}
	return set
}

// members adds the fields of a struct and the methods of an interface.
func members(spec ast.Spec, name string, set map[string]bool) {
	ts, ok := spec.(*ast.TypeSpec)
	if !ok {
		return
	}
	var list *ast.FieldList
	switch typ := ts.Type.(type) {
	case *ast.StructType:
		list = typ.Fields
	case *ast.InterfaceType:
		list = typ.Methods
	default:
		return
	}
	for _, f := range list.List {
		for _, n := range f.Names {
			set[name+"."+n.Name] = true
		}
	}
}

// markdownLink finds links to files and to headings of the page itself.
var markdownLink = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)

func TestMarkdownLinksResolve(t *testing.T) {
	pages, anchors := make(map[string]string), make(map[string]map[string]bool)
	for _, file := range markdownFiles(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pages[file], anchors[file] = string(data), headings(string(data))
	}
	for file, page := range pages {
		for _, m := range markdownLink.FindAllStringSubmatch(page, -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			to := file
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(file), filepath.FromSlash(m[1]))
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: link to %s: %v", file, m[1], err)
			} else if m[2] != "" && !anchors[to][m[2]] {
				t.Errorf("%s: link to %s#%s: there is no such heading", file, m[1], m[2])
			}
		}
	}
}

var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

// headings are the anchors of a page's headings, as GitHub makes them.
func headings(page string) map[string]bool {
	anchors, code := make(map[string]bool), false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		}
		title := strings.TrimLeft(line, "#")
		if code || title == line || !strings.HasPrefix(title, " ") {
			continue
		}
		anchor := notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
		anchor = strings.ReplaceAll(anchor, " ", "-")
		name := anchor
		for n := 1; anchors[name]; n++ {
			name = fmt.Sprintf("%s-%d", anchor, n)
		}
		anchors[name] = true
	}
	return anchors
}

// errorCode finds the stable codes where they are declared, and where the page
// names them.
var (
	errorCode    = regexp.MustCompile(`Code\s+= "([A-Z_]+)"`)
	errorCodeRow = regexp.MustCompile("`([A-Z]+(?:_[A-Z]+)*)`")
)

// TestPageOfErrorCodes: docs/protocol.md has every code that an error can have,
// and no other.
func TestPageOfErrorCodes(t *testing.T) {
	var codes []string
	for _, file := range []string{"internal/llm/error.go", "internal/acp/errors.go"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := errorCode.FindAllStringSubmatch(string(data), -1)
		if len(found) < 3 {
			t.Fatalf("%s: found only %v", file, found)
		}
		for _, m := range found {
			codes = append(codes, m[1])
		}
	}
	page, err := os.ReadFile("docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for line := range strings.Lines(string(page)) {
		if cell, _, row := strings.Cut(line, " | "); row && strings.HasPrefix(cell, "| `") {
			for _, m := range errorCodeRow.FindAllStringSubmatch(cell, -1) {
				told = append(told, m[1])
			}
		}
	}
	for _, c := range codes {
		if !slices.Contains(told, c) {
			t.Errorf("docs/protocol.md does not have the code %s", c)
		}
	}
	for _, c := range told {
		if !slices.Contains(codes, c) {
			t.Errorf("docs/protocol.md has the code %s, which no error has", c)
		}
	}
}

func markdownFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !d.IsDir() && filepath.Ext(p) == ".md" {
			files = append(files, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// testName finds the tests that a page names, testPattern those that a command on it
// runs.
var (
	testName    = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9_]*)`")
	testPattern = regexp.MustCompile(`go test .*-(run|bench) (?:'([^']+)'|(\S+))`)
)

// TestPagesOfTests checks that the tests which a page names, or runs, exist.
func TestPagesOfTests(t *testing.T) {
	tests := testNames(t)
	for _, file := range markdownFiles(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		named := testName.FindAllStringSubmatch(string(data), -1)
		if len(named) == 0 && file == filepath.FromSlash("docs/tests.md") {
			t.Errorf("%s names no test", file)
		}
		for _, m := range named {
			if !slices.Contains(tests, m[1]) {
				t.Errorf("%s names %s, which does not exist", file, m[1])
			}
		}
		for _, m := range testPattern.FindAllStringSubmatch(string(data), -1) {
			kind := map[string]string{"run": "Test", "bench": "Benchmark"}[m[1]]
			for one := range strings.SplitSeq(m[2]+m[3], "|") {
				matches := func(test string) bool {
					found, err := regexp.MatchString(one, test)
					return strings.HasPrefix(test, kind) && found && err == nil
				}
				if one != "^NAME$" && !slices.ContainsFunc(tests, matches) {
					t.Errorf("%s runs %s, which matches no test: %s", file, one, m[0])
				}
			}
		}
	}
}

// TestDecisionRecords checks the form of docs/decisions/NNNN-title.md.
func TestDecisionRecords(t *testing.T) {
	sections := []string{"## Problem", "## Decision", "## Alternatives considered", "## Consequences", "## Tests"}
	records, err := filepath.Glob("docs/decisions/*.md")
	if err != nil || len(records) == 0 {
		t.Fatalf("no decision records: %v", err)
	}
	name := regexp.MustCompile(`^\d{4}-[a-z0-9-]+\.md$`)
	for i, record := range records {
		if !name.MatchString(filepath.Base(record)) {
			t.Errorf("%s: want NNNN-title.md", record)
		}
		if want := fmt.Sprintf("%04d-", i+1); !strings.HasPrefix(filepath.Base(record), want) {
			t.Errorf("%s: numbers go up by one from 0001; want %s", record, want)
		}
		data, err := os.ReadFile(record)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		at := 0
		for _, s := range sections {
			n := strings.Index(text[at:], "\n"+s+"\n")
			if n < 0 {
				t.Errorf("%s: section %q is missing or out of order", record, s)
				break
			}
			at += n + len(s)
		}
	}
}

func testNames(t *testing.T) []string {
	t.Helper()
	_, all := sources(t)
	var names []string
	for _, src := range all {
		if !src.test {
			continue
		}
		for _, d := range src.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && token.IsExported(f.Name.Name) {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}
