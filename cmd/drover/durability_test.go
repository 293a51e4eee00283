package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/session"
)

// rig is a home, a work folder and an engine for runs of the binary.
type rig struct {
	t             *testing.T
	home, dir     string
	url           string
	preset, model string
	env           []string // besides home and path
	prefix        []string // what the binary is started with
}

// newRig makes a rig whose engine answers with a function; nil answers "ok".
func newRig(t *testing.T, answer func(*rig, *enginetest.Chat) enginetest.Answer) *rig {
	t.Helper()
	r := rigFor(t, "", "brook-7b")
	r.serve(answer)
	return r
}

// serve starts the rig's engine.
func (r *rig) serve(answer func(*rig, *enginetest.Chat) enginetest.Answer) {
	r.t.Helper()
	opts := &enginetest.Options{
		Preset: enginetest.LlamaCpp, Models: []enginetest.Model{{ID: r.model, Window: 16384, Tools: true}},
	}
	if answer != nil {
		opts.Answer = func(c *enginetest.Chat) enginetest.Answer { return answer(r, c) }
	}
	r.url = enginetest.New(r.t, opts).URL
}

// rigFor makes a rig for an engine of llama.cpp that runs already.
func rigFor(t *testing.T, url, model string) *rig {
	t.Helper()
	root := t.TempDir()
	r := &rig{t: t, home: filepath.Join(root, "home"), dir: filepath.Join(root, "site"), url: url, preset: "llamacpp", model: model}
	for _, dir := range []string{r.home, r.dir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// binary is the program under test: $DROVER_BINARY, else the test binary, which
// testscript.Main has put into the path under the name of drover.
func (r *rig) binary() string {
	if b := os.Getenv("DROVER_BINARY"); b != "" {
		return b
	}
	path, err := exec.LookPath("drover")
	if err != nil {
		r.t.Fatal(err)
	}
	return path
}

// command starts nothing yet. Its first arguments are those of drover.
func (r *rig) command(args ...string) *exec.Cmd {
	line := append(append([]string{}, r.prefix...), r.binary())
	line = append(line, args...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = r.dir
	cmd.Env = []string{
		"HOME=" + r.home, "USERPROFILE=" + r.home, "XDG_STATE_HOME=" + r.state(), "PATH=" + os.Getenv("PATH"),
		"SystemRoot=" + os.Getenv("SystemRoot"), "TMPDIR=" + os.TempDir(), "GORACE=atexit_sleep_ms=0",
	}
	cmd.Env = append(cmd.Env, r.env...)
	return cmd
}

func (r *rig) state() string         { return filepath.Join(r.home, "state") }
func (r *rig) sessions() string      { return filepath.Join(r.state(), "drover", "sessions") }
func (r *rig) store() *session.Store { return session.NewStore(r.sessions()) }

// turn is the command line of a turn; id is the session to go on with, "" for a
// new one.
func (r *rig) turn(id, prompt string, args ...string) *exec.Cmd {
	line := []string{"run", "--json", "--mode", "full", "--url", r.url, "--preset", r.preset, "--model", r.model}
	if id != "" {
		line = append(line, "--resume", id)
	}
	return r.command(append(append(line, args...), prompt)...)
}

// outcome is how a command ended.
type outcome struct {
	stdout, stderr string
	status         int
}

func (r *rig) run(cmd *exec.Cmd) outcome {
	r.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		r.t.Fatal(err)
	}
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// newest is the id of the session that was changed last.
func (r *rig) newest() string {
	r.t.Helper()
	infos, err := r.store().List(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(infos) == 0 {
		return ""
	}
	return infos[0].ID
}

// event is a line of run --json, with the members that the tests look at.
type event struct {
	Type, ID, Name, Status, Text, Reason, Arguments string
}

func events(stdout string) (list []event) {
	for line := range strings.Lines(stdout) {
		var ev event
		if strings.HasSuffix(line, "\n") && json.Unmarshal([]byte(line), &ev) == nil {
			list = append(list, ev)
		}
	}
	return list
}

// notices joins the texts of all notices.
func notices(stdout string) string {
	var b strings.Builder
	for _, ev := range events(stdout) {
		if ev.Type == "notice" {
			b.WriteString(ev.Text + "\n")
		}
	}
	return b.String()
}

// wholeLog checks that a session can be read without any problem, and gives its
// state and records.
func (r *rig) wholeLog(id string) (*session.State, []session.Record) {
	r.t.Helper()
	state, err := r.store().Read(id)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(state.Warnings) > 0 || !state.Intact() {
		r.t.Errorf("session %s: %v", id, state.Warnings)
	}
	var recs []session.Record
	for rec, err := range r.store().Records(id) {
		if err != nil {
			r.t.Fatal(err)
		}
		recs = append(recs, rec)
	}
	return state, recs
}

// prompts counts the messages of the user.
func prompts(c *enginetest.Chat) int {
	n := 0
	for _, m := range messagesOf(c) {
		if m.Role == "user" {
			n++
		}
	}
	return n
}

// rounds counts the results behind the last message of a user.
func rounds(c *enginetest.Chat) int {
	n := 0
	for _, m := range messagesOf(c) {
		switch m.Role {
		case "user":
			n = 0
		case "tool":
			n++
		}
	}
	return n
}

// chatMessage is a message of a request, as far as the tests look at it.
type chatMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []struct {
		ID string `json:"id"`
	} `json:"tool_calls"`
	ToolCallID string `json:"tool_call_id"`
}

func messagesOf(c *enginetest.Chat) (list []chatMessage) {
	if json.Unmarshal(c.Fields["messages"], &list) != nil {
		return nil
	}
	return list
}

func shellCall(id, command string) enginetest.Call {
	arguments, _ := json.Marshal(map[string]string{"command": command})
	return enginetest.Call{ID: id, Name: "shell", Arguments: string(arguments)}
}

// The second process is told who has the session, and the first is undisturbed.
func TestTwoProcessesOnOneSession(t *testing.T) {
	asked, goOn := make(chan struct{}), make(chan struct{})
	r := newRig(t, func(_ *rig, c *enginetest.Chat) enginetest.Answer {
		if prompts(c) == 2 {
			close(asked)
			<-goOn
		}
		return enginetest.Answer{Text: "the answer"}
	})
	if o := r.run(r.turn("", "begin")); o.status != 0 {
		t.Fatalf("%+v", o)
	}
	id := r.newest()
	first := r.turn(id, "one")
	var stdout bytes.Buffer
	first.Stdout = &stdout
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	second := r.run(r.turn(id, "two"))
	if want := fmt.Sprintf("in use by pid %d", first.Process.Pid); second.status != exitUsage || !strings.Contains(second.stdout, want) {
		t.Errorf("the second process: %+v, want %q", second, want)
	}
	for _, args := range [][]string{{"rm", id}, {"repair", id}} {
		if o := r.run(r.command(append([]string{"sessions"}, args...)...)); o.status != exitFailed || !strings.Contains(o.stderr, "in use by pid") {
			t.Errorf("sessions %v: %+v", args, o)
		}
	}
	if o := r.run(r.command("sessions", "show", id)); o.status != 0 || !strings.Contains(o.stdout, "turn not ended") {
		t.Errorf("show beside a writer: %+v", o)
	}
	close(goOn)
	if err := first.Wait(); err != nil || !strings.Contains(stdout.String(), `"completed"`) {
		t.Errorf("the first process: %v, %s", err, stdout.String())
	}
	if s, _ := r.wholeLog(id); s.Turns != 2 || s.OpenTurn || len(s.Messages) != 4 {
		t.Errorf("%d turns, %d messages", s.Turns, len(s.Messages))
	}
}

// A folder of sessions that is removed while a turn runs is there again, with
// everything in it, before the next tool has an effect.
func TestSessionFolderVanishes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be removed")
	}
	r := newRig(t, func(r *rig, c *enginetest.Chat) enginetest.Answer {
		switch rounds(c) {
		case 0, 1:
			if err := os.RemoveAll(r.state()); err != nil {
				t.Error(err)
			}
			return enginetest.Answer{Calls: []enginetest.Call{shellCall(fmt.Sprint("c", rounds(c)), "echo ran >> ran")}}
		}
		return enginetest.Answer{Text: "done"}
	})
	o := r.run(r.turn("", "work"))
	if o.status != 0 {
		t.Fatalf("%+v", o)
	}
	s, _ := r.wholeLog(r.newest())
	if len(s.Messages) != 6 || s.OpenTurn {
		t.Errorf("%d messages: %+v", len(s.Messages), s.Messages)
	}
	if ran, _ := os.ReadFile(filepath.Join(r.dir, "ran")); string(ran) != "ran\nran\n" {
		t.Errorf("the tool ran: %q", ran)
	}
}

// A work folder that is gone makes tools fail, not the turn or the session.
func TestWorkFolderVanishes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the folder of a process cannot be removed")
	}
	r := newRig(t, func(r *rig, c *enginetest.Chat) enginetest.Answer {
		if prompts(c) == 1 && rounds(c) == 0 {
			if err := os.RemoveAll(r.dir); err != nil {
				t.Error(err)
			}
			return enginetest.Answer{Calls: []enginetest.Call{
				shellCall("s", "echo here"), {ID: "r", Name: "read", Arguments: `{"path":"x"}`},
				{ID: "e", Name: "edit", Arguments: `{"path":"x","old":"a","new":"b"}`},
			}}
		}
		return enginetest.Answer{Text: "I see."}
	})
	o := r.run(r.turn("", "work"))
	if o.status != 0 || !strings.Contains(o.stdout, "I see.") {
		t.Fatalf("%+v", o)
	}
	for _, ev := range events(o.stdout) {
		if ev.Type == "tool_result" && (ev.Status != "error" || ev.Text == "") {
			t.Errorf("result %+v", ev)
		}
	}
	r.dir = r.home
	if o := r.run(r.turn(r.newest(), "go on")); o.status != 0 {
		t.Errorf("going on elsewhere: %+v", o)
	}
	r.wholeLog(r.newest())
}

