package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/memory"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/tool"
)

// headers are the request headers of a log.
func (f *fixture) headers() []*session.RequestHeader {
	f.t.Helper()
	var found []*session.RequestHeader
	for rec, err := range f.log.Records() {
		if err != nil {
			f.t.Fatal(err)
		}
		if h, ok := rec.(*session.RequestHeader); ok {
			found = append(found, h)
		}
	}
	return found
}

func TestNotesAreShownFromTheNextTurnOn(t *testing.T) {
	for _, version := range []int{1, 2} {
		policy, _ := budget.PolicyByVersion(version)
		p := &llmtest.Provider{Facts: window(32768), Script: []llmtest.Answer{
			llmtest.Call(llm.ToolCall{ID: "1", Name: "remember", Arguments: `{"title":"Build","text":"make build"}`}),
			llmtest.Say("noted"), llmtest.Say("again"),
			llmtest.Call(llm.ToolCall{ID: "2", Name: "forget", Arguments: `{"title":"Build"}`}),
			llmtest.Say("gone"), llmtest.Say("end"),
		}}
		a := &answers{decision: tool.AllowOnce}
		f := newFixture(t, p, a, agent.Options{Memory: memory.Open(t.TempDir()), Policy: policy})
		var reports []budget.Report
		for i := range 4 {
			events := f.turn(t.Context(), fmt.Sprint("turn ", i))
			if end := endOf(events); end.Reason != agent.EndCompleted {
				t.Fatalf("%+v", end)
			}
			for _, e := range find[agent.Planned](events) {
				reports = append(reports, e.Report)
			}
		}
		line := "\n" + `{"title":"Build","note":"make build"}`
		for i, want := range []bool{false, false, true, true, true, false} {
			system := p.Requests()[i].System
			if got := strings.HasSuffix(system, line); got != want {
				t.Errorf("policy %d: request %d: shown %v, want %v:\n%s", version, i, got, want, system)
			}
			if cost := reports[i].BreakdownAfter.Memory; (cost > 0) != want {
				t.Errorf("policy %d: request %d: memory costs %d", version, i, cost)
			}
		}
		var inHeader []bool
		for _, h := range f.headers() {
			inHeader = append(inHeader, strings.HasSuffix(h.Memory, line) && strings.HasSuffix(h.System, h.Memory))
			if system, notes := h.SystemParts(); notes == "" && system != h.System || notes != "" && system+"\n\n"+notes != h.System {
				t.Errorf("parts %q %q of %q", system, notes, h.System)
			}
		}
		if !slices.Equal(inHeader, []bool{false, true, false}) {
			t.Errorf("notes in the headers: %v", inHeader)
		}
		if want := []string{"remember .drover/memory/build.md", "forget .drover/memory/build.md"}; !slices.Equal(a.asked, want) {
			t.Errorf("asked %q", a.asked)
		}
		f.check()
	}
}

func TestARefusedNoteIsNotKept(t *testing.T) {
	for _, mode := range []tool.Mode{tool.ModeAsk, tool.ModeReadOnly} {
		p := &llmtest.Provider{Facts: window(32768), Script: []llmtest.Answer{
			llmtest.Call(llm.ToolCall{ID: "1", Name: "remember", Arguments: `{"title":"a","text":"b"}`},
				llm.ToolCall{ID: "2", Name: "remember", Arguments: `{"title":"a","text":"b","global":true}`}),
			llmtest.Say("ok"),
		}}
		f := newFixture(t, p, &answers{decision: tool.RejectOnce}, agent.Options{Memory: memory.Open(t.TempDir()), Gate: tool.NewGate(mode)})
		for _, c := range find[agent.CallFinished](f.turn(t.Context(), "go")) {
			if c.Result.Status != tool.StatusDenied {
				t.Errorf("mode %s: %+v", mode, c.Result)
			}
		}
		if notes, _ := f.agent.Memory().List(); len(notes) != 0 {
			t.Errorf("mode %s: kept %+v", mode, notes)
		}
		f.check()
	}
}

