//go:build engines

package budget_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/engine/livetest"
	"github.com/drover-dev/drover/internal/llm"
)

// TestLiveImages plans conversations with pictures for a model with the real
// vocabulary and a projector, which are made here. The projector is a tiny one:
// a picture is a few tokens to it, far below what the policies are made for.
func TestLiveImages(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../scripts/tinymodel/data")); err != nil {
		t.Fatal(err)
	}
	script, model, projector := filepath.Join(dir, "live.json"), filepath.Join(dir, "live.gguf"), filepath.Join(dir, "projector.gguf")
	if err := os.WriteFile(script, []byte(`{"base": "vision.json", "name": "Live", "context": 32768}`), 0o644); err != nil {
		t.Fatal(err)
	}
	vocabulary := filepath.Join(livetest.Dir(), "llama.cpp", "ggml-vocab-qwen2.gguf")
	program := exec.Command("go", "run", "../../scripts/tinymodel", "-script", script, "-vocab", vocabulary, "-o", model, "-mmproj", projector)
	if out, err := program.CombinedOutput(); err != nil {
		t.Fatalf("make a model: %v\n%s", err, out)
	}

	pictures := newPictures(t)
	give := func(m maker) *llm.Image { return pick(m, pictures) }
	known, kept, omitted := counts{}, 0, 0
	for _, window := range []int{8192, 32768} {
		t.Run(strconv.Itoa(window), func(t *testing.T) {
			l, tools := newLive(t, known, window, "--model", model, "--mmproj", projector), liveTools(t, window)
			for number := range max(8, *histories/10) {
				c := newConversation(-1-number, give)
				for _, p := range []*budget.Policy{budget.Policy1(), budget.Policy2()} {
					plan, usage := l.plan(p, l.input(c, len(c.messages), tools), fmt.Sprintf("pictures %d", number))
					l.tally.planned(p.Version, plan)
					if plan == nil {
						continue
					}
					omitted += len(plan.Report.OmittedImages)
					kept += pictureCount(plan)
					// The share of a picture may change, so that its count is no anchor.
					in := l.input(c, len(c.messages), tools)
					in.Previous = plan.Next(usage)
					if next, err := budget.Make(p, in); err == nil && next.Report.Anchor != nil && pictureCount(plan) > 0 {
						t.Errorf("pictures %d, policy %d: an anchor with pictures", number, p.Version)
					}
				}
			}
			t.Logf("%d requests\n%s", l.tally.sent, l.tally)
		})
	}
	if t.Logf("%d pictures sent, %d left out", kept, omitted); kept == 0 || omitted == 0 {
		t.Errorf("%d pictures sent, %d left out", kept, omitted)
	}
}

func pictureCount(plan *budget.Plan) int {
	n := 0
	for i := range plan.Request.Messages {
		n += len(plan.Request.Messages[i].Images())
	}
	return n
}

// newPictures makes pictures of three formats from one pixel to full HD.
func newPictures(t *testing.T) []*llm.Image {
	r := rand.New(rand.NewPCG(conversationSeed, 0))
	formats := []func(io.Writer, image.Image) error{
		func(w io.Writer, p image.Image) error { return gif.Encode(w, p, nil) },
		png.Encode,
		func(w io.Writer, p image.Image) error { return jpeg.Encode(w, p, nil) },
	}
	palette := color.Palette{color.White, color.Black, color.RGBA{R: 200, A: 255}}
	var pictures []*llm.Image
	for i, size := range [][2]int{{1, 1}, {64, 64}, {640, 480}, {300, 1200}, {1024, 1024}, {1280, 720}, {1920, 1080}} {
		picture := image.NewPaletted(image.Rect(0, 0, size[0], size[1]), palette)
		for range 200 {
			picture.SetColorIndex(r.IntN(size[0]), r.IntN(size[1]), uint8(r.IntN(len(palette))))
		}
		var data bytes.Buffer
		if err := formats[i%len(formats)](&data, picture); err != nil {
			t.Fatal(err)
		}
		img, err := llm.NewImage(fmt.Sprintf("picture-%d", i), data.Bytes())
		if err != nil || img.Width != size[0] || img.Height != size[1] {
			t.Fatalf("%+v, %v", img, err)
		}
		pictures = append(pictures, img)
	}
	return pictures
}

// TestLiveSmallWindowTask replays a task that outgrows its window: one prompt,
// 40 rounds of reading files of 4 KB with an output of 4,096 asked, and a second
// prompt. By policy 2 every request is planned and taken. Policy 1 keeps every
// call, so that a small window is full after some rounds, and nothing of the first
// prompt before the second; what it plans is taken as well.
func TestLiveSmallWindowTask(t *testing.T) {
	const rounds, fileBytes, task = 40, 4096, "Read all forty files of the herd and say which of them counts the gates."
	m := maker{rand.New(rand.NewPCG(conversationSeed, 1))}
	turns := []llm.Message{llm.UserText(task)}
	for i := range rounds {
		id := fmt.Sprintf("call_%s", m.hex(24))
		turns = append(turns,
			llm.AssistantText("", llm.ToolCall{ID: id, Name: "read", Arguments: fmt.Sprintf(`{"path":"internal/herd/file%02d.go"}`, i)}),
			llm.ToolText(id, m.code(fileBytes)[:fileBytes]))
	}
	turns = append(turns, llm.AssistantText("The gates are counted in file07.go."), llm.UserText("And which one did you read last?"))
	c := &conversation{system: droverPrompt, tools: true, output: 4096, messages: turns}

	for _, window := range []int{4096, 8192, 32768} {
		t.Run(strconv.Itoa(window), func(t *testing.T) {
			l := newLive(t, counts{}, window)
			for _, p := range []*budget.Policy{budget.Policy2(), budget.Policy1()} {
				if p.Version == 1 && window > 8192 && *histories < longRun {
					continue // long prompts, new ones each time
				}
				var previous *budget.Previous
				costs, planned, shapes, last := new(budget.Costs), 0, map[string]bool{}, (*budget.Plan)(nil)
				for _, end := range c.requests() {
					in := l.input(c, end, droverTools(t, window))
					in.Previous, in.Costs = previous, costs
					plan, usage := l.plan(p, in, fmt.Sprintf("the task up to turn %d", end))
					if plan == nil {
						break
					}
					first := plan.Request.Messages[0].Text()
					if (p.Version == 2 || end < len(turns)) && !strings.HasPrefix(first, task) {
						t.Errorf("policy %d, turn %d: the request begins with %q", p.Version, end, first)
					}
					planned, last, previous = planned+1, plan, plan.Next(usage)
					shapes[fmt.Sprint(plan.Shape.FirstTurn, plan.Shape.Excerpts, plan.Shape.LeftOut)] = true
				}
				t.Logf("policy %d: %d of %d requests planned, %d shapes", p.Version, planned, rounds+2, len(shapes))
				if p.Version == 2 {
					checkTaskDone(t, last, planned == rounds+2)
				}
			}
		})
	}
}

// checkTaskDone asserts that the second prompt sees what the first one left.
func checkTaskDone(t *testing.T, last *budget.Plan, whole bool) {
	t.Helper()
	if !whole {
		t.Error("policy 2 gave up")
		return
	}
	results := 0
	for i := range last.Request.Messages {
		if last.Request.Messages[i].Role == llm.Tool {
			results++
		}
	}
	if results == 0 || last.Report.RetainedExchanges != 2 {
		t.Errorf("the second prompt sees %d results, %d exchanges", results, last.Report.RetainedExchanges)
	}
}
