//go:build unix

package tui

import (
	"context"
	"io"
	"syscall"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/drover-dev/drover/internal/agent"
)

// counter counts what is written to a terminal.
type counter struct{ writes, bytes int }

func (c *counter) Write(p []byte) (int, error) {
	c.writes++
	c.bytes += len(p)
	return len(p), nil
}

// BenchmarkLive runs the whole program, Bubble Tea with it, for as long as 2,000
// pieces at 100 a second take, and reports the share of a core that it uses and
// the frames that it draws in a second. Run it with -benchtime 1x.
func BenchmarkLive(b *testing.B) {
	for b.Loop() {
		s := benchScreen(200, 50)
		longTranscript(s, 10_000)
		s.turn = &turn{cancel: func() {}, cards: map[string]*entry{}, started: time.Now()}
		ctx, cancel := context.WithCancel(b.Context())
		in, typed := io.Pipe()
		out := &counter{}
		p := tea.NewProgram(&unstarted{s}, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithFPS(framesPerSecond),
			tea.WithoutSignalHandler(), tea.WithWindowSize(200, 50), tea.WithEnvironment([]string{"TERM=xterm-256color"}))
		done := make(chan struct{})
		go func() {
			_, _ = p.Run()
			close(done)
		}()
		go pump(s.desk, func(list batch) { p.Send(list) })
		before, start := cpuTime(b), time.Now()
		ticker := time.NewTicker(10 * time.Millisecond)
		for _, d := range deltas(2000) {
			<-ticker.C
			s.desk.emit(agent.Text(d))
		}
		took := time.Since(start)
		b.ReportMetric(100*(cpuTime(b)-before).Seconds()/took.Seconds(), "%core")
		b.ReportMetric(float64(out.writes)/took.Seconds(), "writes/s")
		b.ReportMetric(float64(out.bytes)/took.Seconds()/1024, "KB/s")
		cancel()
		typed.Close()
		<-done
		close(s.desk.over)
	}
}

// unstarted is a screen that is in the middle of a turn already.
type unstarted struct{ *screen }

func (u *unstarted) Init() tea.Cmd { return nil }

func (u *unstarted) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	_, cmd := u.screen.Update(msg)
	return u, cmd
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
