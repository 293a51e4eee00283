package tool

import (
	"fmt"
	"strings"
	"testing"
)

// TestGateTable holds what every mode does with every access before anybody was
// asked.
func TestGateTable(t *testing.T) {
	const table = `
	access         ask    edit   read-only  full
	none           allow  allow  allow      allow
	read           allow  allow  allow      allow
	read-outside   ask    ask    ask        allow
	write          ask    allow  deny       allow
	execute        ask    ask    deny       allow
	external       ask    ask    deny       allow
	external-read  ask    ask    ask        allow
	unheard-of     ask    ask    deny       allow`
	accesses := map[string]Action{
		"none": {Access: AccessNone}, "read": {Access: AccessRead}, "read-outside": {Access: AccessReadOutside},
		"write": {Access: AccessWrite}, "execute": {Access: AccessExecute}, "external": {Access: AccessExternal},
		"external-read": {Access: AccessExternal, ReadOnly: true}, "unheard-of": {Access: 200},
	}
	verdicts := map[string]Verdict{"allow": Allow, "ask": Ask, "deny": Deny}
	rows := strings.Split(strings.TrimSpace(table), "\n")
	modes := strings.Fields(rows[0])[1:]
	if len(modes) != len(Modes()) {
		t.Fatalf("modes: %v", modes)
	}
	for _, row := range rows[1:] {
		cells := strings.Fields(row)
		action, ok := accesses[cells[0]]
		if !ok {
			t.Fatalf("no access %s", cells[0])
		}
		for i, name := range modes {
			mode, err := ParseMode(name)
			if err != nil {
				t.Fatal(err)
			}
			checkAnswers(t, mode, cells[0], action, verdicts[cells[i+1]])
		}
	}
}

// checkAnswers checks the verdict before and after every answer.
func checkAnswers(t *testing.T, mode Mode, access string, action Action, want Verdict) {
	action.Scopes = []string{"one", "two"}
	q := &Question{Tool: "x", Action: &action}
	for _, d := range []Decision{RejectOnce, RejectAlways, AllowOnce, AllowAlways, Cancelled} {
		name := fmt.Sprintf("%s in %s, %s", access, mode, d)
		g := NewGate(mode)
		if v, reason := g.Check(q); v != want || (v == Deny) != (reason != "") {
			t.Errorf("%s: before: %v %q, want %v", name, v, reason, want)
		}
		g.Remember(q, d)
		after := want
		switch {
		case d == RejectAlways:
			after = Deny
		case d == AllowAlways && want == Ask:
			after = Allow
		}
		if v, _ := g.Check(q); v != after {
			t.Errorf("%s: after: %v, want %v", name, v, after)
		}
		// An answer is for this tool, and for all of the scopes together.
		if v, _ := g.Check(&Question{Tool: "y", Action: &action}); v != want {
			t.Errorf("%s: another tool: %v, want %v", name, v, want)
		}
		more := action
		more.Scopes = []string{"one", "three"}
		moreWant := want
		if d == RejectAlways {
			moreWant = Deny
		}
		if v, _ := g.Check(&Question{Tool: "x", Action: &more}); v != moreWant {
			t.Errorf("%s: another scope too: %v, want %v", name, v, moreWant)
		}
		none := action
		none.Scopes = nil
		if v, _ := g.Check(&Question{Tool: "x", Action: &none}); v != want {
			t.Errorf("%s: no scope: %v, want %v", name, v, want)
		}
	}
}

func TestGateModeChange(t *testing.T) {
	g := NewGate(ModeAsk)
	q := &Question{Tool: "shell", Action: &Action{Access: AccessExecute, Scopes: []string{"ls"}}}
	g.Remember(q, AllowAlways)
	g.SetMode(ModeReadOnly)
	if v, reason := g.Check(q); v != Deny || !strings.Contains(reason, "read-only") {
		t.Errorf("an old answer gets around the mode: %v %q", v, reason)
	}
	g.SetMode(ModeAsk)
	if v, _ := g.Check(q); v != Allow || g.Mode() != ModeAsk {
		t.Errorf("the answer is gone: %v", v)
	}
}

// TestGateWithTools checks the accesses that the built-in tools really ask for.
func TestGateWithTools(t *testing.T) {
	base := resolvedTempDir(t)
	w := &Workspace{Dir: base + "/work", SpillDir: base + "/spill", Environ: testEnviron()}
	writeFile(t, w.Dir+"/a.txt", "a\n")
	writeFile(t, base+"/spill/full.txt", "x\n")
	for _, c := range []struct {
		tool      Tool
		arguments m
		access    Access
		scopes    string
	}{
		{Read(w), m{"path": "a.txt"}, AccessRead, "reads"},
		{Read(w), m{"path": "../b.txt"}, AccessReadOutside, "reads in " + base},
		{Read(w), m{"path": base + "/spill/full.txt"}, AccessRead, "reads"},
		{Grep(w), m{"pattern": "x"}, AccessRead, "reads"},
		{Grep(w), m{"pattern": "x", "path": "/"}, AccessReadOutside, "reads in /"},
		{Glob(w), m{"pattern": "../**/*.go"}, AccessReadOutside, "reads in " + base},
		{Glob(w), m{"pattern": base + "/*"}, AccessReadOutside, "reads in " + base},
		{Write(w), m{"path": "b.txt", "content": ""}, AccessWrite, "edits"},
		{Edit(w), m{"path": "a.txt", "old": "a", "new": "b"}, AccessWrite, "edits"},
		{Write(w), m{"path": ".git/hooks/pre-commit", "content": ""}, AccessExecute, ""},
		{Edit(w), m{"path": "sub/.GIT/config", "old": "", "new": "b"}, AccessExecute, ""},
		{Shell(w), m{"command": "git status && ls"}, AccessExecute, "git status,ls"},
		{Shell(w), m{"command": "ls > x"}, AccessExecute, ""},
	} {
		a, err := Prepare(t.Context(), c.tool, mustJSON(t, c.arguments))
		if err != nil {
			t.Errorf("%v: %v", c.arguments, err)
			continue
		}
		if got := strings.Join(a.Scopes, ","); a.Access != c.access || got != c.scopes {
			t.Errorf("%v: access %d scopes %q, want %d %q", c.arguments, a.Access, got, c.access, c.scopes)
		}
		if (a.Diff != nil) != (a.Kind == KindEdit) || a.Title == "" || a.ReadOnly != (a.Kind == KindRead || a.Kind == KindSearch) {
			t.Errorf("%v: %+v", c.arguments, a)
		}
	}
}
