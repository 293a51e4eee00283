package budget

import (
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
)

func TestCautiousTextChecks(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
	}{
		{"", 0},
		{"hello", 3},
		{"You are drover.", 8},
		{"Hello, world!", 7},
		{strings.Repeat("a", 23), 12},
		{strings.Repeat("a", 24), 24},
		{"!!!!", 4},
		{"你好", 6},
		{"\U0001F600", 4},
		{"a b c d", 4},
		{"x_y", 2},
		{"2026-11-30T12:00:00Z", 20},
		{"f47ac10b-58cc-4372-a567-0e02b2c3d479", 35},
		{`{"path":".","limit":20}`, 18},
		{"Привет, мир", 19},
		{"\xff", 3},
		{"a 1", 3},
		{"a  b", 3},
		{"a   b", 3},
	} {
		if got := cautiousText(c.text); got != c.want {
			t.Errorf("cautiousText(%q) = %d, want %d", c.text, got, c.want)
		}
	}
}

func TestImageChecks(t *testing.T) {
	for _, c := range []struct{ w, h, want int }{
		{64, 64, 3392},
		{1024, 1024, 4224},
		{1920, 1080, 3392},
		{2560, 1440, 4848},
		{3840, 2160, 10828},
		{4032, 3024, 15616},
		{1 << 40, 1 << 40, 64 + 16384},
	} {
		if got := EstimateImage(&llm.Image{Width: c.w, Height: c.h}); got != c.want {
			t.Errorf("EstimateImage(%dx%d) = %d, want %d", c.w, c.h, got, c.want)
		}
	}
	for _, c := range []struct{ bytes, want int }{
		{0, 3392}, {3392 * 64, 3392}, {3392*64 + 1, 3393}, {16448 * 64, 16448}, {4 << 20, 16448},
	} {
		if got := EstimateImage(&llm.Image{Data: make([]byte, c.bytes)}); got != c.want {
			t.Errorf("unreadable image of %d bytes = %d, want %d", c.bytes, got, c.want)
		}
	}
}
