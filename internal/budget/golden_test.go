package budget

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/drover-dev/drover/internal/llm"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The golden files hold a conversation, a line a turn, and what becomes of it:
//
//	window 4096            settings come first: policy, window, output, effort,
//	policy 2               system, memory, tool NAME SCHEMA
//	user: text             a turn; "~900" at the end of a line stands for so many
//	call c1 read: {...}    bytes of prose
//	result c1: text
//	assistant: text
//	steer: text            a continuation
//	image 640x480 a.png    joins the user turn above
//
// The report and the messages are compared whole; the plan's guarantees are
// checked besides, so that a golden file cannot freeze an error.
func TestGoldenPlans(t *testing.T) {
	files, _ := filepath.Glob("testdata/plans/*.txtar")
	if len(files) == 0 {
		t.Fatal("no golden files")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p, in := readConversation(t, string(archive.Files[0].Data))
			report, messages := planned(t, p, in)
			want := &txtar.Archive{Comment: archive.Comment, Files: []txtar.File{
				archive.Files[0], {Name: "report.json", Data: report}, {Name: "messages", Data: messages},
			}}
			if *update {
				if err := os.WriteFile(file, txtar.Format(want), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got := txtar.Format(archive); !bytes.Equal(got, txtar.Format(want)) {
				t.Errorf("the plan is now:\n%s", txtar.Format(want))
			}
		})
	}
}

// planned gives the two golden sections and checks the plan behind them.
func planned(t *testing.T, p *Policy, in *Input) (report, messages []byte) {
	plan, err := Make(p, in)
	var overflow *OverflowError
	switch {
	case errors.As(err, &overflow):
		return indented(t, overflow.Report), []byte(overflow.Error() + "\n")
	case err != nil:
		t.Fatal(err)
	}
	checkPlan(t, p, in, plan)
	if task := in.Messages[plan.Shape.FirstTurn].Text(); len(plan.Report.Truncations) == 0 && !strings.HasPrefix(plan.Request.Messages[0].Text(), task) {
		t.Errorf("the first kept turn lost its text %q", task)
	}
	var b bytes.Buffer
	for _, m := range plan.Request.Messages {
		writeTurn(&b, &m)
	}
	return indented(t, plan.Report), b.Bytes()
}

func indented(t *testing.T, v any) []byte {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(data, '\n')
}

func writeTurn(b *bytes.Buffer, m *llm.Message) {
	for _, c := range m.Calls {
		fmt.Fprintf(b, "call %s %s: %s\n", c.ID, c.Name, c.Arguments)
	}
	name := string(m.Role)
	switch {
	case m.CallID != "":
		name = "result " + m.CallID
	case m.Continuation:
		name = "steer"
	}
	if text := m.Text(); text != "" || len(m.Calls) == 0 {
		fmt.Fprintf(b, "%s:", name)
		for line := range strings.Lines(text) {
			fmt.Fprintf(b, "\t%s\n", shortLine(strings.TrimSuffix(line, "\n")))
		}
		if text == "" {
			b.WriteByte('\n')
		}
	}
	for _, img := range m.Images() {
		fmt.Fprintf(b, "image %dx%d %s\n", img.Width, img.Height, img.Name)
	}
}

// shortLine keeps long lines readable: what stands in the middle is counted.
func shortLine(s string) string {
	const ends = 50
	if len(s) <= 4*ends {
		return s
	}
	return fmt.Sprintf("%s <%d bytes> %s", s[:ends], len(s)-2*ends, s[len(s)-ends:])
}

func readConversation(t *testing.T, script string) (*Policy, *Input) {
	t.Helper()
	p, in := Policy1(), window(8192)
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		if head, size, ok := strings.Cut(line, "~"); ok {
			line = head + prose(number(size))
		}
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "policy":
			p, _ = PolicyByVersion(number(rest))
		case "window":
			in.Snapshot.Window.Tokens = number(rest)
		case "output":
			in.RequestedOutput = number(rest)
		case "system":
			in.System = rest
		case "memory":
			in.Memory = rest
		case "tool":
			name, schema, _ := strings.Cut(rest, " ")
			in.Tools = append(in.Tools, llm.NewToolDef(name, "What "+name+" does.", []byte(schema)))
		case "image":
			size, name, _ := strings.Cut(rest, " ")
			w, h, _ := strings.Cut(size, "x")
			last := &in.Messages[len(in.Messages)-1]
			last.Parts = append(last.Parts, &llm.Image{Name: name, Width: number(w), Height: number(h), SHA256: name})
		default:
			readTurn(t, in, line)
		}
	}
	return p, in
}

func readTurn(t *testing.T, in *Input, line string) {
	t.Helper()
	head, text, ok := strings.Cut(line, ": ")
	fields := strings.Fields(head)
	if !ok || len(fields) == 0 {
		t.Fatalf("cannot read %q", line)
	}
	switch fields[0] {
	case "user":
		in.Messages = append(in.Messages, llm.UserText(text))
	case "steer":
		in.Messages = append(in.Messages, llm.Message{Role: llm.User, Continuation: true, Parts: []llm.Part{llm.Text(text)}})
	case "assistant":
		in.Messages = append(in.Messages, llm.AssistantText(text))
	case "call":
		c := llm.ToolCall{ID: fields[1], Name: fields[2], Arguments: text}
		if last := &in.Messages[len(in.Messages)-1]; last.Role == llm.Assistant && len(last.Calls) > 0 {
			last.Calls = append(last.Calls, c)
			return
		}
		in.Messages = append(in.Messages, llm.AssistantText("", c))
	case "result":
		in.Messages = append(in.Messages, llm.ToolText(fields[1], text))
	default:
		t.Fatalf("cannot read %q", line)
	}
}
