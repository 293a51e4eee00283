package agent_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/session"
)

// TestWebPIsSentReadable: not every engine reads one.
func TestWebPIsSentReadable(t *testing.T) {
	facts := window(65536)
	facts.Capabilities.Vision.Support = llm.Supported
	p := &llmtest.Provider{Facts: facts, Script: []llmtest.Answer{llmtest.Say("ok")}}
	f := newFixture(t, p, nil, agent.Options{ScaleImages: true})
	data, err := base64.StdEncoding.DecodeString("UklGRhwAAABXRUJQVlA4TBAAAAAvJ8ABAChykYvc/wAAAAAA")
	if err != nil {
		t.Fatal(err)
	}
	img, err := llm.NewImage("gray.webp", data)
	if err != nil {
		t.Fatal(err)
	}
	told := ""
	for ev := range f.agent.Turn(t.Context(), []llm.Part{img, llm.Text("look")}) {
		if n, ok := ev.(agent.Notice); ok {
			told += n.Text
		}
	}
	sent := p.Requests()[0].Messages[0].Images()
	if len(sent) != 1 || sent[0].MediaType != "image/png" || sent[0].Width != 40 {
		t.Errorf("sent %+v", sent)
	}
	if !strings.Contains(told, "gray.webp is sent as a PNG") {
		t.Errorf("told %q", told)
	}
	f.check()
}

func pngFile(t *testing.T, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestLargeImagesAreSentSmaller, also those that a tool returns, and told; the
// session keeps the originals.
func TestLargeImagesAreSentSmaller(t *testing.T) {
	for _, scale := range []bool{true, false} {
		facts := window(65536)
		facts.Capabilities.Vision.Support = llm.Supported
		p := &llmtest.Provider{Facts: facts, Script: []llmtest.Answer{
			llmtest.Call(llm.ToolCall{ID: "1", Name: "read", Arguments: `{"path":"wide.png"}`}), llmtest.Say("ok"),
		}}
		f := newFixture(t, p, nil, agent.Options{ScaleImages: scale})
		if err := os.WriteFile(filepath.Join(f.dir, "wide.png"), pngFile(t, 2912, 30), 0o600); err != nil {
			t.Fatal(err)
		}
		large, err := llm.NewImage("tall.png", pngFile(t, 20, 1457))
		if err != nil {
			t.Fatal(err)
		}
		fits, err := llm.NewImage("fits.png", pngFile(t, 1456, 20))
		if err != nil {
			t.Fatal(err)
		}
		var events []agent.Event
		for ev := range f.agent.Turn(t.Context(), []llm.Part{large, fits, llm.Text("look")}) {
			events = append(events, ev)
		}
		var told []string
		for _, n := range find[agent.Notice](events) {
			if strings.Contains(n.Text, "is sent as") {
				told = append(told, n.Text)
			}
		}
		var sizes [][2]int
		for _, m := range p.Requests()[1].Messages {
			for _, img := range m.Images() {
				sizes = append(sizes, [2]int{img.Width, img.Height})
			}
		}
		want := [][2]int{{19, 1456}, {1456, 20}, {1456, 15}}
		if !scale {
			want = [][2]int{{20, 1457}, {1456, 20}, {2912, 30}}
		}
		for i := range want {
			if len(sizes) != len(want) || sizes[i] != want[i] {
				t.Errorf("scale %v: sent %v, want %v", scale, sizes, want)
				break
			}
		}
		if scale && (len(told) != 2 || !strings.Contains(told[0], "tall.png of 20x1457 pixels is sent as 19x1456")) || !scale && len(told) > 0 {
			t.Errorf("scale %v: told %q", scale, told)
		}
		attached := 0
		for rec, err := range f.log.Records() {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := rec.(*session.Attachment); ok {
				attached++
			}
		}
		if attached != map[bool]int{true: 5, false: 3}[scale] {
			t.Errorf("scale %v: %d images in the session", scale, attached)
		}
		f.check()
	}
}

// An image that cannot be unpacked is blamed for a failure only where it can be the
// reason: not where the model has answered to it, and not at once where a proxy or
// too many requests are.
func TestDamagedImageIsNotBlamedForEverything(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 64, 64))); err != nil {
		t.Fatal(err)
	}
	torn, err := llm.NewImage("torn.png", b.Bytes()[:b.Len()/2])
	if err != nil {
		t.Fatal(err)
	}
	failure := func(status int) llmtest.Answer {
		return llmtest.Fail(&llm.Error{Code: llm.CodeServer, Message: "it failed", Status: status})
	}
	busy := failure(503)
	for name, c := range map[string]struct {
		first, second []llmtest.Answer // of two turns
		leftOut       bool
	}{
		"the model has answered to it": {[]llmtest.Answer{llmtest.Say("a sheep")}, []llmtest.Answer{failure(500), llmtest.Say("ok")}, false},
		"an overload":                  {[]llmtest.Answer{busy, busy, llmtest.Say("a sheep")}, []llmtest.Answer{busy, llmtest.Say("ok")}, false},
		"a proxy with an engine that ends": {
			[]llmtest.Answer{busy, busy, busy, busy, busy, busy, llmtest.Say("what image?")}, []llmtest.Answer{llmtest.Say("ok")}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &llmtest.Provider{Facts: window(32768), Script: append(c.first, c.second...)}
				f := newFixture(t, p, nil, agent.Options{})
				told := ""
				for _, parts := range [][]llm.Part{{torn, llm.Text("what is it?")}, {llm.Text("and now?")}} {
					for ev := range f.agent.Turn(t.Context(), parts) {
						switch ev := ev.(type) {
						case agent.Notice:
							told += ev.Text
						case agent.End:
							if ev.Reason != agent.EndCompleted {
								t.Errorf("%+v", ev)
							}
						}
					}
				}
				if got := strings.Contains(told, "left out from now on"); got != c.leftOut {
					t.Errorf("left out: %v, told %q", got, told)
				}
				f.check()
			})
		})
	}
}
