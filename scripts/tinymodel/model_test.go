package main

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// build makes the plan and weights of one of the scripts.
func build(t *testing.T, name string) (*plan, *weights) {
	t.Helper()
	s, err := loadScript(filepath.Join("data", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPlan(s, trainVocabulary("the corpus does not matter here", 10))
	if err != nil {
		t.Fatal(err)
	}
	w, err := compute(p)
	if err != nil {
		t.Fatal(err)
	}
	return p, w
}

// A simulation runs the transformer as engines do, with keys and values of 16
// bits, and leaves out tokens whose keys and values are zero.
type simulation struct {
	p          *plan
	w          *weights
	keys       [][headSize]float64
	values     [][headSize]float64
	positions  int
	last       int
	forbidding map[int]bool
}

func times(matrix []float32, x []float64) (y [headSize]float64) {
	for row := range headSize {
		for i, v := range x {
			y[row] += float64(matrix[row*len(x)+i]) * v
		}
	}
	return y
}

func normal(x []float64) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	scale := 1 / math.Sqrt(sum/float64(len(x))+normEpsilon)
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v * scale
	}
	return y
}

func (s *simulation) rotate(x *[headSize]float64, position int) {
	for pair := range ropePairs {
		sin, cos := math.Sincos(ropeAngle(pair, s.p.script.Context) * float64(position))
		even, odd := x[2*pair], x[2*pair+1]
		x[2*pair], x[2*pair+1] = even*cos-odd*sin, even*sin+odd*cos
	}
}

func (s *simulation) row(token int) []float64 {
	x := make([]float64, s.w.width)
	for i := range x {
		x[i] = float64(s.w.embedding[token*s.w.width+i])
	}
	return x
}

// feed appends tokens.
func (s *simulation) feed(tokens ...int) {
	for _, token := range tokens {
		if _, ok := s.p.markers[token]; ok {
			x := normal(s.row(token))
			key, value := times(s.w.key, x), times(s.w.value, x)
			s.rotate(&key, s.positions)
			for i := range key {
				key[i] = float64(fromHalf(toHalf(float32(key[i]))))
				value[i] = float64(fromHalf(toHalf(float32(value[i]))))
			}
			s.keys, s.values = append(s.keys, key), append(s.values, value)
		}
		s.positions++
		s.last = token
	}
}

// skip appends n tokens of ordinary text.
func (s *simulation) skip(n int) { s.positions += n }

// next returns the most likely token, and by how many units of logit it leads.
func (s *simulation) next() (token int, lead float64) {
	x := s.row(s.last)
	query := times(s.w.query, normal(x))
	s.rotate(&query, s.positions-1)
	scores := make([]float64, len(s.keys))
	// Tokens that are no markers have the score 0.
	highest, total := 0.0, 0.0
	for i, key := range s.keys {
		for j := range key {
			scores[i] += key[j] * query[j] / math.Sqrt(headSize)
		}
		highest = max(highest, scores[i])
	}
	total = float64(s.positions-len(s.keys)) * math.Exp(-highest)
	var head [headSize]float64
	for i, score := range scores {
		weight := math.Exp(score - highest)
		total += weight
		for j, v := range s.values[i] {
			head[j] += weight * v
		}
	}
	for channel := range x {
		for j, v := range head {
			x[channel] += float64(s.w.merge[channel*headSize+j]) * v / total
		}
	}
	x = normal(x)
	best, second := math.Inf(-1), math.Inf(-1)
	for candidate := range s.p.vocab.tokens {
		if s.forbidding[candidate] {
			continue
		}
		logit := 0.0
		for i, v := range x {
			logit += v * float64(s.w.output[candidate*s.w.width+i])
		}
		if logit > best {
			token, best, second = candidate, logit, best
		} else {
			second = max(second, logit)
		}
	}
	return token, best - second
}

// say lets the model speak until it stops, or for limit tokens.
func (s *simulation) say(t *testing.T, limit int) string {
	t.Helper()
	var text strings.Builder
	plain := map[rune]byte{}
	for b, r := range alphabet {
		plain[r] = byte(b)
	}
	for range limit {
		token, lead := s.next()
		// Requests without a temperature are sampled; this makes another token a matter of 1 in 1,000.
		if lead < 7 {
			t.Errorf("%q leads by %.1f only", s.p.vocab.tokens[token], lead)
		}
		if token == s.p.eos {
			break
		}
		for _, r := range s.p.vocab.tokens[token] {
			text.WriteByte(plain[r])
		}
		s.feed(token)
	}
	return text.String()
}