// With a clock that goes backwards the order of the file counts.
func TestClockGoesBackwards(t *testing.T) {
	r := newRig(t, nil)
	for range 2 {
		if o := r.run(r.turn(r.newest(), "hello")); o.status != 0 {
			t.Fatalf("%+v", o)
		}
	}
	id := r.newest()
	logs, err := filepath.Glob(filepath.Join(r.sessions(), "*", id+".jsonl"))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	data, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	// What is there was written in a year to come.
	year := fmt.Appendf(nil, `:"%s-`, string(data[bytes.Index(data, []byte(`"created":"`))+11:][:4]))
	if err := os.WriteFile(logs[0], bytes.ReplaceAll(data, year, []byte(`:"2199-`)), 0o600); err != nil {
		t.Fatal(err)
	}
	if o := r.run(r.turn(id, "third")); o.status != 0 || notices(o.stdout) != "" {
		t.Fatalf("%+v", o)
	}
	s, recs := r.wholeLog(id)
	if s.Turns != 3 || len(s.Messages) != 6 || s.Messages[4].Text() != "third" || s.Updated.Year() == 2199 {
		t.Errorf("%d turns, changed %v: %+v", s.Turns, s.Updated, s.Messages)
	}
	if first, last := session.StampOf(recs[0]), session.StampOf(recs[len(recs)-1]); first.Time.Year() != 2199 || !last.Time.Before(first.Time) {
		t.Errorf("times %v and %v", first.Time, last.Time)
	}
	if o := r.run(r.command("sessions", "verify")); o.status != 0 {
		t.Errorf("verify: %+v", o)
	}
	if o := r.run(r.command("sessions", "show", "last")); o.status != 0 || !strings.Contains(o.stdout, "turn 3: completed") {
		t.Errorf("show: %+v", o)
	}
}