// What does not fit the digest is named in the report, and is no trim.
func TestNotesThatDoNotFitAreReported(t *testing.T) {
	folder := t.TempDir()
	for i := range 60 {
		summary := strings.Repeat("much to say ", 20)
		if i == 59 {
			summary = "short"
		}
		content := fmt.Sprintf("---\ntitle: note %02d\nsummary: %s\n---\n", i, summary)
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%02d.md", i)), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	global := memory.Open(folder)
	for _, tokens := range []int{4096, 8192, 32768} {
		p := &llmtest.Provider{Facts: window(tokens), Script: []llmtest.Answer{llmtest.Say("ok"), llmtest.Say("ok")}}
		f := newFixture(t, p, nil, agent.Options{Memory: global})
		preview, err := f.agent.Preview(t.Context(), []llm.Part{llm.Text("go")})
		if err != nil {
			t.Fatal(err)
		}
		r := find[agent.Planned](f.turn(t.Context(), "go"))[0].Report
		shown := strings.Count(p.Requests()[0].System, `{"title":"note `)
		limit := memory.DigestLimit(tokens)
		if shown == 0 || shown+len(r.OmittedNotes) != 60 || r.BreakdownAfter.Memory > limit+8 || r.Trimmed() {
			t.Errorf("window %d: %d shown, %d left out, memory %d of %d, trimmed %v", tokens, shown, len(r.OmittedNotes), r.BreakdownAfter.Memory, limit, r.Trimmed())
		}
		const roomForShort = 40 // tokens
		if limit-r.BreakdownAfter.Memory >= roomForShort && !strings.HasSuffix(p.Requests()[0].System, `{"title":"note 59","note":"short"}`) {
			t.Errorf("window %d: the short note behind the long ones is not shown", tokens)
		}
		if !slices.Equal(preview.Report.OmittedNotes, r.OmittedNotes) || preview.Report.BreakdownAfter.Memory != r.BreakdownAfter.Memory {
			t.Errorf("window %d: the preview is another", tokens)
		}
		f.check()
	}
}

func TestADamagedNoteIsTold(t *testing.T) {
	global := t.TempDir()
	if err := os.WriteFile(filepath.Join(global, "bad.md"), []byte("# no front matter"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &llmtest.Provider{Facts: window(32768), Script: []llmtest.Answer{llmtest.Say("ok"), llmtest.Say("ok")}}
	f := newFixture(t, p, nil, agent.Options{Memory: memory.Open(global)})
	for i, want := range []int{1, 0} {
		told := 0
		for _, n := range find[agent.Notice](f.turn(t.Context(), "go")) {
			if strings.Contains(n.Text, "bad.md: it does not begin with front matter") {
				told++
			}
		}
		if told != want {
			t.Errorf("turn %d: told %d times, want %d", i, told, want)
		}
	}
	f.check()
}

func TestWithoutMemoryThereAreNoNotes(t *testing.T) {
	p := &llmtest.Provider{Facts: window(32768), Script: []llmtest.Answer{
		llmtest.Call(llm.ToolCall{ID: "1", Name: "todo", Arguments: `{"items":["[x] a","[ ] b"]}`}), llmtest.Say("ok"),
	}}
	f := newFixture(t, p, nil, agent.Options{})
	events := f.turn(t.Context(), "go")
	if got := find[agent.CallFinished](events)[0].Result; got.Status != tool.StatusOK || got.Text != "Plan shown: 1 of 2 steps done." {
		t.Errorf("%+v", got)
	}
	for _, d := range p.Requests()[0].Tools {
		if d.Name == "remember" || d.Name == "forget" {
			t.Errorf("offered %s", d.Name)
		}
	}
	if f.agent.Memory() != nil || f.headers()[0].Memory != "" {
		t.Error("there are notes")
	}
	f.check()
}