func (p *plan) ids(tokens ...string) []int {
	var ids []int
	for _, t := range tokens {
		if _, ok := p.vocab.ids[t]; !ok {
			t = spell(t)
		}
		ids = append(ids, p.vocab.ids[t])
	}
	return ids
}

func (s *simulation) prompt(tokens ...string) { s.feed(s.p.ids(tokens...)...) }

const call = "<tool_call>\n{\"name\": \"write\", \"arguments\": {\"path\": \"drover-was-here.txt\", \"content\": \"written by the scripted model\\n\"}}\n</tool_call>"

func TestReplies(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		prompt []string
		want   string
	}{
		"default":     {"plain", []string{"H", "i", "\n"}, "Hello from the scripted model: no marker was seen."},
		"call":        {"plain", []string{"[[write]]", "\n"}, call},
		"final":       {"plain", []string{"[[write]]", "\n", "</tool_response>", "\n"}, "The tool answered, so this is the final answer."},
		"call again":  {"plain", []string{"[[two]]", "</tool_response>", "\n", "[[write]]", "\n"}, call},
		"two":         {"plain", []string{"[[two]]", "\n"}, "Two calls follow.\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a.txt\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"b.txt\"}}\n</tool_call>"},
		"thought":     {"think", []string{"H", "i", "\n"}, "<think>\nThere is a question; the script has an answer.\n</think>\n\nHello from the scripted model: no marker was seen."},
		"no thought":  {"think", []string{"[[read]]", "\n", "</think>", "\n\n"}, "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"README.md\"}}\n</tool_call>"},
		"over length": {"plain", []string{"[[loop]]", "\n"}, strings.Repeat("tick tock tack ", 10)},
	} {
		t.Run(name, func(t *testing.T) {
			p, w := build(t, c.script)
			s := &simulation{p: p, w: w}
			s.prompt(c.prompt...)
			if got := s.say(t, 30); got != c.want {
				t.Errorf("said %q, want %q", got, c.want)
			}
		})
	}
}

// TestOtherwise forbids the first argument of a call, as llama-server does when
// the schema has another one first.
func TestOtherwise(t *testing.T) {
	p, w := build(t, "plain")
	s := &simulation{p: p, w: w, forbidding: map[int]bool{}}
	s.forbidding[p.ids(`"path": "drover-was-here.txt",`)[0]] = true
	s.prompt("[[write]]", "\n")
	want := "<tool_call>\n{\"name\": \"write\", \"arguments\": {\"content\": \"written by the scripted model\\n\", \"path\": \"drover-was-here.txt\"}}\n</tool_call>"
	if got := s.say(t, 30); got != want {
		t.Errorf("said %q, want %q", got, want)
	}
}

// TestLastMarkerWins goes through the windows: markers 12 tokens apart, with up to
// a whole window after them or before them.
func TestLastMarkerWins(t *testing.T) {
	for _, script := range []string{"plain", "think", "vocab"} {
		t.Run(script, func(t *testing.T) {
			p, w := build(t, script)
			window := p.script.Context
			for step := range 64 {
				distance := step * (window - 64) / 63
				s := &simulation{p: p, w: w}
				s.skip(window - 64 - distance)
				s.prompt("[[shell]]")
				s.skip(11)
				s.prompt("</tool_response>")
				s.skip(11)
				s.prompt("[[read]]")
				s.skip(distance)
				s.prompt("\n\n")
				want := "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"README.md\"}}\n</tool_call>"
				if got := s.say(t, 8); got != want {
					t.Errorf("%d tokens after the markers: said %q", distance, got)
				}
			}
		})
	}
}

// TestManyMarkers has the results of a long row of calls after the marker.
func TestManyMarkers(t *testing.T) {
	p, w := build(t, "vocab")
	s := &simulation{p: p, w: w}
	for range 500 {
		s.prompt("</tool_response>")
		s.skip(40)
	}
	s.prompt("[[shell]]", "\n")
	if got := s.say(t, 8); !strings.Contains(got, `"shell"`) {
		t.Errorf("said %q", got)
	}
	for range 200 {
		s.prompt("</tool_response>")
		s.skip(40)
	}
	s.prompt("\n")
	if got := s.say(t, 8); !strings.Contains(got, "final answer") {
		t.Errorf("said %q", got)
	}
}

