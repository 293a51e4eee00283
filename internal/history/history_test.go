package history

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
)

func call(ids ...string) llm.Message {
	m := llm.Message{Role: llm.Assistant}
	for _, id := range ids {
		m.Calls = append(m.Calls, llm.ToolCall{ID: id, Name: "read", Arguments: "{}"})
	}
	return m
}

func result(id string) llm.Message { return llm.ToolText(id, "body of "+id) }

func steer(parts ...llm.Part) llm.Message {
	return llm.Message{Role: llm.User, Continuation: true, Parts: parts}
}

var (
	user   = llm.UserText("task")
	answer = llm.AssistantText("done")
	system = llm.Message{Role: llm.System, Parts: []llm.Part{llm.Text("you are drover")}}
	photo  = &llm.Image{Name: "a.png", Width: 1, Height: 1}
)

func TestSplit(t *testing.T) {
	empty := llm.UserText("")
	withText := call("a")
	withText.Parts = []llm.Part{llm.Text("let me look")}
	for _, c := range []struct {
		name     string
		messages []llm.Message
		want     []Exchange
	}{
		{"one", []llm.Message{user}, []Exchange{{Start: 0, End: 1}}},
		{"system leads", []llm.Message{system, system, user, answer}, []Exchange{{Start: 2, End: 4}}},
		{"two users in a row", []llm.Message{user, user}, []Exchange{{Start: 0, End: 1}, {Start: 1, End: 2}}},
		{"empty text", []llm.Message{empty, answer}, []Exchange{{Start: 0, End: 2}}},
		{"assistants in a row", []llm.Message{user, answer, answer, user}, []Exchange{{Start: 0, End: 3}, {Start: 3, End: 4}}},
		{"results in another order", []llm.Message{user, call("a", "b"), result("b"), result("a")},
			[]Exchange{{Start: 0, End: 4, Groups: []Group{{1, 4, 4}}}}},
		{"an id again in another turn", []llm.Message{user, call("a"), result("a"), call("a"), result("a"), answer},
			[]Exchange{{Start: 0, End: 6, Groups: []Group{{1, 3, 3}, {3, 5, 5}}}}},
		{"text with calls", []llm.Message{user, withText, result("a")},
			[]Exchange{{Start: 0, End: 3, Groups: []Group{{1, 3, 3}}}}},
		{"steering stays inside", []llm.Message{user, call("a"), result("a"), steer(llm.Text("faster")), answer, user},
			[]Exchange{{Start: 0, End: 5, Groups: []Group{{1, 3, 3}}}, {Start: 5, End: 6}}},
		{"images of a tool belong to its group", []llm.Message{user, call("a"), result("a"), steer(photo), answer},
			[]Exchange{{Start: 0, End: 5, Groups: []Group{{1, 3, 4}}}}},
		{"an instruction with an image does not", []llm.Message{user, call("a"), result("a"), steer(photo, llm.Text("like this")), answer},
			[]Exchange{{Start: 0, End: 5, Groups: []Group{{1, 3, 3}}}}},
		{"nor do images later", []llm.Message{user, call("a"), result("a"), answer, steer(photo)},
			[]Exchange{{Start: 0, End: 5, Groups: []Group{{1, 3, 3}}}}},
		{"a continuation may lead", []llm.Message{steer(llm.Text("go on"))}, []Exchange{{Start: 0, End: 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Split(c.messages)
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("Split = %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

// with returns the message with a change.
func with(m llm.Message, change func(*llm.Message)) llm.Message {
	change(&m)
	return m
}

func TestSplitRefuses(t *testing.T) {
	for _, c := range []struct {
		name     string
		messages []llm.Message
		turn     int
		reason   Reason
	}{
		{"nothing", nil, -1, NoUserTurn},
		{"system alone", []llm.Message{system}, -1, NoUserTurn},
		{"assistant first", []llm.Message{answer, user}, 0, NotStartingByUser},
		{"assistant after system", []llm.Message{system, answer}, 1, NotStartingByUser},
		{"tool first", []llm.Message{result("a")}, 0, NotStartingByUser},
		{"late system", []llm.Message{user, system}, 1, LateSystem},
		{"unknown role", []llm.Message{user, {Role: "developer"}}, 1, UnknownRole},
		{"calls of a user", []llm.Message{with(user, func(m *llm.Message) { m.Calls = call("a").Calls })}, 0, MisplacedCalls},
		{"id on an assistant turn", []llm.Message{user, with(answer, func(m *llm.Message) { m.CallID = "a" })}, 1, MisplacedResult},
		{"image of an assistant", []llm.Message{user, with(answer, func(m *llm.Message) { m.Parts = []llm.Part{photo} })}, 1, MisplacedImage},
		{"image in a result", []llm.Message{user, call("a"), with(result("a"), func(m *llm.Message) { m.Parts = []llm.Part{photo} })}, 2, MisplacedImage},
		{"reasoning of a user", []llm.Message{with(user, func(m *llm.Message) { m.Reasoning = &llm.Reasoning{} })}, 0, MisplacedReasoning},
		{"continuation of an assistant", []llm.Message{user, with(answer, func(m *llm.Message) { m.Continuation = true })}, 1, MisplacedMark},
		{"error of a user", []llm.Message{with(user, func(m *llm.Message) { m.IsError = true })}, 0, MisplacedMark},
		{"origin of a user", []llm.Message{with(user, func(m *llm.Message) { m.Origin.Model = "m" })}, 0, MisplacedMark},
		{"nil part", []llm.Message{{Role: llm.User, Parts: []llm.Part{nil}}}, 0, EmptyPart},
		{"nil image", []llm.Message{{Role: llm.User, Parts: []llm.Part{(*llm.Image)(nil)}}}, 0, EmptyPart},
		{"tool without id", []llm.Message{user, call("a"), result("")}, 2, ToolWithoutID},
		{"tool after an answer", []llm.Message{user, answer, result("a")}, 2, StrayTool},
		{"tool after steering", []llm.Message{user, call("a"), result("a"), steer(llm.Text("x")), result("a")}, 4, StrayTool},
		{"empty call id", []llm.Message{user, call("")}, 1, EmptyCallID},
		{"one id twice", []llm.Message{user, call("a", "a")}, 1, DuplicateCallID},
		{"result of another turn", []llm.Message{user, call("a"), result("a"), call("b"), result("a")}, 4, UnknownResult},
		{"second result", []llm.Message{user, call("a"), result("a"), result("a")}, 3, DuplicateResult},
		{"no result at the end", []llm.Message{user, call("a", "b"), result("b")}, 1, MissingResult},
		{"no result before an answer", []llm.Message{user, call("a"), answer}, 1, MissingResult},
		{"no result before a user turn", []llm.Message{user, call("a"), user}, 1, MissingResult},
		{"no result before steering", []llm.Message{user, call("a"), steer(llm.Text("x")), result("a")}, 1, MissingResult},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Split(c.messages)
			var invalid *InvalidError
			if !errors.As(err, &invalid) || invalid.Turn != c.turn || invalid.Reason != c.reason {
				t.Fatalf("Split: %+v, want turn %d, %s", err, c.turn, c.reason)
			}
			if invalid.Error() == "" || reasonTexts[invalid.Reason] == "" {
				t.Errorf("no text for %s", invalid.Reason)
			}
		})
	}
}

// Reading a conversation in pieces gives what reading it at once gives.
func TestIndexGrows(t *testing.T) {
	messages := []llm.Message{system, user, call("a", "b"), result("b"), result("a"), steer(photo), answer, user, call("c"), result("c")}
	var x Index
	for n := range messages {
		if err := x.Extend(messages[:n+1]); err != nil {
			t.Fatal(err)
		}
		want, wantErr := Split(messages[:n+1])
		if err := x.Complete(); (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
			t.Errorf("%d turns: Complete = %v, Split says %v", n+1, err, wantErr)
		}
		if wantErr == nil && !reflect.DeepEqual(x.Exchanges(), want) {
			t.Errorf("%d turns: %+v, want %+v", n+1, x.Exchanges(), want)
		}
	}
	if err := x.Extend(append(messages, result("c"))); err == nil {
		t.Fatal("a second result was taken")
	} else if again := x.Extend(messages); again == nil {
		t.Error("a refused index took more turns")
	}
}

// A turn may have any number of calls: reading them one by one against all others
// would take a minute here.
func TestManyCallsInOneTurn(t *testing.T) {
	ids := make([]string, 50_000)
	for i := range ids {
		ids[i] = fmt.Sprint("call_", i)
	}
	messages := []llm.Message{user, call(ids...)}
	for i := range ids {
		messages = append(messages, result(ids[len(ids)-1-i]))
	}
	if _, err := Split(messages); err != nil {
		t.Error(err)
	}
	messages[1].Calls[len(ids)-1].ID = ids[0]
	if _, err := Split(messages); err == nil || err.(*InvalidError).Reason != DuplicateCallID {
		t.Errorf("two calls of one id: %v", err)
	}
}

// FuzzSplit reads a conversation a byte a turn. Whatever it is, an accepted
// conversation is covered without gaps and every group is whole.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("ucra"))
	f.Add([]byte("suCrRaiucr"))
	f.Fuzz(func(t *testing.T, script []byte) {
		var messages []llm.Message
		for _, b := range script {
			messages = append(messages, fuzzTurn(b))
		}
		before := slices.Clone(messages)
		exchanges, err := Split(messages)
		if !reflect.DeepEqual(messages, before) {
			t.Fatal("the input was changed")
		}
		if err != nil {
			var invalid *InvalidError
			if !errors.As(err, &invalid) || invalid.Turn >= len(messages) {
				t.Fatalf("%#v", err)
			}
			return
		}
		next := exchanges[0].Start
		for _, x := range exchanges {
			if x.Start != next || messages[x.Start].Role != llm.User {
				t.Fatalf("exchange %+v begins after turn %d", x, next)
			}
			next = x.End
			for _, g := range x.Groups {
				checkGroup(t, messages, x, g)
			}
		}
		if next != len(messages) {
			t.Fatalf("covered %d of %d turns", next, len(messages))
		}
	})
}

func checkGroup(t *testing.T, messages []llm.Message, x Exchange, g Group) {
	t.Helper()
	if g.Start <= x.Start || g.End > x.End || g.ImagesEnd < g.End || g.ImagesEnd > x.End {
		t.Fatalf("group %+v outside of %+v", g, x)
	}
	calls := messages[g.Start].Calls
	if g.End-g.Start-1 != len(calls) {
		t.Fatalf("group %+v of %d calls", g, len(calls))
	}
	for _, m := range messages[g.Start+1 : g.End] {
		if !slices.ContainsFunc(calls, func(c llm.ToolCall) bool { return c.ID == m.CallID }) {
			t.Fatalf("result %q in group %+v", m.CallID, g)
		}
	}
}

func fuzzTurn(b byte) llm.Message {
	switch b {
	case 's':
		return system
	case 'u':
		return user
	case 'i':
		return steer(photo)
	case 'a':
		return answer
	case 'c':
		return call("1")
	case 'C':
		return call("1", "2")
	case 'r':
		return result("1")
	case 'R':
		return result("2")
	}
	return llm.Message{Role: llm.Role(string(rune(b)))}
}