// Whoever goes on with a damaged log is told what is wrong: of a torn end once, and
// then it is gone.
func TestGoingOnTellsOfDamage(t *testing.T) {
	r := newRig(t, nil)
	if o := r.run(r.turn("", "hello")); o.status != 0 {
		t.Fatalf("%+v", o)
	}
	id := r.newest()
	logs, err := filepath.Glob(filepath.Join(r.sessions(), "*", id+".jsonl"))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	whole, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	_, headless, _ := bytes.Cut(whole, []byte("\n"))
	for _, test := range []struct {
		name    string
		content []byte
		want    [2]string // notices of the first turn and of the second
	}{
		{"a torn end", append(bytes.Clone(whole), `{"seq":99,"ti`...), [2]string{"the last record is incomplete", ""}},
		{"a torn end inside a turn", whole[:bytes.LastIndex(whole, []byte(`"turn/end"`))], [2]string{"the last record is incomplete", ""}},
		{"no header", headless, [2]string{"no readable header", "no readable header"}},
		{"nothing", nil, [2]string{"the log is empty", "no readable header"}},
	} {
		if err := os.WriteFile(logs[0], test.content, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, want := range test.want {
			o := r.run(r.turn(id, "go on"))
			said := notices(o.stdout)
			if o.status != 0 || strings.Contains(said, "session "+id) != (want != "") || !strings.Contains(said, want) {
				t.Errorf("%s: %d, %q, want %q", test.name, o.status, said, want)
			}
			if unknown := strings.Contains(said, "the log does not say which folder"); unknown != strings.Contains(want, "header") && want != "the log is empty" {
				t.Errorf("%s: %q", test.name, said)
			}
		}
	}
}

// drain reads everything, and keeps it safe for use after the end of the reader.
type drain struct {
	done chan struct{}
	data []byte
}

func newDrain(r io.Reader, each func(line []byte)) *drain {
	d := &drain{done: make(chan struct{})}
	go func() {
		defer close(d.done)
		buf := make([]byte, 32<<10)
		seen := 0
		for {
			n, err := r.Read(buf)
			d.data = append(d.data, buf[:n]...)
			for {
				i := bytes.IndexByte(d.data[seen:], '\n')
				if i < 0 {
					break
				}
				each(d.data[seen : seen+i])
				seen += i + 1
			}
			if err != nil {
				return
			}
		}
	}()
	return d
}

// String waits for the end.
func (d *drain) String() string {
	<-d.done
	return string(d.data)
}