func TestImageAsksForReply(t *testing.T) {
	p, w := build(t, "vision")
	if w.image == nil {
		t.Fatal("no embedding for images")
	}
	// An image is as good as a token whose embedding it is.
	id := p.vocab.ids["x"]
	copy(w.embedding[id*w.width:], w.image)
	p.markers[id] = "image"
	s := &simulation{p: p, w: w}
	s.prompt("[[write]]", "x", "\n")
	if got := s.say(t, 10); !strings.Contains(got, "a picture") {
		t.Errorf("said %q", got)
	}
	m, err := projector("test", w)
	if err != nil {
		t.Fatal(err)
	}
	encode(t, m)
	_, plain := build(t, "plain")
	if _, err := projector("test", plain); err == nil {
		t.Error("a projector without a reply for images")
	}
}

func TestScriptErrors(t *testing.T) {
	const good = `"context": 64, "eos": "<e>", "control": ["<e>"]`
	hello := `"default": {"say": ["Hello"]}`
	for name, c := range map[string]struct{ script, want string }{
		"json":           {`{`, "unexpected end"},
		"unknown field":  {`{"contxt": 1}`, "contxt"},
		"missing base":   {`{"base": "none.json"}`, "none.json"},
		"own base":       {`{"base": "script.json"}`, "based on itself"},
		"context":        {`{"context": 1}`, "context of 1"},
		"eos":            {`{"context": 64, "eos": "<e>"}`, "eos"},
		"bos":            {`{` + good + `, "bos": "<b>"}`, "bos"},
		"no default":     {`{` + good + `}`, `no reply "default"`},
		"silence":        {`{` + good + `, "replies": {"default": {"say": []}}}`, "says nothing"},
		"no marker":      {`{` + good + `, "replies": {` + hello + `, "a": {"say": ["b"]}}}`, `reply "a"`},
		"again":          {`{` + good + `, "replies": {"default": {"say": ["b"], "again": 1}}}`, "piece 1 of 1"},
		"untagged":       {`{` + good + `, "thoughts": ["hm"], "replies": {` + hello + `}}`, "need the tags"},
		"two successors": {`{` + good + `, "replies": {"default": {"say": ["a", "b", "a", "c"]}}}`, "followed by"},
		"prompt's end":   {`{` + good + `, "replies": {"default": {"say": ["\n"]}}}`, "how prompts end"},
		"same marker":    {`{` + good + `, "replies": {` + hello + `, "a": {"marker": "[m]", "say": ["x"]}, "b": {"marker": "[m]", "say": ["y"]}}}`, "asks for"},
		"no template":    {`{` + good + `, "template": "none.jinja", "replies": {` + hello + `}}`, "none.jinja"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, out := filepath.Join(dir, "script.json"), filepath.Join(dir, "out.gguf")
			if err := os.WriteFile(path, []byte(c.script), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := run([]string{"-script", path, "-o", out}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
				t.Errorf("files left: %v, %v", left, err)
			}
		})
	}
}

// TestRun makes every model twice, one with the vocabulary of another file.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	generate := func(name string, args ...string) []byte {
		t.Helper()
		out := filepath.Join(dir, name+".gguf")
		if err := run(append(args, "-o", out), io.Discard, io.Discard); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	vocab := filepath.Join(dir, "vocab.gguf")
	if err := os.WriteFile(vocab, encode(t, vocabularyModel(trainVocabulary("some words", 5))), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"-script", "data/plain.json"},
		{"-script", "data/think.json"},
		{"-script", "data/vision.json", "-mmproj", filepath.Join(dir, "mmproj.gguf")},
		{"-script", "data/vocab.json", "-vocab", vocab},
	} {
		first, second := generate("first", args...), generate("second", args...)
		if !bytes.Equal(first, second) {
			t.Errorf("%v: two files", args)
		}
		m, err := readModel(bytes.NewReader(first))
		if err != nil {
			t.Fatal(err)
		}
		if template, err := lookup[string](m, "tokenizer.chat_template"); err != nil || !strings.Contains(template, "tool_call") ||
			strings.Contains(template, thinkOpen) != (args[1] == "data/think.json") {
			t.Errorf("%v: template %q, %v", args, template, err)
		}
	}
	for _, args := range [][]string{{}, {"-script", "data/plain.json"}, {"-nonsense"}, {"-script", "data/plain.json", "-o", filepath.Join(dir, "no", "dir")}} {
		if err := run(args, io.Discard, io.Discard); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
